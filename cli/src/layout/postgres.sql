-- Time, node and sequence of plain IDs, and the first and last ID of a moment.
-- Printed by: {command}
--
-- Layout: {layout}
-- Bits: {total_bits}, of which {time_bits} time, {node_bits} node, {sequence_bits} sequence
-- Tick: {tick_ms} ms. Epoch: {epoch} UTC. End: {end} UTC.
--
-- Only for plain IDs. Encrypted IDs show no time, and the database does not have the secret.
--
-- The time of an ID is the start of its tick.
--   ringflake_first_id(t) is the first ID whose time is t or later.
--   ringflake_last_id(t) is the last ID whose time is t or earlier.
-- So each of these conditions selects the same IDs as the one beside it:
--   id BETWEEN ringflake_first_id(a) AND ringflake_last_id(b)      a <= time AND time <= b
--   id >= ringflake_first_id(a) AND id < ringflake_first_id(b)     a <= time AND time < b
-- A moment within a tick: with ticks of 1 s, ringflake_first_id(12:00:00.5) is the first ID of
-- 12:00:01, and ringflake_last_id(12:00:00.5) is the last ID of 12:00:00.
--
-- Before the epoch, ringflake_first_id is 0 and ringflake_last_id is -1. After the last tick,
-- ringflake_last_id is the last ID, and ringflake_first_id is above it. With 63 bits it stays at
-- the last ID: no BIGINT is above that.
-- All results are NULL for NULL, and for a number that is no ID of this layout.
--
-- PostgreSQL inlines these functions, so conditions on an ID use its index and its partitions.
--
-- Examples:
--   SELECT id, ringflake_time(id), ringflake_node(id) FROM orders;
--   SELECT count(*) FROM orders WHERE id
--     BETWEEN ringflake_first_id('2026-12-01 00:00Z') AND ringflake_last_id('2027-01-01 00:00Z');
--   CREATE TABLE orders_2026_12 PARTITION OF orders FOR VALUES
--     FROM (ringflake_first_id('2026-12-01Z')) TO (ringflake_first_id('2027-01-01Z'));

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
