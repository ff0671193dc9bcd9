//! The values of a [table](super::table): a namespace's record and a block, as flat JSON.
//!
//! | value | fields |
//! |---|---|
//! | record | those of [`RecordRow`], of which `format` is the version |
//! | block | `hwm_end` (20 digits, so that values sort by mark), `epoch`, `released`, `start`, `granted_unix_ms`, `holder_host`, `holder_instance` |
//!
//! Unknown fields with scalar values are ignored, and dropped at the next write. A field that is missing or of another type makes a record
//! corrupt, and quarantines a block. A block's last four fields are for people: what can't be read
//! of them is left out.

pub(super) mod json;

use self::json::{Object, Scalar};
use super::block::{Block, BlockState, Epoch};
use super::error::StoreError;
use super::holder::Holder;
use super::namespace::Namespace;
use super::quarantine::{self, Judged, Quarantined};
use super::record::StoreRecord;
use super::row::{FORMAT, RecordRow, corrupt, of_another_format, to_column};

/// The value of a namespace's record.
pub(super) fn encode_record(record: &StoreRecord) -> String {
    let row = RecordRow::new(record);
    let mut object = Object::default();
    object.add("format", Scalar::Integer(row.format));
    object.add_text("name", row.name);
    object.add_text("layout", row.layout);
    object.add("block_bits", Scalar::Integer(row.block_bits));
    object.add_text("fingerprint", row.fingerprint);
    object.add("horizon_ms", Scalar::Integer(row.horizon_ms));
    object.add("failover_ms", Scalar::Integer(row.failover_ms));
    object.add("skew_ms", Scalar::Integer(row.skew_ms));
    object.add("floor", Scalar::Integer(row.floor));
    object.add_text("incarnation", row.incarnation);
    object.to_string()
}

/// The record of the namespace with this name.
///
/// # Errors
/// [`StoreError::Format`], [`StoreError::Corrupt`].
pub(super) fn decode_record(name: &str, value: &str) -> Result<StoreRecord, StoreError> {
    let wrong = |what: &str| corrupt(format!("{what} in the record of namespace {name:?}"));
    let object = Object::parse(value).ok_or_else(|| wrong("no flat JSON object"))?;
    let text = |field: &str| match object.get(field) {
        Some(Scalar::Text(text)) => Ok(text.clone()),
        _ => Err(wrong(&format!("no text {field}"))),
    };
    let integer = |field: &str| match object.get(field) {
        Some(Scalar::Integer(number)) => Ok(*number),
        _ => Err(wrong(&format!("no integer {field}"))),
    };
    // First: another version may have other fields.
    let format = integer("format")?;
    if format != FORMAT {
        return Err(of_another_format(name, format));
    }
    let row = RecordRow {
        format,
        name: text("name")?,
        layout: text("layout")?,
        block_bits: integer("block_bits")?,
        fingerprint: text("fingerprint")?,
        horizon_ms: integer("horizon_ms")?,
        failover_ms: integer("failover_ms")?,
        skew_ms: integer("skew_ms")?,
        floor: integer("floor")?,
        incarnation: text("incarnation")?,
    };
    if row.name != name {
        return Err(wrong(&format!("the name {:?}", row.name)));
    }
    row.into_record()
}

/// The value of a block that was granted.
pub(super) fn encode_block(block: &BlockState) -> String {
    let mut object = Object::default();
    object.add_text("hwm_end", format!("{:020}", block.hwm_end));
    object.add("epoch", Scalar::Integer(to_column(block.epoch.get())));
    object.add("released", Scalar::Truth(block.released));
    if let Some(start) = block.start {
        object.add("start", Scalar::Integer(to_column(start)));
    }
    if let Some(unix_ms) = block.granted_unix_ms {
        object.add("granted_unix_ms", Scalar::Integer(to_column(unix_ms)));
    }
    if let Some(holder) = &block.holder {
        object.add_text("holder_host", holder.host());
        object.add_text("holder_instance", holder.instance());
    }
    object.to_string()
}

/// The state of a block by its value, or what is wrong with that.
pub(super) fn judge_block(namespace: &Namespace, block: Block, value: &str) -> Judged {
    if let Some(reason) = quarantine::fault(namespace, block.index(), 0, 0) {
        return Err(Quarantined::of_no_block(reason));
    }
    let wrong = |reason: String| Quarantined::new(block, reason);
    let object = Object::parse(value).ok_or_else(|| wrong("its value is not flat JSON".into()))?;
    let mark = match object.get("hwm_end") {
        Some(Scalar::Text(digits)) => parse_mark(digits)
            .ok_or_else(|| wrong(format!("its mark (hwm_end) is {digits:?}, not 20 digits")))?,
        _ => return Err(wrong("its mark (hwm_end) is missing".into())),
    };
    let epoch = match object.get("epoch") {
        Some(Scalar::Integer(epoch)) => {
            u64::try_from(*epoch).map_err(|_| wrong(format!("its epoch is {epoch}")))?
        }
        _ => return Err(wrong("its epoch is missing".into())),
    };
    let mut state = BlockState::new(block, Epoch::new(epoch), mark);
    state.released = match object.get("released") {
        Some(Scalar::Truth(released)) => *released,
        _ => return Err(wrong("whether it is released is missing".into())),
    };
    let number = |field| match object.get(field) {
        Some(Scalar::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    state.start = number("start");
    state.granted_unix_ms = number("granted_unix_ms");
    if let (Some(Scalar::Text(host)), Some(Scalar::Text(instance))) =
        (object.get("holder_host"), object.get("holder_instance"))
    {
        state.holder = Some(Holder::new(host, instance));
    }
    quarantine::judge(namespace, state)
}

/// The mark in the value of a block that is quarantined, if it can be read.
pub(super) fn read_mark(value: &str) -> Option<u64> {
    match Object::parse(value)?.get("hwm_end")? {
        Scalar::Text(digits) => parse_mark(digits),
        _ => None,
    }
}

fn parse_mark(digits: &str) -> Option<u64> {
    let is_mark = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_mark.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::limits::StoreLimits;
    use crate::lease::record::Incarnation;

    fn space() -> Namespace {
        Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
    }

    fn record() -> StoreRecord {
        StoreRecord::new(
            space(),
            StoreLimits::default(),
            4711,
            Incarnation::new("7/\"1\""),
        )
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let value = encode_record(&record());
        assert_eq!(decode_record("orders", &value).unwrap(), record());

        let mut block = BlockState::new(Block::new(3), Epoch::new(1 << 30), 1 << 30);
        for holder in [None, Some(Holder::new("hôst \"1\"\n", ""))] {
            block.holder = holder;
            block.released = !block.released;
            block.start = Some(7);
            block.granted_unix_ms = Some(1);
            let value = encode_block(&block);
            assert_eq!(judge_block(&space(), block.block, &value).unwrap(), block);
        }
    }

    #[test]
    fn values_sort_as_marks_do() {
        let value = |mark, epoch, released| {
            let mut block = BlockState::new(Block::new(0), Epoch::new(epoch), mark);
            block.released = released;
            encode_block(&block)
        };
        let values = [
            value(9, 700, true),
            value(10, 1, false),
            value(1 << 30, 0, true),
        ];
        assert!(values.is_sorted());
    }

    #[test]
    fn a_later_record_is_refused_before_its_fields_are_read() {
        let error = decode_record("orders", r#"{"format":9,"floor":"new"}"#).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Format {
                    recorded: 9,
                    known: FORMAT,
                    ..
                }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn an_invalid_record_is_corrupt() {
        let good = encode_record(&record());
        for bad in [
            String::new(),
            "{}".into(),
            good.replace("4711", "-1"),
            good.replace("4711", "\"4711\""),
            good.replace("orders", "refunds"),
            good.replace("\"floor\"", "\"roof\""),
        ] {
            let error = decode_record("orders", &bad).unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn an_invalid_block_is_quarantined() {
        let good = encode_block(&BlockState::new(Block::new(3), Epoch::FIRST, 5));
        let mark = "00000000000000000005";
        for (bad, mark_read) in [
            (String::new(), None),
            ("{}".into(), None),
            (good.replace(mark, "5"), None),
            (good.replace(mark, "+0000000000000000005"), None),
            (
                good.replace(mark, "00000000001073741825"),
                Some(1_073_741_825),
            ),
            (good.replace("\"epoch\":1", "\"epoch\":-1"), Some(5)),
            (good.replace("\"epoch\":1", "\"epoch\":6"), Some(5)),
            (good.replace("false", "0"), Some(5)),
        ] {
            let found = judge_block(&space(), Block::new(3), &bad).unwrap_err();
            assert_eq!(found.block, Some(Block::new(3)), "{bad}");
            assert_eq!(read_mark(&bad), mark_read, "{bad}");
        }
        for value in [good.as_str(), ""] {
            let beyond = judge_block(&space(), Block::new(4096), value).unwrap_err();
            assert_eq!(beyond.block, None, "{value}");
        }
    }

    #[test]
    fn unreadable_informational_fields_are_dropped() {
        let mut block = BlockState::new(Block::new(3), Epoch::FIRST, 5);
        let plain = block.clone();
        block.start = Some(2);
        block.granted_unix_ms = Some(7);
        block.holder = Some(Holder::new("host", "1"));
        let value = encode_block(&block)
            .replace(":2,", ":-2,")
            .replace(":7,", ":-7,")
            .replace("\"1\"", "1");
        assert_eq!(judge_block(&space(), block.block, &value).unwrap(), plain);
    }
}
