//! Which namespace of which store, as the command line says it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use ringflake::Layout;
use ringflake::lease::{LeaseStore, Namespace, OpenOptions, StoreError};

use super::embedded;
use crate::args::{KeyArgs, PlaceArgs};
use crate::data_dir::DataDir;
use crate::secret::{self, Key};
use crate::usage::Misuse;

/// A namespace in a store, with the key of its IDs.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) namespace: Namespace,
    pub(crate) key: Key,
    pub(super) site: Site,
    pub(super) options: OpenOptions,
    /// What names the place on a command line.
    words: String,
}

/// Where a store is.
pub(super) enum Site {
    DataDir(DataDir),
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

impl Place {
    /// The place to make IDs from. A secret for the store in the data directory is
    /// made unless there is one; those who share a store have to share a secret,
    /// so there it must be known.
    pub(crate) fn to_make_ids(args: &PlaceArgs, data_dir: &DataDir) -> Result<Self> {
        Self::find(args, data_dir, secret::kept_or_made)
    }

    /// The place to look after. Its secret must be known.
    pub(crate) fn to_look_after(args: &PlaceArgs, data_dir: &DataDir) -> Result<Self> {
        Self::find(args, data_dir, secret::kept_or_refused)
    }

    fn find(
        args: &PlaceArgs,
        data_dir: &DataDir,
        own_key: impl FnOnce(&KeyArgs, &DataDir) -> Result<Key>,
    ) -> Result<Self> {
        let (store, layout) = (&args.store, &args.layout.layout);
        let options = OpenOptions::new().accept_best_effort(store.accepts_best_effort()?);
        let mut words = String::new();
        let (namespace, key, site) = match (store.url(), &store.namespace) {
            (None, Some(_)) => {
                return Err(misuse(
                    "--namespace names an ID space in a --store: give both",
                ));
            }
            (None, None) if store.block_bits.is_some() => {
                return Err(misuse(
                    "--block-bits is about a --store; in leases.db a block is one node",
                ));
            }
            (Some(_), None) => {
                return Err(misuse(if store.is_from_environment() {
                    "RINGFLAKE_STORE names a store with many ID spaces: say which with --namespace"
                } else {
                    "--store holds many ID spaces: say which with --namespace"
                }));
            }
            (None, None) => {
                words += &format!(" --data-dir {}", quoted(data_dir.path()?.display()));
                let key = own_key(&args.key, data_dir)?;
                let namespace = embedded::namespace(layout, &key)?;
                (namespace, key, Site::DataDir(data_dir.clone()))
            }
            (Some(url), Some(name)) => {
                // What it says about the URL is said before anything else.
                ringflake::lease::open(&url, &options)?;
                if !store.is_from_environment() {
                    words += " --store URL";
                }
                words += &format!(" --namespace {name}");
                let key = secret::kept_or_refused(&args.key, data_dir)?;
                let mut namespace = Namespace::new(name, layout, key.fingerprint(name))?;
                if let Some(bits) = store.block_bits {
                    words += &format!(" --block-bits {bits}");
                    namespace = namespace.with_block_bits(bits)?;
                }
                (namespace, key, Site::Url(url))
            }
        };
        if *layout != Layout::RANDFLAKE {
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
        Ok(Self {
            namespace,
            key,
            site,
            options,
            words,
        })
    }

    /// The file of a store in the data directory.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.site {
            Site::DataDir(data_dir) => data_dir.leases().ok(),
            Site::Url(_) => None,
        }
    }

    /// The store as it is. Connects to nothing yet.
    pub(crate) fn open(&self) -> Result<Box<dyn LeaseStore>> {
        Ok(match &self.site {
            Site::DataDir(data_dir) => Box::new(embedded::open(data_dir, &self.options)?),
            Site::Url(url) => ringflake::lease::open(url, &self.options)?,
        })
    }

    /// What a store said, and what to do about it.
    pub(crate) fn explain(&self, error: impl Into<Arc<StoreError>>) -> anyhow::Error {
        let error = error.into();
        let text = self.advice(&error).unwrap_or_else(|| error.to_string());
        Explained { text, error }.into()
    }

    /// In the words of the command line; none where the store's own will do.
    fn advice(&self, error: &StoreError) -> Option<String> {
        let words = &self.words;
        let is_embedded = matches!(self.site, Site::DataDir(_));
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
                "namespace {namespace} belongs to another secret (its fingerprint is {recorded}, \
                 not {offered}): give that one with --secret-file, or choose a {} of its own for \
                 this one",
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
            StoreError::NotDurable { store, reason } => format!(
                "{store} can lose what it has confirmed, and then IDs come twice: {reason}; or \
                 accept the risk with --best-effort"
            ),
            StoreError::Copied { store, .. } if embedded::is_about_directory(error) => format!(
                "{store} is a copy, and IDs of this layout may have been made from the original: \
                 go back to that, or, if nobody can use it any more, run 'ringflake store init \
                 --history unknown{words}'"
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
