//! Why a server did not do what it was asked for, and what may have been done.

use std::error::Error;

use crate::lease::error::StoreError;

/// The driver's error, or a text of our own.
pub(in crate::lease) type Cause = Box<dyn Error + Send + Sync>;

/// How far a transaction was when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The commit was not sent, or had nothing to commit.
    Before,
    /// The commit failed.
    Commit,
}

impl Stage {
    /// The verdict where the server returned nothing, or nothing that says what was done.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Before => Failure::NotDone,
            Self::Commit => Failure::Unknown,
        }
    }
}

/// The failure that an error code stands for, once it has its cause.
pub(super) type Verdict = fn(Cause) -> Failure;

/// Why a step was not completed.
#[derive(Debug)]
pub(in crate::lease) enum Failure {
    /// Rolled back; the same transaction may succeed if it is repeated.
    Again(Cause),
    /// A table is missing.
    NoTable(Cause),
    /// Not all rows were as expected, and nothing was written.
    Short(Cause),
    /// The table can't be used as it is.
    Refused(StoreError),
    /// Certainly nothing was done.
    NotDone(Cause),
    /// The login was refused, or is missing.
    Denied(Cause),
    /// Perhaps it was done.
    Unknown(Cause),
}

impl Failure {
    /// The server returned nothing, or nothing that makes sense.
    pub(super) fn silence(stage: Stage, cause: Cause) -> Self {
        stage.verdict()(cause)
    }

    /// The tables, or what is in them, are not ours.
    pub(super) fn rejected(cause: Cause) -> Self {
        let detail = "the server rejects a statement that its tables should allow";
        Self::corrupt(detail, Some(cause))
    }

    pub(super) fn not_done(cause: impl Into<Cause>) -> Self {
        Self::NotDone(cause.into())
    }

    pub(super) fn corrupt(detail: impl Into<String>, source: Option<Cause>) -> Self {
        Self::Refused(StoreError::Corrupt {
            detail: detail.into(),
            source,
        })
    }

    /// Whether the connection can be used again after a rollback.
    pub(super) fn keeps_connection(&self) -> bool {
        match self {
            Self::Again(_) | Self::NoTable(_) | Self::Short(_) => true,
            // A server that is not durable is judged again by the next connection, and a reply
            // that makes no sense may belong to another request.
            Self::Refused(_) => false,
            Self::NotDone(_) | Self::Denied(_) | Self::Unknown(_) => false,
        }
    }

    /// The error of a call that has not committed.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Denied(cause) => StoreError::Denied { source: cause },
            Self::NoTable(cause) => StoreError::TableMissing { source: cause },
            Self::Short(cause) => StoreError::Corrupt {
                detail: "the database does not keep all rows that are written".to_owned(),
                source: Some(cause),
            },
            Self::Again(cause) | Self::NotDone(cause) | Self::Unknown(cause) => {
                StoreError::Unavailable { source: cause }
            }
        }
    }
}

/// The name of the failure.
#[cfg(test)]
pub(super) fn name_of(verdict: Verdict) -> String {
    let text = format!("{:?}", verdict("cause".into()));
    text.split('(').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_commit_that_was_sent_can_be_in_doubt() {
        let silence = |stage| Failure::silence(stage, "cut".into());
        assert!(matches!(silence(Stage::Before), Failure::NotDone(_)));
        assert!(matches!(silence(Stage::Commit), Failure::Unknown(_)));
    }

    #[test]
    fn the_connection_is_kept_only_after_a_definite_reply() {
        assert!(Failure::Again("deadlock".into()).keeps_connection());
        assert!(Failure::NoTable("none".into()).keeps_connection());
        assert!(!Failure::corrupt("no reply of ours", None).keeps_connection());
        assert!(!Failure::NotDone("cut".into()).keeps_connection());
        assert!(!Failure::Denied("no".into()).keeps_connection());
        assert!(!Failure::Unknown("cut".into()).keeps_connection());
    }
}
