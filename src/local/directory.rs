//! The directory in which the processes of one machine keep leases and secrets.

use std::env;
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;

use super::error::LocalError;
use super::{names, secret};
use crate::cipher::Secret;
use crate::lease::past::{Lock, Past, is_elsewhere};
use crate::lease::refuse_foreign;
use crate::lease::{
    History, Namespace, OpenOptions, SqliteStore, StoreError, StoreLimits, WaitHook,
};

/// How long one process waits for the others: twenty on a slow disk take turns in less.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

const STORE_NAME: &str = "leases.db";
const SECRET_NAME: &str = "secret";
/// No namespace's name begins with a full stop, so no such file is `secret`.
const SECRET_SUFFIX: &str = ".secret";

/// Where leases and secrets are kept. It need not exist yet.
///
/// # Examples
/// ```
/// use ringflake::local::DataDir;
///
/// let directory = DataDir::new("/var/lib/app/ids");
/// assert_eq!(directory.leases().to_str(), Some("/var/lib/app/ids/leases.db"));
/// ```
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    patience: Duration,
    wait_hook: Option<WaitHook>,
    best_effort: bool,
}

impl PartialEq for DataDir {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for DataDir {}

impl DataDir {
    /// The variable that names the directory where none is given.
    pub const VARIABLE: &str = "RINGFLAKE_DATA_DIR";

    /// The directory at `path`, relative to the one that the process is in now.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            // An empty path alone has no absolute one, and can't be made either.
            path: std::path::absolute(&path).unwrap_or(path),
            patience: PATIENCE,
            wait_hook: None,
            best_effort: false,
        }
    }

    /// Waits for no longer than this while another process makes something in the directory,
    /// or keeps `leases.db` locked: at least a second, and 30 seconds by default.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        /// Others take turns in less as a rule.
        const LEAST: Duration = Duration::from_secs(1);
        self.patience = patience.max(LEAST);
        self
    }

    /// Calls `hook` with the reason if a process that makes something in the directory is
    /// waited for and does not end within a second.
    #[must_use]
    pub fn on_wait_hook(self, hook: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        self.with_wait_hook(WaitHook::new(hook))
    }

    pub(crate) fn with_wait_hook(mut self, hook: WaitHook) -> Self {
        self.wait_hook = Some(hook);
        self
    }

    pub(super) fn accept_best_effort(mut self, accept: bool) -> Self {
        self.best_effort = accept;
        self
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The directory that [`VARIABLE`](Self::VARIABLE) names, or else the
    /// platform's: `$XDG_DATA_HOME/ringflake` or `~/.local/share/ringflake`, and
    /// `%APPDATA%\ringflake` on Windows.
    ///
    /// # Errors
    /// [`LocalError::NoHome`] if there is neither.
    pub fn of_this_user() -> Result<Self, LocalError> {
        let variable = env::var_os(Self::VARIABLE).filter(|value| !value.is_empty());
        if let Some(path) = variable {
            return Ok(Self::new(path));
        }
        let strategy = etcetera::choose_base_strategy().map_err(|_| LocalError::NoHome)?;
        Ok(Self::new(strategy.data_dir().join("ringflake")))
    }

    /// The directory, as an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the leases.
    pub fn leases(&self) -> PathBuf {
        self.path.join(STORE_NAME)
    }

    /// The file with the secret of the namespaces without a name.
    pub fn secret(&self) -> PathBuf {
        self.path.join(SECRET_NAME)
    }

    /// The file with the secret of the namespace of this name.
    pub fn secret_of(&self, namespace: &str) -> PathBuf {
        self.path.join(format!("{namespace}{SECRET_SUFFIX}"))
    }

    /// Makes the secret of the namespaces without a name, unless there is one;
    /// returns its file and whether it is new. In a directory without a past the
    /// record of leases comes first.
    ///
    /// # Errors
    /// [`LocalError::Directory`], [`LocalError::SecretFile`],
    /// [`LocalError::Secret`].
    pub fn keep_secret(&self) -> Result<(PathBuf, bool), LocalError> {
        self.create()?;
        let path = self.secret();
        Secret::check_directory(&path).map_err(LocalError::Secret)?;
        let lock = self.lock()?;
        self.begin_if_new(&lock)?;
        let made = secret::keep(&path, &lock)?;
        Ok((path, made))
    }

    /// Notes that this secret was drawn here, so that IDs can be made with it from this directory
    /// though it is kept elsewhere. Only for a secret that was just drawn and that nobody else has
    /// noted.
    ///
    /// # Errors
    /// [`LocalError::Directory`].
    pub fn note_new_secret(&self, secret: &Secret) -> Result<(), LocalError> {
        self.create()?;
        self.adopt(&self.lock()?, secret)
    }

    /// Notes that IDs are about to be made with this secret under leases from
    /// elsewhere, so that none are made with it from this directory: for one that a
    /// store is given. Makes no directory. Waits for processes that are making something
    /// in it: some milliseconds as a rule, and no longer than its
    /// [patience](Self::with_patience).
    ///
    /// # Errors
    /// [`LocalError::SecretUsed`] if IDs are made with it from this directory,
    /// [`LocalError::Directory`], [`LocalError::Place`], [`LocalError::Store`].
    pub fn give_away(&self, secret: &Secret) -> Result<(), LocalError> {
        if !self.with_path(fs::exists(&self.path))? {
            return Ok(());
        }
        let lock = self.lock()?;
        self.refuse_used(secret)?;
        self.with_path(lock.note_secret_elsewhere(&secret::mark(secret)))
    }

    /// Refuses a secret that IDs are made with from this directory. Makes nothing. Waits for a
    /// locked store no longer than the directory's [patience](Self::with_patience).
    ///
    /// # Errors
    /// [`LocalError::SecretUsed`], [`LocalError::Place`], [`LocalError::Store`].
    pub fn refuse_used(&self, secret: &Secret) -> Result<(), LocalError> {
        let mut records = self.clone().accept_best_effort(true).records()?.into_iter();
        match records.find(|it| names::width_of(it, Some(secret)).is_some()) {
            Some(used) => Err(LocalError::SecretUsed {
                namespace: used.name().to_owned(),
                directory: self.path.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Whether the note says that IDs are made with this secret elsewhere. Takes no
    /// lock.
    pub(super) fn is_elsewhere(&self, secret: &Secret) -> Result<bool, LocalError> {
        self.with_path(is_elsewhere(&self.leases(), &secret::mark(secret)))
    }

    /// Notes that this secret belongs here, drawn or vouched for. The directory is locked.
    pub(super) fn adopt(&self, lock: &Lock, secret: &Secret) -> Result<(), LocalError> {
        self.with_path(lock.note_secret(&secret::mark(secret)))
    }

    /// Whether this secret was drawn here, or vouched for. The directory is locked.
    pub(super) fn has_drawn(&self, lock: &Lock, secret: &Secret) -> Result<bool, LocalError> {
        self.with_path(lock.has_secret(&secret::mark(secret)))
    }

    /// Makes the directory, for its owner alone, unless it exists.
    pub(super) fn create(&self) -> Result<(), LocalError> {
        if !self.path.exists() {
            self.with_path(refuse_foreign(&self.path))?;
        }
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        self.with_path(builder.create(&self.path))
    }

    /// Keeps other processes from the same for as long as the lock is held.
    pub(super) fn lock(&self) -> Result<Lock, LocalError> {
        let notice = |reason| {
            if let Some(hook) = &self.wait_hook {
                hook.call(&StoreError::unavailable(reason));
            }
        };
        let lock = Lock::of_with_notice(self.leases(), self.patience, notice);
        self.with_path(lock)
    }

    /// The store of leases.
    pub(super) fn store(&self) -> Result<SqliteStore, LocalError> {
        let options = OpenOptions::new()
            .timeout(self.patience)
            .accept_best_effort(self.best_effort);
        SqliteStore::new(self.leases(), &options).map_err(LocalError::Place)
    }

    /// The namespaces on record; none if there is no `leases.db`.
    pub(super) fn records(&self) -> Result<Vec<Namespace>, LocalError> {
        match self.with_path(fs::exists(self.leases()))? {
            true => Ok(self.store()?.namespaces()?),
            false => Ok(Vec::new()),
        }
    }

    /// The past according to the note alone. The directory is locked.
    pub(super) fn noted_past(&self, lock: &Lock) -> Result<Past, LocalError> {
        self.with_path(lock.past(self.has_secret()?))
    }

    /// Makes `leases.db` and the note if nothing was ever made here. The directory is locked.
    pub(super) fn begin_if_new(&self, lock: &Lock) -> Result<(), LocalError> {
        match self.noted_past(lock)? {
            Past::None => self.with_path(lock.begin(Past::None)),
            _ => Ok(()),
        }
    }

    /// Makes `leases.db` and the note on the past if they are missing, and returns the past that
    /// was found. The directory is locked, and what may be missing had limits like these, or like
    /// those on record.
    pub(super) fn begin(&self, lock: &Lock, limits: &StoreLimits) -> Result<Past, LocalError> {
        let past = self.store()?.past(lock, self.has_secret()?, limits)?;
        self.with_path(lock.begin(past))?;
        Ok(past)
    }

    /// Does what [`begin`](Self::begin) does, but refuses a copy. Returns the history with which a
    /// namespace begins that is not on record.
    pub(super) fn begin_history(&self, lock: &Lock) -> Result<History, LocalError> {
        match self.begin(lock, &StoreLimits::default())? {
            Past::None | Past::Recorded => Ok(History::New),
            Past::Doubtful | Past::Lost => Ok(History::Unknown),
            Past::AnothersCopy => Err(self.copied()),
        }
    }

    pub(super) fn copied(&self) -> LocalError {
        LocalError::Copied {
            directory: self.path.clone(),
        }
    }

    /// Whether there is a secret, of whatever namespace.
    fn has_secret(&self) -> Result<bool, LocalError> {
        let or_is_secret = |found, entry: io::Result<DirEntry>| {
            let name = entry?.file_name();
            let name = name.as_encoded_bytes();
            let is_unnamed = name == SECRET_NAME.as_bytes();
            io::Result::Ok(found || is_unnamed || name.ends_with(SECRET_SUFFIX.as_bytes()))
        };
        let entries = fs::read_dir(&self.path);
        self.with_path(entries.and_then(|mut entries| entries.try_fold(false, or_is_secret)))
    }

    /// Names the directory in an error.
    pub(super) fn with_path<T>(&self, outcome: io::Result<T>) -> Result<T, LocalError> {
        outcome.map_err(|source| LocalError::Directory {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_in_a_directory_speaks_of_a_past() {
        for name in ["secret", "orders.secret"] {
            let path = tempfile::tempdir().unwrap();
            let directory = DataDir::new(path.path());
            let lock = directory.lock().unwrap();
            assert_eq!(directory.noted_past(&lock).unwrap(), Past::None);
            fs::write(path.path().join(".orders.secret-new"), "a draft").unwrap();
            assert_eq!(directory.noted_past(&lock).unwrap(), Past::None);
            fs::write(path.path().join(name), "x").unwrap();
            assert_eq!(directory.noted_past(&lock).unwrap(), Past::Lost, "{name}");
        }
    }
}
