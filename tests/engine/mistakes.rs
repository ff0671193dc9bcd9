//! Mistakes that other generators made, each rebuilt in miniature.
//!
//! A mistake has one check, which is run twice: against the miniature, where
//! it must find the mistake, and against this crate, where it must not. Races
//! in a miniature are stepped through by hand, so that it is always caught.
//!
//! Two mistakes have no miniature. An option that is documented and does nothing: each
//! one here does something, as its own file of `tests/engine` shows, or else `config.rs`.
//! A benchmark that returns a constant: each one here checks that its IDs are distinct,
//! in `benches/common/unique.rs`.

mod baidu;
mod guards;
mod randflake;

/// What a check finds wrong.
type Finding = Result<(), String>;

/// Fails unless the check found the mistake in the miniature, for the expected
/// reason, and nothing here.
#[track_caller]
fn assert_caught(mistaken: Finding, here: Finding, reason: &str) {
    let found = mistaken.expect_err("the check must catch the mistake");
    assert!(found.contains(reason), "caught for another reason: {found}");
    assert_eq!(here, Ok(()));
}
