//! Errors of the library in the words of the server's settings: its own name Rust items, which
//! operators don't have.

use std::fmt;

use ringflake::lease::StoreError;
use ringflake::{BuildError, LocalError};

/// An error, displayed for an operator.
pub(crate) struct ForOperators<'a, E>(pub(crate) &'a E);

impl fmt::Display for ForOperators<'_, BuildError> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BuildError::Local(error) => ForOperators(error).fmt(f),
            BuildError::Store(error) => ForOperators(error).fmt(f),
            BuildError::NoLeaseYet { waited, error } => {
                write!(f, "no lease came within {:.1} s: ", waited.as_secs_f64())?;
                ForOperators(error).fmt(f)
            }
            BuildError::LayoutTooWide { bits, width } => write!(
                f,
                "a layout of {bits} bits does not fit IDs of {} bits: choose another layout, or \
                 leave out id-width = \"{width}\"",
                width.bits()
            ),
            BuildError::EncryptionWidens { bits, width } => write!(
                f,
                "a layout of {bits} bits fits a double, but encrypted IDs have {} bits: set \
                 id-width = \"js-safe\" or plain = true, or choose another layout",
                width.bits()
            ),
            error => error.fmt(f),
        }
    }
}

impl fmt::Display for ForOperators<'_, LocalError> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LocalError::Store(StoreError::NotDurable { store, reason }) => write!(
                f,
                "{store} can lose what it has confirmed, and then IDs come twice: {reason}; set \
                 data-dir to a directory on a local disk, or accept the risk with \
                 best-effort = true"
            ),
            LocalError::Store(error) => ForOperators(error).fmt(f),
            LocalError::OtherWidth {
                namespace,
                recorded,
                given,
            } => write!(
                f,
                "namespace {namespace:?} was made for IDs of {} bits, not of {}, and with one \
                 secret IDs of both would come twice: set id-width = \"{recorded}\", or use \
                 another name, which has a secret of its own",
                recorded.bits(),
                given.bits()
            ),
            LocalError::SecretBrought { path, directory } => {
                let secret = path
                    .as_ref()
                    .map_or_else(String::new, |path| format!(" {}", path.display()));
                write!(
                    f,
                    "the secret{secret} was not made in {0}, or was given to a store since, and \
                     other programs may make IDs with it: share a store with them (store), or, if \
                     there are none, run once 'ringflake store init --data-dir {0} --namespace \
                     NAME --history new' if no ID was ever made with it, and else with \
                     '--history unknown'",
                    directory.display()
                )
            }
            error => error.fmt(f),
        }
    }
}

impl fmt::Display for ForOperators<'_, StoreError> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            StoreError::NotDurable { store, reason } => write!(
                f,
                "{store} can lose what it has confirmed, and then IDs come twice: {reason}; \
                 change that setting of the store, or accept the risk with best-effort = true"
            ),
            StoreError::HistoryUnknown { namespace, reason } => write!(
                f,
                "the store has no namespace {namespace:?}, and may have lost it: {reason}; run \
                 'ringflake store init --history unknown', or '--history new' if no ID was ever \
                 made in it"
            ),
            // The rest of these names an item of the library in brackets.
            StoreError::FingerprintMismatch { .. } | StoreError::SecretInUse { .. } => {
                f.write_str(&self.0.to_string().replace(" (`id_width`)", " (id-width)"))
            }
            error => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringflake::IdWidth;

    use super::*;

    #[test]
    fn no_error_names_an_item_of_the_library() {
        let not_durable = || StoreError::NotDurable {
            store: "leases.db".into(),
            reason: "it is in memory".into(),
        };
        let unknown = StoreError::HistoryUnknown {
            namespace: "orders".into(),
            reason: "its file is new".into(),
        };
        let no_lease = |error| BuildError::NoLeaseYet {
            waited: Duration::from_secs(5),
            error,
        };
        let (positive, full) = (IdWidth::Positive, IdWidth::Full);
        let other_width = LocalError::OtherWidth {
            namespace: "orders".into(),
            recorded: positive,
            given: full,
        };
        let too_wide = BuildError::LayoutTooWide {
            bits: 64,
            width: positive,
        };
        let widens = BuildError::EncryptionWidens {
            bits: 53,
            width: full,
        };
        let local = |error| BuildError::Local(error);
        let brought = |path: Option<&str>| LocalError::SecretBrought {
            path: path.map(Into::into),
            directory: "/var/lib/ringflake".into(),
        };
        for (error, said) in [
            (local(LocalError::Store(not_durable())), "data-dir"),
            (BuildError::Store(not_durable()), "best-effort = true"),
            (no_lease(not_durable()), "best-effort = true"),
            (no_lease(unknown), "--history unknown"),
            (local(brought(Some("a.secret"))), "--history unknown"),
            (local(brought(None)), "--history unknown"),
            (local(other_width), "id-width = \"positive\""),
            (too_wide, "id-width = \"positive\""),
            (widens, "id-width = \"js-safe\""),
        ] {
            let text = ForOperators(&error).to_string();
            assert!(text.contains(said), "{said} is not in: {text}");
            assert!(!text.contains('`') && !text.contains("::"), "{text}");
        }
    }
}
