//! The row about the file itself.

use rusqlite::{Connection, params};

use crate::lease::stores::row::{from_column, to_column};
use crate::lease::stores::sqlite::session::StepError;

/// What the file has on record about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease::stores::sqlite) struct FileRow {
    /// Random, under which its note lies.
    pub(in crate::lease::stores::sqlite) name: String,
    /// How many transactions have changed it.
    pub(in crate::lease::stores::sqlite) writes: u64,
    /// How often it began a new life.
    pub(in crate::lease::stores::sqlite) life: u64,
}

pub(in crate::lease::stores::sqlite) fn read_file(
    connection: &Connection,
) -> Result<FileRow, StepError> {
    let sql = "SELECT name, writes, life FROM ringflake_file";
    let (name, writes, life): (String, i64, i64) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(FileRow {
        name,
        writes: from_column("writes", writes)?,
        life: from_column("life", life)?,
    })
}

pub(in crate::lease::stores::sqlite) fn write_file(
    connection: &Connection,
    file: &FileRow,
) -> Result<(), StepError> {
    connection.execute(
        "UPDATE ringflake_file SET writes = ?1, life = ?2",
        params![to_column(file.writes), to_column(file.life)],
    )?;
    Ok(())
}

/// Gives the file another name, so that it shares no note with the one that it is a copy of.
pub(in crate::lease::stores::sqlite) fn rename_file(
    connection: &Connection,
) -> Result<(), StepError> {
    let sql = "UPDATE ringflake_file SET name = lower(hex(randomblob(16)))";
    connection.execute(sql, [])?;
    Ok(())
}
