//! The generators, one for each namespace.
//!
//! ```text
//! name --get--> made already: one lookup in a map that is never changed in place
//!      --open-> a slot of its own: the first who asks makes the generator, and who asks
//!               meanwhile for that name waits for what comes of it; other names don't wait
//! ```
//!
//! A failure is the answer to all who have waited for it, and is then forgotten: the next
//! one who asks tries again. A namespace is not removed while the server runs: its generator
//! has leases, and to make it again would need others.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use ringflake::lease::{self, NamespaceError};
use ringflake::{BuildError, CachedGenerator, Local, LocalError, SecretError, Shutdown};

use crate::lock::lock;
use crate::log_limit::LogLimit;
use crate::readiness::{self, DataDirCheck, Obstacle};
use crate::wording::{Causes, Target, help_of_build, help_of_local};

#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) generator: CachedGenerator,
}

impl Namespace {
    /// For how long it can issue IDs though no store answers, or why it can issue none.
    pub(crate) fn readiness(&self) -> Result<Duration, Obstacle> {
        readiness::of(&self.generator)
    }
}

/// Builds the generator of a namespace. Blocks: it asks a store.
pub(crate) type Build = Box<dyn Fn(&str) -> Result<CachedGenerator, OpenError> + Send + Sync>;

/// Refuses a name that can't be opened whatever stores say. Costs no I/O.
pub(crate) type Admit = Box<dyn Fn(&str) -> Result<(), OpenError> + Send + Sync>;

/// What came of making a namespace.
type Slot = Arc<OnceLock<Result<Arc<Namespace>, OpenError>>>;

pub(crate) struct Namespaces {
    made: ArcSwap<HashMap<String, Arc<Namespace>>>,
    /// The namespaces that are being made. Locked briefly, also while `made` is replaced.
    making: Mutex<Making>,
    build: Build,
    admit: Admit,
    most: usize,
    /// Of the directory of namespaces that clients begin, where they may.
    data_dir: Option<DataDirCheck>,
    failures: LogLimit,
}

#[derive(Default)]
struct Making {
    slots: HashMap<String, Slot>,
    /// Whether the server ends, and nothing is made any more.
    is_over: bool,
}

/// Why a namespace can't be had.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not among those of the configuration, and clients may not begin others.
    Unknown,
    /// There are as many as there may be.
    TooMany {
        /// The limit.
        most: usize,
    },
    /// The server ends.
    Stopping,
    /// The name is not valid for a namespace.
    Name(NamespaceError),
    /// The data directory reserves such names, or the name is too long for it.
    LocalName(Arc<LocalError>),
    /// Its generator was refused.
    #[non_exhaustive]
    Build {
        /// The reason.
        error: Arc<BuildError>,
        /// What an operator can do about it.
        help: Option<String>,
    },
    /// Its store can't be opened.
    Store(Arc<lease::OpenError>),
    /// Its secret can't be read.
    Secret(Arc<SecretError>),
    /// Another namespace of the configuration has its secret.
    SharedSecret {
        /// The name of the other one.
        other: String,
    },
    /// Its secret belongs elsewhere.
    Local(Arc<LocalError>),
    /// The file with the URL of its store can't be read.
    UrlFile {
        /// The file.
        path: PathBuf,
        /// The operating system's answer, or what is wrong with the file's rights.
        source: Arc<io::Error>,
    },
}

impl OpenError {
    /// `target` names the namespace in the help.
    pub(crate) fn of_build(error: BuildError, target: &Target) -> Self {
        match error {
            BuildError::Local(
                error @ (LocalError::ReservedName { .. } | LocalError::NameLength { .. }),
            ) => Self::LocalName(Arc::new(error)),
            error => Self::Build {
                help: help_of_build(&error, target),
                error: Arc::new(error),
            },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "unknown namespace: add it to the configuration, or allow clients to create it \
                 with on-demand and on-demand-names",
            ),
            Self::TooMany { most } => write!(
                f,
                "the limit of {most} namespaces is reached: use one of them, or raise \
                 limits.namespaces in the configuration"
            ),
            Self::Stopping => {
                f.write_str("the server is stopping: use another one, or try again later")
            }
            Self::Name(error) => error.fmt(f),
            Self::Build { error, .. } => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::LocalName(error) | Self::Local(error) => error.fmt(f),
            Self::SharedSecret { other } => write!(f, "namespace {other:?} has the same secret"),
            Self::UrlFile { path, .. } => write!(f, "{} can't be read", path.display()),
        }
    }
}

impl OpenError {
    /// Why it matters, in one sentence; none where the first line says all.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Self::Build { error, .. } => error.note(),
            Self::LocalName(error) | Self::Local(error) => error.note(),
            Self::SharedSecret { .. } => {
                Some("two namespaces with one secret could issue the same IDs")
            }
            _ => None,
        }
    }

    /// What an operator can do about it; none where the first line says it. Allocates.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Build { help, .. } => help.clone(),
            Self::LocalName(error) | Self::Local(error) => help_of_local(error, None),
            Self::SharedSecret { .. } => Some(
                "set secret-file to a secret that only this namespace has: 'ringflake keygen --out \
                 FILE' makes one"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(error) => error.source(),
            Self::Build { error, .. } => error.source(),
            Self::Store(error) => error.source(),
            Self::Secret(error) => error.source(),
            Self::LocalName(error) | Self::Local(error) => error.source(),
            Self::UrlFile { source, .. } => Some(source),
            Self::Unknown | Self::TooMany { .. } | Self::Stopping | Self::SharedSecret { .. } => {
                None
            }
        }
    }
}

impl Namespaces {
    pub(crate) fn new(build: Build, most: usize) -> Self {
        Self {
            made: ArcSwap::default(),
            making: Mutex::default(),
            build,
            admit: Box::new(|_| Ok(())),
            most,
            data_dir: None,
            failures: LogLimit::default(),
        }
    }

    /// Refused names take no slot.
    pub(crate) fn admit(mut self, admit: Admit) -> Self {
        self.admit = admit;
        self
    }

    /// Clients may begin namespaces, whose files lie in this directory.
    pub(crate) fn on_demand(mut self, data_dir: Local) -> Self {
        self.data_dir = Some(DataDirCheck::new(data_dir));
        self
    }

    pub(crate) fn is_on_demand(&self) -> bool {
        self.data_dir.is_some()
    }

    /// Why clients can't begin namespaces though they may. Asks the file system at most once
    /// a second, and blocks for as long as it does.
    pub(crate) fn data_dir_obstacle(&self) -> Option<Obstacle> {
        self.data_dir.as_ref()?.obstacle()
    }

    /// The namespace, if its generator is made. Never blocks.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Namespace>> {
        self.made.load().get(name).cloned()
    }

    /// The namespace; makes its generator if need be, which blocks for as long as its store
    /// does.
    pub(crate) fn open(&self, name: &str) -> Result<Arc<Namespace>, OpenError> {
        if let Some(found) = self.get(name) {
            return Ok(found);
        }
        (self.admit)(name).inspect_err(|error| self.log_failure(name, error))?;
        let slot = match self.slot(name)? {
            Ok(made) => return Ok(made),
            Err(slot) => slot,
        };
        slot.get_or_init(|| {
            let built = (self.build)(name);
            self.settle(name, built)
        })
        .clone()
    }

    /// The slot in which this namespace is being made, or the namespace.
    fn slot(&self, name: &str) -> Result<Result<Arc<Namespace>, Slot>, OpenError> {
        let mut making = lock(&self.making);
        if making.is_over {
            return Err(OpenError::Stopping);
        }
        // It may have been made since.
        let made = self.made.load();
        if let Some(found) = made.get(name) {
            return Ok(Ok(Arc::clone(found)));
        }
        if let Some(slot) = making.slots.get(name) {
            return Ok(Err(Arc::clone(slot)));
        }
        if made.len() + making.slots.len() >= self.most {
            let error = OpenError::TooMany { most: self.most };
            self.log_failure(name, &error);
            return Err(error);
        }
        let slot = Slot::default();
        making.slots.insert(name.to_owned(), Arc::clone(&slot));
        Ok(Err(slot))
    }

    /// Puts a generator where all find it, or makes room for the next try.
    fn settle(
        &self,
        name: &str,
        built: Result<CachedGenerator, OpenError>,
    ) -> Result<Arc<Namespace>, OpenError> {
        let mut making = lock(&self.making);
        making.slots.remove(name);
        let generator = built.inspect_err(|error| self.log_failure(name, error))?;
        if making.is_over {
            // Its leases go as it is dropped.
            return Err(OpenError::Stopping);
        }
        let namespace = Arc::new(Namespace {
            name: name.to_owned(),
            generator,
        });
        let mut more = HashMap::clone(&self.made.load());
        more.insert(name.to_owned(), Arc::clone(&namespace));
        self.made.store(Arc::new(more));
        tracing::info!(namespace = name, "a namespace is open");
        Ok(namespace)
    }

    /// Any client can cause these lines, as often as it likes.
    fn log_failure(&self, name: &str, error: &OpenError) {
        if matches!(
            error,
            OpenError::Unknown | OpenError::Name(_) | OpenError::LocalName(_)
        ) {
            if let Some(suppressed) = self.failures.permit("no such namespace") {
                tracing::debug!(namespace = name, %error, suppressed, "no such namespace");
            }
            return;
        }
        // A full disk is one cause, whatever names are asked for.
        if let Some(suppressed) = self.failures.permit(&root_cause(error)) {
            let (help, error) = (error.help(), Causes(error).to_string());
            tracing::warn!(
                namespace = name,
                error,
                help,
                suppressed,
                "cannot open a namespace"
            );
        }
    }

    /// All whose generator is made, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Namespace>> {
        let mut all: Vec<_> = self.made.load().values().cloned().collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// How many are open, and how many may be.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.made.load().len(), self.most)
    }

    /// The namespaces that are made but can issue no ID at present, by name, and why. `*` stands
    /// for namespaces that clients begin.
    pub(crate) fn unready(&self) -> Vec<(String, Obstacle)> {
        let all = self.all().into_iter();
        let made = all.filter_map(|one| Some((one.name.clone(), one.readiness().err()?)));
        let others = self.data_dir_obstacle();
        made.chain(others.map(|obstacle| ("*".to_owned(), obstacle)))
            .collect()
    }

    /// Shuts all generators down side by side, and answers what became of their leases, by
    /// name. One that a connection still has is [`Shutdown::InUse`]. None is made any more.
    pub(crate) fn shutdown(&self, patience: Duration) -> Vec<(String, Shutdown)> {
        let made = {
            let mut making = lock(&self.making);
            making.is_over = true;
            self.made.swap(Arc::default())
        };
        let end = |namespace: Arc<Namespace>| match Arc::try_unwrap(namespace) {
            Ok(Namespace { name, generator }) => (name, generator.shutdown(patience)),
            Err(namespace) => (namespace.name.clone(), Shutdown::InUse),
        };
        // A reader that looks something up at this moment has the map, too.
        let namespaces = Arc::try_unwrap(made).unwrap_or_else(|made| HashMap::clone(&made));
        let mut ends: Vec<_> = std::thread::scope(|scope| {
            let ends: Vec<_> = namespaces
                .into_values()
                .map(|namespace| scope.spawn(move || end(namespace)))
                .collect();
            ends.into_iter().filter_map(|end| end.join().ok()).collect()
        });
        ends.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        ends
    }
}

fn root_cause(error: &OpenError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.all();
        let names = names.iter().map(|namespace| &namespace.name);
        f.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;
