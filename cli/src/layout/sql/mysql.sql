-- A view and a query: by default, a server with a binary log lets only administrators create
-- functions.
-- Replace orders and id by your table and its column. All times are DATETIME in UTC, whatever
-- the time zone of the session is. The query at the end reads @since and @until, and returns
-- first_id(@since), first_id(@until) as end_id, and last_id(@until). Use them as constants.
--
-- Examples, with the bounds of a month:
--   SET @since = '{since}', @until = '{until}';
--   SELECT id, time, node FROM ringflake_ids;
--   SELECT COUNT(*) FROM orders WHERE id BETWEEN {since_id} AND {until_id} - 1;
--   ALTER TABLE orders PARTITION BY RANGE (id) (
--     PARTITION until_{month} VALUES LESS THAN ({until_id}),
--     PARTITION later VALUES LESS THAN MAXVALUE);

CREATE OR REPLACE VIEW ringflake_ids AS
SELECT id,
  CAST(CASE WHEN id BETWEEN 0 AND {last_id} THEN
    TIMESTAMP'{epoch}'
      + INTERVAL id DIV {tick_ids} * {tick_ms} DIV 1000 SECOND
      + INTERVAL id DIV {tick_ids} * {tick_ms} % 1000 * 1000 MICROSECOND
  END AS DATETIME(3)) AS time,
  CASE WHEN id BETWEEN 0 AND {last_id} THEN id DIV {sequences} % {nodes} END AS node,
  CASE WHEN id BETWEEN 0 AND {last_id} THEN id % {sequences} END AS sequence
FROM orders;

SELECT
  CASE
    WHEN since <= TIMESTAMP'{epoch}' THEN 0
    WHEN since > TIMESTAMP'{last_tick}' THEN {above_all}
    ELSE (TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'{epoch}', since)
      + {tick_us} - 1) DIV {tick_us} * {tick_ids}
  END AS first_id,
  CASE
    WHEN until <= TIMESTAMP'{epoch}' THEN 0
    WHEN until > TIMESTAMP'{last_tick}' THEN {above_all}
    ELSE (TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'{epoch}', until)
      + {tick_us} - 1) DIV {tick_us} * {tick_ids}
  END AS end_id,
  CASE
    WHEN until < TIMESTAMP'{epoch}' THEN -1
    WHEN until >= TIMESTAMP'{last_tick}' THEN {last_id}
    ELSE TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'{epoch}', until)
      DIV {tick_us} * {tick_ids} + {tick_ids} - 1
  END AS last_id
FROM (SELECT CAST(@since AS DATETIME(6)) AS since, CAST(@until AS DATETIME(6)) AS until) AS moments;
