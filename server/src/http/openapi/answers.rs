//! What the operations have in common.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::problem::{Kind, PROBLEM_JSON};

pub(super) fn text(description: &str) -> Value {
    json!({
        "description": description,
        "headers": headers(),
        "content": { "text/plain": { "schema": { "type": "string" } } },
    })
}

pub(super) fn query(name: &str, required: bool, schema: &str, example: impl Into<Value>) -> Value {
    let example: Value = example.into();
    json!({
        "name": name,
        "in": "query",
        "required": required,
        "schema": { "$ref": schema },
        "example": example,
    })
}

/// What every answer has.
pub(super) fn headers() -> Value {
    json!({
        "Cache-Control": { "$ref": "#/components/headers/CacheControl" },
        "X-Content-Type-Options": { "$ref": "#/components/headers/ContentTypeOptions" },
    })
}

/// The answers of an operation: 200, and these errors.
pub(super) fn responses(ok: Value, kinds: &[Kind]) -> Value {
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in kinds {
        by_status
            .entry(kind.status.as_u16())
            .or_default()
            .push(*kind);
    }
    let mut responses = Map::from_iter([("200".to_owned(), ok)]);
    for (status, kinds) in by_status {
        responses.insert(status.to_string(), error(&kinds));
    }
    responses.into()
}

/// The answer with one of these errors, which have one status.
fn error(kinds: &[Kind]) -> Value {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title).collect();
    let names: Vec<String> = kinds.iter().map(|kind| kind.urn()).collect();
    let mut headers = headers();
    for kind in kinds {
        for (name, reference) in kind.headers() {
            headers[name] = json!({ "$ref": reference });
        }
    }
    json!({
        "description": format!("{}.", titles.join("; or: ")),
        "headers": headers,
        "content": { PROBLEM_JSON: { "schema": {
            "allOf": [
                { "$ref": "#/components/schemas/Problem" },
                { "properties": { "type": { "enum": names } } },
            ],
        } } },
    })
}

impl Kind {
    /// The header fields of such an error, and where they are described.
    fn headers(self) -> Vec<(&'static str, &'static str)> {
        match self.status.as_u16() {
            401 => vec![("WWW-Authenticate", "#/components/headers/WwwAuthenticate")],
            403 => vec![("WWW-Authenticate", "#/components/headers/OfToken")],
            405 => vec![("Allow", "#/components/headers/Allow")],
            429 | 503 => vec![("Retry-After", "#/components/headers/RetryAfter")],
            _ => Vec::new(),
        }
    }
}
