//! Failures of a step: the meaning of a server's refusal, and the error that follows.

use std::error::Error;

use crate::lease::error::StoreError;

/// The driver's error, or a text of our own.
pub(in crate::lease::stores) type Cause = Box<dyn Error + Send + Sync>;

/// How far a transaction had come when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Stage {
    /// The commit was not sent, or can't be reached any more.
    Before,
    /// The commit failed, or a statement that commits by itself.
    Commit,
}

/// The meaning of a server's error code at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Verdict {
    /// Rolled back for the sake of another transaction.
    Again,
    /// A table is missing.
    NoTable,
    /// A row with this key is there.
    Duplicate,
    /// The tables, or what is in them, are not ours.
    Corrupt,
    /// Certainly nothing was done.
    NotDone,
    /// Perhaps it was done.
    Unknown,
}

/// Why a step of an operation did not come to its end.
#[derive(Debug)]
pub(in crate::lease::stores) enum Failure {
    /// The rules say no.
    Refused(StoreError),
    /// The same again may succeed.
    Again(Cause),
    /// The tables or the record are missing.
    NoTable,
    /// A row is there already: the record, if it was to be made.
    Duplicate(Cause),
    /// Certainly nothing was done.
    NotDone(Cause),
    /// The server let nobody in.
    Denied(Cause),
    /// Perhaps it was done.
    Unknown(Cause),
}

impl Failure {
    /// The server said so.
    pub(in crate::lease::stores) fn of(verdict: Verdict, cause: Cause) -> Self {
        match verdict {
            Verdict::Again => Self::Again(cause),
            Verdict::NoTable => Self::NoTable,
            Verdict::NotDone => Self::NotDone(cause),
            Verdict::Unknown => Self::Unknown(cause),
            Verdict::Duplicate => Self::Duplicate(cause),
            Verdict::Corrupt => Self::Refused(not_ours(cause)),
        }
    }

    /// The server said nothing, or nothing that makes sense.
    pub(in crate::lease::stores) fn silence(stage: Stage, cause: Cause) -> Self {
        match stage {
            Stage::Before => Self::NotDone(cause),
            Stage::Commit => Self::Unknown(cause),
        }
    }

    /// Of a table that is missing when the record was just read.
    pub(super) fn with_the_record_there(self) -> Self {
        match self {
            Self::NoTable => Self::Refused(StoreError::Corrupt {
                detail: "the record is there, but a table is missing".to_owned(),
                source: None,
            }),
            other => other,
        }
    }

    /// Whether the connection can be used again after a rollback.
    pub(super) fn connection_usable(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Again(_) | Self::NoTable | Self::Duplicate(_) => true,
            Self::NotDone(_) | Self::Denied(_) | Self::Unknown(_) => false,
        }
    }

    /// The error that the caller gets.
    pub(super) fn into_store_error(self, operation: &'static str, namespace: String) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::NoTable => StoreError::NotInitialised { namespace },
            Self::Duplicate(cause) => not_ours(cause),
            Self::Again(source) | Self::NotDone(source) => StoreError::Unavailable { source },
            Self::Denied(source) => StoreError::Denied { source },
            Self::Unknown(source) => StoreError::Ambiguous { operation, source },
        }
    }
}

fn not_ours(cause: Cause) -> StoreError {
    StoreError::Corrupt {
        detail: "the server refuses a statement that its tables should allow".to_owned(),
        source: Some(cause),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_to_be_committed_can_be_in_doubt() {
        let silence =
            |stage| Failure::silence(stage, "cut".into()).into_store_error("renew", "a".into());
        assert!(matches!(
            silence(Stage::Before),
            StoreError::Unavailable { .. }
        ));
        assert!(matches!(
            silence(Stage::Commit),
            StoreError::Ambiguous {
                operation: "renew",
                ..
            }
        ));
    }

    #[test]
    fn the_connection_is_kept_only_if_the_server_surely_answered() {
        assert!(Failure::Again("deadlock".into()).connection_usable());
        assert!(!Failure::NotDone("cut".into()).connection_usable());
        assert!(!Failure::Denied("no".into()).connection_usable());
        assert!(!Failure::Unknown("cut".into()).connection_usable());
    }
}
