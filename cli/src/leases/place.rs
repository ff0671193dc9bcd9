//! Which namespace of which store, as the command line says it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use ringflake::lease::{
    Fingerprint, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore, StoreError,
    StoreRecord,
};
use ringflake::local::{self, LocalSpace};
use ringflake::{Layout, Local, LocalError, Secret};

use crate::args::{KeyArgs, PlaceArgs};
use crate::data_dir::DataDir;
use crate::report::say;
use crate::secret::{self, Key};
use crate::usage::Misuse;

/// A namespace in a store, with the key of its IDs.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) namespace: Namespace,
    pub(crate) key: Key,
    pub(super) site: Site,
    options: OpenOptions,
    advice: Advice,
}

/// Where a store is.
pub(super) enum Site {
    DataDir(Box<LocalSpace>),
    /// May hold a password.
    Url(String),
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DataDir(_) => "DataDir",
            Self::Url(_) => "Url",
        })
    }
}

/// What the place is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To make IDs. In the data directory all that is missing is made; those who
    /// share a store have to share a secret, so there it must be known.
    MakeIds,
    /// To make the namespace's record by hand.
    Initialise,
    /// To look after it. The secret must be known.
    LookAfter,
}

impl Place {
    /// The place to make IDs from.
    pub(crate) fn to_make_ids(args: &PlaceArgs, data_dir: &DataDir) -> Result<Self> {
        Self::find(args, data_dir, Purpose::MakeIds)
    }

    /// The place to make a record in.
    pub(crate) fn to_initialise(args: &PlaceArgs, data_dir: &DataDir) -> Result<Self> {
        Self::find(args, data_dir, Purpose::Initialise)
    }

    /// The place to look after.
    pub(crate) fn to_look_after(args: &PlaceArgs, data_dir: &DataDir) -> Result<Self> {
        Self::find(args, data_dir, Purpose::LookAfter)
    }

    /// The key of the IDs in a namespace of the data directory.
    pub(crate) fn key_of(
        name: &str,
        args: &KeyArgs,
        layout: &Layout,
        data_dir: &DataDir,
    ) -> Result<Key> {
        let local = named(name, args, layout, data_dir)?;
        let advice = Advice::new(args, data_dir, format!(" --namespace {name}"), true);
        let secret = local.secret(layout).map_err(|error| advice.local(error))?;
        Ok(secret.map_or(Key::Plain, Key::Secret))
    }

    fn find(args: &PlaceArgs, data_dir: &DataDir, purpose: Purpose) -> Result<Self> {
        let (store, layout) = (&args.store, &args.layout.layout);
        let options = OpenOptions::new().accept_best_effort(store.accepts_best_effort()?);
        match (store.url(), &store.namespace) {
            (None, _) if store.block_bits.is_some() => Err(misuse(
                "--block-bits is about a --store; leases.db has blocks of its own size",
            )),
            (None, name) => {
                let mut words =
                    format!(" --data-dir {}", quoted(data_dir.find()?.path().display()));
                if let Some(name) = name {
                    words += &format!(" --namespace {name}");
                }
                words += &words_of(args);
                let advice = Advice::new(&args.key, data_dir, words, true);
                let local = match name {
                    Some(name) => named(name, &args.key, layout, data_dir)?,
                    None => {
                        let key = match purpose {
                            Purpose::MakeIds => {
                                // One that is refused gets no secret.
                                data_dir
                                    .hold(Local::of_layout(None))?
                                    .accept_best_effort(options.accepts_best_effort())
                                    .make_directory()
                                    .map_err(|error| advice.local(error))?;
                                secret::kept_or_made(&args.key, data_dir)?
                            }
                            _ => secret::kept_or_refused(&args.key, data_dir)?,
                        };
                        data_dir.hold(Local::of_layout(key.secret()))?
                    }
                };
                let local = local.accept_best_effort(options.accepts_best_effort());
                let space = match purpose {
                    Purpose::MakeIds => local.make(layout),
                    Purpose::Initialise => local.make_secret(layout),
                    Purpose::LookAfter => local.find(layout),
                };
                let space = space.map_err(|error| advice.local(error))?;
                say_what_was_made(&space);
                Ok(Self {
                    namespace: space.namespace.clone(),
                    key: space.secret.clone().map_or(Key::Plain, Key::Secret),
                    site: Site::DataDir(Box::new(space)),
                    options,
                    advice,
                })
            }
            (Some(_), None) => Err(misuse(if store.is_from_environment() {
                "RINGFLAKE_STORE names a store with many ID spaces: say which with --namespace"
            } else {
                "--store holds many ID spaces: say which with --namespace"
            })),
            (Some(url), Some(name)) => {
                // What it says about the URL is said before anything else.
                ringflake::lease::open(&url, &options)?;
                if store.shows_password() {
                    say(
                        "others see the password on the command line: give the URL by \
                         RINGFLAKE_STORE, or the password in a file, as password_file=PATH \
                         in the URL",
                    );
                }
                let mut words = String::new();
                if !store.is_from_environment() {
                    words += " --store URL";
                }
                words += &format!(" --namespace {name}");
                let key = secret::kept_or_refused(&args.key, data_dir)?;
                let mut namespace = Namespace::new(name, layout, key.fingerprint())?;
                if let Some(bits) = store.block_bits {
                    words += &format!(" --block-bits {bits}");
                    namespace = namespace.with_block_bits(bits)?;
                }
                words += &words_of(args);
                let advice = Advice::new(&args.key, data_dir, words, false);
                if purpose != Purpose::LookAfter {
                    advice.refuse_used(key.secret(), &url)?;
                }
                Ok(Self {
                    namespace,
                    key,
                    site: Site::Url(url),
                    options,
                    advice,
                })
            }
        }
    }

    /// The file of a store in the data directory.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.site {
            Site::DataDir(space) => Some(space.directory().leases()),
            Site::Url(_) => None,
        }
    }

    /// The store as it is. Connects to nothing yet.
    pub(crate) fn open(&self) -> Result<Box<dyn LeaseStore>> {
        Ok(match &self.site {
            Site::DataDir(space) => Box::new(space.sqlite()?),
            Site::Url(url) => ringflake::lease::open(url, &self.options)?,
        })
    }

    /// Makes the namespace's record.
    pub(crate) fn init(&self, init: &Init) -> Result<StoreRecord> {
        match &self.site {
            Site::DataDir(space) => space.init(init).map_err(|error| self.advice.local(error)),
            Site::Url(_) => {
                let made = self.open()?.init(&self.namespace, init);
                let record = made.map_err(|error| self.explain(error))?;
                self.secret_was_given()?;
                Ok(record)
            }
        }
    }

    /// Notes in the data directory that a store has accepted the secret, and IDs are made
    /// with it under its leases.
    pub(crate) fn secret_was_given(&self) -> Result<()> {
        match &self.site {
            Site::DataDir(_) => Ok(()),
            Site::Url(url) => self.advice.give_away(self.key.secret(), url),
        }
    }

    /// What a store said, and what to do about it.
    pub(crate) fn explain(&self, error: impl Into<Arc<StoreError>>) -> anyhow::Error {
        self.advice.store(error.into())
    }
}

/// The space of this name in the data directory. Refuses a secret that is given and
/// is not its own.
fn named(name: &str, args: &KeyArgs, layout: &Layout, data_dir: &DataDir) -> Result<Local> {
    let mut local = data_dir.hold(Local::new(name))?;
    if args.plain {
        local = local.plain();
    }
    secret::check_named(args, name, &local, layout, data_dir)?;
    Ok(local)
}

fn say_what_was_made(space: &LocalSpace) {
    if let Some(path) = &space.made_secret {
        secret::say_made(path);
    }
    if space.begun == Some(History::Unknown) {
        say(format_args!(
            "{} has no record of the IDs that may have been made before: those made now \
             begin {} s ahead of the clock, above all of them",
            space.directory().leases().display(),
            Local::limits(space.namespace.layout()).horizon().as_secs()
        ));
    }
}

/// The layout and the key, as a command line names them.
fn words_of(args: &PlaceArgs) -> String {
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
    words
}

/// What to do about a refusal, in the words of the command line.
#[derive(Debug)]
struct Advice {
    /// What names the place on a command line.
    words: String,
    is_embedded: bool,
    key: KeyArgs,
    data_dir: DataDir,
}

impl Advice {
    fn new(key: &KeyArgs, data_dir: &DataDir, words: String, is_embedded: bool) -> Self {
        Self {
            words,
            is_embedded,
            key: key.clone(),
            data_dir: data_dir.clone(),
        }
    }

    fn store(&self, error: Arc<StoreError>) -> anyhow::Error {
        let text = self.advice(&error).unwrap_or_else(|| error.to_string());
        Explained { text, error }.into()
    }

    fn local(&self, error: LocalError) -> anyhow::Error {
        let words = &self.words;
        match error {
            LocalError::Store(error) => self.store(error.into()),
            LocalError::Copied { directory } => anyhow::anyhow!(
                "{} is a copy, and IDs of this layout may have been made from the original: go \
                 back to that, or, if nobody can use it any more, run 'ringflake store init \
                 --history unknown{words}'",
                directory.display()
            ),
            LocalError::NoSecret { namespace, path } => anyhow::anyhow!(
                "namespace {namespace} has no secret yet in {}: 'ringflake generate{words}' makes \
                 one; to read IDs that were made in another directory, name that with --data-dir",
                path.display()
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
                 secret of its own with --secret-file ('ringflake keygen --out FILE' makes one)",
                secret::source(&self.key, &self.data_dir),
                directory.display()
            ),
            error => error.into(),
        }
    }

    /// Refuses a secret for a store that makes IDs from the data directory.
    fn refuse_used(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
        self.beside(secret, url, local::DataDir::refuse_used)
    }

    /// Sees that no IDs are made from the data directory with the secret of a store.
    fn give_away(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
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

    /// The rest of what is said of another secret on record.
    fn other_secret(&self, namespace: &str, recorded: Fingerprint) -> String {
        if recorded == Fingerprint::PLAIN {
            return "its IDs are plain: give --plain".to_owned();
        }
        match secret::file_with(recorded, namespace, &self.key, &self.data_dir) {
            Some(path) => format!("it is the one in {}: give that", path.display()),
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
            } => format!(
                "namespace {namespace} belongs to another secret (its fingerprint is {recorded}) \
                 than {} ({offered}): {}, or choose a {} of its own for this one",
                secret::source(&self.key, &self.data_dir),
                self.other_secret(namespace, *recorded),
                if is_embedded {
                    "--data-dir"
                } else {
                    "--namespace"
                }
            ),
            StoreError::LayoutMismatch {
                namespace,
                recorded,
                offered,
            } => format!(
                "namespace {namespace} was initialised as {recorded}, not as {offered}: give \
                 --layout and --block-bits as they were, or choose another --namespace, with a \
                 secret of its own"
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
            StoreError::Format {
                namespace,
                recorded,
                known,
            } if recorded < known => format!(
                "namespace {namespace} is on record in format {recorded}, and this version writes \
                 format {known}: run 'ringflake store upgrade{words}' once; programs of the \
                 version before end with the leases that they have by then"
            ),
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
                 that any more, run 'ringflake store bump-floor --over-lost-grants{words}'"
            ),
            StoreError::FloorAhead { retry_after, .. } => format!(
                "leases begin in {:.1} s, above all that may have been granted before: try again \
                 then, or wait with --wait",
                retry_after.as_secs_f64()
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

fn misuse(text: &str) -> anyhow::Error {
    Misuse(text.to_owned()).into()
}

/// A path, to be pasted into a shell.
fn quoted(path: impl fmt::Display) -> String {
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
