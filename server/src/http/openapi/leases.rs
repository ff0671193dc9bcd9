//! The operations on leases, and what they consist of.

use serde_json::{Value, json};

use super::super::leases::HOLDER;
use super::super::problem::Kind;
use super::answers::{headers, responses};
use crate::limits::Limits;
use crate::sublease::{DEFAULT_DURATION, MOST_DURATION, MOST_HAD, MOST_TEXT};

/// What each of them may answer.
const KINDS: [Kind; 16] = [
    Kind::MALFORMED,
    Kind::UNAUTHENTICATED,
    Kind::FORBIDDEN,
    Kind::METHOD_NOT_ALLOWED,
    Kind::NOT_ACCEPTABLE,
    Kind::TIMEOUT,
    Kind::LEASE_LOST,
    Kind::LEASE_ELSEWHERE,
    Kind::BODY_TOO_LARGE,
    Kind::URI_TOO_LONG,
    Kind::UNSUPPORTED_MEDIA_TYPE,
    Kind::INVALID,
    Kind::HEAD_TOO_LARGE,
    Kind::NO_LEASE,
    Kind::BUSY,
    Kind::CANNOT_OPEN,
];

pub(super) fn acquire(limits: &Limits) -> Value {
    let mut kinds = KINDS.to_vec();
    kinds.retain(|kind| ![Kind::LEASE_LOST, Kind::LEASE_ELSEWHERE].contains(kind));
    kinds.extend([
        Kind::UNKNOWN_NAMESPACE,
        Kind::TOO_MANY_NAMESPACES,
        Kind::TOO_MANY_LEASES,
    ]);
    operation(
        "acquire",
        "Gives leases to a generator of another language",
        &format!(
            "A lease is a rectangle: all nodes from start to end and all ticks from from to until, \
             the last of each not included. Its holder alone may issue the IDs of these nodes and \
             ticks, each once, whatever any clock says. There is one lease for each block of \
             nodes: up to {}, and fewer than were asked for where the store has no more. The \
             answer is given once. One that does not arrive costs its blocks until they end.",
            limits.leases
        ),
        json!({ "namespace": "orders", "nodes": 32, "duration_s": 120, "holder": "billing-1" }),
        "Acquiring",
        "Leases",
        &kinds,
    )
}

pub(super) fn renew() -> Value {
    operation(
        "renew",
        "Lets a lease end later",
        "The answer has another text for the same lease, which the next renewal must name; each \
         text is good for one. After lease-lost issue nothing more from it. After \
         lease-elsewhere issue up to the until that you know, and ask the server that gave it, or \
         for another lease. After no answer, or one of 503, issue up to that until, and try again.",
        json!({ "lease": "AQZvcmRlcnMAAAAAAAAAAw", "duration_s": 120 }),
        "Renewing",
        "Leases",
        &KINDS,
    )
}

pub(super) fn release() -> Value {
    operation(
        "release",
        "Ends a lease",
        "Issue nothing more from it before you ask. Its nodes can be given to others then, from \
         the tick on at which the lease would have ended.",
        json!({ "lease": "AQZvcmRlcnMAAAAAAAAAAw" }),
        "Releasing",
        "Released",
        &KINDS,
    )
}

fn operation(
    id: &str,
    summary: &str,
    description: &str,
    example: Value,
    body: &str,
    answer: &str,
    kinds: &[Kind],
) -> Value {
    let schema = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    json!({
        "operationId": id,
        "summary": summary,
        "description": description,
        "security": [{ "token": [] }],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": schema(body), "example": example } },
        },
        "responses": responses(
            json!({
                "description": "What the store has confirmed.",
                "headers": headers(),
                "content": { "application/json": { "schema": schema(answer) } },
            }),
            kinds,
        ),
    })
}

/// Adds the schemas.
pub(super) fn describe(schemas: &mut Value, limits: &Limits) {
    let object = |required: &[&str], properties: Value| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": required,
            "properties": properties,
        })
    };
    let number = || json!({ "type": "integer", "minimum": 0 });
    let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    schemas["Lease"] = json!({
        "type": "string",
        "description": "Names a lease and its end. Whoever has it can renew and release the lease.",
        "pattern": "^[A-Za-z0-9_-]+$",
        "minLength": 1,
        "maxLength": MOST_TEXT,
    });
    schemas["DurationS"] = json!({
        "type": "integer",
        "description": "How far ahead of the clock the lease is to reach, in seconds. It ends \
                        before that where the namespace's horizon is nearer.",
        "minimum": 1,
        "maximum": MOST_DURATION.as_secs(),
        "default": DEFAULT_DURATION.as_secs(),
    });
    schemas["Nodes"] = object(
        &["start", "end"],
        json!({ "start": number(), "end": number() }),
    );
    schemas["Ticks"] = object(
        &["from", "until"],
        json!({ "from": number(), "until": number() }),
    );
    let mut acquiring = object(
        &["namespace"],
        json!({
            "namespace": named("Namespace"),
            "nodes": {
                "type": "integer",
                "description": "How many nodes at least; their blocks count.",
                "minimum": 1,
            },
            "blocks": {
                "type": "integer",
                "description": "How many blocks, where nodes is not given.",
                "minimum": 1,
                "maximum": limits.leases,
                "default": 1,
            },
            "duration_s": named("DurationS"),
            "holder": {
                "type": "string",
                "description": "Who asks, for listings.",
                "pattern": "^[ -~]+$",
                "minLength": 1,
                "maxLength": HOLDER,
            },
            "had": {
                "type": "array",
                "description": "Leases of this namespace that the client had and lost, the last \
                                text of each: a store that was put back to an earlier state is \
                                found out by them. Not looked at where a namespace has no secret, \
                                nor those that another server gave below its tier.",
                "items": named("Lease"),
                "maxItems": MOST_HAD,
            },
        }),
    );
    acquiring["not"] = json!({ "required": ["nodes", "blocks"] });
    schemas["Acquiring"] = acquiring;
    schemas["Renewing"] = object(
        &["lease"],
        json!({ "lease": named("Lease"), "duration_s": named("DurationS") }),
    );
    schemas["Releasing"] = object(&["lease"], json!({ "lease": named("Lease") }));
    schemas["Released"] = object(
        &["namespace", "released"],
        json!({
            "namespace": named("Namespace"),
            "released": {
                "type": "array",
                "items": object(
                    &["nodes", "ticks"],
                    json!({ "nodes": named("Nodes"), "ticks": named("Ticks") }),
                ),
                "minItems": 1,
            },
        }),
    );
    let layout = [
        "epoch_unix_ms",
        "tick_ms",
        "time_bits",
        "node_bits",
        "sequence_bits",
    ];
    let mut fields = json!({});
    for field in layout {
        fields[field] = number();
    }
    let lease = object(
        &[
            "lease",
            "nodes",
            "ticks",
            "from_unix_ms",
            "until_unix_ms",
            "renew_after_s",
        ],
        json!({
            "lease": named("Lease"),
            "nodes": named("Nodes"),
            "ticks": named("Ticks"),
            "from_unix_ms": number(),
            "until_unix_ms": number(),
            "renew_after_s": {
                "type": "integer",
                "minimum": 0,
                "description": "When to renew it, in seconds from now: half of its time.",
            },
        }),
    );
    schemas["Leases"] = object(
        &["namespace", "layout", "id_bits", "encrypted", "leases"],
        json!({
            "namespace": named("Namespace"),
            "layout": {
                "description": "A raw number is tick, node and sequence, from the high bits to the \
                                low. Tick 0 begins at epoch_unix_ms.",
                "allOf": [object(&layout, fields)],
            },
            "id_bits": {
                "description": "How many bits encrypted IDs have.",
                "enum": [64, 63, 53],
            },
            "encrypted": {
                "type": "boolean",
                "description": "Whether raw numbers are encrypted, with the namespace's secret, \
                                which is never sent.",
            },
            "leases": { "type": "array", "items": lease, "minItems": 1 },
        }),
    );
}
