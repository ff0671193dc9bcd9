//! IDs as text, with prefixes as those of the Rust library's `TypedId`.

use engine::Id;

use crate::error::{Failure, Kind, Outcome};

const SEPARATOR: char = '_';
const MAX_PREFIX: usize = 63;

/// The text of an ID.
pub(crate) fn write(id: Id, prefix: Option<&str>) -> Outcome<String> {
    let Some(prefix) = prefix else {
        return Ok(id.to_string());
    };
    check_prefix(prefix)?;
    Ok(format!("{prefix}{SEPARATOR}{id}"))
}

/// The ID of a text that [`write`] made with the same prefix.
pub(crate) fn parse(text: &str, prefix: Option<&str>) -> Outcome<Id> {
    let digits = match prefix {
        None => text,
        Some(prefix) => {
            check_prefix(prefix)?;
            match text.rsplit_once(SEPARATOR) {
                Some((found, digits)) if found == prefix => digits,
                Some((found, _)) => {
                    let found: String = found.chars().take(MAX_PREFIX).collect();
                    return Err(Failure::new(
                        Kind::Parse,
                        format!(
                            "the prefix is {found:?}, but {prefix:?} is expected before the last \
                             {SEPARATOR:?}"
                        ),
                    ));
                }
                None => {
                    return Err(Failure::new(
                        Kind::Parse,
                        format!(
                            "the text has no prefix: it must start with \"{prefix}{SEPARATOR}\""
                        ),
                    ));
                }
            }
        }
    };
    Ok(digits.parse::<Id>()?)
}

fn check_prefix(prefix: &str) -> Outcome<()> {
    let bytes = prefix.as_bytes();
    let is_valid = (1..=MAX_PREFIX).contains(&bytes.len())
        && bytes[0].is_ascii_lowercase()
        && !prefix.ends_with(SEPARATOR)
        && bytes
            .iter()
            .all(|&byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    match is_valid {
        true => Ok(()),
        false => Err(Failure::new(
            Kind::Config,
            format!(
                "`prefix` is wrong: give 1 to {MAX_PREFIX} of a-z, 0-9 and _, the first one a \
                 letter and the last one not _"
            ),
        )),
    }
}
