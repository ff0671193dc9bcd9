//! The driver's errors as failures of a step.

use std::io;

use mysql::Error;

use super::errno::{is_denial, verdict};
use crate::lease::stores::sql::{Cause, Failure, Stage};

/// A server that was reached may have let nobody in.
pub(super) fn no_connection(error: Error) -> Failure {
    match error {
        Error::MySqlError(reply) if is_denial(reply.code) => {
            Failure::Denied(Error::MySqlError(reply).into())
        }
        error => before(error),
    }
}

pub(super) fn silent(error: io::Error) -> Failure {
    Failure::silence(Stage::Before, error.into())
}

pub(super) fn before(error: Error) -> Failure {
    failure(error, Stage::Before)
}

pub(super) fn failure(error: Error, stage: Stage) -> Failure {
    let verdict = match &error {
        Error::MySqlError(reply) => Some(verdict(reply.code, stage)),
        _ => None,
    };
    let cause: Cause = error.into();
    match verdict {
        Some(verdict) => Failure::of(verdict, cause),
        None => Failure::silence(stage, cause),
    }
}
