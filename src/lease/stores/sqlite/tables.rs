//! The tables: what is kept, and how it is read and written.
//!
//! They are those of every store that keeps tables, with columns of this one's
//! own in `ringflake_namespace`: the number of writes (see `identity`), and how
//! the clock stood (see `clock_step`). Triggers hold the rules that no bug and
//! no hand must break: marks, epochs and floors don't fall, and no block is
//! forgotten.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::clock_step::{ClockOffset, Doubt};
use super::session::StepError;
use crate::lease::quarantine::{self, Judged};
use crate::lease::stores::row::{
    BlockRow, Columns, FORMAT, RecordRow, corrupt, from_column, to_column,
};
use crate::lease::{Block, BlockState, Fingerprint, Holder, Namespace, StoreRecord};

/// The version of the tables, as `user_version`. It is that of the records' format; a
/// file may hold records that are older.
const VERSION: i64 = FORMAT;

/// What a file is for. Blocks of one kind are not the other's to grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Kind {
    Store,
    /// A machine's grant logs, with tables of their own beside these; see `tier`.
    Tier,
}

impl Kind {
    /// What the URL of a store in such a file begins with.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Store => "sqlite",
            Self::Tier => "tier",
        }
    }

    /// Tells the files apart: "rflk" and "rflt".
    fn application(self) -> i64 {
        match self {
            Self::Store => 0x7266_6c6b,
            Self::Tier => 0x7266_6c74,
        }
    }

    fn of_application(application: i64) -> Option<Self> {
        [Self::Store, Self::Tier]
            .into_iter()
            .find(|kind| kind.application() == application)
    }
}

const CREATE: &str = "

    CREATE TABLE ringflake_namespace (
        name TEXT NOT NULL PRIMARY KEY,
        format INTEGER NOT NULL,
        layout TEXT NOT NULL,
        block_bits INTEGER NOT NULL,
        fingerprint TEXT NOT NULL,
        horizon_ms INTEGER NOT NULL,
        failover_ms INTEGER NOT NULL,
        skew_ms INTEGER NOT NULL,
        floor INTEGER NOT NULL,
        incarnation TEXT NOT NULL,
        writes INTEGER NOT NULL,
        clock_boot TEXT,
        clock_offset_ms INTEGER,
        clock_doubt_offset_ms INTEGER,
        clock_doubt_since_ms INTEGER
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ringflake_block (
        namespace TEXT NOT NULL REFERENCES ringflake_namespace (name),
        block INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        hwm_end INTEGER NOT NULL,
        released INTEGER NOT NULL,
        granted_unix_ms INTEGER,
        holder_host TEXT,
        holder_instance TEXT,
        PRIMARY KEY (namespace, block)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX ringflake_block_mark
        ON ringflake_block (namespace, hwm_end, block);
    CREATE INDEX ringflake_block_released
        ON ringflake_block (namespace, hwm_end, block) WHERE released = 1;

    CREATE TRIGGER ringflake_floor_never_falls BEFORE UPDATE ON ringflake_namespace
        WHEN new.floor < old.floor OR new.name <> old.name
    BEGIN
        SELECT RAISE(ABORT, 'a floor never falls');
    END;
    CREATE TRIGGER ringflake_block_is_never_forgotten BEFORE DELETE ON ringflake_block
    BEGIN
        SELECT RAISE(ABORT, 'a block is never forgotten');
    END;
";

const MARK_NEVER_FALLS: &str = "
    CREATE TRIGGER IF NOT EXISTS ringflake_mark_never_falls BEFORE UPDATE ON ringflake_block
        WHEN new.hwm_end < old.hwm_end OR new.epoch < old.epoch
            OR new.namespace <> old.namespace OR new.block <> old.block
    BEGIN
        SELECT RAISE(ABORT, 'a mark never falls');
    END;
";

/// Lets the next statements of the transaction repair a row. A mark that can't be true
/// is no mark.
const LET_MARKS_FALL: &str = "DROP TRIGGER IF EXISTS ringflake_mark_never_falls";

/// From version 1 to 2. Triggers, since a table gains no constraint once it is made.
const UPGRADE: &str = "
    CREATE TRIGGER IF NOT EXISTS ringflake_block_is_made_sound BEFORE INSERT ON ringflake_block
        WHEN NOT (new.block >= 0 AND new.epoch BETWEEN 1 AND new.hwm_end)
    BEGIN
        SELECT RAISE(ABORT, 'an epoch is from 1 to its mark');
    END;
    CREATE TRIGGER IF NOT EXISTS ringflake_block_stays_sound BEFORE UPDATE ON ringflake_block
        WHEN NOT (new.block >= 0 AND new.epoch BETWEEN 1 AND new.hwm_end)
    BEGIN
        SELECT RAISE(ABORT, 'an epoch is from 1 to its mark');
    END;
    CREATE UNIQUE INDEX ringflake_namespace_secret
        ON ringflake_namespace (fingerprint)
        WHERE fingerprint <> '00000000000000000000000000000000';
    PRAGMA user_version = 2;
";

/// A namespace's record, and what this store keeps beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) struct Space {
    pub(in crate::lease::stores) record: StoreRecord,
    /// How many transactions have changed the namespace.
    pub(in crate::lease::stores) writes: u64,
    pub(super) clock: Option<ClockOffset>,
}

impl Space {
    /// Before its first write.
    pub(in crate::lease::stores) fn new(record: StoreRecord) -> Self {
        Self {
            record,
            writes: 0,
            clock: None,
        }
    }
}

/// Whether the tables are there; false for a file without any content.
pub(in crate::lease::stores) fn exist(
    connection: &Connection,
    store: &str,
) -> Result<bool, StepError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id")?;
    match (Kind::of_application(application), pragma("user_version")?) {
        (Some(_), 1..=VERSION) => Ok(true),
        (Some(_), version) => Err(corrupt(format!(
            "{store} has version {version}, and this program knows those up to {VERSION}: use a \
             program as new as the one that wrote it, or a newer one"
        ))
        .into()),
        (None, version) => {
            let things: i64 =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if (application, version, things) == (0, 0, 0) {
                return Ok(false);
            }
            Err(corrupt(format!(
                "{store} is the database of another application (its ID is {application:#x}, and \
                 it has {things} tables and indexes): give the store a file of its own"
            ))
            .into())
        }
    }
}

/// Refuses a file that is for something else; one without any content is for both.
pub(super) fn refuse_other_kind(
    connection: &Connection,
    store: &str,
    kind: Kind,
) -> Result<(), StepError> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let advice = match (kind, Kind::of_application(application)) {
        (Kind::Store, Some(Kind::Tier)) => {
            "is the file of a tier: its URL is tier:PATH?upstream=URL"
        }
        (Kind::Tier, Some(Kind::Store)) => {
            "is a store: give the tier a file of its own, which need not exist"
        }
        _ => return Ok(()),
    };
    Err(corrupt(format!("{store} {advice}")).into())
}

/// Makes the tables in a file without any content, and what they lack in an older
/// one.
pub(in crate::lease::stores) fn make(
    connection: &Connection,
    store: &str,
    kind: Kind,
) -> Result<(), StepError> {
    if !exist(connection, store)? {
        connection.execute_batch(CREATE)?;
        connection.pragma_update(None, "application_id", kind.application())?;
        connection.execute_batch(MARK_NEVER_FALLS)?;
    }
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < VERSION {
        connection.execute_batch(UPGRADE)?;
    }
    Ok(())
}

/// Looks for damage that reading some rows would not meet.
pub(super) fn inspect(connection: &Connection, store: &str) -> Result<(), StepError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(corrupt(format!("{store} is damaged: {found}")).into())
}

const RECORD: &str = "SELECT format, name, layout, block_bits, fingerprint, horizon_ms, \
                             failover_ms, skew_ms, floor, incarnation, writes, clock_boot, \
                             clock_offset_ms, clock_doubt_offset_ms, clock_doubt_since_ms \
                      FROM ringflake_namespace";

impl Columns for Row<'_> {
    type Error = rusqlite::Error;

    fn integer(&self, place: usize) -> rusqlite::Result<i64> {
        self.get(place)
    }

    fn text(&self, place: usize) -> rusqlite::Result<String> {
        self.get(place)
    }

    fn flag(&self, place: usize) -> rusqlite::Result<bool> {
        self.integer(place).map(|number| number != 0)
    }

    fn integer_if_any(&self, place: usize) -> rusqlite::Result<Option<i64>> {
        self.get(place)
    }

    /// For people: what can't be read of it is left out.
    fn text_if_any(&self, place: usize) -> rusqlite::Result<Option<String>> {
        let bytes = self.get_ref(place)?.as_bytes_or_null().unwrap_or(None);
        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}

/// The record of the namespace with this name, if it was initialised.
pub(super) fn read_space(
    connection: &Connection,
    store: &str,
    namespace: &Namespace,
) -> Result<Option<Space>, StepError> {
    if !exist(connection, store)? {
        return Ok(None);
    }
    let found = connection
        .query_row(
            &format!("{RECORD} WHERE name = ?1"),
            [namespace.name()],
            |row| Ok((RecordRow::read(row)?, row.get(10)?, read_clock(row)?)),
        )
        .optional()?;
    let Some((record, writes, clock)) = found else {
        return Ok(None);
    };
    Ok(Some(Space {
        record: record.into_record()?,
        writes: from_column("writes", writes)?,
        clock,
    }))
}

/// The columns of the namespace's record, in whichever format they are.
pub(in crate::lease::stores) fn read_row(
    connection: &Connection,
    store: &str,
    namespace: &Namespace,
) -> Result<Option<RecordRow>, StepError> {
    if !exist(connection, store)? {
        return Ok(None);
    }
    let sql = format!("{RECORD} WHERE name = ?1");
    let found = connection.query_row(&sql, [namespace.name()], |row| RecordRow::read(row));
    Ok(found.optional()?)
}

/// The namespace that has this secret.
pub(super) fn read_name(
    connection: &Connection,
    fingerprint: Fingerprint,
) -> Result<Option<String>, StepError> {
    let sql = "SELECT name FROM ringflake_namespace WHERE fingerprint = ?1";
    let found = connection.query_row(sql, [fingerprint.to_string()], |row| row.get(0));
    Ok(found.optional()?)
}

/// Writes the format and the fingerprint of a record that is there.
pub(super) fn write_format(connection: &Connection, row: &RecordRow) -> Result<(), StepError> {
    connection.execute(
        "UPDATE ringflake_namespace SET format = ?2, fingerprint = ?3 WHERE name = ?1",
        params![row.name, row.format, row.fingerprint],
    )?;
    Ok(())
}

/// The namespaces that were initialised, by name.
pub(super) fn read_namespaces(
    connection: &Connection,
    store: &str,
) -> Result<Vec<Namespace>, StepError> {
    if !exist(connection, store)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(&format!("{RECORD} ORDER BY name"))?;
    let rows = statement.query_map([], |row| RecordRow::read(row))?;
    rows.map(|row| Ok(row?.into_namespace()?)).collect()
}

fn read_clock(row: &Row<'_>) -> rusqlite::Result<Option<ClockOffset>> {
    let (boot, offset): (Option<String>, Option<i64>) = (row.get(11)?, row.get(12)?);
    let (doubted, since): (Option<i64>, Option<i64>) = (row.get(13)?, row.get(14)?);
    let doubt = doubted.zip(since).map(|(offset_ms, since)| Doubt {
        offset_ms,
        since_ms: u64::try_from(since).unwrap_or(0),
    });
    Ok(boot.zip(offset).map(|(boot, offset_ms)| ClockOffset {
        boot,
        offset_ms,
        doubt,
    }))
}

/// Writes a namespace that is not there yet.
pub(super) fn insert_space(connection: &Connection, space: &Space) -> Result<(), StepError> {
    let row = RecordRow::new(&space.record);
    connection.execute(
        "INSERT INTO ringflake_namespace \
             (format, name, layout, block_bits, fingerprint, horizon_ms, failover_ms, skew_ms, \
              floor, incarnation, writes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)",
        params![
            row.format,
            row.name,
            row.layout,
            row.block_bits,
            row.fingerprint,
            row.horizon_ms,
            row.failover_ms,
            row.skew_ms,
            row.floor,
            row.incarnation,
        ],
    )?;
    update_space(connection, space)
}

/// Writes what of a namespace changes in its life.
pub(super) fn update_space(connection: &Connection, space: &Space) -> Result<(), StepError> {
    let clock = space.clock.as_ref();
    let doubt = clock.and_then(|clock| clock.doubt.as_ref());
    connection.execute(
        "UPDATE ringflake_namespace \
         SET floor = ?2, incarnation = ?3, writes = ?4, clock_boot = ?5, clock_offset_ms = ?6, \
             clock_doubt_offset_ms = ?7, clock_doubt_since_ms = ?8 \
         WHERE name = ?1",
        params![
            space.record.namespace.name(),
            to_column(space.record.floor),
            space.record.incarnation.as_str(),
            to_column(space.writes),
            clock.map(|clock| &clock.boot),
            clock.map(|clock| clock.offset_ms),
            doubt.map(|doubt| doubt.offset_ms),
            doubt.map(|doubt| to_column(doubt.since_ms)),
        ],
    )?;
    Ok(())
}

const BLOCK: &str = "SELECT block, epoch, hwm_end, released, granted_unix_ms, holder_host, \
                            holder_instance \
                     FROM ringflake_block WHERE namespace = ?1";

/// To follow it: in a range of blocks, to be found by their marks. The signs keep
/// SQLite from looking for them by their numbers, and sorting them by their marks.
const WITHIN: &str = "AND +block >= ?2 AND +block < ?3";

/// To follow them: rows that are not quarantined, where no mark is above the layout's
/// ticks; the rule is `quarantine::fault`.
const AGREES: &str = "epoch BETWEEN 1 AND hwm_end";

/// The block of this index, if it was ever granted.
pub(super) fn read_block(
    connection: &Connection,
    space: &Namespace,
    block: Block,
) -> Result<Option<Judged>, StepError> {
    let sql = format!("{BLOCK} AND block = ?2");
    // An index that no column holds is of no block that was granted.
    let Ok(index) = i64::try_from(block.index()) else {
        return Ok(None);
    };
    Ok(blocks(connection, &sql, params![space.name(), index], space)?.pop())
}

/// The mark of this block's row, if it is a number that can be one.
pub(super) fn read_mark(
    connection: &Connection,
    space: &Namespace,
    block: Block,
) -> Result<Option<u64>, StepError> {
    let sql = "SELECT hwm_end FROM ringflake_block WHERE namespace = ?1 AND block = ?2";
    let parameters = params![space.name(), to_column(block.index())];
    let mark: i64 = connection.query_row(sql, parameters, |row| row.get(0))?;
    Ok(u64::try_from(mark).ok())
}

/// Writes what a repair makes of a row.
pub(super) fn write_repair(
    connection: &Connection,
    space: &Namespace,
    repaired: &BlockState,
) -> Result<(), StepError> {
    connection.execute_batch(LET_MARKS_FALL)?;
    write_blocks(connection, space, std::slice::from_ref(repaired))?;
    Ok(connection.execute_batch(MARK_NEVER_FALLS)?)
}

/// Every block that was ever granted, by index, and those that are quarantined.
pub(in crate::lease::stores) fn read_blocks(
    connection: &Connection,
    space: &Namespace,
) -> Result<Vec<Judged>, StepError> {
    let sql = format!("{BLOCK} ORDER BY block");
    blocks(connection, &sql, [space.name()], space)
}

/// Up to `wanted` blocks of the range that can be granted, in the order in which
/// they should: fresh ones, those whose mark lies at or before `idle_until`, the
/// lowest first, and those that were released before their mark.
pub(super) fn candidates(
    connection: &Connection,
    space: &Namespace,
    within: &Range<u64>,
    idle_until: u64,
    wanted: u32,
) -> Result<Vec<BlockState>, StepError> {
    let wanted = wanted as usize;
    let last: Option<i64> = connection.query_row(
        "SELECT max(block) FROM ringflake_block \
         WHERE namespace = ?1 AND block >= ?2 AND block < ?3",
        params![space.name(), to_column(within.start), to_column(within.end)],
        |row| row.get(0),
    )?;
    let fresh = match last {
        None => within.start,
        Some(last) => from_column("block", last)?.saturating_add(1),
    };
    let mut found: Vec<_> = (fresh..within.end)
        .map(never_granted)
        .take(wanted)
        .collect();
    let search = |condition: &str, missing: usize| {
        let sql = format!("{BLOCK} {WITHIN} AND {condition} ORDER BY hwm_end, block LIMIT ?4");
        let parameters = params![
            space.name(),
            to_column(within.start),
            to_column(within.end),
            missing as i64,
            to_column(idle_until),
        ];
        let judged = blocks(connection, &sql, parameters, space)?;
        Ok::<_, StepError>(quarantine::sort(space, judged))
    };
    let idle = |condition: &str, missing: usize| {
        let (found, quarantined) = search(condition, missing)?;
        if quarantined.is_empty() {
            return Ok(found);
        }
        // They come first, and may leave no room: once more, without them.
        let ticks = space.layout().ticks();
        let sound = format!("{condition} AND {AGREES} AND hwm_end <= {ticks}");
        Ok::<_, StepError>(search(&sound, missing)?.0)
    };
    if found.len() < wanted {
        found.extend(idle("hwm_end <= ?5", wanted - found.len())?);
    }
    if found.len() < wanted {
        // Looked for this late because it takes a look at every block held.
        let missing = wanted - found.len();
        found.extend(gaps(connection, space, within.start..fresh, missing)?);
    }
    if found.len() < wanted {
        let released = "released = 1 AND hwm_end > ?5";
        found.extend(idle(released, wanted - found.len())?);
    }
    Ok(found)
}

/// Up to `wanted` blocks of the range that were never granted, the lowest first.
/// None is ever forgotten, so those are all that have no row: acquisitions within
/// ranges leave them behind.
fn gaps(
    connection: &Connection,
    space: &Namespace,
    within: Range<u64>,
    wanted: usize,
) -> Result<Vec<BlockState>, StepError> {
    let mut statement = connection.prepare(
        "SELECT block FROM ringflake_block \
         WHERE namespace = ?1 AND block >= ?2 AND block < ?3 ORDER BY block",
    )?;
    let mut granted = statement.query(params![
        space.name(),
        to_column(within.start),
        to_column(within.end)
    ])?;
    let (mut found, mut next) = (Vec::new(), within.start);
    while found.len() < wanted
        && let Some(row) = granted.next()?
    {
        let block = from_column("block", row.get(0)?)?;
        let missing = wanted - found.len();
        found.extend((next..block).map(never_granted).take(missing));
        next = block.saturating_add(1);
    }
    Ok(found)
}

fn never_granted(index: u64) -> BlockState {
    BlockState::never_granted(Block::new(index))
}

/// The least mark of the blocks in the range that are held, and of those
/// released.
pub(super) fn least_marks(
    connection: &Connection,
    space: &Namespace,
    within: &Range<u64>,
) -> Result<Vec<BlockState>, StepError> {
    let mut found = Vec::new();
    for condition in ["released = 0", "released = 1"] {
        let sql = format!(
            "{BLOCK} {WITHIN} AND {condition} AND {AGREES} ORDER BY hwm_end, block LIMIT 1"
        );
        let parameters = params![space.name(), to_column(within.start), to_column(within.end)];
        let judged = blocks(connection, &sql, parameters, space)?;
        found.extend(quarantine::sort(space, judged).0);
    }
    Ok(found)
}

/// Writes these blocks of the namespace, whether they were there or not.
pub(in crate::lease::stores) fn write_blocks(
    connection: &Connection,
    space: &Namespace,
    blocks: &[BlockState],
) -> Result<(), StepError> {
    let mut statement = connection.prepare(
        "INSERT INTO ringflake_block \
             (namespace, block, epoch, hwm_end, released, granted_unix_ms, holder_host, \
              holder_instance) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         ON CONFLICT (namespace, block) DO UPDATE SET \
             epoch = excluded.epoch, hwm_end = excluded.hwm_end, released = excluded.released, \
             granted_unix_ms = excluded.granted_unix_ms, holder_host = excluded.holder_host, \
             holder_instance = excluded.holder_instance",
    )?;
    for block in blocks {
        statement.execute(params![
            space.name(),
            to_column(block.block.index()),
            to_column(block.epoch.get()),
            to_column(block.hwm_end),
            block.released,
            block.granted_unix_ms.map(to_column),
            block.holder.as_ref().map(Holder::host),
            block.holder.as_ref().map(Holder::instance),
        ])?;
    }
    Ok(())
}

fn blocks(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    space: &Namespace,
) -> Result<Vec<Judged>, StepError> {
    connection
        .prepare(sql)?
        .query_and_then(parameters, |row| Ok(BlockRow::read(row)?.judge(space)))?
        .collect()
}
