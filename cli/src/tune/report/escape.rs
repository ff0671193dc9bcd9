//! Text from outside, made safe for a page.

use std::fmt;

/// Shows as `text` in an element or in a quoted attribute, whatever it holds.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // No page may hold the others.
                _ if character.is_control() && !"\t\n\r".contains(character) => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?
                }
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_opens_an_element_or_ends_an_attribute(text in "(.|[<>&\"'\\x00-\\x1f])*") {
            let safe = Escaped(&text).to_string();
            prop_assert!(!safe.contains(['<', '>', '"', '\'', '\0']));
            let back = safe
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&amp;", "&");
            let shown = |c: char| if c.is_control() && !"\t\n\r".contains(c) { '\u{fffd}' } else { c };
            prop_assert_eq!(back, text.chars().map(shown).collect::<String>());
        }
    }
}
