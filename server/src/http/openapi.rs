//! `GET /openapi.json`: the document in `openapi.json` with this server's limits.
//!
//! In that file `errors` names the kinds of errors of an operation. Their answers are added here,
//! and those that every operation has, and the header fields that every answer has. A library that
//! derives the document from the handlers' types knows neither.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::problem::{Kind, PROBLEM_JSON};
use crate::config::Limits;

const TEMPLATE: &str = include_str!("openapi.json");

/// The errors of every operation. There may be too many connections for any of them.
const OF_ALL: [Kind; 3] = [Kind::MALFORMED, Kind::METHOD_NOT_ALLOWED, Kind::BUSY];

/// Answers with the document, which is its state.
pub(super) async fn openapi(State(document): State<Bytes>) -> Response {
    let content_type = [(CONTENT_TYPE, "application/json")];
    (content_type, document).into_response()
}

pub(super) fn document(limits: &Limits) -> Vec<u8> {
    // A test reads it.
    let mut document: Value = serde_json::from_str(TEMPLATE).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    let schemas = &mut document["components"]["schemas"];
    schemas["Count"]["maximum"] = limits.count.into();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, path) in paths {
        for (_, operation) in path.as_object_mut().into_iter().flatten() {
            complete(operation);
        }
    }
    serde_json::to_vec(&document).unwrap_or_default()
}

/// Adds header fields, and the answers of errors.
fn complete(operation: &mut Value) {
    let named = operation.as_object_mut().and_then(|it| it.remove("errors"));
    let named = named.unwrap_or_default();
    let has = |kind: &Kind| {
        let names = named.as_array().into_iter().flatten();
        OF_ALL.contains(kind) || names.into_iter().any(|name| name == kind.name)
    };
    let mut errors = BTreeMap::<u16, Vec<Kind>>::new();
    for kind in Kind::ALL.iter().filter(|kind| has(kind)) {
        errors.entry(kind.status.as_u16()).or_default().push(*kind);
    }
    let responses = &mut operation["responses"];
    for (_, response) in responses.as_object_mut().into_iter().flatten() {
        response["headers"] = headers();
    }
    for (status, kinds) in errors {
        let mut error = error(status, &kinds);
        // An answer that the operation has besides.
        if let Some(own) = responses.get_mut(status.to_string()) {
            let texts = [&own["description"], &error["description"]]
                .map(|it| it.as_str().unwrap_or_default());
            error["description"] = texts.join(" Or: ").into();
            let contents = own["content"].as_object_mut();
            for (media, schema) in contents.into_iter().flatten() {
                error["content"][media.as_str()] = schema.take();
            }
        }
        responses[status.to_string()] = error;
    }
    responses["431"] = json!({ "description": "The header is too large." });
}

fn headers() -> Value {
    json!({
        "Cache-Control": { "$ref": "#/components/headers/CacheControl" },
        "X-Content-Type-Options": { "$ref": "#/components/headers/ContentTypeOptions" },
    })
}

/// The answer with one of these errors, which have this status.
fn error(status: u16, kinds: &[Kind]) -> Value {
    let mut headers = headers();
    let field = match status {
        401 => Some(("WWW-Authenticate", "WwwAuthenticate")),
        403 => Some(("WWW-Authenticate", "OfToken")),
        405 => Some(("Allow", "Allow")),
        429 | 503 => Some(("Retry-After", "RetryAfter")),
        _ => None,
    };
    if let Some((name, component)) = field {
        headers[name] = json!({ "$ref": format!("#/components/headers/{component}") });
    }
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title).collect();
    let names: Vec<String> = kinds.iter().map(|kind| kind.urn()).collect();
    let kind = json!({ "properties": { "type": { "enum": names } } });
    let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, kind] });
    json!({
        "description": format!("{}.", titles.join("; or: ")),
        "headers": headers,
        "content": { PROBLEM_JSON: { "schema": schema } },
    })
}

#[cfg(test)]
mod tests {
    use super::super::format::Format;
    use super::*;

    fn read() -> Value {
        let limits = Limits {
            count: 1000,
            ..Limits::default()
        };
        serde_json::from_slice(&document(&limits)).unwrap()
    }

    #[test]
    fn every_kind_of_error_is_described_and_no_other_is_named() {
        let text = read().to_string();
        for kind in Kind::ALL {
            // No path, no operation.
            let is_there = text.contains(&format!("\"{}\"", kind.urn()));
            assert_eq!(is_there, *kind != Kind::NOT_FOUND, "{kind:?}");
        }
        let template: Value = serde_json::from_str(TEMPLATE).unwrap();
        let operations = template["paths"].as_object().unwrap().values();
        let operations = operations.flat_map(|path| path.as_object().unwrap().values());
        for name in operations.flat_map(|it| it["errors"].as_array().into_iter().flatten()) {
            assert!(Kind::ALL.iter().any(|kind| name == kind.name), "{name}");
        }
    }

    #[test]
    fn the_limits_are_those_of_the_server() {
        let document = read();
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Count"]["maximum"], 1000);
        let formats = Format::ALL.map(Format::name);
        assert_eq!(schemas["Format"]["enum"], json!(formats));
        assert_eq!(schemas["Format"]["default"], Format::default().name());
    }

    #[test]
    fn an_operation_with_a_503_of_its_own_can_be_busy_too() {
        let of_ready = &read()["paths"]["/readyz"]["get"]["responses"]["503"];
        let content = of_ready["content"].as_object().unwrap();
        assert!(content.keys().eq(["application/json", PROBLEM_JSON]));
        assert!(of_ready["headers"]["Retry-After"].is_object());
    }
}
