//! The prefix of a kind, checked while the program is compiled.

/// In bytes.
pub(super) const MAX_LENGTH: usize = 63;

/// Between the prefix and the digits.
pub(super) const SEPARATOR: char = '_';

/// Fails the build unless `prefix` is one.
pub(super) const fn check(prefix: &str) {
    let bytes = prefix.as_bytes();
    let length = bytes.len();
    assert!(
        0 < length && length <= MAX_LENGTH,
        "`IdKind::PREFIX` has 1 to 63 characters"
    );
    assert!(
        bytes[0].is_ascii_lowercase(),
        "`IdKind::PREFIX` begins with one of a-z"
    );
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        assert!(
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_',
            "`IdKind::PREFIX` has only a-z, 0-9 and _"
        );
        rest = tail;
    }
    assert!(
        bytes[length - 1] != b'_',
        "`IdKind::PREFIX` does not end in _"
    );
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use proptest::prelude::*;

    use super::*;

    fn is_accepted(prefix: &str) -> bool {
        catch_unwind(|| check(prefix)).is_ok()
    }

    #[test]
    fn a_prefix_is_lowercase_and_begins_with_a_letter() {
        let longest = "a".repeat(MAX_LENGTH);
        for prefix in ["a", "user", "line_item", "a__b", "v2", &longest] {
            assert!(is_accepted(prefix), "{prefix}");
        }
        let too_long = "a".repeat(MAX_LENGTH + 1);
        for prefix in [
            "", "_a", "a_", "_", "2a", "User", "a-b", "a b", "é", &too_long,
        ] {
            assert!(!is_accepted(prefix), "{prefix}");
        }
    }

    proptest! {
        #[test]
        fn each_character_of_a_prefix_is_judged(middle in "[a-z0-9_]{0,30}", other: char) {
            let prefix = format!("a{middle}z");
            prop_assert!(is_accepted(&prefix));
            let is_allowed = matches!(other, 'a'..='z' | '0'..='9' | '_');
            prop_assert_eq!(is_accepted(&format!("a{middle}{other}z")), is_allowed);
        }
    }
}
