//! `GET /openapi.json`.

mod answers;
mod leases;
mod schemas;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use self::answers::{headers, query, responses, text};
use super::negotiate;
use super::order::BINARY_FACTOR;
use super::problem::{Kind, Problem};
use crate::limits::Limits;

/// Answers with the description of all this, which is its state.
pub(super) async fn openapi(
    State(document): State<Bytes>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    negotiate::require(&headers, "application/json")?;
    let content_type = [(CONTENT_TYPE, "application/json")];
    Ok((content_type, document).into_response())
}

/// The description, with the limits of this server.
pub(super) fn document(limits: &Limits) -> Vec<u8> {
    let mut components = schemas::components(limits);
    leases::describe(&mut components["schemas"], limits);
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ringflake",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Unique 64-bit IDs. An ID is given out once, whatever becomes of the \
                            answer: one that does not arrive is lost, never sent again. Every \
                            error is application/problem+json (RFC 9457); what is no HTTP at all \
                            is answered with 400, and a head beyond all limits with 431, both \
                            without a body.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        // That of this document.
        "servers": [{ "url": "/" }],
        "paths": {
            "/v1/ids": { "post": take(limits) },
            "/v1/ids/{id}": { "get": inspect() },
            "/v1/leases": { "post": leases::acquire(limits) },
            "/v1/leases/renew": { "post": leases::renew() },
            "/v1/leases/release": { "post": leases::release() },
            "/v1/status": { "get": status() },
            "/": { "get": page() },
            "/livez": { "get": livez() },
            "/readyz": { "get": readyz() },
            "/metrics": { "get": metrics() },
            "/openapi.json": { "get": this() },
        },
        "components": components,
    });
    // Texts, numbers and maps of them can always be written.
    serde_json::to_vec(&document).unwrap_or_default()
}

fn take(limits: &Limits) -> Value {
    let large = limits.count.saturating_mul(BINARY_FACTOR);
    json!({
        "operationId": "take",
        "summary": "Takes IDs",
        "description": format!(
            "Give the namespace in the query or in the body; the body's members count where both \
             have one. An answer of application/octet-stream may have up to {large} IDs, and an \
             answer in HTTP/1.0 as text up to 1024. A long answer is made while it is sent. If it \
             can't be finished, it ends early: application/octet-stream before its \
             Content-Length, another type without the last chunk, and in HTTP/2 the stream is \
             reset. The IDs of such an answer are used up as well. The format is that of text; \
             application/octet-stream has none."
        ),
        "security": [{ "token": [] }, {}],
        "parameters": [
            query("namespace", false, "#/components/schemas/Namespace", "orders"),
            query("count", false, "#/components/schemas/Count", 1),
            query("format", false, "#/components/schemas/Format", "decimal"),
        ],
        "requestBody": {
            "required": false,
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Order" },
                "example": { "namespace": "orders", "count": 2 },
            } },
        },
        "responses": responses(
            json!({
                "description": "The IDs, as many as were asked for.",
                "headers": headers(),
                "content": {
                    "application/json": { "schema": { "$ref": "#/components/schemas/Ids" } },
                    "text/plain": { "schema": {
                        "type": "string",
                        "description": "One ID a line.",
                    } },
                    "application/octet-stream": { "schema": {
                        "type": "string",
                        "format": "binary",
                        "description": "8 bytes an ID: its number, little-endian.",
                    } },
                },
                "links": { "inspect": {
                    "operationId": "inspect",
                    "parameters": {
                        "path.id": "$response.body#/ids/0",
                        "query.namespace": "$response.body#/namespace",
                    },
                } },
            }),
            &[
                Kind::MALFORMED, Kind::UNAUTHENTICATED, Kind::FORBIDDEN, Kind::CROSS_SITE, Kind::UNKNOWN_HOST, Kind::UNKNOWN_NAMESPACE,
                Kind::METHOD_NOT_ALLOWED, Kind::NOT_ACCEPTABLE, Kind::TIMEOUT,
                Kind::TOO_MANY_NAMESPACES, Kind::BODY_TOO_LARGE, Kind::URI_TOO_LONG,
                Kind::UNSUPPORTED_MEDIA_TYPE, Kind::INVALID, Kind::HEAD_TOO_LARGE,
                Kind::CANNOT_ISSUE, Kind::BUSY, Kind::CANNOT_OPEN,
            ],
        ),
    })
}

fn inspect() -> Value {
    json!({
        "operationId": "inspect",
        "summary": "Takes an ID apart",
        "security": [{ "token": [] }, {}],
        "parameters": [
            {
                "name": "id",
                "in": "path",
                "required": true,
                "description": "The ID, in the format that the query names.",
                "schema": { "$ref": "#/components/schemas/Id" },
            },
            query("namespace", true, "#/components/schemas/Namespace", "orders"),
            query("format", false, "#/components/schemas/Format", "decimal"),
        ],
        "responses": responses(
            json!({
                "description": "Its parts.",
                "headers": headers(),
                "content": { "application/json": {
                    "schema": { "$ref": "#/components/schemas/Inspected" },
                } },
            }),
            &[
                Kind::MALFORMED, Kind::UNAUTHENTICATED, Kind::FORBIDDEN, Kind::CROSS_SITE, Kind::UNKNOWN_HOST, Kind::UNKNOWN_NAMESPACE, Kind::NO_ID, Kind::FOREIGN_ID,
                Kind::METHOD_NOT_ALLOWED, Kind::NOT_ACCEPTABLE, Kind::URI_TOO_LONG, Kind::INVALID,
                Kind::HEAD_TOO_LARGE,
            ],
        ),
    })
}

/// What every operation without parameters may answer.
const OF_ALL: [Kind; 5] = [
    Kind::MALFORMED,
    Kind::METHOD_NOT_ALLOWED,
    Kind::NOT_ACCEPTABLE,
    Kind::URI_TOO_LONG,
    Kind::HEAD_TOO_LARGE,
];

fn livez() -> Value {
    json!({
        "operationId": "livez",
        "summary": "Whether the server runs",
        "responses": responses(text("The server runs."), &OF_ALL),
    })
}

fn readyz() -> Value {
    let answer = |description: &str| {
        json!({
            "description": description,
            "headers": headers(),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Readiness" },
            } },
        })
    };
    let mut responses = responses(answer("All namespaces can issue IDs."), &OF_ALL);
    responses["503"] = answer("One can't, or the server is about to end.");
    json!({
        "operationId": "readyz",
        "summary": "Whether IDs can be issued, and for how long if no store answers",
        "description": "Only a client that may read the figures of all namespaces sees each by \
                        itself.",
        "security": [{ "token": [] }, {}],
        "responses": responses,
    })
}

fn metrics() -> Value {
    let mut kinds = vec![
        Kind::UNAUTHENTICATED,
        Kind::FORBIDDEN,
        Kind::CROSS_SITE,
        Kind::UNKNOWN_HOST,
    ];
    kinds.extend(OF_ALL);
    json!({
        "operationId": "metrics",
        "summary": "The figures of the server, in the text format of Prometheus",
        "security": [{ "token": [] }, {}],
        "responses": responses(text("The figures."), &kinds),
    })
}

fn status() -> Value {
    let mut kinds = vec![
        Kind::UNAUTHENTICATED,
        Kind::FORBIDDEN,
        Kind::CROSS_SITE,
        Kind::UNKNOWN_HOST,
    ];
    kinds.extend(OF_ALL);
    json!({
        "operationId": "status",
        "summary": "How the server and each namespace stand, as the page at / shows it",
        "description": "For people: members may be added and go. Programs read /metrics.",
        "security": [{ "token": [] }, {}],
        "responses": responses(
            json!({
                "description": "All of it.",
                "headers": headers(),
                "content": { "application/json": { "schema": { "type": "object" } } },
            }),
            &kinds,
        ),
    })
}

fn page() -> Value {
    json!({
        "operationId": "page",
        "summary": "A page that shows how the server stands",
        "responses": responses(
            json!({
                "description": "The page.",
                "headers": headers(),
                "content": { "text/html": { "schema": { "type": "string" } } },
            }),
            &OF_ALL,
        ),
    })
}

fn this() -> Value {
    json!({
        "operationId": "openapi",
        "summary": "This document",
        "responses": responses(
            json!({
                "description": "This document.",
                "headers": headers(),
                "content": { "application/json": { "schema": { "type": "object" } } },
            }),
            &OF_ALL,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read() -> Value {
        let limits = Limits {
            count: 1000,
            ..Limits::default()
        };
        serde_json::from_slice(&document(&limits)).unwrap()
    }

    /// Calls `each` for every reference below.
    fn references(value: &Value, each: &mut impl FnMut(&str)) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    each(reference);
                }
                members.values().for_each(|value| references(value, each));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, each)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = read();
        let mut count = 0;
        references(&document, &mut |reference| {
            count += 1;
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        });
        assert!(count > 20, "{count}");
    }

    #[test]
    fn every_kind_of_error_is_described() {
        let text = read().to_string();
        for kind in Kind::ALL {
            // What has no path can't be described with one.
            let is_there = text.contains(&format!("\"{}\"", kind.urn()));
            assert_eq!(is_there, *kind != Kind::NOT_FOUND, "{kind:?}");
        }
    }

    #[test]
    fn the_limits_are_those_of_the_server() {
        let document = read();
        assert_eq!(document["components"]["schemas"]["Count"]["maximum"], 1000);
        let description = document["paths"]["/v1/ids"]["post"]["description"].to_string();
        assert!(description.contains("16000"), "{description}");
    }
}
