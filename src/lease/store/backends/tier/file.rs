//! A tier's grant logs in a file.
//!
//! The file is that of a [`SqliteTable`]. A namespace's record and the blocks of its sub-grants
//! are entries as in every table; beside them are the upstream grants, and the state of the
//! requests ([`values`](super::values)). All of a namespace is read at each step: a machine has
//! few blocks. The step is decided under the file's lock, so it never conflicts.
//!
//! A copied file is not refused: its upstream grants are given up. Sub-grants of the original
//! belong to others, and no mark of this file matters to anybody then. A file that may be an older
//! state of itself keeps its upstream grants, which are the machine's whatever it has forgotten. It
//! raises the floor over the sub-grants of them.

use std::path::Path;

use super::alive;
use super::grant_log::{Caller, GrantLog};
use super::operation::Operation;
use super::values::{
    decode_tier, decode_upstream, encode_tier, encode_upstream, tier_key, upstream_block,
    upstream_key,
};
use crate::lease::error::StoreError;
use crate::lease::events;
use crate::lease::namespace::Namespace;
use crate::lease::store::format::{decode_record, encode_block, encode_record, judge_block};
use crate::lease::store::record::StoreRecord;
use crate::lease::store::table::sqlite::SqliteTable;
use crate::lease::store::table::sqlite::session::Access;
use crate::lease::store::table::sqlite::transaction::Transaction;
use crate::lease::store::table::{Commit, Key, Put};

/// Writes the first grant log of a namespace, and makes the file if it is missing.
/// Does nothing if another process was faster.
pub(super) fn create_log(table: &mut SqliteTable, log: &GrantLog) -> Result<(), StoreError> {
    let namespace = &log.record.namespace;
    let name = namespace.name();
    let Some(mut opened) = table.create()? else {
        return Err(namespace.not_initialised());
    };
    opened.create_tables()?;
    part_from_original(&mut opened, table.path())?;
    if opened.get(&Key::record(name))?.is_some() {
        return Ok(());
    }
    for claimed in namespace.claims(&[]) {
        let secret = Key::secret(claimed);
        namespace.check_secret(claimed, opened.get(&secret)?.as_deref())?;
        put(&mut opened, secret, name.to_owned())?;
    }
    let record = StoreRecord {
        incarnation: opened.incarnation(),
        ..log.record.clone()
    };
    put(&mut opened, Key::record(name), encode_record(&record))?;
    put(&mut opened, tier_key(name), encode_tier(log))?;
    end(opened, "init")
}

/// Runs one step on the grant log of a namespace, in one transaction.
pub(super) fn change_log<T>(
    table: &mut SqliteTable,
    operation: Operation,
    namespace: &Namespace,
    step: impl FnOnce(&mut GrantLog, &Caller) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let path = table.path().to_owned();
    // Without one its blocks are free when their marks pass, as in every store.
    let user = (operation.needs_signs)
        .then(|| alive::sign(&path))
        .flatten();
    let opened = table.begin(Access::Write)?;
    let opened = opened.filter(Transaction::has_tables);
    let mut opened = opened.ok_or_else(|| namespace.not_initialised())?;
    part_from_original(&mut opened, &path)?;
    let mut before = read(&opened, namespace)?;
    let mut log = before.clone();
    let found = opened.incarnation();
    if found != log.record.incarnation {
        let recorded = log.record.incarnation.clone();
        if found.is_same_file(&recorded) {
            // It may be an older state of itself: its upstream grants are its own, and what
            // it has forgotten of their sub-grants lies below the floor.
            let now = log.record.tick_at(opened.unix_ms())?;
            log.record.observe(&found, now);
        } else {
            events::tier_given_up(opened.store(), recorded.as_str(), found.as_str());
            log.forget(&found, opened.unix_ms());
        }
        // Even if the step fails: an adopted file keeps nothing of the original.
        write(&mut opened, &before, &log)?;
        before = log.clone();
    }
    if operation.needs_signs {
        log.reap(|user| alive::is_gone(&path, user));
    }
    let caller = Caller {
        user,
        arrived_unix_ms: opened.arrived_unix_ms(),
        unix_ms: opened.unix_ms(),
    };
    let answer = step(&mut log, &caller);
    if GrantLog::is_to_be_kept(&answer) {
        write(&mut opened, &before, &log)?;
    }
    let ended = end(opened, operation.name);
    answer.and_then(|answer| ended.map(|()| answer))
}

/// Ends the transaction. What was written is durable if this returns without an error.
fn end(opened: Transaction, operation: &'static str) -> Result<(), StoreError> {
    match opened.commit()? {
        Commit::Done => Ok(()),
        Commit::Unknown(source) => Err(StoreError::Ambiguous { operation, source }),
        // It compares nothing.
        Commit::Conflict(_) => Err(StoreError::unavailable(
            "a transaction without conditions met a conflict",
        )),
    }
}

fn put(opened: &mut Transaction, key: Key, value: String) -> Result<(), StoreError> {
    let rank = None;
    opened.put(&Put { key, value, rank })
}

/// Makes a copy a file of its own, unless processes live that take the machine for another one:
/// each would give up what the others have.
fn part_from_original(opened: &mut Transaction, path: &Path) -> Result<(), StoreError> {
    let Some((recorded, found)) = opened.copied() else {
        return Ok(());
    };
    // The same file, where the machine is said to be another one.
    let inode = |identity: &str| identity.split_once(", ").map(|(_, inode)| inode.to_owned());
    if inode(recorded) == inode(found) && alive::is_shared(path) {
        return Err(StoreError::Copied {
            store: opened.store().to_owned(),
            recorded: recorded.to_owned(),
            found: format!(
                "{found}, while other processes use the file: containers of one machine need its \
                 /etc/machine-id mounted, and each machine needs a file of its own"
            ),
        });
    }
    opened.part_from_original()
}

fn read(opened: &Transaction, namespace: &Namespace) -> Result<GrantLog, StoreError> {
    let name = namespace.name();
    let entries = opened.entries_of(name)?;
    let record = entries.get(&Key::record(name));
    let record = record.ok_or_else(|| namespace.not_initialised())?;
    let record = decode_record(name, record)?;
    record.verify(namespace)?;
    let key = tier_key(name);
    let missing = || StoreError::corrupt(format!("there is no {key}"));
    let tier = entries.get(&key).ok_or_else(missing)?;
    let (first_epoch, reach, upstream_state) = decode_tier(&key, tier)?;
    let mut log = GrantLog::new(record, first_epoch, reach);
    log.upstream_state = upstream_state;
    for (key, value) in &entries {
        if let Some(block) = upstream_block(name, key) {
            log.upstream.insert(block, decode_upstream(key, value)?);
        } else if let Some(block) = key.to_block(name) {
            match judge_block(namespace, block, value) {
                Ok(state) => drop(log.blocks.insert(block, state)),
                Err(damage) => {
                    damage.log(namespace);
                    if let Some(block) = damage.block {
                        log.quarantined.insert(block, damage);
                    }
                }
            }
        }
    }
    Ok(log)
}

/// Writes what has changed.
fn write(opened: &mut Transaction, before: &GrantLog, after: &GrantLog) -> Result<(), StoreError> {
    let name = after.record.namespace.name();
    for (block, state) in &after.blocks {
        if before.blocks.get(block) != Some(state) {
            opened.put(&Put {
                key: Key::block(name, state.block),
                value: encode_block(state),
                rank: Some(state.hwm_end),
            })?;
        }
    }
    for (&block, upstream) in &after.upstream {
        if before.upstream.get(&block) != Some(upstream) {
            put(opened, upstream_key(name, block), encode_upstream(upstream))?;
        }
    }
    if before.record != after.record {
        put(opened, Key::record(name), encode_record(&after.record))?;
    }
    let tier = encode_tier(after);
    if encode_tier(before) != tier {
        put(opened, tier_key(name), tier)?;
    }
    Ok(())
}
