//! The entries of the table, inside a transaction.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::session::StepError;
use crate::lease::block::Block;
use crate::lease::store::table::{Blocks, Key, Put, Query};

/// Entries by key.
pub(in crate::lease) type Entries = BTreeMap<Key, String>;

/// The value of an entry, if it is there.
pub(super) fn get(connection: &Connection, key: &Key) -> Result<Option<String>, StepError> {
    let mut statement = connection.prepare("SELECT value FROM ringflake WHERE key = ?1")?;
    let found = statement.query_row([key.as_str()], |row| text(row, 0));
    Ok(found.optional()?)
}

/// The entries of a query, and whether they include every block.
pub(super) fn select(connection: &Connection, query: &Query) -> Result<(Entries, bool), StepError> {
    let mut entries = Entries::new();
    for key in &query.keys {
        if let Some(value) = get(connection, key)? {
            entries.insert(key.clone(), value);
        }
    }
    let Some(blocks) = &query.blocks else {
        return Ok((entries, true));
    };
    let Blocks::Lowest {
        namespace,
        limit,
        window,
    } = blocks
    else {
        entries.extend(with_prefix(connection, &blocks.prefix())?);
        return Ok((entries, true));
    };
    // One more, which tells whether any is left out.
    let mut lowest = all(
        connection,
        "SELECT key, value FROM ringflake WHERE namespace = ?1 ORDER BY rank LIMIT ?2",
        params![namespace, i64::from(*limit) + 1],
    )?;
    let complete = lowest.len() <= *limit as usize;
    lowest.truncate(*limit as usize);
    entries.extend(lowest);
    let [start, end] =
        [window.start, window.end].map(|index| Key::block(namespace, Block::new(index)));
    entries.extend(between(connection, start.as_str(), end.as_str())?);
    Ok((entries, complete))
}

/// All entries whose keys begin with this prefix, which ends with a slash.
pub(super) fn with_prefix(
    connection: &Connection,
    prefix: &str,
) -> Result<Vec<(Key, String)>, StepError> {
    // The character after the slash.
    let end = format!("{}0", prefix.trim_end_matches('/'));
    between(connection, prefix, &end)
}

/// Every record of a namespace.
pub(super) fn records(connection: &Connection) -> Result<Vec<(Key, String)>, StepError> {
    all(
        connection,
        "SELECT key, value FROM ringflake WHERE key GLOB '*/record' ORDER BY key",
        [],
    )
}

fn between(
    connection: &Connection,
    start: &str,
    end: &str,
) -> Result<Vec<(Key, String)>, StepError> {
    all(
        connection,
        "SELECT key, value FROM ringflake WHERE key >= ?1 AND key < ?2",
        [start, end],
    )
}

pub(super) fn put(connection: &Connection, put: &Put) -> Result<(), StepError> {
    let mut statement = connection.prepare(
        "INSERT INTO ringflake (key, value, rank) VALUES (?1, ?2, ?3) \
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, rank = excluded.rank",
    )?;
    let rank = put.rank.map(|rank| i64::try_from(rank).unwrap_or(i64::MAX));
    statement.execute(params![put.key.as_str(), put.value, rank])?;
    Ok(())
}

fn all(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<(Key, String)>, StepError> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(parameters, |row| {
        Ok((Key::from(text(row, 0)?), text(row, 1)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A text that is not UTF-8 is shown as one that nobody writes.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => row.get(column),
    }
}
