//! Errors for operators: all their causes on one line of the log, and what to do about those of the
//! library, in the words of the server's settings.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;

use ringflake::lease::StoreError;
use ringflake::{BuildError, LocalError};

/// The error and its sources, each behind a colon.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

/// What to do about a generator that could not be built.
pub(crate) fn help_of_build(error: &BuildError) -> Option<String> {
    Some(match error {
        BuildError::Local(error) => return help_of_local(error),
        BuildError::Store(error) | BuildError::NoLeaseYet { error, .. } => {
            return help_of_store(error);
        }
        BuildError::LayoutTooWide { width, .. } => {
            format!("use another layout, or leave out id-width = \"{width}\"")
        }
        BuildError::EncryptionWidens { .. } => {
            "set id-width = \"js-safe\" or plain = true; if 64 bits are fine, use a wider layout"
                .to_owned()
        }
        error => return error.help().map(str::to_owned),
    })
}

/// What to do about a data directory that can't be used.
pub(crate) fn help_of_local(error: &LocalError) -> Option<String> {
    Some(match error {
        LocalError::NoHome => "set data-dir to a directory".to_owned(),
        LocalError::Directory { source, .. } if source.kind() != ErrorKind::TimedOut => {
            "give this user write permission and check that the disk has free space, or set \
             data-dir to another directory"
                .to_owned()
        }
        LocalError::Store(StoreError::NotDurable { .. }) => {
            "set data-dir to a directory on a local disk, or accept the risk with best-effort = \
             true"
                .to_owned()
        }
        LocalError::Store(error) => return help_of_store(error),
        LocalError::Copied { directory } => format!(
            "go back to the original; if nobody can use it any more, run 'ringflake store \
             raise-floor --over-lost-grants --all --data-dir {}'",
            directory.display()
        ),
        LocalError::OtherWidth { recorded, .. } => {
            format!("set id-width = \"{recorded}\", or use another name, which has its own secret")
        }
        LocalError::SecretBrought { directory, .. } => format!(
            "if other programs use the secret with a store, set store to that store; if all of them \
             have stopped for good, run once 'ringflake store init --data-dir {} --namespace NAME \
             --history unknown', or the same with '--history new' if no ID with a present or future \
             time was issued with the secret",
            directory.display()
        ),
        error => return error.help().map(str::to_owned),
    })
}

/// What to do about a store that grants nothing.
pub(crate) fn help_of_store(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::NotDurable { .. } => {
            "change that setting of the store, or accept the risk with best-effort = true"
        }
        StoreError::NotInitialised { namespace } | StoreError::HistoryUnknown { namespace, .. } => {
            return Some(format!(
                "run 'ringflake store init --store URL --namespace {namespace} --secret-file FILE \
                 --history unknown' with the namespace's store and secret, and its layout and ID \
                 width if they are set; with '--history new' only if no ID with a present or \
                 future time was issued with this layout and secret"
            ));
        }
        StoreError::FingerprintMismatch { .. } => {
            "set secret-file and id-width as they were when it was initialised, or use another \
             namespace with another secret"
        }
        error => error.help()?,
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::namespaces::OpenError;

    #[test]
    fn each_cause_is_there_once() {
        let source = io::Error::other("no such thing").into();
        let path = "store.url".into();
        let error = OpenError::UrlFile { path, source };
        let text = Causes(&error).to_string();
        assert_eq!(text, "store.url can't be read: no such thing");
        let alone = OpenError::Stopping;
        assert_eq!(Causes(&alone).to_string(), alone.to_string());
    }
}
