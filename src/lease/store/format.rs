//! The values of a [table](crate::lease::store::table): a namespace's record and a block, as flat JSON.
//!
//! | value | fields |
//! |---|---|
//! | record | `format` (the version), `name`, `layout`, `block_bits`, `fingerprint`, `horizon_ms`, `failover_ms`, `skew_ms`, `floor`, `incarnation` |
//! | block | `hwm_end` (20 digits, so that values sort by mark), `epoch`, `released`, `start`, `granted_unix_ms`, `holder_host`, `holder_instance` |
//!
//! All integers are below 2^63. Unknown fields with scalar values are ignored, and dropped at the
//! next write. A field that is missing or of another type makes a record corrupt, and quarantines
//! a block. A block's last four fields are for people: what can't be read of them is left out.

pub(in crate::lease) mod json;

use std::time::Duration;

use self::json::{Object, Scalar};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::store::limits::StoreLimits;
use crate::lease::store::quarantine::{self, Judged, Quarantined};
use crate::lease::store::record::{Incarnation, StoreRecord};

/// The version of a record. One in another version is neither read nor changed.
const FORMAT: i64 = 1;

/// The value of a namespace's record.
pub(in crate::lease) fn encode_record(record: &StoreRecord) -> String {
    let (space, limits) = (&record.namespace, &record.limits);
    let mut object = Object::default();
    object.add("format", Scalar::Integer(FORMAT));
    object.add_text("name", space.name());
    object.add_text("layout", space.layout().to_string());
    object.add_number("block_bits", u64::from(space.block_bits()));
    object.add_text("fingerprint", space.fingerprint().to_string());
    object.add_number("horizon_ms", limits.horizon_ms());
    object.add_number("failover_ms", limits.failover_ms());
    object.add_number("skew_ms", limits.skew_ms());
    object.add_number("floor", record.floor);
    object.add_text("incarnation", record.incarnation.as_str());
    object.to_string()
}

/// The record of the namespace with this name.
pub(in crate::lease) fn decode_record(name: &str, value: &str) -> Result<StoreRecord, StoreError> {
    let fields = Fields::parse(format!("the record of namespace {name:?}"), value)?;
    let millis = |field: &str| fields.number(field).map(Duration::from_millis);
    // First: another version may have other fields.
    match fields.object.get("format") {
        Some(Scalar::Integer(FORMAT)) => {}
        Some(&Scalar::Integer(recorded)) => {
            return Err(StoreError::Format {
                namespace: name.to_owned(),
                recorded,
                known: FORMAT,
            });
        }
        _ => return Err(fields.wrong("no integer format")),
    }
    if fields.text("name")? != name {
        return Err(fields.wrong(&format!("the name {:?}", fields.text("name")?)));
    }
    let layout = fields.text("layout")?;
    let layout = layout
        .parse()
        .map_err(|_| fields.wrong(&format!("layout {layout:?}")))?;
    let digits = fields.text("fingerprint")?;
    let fingerprint = parse_fingerprint(digits);
    let fingerprint =
        fingerprint.ok_or_else(|| fields.wrong(&format!("fingerprint {digits:?}")))?;
    let bits = fields.number("block_bits")?;
    let namespace = u32::try_from(bits).ok().and_then(|bits| {
        let space = Namespace::new(name, &layout, fingerprint);
        space.and_then(|space| space.with_block_bits(bits)).ok()
    });
    let namespace = namespace.ok_or_else(|| fields.wrong(&format!("block_bits {bits}")))?;
    let limits = StoreLimits::default()
        .with_horizon(millis("horizon_ms")?)
        .with_failover(millis("failover_ms")?)
        .with_skew(millis("skew_ms")?);
    let incarnation = Incarnation::new(fields.text("incarnation")?);
    Ok(StoreRecord::new(
        namespace,
        limits,
        fields.number("floor")?,
        incarnation,
    ))
}

fn parse_fingerprint(digits: &str) -> Option<Fingerprint> {
    let canonical = |fingerprint: &Fingerprint| fingerprint.to_string() == digits;
    u128::from_str_radix(digits, 16)
        .ok()
        .map(|bits| Fingerprint::from_bytes(bits.to_be_bytes()))
        .filter(canonical)
}

/// The fields of a value that must be there.
pub(in crate::lease) struct Fields {
    /// The owner of the value, for errors.
    of: String,
    object: Object,
}

impl Fields {
    pub(in crate::lease) fn parse(of: String, value: &str) -> Result<Self, StoreError> {
        match Object::parse(value) {
            Some(object) => Ok(Self { of, object }),
            None => Err(StoreError::corrupt(format!("no flat JSON object in {of}"))),
        }
    }

    pub(in crate::lease) fn text(&self, name: &str) -> Result<&str, StoreError> {
        match self.object.get(name) {
            Some(Scalar::Text(text)) => Ok(text),
            _ => Err(self.wrong(&format!("no text {name}"))),
        }
    }

    pub(in crate::lease) fn number(&self, name: &str) -> Result<u64, StoreError> {
        match self.object.get(name) {
            Some(Scalar::Integer(number)) => {
                u64::try_from(*number).map_err(|_| self.wrong(&format!("{name} {number}")))
            }
            _ => Err(self.wrong(&format!("no integer {name}"))),
        }
    }

    pub(in crate::lease) fn wrong(&self, what: &str) -> StoreError {
        StoreError::corrupt(format!("{what} in {}", self.of))
    }
}

/// The value of a block that was granted.
pub(in crate::lease) fn encode_block(block: &BlockState) -> String {
    let mut object = Object::default();
    object.add_text("hwm_end", format!("{:020}", block.hwm_end));
    object.add_number("epoch", block.epoch.get());
    object.add("released", Scalar::Truth(block.released));
    if let Some(start) = block.start {
        object.add_number("start", start);
    }
    if let Some(unix_ms) = block.granted_unix_ms {
        object.add_number("granted_unix_ms", unix_ms);
    }
    if let Some(holder) = &block.holder {
        object.add_text("holder_host", holder.host());
        object.add_text("holder_instance", holder.instance());
    }
    object.to_string()
}

/// The state of a block by its value, or what is wrong with that.
pub(in crate::lease) fn judge_block(namespace: &Namespace, block: Block, value: &str) -> Judged {
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
pub(in crate::lease) fn read_mark(value: &str) -> Option<u64> {
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
            good.replace("30/17/17", "31/31/31"),
            good.replace("\"block_bits\":5", "\"block_bits\":40"),
            good.replace("\"fingerprint\":\"0", "\"fingerprint\":\"+"),
            good.replace("\"skew_ms\":", "\"skew_ms\":-"),
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
