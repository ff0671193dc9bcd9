//! Keys and their values.

use serde::{Deserialize, Serialize};

use super::wire::{KeyValue, Span};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Quarantined;
use crate::lease::quarantine::{self, Judged};
use crate::lease::record::StoreRecord;
use crate::lease::row::{RecordRow, corrupt};

/// The value of a namespace's record: the columns of every store, and the raft
/// term (see `history.rs`).
#[derive(Debug, Serialize, Deserialize)]
struct RecordValue {
    format: i64,
    name: String,
    layout: String,
    block_bits: i64,
    fingerprint: String,
    horizon_ms: i64,
    failover_ms: i64,
    skew_ms: i64,
    floor: i64,
    incarnation: String,
    raft_term: u64,
}

/// The value of a block. It begins with the mark in 20 digits, so that etcd,
/// which can sort by value, sorts by mark.
#[derive(Debug, Serialize, Deserialize)]
struct BlockValue {
    hwm_end: String,
    epoch: u64,
    released: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_unix_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_instance: Option<String>,
}

pub(super) fn record_key(namespace: &Namespace) -> String {
    format!("ringflake/{}/record", namespace.name())
}

/// The key that holds the name of the namespace that has this secret; no namespace's
/// name begins with a dot.
pub(super) fn secret_key(fingerprint: Fingerprint) -> String {
    format!("ringflake/.secret/{fingerprint}")
}

/// In 20 digits, so that the keys are in the order of the blocks.
pub(super) fn block_key(namespace: &Namespace, block: Block) -> String {
    format!("ringflake/{}/block/{:020}", namespace.name(), block.index())
}

/// The keys of all blocks.
pub(super) fn all_blocks(namespace: &Namespace) -> Span {
    let prefix = format!("ringflake/{}/block", namespace.name());
    // '0' comes after '/'.
    let [first, end] = ['/', '0'].map(|last| format!("{prefix}{last}").into_bytes());
    Span(first, end)
}

/// The keys of the blocks from `first` on, before `end`.
pub(super) fn some_blocks(namespace: &Namespace, first: u64, end: u64) -> Span {
    let key = |index| block_key(namespace, Block::new(index)).into_bytes();
    Span(key(first), key(end))
}

pub(super) fn encode_record(record: &StoreRecord, raft_term: u64) -> Result<String, StoreError> {
    encode_row(RecordRow::new(record), raft_term)
}

pub(super) fn encode_row(row: RecordRow, raft_term: u64) -> Result<String, StoreError> {
    encode(&RecordValue {
        format: row.format,
        name: row.name,
        layout: row.layout,
        block_bits: row.block_bits,
        fingerprint: row.fingerprint,
        horizon_ms: row.horizon_ms,
        failover_ms: row.failover_ms,
        skew_ms: row.skew_ms,
        floor: row.floor,
        incarnation: row.incarnation,
        raft_term,
    })
}

/// The record and the raft term.
///
/// # Errors
/// [`StoreError::Format`], [`StoreError::Corrupt`].
pub(super) fn decode_record(
    namespace: &Namespace,
    kv: &KeyValue,
) -> Result<(StoreRecord, u64), StoreError> {
    let (row, raft_term) = decode_row(namespace, kv)?;
    Ok((row.into_record()?, raft_term))
}

/// The record's columns, in whichever format they are, and the raft term.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn decode_row(
    namespace: &Namespace,
    kv: &KeyValue,
) -> Result<(RecordRow, u64), StoreError> {
    let value: RecordValue = decode("the record", &kv.value)?;
    if value.name != namespace.name() {
        return Err(corrupt(format!("the record is of {:?}", value.name)));
    }
    let row = RecordRow {
        format: value.format,
        name: value.name,
        layout: value.layout,
        block_bits: value.block_bits,
        fingerprint: value.fingerprint,
        horizon_ms: value.horizon_ms,
        failover_ms: value.failover_ms,
        skew_ms: value.skew_ms,
        floor: value.floor,
        incarnation: value.incarnation,
    };
    Ok((row, value.raft_term))
}

pub(super) fn encode_block(block: &BlockState) -> Result<String, StoreError> {
    let holder = block.holder.as_ref();
    encode(&BlockValue {
        hwm_end: format!("{:020}", block.hwm_end),
        epoch: block.epoch.get(),
        released: block.released,
        granted_unix_ms: block.granted_unix_ms,
        holder_host: holder.map(|holder| holder.host().to_owned()),
        holder_instance: holder.map(|holder| holder.instance().to_owned()),
    })
}

/// The state of a block whose grant is to be changed; none if its key does not exist.
///
/// # Errors
/// A [fence](Quarantined::fence) if it is quarantined.
pub(super) fn known(
    namespace: &Namespace,
    block: Block,
    kv: Option<&KeyValue>,
) -> Result<Option<BlockState>, StoreError> {
    let known = kv.map(|kv| judge(namespace, kv)).transpose();
    known.map_err(|found| found.fence(namespace, block))
}

/// The state of a block by its key, or the fault of that key.
pub(super) fn judge(namespace: &Namespace, kv: &KeyValue) -> Judged {
    let block = decode_key(namespace, kv)?;
    let wrong = |reason| Quarantined::new(block, reason);
    let value: BlockValue = serde_json::from_slice(&kv.value)
        .map_err(|error| wrong(format!("its value can't be read: {error}")))?;
    let mark = parse_mark(&value.hwm_end).ok_or_else(|| {
        let found = &value.hwm_end;
        wrong(format!("its mark (hwm_end) is {found:?}, not 20 digits"))
    })?;
    let mut state = BlockState::new(block, Epoch::new(value.epoch), mark);
    state.released = value.released;
    state.granted_unix_ms = value.granted_unix_ms;
    state.holder = value
        .holder_host
        .zip(value.holder_instance)
        .map(|(host, instance)| Holder::new(host, instance));
    quarantine::judge(namespace, state)
}

/// The mark of a block that is quarantined, if that can be read.
pub(super) fn read_mark(kv: &KeyValue) -> Option<u64> {
    #[derive(Deserialize)]
    struct Mark {
        hwm_end: String,
    }
    let value: Mark = serde_json::from_slice(&kv.value).ok()?;
    parse_mark(&value.hwm_end)
}

fn parse_mark(digits: &str) -> Option<u64> {
    Some(digits)
        .filter(|digits| digits.len() == 20)
        .and_then(|digits| digits.parse().ok())
}

/// The block that a key names, if it does.
pub(super) fn decode_key(namespace: &Namespace, kv: &KeyValue) -> Result<Block, Quarantined> {
    let Span(prefix, _) = all_blocks(namespace);
    kv.key
        .strip_prefix(&*prefix)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse().ok())
        .map(Block::new)
        .filter(|block| block.index() < namespace.blocks())
        .filter(|block| block_key(namespace, *block).as_bytes() == kv.key)
        .ok_or_else(|| {
            let key = String::from_utf8_lossy(&kv.key);
            Quarantined::of_no_block(format!("key {key:?} is of no block"))
        })
}

fn encode(value: &impl Serialize) -> Result<String, StoreError> {
    // Of texts and numbers alone; it can't fail.
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt {
        detail: "a value that can't be written".into(),
        source: Some(Box::new(error)),
    })
}

fn decode<'a, T: Deserialize<'a>>(what: &str, value: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| StoreError::Corrupt {
        detail: what.to_owned(),
        source: Some(Box::new(error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::limits::StoreLimits;
    use crate::lease::record::Incarnation;

    fn space() -> Namespace {
        Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
    }

    fn kv(key: &str, value: &str) -> KeyValue {
        KeyValue {
            key: key.into(),
            value: value.into(),
            mod_revision: 1,
        }
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let limits = StoreLimits::default();
        let record = StoreRecord::new(space(), limits, 4711, Incarnation::new("7/1"));
        let value = encode_record(&record, 9).unwrap();
        let key = record_key(&space());
        let read = decode_record(&space(), &kv(&key, &value)).unwrap();
        assert_eq!(read, (record, 9));

        let mut block = BlockState::new(Block::new(3), Epoch::new(1 << 30), 1 << 30);
        for holder in [None, Some(Holder::new("hôst \"1\"\n", ""))] {
            block.holder = holder;
            block.released = !block.released;
            block.granted_unix_ms = Some(1);
            let value = encode_block(&block).unwrap();
            let key = block_key(&space(), block.block);
            assert_eq!(judge(&space(), &kv(&key, &value)).unwrap(), block);
        }
    }

    #[test]
    fn keys_and_values_sort_as_blocks_and_marks_do() {
        let numbers = [0, 9, 10, 4095];
        let keys = numbers.map(|index| block_key(&space(), Block::new(index)));
        assert!(keys.is_sorted());
        let Span(first, end) = all_blocks(&space());
        assert!(
            keys.iter()
                .all(|key| (&*first..&*end).contains(&key.as_bytes()))
        );
        assert!(record_key(&space()).as_bytes() >= &*end);

        let value = |mark, epoch, released| {
            let mut block = BlockState::new(Block::new(0), Epoch::new(epoch), mark);
            block.released = released;
            encode_block(&block).unwrap()
        };
        let values = [
            value(9, 700, true),
            value(10, 1, false),
            value(1 << 30, 0, true),
        ];
        assert!(values.is_sorted());
    }

    #[test]
    fn what_nobody_wrote_is_quarantined() {
        let good = encode_block(&BlockState::new(Block::new(3), Epoch::FIRST, 5)).unwrap();
        let key = block_key(&space(), Block::new(3));
        let key_of_3 = &*key;
        for (key, value) in [
            (&*key, ""),
            (&key, "{}"),
            (&key, &good.replace("00000000000000000005", "5")),
            (
                &key,
                &good.replace("00000000000000000005", "0000000000000000000x"),
            ),
            (
                &key,
                &good.replace("00000000000000000005", "00000000001073741825"),
            ),
            (&key, &good.replace("\"epoch\":1", "\"epoch\":-1")),
            ("ringflake/orders/block/3", &good),
            ("ringflake/orders/block/00000000000000004096", &good),
            ("ringflake/orders/block/x", &good),
        ] {
            let found = judge(&space(), &kv(key, value)).unwrap_err();
            let named = (key == key_of_3).then_some(Block::new(3));
            assert_eq!(found.block, named, "{key} {value}");
        }
        // What can be read of it counts all the same.
        let damaged = good.replace("\"epoch\":1", "\"epoch\":-1");
        assert_eq!(read_mark(&kv(&key, &damaged)), Some(5));
        assert_eq!(read_mark(&kv(&key, "{}")), None);
    }
}
