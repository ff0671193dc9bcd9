//! An acquisition: read, choose, and write if nobody was faster.

use std::ops::Range;

use serde_json::Value;

use super::choice::{self, Candidate, READ_WHOLE, Random};
use super::cluster::{Cluster, Written};
use super::{record, wire};
use crate::lease::confirmed::Confirmed;
use crate::lease::connect::deadline::Deadline;
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::record::StoreRecord;
use crate::lease::request::{Acquire, Floor, MAX_ACQUIRE};

/// How much of a namespace an acquisition reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// A part of the fresh blocks, and those with the lowest marks.
    Part,
    /// Every block that was granted.
    Whole,
}

/// As [`acquire`](crate::lease::store::LeaseStore::acquire).
pub(super) fn run(
    cluster: &mut Cluster,
    random: &mut Random,
    namespace: &Namespace,
    acquire: &Acquire,
    deadline: &Deadline,
) -> Result<Vec<Grant>, StoreError> {
    let record_key = record::record_key(namespace);
    let blocks = u64::from(acquire.blocks);
    let wanted = acquire.blocks as usize;
    let mut reading = Reading::Part;
    let (ops, mut window) = view_ops(namespace, reading, blocks, random);
    let mut reply = cluster.read(ops, deadline)?;
    loop {
        let mut opened = cluster.open(namespace, &reply.body)?;
        let date_ms = reply.dated()?;
        let now = opened.record.tick_at(date_ms)?;
        opened.check_skew(date_ms, deadline, acquire.now_unix_ms)?;

        let compare = vec![wire::unchanged(&record_key, opened.mod_revision)];
        let mut raised = opened.record.observe(&opened.incarnation, now);
        let evidence = &acquire.evidence;
        let lost = history_lost(cluster, namespace, &opened.record, now, evidence, deadline)?;
        if lost.is_some() {
            opened.record.raise_floor(Floor::OverLostGrants, now)?;
            raised = true;
        }
        if raised {
            // A write of its own: the floor stays, whatever becomes of the rest.
            let term = opened.header.raft_term;
            let value = record::encode_record(&opened.record, term)?;
            let puts = vec![wire::put(&record_key, &value)];
            let header = &opened.header;
            let written = cluster.write("acquire", header, compare, puts, Vec::new(), deadline)?;
            if let (Some(lost), Written::Done) = (lost, written) {
                return Err(lost);
            }
            let (ops, next) = view_ops(namespace, reading, blocks, random);
            (reply, window) = (cluster.read(ops, deadline)?, next);
            continue;
        }

        let view = choice::view(namespace, &reply.body, window)?;
        let count = reply.body.range(1)?.count;
        let chosen = view.candidates(&opened.record, now, acquire, random);
        let partial = reading == Reading::Part && !view.complete && count <= READ_WHOLE;
        if chosen.len() < wanted && partial {
            reading = Reading::Whole;
            let (ops, next) = view_ops(namespace, reading, blocks, random);
            (reply, window) = (cluster.read(ops, deadline)?, next);
            continue;
        }
        if chosen.is_empty() {
            let record = &opened.record;
            return Err(record.refusal(date_ms, now, acquire, view.lowest_marks()));
        }

        let (mut compare, mut puts, mut grants) = (compare, Vec::new(), Vec::new());
        for Candidate {
            state,
            mod_revision,
        } in &chosen
        {
            let record = &opened.record;
            let Some((grant, after)) = record.granted(now, date_ms, state, acquire) else {
                continue;
            };
            let key = record::block_key(namespace, state.block);
            compare.push(wire::unchanged(&key, *mod_revision));
            puts.push(wire::put(&key, &record::encode_block(&after)?));
            grants.push(grant);
        }
        puts.extend(opened.new_term(&record_key)?);
        let (instead, next) = view_ops(namespace, reading, blocks, random);
        let header = &opened.header;
        match cluster.write("acquire", header, compare, puts, instead, deadline)? {
            Written::Done => return Ok(grants),
            Written::Overtaken(again) => (reply, window) = (again, next),
        }
    }
}

/// The reads of an acquisition, and the window of blocks among them.
fn view_ops(
    namespace: &Namespace,
    reading: Reading,
    wanted: u64,
    random: &mut Random,
) -> (Vec<Value>, Range<u64>) {
    let all = record::all_blocks(namespace);
    let mut ops = vec![
        wire::read(wire::get(&record::record_key(namespace))),
        wire::read(wire::count(&all)),
    ];
    let (limit, length) = match reading {
        // Twice what is wanted, so that two who choose need not collide.
        Reading::Part => (2 * wanted + 16, 2 * wanted + 32),
        Reading::Whole => (0, READ_WHOLE),
    };
    let window = choice::window(namespace, length, random);
    ops.push(wire::read(wire::least(&all, limit)));
    let span = record::some_blocks(namespace, window.start, window.end);
    ops.push(wire::read(wire::keys(&span)));
    (ops, window)
}

/// The error for a cluster that knows less than it has confirmed.
///
/// The blocks of the evidence are read after the blocks to choose from. A restore has
/// put back both by then, or changes a key that the write compares.
fn history_lost(
    cluster: &mut Cluster,
    namespace: &Namespace,
    record: &StoreRecord,
    now: u64,
    evidence: &[Confirmed],
    deadline: &Deadline,
) -> Result<Option<StoreError>, StoreError> {
    for some in evidence.chunks(MAX_ACQUIRE as usize) {
        let key = |it: &Confirmed| record::block_key(namespace, it.block);
        let ops = some.iter().map(|it| wire::read(wire::get(&key(it))));
        let reply = cluster.read(ops.collect(), deadline)?;
        for (place, confirmed) in some.iter().enumerate() {
            let known = reply.body.key_value(place)?;
            let judged = known.map(|kv| record::judge(namespace, kv));
            if let Err(lost) = record.check_evidence(now, judged.as_ref(), confirmed) {
                return Ok(Some(lost));
            }
        }
    }
    Ok(None)
}
