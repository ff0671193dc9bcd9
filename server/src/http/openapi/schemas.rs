//! What requests and answers consist of.

use serde_json::{Value, json};

use super::super::format::Format;
use crate::limits::Limits;

/// Schemas, header fields and the token.
pub(super) fn components(limits: &Limits) -> Value {
    json!({
        "securitySchemes": { "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "Only where the server is configured with tokens.",
        } },
        "headers": {
            "CacheControl": {
                "description": "An ID that a cache repeats is one that comes twice.",
                "required": true,
                "schema": { "const": "no-store" },
            },
            "ContentTypeOptions": {
                "description": "The type is the one that is given.",
                "required": true,
                "schema": { "const": "nosniff" },
            },
            "WwwAuthenticate": {
                "description": "What is wrong with the token (RFC 6750).",
                "required": true,
                "schema": { "type": "string" },
            },
            "OfToken": {
                "description": "What is wrong with the token (RFC 6750), if it is the token.",
                "schema": { "type": "string" },
            },
            "Allow": {
                "description": "The methods that the path has.",
                "required": true,
                "schema": { "type": "string" },
            },
            "RetryAfter": {
                "description": "After how many seconds the same request may succeed; none if it \
                                never will.",
                "required": false,
                "schema": { "type": "integer", "minimum": 1 },
            },
        },
        "schemas": {
            "Namespace": {
                "type": "string",
                "description": "1 to 64 characters out of a-z, 0-9, -, _ and ., of which the first \
                                is a letter or a digit.",
                "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$",
                "minLength": 1,
                "maxLength": 64,
                "examples": ["orders"],
            },
            "Count": {
                "type": "integer",
                "description": "How many IDs. An answer of application/octet-stream may have more.",
                "minimum": 1,
                "maximum": limits.count,
                "default": 1,
            },
            "Format": {
                "type": "string",
                "description": "How an ID is written: decimal is the signed number, as BIGINT has \
                                it; unsigned the unsigned one; text is base 32 with the digits \
                                0-9a-v; fixed is the same with 13 digits, which sorts as the \
                                number does.",
                "enum": Format::ALL.map(Format::name),
                "default": Format::default().name(),
            },
            "Id": {
                "type": "string",
                "description": "64 bits as text: JSON readers round numbers above 2^53.",
                "pattern": "^-?[0-9a-v]{1,20}$",
                "examples": ["-6409233573807279069", "ae3ek0mnbbd13"],
            },
            "Order": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "namespace": { "$ref": "#/components/schemas/Namespace" },
                    "count": { "$ref": "#/components/schemas/Count" },
                    "format": { "$ref": "#/components/schemas/Format" },
                },
            },
            "Ids": {
                "type": "object",
                "additionalProperties": false,
                "required": ["namespace", "ids"],
                "properties": {
                    "namespace": { "$ref": "#/components/schemas/Namespace" },
                    "ids": {
                        "type": "array",
                        "items": { "$ref": "#/components/schemas/Id" },
                        "minItems": 1,
                    },
                },
            },
            "Inspected": {
                "type": "object",
                "additionalProperties": false,
                "required": ["namespace", "id", "time", "unix_ms", "tick", "node", "sequence"],
                "properties": {
                    "namespace": { "$ref": "#/components/schemas/Namespace" },
                    "id": { "$ref": "#/components/schemas/Id" },
                    "time": {
                        "type": ["string", "null"],
                        "format": "date-time",
                        "description": "The start of its tick; none after the year 9999. The ID \
                                        may have been taken earlier, or later.",
                    },
                    "unix_ms": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "The same in milliseconds since 1970.",
                    },
                    "tick": { "type": "integer", "minimum": 0 },
                    "node": { "type": "integer", "minimum": 0 },
                    "sequence": { "type": "integer", "minimum": 0 },
                },
            },
            "Readiness": {
                "type": "object",
                "additionalProperties": false,
                "required": ["ready", "draining", "seconds"],
                "properties": {
                    "ready": {
                        "type": "boolean",
                        "description": "Whether all namespaces can issue IDs and the server is \
                                        not about to end.",
                    },
                    "draining": {
                        "type": "boolean",
                        "description": "Whether the server is about to end.",
                    },
                    "seconds": {
                        "type": ["integer", "null"],
                        "minimum": 0,
                        "description": "For how long all can issue IDs if no store answers; none \
                                        if there is no namespace yet, and 0 if one has only \
                                        what is left in its ring.",
                    },
                    "ready_in_seconds": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "When all can issue IDs, if it is the clock that they \
                                        wait for.",
                    },
                    "detail": {
                        "type": "string",
                        "description": "What keeps one from issuing IDs.",
                    },
                    "namespaces": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["namespace", "ready", "seconds"],
                            "properties": {
                                "namespace": { "$ref": "#/components/schemas/Namespace" },
                                "ready": { "type": "boolean" },
                                "seconds": { "type": "integer", "minimum": 0 },
                                "ready_in_seconds": { "type": "integer", "minimum": 1 },
                                "detail": { "type": "string" },
                            },
                        },
                    },
                },
            },
            "Problem": {
                "type": "object",
                "description": "An error, as RFC 9457 has it.",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": {
                        "type": "string",
                        "format": "uri",
                        "description": "The kind of error. It never changes.",
                    },
                    "title": { "type": "string" },
                    "status": { "type": "integer", "minimum": 400, "maximum": 599 },
                    "detail": {
                        "type": "string",
                        "description": "What was wrong, what is allowed and what to do next.",
                    },
                    "retry_after_ms": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "As Retry-After, in milliseconds.",
                    },
                },
            },
        },
    })
}
