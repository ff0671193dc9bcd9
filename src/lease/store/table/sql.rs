//! Shared by the tables on SQL servers, beside their sessions.

use super::failure::Failure;
use super::{Blocks, Key, Put, Query, Snapshot, StoreTime, Txn};
use crate::lease::store::record::Incarnation;

/// Marks and times are below 2^63.
pub(super) fn to_bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What the server's clock shows, in milliseconds since 1970.
pub(super) fn store_time(unix_ms: i64) -> Result<StoreTime, Failure> {
    let unix_ms = u64::try_from(unix_ms);
    let before_1970 = |_| Failure::not_done("the server's clock is before 1970");
    Ok(StoreTime::exactly(unix_ms.map_err(before_1970)?))
}

/// A row of a read.
pub(super) struct EntryRow {
    /// Whether it is one of the lowest ranks. Of those, one more is read than the query asks
    /// for, which shows whether there are more.
    pub(super) is_lowest: bool,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) rank: Option<i64>,
}

/// What a query shows, of which these are the rows.
pub(super) fn snapshot_of(
    query: &Query,
    rows: impl Iterator<Item = Result<EntryRow, Failure>>,
    (time, incarnation): (StoreTime, Incarnation),
) -> Result<Snapshot, Failure> {
    let limit = match &query.blocks {
        Some(Blocks::Lowest { limit, .. }) => *limit as usize,
        _ => 0,
    };
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let (mut lowest, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_lowest);
    let complete = lowest.len() <= limit;
    lowest.sort_by_key(|row| row.rank);
    lowest.truncate(limit);
    let entries = others.into_iter().chain(lowest);
    Ok(Snapshot {
        entries: entries.map(|row| (Key::from(row.key), row.value)).collect(),
        complete,
        time: Ok(time),
        incarnation,
    })
}

/// A table has the name of the view; another `place` may have none.
pub(super) fn has_view_as_table(place: &str) -> Failure {
    let detail = "ringflake_block is a table, and its name is needed for a view: rename it";
    Failure::corrupt(format!("{detail}, or use another {place}"), None)
}

/// A commit that replaces one entry, and has no latest time: the time may be read before the
/// entry is locked.
pub(super) struct Single<'a> {
    pub(super) put: &'a Put,
    /// Its value so far.
    pub(super) before: &'a str,
    /// The entries that are compared and not written.
    pub(super) compared: Vec<(&'a str, &'a str)>,
}

impl<'a> Single<'a> {
    pub(super) fn of(txn: &'a Txn) -> Option<Self> {
        let [put] = &*txn.puts else {
            return None;
        };
        if txn.not_after_unix_ms < u64::MAX {
            return None;
        }
        let mut before = None;
        let mut compared = Vec::new();
        for (key, expected) in &txn.compare {
            let expected = expected.as_deref()?;
            match *key == put.key {
                true => before = Some(expected),
                false => compared.push((Key::as_str(key), expected)),
            }
        }
        Some(Self {
            put,
            before: before?,
            compared,
        })
    }
}
