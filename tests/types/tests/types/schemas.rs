//! JSON Schema and OpenAPI say what serde writes.

use jsonschema::Validator;
use ringflake::{Id, PublicId, TypedId};
use ringflake_types_tests::{IDS, User};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

/// utoipa's derive takes what it sees in angle brackets for a schema.
type UserId = TypedId<User>;

#[derive(Serialize, JsonSchema, ToSchema)]
struct Thing {
    id: Id,
    owner: Option<UserId>,
    friends: Vec<UserId>,
    public: PublicId,
}

#[derive(OpenApi)]
#[openapi(components(schemas(Thing)))]
struct Api;

/// Accepts each ID in its place, and nothing else.
fn check(validator: &Validator) {
    for id in IDS {
        for owner in [None, Some(TypedId::from_id(id))] {
            let friends = owner.into_iter().collect();
            let public = PublicId::from_u64(id.to_u64());
            let thing = json!(Thing {
                id,
                owner,
                friends,
                public
            });
            assert!(validator.is_valid(&thing), "{thing}");
        }
    }
    let thing = json!({"id": "10", "owner": "user_10", "friends": ["user_10"], "public": "10"});
    assert!(validator.is_valid(&thing));
    for (field, wrong) in [
        ("id", json!(10)),
        ("id", json!("")),
        ("id", json!("010")),
        ("id", json!("1W")),
        ("id", json!("1w")),
        ("id", json!("g000000000000")),
        ("id", json!("10000000000000")),
        ("id", json!("user_10")),
        ("owner", json!("10")),
        ("owner", json!("order_10")),
        ("owner", json!("a_user_10")),
        ("friends", json!(["user_00"])),
        ("public", json!("user_10")),
    ] {
        let mut thing = thing.clone();
        thing[field] = wrong;
        assert!(!validator.is_valid(&thing), "{thing}");
    }
}

#[test]
fn json_schema_is_that_of_what_serde_writes() {
    let schema = schema_for!(Thing).to_value();
    check(&jsonschema::validator_for(&schema).unwrap());
    let definitions = schema["$defs"].as_object().unwrap();
    let names: Vec<_> = definitions.keys().collect();
    assert_eq!(names, ["Id", "PublicId", "TypedId_user"]);
    check_examples(&definitions["TypedId_user"]);
}

#[test]
fn open_api_has_the_same_schema() {
    let mut api = serde_json::to_value(Api::openapi()).unwrap();
    let schemas = &api["components"]["schemas"];
    let names: Vec<_> = schemas.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["Id", "PublicId", "Thing", "TypedId_user"]);
    check_examples(&schemas["TypedId_user"]);
    // OpenAPI's schemas are those of JSON, beside what else it has.
    api["$ref"] = json!("#/components/schemas/Thing");
    check(&jsonschema::validator_for(&api).unwrap());
}

fn check_examples(schema: &Value) {
    assert_eq!(schema["examples"], json!(["user_ae3ek0mnbbd13"]));
    assert_eq!(schema["type"], "string");
}
