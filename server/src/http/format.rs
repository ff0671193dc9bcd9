//! IDs as they are written into an answer, and read from a path.

use std::io::Write;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use ringflake::Id;

use super::problem::{Kind, Problem};
use crate::named::named;

/// The form of an answer with IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    Json,
    Text,
    /// 8 little-endian bytes an ID.
    Binary,
}

impl ResponseFormat {
    const ALL: [Self; 3] = [Self::Json, Self::Text, Self::Binary];

    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain",
            Self::Binary => "application/octet-stream",
        }
    }

    /// As `Content-Type` has it.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json | Self::Binary => self.media_type(),
        }
    }

    /// The first one that `Accept` names, whatever its weight unless that is 0; or JSON.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let mut ranges = values.flat_map(|value| value.split(','));
        let named = ranges.find_map(|range| {
            let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
            let name = name.trim();
            let is_named = |format: &Self| format.media_type().eq_ignore_ascii_case(name);
            let format = Self::ALL.into_iter().find(is_named);
            format.filter(|_| !parameters.split(';').any(is_weight_0))
        });
        named.unwrap_or(Self::Json)
    }
}

/// Whether this parameter of a media range excludes it.
fn is_weight_0(parameter: &str) -> bool {
    let weight = parameter.trim().strip_prefix(['q', 'Q']);
    let weight = weight.and_then(|rest| rest.strip_prefix('='));
    weight.is_some_and(|weight| weight.parse() == Ok(0.0))
}

named! {
    /// How an ID is written as text.
    #[derive(Default)]
    pub(super) enum Format {
        /// The signed number, as `BIGINT` has it.
        #[default]
        Decimal = "decimal",
        Unsigned = "unsigned",
        /// Base 32 with the digits 0-9a-v.
        Text = "text",
        /// The same with 13 digits, which sorts as the number does.
        Fixed = "fixed",
    }
}

impl Format {
    pub(super) fn named(name: &str) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Problem::invalid(format!("format must be one of {names}"))
        })
    }

    pub(super) fn write(self, id: Id, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let text = match self {
            Self::Decimal => digits.format(id.to_i64()),
            Self::Unsigned => digits.format(id.to_u64()),
            Self::Fixed => {
                return out.extend_from_slice(id.to_fixed_text().as_str().as_bytes());
            }
            // Writing to memory does not fail.
            Self::Text => return drop(write!(out, "{id}")),
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// The ID that is written so: each in one way only.
    pub(super) fn read(self, text: &str) -> Result<Id, Problem> {
        let id = match self {
            Self::Decimal => text.parse().ok().map(Id::from_i64),
            Self::Unsigned => text.parse().ok().map(Id::from_u64),
            Self::Text => text.parse().ok(),
            Self::Fixed => Id::from_fixed_text(text).ok(),
        };
        let is_as_written = |id: &Id| {
            let mut written = Vec::new();
            self.write(*id, &mut written);
            written == text.as_bytes()
        };
        id.filter(is_as_written).ok_or_else(|| {
            let allowed = match self {
                Self::Decimal => "a signed number of 64 bits in decimal digits",
                Self::Unsigned => "an unsigned number of 64 bits in decimal digits",
                Self::Text => "1 to 13 of the digits 0-9a-v, for 64 bits, without leading zeros",
                Self::Fixed => "13 of the digits 0-9a-v, for 64 bits",
            };
            let detail = format!(
                "the ID is not written as format={} has it: give {allowed}, or the format that \
                 it is in",
                self.name()
            );
            Problem::new(Kind::NO_ID, detail)
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    pub(super) media: ResponseFormat,
    pub(super) format: Format,
}

impl Writer {
    /// The part before the first ID. The namespace's name has no character that JSON escapes.
    pub(super) fn head(self, namespace: &str, out: &mut Vec<u8>) {
        if self.media == ResponseFormat::Json {
            out.extend_from_slice(b"{\"namespace\":\"");
            out.extend_from_slice(namespace.as_bytes());
            out.extend_from_slice(b"\",\"ids\":[");
        }
    }

    /// IDs, of which the first is the first of the answer or is not.
    pub(super) fn ids(self, ids: &[Id], mut is_first: bool, out: &mut Vec<u8>) {
        match self.media {
            ResponseFormat::Binary => {
                let start = out.len();
                out.resize(start + 8 * ids.len(), 0);
                let (places, _) = out[start..].as_chunks_mut::<8>();
                for (place, id) in places.iter_mut().zip(ids) {
                    *place = id.to_le_bytes();
                }
            }
            ResponseFormat::Text => {
                for &id in ids {
                    self.format.write(id, out);
                    out.push(b'\n');
                }
            }
            ResponseFormat::Json => {
                for &id in ids {
                    out.extend_from_slice(if is_first { b"\"" } else { b",\"" });
                    is_first = false;
                    self.format.write(id, out);
                    out.push(b'"');
                }
            }
        }
    }

    /// The part after the last ID.
    pub(super) fn tail(self) -> &'static [u8] {
        match self.media {
            ResponseFormat::Json => b"]}\n",
            ResponseFormat::Text | ResponseFormat::Binary => b"",
        }
    }

    /// The most bytes of an answer with so many IDs.
    pub(super) const fn most_bytes(self, namespace: &str, ids: usize) -> usize {
        match self.media {
            ResponseFormat::Binary => 8 * ids,
            // 20 digits, or a sign and 19; and the end of the line.
            ResponseFormat::Text => 21 * ids,
            // And quotes and a comma.
            ResponseFormat::Json => 32 + namespace.len() + 23 * ids,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_answer_has_the_first_type_that_is_named() {
        use ResponseFormat::{Binary, Json, Text};
        assert_eq!(ResponseFormat::accepted(&HeaderMap::new()), Json);
        for (value, format) in [
            ("*/*", Json),
            ("TEXT/plain;charset=utf-8", Text),
            ("application/octet-stream, */*", Binary),
            ("text/html, application/json;q=0.9, text/plain", Json),
            ("what is this, text/plain", Text),
            ("application/json; Q=0.000, text/plain;q=0.5", Text),
            ("image/png", Json),
            ("", Json),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())]);
            assert_eq!(ResponseFormat::accepted(&headers), format, "{value}");
        }
    }

    fn written(writer: Writer, ids: &[Id]) -> Vec<u8> {
        let mut out = Vec::new();
        writer.head("orders", &mut out);
        for (at, id) in ids.iter().enumerate() {
            writer.ids(&[*id], at == 0, &mut out);
        }
        out.extend_from_slice(writer.tail());
        out
    }

    proptest! {
        #[test]
        fn an_id_is_read_as_it_is_written(number in any::<u64>(), bits in 0_u32..64) {
            let id = Id::from_u64(number >> bits);
            for format in Format::ALL {
                let mut text = Vec::new();
                format.write(id, &mut text);
                let text = String::from_utf8(text).unwrap();
                prop_assert_eq!(format.read(&text), Ok(id));
                let writer = Writer { media: ResponseFormat::Json, format };
                prop_assert!(written(writer, &[id; 9]).len() <= writer.most_bytes("orders", 9));
            }
        }

        #[test]
        fn the_parts_of_an_answer_make_one(numbers in proptest::collection::vec(any::<u64>(), 0..9)) {
            let ids: Vec<Id> = numbers.iter().copied().map(Id::from_u64).collect();
            let writer = |media| Writer { media, format: Format::Decimal };
            let texts: Vec<String> = ids.iter().map(|id| id.to_i64().to_string()).collect();

            let json: serde_json::Value = serde_json::from_slice(&written(writer(ResponseFormat::Json), &ids)).unwrap();
            prop_assert_eq!(json, serde_json::json!({ "namespace": "orders", "ids": texts }));

            let lines = String::from_utf8(written(writer(ResponseFormat::Text), &ids)).unwrap();
            prop_assert_eq!(lines.lines().collect::<Vec<_>>(), texts);
            prop_assert!(lines.is_empty() || lines.ends_with('\n'));

            let bytes = written(writer(ResponseFormat::Binary), &ids);
            let again: Vec<u64> = bytes.as_chunks().0.iter().map(|&id| u64::from_le_bytes(id)).collect();
            prop_assert_eq!(again, numbers);
            prop_assert_eq!(bytes.len(), 8 * ids.len());
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for (format, texts) in [
            (Format::Decimal, "|+1|007|-0|9223372036854775808|a"),
            (Format::Unsigned, "|+1|007|-1|18446744073709551616|a"),
            (Format::Text, "|01|A|w|g000000000000|10000000000000"),
            (
                Format::Fixed,
                "|1|000000000000A|g000000000000|00000000000000|-",
            ),
        ] {
            for text in texts.split('|') {
                assert!(format.read(text).is_err(), "{format:?} {text}");
            }
            assert_eq!(Format::named(format.name()), Ok(format));
        }
        assert!(Format::named("Decimal").is_err());
    }
}
