//! Serialization, in the form that a field asks for.

use crate::User;
use proptest::prelude::*;
use ringflake::{Id, Layout, Parts, Stats, TypedId};
use ringflake_kit::assert_says;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_test::{Configure, Token, assert_de_tokens, assert_de_tokens_error, assert_tokens};

/// A row with an ID in each form, there and absent.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    #[serde(with = "ringflake::serde::as_i64")]
    signed: Id,
    #[serde(with = "ringflake::serde::as_u64")]
    unsigned: TypedId<User>,
    #[serde(with = "ringflake::serde::as_text")]
    text: TypedId<User>,
    #[serde(with = "ringflake::serde::as_i64::option", default)]
    signed_option: Option<TypedId<User>>,
    #[serde(with = "ringflake::serde::as_u64::option", default)]
    unsigned_option: Option<Id>,
    #[serde(with = "ringflake::serde::as_text::option", default)]
    text_option: Option<Id>,
}

fn row(number: u64, is_there: bool) -> Row {
    let id = Id::from_u64(number);
    let typed = TypedId::from_id(id);
    Row {
        signed: id,
        unsigned: typed,
        text: typed,
        signed_option: is_there.then_some(typed),
        unsigned_option: is_there.then_some(id),
        text_option: is_there.then_some(id),
    }
}

fn json_of(number: u64) -> serde_json::Value {
    let text = Id::from_u64(number).to_string();
    json!({
        "signed": number as i64,
        "unsigned": number,
        "text": format!("user_{text}"),
        "signed_option": number as i64,
        "unsigned_option": number,
        "text_option": text,
    })
}

proptest! {
    #[test]
    fn each_form_in_json_reads_back(number: u64) {
        let row = row(number, true);
        let json = serde_json::to_value(&row).unwrap();
        prop_assert_eq!(&json, &json_of(number));
        prop_assert_eq!(serde_json::from_str::<Row>(&json.to_string()).unwrap(), row);
    }

    #[test]
    fn an_id_without_a_mode_reads_back(number: u64) {
        let typed = TypedId::<User>::from_id(Id::from_u64(number));
        let text = serde_json::to_string(&typed).unwrap();
        prop_assert_eq!(&text, &format!("\"{typed}\""));
        prop_assert_eq!(serde_json::from_str::<TypedId<User>>(&text).unwrap(), typed);
    }
}

#[test]
fn none_is_null_and_may_be_missing() {
    let none = row(1, false);
    let mut json = serde_json::to_value(&none).unwrap();
    for option in ["signed_option", "unsigned_option", "text_option"] {
        assert!(json[option].is_null(), "{option}");
    }
    assert_eq!(serde_json::from_value::<Row>(json.clone()).unwrap(), none);
    let fields = json.as_object_mut().unwrap();
    fields.retain(|name, _| !name.ends_with("_option"));
    assert_eq!(serde_json::from_value::<Row>(json).unwrap(), none);
}

#[test]
fn a_form_is_refused_in_place_of_another() {
    let whole = json_of(u64::MAX);
    for (field, value, says) in [
        ("signed", json!("10"), "string \"10\", expected i64"),
        (
            "signed",
            json!(1_u64 << 63),
            "`9223372036854775808`, expected i64",
        ),
        ("signed", json!(1.5), "floating point `1.5`, expected i64"),
        ("unsigned", json!(-1), "integer `-1`, expected u64"),
        ("unsigned", json!("user_10"), "expected u64"),
        ("text", json!(1), "a base32hex string after \"user_\""),
        ("text", json!("10"), "the text has no prefix"),
        ("text", json!("order_10"), "the prefix is \"order\""),
        ("signed_option", json!("10"), "expected i64"),
        ("unsigned_option", json!(-1), "expected u64"),
        ("text_option", json!("01"), "leading zero"),
    ] {
        let mut json = whole.clone();
        json[field] = value;
        let error = serde_json::from_str::<Row>(&json.to_string()).unwrap_err();
        assert_says(&error.to_string(), &[says]);
    }
}

#[test]
fn a_mode_is_the_same_in_binary_formats() {
    let mut tokens = vec![Token::Struct {
        name: "Row",
        len: 6,
    }];
    for (name, token) in [
        ("signed", Token::I64(-1)),
        ("unsigned", Token::U64(u64::MAX)),
        ("text", Token::Str("user_fvvvvvvvvvvvv")),
    ] {
        tokens.extend([Token::Str(name), token]);
    }
    for (name, token) in [
        ("signed_option", Token::I64(-1)),
        ("unsigned_option", Token::U64(u64::MAX)),
        ("text_option", Token::Str("fvvvvvvvvvvvv")),
    ] {
        tokens.extend([Token::Str(name), Token::Some, token]);
    }
    tokens.push(Token::StructEnd);
    let row = || row(u64::MAX, true);
    assert_tokens(&row().readable(), &tokens);
    assert_tokens(&row().compact(), &tokens);
}

#[test]
fn a_typed_id_is_text_for_people_and_a_number_otherwise() {
    let typed = TypedId::<User>::from_id(Id::from_u64(32));
    assert_tokens(&typed.readable(), &[Token::Str("user_10")]);
    assert_tokens(&typed.compact(), &[Token::U64(32)]);
    assert_de_tokens_error::<serde_test::Compact<TypedId<User>>>(
        &[Token::Str("user_10")],
        "invalid type: string \"user_10\", expected u64",
    );
}

#[test]
fn a_layout_is_its_text_in_every_format() {
    let text = "28/22/13@2016-05-20T00:00:00Z/1s";
    assert_tokens(&Layout::BAIDU.readable(), &[Token::Str(text)]);
    assert_tokens(&Layout::BAIDU.compact(), &[Token::Str(text)]);
    assert_de_tokens(&Layout::BAIDU, &[Token::Str("baidu")]);
    let says = "28/22/13".parse::<Layout>().unwrap_err().to_string();
    assert_de_tokens_error::<Layout>(&[Token::Str("28/22/13")], &says);
}

#[test]
fn parts_and_figures_are_maps_of_their_fields() {
    let parts = Layout::RANDFLAKE.unpack(2_113_124_171_775).unwrap();
    let json = r#"{"tick":123,"node":1,"sequence":131071,"unix_ms":1730000123000}"#;
    assert_eq!(serde_json::to_string(&parts).unwrap(), json);
    assert_eq!(serde_json::from_str::<Parts>(json).unwrap(), parts);
    let stats = serde_json::to_string(&Stats::default()).unwrap();
    assert!(stats.contains("\"capacity\":0,"), "{stats}");
    assert_eq!(
        serde_json::from_str::<Stats>(&stats).unwrap(),
        Stats::default()
    );
}
