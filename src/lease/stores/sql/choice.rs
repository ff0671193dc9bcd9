//! The choice of an acquisition: the grants, or the reason why there are none.

use std::collections::BTreeMap;

use super::reading::Opened;
use super::{Failure, Locked, Search, Session};
use crate::lease::block::BlockState;
use crate::lease::confirmed::Confirmed;
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::quarantine;
use crate::lease::request::Acquire;
use crate::lease::stores::row::to_column;

/// Locks blocks and answers the grants of them; none if no block can be granted.
pub(super) fn choose<S: Session>(
    session: &mut S,
    at: &mut Opened,
    acquire: &Acquire,
) -> Result<Vec<Grant>, Failure> {
    let Opened { record, now, .. } = at;
    let Some(window) = record.mark_window(*now, acquire) else {
        return Ok(Vec::new());
    };
    let mut search = Search {
        namespace: &record.namespace,
        sound: false,
        window,
        limit: acquire.blocks,
    };
    let mut blocks = candidates(session, &mut search, Locked::Skip)?;
    if blocks.is_empty() {
        search.limit = 1;
        blocks = candidates(session, &mut search, Locked::Wait)?;
        at.unix_ms = session.clock()?;
        *now = record.tick_at(at.unix_ms)?;
    }
    let grant = |block| record.granted(*now, at.unix_ms, block, acquire);
    Ok(blocks.iter().filter_map(grant).map(|(it, _)| it).collect())
}

/// Locks blocks that are sound. Once others are among them it searches for the sound
/// alone: they may come first, and leave no room.
fn candidates<S: Session>(
    session: &mut S,
    search: &mut Search<'_>,
    locked: Locked,
) -> Result<Vec<BlockState>, Failure> {
    loop {
        let namespace = search.namespace;
        let rows = session.candidates(search, locked)?;
        let judged = rows.into_iter().map(|row| row.judge(namespace));
        let (sound, quarantined) = quarantine::sort(namespace, judged);
        if quarantined.is_empty() || search.sound {
            return Ok(sound);
        }
        search.sound = true;
    }
}

/// The error for a database that knows less than it has confirmed.
///
/// The rows of the evidence are read after the chosen blocks: a transaction that puts
/// rows back has put back these, too, by then.
pub(super) fn history_lost<S: Session>(
    session: &mut S,
    at: &Opened,
    evidence: &[Confirmed],
) -> Result<Option<StoreError>, Failure> {
    if evidence.is_empty() {
        return Ok(None);
    }
    let blocks: Vec<_> = evidence
        .iter()
        .map(|it| to_column(it.block.index()))
        .collect();
    let known = session.known(at.record.namespace.name(), &blocks)?;
    let known: BTreeMap<_, _> = known
        .into_iter()
        .map(|row| (row.block, row.judge(&at.record.namespace)))
        .collect();
    let check = |confirmed: &Confirmed| {
        let known = known.get(&to_column(confirmed.block.index()));
        at.record.check_evidence(at.now, known, confirmed)
    };
    Ok(evidence.iter().find_map(|confirmed| check(confirmed).err()))
}

/// Why nothing could be granted.
pub(super) fn refuse<S: Session>(
    session: &mut S,
    at: &Opened,
    acquire: &Acquire,
) -> Result<StoreError, Failure> {
    let marks = session.marks(at.record.namespace.name())?;
    let lowest = marks.lowest()?;
    Ok(at.record.refusal(at.unix_ms, at.now, acquire, lowest))
}
