//! The two faces of a key: answers, batches, labels, and what is refused.

use proptest::prelude::*;
use ringflake::{Facade, FacadeError, Id, PublicId, Secret};

fn secret() -> Secret {
    Secret::from_hex("00112233445566778899aabbccddeeff").unwrap()
}

fn facade(label: &str) -> Facade {
    Facade::new(&secret(), label).unwrap()
}

/// Computed by Python's `hmac` and an implementation of the cipher from its paper.
#[test]
fn answers_of_another_implementation() {
    for (label, id, number, text) in [
        ("users", 1, 6_734_134_693_336_881_522, "5qt3jqccvl6bi"),
        ("users", 2, 9_432_837_345_048_174_594, "85q1biq3q5802"),
        (
            "users",
            u64::MAX,
            12_280_337_012_927_239_655,
            "akr45ec0po5f7",
        ),
        ("orders", 1, 8_151_752_321_990_609_866, "7286nhg4jeiua"),
        ("orders", 2, 1_004_997_903_081_205_959, "rsjo8iiils67"),
        (
            "orders",
            u64::MAX,
            17_074_092_832_595_737_345,
            "epsqsv02eiuo1",
        ),
        ("ü", 1, 9_177_108_238_927_226_136, "7umt3a8j92p8o"),
    ] {
        let facade = facade(label);
        let public = facade.seal(Id::from_u64(id));
        assert_eq!(public.to_u64(), number, "{label} {id}");
        assert_eq!(public.to_string(), text, "{label} {id}");
        assert_eq!(text.parse(), Ok(public), "{label} {id}");
        assert_eq!(facade.open(public), Id::from_u64(id), "{label} {id}");
    }
}

proptest! {
    #[test]
    fn what_was_sealed_opens(bytes in any::<[u8; 16]>(), label in ".{1,16}", key: i64) {
        let facade = Facade::new(&Secret::from_bytes(bytes), &label).unwrap();
        let id = Id::from_i64(key);
        prop_assert_eq!(facade.open(facade.seal(id)), id);
        let public = PublicId::from_i64(key);
        prop_assert_eq!(facade.seal(facade.open(public)), public);
    }

    #[test]
    fn a_public_id_has_the_text_of_an_id(number: u64) {
        let (public, id) = (PublicId::from_u64(number), Id::from_u64(number));
        prop_assert_eq!(public.to_string(), id.to_string());
        prop_assert_eq!(format!("{public:>20}"), format!("{id:>20}"));
        prop_assert_eq!(id.to_string().parse(), Ok(public));
        prop_assert_eq!(public.to_u64(), number);
        prop_assert_eq!(PublicId::from_i64(public.to_i64()), public);
        prop_assert_eq!(public.to_i64(), id.to_i64());
    }
}

/// The faces of small keys share no number between labels, and no key opens as another's.
#[test]
fn keys_of_one_label_are_nothing_under_another() {
    let facades = ["users", "orders", "user", "users ", "Users"].map(facade);
    for (index, one) in facades.iter().enumerate() {
        for other in &facades[index + 1..] {
            for key in (0..100).map(Id::from_u64) {
                assert_ne!(one.seal(key), other.seal(key), "{one:?} {other:?}");
                let opened = other.open(one.seal(key)).to_u64();
                assert!(opened > 1 << 32, "{one:?} as {other:?}: {opened}");
            }
        }
    }
    let other_secret = Facade::new(&Secret::from_bytes([1; 16]), "users").unwrap();
    let one = Id::from_u64(1);
    assert_ne!(other_secret.seal(one), facades[0].seal(one));
}

#[test]
fn a_label_has_1_to_64_bytes() {
    let long = "ü".repeat(32);
    assert_eq!(Facade::new(&secret(), &long).unwrap().label(), long);
    assert_eq!(Facade::new(&secret(), "u").unwrap().label(), "u");

    let error = Facade::new(&secret(), "").unwrap_err();
    assert_eq!(error, FacadeError::EmptyLabel);
    let error = Facade::new(&secret(), &format!("{long}u")).unwrap_err();
    assert_eq!(error, FacadeError::LabelTooLong { bytes: 65 });
}

#[test]
fn a_facade_shows_its_label_and_no_key() {
    assert_eq!(
        format!("{:?}", facade("users")),
        r#"Facade { label: "users", .. }"#
    );
    let public = PublicId::from_u64(6_734_134_693_336_881_522);
    assert_eq!(format!("{public:?}"), "PublicId(5qt3jqccvl6bi)");
}

#[cfg(feature = "serde")]
#[test]
fn a_public_id_is_text_for_people_and_a_number_for_machines() {
    use serde_test::{Configure, Token, assert_tokens};

    let public = PublicId::from_u64(6_734_134_693_336_881_522);
    assert_tokens(&public.readable(), &[Token::Str("5qt3jqccvl6bi")]);
    assert_tokens(&public.compact(), &[Token::U64(6_734_134_693_336_881_522)]);
}
