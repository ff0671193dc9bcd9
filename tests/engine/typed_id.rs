//! IDs with what they name.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;
use ringflake::{Id, IdKind, ParseIdError, ParseTypedIdError, TypedId};

/// Neither `Send` nor `Debug` nor anything else.
struct User(#[expect(dead_code, reason = "for what it is not")] Cell<*const u8>);

impl IdKind for User {
    const PREFIX: &'static str = "user";
}

/// Begins as the other's does, and has a `_` in it.
enum UserGroup {}

impl IdKind for UserGroup {
    const PREFIX: &'static str = "user_group";
}

enum Longest {}

impl IdKind for Longest {
    const PREFIX: &'static str = "a23456789012345678901234567890123456789012345678901234567890123";
}

fn user(number: u64) -> TypedId<User> {
    TypedId::from_id(Id::from_u64(number))
}

#[test]
fn the_text_is_the_prefix_and_that_of_the_id() {
    assert_eq!(user(0).to_string(), "user_0");
    assert_eq!(user(u64::MAX).to_string(), "user_fvvvvvvvvvvvv");
    let group = TypedId::<UserGroup>::from_id(Id::from_u64(32));
    assert_eq!(group.to_string(), "user_group_10");
    assert_eq!(
        format!("{:>9}|{:<9}|", user(32), user(32)),
        "  user_10|user_10  |"
    );
    assert_eq!(format!("{:?}", user(32)), "TypedId(10)");
}

#[test]
fn the_longest_text_is_written_whole() {
    let longest = TypedId::<Longest>::from_id(Id::from_u64(u64::MAX));
    let text = longest.to_string();
    assert_eq!(text, format!("{}_fvvvvvvvvvvvv", Longest::PREFIX));
    assert_eq!(text.len(), 77);
    assert_eq!(text.parse(), Ok(longest));
}

#[test]
fn another_prefix_is_refused_with_both() {
    let expected = "user";
    for (text, found) in [
        ("order_10", "order"),
        ("user_group_10", "user_group"),
        ("_10", ""),
        ("User_10", "User"),
        ("user__10", "user_"),
        (" user_10", " user"),
    ] {
        let error = text.parse::<TypedId<User>>().unwrap_err();
        let says = format!("the prefix is {found:?}, but \"user\" is expected before the last '_'");
        assert_eq!(error.to_string(), says, "{text:?}");
        let found = found.to_owned();
        assert_eq!(error, ParseTypedIdError::OtherPrefix { found, expected });
    }
    for text in ["", "10", "user"] {
        let error = text.parse::<TypedId<User>>().unwrap_err();
        let says = "the text has no prefix: it must begin with \"user_\"";
        assert_eq!(error.to_string(), says, "{text:?}");
        assert_eq!(error, ParseTypedIdError::NoPrefix { expected });
    }
}

#[test]
fn what_follows_the_prefix_has_to_be_an_id() {
    for (digits, fault) in [
        ("", ParseIdError::Empty),
        ("00", ParseIdError::LeadingZero),
        ("g000000000000", ParseIdError::Overflow),
    ] {
        let error = TypedId::<User>::try_from(&*format!("user_{digits}")).unwrap_err();
        let says = format!("after \"user_\": {fault}");
        assert_eq!(error.to_string(), says);
        let prefix = "user";
        assert_eq!(
            error,
            ParseTypedIdError::Id {
                prefix,
                error: fault
            }
        );
    }
}

#[test]
fn a_very_long_prefix_is_shown_in_part() {
    for (unit, length) in [("a", 63), ("é", 62)] {
        let text = format!("{}_10", unit.repeat(1 << 20));
        match text.parse::<TypedId<User>>() {
            Err(ParseTypedIdError::OtherPrefix { found, .. }) => {
                assert_eq!(found.len(), length);
                assert!(text.starts_with(&found));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_typed_id_is_what_an_id_is_whatever_its_kind() {
    fn is_plain<T: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug + Send + Sync + Unpin>() {}
    struct Nothing(#[expect(dead_code, reason = "for what it is not")] *const Cell<u8>);
    is_plain::<TypedId<Nothing>>();
    assert_eq!(size_of::<TypedId<User>>(), size_of::<Id>());
    // One of a longer lifetime is one of a shorter, too.
    fn shorter<'a>(id: TypedId<&'static u8>, _: &'a u8) -> TypedId<&'a u8> {
        id
    }
    let _ = shorter;
}

proptest! {
    #[test]
    fn a_typed_id_reads_back(number: u64) {
        let typed = user(number);
        prop_assert_eq!(typed.id(), Id::from_u64(number));
        prop_assert_eq!(Id::from(typed), typed.id());
        prop_assert_eq!(typed.to_string().parse(), Ok(typed));
        prop_assert_eq!(TypedId::try_from(typed.to_string()), Ok(typed));
        let hashes = RandomState::new();
        prop_assert_eq!(hashes.hash_one(typed), hashes.hash_one(typed.id()));
    }

    #[test]
    fn only_what_display_writes_is_read(text in "(user|user_group|usr|_)?_?[0-9a-w]{0,14}") {
        if let Ok(typed) = text.parse::<TypedId<User>>() {
            prop_assert_eq!(typed.to_string(), text);
        } else {
            let digits = text.strip_prefix("user_").map(str::parse::<Id>);
            prop_assert!(!matches!(digits, Some(Ok(_))), "{}", text);
        }
    }
}
