//! Which namespace of which store, as the command line says it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use ringflake::lease::{
    History, Init, LeaseStore, Namespace, Obstacle, OpenOptions, SqliteStore, StoreError,
    StoreRecord,
};
use ringflake::local::LocalSpace;
use ringflake::shell_quoted as quoted;
use ringflake::{Layout, Local, LocalError};

use super::advice::{Advice, words_of};
use crate::args::{KeyArgs, TargetArgs, upstream};
use crate::data_dir::DataDir;
use crate::report::{say, warn};
use crate::secret::{self, Key};
use crate::usage::Misuse;

/// A namespace in a store, with the key of its IDs.
pub(crate) struct StoreTarget {
    pub(crate) namespace: Namespace,
    pub(crate) key: Key,
    pub(super) site: Site,
    options: OpenOptions,
    advice: Advice,
}

pub(super) enum Site {
    DataDir(Box<LocalSpace>),
    /// May hold a password.
    Url(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To make IDs. In the data directory all that is missing is made; those who
    /// share a store have to share a secret, so there it must be known.
    MakeIds,
    /// To make the namespace's record by hand.
    Initialise,
    /// To look after it. The secret must be known.
    LookAfter,
}

impl StoreTarget {
    /// The key of the IDs in a namespace of the data directory.
    pub(crate) fn key_of(
        name: &str,
        args: &KeyArgs,
        layout: &Layout,
        data_dir: &DataDir,
    ) -> Result<Key> {
        let local = named(name, args, layout, data_dir)?;
        let words =
            in_directory(data_dir)? + &format!(" --namespace {name}") + &words_of(layout, args);
        let advice = Advice::new(args, data_dir, words, true);
        // It is read, whatever it can lose.
        let local = local.id_width(args.id_width).accept_best_effort(true);
        // Whatever else is wrong with the record does not keep IDs from being read.
        if let Err(error @ LocalError::OtherWidth { .. }) = local.find(layout) {
            return Err(advice.local(error));
        }
        let secret = local.secret(layout).map_err(|error| advice.local(error))?;
        Ok(Key::new(secret, args.id_width))
    }

    /// The target that the options name.
    pub(crate) fn find(args: &TargetArgs, data_dir: &DataDir, purpose: Purpose) -> Result<Self> {
        let (store, layout) = (&args.store, &args.layout.layout);
        let options = OpenOptions::new().accept_best_effort(store.accepts_best_effort()?);
        let best_effort = store.best_effort_word();
        if purpose != Purpose::LookAfter {
            secret::check_width(&args.key, layout)?;
        }
        match (store.url(), &store.namespace) {
            (None, _) if store.block_bits.is_some() => Err(misuse(
                "--block-bits needs --store: leases.db has a fixed block size",
            )),
            (None, name) => {
                let place = in_directory(data_dir)?;
                let mut words = place.clone();
                if let Some(name) = name {
                    words += &format!(" --namespace {name}");
                }
                words += &words_of(layout, &args.key);
                words += best_effort;
                let advice =
                    Advice::new(&args.key, data_dir, words, true).of_file(&(place + best_effort));
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
                            _ => secret::unnamed_or_refused(&args.key, data_dir)?,
                        };
                        data_dir.hold(Local::of_layout(key.secret()))?
                    }
                };
                let local = local
                    .id_width(args.key.id_width)
                    .accept_best_effort(options.accepts_best_effort());
                let space = match purpose {
                    Purpose::MakeIds => local.make(layout),
                    Purpose::Initialise => local.make_secret(layout),
                    Purpose::LookAfter => local.find(layout),
                };
                let space = space.map_err(|error| advice.local(error))?;
                say_what_was_made(&space);
                Ok(Self {
                    namespace: space.namespace.clone(),
                    key: Key::new(space.secret.clone(), args.key.id_width),
                    site: Site::DataDir(Box::new(space)),
                    options,
                    advice,
                })
            }
            (Some(_), None) => Err(misuse(if store.is_from_environment() {
                "RINGFLAKE_STORE needs --namespace: a store can have several namespaces"
            } else {
                "--store needs --namespace: a store can have several namespaces"
            })),
            (Some(url), Some(name)) => {
                // Errors of the URL come before all others.
                ringflake::lease::open(&url, &options)?;
                if store.shows_password() {
                    warn(
                        "other users can see the password on the command line\n\
                         help: set RINGFLAKE_STORE to the URL, or name a file with the password, \
                         as password_file=PATH in the URL",
                    );
                }
                let place = match store.is_from_environment() {
                    true => "",
                    false => " --store URL",
                };
                let mut words = place.to_owned();
                words += &format!(" --namespace {name}");
                let key = secret::kept_or_refused(&args.key, data_dir)?;
                let mut namespace = Namespace::new(name, layout, key.fingerprint())?;
                if let Some(bits) = store.block_bits {
                    words += &format!(" --block-bits {bits}");
                    namespace = namespace.with_block_bits(bits)?;
                }
                words += &words_of(layout, &args.key);
                // It has the secret, and knows what is made with it.
                if let Some(directory) = data_dir.given() {
                    words += &format!(" --data-dir {}", quoted(directory.display()));
                }
                words += best_effort;
                let mut advice = Advice::new(&args.key, data_dir, words, false);
                let upstream = upstream(&url);
                if upstream.is_some() {
                    advice = advice.of_tier(store.is_from_environment());
                }
                if SqliteStore::from_url(upstream.unwrap_or(&url), &options).is_ok() {
                    advice = advice.of_file(&format!("{place}{best_effort}"));
                }
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

    pub(crate) fn init(&self, mut init: Init) -> Result<StoreRecord> {
        if let Some(secret) = self.key.secret() {
            init = init.with_secret(secret);
        }
        let init = &init;
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

    /// What keeps a store from granting leases, and what to do about it.
    pub(crate) fn explain_obstacle(&self, obstacle: &Obstacle) -> String {
        self.advice.obstacle(obstacle)
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

/// The option that names the data directory.
fn in_directory(data_dir: &DataDir) -> Result<String> {
    let path = quoted(data_dir.find()?.path().display());
    Ok(format!(" --data-dir {path}"))
}

fn say_what_was_made(space: &LocalSpace) {
    if let Some(path) = &space.made_secret {
        secret::say_made(path);
    }
    if space.begun == Some(History::Unknown) {
        say(format_args!(
            "{} has no record of earlier IDs: new ones start {} ahead of the clock, above all of \
             them",
            space.directory().leases().display(),
            humantime::format_duration(Local::limits(space.namespace.layout()).horizon())
        ));
    }
}

fn misuse(text: &str) -> anyhow::Error {
    Misuse(text.to_owned()).into()
}
