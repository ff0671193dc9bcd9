//! The SQL that is sent.

/// The identity of the server's history. The oldest supported server shows all of it to any
/// role.
///
/// The timeline is that of the log being written: the control file has a promotion only after
/// the next checkpoint. The numbers of the database and of the schema distinguish a copy on the
/// same server, even a renamed one. The number of the table changes when a dump is restored over it.
macro_rules! incarnation {
    () => {
        "CASE WHEN pg_is_in_recovery() THEN NULL ELSE concat_ws('/',
            (SELECT system_identifier FROM pg_control_system()),
            'database ' || (SELECT oid FROM pg_database WHERE datname = current_database()),
            (SELECT concat('schema ', relnamespace, '/table ', oid) FROM pg_class
                WHERE oid = to_regclass('ringflake')),
            'timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)) END"
    };
}

/// The time at which it is evaluated. `now()` would be the time at which the transaction began,
/// before it waited for locks.
macro_rules! unix_ms {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

pub(super) const COMMIT: &str = "COMMIT";
/// Sent before a commit. A warning is the only sign that somebody has cancelled its wait for a
/// standby, so no setting may suppress it, and no other warning be mistaken for it: they are
/// off until here. In a transaction that has failed this fails, where a commit would be
/// answered with a mere rollback.
pub(super) const ENABLE_WARNINGS: &str = "SET LOCAL client_min_messages = warning";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// Of a transaction that writes. It is durable before it is confirmed, whatever the default of
/// the role or the database.
pub(super) const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL synchronous_commit = on;
    SET LOCAL client_min_messages = error;";

pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;";

pub(super) const VERSION: &str = "SELECT current_setting('server_version_num')::int";

/// Clock, incarnation, the settings that durability depends on, and tables that a crash would
/// empty.
pub(super) const SERVER_STATE: &str = concat!(
    "SELECT ",
    unix_ms!(),
    ", ",
    incarnation!(),
    ", current_setting('fsync'), current_setting('full_page_writes'),
        (SELECT string_agg(relname::text, ', ' ORDER BY relname) FROM pg_class
        WHERE relpersistence <> 'p'
            AND oid IN (to_regclass('ringflake'), to_regclass('ringflake_ledger')))"
);

/// One creates tables at a time. The number is "ringflak" in ASCII.
pub(super) const CREATE_LOCK: &str = "SELECT pg_advisory_xact_lock(8244241983257469291)";

/// Whether all is there, so that nothing has to be created, which takes privileges; and whether
/// the view's name is that of a table.
pub(super) const HAS_TABLES: &str = "\
    SELECT to_regclass('ringflake') IS NOT NULL
        AND to_regclass('ringflake_rank') IS NOT NULL
        AND to_regclass('ringflake_ledger') IS NOT NULL
        AND to_regclass('ringflake_ledger_grant') IS NOT NULL
        AND to_regclass('ringflake_block') IS NOT NULL
        AND 2 = (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('ringflake')
            AND tgname IN ('ringflake_ledger_insert', 'ringflake_ledger_update')),
        EXISTS (SELECT FROM pg_class
            WHERE oid = to_regclass('ringflake_block') AND relkind <> 'v')";

/// The triggers keep the ledger with the interval of each grant, of which a constraint lets no
/// two of a block overlap. They run once for all rows of a statement, which costs less than half
/// as much as once for each. Equality in such an index would take an extension, so numbers are
/// compared as ranges of one, and namespaces by a hash.
///
/// Ledger rows are kept for a week after their last change, and longer where they lie ahead.
///
/// Fields are found by patterns, so that a damaged value is no error: in JSON, a quotation mark
/// within a text has a backslash before it. Patterns are slow, so what this crate writes is first
/// cut out of its place, and a pattern is for what people wrote.
///
/// A session plans the update of the ledger once, perhaps while the table is small, and keeps the
/// plan while dead rows pile up. So scans of all rows are off, by all ways to join.
pub(super) const CREATE_TABLES: &str = r#"
    CREATE TABLE IF NOT EXISTS ringflake (
        key text COLLATE "C" PRIMARY KEY,
        value text COLLATE "C" NOT NULL,
        rank bigint,
        namespace text COLLATE "C" GENERATED ALWAYS AS (
            CASE split_part(key, '/', 2) WHEN 'block' THEN split_part(key, '/', 1) END
        ) STORED
    );
    -- All else belongs to the schema of the table.
    SELECT set_config('search_path', quote_ident(nspname), true)
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE pg_class.oid = 'ringflake'::regclass;
    CREATE INDEX IF NOT EXISTS ringflake_rank ON ringflake (namespace, rank NULLS FIRST)
        WHERE namespace IS NOT NULL;
    CREATE TABLE IF NOT EXISTS ringflake_ledger (
        namespace text COLLATE "C" NOT NULL,
        block bigint NOT NULL,
        epoch bigint NOT NULL,
        ticks int8range NOT NULL CHECK (NOT isempty(ticks)),
        changed timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT ringflake_ledger_disjoint EXCLUDE USING gist (
            int8range(block, block, '[]') WITH &&,
            ticks WITH &&,
            int8range(hashtextextended(namespace, 0) >> 1, hashtextextended(namespace, 0) >> 1,
                '[]') WITH &&
        )
    );
    CREATE INDEX IF NOT EXISTS ringflake_ledger_grant
        ON ringflake_ledger (namespace, block, epoch);
    CREATE OR REPLACE FUNCTION ringflake_number(value text, field text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT AS $$
        SELECT substring(value FROM
            '"' || field || '"[[:space:]]*:[[:space:]]*"?0*([0-9]{1,18})(?![0-9])')::bigint
    $$;
    CREATE OR REPLACE FUNCTION ringflake_text(value text, field text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT AS $$
    BEGIN
        RETURN value::json ->> field;
    EXCEPTION WHEN others THEN
        RETURN NULL;
    END $$;
    CREATE OR REPLACE VIEW ringflake_block AS
        SELECT namespace,
            substring(key FROM '/block/0*([0-9]{1,18})$')::bigint AS block,
            ringflake_number(value, 'epoch') AS epoch,
            ringflake_number(value, 'hwm_end') AS hwm_end,
            ringflake_number(value, 'start') AS start,
            substring(value FROM '"released"[[:space:]]*:[[:space:]]*(true|false)')::boolean
                AS released,
            ringflake_number(value, 'granted_unix_ms') AS granted_unix_ms,
            ringflake_text(value, 'holder_host') AS holder_host,
            ringflake_text(value, 'holder_instance') AS holder_instance
        FROM ringflake WHERE namespace IS NOT NULL;
    CREATE OR REPLACE FUNCTION ringflake_digits(digits text) RETURNS bigint
    LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE
            WHEN length(digits) BETWEEN 1 AND 18 AND translate(digits, '0123456789', '') = ''
            THEN digits::bigint
        END
    $$;
    CREATE OR REPLACE FUNCTION ringflake_block_of(key text) RETURNS bigint
    LANGUAGE sql IMMUTABLE AS $$
        SELECT coalesce(ringflake_digits(split_part(key, '/block/00', 2)),
            substring(key FROM '/block/0*([0-9]{1,18})$')::bigint)
    $$;
    CREATE OR REPLACE FUNCTION ringflake_number(value text, field text, head text, tail text)
    RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
        SELECT coalesce(
            ringflake_digits(split_part(split_part(value, '"' || field || head, 2), tail, 1)),
            ringflake_number(value, field))
    $$;
    CREATE OR REPLACE FUNCTION ringflake_note_grants() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    DECLARE
        granted text[];
        kept bigint;
    BEGIN
        IF TG_OP = 'INSERT' THEN
            granted := ARRAY(SELECT key FROM after);
        ELSE
            UPDATE ringflake_ledger AS l
            SET ticks = int8range(n.start, n.hwm_end), changed = clock_timestamp()
            FROM (
                SELECT namespace, ringflake_block_of(key) AS block,
                    ringflake_number(value, 'epoch', '":', ',') AS epoch,
                    ringflake_number(value, 'start', '":', ',') AS start,
                    ringflake_number(value, 'hwm_end', '":"00', '"') AS hwm_end
                FROM after WHERE namespace IS NOT NULL
                OFFSET 0
            ) AS n
            WHERE l.namespace = n.namespace AND l.block = n.block AND l.epoch = n.epoch
                AND lower(l.ticks) = n.start AND upper(l.ticks) < n.hwm_end;
            -- Nobody grants a block whose epoch can't be read.
            granted := ARRAY(SELECT key FROM after
                WHERE namespace IS NULL
                    OR (key, ringflake_number(value, 'epoch', '":', ',')) NOT IN
                        (SELECT key, ringflake_number(value, 'epoch', '":', ',') FROM before));
        END IF;
        IF cardinality(granted) = 0 THEN
            RETURN NULL;
        END IF;
        -- Marks of repaired blocks have no start. Entries that are not blocks are dropped here, but
        -- the statements below still run: a test write needs the rights that a grant needs.
        granted := ARRAY(SELECT key FROM after
            WHERE key = ANY (granted) AND ringflake_block_of(key) IS NOT NULL
                AND ringflake_number(value, 'epoch') IS NOT NULL
                AND ringflake_number(value, 'start') < ringflake_number(value, 'hwm_end'));
        DELETE FROM ringflake_ledger AS l
        USING after AS n
        WHERE n.key = ANY (granted)
            AND l.namespace = n.namespace AND l.block = ringflake_block_of(n.key)
            AND l.changed < clock_timestamp() - interval '7 days'
            AND upper(l.ticks) <= ringflake_number(n.value, 'start');
        INSERT INTO ringflake_ledger (namespace, block, epoch, ticks)
        SELECT namespace, ringflake_block_of(key), ringflake_number(value, 'epoch'),
            int8range(ringflake_number(value, 'start'), ringflake_number(value, 'hwm_end'))
        FROM after WHERE key = ANY (granted);
        GET DIAGNOSTICS kept = ROW_COUNT;
        IF kept <> cardinality(granted) THEN
            RAISE 'ringflake_ledger does not keep rows'
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
    END $$;
    DROP TRIGGER IF EXISTS ringflake_ledger_insert ON ringflake;
    CREATE TRIGGER ringflake_ledger_insert AFTER INSERT ON ringflake
        REFERENCING NEW TABLE AS after
        FOR EACH STATEMENT EXECUTE FUNCTION ringflake_note_grants();
    DROP TRIGGER IF EXISTS ringflake_ledger_update ON ringflake;
    CREATE TRIGGER ringflake_ledger_update AFTER UPDATE ON ringflake
        REFERENCING OLD TABLE AS before NEW TABLE AS after
        FOR EACH STATEMENT EXECUTE FUNCTION ringflake_note_grants();
"#;

macro_rules! entries {
    () => {
        "SELECT false, key, value, rank FROM ringflake WHERE key = ANY($1)"
    };
}

/// Parameter 1: keys. The columns are those of an
/// [`EntryRow`](crate::lease::store::table::sql::EntryRow).
pub(super) const ENTRIES: &str = entries!();

/// Parameters 2 and 3: the least key, and the least that is beyond.
pub(super) const ENTRIES_AND_ALL: &str = concat!(
    entries!(),
    " UNION ALL SELECT false, key, value, rank FROM ringflake WHERE key >= $2 AND key < $3"
);

/// Parameters 2 and 3: the window of keys; 4 and 5: the namespace, and how many of the lowest
/// ranks.
pub(super) const ENTRIES_AND_LOWEST: &str = concat!(
    entries!(),
    " UNION ALL (SELECT true, key, value, rank
        FROM ringflake WHERE namespace = $4 ORDER BY rank NULLS FIRST LIMIT $5)
    UNION ALL SELECT false, key, value, rank FROM ringflake WHERE key >= $2 AND key < $3"
);

/// Replaces one entry if all conditions hold. Renewals are such commits, and this statement takes
/// the server much less time to plan than [`guarded`].
///
/// | parameter | |
/// |---|---|
/// | 1 to 4 | the key, with the value before and after, and the rank |
/// | 5 to 8 | those that are 6 to 9 in [`guarded`] |
/// | 9 and 10, 11 and 12, ... | each entry that is compared and not written: key and value |
///
/// The clock may be read before the row is locked, so a commit with a latest time is not one of
/// these.
pub(super) fn single(compared: usize) -> String {
    let mut sql = String::from(concat!(
        "UPDATE ringflake SET value = $3, rank = $4 WHERE key = $1 AND value = $2
            AND ",
        unix_ms!(),
        " BETWEEN $5 AND $6 AND ($7::text IS NULL OR $7 = (SELECT ",
        incarnation!(),
        ")) AND ($8 OR current_setting('fsync') = 'on'
            AND current_setting('full_page_writes') = 'on')"
    ));
    for index in 0..compared {
        let (key, value) = (9 + 2 * index, 10 + 2 * index);
        sql += &format!(" AND (SELECT value FROM ringflake WHERE key = ${key}) = ${value}");
    }
    sql
}

/// What a commit writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitKind {
    /// Whether rows are locked before they are compared, and the clock is read after that.
    pub(super) holds_rows: bool,
    /// Whether there are keys that must be absent, or are not compared.
    pub(super) inserts: bool,
}

/// Writes entries if all conditions hold.
///
/// | parameter | |
/// |---|---|
/// | 1 to 5 | each key, with the value before and after, the rank, and whether it is compared |
/// | 6, 7 | the earliest and the latest time |
/// | 8 | the incarnation |
/// | 9 | whether a server that is not durable is accepted |
/// | 10 | how many keys are written |
///
/// No value before means that the key must be absent, none after that it is not written.
///
/// Returns 1 if all was written; -1 if a condition does not hold, and 0 if no row was as
/// expected, where nothing was written. If only some were, the number becomes an error, which
/// takes back what was written: another transaction may have inserted the same key.
pub(super) fn guarded(kind: CommitKind) -> String {
    let mut sql = String::from(
        "WITH given AS MATERIALIZED (
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[])
                AS given (key, before, after, rank, compared)
        )",
    );
    let mut all_held = "";
    if kind.holds_rows {
        sql += ", held AS MATERIALIZED (
                SELECT r.key FROM ringflake AS r
                    JOIN given AS g ON r.key = g.key AND r.value = g.before AND g.after IS NOT NULL
                ORDER BY r.key FOR UPDATE OF r
            )";
        all_held = "(SELECT count(*) FROM held)
            = (SELECT count(*) FROM given WHERE before IS NOT NULL AND after IS NOT NULL) AND ";
    }
    sql += ", checked AS MATERIALIZED (SELECT ";
    sql += all_held;
    sql += concat!(
        "NOT EXISTS (SELECT FROM given AS g LEFT JOIN ringflake AS r ON r.key = g.key
            WHERE g.compared AND (g.before IS NULL OR g.after IS NULL)
                AND r.value IS DISTINCT FROM g.before)
        AND ",
        unix_ms!(),
        " BETWEEN $6 AND $7 AND ($8::text IS NULL OR $8 = ",
        incarnation!(),
        ") AND ($9 OR current_setting('fsync') = 'on'
            AND current_setting('full_page_writes') = 'on') AS all_hold
        ), updated AS (
            UPDATE ringflake AS r SET value = g.after, rank = g.rank
            FROM given AS g, checked
            WHERE checked.all_hold AND r.key = g.key AND r.value = g.before
                AND g.after IS NOT NULL
            RETURNING 1
        )"
    );
    let mut inserted = "";
    if kind.inserts {
        sql += ", inserted AS (
                INSERT INTO ringflake (key, value, rank)
                SELECT g.key, g.after, g.rank FROM given AS g, checked
                WHERE checked.all_hold AND g.compared AND g.before IS NULL
                    AND g.after IS NOT NULL
                ORDER BY g.key
                ON CONFLICT DO NOTHING
                RETURNING 1
            ), replaced AS (
                INSERT INTO ringflake (key, value, rank)
                SELECT g.key, g.after, g.rank FROM given AS g, checked
                WHERE checked.all_hold AND NOT g.compared
                ORDER BY g.key
                ON CONFLICT (key) DO UPDATE SET value = excluded.value, rank = excluded.rank
                RETURNING 1
            )";
        inserted = " + (SELECT count(*) FROM inserted) + (SELECT count(*) FROM replaced)";
    }
    sql += ", written AS MATERIALIZED (SELECT (SELECT count(*) FROM updated)";
    sql += inserted;
    sql += " AS kept)
        SELECT CASE
            WHEN NOT all_hold THEN -1
            WHEN kept = $10 THEN 1
            WHEN kept = 0 THEN 0
            ELSE ('the database kept ' || kept || ' of ' || $10 || ' rows')::int
        END FROM checked, written";
    sql
}
