//! The scripts, and their answers.

use redis::Value;

use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::row::{FORMAT, RecordRow, corrupt};

/// The largest number that the scripts know: doubles are exact up to it.
const MAX: u64 = 1 << 53;

/// The latest end of a layout, in milliseconds since 1970: ticks and times added
/// to the longest limits then stay below [`MAX`].
pub(super) const LATEST_END: u64 = 1 << 52;

/// One operation on a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Init,
    Acquire,
    Renew,
    Release,
    RaiseFloor,
    List,
    Check,
    Repair,
}

macro_rules! source {
    ($file:literal) => {
        concat!(include_str!("common.lua"), "\n", include_str!($file))
    };
}

impl Script {
    /// The operation's name in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::RaiseFloor => "raise_floor",
            Self::List => "list",
            Self::Check => "check",
            Self::Repair => "repair",
        }
    }

    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Init => source!("init.lua"),
            Self::Acquire => source!("acquire.lua"),
            Self::Renew => source!("renew.lua"),
            Self::Release => source!("release.lua"),
            Self::RaiseFloor => source!("raise_floor.lua"),
            Self::List => source!("list.lua"),
            Self::Check => source!("check.lua"),
            Self::Repair => source!("repair.lua"),
        }
    }

    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::List | Self::Check)
    }
}

/// The key that all namespaces share, and no name can be mistaken for.
const SECRETS: &str = "ringflake:secrets";

/// The keys of a script: those of the namespace, and the shared one where it is needed.
pub(super) fn keys(script: Script, namespace: &Namespace) -> Vec<String> {
    let own = [
        "record",
        "hwm_end",
        "released",
        "epoch",
        "granted_unix_ms",
        "holder_host",
        "holder_instance",
    ]
    .map(|kind| format!("ringflake:{{{}}}:{kind}", namespace.name()));
    let shares = matches!(script, Script::Init);
    let shared = shares.then(|| SECRETS.to_owned());
    own.into_iter().chain(shared).collect()
}

/// The arguments that every script takes first.
pub(super) fn arguments(namespace: &Namespace, replicas: u64) -> Vec<String> {
    let layout = namespace.layout();
    vec![
        FORMAT.to_string(),
        namespace.name().to_owned(),
        layout.to_string(),
        namespace.block_bits().to_string(),
        namespace.fingerprint().to_string(),
        layout.tick_ms().to_string(),
        layout.epoch_unix_ms().to_string(),
        layout.ticks().to_string(),
        namespace.blocks().to_string(),
        replicas.to_string(),
    ]
}

/// A record's columns in the order of the scripts' `FIELDS`.
pub(super) fn fields(row: &RecordRow) -> [String; 10] {
    [
        row.format.to_string(),
        row.name.clone(),
        row.layout.clone(),
        row.block_bits.to_string(),
        row.fingerprint.clone(),
        row.horizon_ms.to_string(),
        row.failover_ms.to_string(),
        row.skew_ms.to_string(),
        row.floor.to_string(),
        row.incarnation.clone(),
    ]
}

/// The answer of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) tag: String,
    /// The server's time in milliseconds since 1970.
    pub(super) unix_ms: u64,
    pub(super) incarnation: Incarnation,
    /// How many replicas were online.
    pub(super) online: u64,
    fields: Vec<Value>,
    /// The kind of answer.
    pub(super) rest: Vec<Value>,
}

impl Answer {
    /// # Errors
    /// [`StoreError::Corrupt`] for an answer that no script gives.
    pub(super) fn parse(value: Value) -> Result<Self, StoreError> {
        let Value::Array(mut parts) = value else {
            return Err(unexpected("no array"));
        };
        if parts.len() < 5 {
            return Err(unexpected("too few parts"));
        }
        let rest = parts.split_off(5);
        let fields = match parts.pop() {
            Some(Value::Array(fields)) => fields,
            _ => return Err(unexpected("no fields")),
        };
        Ok(Self {
            tag: text(&parts[0])?.to_owned(),
            unix_ms: number(&parts[1])?,
            incarnation: Incarnation::new(text(&parts[2])?),
            online: number(&parts[3])?,
            fields,
            rest,
        })
    }

    /// The record as the script left it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(super) fn record(&self) -> Result<StoreRecord, StoreError> {
        self.row()?.into_record()
    }

    /// The record's columns as the script left them.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(super) fn row(&self) -> Result<RecordRow, StoreError> {
        let fields: Vec<&str> = self.fields.iter().map(text).collect::<Result<_, _>>()?;
        let [
            format,
            name,
            layout,
            block_bits,
            fingerprint,
            horizon_ms,
            failover_ms,
            skew_ms,
            floor,
            incarnation,
        ] = fields[..]
        else {
            return Err(unexpected("not ten fields"));
        };
        let integer = |column: &str, text: &str| {
            text.parse()
                .map_err(|_| corrupt(format!("{column} is {text:?}")))
        };
        Ok(RecordRow {
            format: integer("format", format)?,
            name: name.to_owned(),
            layout: layout.to_owned(),
            block_bits: integer("block_bits", block_bits)?,
            fingerprint: fingerprint.to_owned(),
            horizon_ms: integer("horizon_ms", horizon_ms)?,
            failover_ms: integer("failover_ms", failover_ms)?,
            skew_ms: integer("skew_ms", skew_ms)?,
            floor: integer("floor", floor)?,
            incarnation: incarnation.to_owned(),
        })
    }

    /// A text that the tag says, by its place.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is missing.
    pub(super) fn text(&self, place: usize) -> Result<&str, StoreError> {
        text(self.rest.get(place).unwrap_or(&Value::Nil))
    }

    /// A number that the tag says, by its place; none where the text is empty.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is no number.
    pub(super) fn number(&self, place: usize) -> Result<Option<u64>, StoreError> {
        let text = self.text(place)?;
        if text.is_empty() {
            return Ok(None);
        }
        parse(text).map(Some)
    }
}

/// # Errors
/// [`StoreError::Corrupt`] if it is no text.
pub(super) fn text(value: &Value) -> Result<&str, StoreError> {
    match value {
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| unexpected("bytes that are no text"))
        }
        Value::SimpleString(text) => Ok(text),
        _ => Err(unexpected("no text")),
    }
}

/// # Errors
/// [`StoreError::Corrupt`] if it is no number.
pub(super) fn number(value: &Value) -> Result<u64, StoreError> {
    text(value).and_then(parse)
}

pub(super) fn parse(text: &str) -> Result<u64, StoreError> {
    text.parse()
        .ok()
        .filter(|&number: &u64| number <= MAX)
        .ok_or_else(|| corrupt(format!("{text:?} where a number belongs")))
}

/// The error for an answer that this version does not know.
pub(super) fn unexpected(what: &str) -> StoreError {
    corrupt(format!("the script's answer has {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::fingerprint::Fingerprint;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn a_service_needs_the_keys_of_its_namespace_alone() {
        let space = Namespace::new("secrets", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        for script in [
            Script::Acquire,
            Script::Renew,
            Script::Release,
            Script::RaiseFloor,
            Script::List,
            Script::Check,
            Script::Repair,
        ] {
            let keys = keys(script, &space);
            assert_eq!(keys.len(), 7);
            let is_own = |key: &String| key.starts_with("ringflake:{secrets}:");
            assert!(keys.iter().all(is_own), "{keys:?}");
        }
        assert_eq!(keys(Script::Init, &space)[7], SECRETS);
    }

    #[test]
    fn an_answer_has_its_parts() {
        let parts = ["renewed", "1760000000000", "run/repl", "2"].map(bulk);
        let mut parts = parts.to_vec();
        parts.push(Value::Array(Vec::new()));
        parts.push(bulk("4711"));
        parts.push(bulk(""));
        let answer = Answer::parse(Value::Array(parts)).unwrap();
        assert_eq!((&*answer.tag, answer.online), ("renewed", 2));
        assert_eq!(answer.number(0).unwrap(), Some(4711));
        assert_eq!(answer.number(1).unwrap(), None);
        answer.number(2).unwrap_err();
        answer.record().unwrap_err();
    }

    #[test]
    fn what_no_script_answers_is_corrupt() {
        let fields = || Value::Array(Vec::new());
        for value in [
            Value::Nil,
            Value::Array(vec![bulk("granted")]),
            Value::Array(vec![bulk("a"), bulk("1"), bulk("i"), bulk("0"), Value::Nil]),
            Value::Array(vec![bulk("a"), bulk("-1"), bulk("i"), bulk("0"), fields()]),
            Value::Array(vec![
                Value::Int(1),
                bulk("1"),
                bulk("i"),
                bulk("0"),
                fields(),
            ]),
        ] {
            let error = Answer::parse(value).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
    }
}
