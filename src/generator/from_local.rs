//! The store, the namespace and the secret of `local`; and generators on it without
//! further options.

use std::path::PathBuf;
use std::time::Duration;

use super::cached::CachedGenerator;
use super::error::BuildError;
use super::lease_options::{DEFAULT_BORROW_LIMIT, LeaseOptions};
use super::setup::Setup;
use crate::layout::Layout;
use crate::lease::Namespace;
use crate::local::{Local, LocalError};

/// A generator of encrypted IDs in the namespace `name` of this user, safe from the
/// first run on. Needs the feature `sqlite`.
///
/// Leases come from `leases.db` in the data directory: `RINGFLAKE_DATA_DIR` if that
/// is set, and else the platform's, such as `~/.local/share/ringflake`. The first
/// call makes the directory, the file and a secret of the namespace's own, for their
/// owner alone. Up to 4,096 processes may call this at once, be killed and start
/// again; no ID of a namespace comes twice. Another user, and a container with a home
/// of its own, has another directory and so another space with another secret.
/// Processes that share a space run as one user on one directory, or use a store.
///
/// The layout is [`Layout::RANDFLAKE`]. For another one, plain IDs or any other
/// option see [`Local`]. `ringflake inspect --namespace NAME` reads the IDs.
///
/// Blocks for some file syncs: milliseconds, and longer while other processes
/// start, too. If the past of the directory is unknown it waits some seconds,
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

impl Setup {
    /// Makes the local space that was asked for and puts it in place of `local`.
    /// All errors that don't need it come before.
    pub(super) fn with_local(mut self) -> Result<Self, BuildError> {
        let width = self.id_width();
        let Some(local) = self.local.take() else {
            return Ok(self);
        };
        self.outline(&local)?;
        self.id_width = Some(width);
        self.lease_options = self.options_of_local();
        let mut directory = local.directory().map_err(BuildError::Local)?;
        if let Some(patience) = self.lease_options.first_lease_within {
            directory = directory.with_patience(patience);
        }
        if let Some(hook) = &self.lease_options.wait_hook {
            directory = directory.with_wait_hook(hook.clone());
        }
        let mut local = local.id_width(width).in_data_dir(directory);
        if self.plain {
            local = local.plain();
        }
        let space = local.make(&self.layout).map_err(BuildError::Local)?;
        let store = space.store().map_err(BuildError::Local)?;
        self.plain = space.secret.is_none();
        self.secret = space.secret;
        self.lease_options.namespace = Some(space.namespace.name().to_owned());
        self.lease_options.block_bits = Some(space.namespace.block_bits());
        self.store = Some(Box::new(store));
        Ok(self)
    }

    /// The namespace that `local` would have. Fails on errors that show without reading the
    /// disk.
    pub(super) fn outline(&self, local: &Local) -> Result<Namespace, BuildError> {
        if self.lease.is_some() || self.store.is_some() {
            return Err(BuildError::TwoLeases);
        }
        if self.secret.is_some() {
            return Err(BuildError::Local(LocalError::SecretGiven));
        }
        match self.id_width.zip(local.width()) {
            Some((builder, local)) if builder != local => {
                return Err(BuildError::TwoWidths { builder, local });
            }
            _ => {}
        }
        let given = [
            ("namespace", self.lease_options.namespace.is_some()),
            ("block_bits", self.lease_options.block_bits.is_some()),
            ("init_if_new", self.lease_options.init_if_new.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|&(_, given)| given) {
            return Err(BuildError::LocalHas { option });
        }
        let mut local = local.clone();
        if self.plain {
            local = local.plain();
        }
        if local.has_idle_secret() {
            return Err(BuildError::PlainAndSecret);
        }
        let outline = local.outline(&self.layout).map_err(BuildError::Local)?;
        self.options_of_local().plan(&outline)?;
        Ok(outline)
    }

    /// The options, with the maximum lease duration of a directory unless one was given.
    pub(super) fn options_of_local(&self) -> LeaseOptions {
        let mut options = self.lease_options.clone();
        options
            .lease_duration
            .get_or_insert(Local::limits(&self.layout).horizon());
        options
    }

    /// How far ahead of the clock local IDs may lie: after a loss of `leases.db`, leases
    /// begin a horizon ahead.
    pub(super) fn local_borrow_limit(&self) -> Option<Duration> {
        let _ = self.local.as_ref()?;
        let limits = Local::limits(&self.layout);
        let ahead = limits.horizon() + limits.failover();
        Some(ahead.max(DEFAULT_BORROW_LIMIT))
    }
}
