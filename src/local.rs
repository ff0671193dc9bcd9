//! IDs on one machine without any set-up: leases and secrets in a data directory.
//!
//! [`local`](local()) is all that a program needs. The data directory holds one
//! file of leases for all namespaces, a secret for each namespace, and a lock:
//!
//! | file | content |
//! |---|---|
//! | `leases.db` | the [`SqliteStore`] with the record of every namespace |
//! | `leases.db.lock` | locked while one of the others is made; a note on the past |
//! | `NAME.secret` | the secret of the namespace `NAME` |
//! | `secret` | the secret of the command line, for namespaces without a name |
//!
//! # States
//! Of one namespace in one directory. Each arrow is taken by one process, which
//! holds the lock; all of them together are one hold of it.
//!
//! ```text
//! nothing --note--> noted --leases.db, noted--> begun --mark, NAME.secret--> keyed --record--> on record
//!                     |           |               |              |             |
//!                     v crash     v crash         v crash        v crash       v crash
//!                past: none    past: lost   past: recorded   a mark of    past: recorded
//!                                                              nothing
//! ```
//! A process that finds the secret readable and the namespace on record takes no
//! lock. From there on the store's own rules hold (see [`lease`](crate::lease)).
//!
//! # Why no ID comes twice
//! 1. An ID is issued only under a grant of `leases.db`, to a namespace on record.
//! 2. `leases.db` never grants a rectangle of one namespace twice, and a copy of it
//!    grants nothing. So two equal IDs of one secret need two records.
//! 3. A secret that is not on record makes IDs only if the note has its mark: it was
//!    drawn here, and no other directory takes it without somebody's word. Plain IDs
//!    have no secret; those of two directories are the same.
//! 4. A record begins with [`History::New`](crate::lease::History) only if the note
//!    says that every record ever made in this directory is in `leases.db` (none or
//!    recorded, in the table of `lease/stores/sqlite/past.rs`). In every other case it
//!    begins with [`History::Unknown`](crate::lease::History), above all that may
//!    have been issued from here.
//! 5. A secret has one namespace, and so one layout. Each named namespace has a secret
//!    of its own, drawn at random. The nameless ones are chosen by the record: the
//!    one whose fingerprint is the secret's, if there is one. Only if there is none
//!    is one made, under the lock, after the record was read once more; the store
//!    refuses it if another has the secret.
//! 6. A secret that a store is given on the command line is no longer at home here:
//!    the note says so, and rule 3 refuses it. One that is on record here is refused
//!    for a store.
//!
//! A crash leaves a prefix of the arrows. Each prefix is a state of that table, or
//! a secret with its mark and without a record, from which no ID was made.
//!
//! Rule 5 rests on `leases.db`. If that is lost, or is replaced by an older state
//! of itself, the note says so from then on and rule 4 gives every later record an
//! unknown history, whatever name it gets.
//!
//! # What it rests on
//! * Nobody vouches, with `ringflake store init --history new`, for a secret that
//!   makes IDs elsewhere, nor uses one elsewhere that was drawn here but by a store
//!   that the command line is told of here. Reading IDs elsewhere is fine.
//! * The directory lies on a local disk; see [`SqliteStore`].
//! * What a disk or a machine put back to a snapshot has lost, nobody here can
//!   know: run `ringflake store raise-floor --over-lost-grants` then.

use std::path::PathBuf;
use std::time::Duration;

pub use self::directory::DataDir;
pub use self::error::LocalError;
use self::names::Which;
pub use self::space::LocalSpace;
pub use self::store::LocalStore;
use crate::cipher::Secret;
use crate::generator::{BuildError, CachedGenerator};
use crate::layout::Layout;
use crate::lease::past::{Lock, Past};
use crate::lease::{History, Namespace, OpenOptions, SqliteStore, StoreLimits};

mod directory;
mod error;
mod names;
mod secret;
mod space;
mod store;

/// A generator of encrypted IDs in the namespace `name` of this user, safe from the
/// first run on. Needs the feature `sqlite`.
///
/// Leases come from `leases.db` in the data directory: `RINGFLAKE_DATA_DIR` if that
/// is set, and else the platform's, such as `~/.local/share/ringflake`. The first
/// call makes the directory, the file and a secret of the namespace's own, for
/// their owner alone. Any number of processes may call this at once, be killed and
/// start again; no ID of a namespace comes twice. Another user, and a container with
/// a home of its own, has another directory and so another space with another secret:
/// what is to share a space runs as one user on one directory, or uses a store.
///
/// The layout is [`Layout::RANDFLAKE`]. For another one, plain IDs or any other
/// option see [`Local`]. `ringflake inspect --namespace NAME` reads the IDs.
///
/// Blocks for some file syncs: milliseconds, and longer while other processes
/// start, too. Where the past of the directory is unknown it waits some seconds,
/// until leases begin above all that may have been issued.
///
/// # Errors
/// [`BuildError::Local`] for the name, the directory and the secret, and
/// [`BuildError::Store`] and [`BuildError::NoLeaseYet`] for the leases. Each says what to do.
///
/// # Examples
/// ```no_run
/// let ids = ringflake::local("orders")?;
/// println!("{}", ids.take()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn local(name: impl Into<String>) -> Result<CachedGenerator, BuildError> {
    CachedGenerator::builder(Layout::RANDFLAKE)
        .local(Local::new(name))
        .build()
}

/// As [`local`](local()), in this data directory.
///
/// # Errors
/// Those of [`local`](local()).
///
/// # Examples
/// ```no_run
/// let ids = ringflake::local_in("/var/lib/app/ids", "orders")?;
/// println!("{}", ids.take()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn local_in(
    directory: impl Into<PathBuf>,
    name: impl Into<String>,
) -> Result<CachedGenerator, BuildError> {
    CachedGenerator::builder(Layout::RANDFLAKE)
        .local(Local::new(name).in_directory(directory))
        .build()
}

/// An ID space of one machine: a namespace in a data directory.
///
/// Given to a builder's [`local`](crate::CachedGeneratorBuilder::local) it is the
/// generator's lease store, namespace and secret in one. The [module](self) says
/// what is made where, and why no ID comes twice.
///
/// # Examples
/// ```
/// use ringflake::{CachedGenerator, Layout, Local};
///
/// let directory = tempfile::tempdir()?;
/// // The examples run on any file system. Leave `accept_best_effort` out.
/// let orders = Local::new("orders").in_directory(directory.path()).accept_best_effort(true);
/// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
///     .local(orders.clone())
///     .capacity(1 << 12)
///     .build()?;
/// let plain = CachedGenerator::builder(Layout::TWITTER).local(orders).plain().build()?;
///
/// assert!(directory.path().join("orders.secret").exists());
/// println!("{} {}", ids.take()?, plain.take()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Local {
    which: Which,
    plain: bool,
    directory: Option<DataDir>,
    best_effort: bool,
}

impl Local {
    /// The namespace of this name, with a secret of its own. Its plain IDs are in a
    /// namespace of their own, `NAME-plain`.
    ///
    /// A name is one of a [`Namespace`], at most 58 bytes long, and does not end in
    /// `-plain`. It is checked when a generator is built.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of(Which::Named(name.into()), false)
    }

    /// The namespace without a name, as the command line uses it when none is
    /// given: that of the layout and of this secret, or of plain IDs without one.
    ///
    /// A secret that is used in another data directory too, or on another machine,
    /// needs a store that both share.
    pub fn of_layout(secret: Option<&Secret>) -> Self {
        Self::of(Which::OfLayout(secret.cloned()), secret.is_none())
    }

    fn of(which: Which, plain: bool) -> Self {
        Self {
            which,
            plain,
            directory: None,
            best_effort: false,
        }
    }

    /// Keeps leases and secrets in this directory. It need not exist. By default it
    /// is that of [`DataDir::of_this_user`].
    #[must_use]
    pub fn in_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(DataDir::new(path));
        self
    }

    /// Plain IDs: not encrypted, sorted by time, in a namespace of their own.
    ///
    /// Without a secret the spaces of two directories give the same IDs.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Whether a directory is accepted that can lose what was written, such as one
    /// in memory or on a network file system. If it does, IDs may come twice.
    #[must_use]
    pub fn accept_best_effort(mut self, accept: bool) -> Self {
        self.best_effort = accept;
        self
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// What the namespace is called in `leases.db`, and the size of its blocks,
    /// before anything was made. Only the secret is still missing.
    ///
    /// # Errors
    /// [`LocalError::Name`], [`LocalError::ReservedName`].
    pub(crate) fn outline(&self, layout: &Layout) -> Result<Namespace, LocalError> {
        names::outline(&self.which, layout, self.plain)
    }

    /// The limits that a namespace of this layout is made with.
    ///
    /// A history that is lost costs the failover time and one tick of waiting, and
    /// IDs that lie the horizon ahead of the clock; nodes whose process was killed
    /// come free after the horizon at the latest. There is no server that could be
    /// away for longer, nor a second primary, and all processes share one clock.
    pub fn limits(layout: &Layout) -> StoreLimits {
        const HORIZON: Duration = Duration::from_secs(120);
        let ten_ticks = Duration::from_millis(layout.tick_ms().saturating_mul(10));
        StoreLimits::default()
            .with_horizon(HORIZON.max(ten_ticks).min(StoreLimits::MAX))
            .with_skew(Duration::from_secs(1))
            .with_failover(Duration::from_secs(2))
    }

    /// The space as it is. Makes nothing.
    ///
    /// # Errors
    /// [`LocalError`]; [`LocalError::NoSecret`] if the space was never used.
    pub fn find(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let outline = self.outline(layout)?;
        let directory = self.directory()?;
        let secret = match self.kept_secret(&directory)? {
            None if self.has_own_secret() => {
                return Err(self.no_secret(&directory));
            }
            secret => secret,
        };
        let records = if directory.leases().exists() {
            self.store(&directory)?.namespaces()?
        } else {
            Vec::new()
        };
        let found = self.on_record(&outline, &records, secret.as_ref())?;
        let namespace = match found {
            Some(namespace) => namespace,
            None => self.choose(&outline, &records, secret.as_ref())?,
        };
        Ok(self.space(namespace, secret, directory))
    }

    /// The secret that is kept for a named space. Makes nothing, and looks at no
    /// leases.
    ///
    /// # Errors
    /// [`LocalError::NoSecret`] if there is none yet, and those of
    /// [`find`](Self::find).
    pub fn secret(&self, layout: &Layout) -> Result<Option<Secret>, LocalError> {
        self.outline(layout)?;
        let directory = self.directory()?;
        match self.kept_secret(&directory)? {
            None if self.has_own_secret() => Err(self.no_secret(&directory)),
            secret => Ok(secret),
        }
    }

    /// The file with the secret of a named space, there or not; none for plain IDs
    /// and for a space without a name.
    ///
    /// # Errors
    /// [`LocalError::NoHome`].
    pub fn secret_file(&self) -> Result<Option<PathBuf>, LocalError> {
        match &self.which {
            Which::Named(name) if !self.plain => Ok(Some(self.directory()?.secret_of(name))),
            _ => Ok(None),
        }
    }

    /// Makes the directory, unless it exists, and nothing in it.
    ///
    /// # Errors
    /// [`LocalError::NoHome`], [`LocalError::Directory`], and [`LocalError::Store`] with
    /// [`NotDurable`](crate::lease::StoreError::NotDurable) where no leases may be kept.
    pub fn make_directory(&self) -> Result<DataDir, LocalError> {
        let directory = self.directory()?;
        directory.create()?;
        self.store(&directory)?.admit()?;
        Ok(directory)
    }

    /// The space, made and on record. Any number of processes may do this at once;
    /// the [module](self) has the steps.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn make(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let outline = self.outline(layout)?;
        let directory = self.make_directory()?;
        if let Some(space) = self.made(&outline, &directory)? {
            return Ok(space);
        }
        let lock = directory.lock()?;
        // Another process may have been faster.
        if let Some(space) = self.made(&outline, &directory)? {
            return Ok(space);
        }
        self.refuse_brought_secret(&directory, &lock)?;
        let history = self.begin(&directory, &lock)?;
        let (secret, made_secret) = self.own_secret(&directory, &lock)?;
        let records = self.store(&directory)?.namespaces()?;
        let namespace = self.choose(&outline, &records, secret.as_ref())?;
        let mut space = self.space(namespace, secret, directory);
        space.made_secret = made_secret;
        space.begun = Some(space.begin(&lock, history)?);
        Ok(space)
    }

    /// The space with its secret, which is made if there is none, but no record:
    /// for one that is to be initialised by hand.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn make_secret(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let mut made_secret = None;
        if self.has_own_secret() {
            self.outline(layout)?;
            let directory = self.make_directory()?;
            let lock = directory.lock()?;
            if self.kept_secret(&directory)?.is_none() {
                if self.past(&directory, &lock)? == Past::None {
                    directory.begin(&lock, Past::None)?;
                }
                self.refuse_lost_secret(layout, &directory)?;
                (_, made_secret) = self.own_secret(&directory, &lock)?;
            }
        }
        let mut space = self.find(layout)?;
        space.made_secret = made_secret;
        Ok(space)
    }

    /// The space, if its secret is there and it is on record.
    fn made(
        &self,
        outline: &Namespace,
        directory: &DataDir,
    ) -> Result<Option<LocalSpace>, LocalError> {
        if !directory.leases().exists() {
            return Ok(None);
        }
        // The records first: the secret of one that is there is there, too.
        let records = self.store(directory)?.namespaces()?;
        let secret = self.kept_secret(directory)?;
        let Some(namespace) = self.on_record(outline, &records, secret.as_ref())? else {
            return Ok(None);
        };
        self.refuse_secret_elsewhere(directory, secret.as_ref())?;
        Ok(Some(self.space(namespace, secret, directory.clone())))
    }

    /// The namespace on record that is this space's.
    fn on_record(
        &self,
        outline: &Namespace,
        records: &[Namespace],
        secret: Option<&Secret>,
    ) -> Result<Option<Namespace>, LocalError> {
        let Which::Named(name) = &self.which else {
            let record = names::of_secret(outline, records, secret);
            return Ok(record.map(|record| names::keyed(record, secret)));
        };
        let Some(record) = records
            .iter()
            .find(|record| record.name() == outline.name())
        else {
            return Ok(None);
        };
        let directory = self.directory()?;
        if self.has_own_secret() && secret.is_none() {
            return Err(LocalError::SecretLost {
                namespace: name.clone(),
                path: directory.secret_of(name),
            });
        }
        if !names::is_of(record, secret) {
            return Err(LocalError::OtherSecret {
                namespace: name.clone(),
                path: directory.secret_of(name),
            });
        }
        let offered = names::keyed(outline, secret);
        names::keyed(record, secret).verify(&offered)?;
        Ok(Some(offered))
    }

    /// The namespace of a space that is not on record.
    fn choose(
        &self,
        outline: &Namespace,
        records: &[Namespace],
        secret: Option<&Secret>,
    ) -> Result<Namespace, LocalError> {
        match &self.which {
            Which::Named(_) => Ok(names::keyed(outline, secret)),
            Which::OfLayout(_) => names::choose(outline, records, secret),
        }
    }

    /// What is known of the past of the directory, which is locked.
    fn past(&self, directory: &DataDir, lock: &Lock) -> Result<Past, LocalError> {
        let secret = directory.has_secret()?;
        Ok(self.store(directory)?.past(lock, secret)?)
    }

    /// Makes `leases.db` and the note on the past where they are missing, and answers
    /// with what a namespace begins that is not on record.
    fn begin(&self, directory: &DataDir, lock: &Lock) -> Result<History, LocalError> {
        let past = self.past(directory, lock)?;
        if past == Past::AnothersCopy {
            return Err(self.copied(directory));
        }
        directory.begin(lock, past)?;
        Ok(match past {
            Past::None | Past::Recorded => History::New,
            Past::Lost | Past::AnothersCopy => History::Unknown,
        })
    }

    /// Refuses a secret that was not drawn here: others may be making IDs with it, and
    /// this space is on no record that could tell.
    fn refuse_brought_secret(&self, directory: &DataDir, lock: &Lock) -> Result<(), LocalError> {
        match self.kept_secret(directory)? {
            Some(secret) if !directory.has_drawn(lock, &secret)? => {
                Err(LocalError::SecretBrought {
                    path: self.secret_file()?,
                    directory: directory.path().to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a secret that a store was given: IDs are made with it there.
    fn refuse_secret_elsewhere(
        &self,
        directory: &DataDir,
        secret: Option<&Secret>,
    ) -> Result<(), LocalError> {
        match secret {
            Some(secret) if directory.is_elsewhere(secret)? => Err(LocalError::SecretBrought {
                path: self.secret_file()?,
                directory: directory.path().to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn refuse_lost_secret(&self, layout: &Layout, directory: &DataDir) -> Result<(), LocalError> {
        if !directory.leases().exists() {
            return Ok(());
        }
        let records = self.store(directory)?.namespaces()?;
        self.on_record(&self.outline(layout)?, &records, None)
            .map(drop)
    }

    /// Whether the directory keeps the secret under the space's name.
    fn has_own_secret(&self) -> bool {
        matches!(self.which, Which::Named(_)) && !self.plain
    }

    fn kept_secret(&self, directory: &DataDir) -> Result<Option<Secret>, LocalError> {
        match &self.which {
            _ if self.plain => Ok(None),
            Which::Named(name) => secret::read(&directory.secret_of(name)),
            Which::OfLayout(secret) => Ok(secret.clone()),
        }
    }

    /// The secret, made unless it is there; and its file, if it is new.
    fn own_secret(
        &self,
        directory: &DataDir,
        lock: &Lock,
    ) -> Result<(Option<Secret>, Option<PathBuf>), LocalError> {
        match &self.which {
            Which::Named(name) if !self.plain => {
                let path = directory.secret_of(name);
                let made = secret::keep(&path, lock)?;
                let secret = secret::read(&path)?;
                if secret.is_none() {
                    return Err(self.no_secret(directory));
                }
                Ok((secret, made.then_some(path)))
            }
            _ => Ok((self.kept_secret(directory)?, None)),
        }
    }

    fn directory(&self) -> Result<DataDir, LocalError> {
        match &self.directory {
            Some(directory) => Ok(directory.clone()),
            None => DataDir::of_this_user(),
        }
    }

    fn store(&self, directory: &DataDir) -> Result<SqliteStore, LocalError> {
        /// Twenty processes on a slow disk take turns in less.
        const TIMEOUT: Duration = Duration::from_secs(30);
        let options = OpenOptions::new()
            .timeout(TIMEOUT)
            .accept_best_effort(self.best_effort);
        SqliteStore::new(directory.leases(), &options).map_err(LocalError::Place)
    }

    fn space(
        &self,
        namespace: Namespace,
        secret: Option<Secret>,
        directory: DataDir,
    ) -> LocalSpace {
        LocalSpace {
            namespace,
            secret,
            made_secret: None,
            begun: None,
            local: self.clone(),
            directory,
        }
    }

    fn no_secret(&self, directory: &DataDir) -> LocalError {
        let name = match &self.which {
            Which::Named(name) => name.clone(),
            Which::OfLayout(_) => String::new(),
        };
        LocalError::NoSecret {
            path: directory.secret_of(&name),
            namespace: name,
        }
    }

    fn copied(&self, directory: &DataDir) -> LocalError {
        LocalError::Copied {
            directory: directory.path().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_suit_every_tick() {
        for tick in ["1ms", "1s", "3600s", "31622400s"] {
            let layout = format!("20/17/17@2024-10-27T03:33:20Z/{tick}");
            let directory = tempfile::tempdir().unwrap();
            Local::of_layout(None)
                .in_directory(directory.path())
                .accept_best_effort(true)
                .make(&layout.parse().unwrap())
                .unwrap();
        }
    }
}
