//! The definition of an ID space of this machine: its name, its directory and its
//! known past.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::directory::DataDir;
use super::error::LocalError;
use super::names::{self, Which};
use super::secret;
use crate::cipher::{IdWidth, Secret};
use crate::layout::Layout;
use crate::lease::past::{Past, lock_file};
use crate::lease::{Namespace, StoreLimits};

/// An ID space of one machine: a namespace in a data directory.
///
/// Given to a builder's [`local`](crate::CachedGeneratorBuilder::local) it is the
/// generator's lease store, namespace and secret in one. The [module](super)
/// describes the files, and why no ID comes twice.
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
    pub(super) which: Which,
    plain: bool,
    width: Option<IdWidth>,
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

    /// Whether it has a secret that plain IDs do not use.
    pub(crate) fn has_idle_secret(&self) -> bool {
        self.plain && matches!(self.which, Which::OfLayout(Some(_)))
    }

    fn of(which: Which, plain: bool) -> Self {
        Self {
            which,
            plain,
            width: None,
            directory: None,
            best_effort: false,
        }
    }

    /// Keeps leases and secrets in this directory. It need not exist. By default it
    /// is that of [`DataDir::of_this_user`].
    #[must_use]
    pub fn in_directory(self, path: impl Into<PathBuf>) -> Self {
        self.in_data_dir(DataDir::new(path))
    }

    /// The same, for a directory that has options of its own.
    #[must_use]
    pub fn in_data_dir(mut self, directory: DataDir) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Plain IDs: not encrypted, sorted by time, in a namespace of their own.
    ///
    /// Without a secret the spaces of two directories give the same IDs. With that of
    /// [`of_layout`](Self::of_layout), a builder refuses it.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// The width of the IDs: [`IdWidth::Full`] unless given here or to the builder, which must
    /// not name another. A namespace that was made with another one is refused.
    #[must_use]
    pub fn id_width(mut self, width: IdWidth) -> Self {
        self.width = Some(width);
        self
    }

    /// Whether a directory is accepted that can lose writes, such as one in memory
    /// or on a network file system. If it does, IDs may come twice.
    #[must_use]
    pub fn accept_best_effort(mut self, accept: bool) -> Self {
        self.best_effort = accept;
        self
    }

    pub(crate) fn width(&self) -> Option<IdWidth> {
        self.width
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The name of the namespace in `leases.db`, and the size of its blocks,
    /// before anything was made. Only the secret is still missing.
    ///
    /// # Errors
    /// [`LocalError::Name`], [`LocalError::ReservedName`].
    pub(crate) fn outline(&self, layout: &Layout) -> Result<Namespace, LocalError> {
        names::outline(&self.which, layout, self.plain)
    }

    /// The limits that a namespace of this layout is made with.
    ///
    /// A lost history costs the failover time and one tick of waiting, and IDs that lie the horizon
    /// ahead of the clock. The nodes of a killed process are free again after the horizon at the
    /// latest. There is no server that could be away for longer, nor a second primary, and all
    /// processes share one clock.
    pub fn limits(layout: &Layout) -> StoreLimits {
        const HORIZON: Duration = Duration::from_secs(120);
        let ten_ticks = Duration::from_millis(layout.tick_ms().saturating_mul(10));
        StoreLimits::default()
            .with_horizon(HORIZON.max(ten_ticks).min(StoreLimits::MAX))
            .with_skew(Duration::from_secs(1))
            .with_failover(Duration::from_secs(2))
    }

    /// The secret that is kept for a named space. Makes nothing, and looks at no
    /// leases.
    ///
    /// # Errors
    /// [`LocalError::NoSecret`] if there is none yet, and those of
    /// [`find`](Self::find).
    pub fn secret(&self, layout: &Layout) -> Result<Option<Secret>, LocalError> {
        self.outline(layout)?;
        self.existing_secret(&self.directory()?)
    }

    /// Makes the directory, unless it exists, and nothing in it.
    ///
    /// # Errors
    /// [`LocalError::NoHome`], [`LocalError::Directory`], and [`LocalError::Store`] with
    /// [`NotDurable`](crate::lease::StoreError::NotDurable) where no leases may be kept.
    pub fn make_directory(&self) -> Result<DataDir, LocalError> {
        let directory = self.directory()?;
        directory.create()?;
        if let Some(secret) = self.own_file(&directory) {
            Secret::check_directory(&secret).map_err(LocalError::Secret)?;
        }
        directory.store()?.table_mut().admit()?;
        Ok(directory)
    }

    /// Whether the directory could be used for a namespace at this moment, but for free space:
    /// refuses what [`make`](Self::make) refuses for every name. Makes nothing, and waits for
    /// other processes as `make` does.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn check_directory(&self) -> Result<DataDir, LocalError> {
        let directory = self.directory()?;
        directory.with_path(fs::metadata(directory.path()))?;
        Secret::check_directory(&directory.secret()).map_err(LocalError::Secret)?;
        let mut store = directory.store()?;
        store.table_mut().admit()?;
        let was_locked = directory.with_path(fs::exists(lock_file(&directory.leases())))?;
        if was_locked && directory.noted_past(&directory.lock()?)? == Past::AnothersCopy {
            return Err(directory.copied());
        }
        store.table_mut().try_to_write()?;
        Ok(directory)
    }

    /// The file of the secret that the directory keeps under the space's name.
    pub(super) fn own_file(&self, directory: &DataDir) -> Option<PathBuf> {
        match &self.which {
            Which::Named(name) if !self.plain => Some(directory.secret_of(name)),
            _ => None,
        }
    }

    pub(super) fn kept_secret(&self, directory: &DataDir) -> Result<Option<Secret>, LocalError> {
        match &self.which {
            _ if self.plain => Ok(None),
            Which::Named(name) => secret::read(&directory.secret_of(name)),
            Which::OfLayout(secret) => Ok(secret.clone()),
        }
    }

    /// The secret that is there already. A named space must have one.
    pub(super) fn existing_secret(
        &self,
        directory: &DataDir,
    ) -> Result<Option<Secret>, LocalError> {
        match (self.kept_secret(directory)?, &self.which) {
            (None, Which::Named(name)) if !self.plain => Err(LocalError::NoSecret {
                namespace: name.clone(),
                path: directory.secret_of(name),
            }),
            (secret, _) => Ok(secret),
        }
    }

    pub(crate) fn directory(&self) -> Result<DataDir, LocalError> {
        let directory = match &self.directory {
            Some(directory) => directory.clone(),
            None => DataDir::of_this_user()?,
        };
        Ok(directory.accept_best_effort(self.best_effort))
    }
}
