//! Requests to etcd's JSON gateway, and its replies.
//!
//! The gateway is the JSON form of etcd's gRPC interface (`rpc.proto` of etcd
//! 3.4): keys and values are base64, 64-bit numbers are texts, and what is zero is
//! left out. Unknown fields are skipped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::lease::store::table::failure::Failure;

/// What heads every reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(deserialize_with = "number")]
    pub(super) cluster_id: u64,
    #[serde(deserialize_with = "number")]
    pub(super) raft_term: u64,
    #[serde(deserialize_with = "number")]
    pub(super) revision: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TxnReply {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    pub(super) responses: Vec<OpReply>,
}

impl TxnReply {
    /// The range that was asked for at this place.
    pub(super) fn range(&self, place: usize) -> Result<&RangeReply, Failure> {
        let found = self.responses.get(place).map(|op| &op.response_range);
        found.ok_or_else(|| Failure::corrupt("a reply lacks a range that was asked for", None))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpReply {
    pub(super) response_range: RangeReply,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RangeReply {
    pub(super) kvs: Vec<KeyValue>,
    pub(super) more: bool,
    #[serde(deserialize_with = "number")]
    pub(super) count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: i64,
}

/// All keys that begin with the first one, up to the second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span(pub(super) Vec<u8>, pub(super) Vec<u8>);

/// One key.
pub(super) fn get(key: &str) -> Value {
    json!({ "key": STANDARD.encode(key) })
}

/// The keys of a span in order, the first so many of them.
pub(super) fn range(span: &Span, limit: u64) -> Value {
    json!({
        "key": STANDARD.encode(&span.0),
        "range_end": STANDARD.encode(&span.1),
        "limit": limit.to_string(),
    })
}

/// The keys of a span whose values are the least, the first so many of them, or
/// all for 0.
pub(super) fn least(span: &Span, limit: u64) -> Value {
    let mut request = range(span, limit);
    request["sort_order"] = json!("ASCEND");
    request["sort_target"] = json!("VALUE");
    request
}

/// A write, as part of a transaction.
pub(super) fn put(key: &str, value: &str) -> Value {
    json!({ "request_put": { "key": STANDARD.encode(key), "value": STANDARD.encode(value) } })
}

/// A read, as part of a transaction.
pub(super) fn read(range: Value) -> Value {
    json!({ "request_range": range })
}

/// Compares a key's value; `None` requires that the key does not exist.
pub(super) fn holds(key: &str, value: Option<&str>) -> Value {
    let key = STANDARD.encode(key);
    match value {
        Some(value) => json!({
            "key": key,
            "target": "VALUE",
            "result": "EQUAL",
            "value": STANDARD.encode(value),
        }),
        None => json!({
            "key": key,
            "target": "CREATE",
            "result": "EQUAL",
            "create_revision": "0",
        }),
    }
}

/// Compares the revision at which a key was last written.
pub(super) fn unchanged(key: &str, mod_revision: i64) -> Value {
    json!({
        "key": STANDARD.encode(key),
        "target": "MOD",
        "result": "EQUAL",
        "mod_revision": mod_revision.to_string(),
    })
}

/// A transaction. One without comparisons succeeds.
pub(super) fn txn(compare: Vec<Value>, success: Vec<Value>, failure: Vec<Value>) -> Value {
    json!({ "compare": compare, "success": success, "failure": failure })
}

/// A number, or a text that holds one.
fn number<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: std::str::FromStr,
{
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(D::Error::custom("no number")),
    };
    text.parse()
        .map_err(|_| D::Error::custom("a number out of range"))
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As etcd 3.4.23 sent it.
    #[test]
    fn a_reply_is_read() {
        let text = r#"{"header":{"cluster_id":"17237436991929493444","member_id":"3319",
            "revision":"3","raft_term":"2"},"succeeded":true,"responses":[
            {"response_range":{"header":{"revision":"2"},"kvs":[{"key":"YQ==",
            "create_revision":"2","mod_revision":"2","version":"1","value":"MQ=="}],
            "more":true,"count":"5"}},{"response_put":{"header":{"revision":"3"}}}]}"#;
        let reply: TxnReply = serde_json::from_str(text).unwrap();
        assert_eq!(reply.header.cluster_id, 17_237_436_991_929_493_444);
        assert_eq!((reply.header.raft_term, reply.header.revision), (2, 3));
        assert!(reply.succeeded);
        let range = &reply.responses[0].response_range;
        assert_eq!((range.count, range.more), (5, true));
        assert_eq!(
            (&*range.kvs[0].key, &*range.kvs[0].value),
            (&b"a"[..], &b"1"[..])
        );
        assert!(reply.responses[1].response_range.kvs.is_empty());

        let failed: TxnReply = serde_json::from_str("{}").unwrap();
        assert!(!failed.succeeded);
    }
}
