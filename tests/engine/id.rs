//! The identifier and its text.

use proptest::prelude::*;
use ringflake::{Id, ParseIdError};
use ringflake_kit::known_answers;

/// The number of a text in base 32, if `Display` writes it that way; `from_str_radix` itself
/// is too lenient.
fn canonical(text: &str) -> Option<Id> {
    let id = Id::from_u64(u64::from_str_radix(text, 32).ok()?);
    (id.to_string() == text).then_some(id)
}

#[test]
fn the_vectors_agree_in_every_form() {
    let numbers = known_answers::numbers("id_u64");
    let signed = known_answers::column("id_i64");
    let texts = known_answers::column("id_base32hex");
    for ((number, signed), text) in numbers.into_iter().zip(signed).zip(texts) {
        let id = Id::from_u64(number);
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(id.to_i64().to_string(), signed);
        assert_eq!(Id::from_i64(signed.parse().unwrap()), id);
    }
}

#[test]
fn each_fault_is_named_with_its_place() {
    let invalid = |position, character| ParseIdError::InvalidCharacter {
        position,
        character,
    };
    for (text, error, position) in [
        ("", ParseIdError::Empty, 0),
        ("00", ParseIdError::LeadingZero, 0),
        ("0ae3", ParseIdError::LeadingZero, 0),
        ("A", invalid(0, 'A'), 0),
        ("ae3W", invalid(3, 'W'), 3),
        ("ae w", invalid(2, ' '), 2),
        ("+1", invalid(0, '+'), 0),
        ("-1", invalid(0, '-'), 0),
        ("1é2", invalid(1, 'é'), 1),
        ("12 ", invalid(2, ' '), 2),
        ("10======", invalid(2, '='), 2),
        ("g000000000000", ParseIdError::Overflow, 0),
        ("vvvvvvvvvvvvv", ParseIdError::Overflow, 0),
        ("10000000000000", ParseIdError::TooLong { bytes: 14 }, 13),
        ("fvvvvvvvvvvvvé", ParseIdError::TooLong { bytes: 15 }, 13),
    ] {
        assert_eq!(text.parse::<Id>(), Err(error), "{text:?}");
        assert_eq!(error.position(), position, "{text:?}");
        let named = match error {
            ParseIdError::Empty => "the text is empty".to_owned(),
            _ => format!("position {position}"),
        };
        assert!(error.to_string().contains(&named), "{error}");
    }
}

#[test]
fn only_an_uppercase_digit_is_told_its_lowercase() {
    let message = |text: &str| text.parse::<Id>().unwrap_err().to_string();
    let only = "only 0-9 and a-v";
    for (text, end) in [("1V", "use 'v'"), ("1W", only), ("1w", only)] {
        assert!(message(text).ends_with(end), "{}", message(text));
    }
}

#[test]
fn every_text_of_up_to_two_ascii_characters_is_judged_rightly() {
    let ascii = || (0..=127_u8).map(char::from);
    let singles = ascii().map(String::from);
    let pairs = ascii().flat_map(|first| ascii().map(move |second| format!("{first}{second}")));
    let mut accepted = 0;
    for text in singles.chain(pairs) {
        assert_eq!(text.parse().ok(), canonical(&text), "{text:?}");
        accepted += usize::from(text.parse::<Id>().is_ok());
    }
    assert_eq!(accepted, 32 + 31 * 32);
}

#[test]
fn display_pads_and_debug_names_the_type() {
    let id = Id::from_u64(32);
    assert_eq!(format!("{id:>5}|{id:<5}|{id:*^4}"), "   10|10   |*10*");
    assert_eq!(format!("{id:?}"), "Id(10)");
    assert_eq!(Id::default(), Id::from_u64(0));
}

#[test]
fn a_text_of_another_width_is_no_fixed_one() {
    for (text, error, position) in [
        ("", ParseIdError::TooShort { bytes: 0 }, 0),
        ("10", ParseIdError::TooShort { bytes: 2 }, 2),
        ("000000000010", ParseIdError::TooShort { bytes: 12 }, 12),
        ("00000000000010", ParseIdError::TooLong { bytes: 14 }, 13),
        ("g000000000000", ParseIdError::Overflow, 0),
    ] {
        assert_eq!(Id::from_fixed_text(text), Err(error), "{text:?}");
        assert_eq!(error.position(), position, "{text:?}");
        let named = format!("position {position}");
        assert!(error.to_string().contains(&named), "{error}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-v]{0,15}",
        "[0-9a-v]{13}",
        "[0-9a-zA-Z+ -]{0,4}",
        "\\PC{0,15}",
        any::<u64>().prop_map(|number| Id::from_u64(number).to_string().to_uppercase()),
        any::<u64>().prop_map(|number| format!("0{}", Id::from_u64(number))),
        any::<u64>().prop_map(|number| format!("{} ", Id::from_u64(number))),
    ]
}

proptest! {
    #[test]
    fn every_form_of_an_id_reads_back(number: u64) {
        let id = Id::from_u64(number);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(Id::from_i64(id.to_i64()), id);
        prop_assert_eq!(Id::from_le_bytes(id.to_le_bytes()), id);
        prop_assert_eq!(id.to_le_bytes(), number.to_le_bytes());
        prop_assert_eq!(u64::from(Id::from(number)), number);
        prop_assert_eq!(i64::from(id), number as i64);
        prop_assert_eq!(Id::from(number as i64), id);
        prop_assert_eq!(Id::from_be_bytes(id.to_be_bytes()), id);
        prop_assert_eq!(id.to_be_bytes(), number.to_be_bytes());
        prop_assert_eq!(Id::from_fixed_text(&id.to_fixed_text()), Ok(id));
        prop_assert_eq!(Id::try_from(id.to_string()), Ok(id));
    }

    #[test]
    fn the_text_is_the_number_in_base_32(number: u64) {
        let text = Id::from_u64(number).to_string();
        prop_assert_eq!(u64::from_str_radix(&text, 32), Ok(number));
        prop_assert!(text.len() == 1 || !text.starts_with('0'));
        prop_assert_eq!(text.to_lowercase(), text);
    }

    #[test]
    fn a_text_is_accepted_only_as_display_writes_it(text in texts()) {
        prop_assert_eq!(text.parse().ok(), canonical(&text));
        prop_assert_eq!(Id::try_from(&*text), text.parse());
    }

    #[test]
    fn a_fixed_text_is_the_other_with_leading_zeros(number: u64) {
        let id = Id::from_u64(number);
        let fixed = id.to_fixed_text();
        prop_assert_eq!(fixed.as_str(), format!("{:0>13}", id.to_string()));
        prop_assert_eq!(AsRef::<str>::as_ref(&fixed), fixed.as_str());
    }

    #[test]
    fn a_fixed_text_is_read_only_as_it_is_written(text in texts()) {
        let written = |id: &Id| id.to_fixed_text().as_str() == text;
        let expected = u64::from_str_radix(&text, 32).ok().map(Id::from_u64).filter(written);
        prop_assert_eq!(Id::from_fixed_text(&text).ok(), expected);
    }

    #[test]
    fn fixed_texts_order_as_the_numbers_do(left: u64, right: u64, shift in 0..64_u32) {
        // Of like and of unlike lengths.
        let (left, right) = (Id::from_u64(left >> shift), Id::from_u64(right));
        let (a, b) = (left.to_fixed_text(), right.to_fixed_text());
        prop_assert_eq!(a.cmp(&b), left.cmp(&right));
        prop_assert_eq!(a.as_str().cmp(b.as_str()), left.cmp(&right));
    }

    #[test]
    fn a_fault_is_placed_within_the_text(text in texts()) {
        if let Err(error) = text.parse::<Id>() {
            prop_assert!(text.is_char_boundary(error.position()));
            if let ParseIdError::InvalidCharacter { position, character } = error {
                prop_assert_eq!(text[position..].chars().next(), Some(character));
            }
        }
    }
}
