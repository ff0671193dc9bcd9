//! The records of namespaces, with this store's own columns.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::exist;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::namespace::Namespace;
use crate::lease::record::StoreRecord;
use crate::lease::stores::row::{Columns, RecordRow, to_column};
use crate::lease::stores::sqlite::clock_step::{ClockOffset, Doubt};
use crate::lease::stores::sqlite::session::StepError;

/// A namespace's record, with this store's own columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) struct Space {
    pub(in crate::lease::stores) record: StoreRecord,
    pub(in crate::lease::stores::sqlite) clock: Option<ClockOffset>,
}

impl Space {
    /// Before its first write.
    pub(in crate::lease::stores) fn new(record: StoreRecord) -> Self {
        Self {
            record,
            clock: None,
        }
    }
}

const RECORD: &str = "SELECT format, name, layout, block_bits, fingerprint, horizon_ms, \
                             failover_ms, skew_ms, floor, incarnation, clock_boot, \
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

    /// For people, as a text.
    fn integer_if_any(&self, place: usize) -> rusqlite::Result<Option<i64>> {
        Ok(self.get_ref(place)?.as_i64_or_null().unwrap_or(None))
    }

    /// For people: what can't be read of it is left out.
    fn text_if_any(&self, place: usize) -> rusqlite::Result<Option<String>> {
        let bytes = self.get_ref(place)?.as_bytes_or_null().unwrap_or(None);
        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}

/// The record of the namespace with this name, if it was initialised.
pub(in crate::lease::stores::sqlite) fn read_space(
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
            |row| Ok((RecordRow::read(row)?, read_clock(row)?)),
        )
        .optional()?;
    let Some((record, clock)) = found else {
        return Ok(None);
    };
    Ok(Some(Space {
        record: record.into_record()?,
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
pub(in crate::lease::stores::sqlite) fn read_name(
    connection: &Connection,
    fingerprint: Fingerprint,
) -> Result<Option<String>, StepError> {
    let sql = "SELECT name FROM ringflake_namespace WHERE fingerprint = ?1";
    let found = connection.query_row(sql, [fingerprint.to_string()], |row| row.get(0));
    Ok(found.optional()?)
}

/// The namespaces that were initialised, by name.
pub(in crate::lease::stores::sqlite) fn read_namespaces(
    connection: &Connection,
    store: &str,
) -> Result<Vec<Namespace>, StepError> {
    if !exist(connection, store)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(&format!("{RECORD} ORDER BY name"))?;
    let rows = statement.query_map([], |row| RecordRow::read(row))?;
    rows.map(|row| Ok(row?.into_record()?.namespace)).collect()
}

fn read_clock(row: &Row<'_>) -> rusqlite::Result<Option<ClockOffset>> {
    let (boot, offset): (Option<String>, Option<i64>) = (row.get(10)?, row.get(11)?);
    let (doubted, since): (Option<i64>, Option<i64>) = (row.get(12)?, row.get(13)?);
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
pub(in crate::lease::stores::sqlite) fn insert_space(
    connection: &Connection,
    space: &Space,
) -> Result<(), StepError> {
    let row = RecordRow::new(&space.record);
    connection.execute(
        "INSERT INTO ringflake_namespace \
             (format, name, layout, block_bits, fingerprint, horizon_ms, failover_ms, skew_ms, \
              floor, incarnation) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
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
pub(in crate::lease::stores::sqlite) fn update_space(
    connection: &Connection,
    space: &Space,
) -> Result<(), StepError> {
    let clock = space.clock.as_ref();
    let doubt = clock.and_then(|clock| clock.doubt.as_ref());
    connection.execute(
        "UPDATE ringflake_namespace \
         SET floor = ?2, incarnation = ?3, clock_boot = ?4, clock_offset_ms = ?5, \
             clock_doubt_offset_ms = ?6, clock_doubt_since_ms = ?7 \
         WHERE name = ?1",
        params![
            space.record.namespace.name(),
            to_column(space.record.floor),
            space.record.incarnation.as_str(),
            clock.map(|clock| &clock.boot),
            clock.map(|clock| clock.offset_ms),
            doubt.map(|doubt| doubt.offset_ms),
            doubt.map(|doubt| to_column(doubt.since_ms)),
        ],
    )?;
    Ok(())
}
