//! The driver's errors as failures of a step.

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use super::wire::TimedOut;
use crate::lease::stores::sql::{Failure, Stage};

/// Whether the server says so, and goes on.
pub(super) fn was_spoken(error: &Error) -> bool {
    error.as_db_error().is_some_and(|reply| !ends(reply))
}

/// Whether an error ends the connection, and may have nothing to do with the
/// statement that it answers.
pub(super) fn ends(error: &DbError) -> bool {
    error.parsed_severity() != Some(Severity::Error)
}

pub(super) fn in_doubt(late: TimedOut) -> Failure {
    Failure::silence(Stage::Commit, late.into())
}

pub(super) fn silent(late: TimedOut) -> Failure {
    Failure::silence(Stage::Before, late.into())
}
