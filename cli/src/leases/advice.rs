//! What to do about a store's refusal, in the words of the command line.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use anyhow::Result;
use ringflake::lease::{Fence, Fingerprint, Obstacle, OpenOptions, SqliteStore, StoreError};
use ringflake::local;
use ringflake::{IdWidth, Layout, LocalError, Secret};

use crate::args::{KeyArgs, TargetArgs};
use crate::data_dir::DataDir;
use crate::secret;
use crate::units;

/// The layout and the key, as a command line names them.
pub(super) fn words_of(args: &TargetArgs) -> String {
    let layout = args.layout.layout;
    let mut words = String::new();
    if layout != Layout::RANDFLAKE {
        words += " --layout ";
        words += &layout
            .name()
            .map_or_else(|| layout.to_string(), str::to_owned);
    }
    if args.key.plain {
        words += " --plain";
    } else if let Some(path) = &args.key.secret.secret_file {
        words += &format!(" --secret-file {}", quoted(path.display()));
    }
    if args.key.id_width != IdWidth::Full {
        words += &format!(" --id-width {}", args.key.id_width);
    }
    words
}

/// What to do about a refusal, in the words of the command line.
#[derive(Debug)]
pub(super) struct Advice {
    /// What names the target on a command line.
    words: String,
    /// The words behind `raise-floor --over-lost-grants` that adopt a copy: those of the target,
    /// or `--all` and the file's place.
    adopted: String,
    is_embedded: bool,
    key: KeyArgs,
    data_dir: DataDir,
}

impl Advice {
    pub(super) fn new(key: &KeyArgs, data_dir: &DataDir, words: String, is_embedded: bool) -> Self {
        Self {
            adopted: words.clone(),
            words,
            is_embedded,
            key: key.clone(),
            data_dir: data_dir.clone(),
        }
    }

    /// For a file, named by these words, that holds every namespace it knows by itself.
    pub(super) fn of_file(mut self, file: &str) -> Self {
        self.adopted = format!(" --all{file}");
        self
    }

    pub(super) fn obstacle(&self, obstacle: &Obstacle) -> String {
        match obstacle {
            Obstacle::Copied => format!(
                "{obstacle}: 'ringflake store raise-floor --over-lost-grants{}'",
                self.adopted
            ),
            Obstacle::Exhausted { quarantined: 1.. } => {
                format!("{obstacle}: 'ringflake store repair{}'", self.words)
            }
            _ => obstacle.to_string(),
        }
    }

    pub(super) fn store(&self, error: Arc<StoreError>) -> anyhow::Error {
        let text = self.advice(&error).unwrap_or_else(|| error.to_string());
        Explained { text, error }.into()
    }

    pub(super) fn local(&self, error: LocalError) -> anyhow::Error {
        let words = &self.words;
        match error {
            LocalError::Store(error) => self.store(error.into()),
            LocalError::Copied { directory } => anyhow::anyhow!(
                "{} is a copy, and IDs of this layout may have been made from the original: go \
                 back to that, or, if nobody can use it any more, run 'ringflake store raise-floor \
                 --over-lost-grants --all --data-dir {}'",
                directory.display(),
                quoted(directory.display())
            ),
            LocalError::NoSecret { namespace, path } => anyhow::anyhow!(
                "namespace {namespace} has no secret yet in {}: 'ringflake generate{words}' makes \
                 one; to read IDs that were made in another directory, name that with --data-dir",
                path.display()
            ),
            LocalError::OtherWidth {
                namespace,
                recorded,
                given,
            } => anyhow::anyhow!(
                "namespace {namespace} was made for IDs of {} bits, and with one secret those of \
                 {} would meet them: give --id-width {recorded}, or, for {given}, another \
                 --namespace, which has a secret of its own",
                recorded.bits(),
                given.bits()
            ),
            LocalError::SecretBrought { path, directory } => anyhow::anyhow!(
                "this secret, {}, was not made in {}, or was given to a store since, and IDs may be \
                 made with it elsewhere: where they are, share a store with --store; where nobody \
                 else makes any with it, say so once: 'ringflake store init --history new{words}' if \
                 nobody ever has, and else '--history unknown'",
                path.map_or_else(
                    || secret::source(&self.key, &self.data_dir),
                    |path| path.display().to_string()
                ),
                directory.display()
            ),
            LocalError::SecretUsed {
                namespace,
                directory,
            } => anyhow::anyhow!(
                "IDs are made with this secret, {}, from leases.db in {} (namespace {namespace}), \
                 and with leases of the store as well they would come twice: give the store a \
                 secret of its own with --secret-file ('ringflake keygen --out FILE' makes one), \
                 or, to go on in the store for good, end all that use the directory, move it \
                 away, and use the secret in it",
                secret::source(&self.key, &self.data_dir),
                directory.display()
            ),
            error => error.into(),
        }
    }

    /// Refuses a secret for a store that makes IDs from the data directory.
    pub(super) fn refuse_used(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
        self.beside(secret, url, local::DataDir::refuse_used)
    }

    /// Sees that no IDs are made from the data directory with the secret of a store.
    pub(super) fn give_away(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
        self.beside(secret, url, local::DataDir::give_away)
    }

    /// Does something about the data directory, unless the store is the one in there.
    fn beside(
        &self,
        secret: Option<&Secret>,
        url: &str,
        work: impl FnOnce(&local::DataDir, &Secret) -> Result<(), LocalError>,
    ) -> Result<()> {
        let (Some(secret), Some(directory)) = (secret, self.data_dir.try_find()) else {
            return Ok(());
        };
        if let Ok(store) = SqliteStore::from_url(url, &OpenOptions::new())
            && let (Ok(store), Ok(kept)) = (
                store.path().canonicalize(),
                directory.leases().canonicalize(),
            )
            && store == kept
        {
            return Ok(());
        }
        match work(&directory, secret) {
            // This user makes no IDs there.
            Err(LocalError::Directory { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied
                    || source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
            {
                Ok(())
            }
            outcome => outcome.map_err(|error| self.local(error)),
        }
    }

    /// The width of IDs for which the secret at hand is on record.
    fn other_width(
        &self,
        namespace: &str,
        recorded: Fingerprint,
        offered: Fingerprint,
    ) -> Option<IdWidth> {
        let file = |print| secret::file_with(print, namespace, &self.key, &self.data_dir);
        let ((on_record, width), (at_hand, _)) = file(recorded).zip(file(offered))?;
        (on_record == at_hand).then_some(width)
    }

    /// The advice for another secret or another width on record.
    fn other_fingerprint(
        &self,
        namespace: &str,
        recorded: Fingerprint,
        offered: Fingerprint,
    ) -> String {
        if let Some(width) = self.other_width(namespace, recorded, offered) {
            return format!(
                "namespace {namespace} was initialised for IDs of {} bits: give --id-width \
                 {width}; IDs of another width need another --namespace and another secret",
                width.bits()
            );
        }
        format!(
            "namespace {namespace} belongs to another secret (its fingerprint is {recorded}) \
             than {} ({offered}): {}, or choose a {} of its own for this one",
            secret::source(&self.key, &self.data_dir),
            self.other_secret(namespace, recorded),
            if self.is_embedded {
                "--data-dir"
            } else {
                "--namespace"
            }
        )
    }

    /// The rest of what is said of another secret on record.
    fn other_secret(&self, namespace: &str, recorded: Fingerprint) -> String {
        if recorded == Fingerprint::PLAIN {
            return "its IDs are plain: give --plain".to_owned();
        }
        match secret::file_with(recorded, namespace, &self.key, &self.data_dir) {
            Some((path, width)) if width != self.key.id_width => format!(
                "it is the one in {} for --id-width {width}: give both",
                path.display()
            ),
            Some((path, _)) => format!("it is the one in {}: give that", path.display()),
            None => "give that one with --secret-file".to_owned(),
        }
    }

    /// In the words of the command line; none where the store's own will do.
    fn advice(&self, error: &StoreError) -> Option<String> {
        let words = &self.words;
        let is_embedded = self.is_embedded;
        Some(match error {
            StoreError::NotInitialised { namespace } => format!(
                "the store has no namespace {namespace}: run 'ringflake store init --history \
                 new{words}' if no ID was made in it yet, and else with '--history unknown'"
            ),
            StoreError::AlreadyInitialised { namespace } => format!(
                "the store has a namespace {namespace} already: use it; 'ringflake store \
                 check{words}' tells how it stands"
            ),
            StoreError::FingerprintMismatch {
                namespace,
                recorded,
                offered,
            } => self.other_fingerprint(namespace, *recorded, *offered),
            StoreError::LayoutMismatch {
                namespace,
                recorded,
                offered,
            } => format!(
                "namespace {namespace} was initialised as {recorded}, not as {offered}: give \
                 --layout and --block-bits as they were, or choose another --namespace, with a \
                 secret of its own"
            ),
            StoreError::SecretInUse { namespace, other } if namespace == other => format!(
                "namespace {namespace} had this secret for IDs of another width before its record \
                 was lost, and with one secret IDs of both widths could be the same: give --id-width \
                 as it was and '--history unknown', or another secret with --secret-file \
                 ('ringflake keygen --out FILE' makes one)"
            ),
            StoreError::SecretInUse { namespace, other } => format!(
                "the secret of namespace {namespace} is that of namespace {other} already, and with \
                 one secret both could make the same IDs: {}",
                if is_embedded {
                    "give --namespace, which has a secret of its own, or another one with \
                     --secret-file ('ringflake keygen --out FILE' makes one)"
                } else {
                    "give another one with --secret-file ('ringflake keygen --out FILE' makes one), \
                     or use that --namespace"
                }
            ),
            StoreError::HistoryUnknown { namespace, reason } => format!(
                "the store has no namespace {namespace}, and may have lost it: {reason}; run \
                 'ringflake store init --history unknown{words}', or, if no ID was ever made in \
                 it, the same with '--history new'"
            ),
            StoreError::FloorTooFar { tick, .. } => {
                format!("{error}: 'ringflake store raise-floor --to-tick {tick} --force{words}'")
            }
            StoreError::NotQuarantined { .. } => {
                format!("{error}: 'ringflake store check{words}'")
            }
            StoreError::Fenced {
                fence: Fence::Quarantined { .. },
                block,
            } => format!("{error}: 'ringflake store repair --block {block}{words}'"),
            StoreError::NotDurable { store, reason } => format!(
                "{store} can lose what it has confirmed, and then IDs come twice: {reason}; or \
                 accept the risk with --best-effort"
            ),
            StoreError::Copied {
                store,
                recorded,
                found,
            } => format!(
                "{store} is a copy, or was put back to an earlier state: it was written for \
                 {recorded}, and this is {found}; go back to the original, or, if nobody can use \
                 that any more, run 'ringflake store raise-floor --over-lost-grants{}'",
                self.adopted
            ),
            StoreError::FloorAhead { retry_after, .. } => format!(
                "leases begin in {}, above all that may have been granted before: try again \
                 then, or wait with --wait",
                units::time(retry_after.as_secs_f64())
            ),
            StoreError::Exhausted { .. } if is_embedded => {
                "every node that may be used is held by another run: let that end, wait longer \
                 with --wait, or use other --nodes"
                    .to_owned()
            }
            _ => return None,
        })
    }
}

/// A store's error in the words of the command line.
#[derive(Debug)]
struct Explained {
    text: String,
    error: Arc<StoreError>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Explained {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The text is the store's own.
        self.error.source()
    }
}

/// A path, to be pasted into a shell.
pub(super) fn quoted(path: impl fmt::Display) -> String {
    let path = path.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        for (path, text) in [
            ("/a-b/c.d", "/a-b/c.d"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(path), text);
        }
    }
}
