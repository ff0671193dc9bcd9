//! The SQL that is sent.

/// The identity of the server's history. The oldest server that
/// this is written for has it all for any role.
///
/// The timeline is that of the log being written: the control file learns of a
/// promotion only at the next checkpoint. The table's own number changes when a
/// dump is restored over it, which replaces it.
macro_rules! incarnation {
    () => {
        "CASE WHEN pg_is_in_recovery() THEN NULL ELSE concat_ws('/',
            (SELECT system_identifier FROM pg_control_system()),
            substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
            to_regclass('ringflake_block')::oid) END"
    };
}

/// The time at which it is evaluated. `now()` would be the transaction's begin,
/// which lies before every lock that it had to wait for.
macro_rules! unix_ms {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

macro_rules! record_columns {
    () => {
        "format, name, layout, block_bits, fingerprint, horizon_ms, failover_ms, skew_ms, floor, \
         incarnation"
    };
}

macro_rules! block_columns {
    () => {
        "block, epoch, hwm_end, released, granted_unix_ms, holder_host, holder_instance"
    };
}

pub(super) const COMMIT: &str = "COMMIT";
/// Sent before a commit. A warning is all that the server says when somebody
/// cancels its wait for a standby, so no setting may hold it back, and no other
/// warning be mistaken for it: they are off until here. And in a transaction that
/// has failed this fails, where a commit would be answered with a mere rollback.
pub(super) const ENABLE_WARNINGS: &str = "SET LOCAL client_min_messages = warning";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// Of a transaction that writes. Whatever the role or the database set as a
/// default, it is durable before it is confirmed.
pub(super) const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL synchronous_commit = on;
    SET LOCAL client_min_messages = error;";

pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;";

pub(super) const VERSION: &str = "SELECT current_setting('server_version_num')::int";

pub(super) const CLOCK: &str = concat!("SELECT ", unix_ms!());

/// Clock, incarnation, the settings that durability depends on, and the tables
/// that a crash would empty.
pub(super) const SERVER_STATE: &str = concat!(
    "SELECT ",
    unix_ms!(),
    ", ",
    incarnation!(),
    ", current_setting('fsync'), current_setting('full_page_writes'),
        (SELECT string_agg(relname::text, ', ' ORDER BY relname) FROM pg_class
        WHERE oid IN (to_regclass('ringflake_namespace'), to_regclass('ringflake_block'),
                to_regclass('ringflake_ledger'))
            AND relpersistence <> 'p')"
);

/// Lets one `init` at a time look for the tables, and for a secret in use. Freed when the
/// transaction ends. The number is "ringflak" in ASCII.
pub(super) const INIT_LOCK: &str = "SELECT pg_advisory_xact_lock(8244241983257469291)";

/// Asked first, since `CREATE TABLE IF NOT EXISTS` wants a privilege that a role
/// needs no more once they exist.
pub(super) const HAS_TABLES: &str = "\
    SELECT to_regclass('ringflake_namespace') IS NOT NULL
        AND to_regclass('ringflake_block') IS NOT NULL
        AND to_regclass('ringflake_ledger') IS NOT NULL
        AND to_regclass('ringflake_namespace_secret') IS NOT NULL";

/// The exclusion constraint compares numbers as ranges of one, since equality
/// in such an index would take an extension. Later columns are added to
/// one that is there, and not held against the rows that it has.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE IF NOT EXISTS ringflake_namespace (
        number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        name text COLLATE \"C\" PRIMARY KEY,
        format bigint NOT NULL,
        layout text NOT NULL,
        block_bits bigint NOT NULL,
        fingerprint text NOT NULL,
        horizon_ms bigint NOT NULL,
        failover_ms bigint NOT NULL,
        skew_ms bigint NOT NULL,
        floor bigint NOT NULL CHECK (floor >= 0),
        incarnation text NOT NULL
    );
    CREATE UNIQUE INDEX IF NOT EXISTS ringflake_namespace_secret
        ON ringflake_namespace (fingerprint) WHERE fingerprint <> repeat('0', 32);
    CREATE TABLE IF NOT EXISTS ringflake_block (
        namespace text COLLATE \"C\" NOT NULL REFERENCES ringflake_namespace (name),
        block bigint NOT NULL CHECK (block >= 0),
        epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
        hwm_end bigint NOT NULL DEFAULT 0 CHECK (hwm_end >= 0),
        released boolean NOT NULL DEFAULT false,
        granted_unix_ms bigint,
        holder_host text,
        holder_instance text,
        PRIMARY KEY (namespace, block)
    );
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'ringflake_block_agrees'
            AND conrelid = 'ringflake_block'::regclass)
        THEN
            ALTER TABLE ringflake_block ADD CONSTRAINT ringflake_block_agrees
                CHECK (epoch BETWEEN 1 AND hwm_end OR epoch = 0 AND hwm_end = 0) NOT VALID;
        END IF;
    END $$;
    CREATE INDEX IF NOT EXISTS ringflake_block_mark ON ringflake_block (namespace, hwm_end, block);
    CREATE TABLE IF NOT EXISTS ringflake_ledger (
        number bigint NOT NULL REFERENCES ringflake_namespace (number),
        block bigint NOT NULL,
        epoch bigint NOT NULL,
        ticks int8range NOT NULL CHECK (NOT isempty(ticks)),
        PRIMARY KEY (number, block, epoch),
        CONSTRAINT ringflake_ledger_disjoint EXCLUDE USING gist (
            int8range(block, block, '[]') WITH &&,
            ticks WITH &&,
            int8range(number, number, '[]') WITH &&
        )
    );";

pub(super) const IS_RECORDED: &str =
    "SELECT EXISTS (SELECT FROM ringflake_namespace WHERE name = $1)";

pub(super) const CREATE_RECORD: &str = concat!(
    "INSERT INTO ringflake_namespace (",
    record_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
);

pub(super) const NAMESPACE_OF: &str = "SELECT name FROM ringflake_namespace WHERE fingerprint = $1";

pub(super) const CREATE_BLOCKS: &str = "\
    INSERT INTO ringflake_block (namespace, block)
    SELECT $1, block FROM generate_series(0, $2 - 1) AS block";

macro_rules! record {
    () => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM ringflake_namespace WHERE name = $1"
        )
    };
}

pub(super) const RECORD: &str = record!();
pub(super) const RECORD_SHARED: &str = concat!(record!(), " FOR SHARE");
pub(super) const RECORD_EXCLUSIVE: &str = concat!(record!(), " FOR UPDATE");

/// Blocks never granted have mark 0, and so come first. Parameters 5 to 7: whether to
/// pass over what is quarantined, and how many blocks and ticks there are.
macro_rules! candidates {
    () => {
        concat!(
            "SELECT ",
            block_columns!(),
            " FROM ringflake_block
            WHERE namespace = $1 AND (hwm_end <= $2 OR released) AND hwm_end < $3
                AND (NOT $5 OR block BETWEEN 0 AND $6 - 1 AND hwm_end <= $7
                    AND (epoch BETWEEN 1 AND hwm_end OR epoch = 0 AND hwm_end = 0))
            ORDER BY hwm_end, block LIMIT $4 FOR UPDATE"
        )
    };
}

pub(super) const CANDIDATES: &str = concat!(candidates!(), " SKIP LOCKED");
pub(super) const CANDIDATES_WAITING: &str = candidates!();

pub(super) const MARKS: &str = "\
    SELECT min(hwm_end) FILTER (WHERE NOT released), min(hwm_end) FILTER (WHERE released)
    FROM ringflake_block WHERE namespace = $1 AND epoch BETWEEN 1 AND hwm_end";

pub(super) const UPDATE_RECORD: &str =
    "UPDATE ringflake_namespace SET floor = $2, incarnation = $3 WHERE name = $1";

/// Marks and ledger in one statement. Answers how many rows of each hold now what
/// was to be written.
pub(super) const GRANT: &str = "\
    WITH given AS (
        SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
            AS given (block, epoch, start, hwm_end)
    ), space AS (
        SELECT number FROM ringflake_namespace WHERE name = $1
    ), moved AS (
        UPDATE ringflake_block AS b
        SET epoch = given.epoch, hwm_end = given.hwm_end, released = false,
            granted_unix_ms = $6, holder_host = $7, holder_instance = $8
        FROM given WHERE b.namespace = $1 AND b.block = given.block
        RETURNING b.block, b.epoch, b.hwm_end
    ), forgotten AS (
        DELETE FROM ringflake_ledger AS l USING space, given
        WHERE l.number = space.number AND l.block = given.block AND upper(l.ticks) < $9
    ), noted AS (
        INSERT INTO ringflake_ledger (number, block, epoch, ticks)
        SELECT space.number, given.block, given.epoch, int8range(given.start, given.hwm_end)
        FROM given CROSS JOIN space
        RETURNING block
    )
    SELECT (SELECT count(*) FROM moved JOIN given USING (block, epoch, hwm_end)),
        (SELECT count(*) FROM noted)";

/// The record of this very namespace. The transaction has
/// [its lock](super::lock) by then, which holds it in place until the end.
macro_rules! verified_record {
    () => {
        "WITH record AS MATERIALIZED (
            SELECT number, floor, incarnation, horizon_ms FROM ringflake_namespace
            WHERE name = $1 AND format = $2 AND layout = $3 AND block_bits = $4
                AND fingerprint = $5
        )"
    };
}

/// A renewal that finds the row locked waits, and then compares again with the row as
/// it is then.
pub(super) const EXTEND: &str = concat!(
    verified_record!(),
    ", moved AS (
        UPDATE ringflake_block AS b
        SET hwm_end = greatest($8, least($9, $12,
                (",
    unix_ms!(),
    " - $10) / $11 + record.horizon_ms / $11)),
            released = false
        FROM record
        WHERE b.namespace = $1 AND b.block = $6 AND b.epoch = $7 AND b.epoch > 0
            AND b.hwm_end = $8 AND record.floor <= $8 AND ",
    unix_ms!(),
    " >= $10
            AND record.incarnation = ",
    incarnation!(),
    "
            AND ($13 OR current_setting('fsync') = 'on'
                AND current_setting('full_page_writes') = 'on')
        RETURNING b.hwm_end
    ), noted AS (
        UPDATE ringflake_ledger AS l
        SET ticks = int8range(lower(l.ticks), moved.hwm_end)
        FROM moved, record
        WHERE l.number = record.number AND l.block = $6 AND l.epoch = $7
            AND upper(l.ticks) < moved.hwm_end
    )
    SELECT hwm_end FROM moved"
);

/// [`EXTEND`] for a list of renewals, no two of one block. Answers the place in the list of
/// each that was done, from 1, and its end.
///
/// Rows under another one's lock are passed over. So whoever has locked one of many
/// waits for nobody.
pub(super) const EXTEND_MANY: &str = concat!(
    "WITH asked AS MATERIALIZED (
        SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
            $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
            $13::bigint[])
        WITH ORDINALITY AS asked (name, layout, block_bits, fingerprint, block, epoch,
            known_end, new_end, epoch_unix_ms, tick_ms, ticks, place)
    ), server AS MATERIALIZED (
        SELECT ",
    incarnation!(),
    " AS incarnation
    ), verified AS MATERIALIZED (
        SELECT asked.*, record.number, record.horizon_ms
        FROM asked
            JOIN ringflake_namespace AS record ON record.name = asked.name
                AND record.format = $1 AND record.layout = asked.layout
                AND record.block_bits = asked.block_bits
                AND record.fingerprint = asked.fingerprint
                AND record.floor <= asked.known_end
            JOIN server ON server.incarnation = record.incarnation
        WHERE ",
    unix_ms!(),
    " >= asked.epoch_unix_ms
            AND ($2 OR current_setting('fsync') = 'on'
                AND current_setting('full_page_writes') = 'on')
    ), free AS MATERIALIZED (
        SELECT b.namespace, b.block
        FROM ringflake_block AS b JOIN verified AS v ON b.namespace = v.name
            AND b.block = v.block AND b.epoch = v.epoch AND b.hwm_end = v.known_end
        FOR UPDATE OF b SKIP LOCKED
    ), moved AS (
        UPDATE ringflake_block AS b
        SET hwm_end = greatest(v.known_end, least(v.new_end, v.ticks,
                (",
    unix_ms!(),
    " - v.epoch_unix_ms) / v.tick_ms + v.horizon_ms / v.tick_ms)),
            released = false
        FROM verified AS v JOIN free ON free.namespace = v.name AND free.block = v.block
        WHERE b.namespace = v.name AND b.block = v.block AND b.epoch = v.epoch AND b.epoch > 0
            AND b.hwm_end = v.known_end
        RETURNING v.place, v.number, b.block, b.epoch, b.hwm_end
    ), noted AS (
        UPDATE ringflake_ledger AS l
        SET ticks = int8range(lower(l.ticks), moved.hwm_end)
        FROM moved
        WHERE l.number = moved.number AND l.block = moved.block AND l.epoch = moved.epoch
            AND upper(l.ticks) < moved.hwm_end
    )
    SELECT place, hwm_end FROM moved"
);

pub(super) const RELEASE: &str = concat!(
    verified_record!(),
    " UPDATE ringflake_block AS b SET released = true FROM record
    WHERE b.namespace = $1 AND b.block = $6 AND b.epoch = $7 AND b.epoch > 0
        AND b.hwm_end BETWEEN b.epoch AND $8
    RETURNING b.block"
);

pub(super) const GRANTED: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE namespace = $1 AND (epoch <> 0 OR hwm_end <> 0) ORDER BY block"
);

pub(super) const KNOWN: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE namespace = $1 AND (epoch <> 0 OR hwm_end <> 0) AND block = ANY($2)"
);

pub(super) const GRANTED_ONE: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE namespace = $1 AND (epoch <> 0 OR hwm_end <> 0) AND block = $2"
);

pub(super) const ONE_LOCKED: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE namespace = $1 AND block = $2 FOR UPDATE"
);

pub(super) const REPAIR: &str = "\
    UPDATE ringflake_block
    SET epoch = $3, hwm_end = $4, released = true,
        granted_unix_ms = NULL, holder_host = NULL, holder_instance = NULL
    WHERE namespace = $1 AND block = $2";
