//! The blocks that were granted, and those that can be.

use std::ops::Range;

use rusqlite::{Connection, Row, params};

use super::{LET_MARKS_FALL, MARK_NEVER_FALLS};
use crate::lease::block::{Block, BlockState};
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::{self, Judged, Quarantined};
use crate::lease::record::MarkWindow;
use crate::lease::stores::row::{BlockRow, from_column, to_column};
use crate::lease::stores::sqlite::session::StepError;

const BLOCK: &str = "SELECT block, epoch, hwm_end, released, granted_unix_ms, holder_host, \
                            holder_instance \
                     FROM ringflake_block WHERE namespace = ?1";

/// To follow it: in a range of blocks, to be found by their marks. The signs keep
/// SQLite from looking for them by their numbers, and sorting them by their marks.
const WITHIN: &str = "AND +block >= ?2 AND +block < ?3";

/// To follow them: rows that are not quarantined, where no mark is above the layout's
/// ticks; the rule is `quarantine::fault`.
const AGREES: &str = "epoch BETWEEN 1 AND hwm_end AND typeof(released) = 'integer'";

/// The block of this index, if it was ever granted.
pub(in crate::lease::stores::sqlite) fn read_block(
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
pub(in crate::lease::stores::sqlite) fn read_mark(
    connection: &Connection,
    space: &Namespace,
    block: Block,
) -> Result<Option<u64>, StepError> {
    let sql = "SELECT hwm_end FROM ringflake_block WHERE namespace = ?1 AND block = ?2";
    let parameters = params![space.name(), to_column(block.index())];
    let mark = connection.query_row(sql, parameters, |row| Ok(row.get_ref(0)?.as_i64().ok()))?;
    Ok(mark.and_then(|mark| u64::try_from(mark).ok()))
}

/// Writes a repaired row.
pub(in crate::lease::stores::sqlite) fn write_repair(
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
/// they should: fresh ones, those whose mark has passed, the lowest first, and those that
/// were released before their mark.
pub(in crate::lease::stores::sqlite) fn candidates(
    connection: &Connection,
    space: &Namespace,
    within: &Range<u64>,
    window: MarkWindow,
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
            to_column(window.idle_until),
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
        let below = to_column(window.released_below);
        let released = format!("released = 1 AND hwm_end > ?5 AND hwm_end < {below}");
        found.extend(idle(&released, wanted - found.len())?);
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
pub(in crate::lease::stores::sqlite) fn least_marks(
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
        .query_and_then(parameters, |row| judge(row, space))?
        .collect()
}

/// A column of another type costs its block alone, as a number that can't be does.
fn judge(row: &Row<'_>, space: &Namespace) -> Result<Judged, StepError> {
    let block = row.get(0)?;
    Ok(match BlockRow::read(row) {
        Ok(row) => row.judge(space),
        // What a row without it would be said to be, if that is wrong as well.
        Err(error) => quarantine::of_columns(space, block, 0, 0).and_then(|state| {
            let reason = format!("its row can't be read: {error}");
            Err(Quarantined::new(state.block, reason))
        }),
    })
}
