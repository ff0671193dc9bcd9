-- PostgreSQL inlines these functions, so conditions on an ID use its index and its partitions.
--
-- Examples:
--   SELECT id, ringflake_time(id), ringflake_node(id) FROM orders;
--   SELECT count(*) FROM orders WHERE id
--     BETWEEN ringflake_first_id('{since} 00:00Z') AND ringflake_last_id('{until} 00:00Z');
--   CREATE TABLE orders_{month} PARTITION OF orders FOR VALUES
--     FROM (ringflake_first_id('{since} 00:00Z')) TO (ringflake_first_id('{until} 00:00Z'));

CREATE OR REPLACE FUNCTION ringflake_time(id bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN id BETWEEN 0 AND {last_id} THEN
    (timestamp '{epoch}'
      + id / {tick_ids} * {tick_ms} / 86400000 * interval '1 day'
      + id / {tick_ids} * {tick_ms} % 86400000 * interval '1 millisecond') AT TIME ZONE 'UTC'
  END
$$;

CREATE OR REPLACE FUNCTION ringflake_node(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN id BETWEEN 0 AND {last_id} THEN id / {sequences} % {nodes} END
$$;

CREATE OR REPLACE FUNCTION ringflake_sequence(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN id BETWEEN 0 AND {last_id} THEN id % {sequences} END
$$;

CREATE OR REPLACE FUNCTION ringflake_first_id(t timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN t <= timestamptz '{epoch}+00' THEN 0
    WHEN t > timestamptz '{last_tick}+00' THEN {above_all}
    ELSE ((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint
      - {epoch_us} + {tick_us} - 1) / {tick_us} * {tick_ids}
  END
$$;

CREATE OR REPLACE FUNCTION ringflake_last_id(t timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN t < timestamptz '{epoch}+00' THEN -1
    WHEN t >= timestamptz '{last_tick}+00' THEN {last_id}
    ELSE ((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint
      - {epoch_us}) / {tick_us} * {tick_ids} + {tick_ids} - 1
  END
$$;
