-- A view and a query, because SQLite has no functions in SQL. Replace orders and id by your table
-- and its column. Times are texts in UTC, and Unix milliseconds. The query at the end has the
-- parameters :since and :until, which are Unix milliseconds as integers; other types give NULL.
-- It returns first_id(:since), first_id(:until) as end_id, and last_id(:until).
--
-- Examples, with the bounds of a month. SQLite has no partitions; the last one copies a month.
--   .parameter set :since "strftime('%s', '{since}') * 1000"
--   .parameter set :until "strftime('%s', '{until}') * 1000"
--   SELECT id, time, unix_ms, node FROM ringflake_ids;
--   SELECT count(*) FROM orders WHERE id BETWEEN {since_id} AND {until_id} - 1;
--   CREATE TABLE orders_{month} AS
--     SELECT * FROM orders WHERE id >= {since_id} AND id < {until_id};

DROP VIEW IF EXISTS ringflake_ids;
CREATE VIEW ringflake_ids AS
SELECT id,
  strftime('%Y-%m-%dT%H:%M:%S', unix_ms / 1000, 'unixepoch') || printf('.%03dZ', unix_ms % 1000)
    AS time,
  unix_ms,
  CASE WHEN unix_ms IS NOT NULL THEN id / {sequences} % {nodes} END AS node,
  CASE WHEN unix_ms IS NOT NULL THEN id % {sequences} END AS sequence
FROM (
  SELECT id,
    CASE WHEN id BETWEEN 0 AND {last_id} THEN {epoch_ms} + id / {tick_ids} * {tick_ms} END
      AS unix_ms
  FROM orders
);

SELECT
  CASE
    WHEN typeof(since) <> 'integer' THEN NULL
    WHEN since <= {epoch_ms} THEN 0
    WHEN since > {last_tick_ms} THEN {above_all}
    ELSE (since - {epoch_ms} + {tick_ms} - 1) / {tick_ms} * {tick_ids}
  END AS first_id,
  CASE
    WHEN typeof(until) <> 'integer' THEN NULL
    WHEN until <= {epoch_ms} THEN 0
    WHEN until > {last_tick_ms} THEN {above_all}
    ELSE (until - {epoch_ms} + {tick_ms} - 1) / {tick_ms} * {tick_ids}
  END AS end_id,
  CASE
    WHEN typeof(until) <> 'integer' THEN NULL
    WHEN until < {epoch_ms} THEN -1
    WHEN until >= {last_tick_ms} THEN {last_id}
    ELSE (until - {epoch_ms}) / {tick_ms} * {tick_ids} + {tick_ids} - 1
  END AS last_id
FROM (SELECT :since AS since, :until AS until);
