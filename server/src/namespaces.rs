//! The generators, one for each namespace.
//!
//! ```text
//! name --get--> made already: one lookup in a map that is never changed in place
//!      --open-> the first who asks makes the generator, outside of any lock that `get` needs;
//!               who asks meanwhile for the same name waits for that
//! ```
//!
//! A namespace is never removed while the server runs: its generator has leases, and to make
//! it again would need others.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use ringflake::{BuildError, CachedGenerator, Shutdown};

/// A generator and its name.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) generator: CachedGenerator,
}

/// Builds the generator of a namespace. Blocks: it asks a store.
pub(crate) type Build = Box<dyn Fn(&str) -> Result<CachedGenerator, OpenError> + Send + Sync>;

/// All namespaces of a server.
pub(crate) struct Namespaces {
    made: ArcSwap<HashMap<String, Arc<Namespace>>>,
    /// Held while one is made.
    making: Mutex<()>,
    build: Build,
    /// How many there may be.
    most: usize,
}

/// Why a namespace can't be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not among those of the configuration, and clients may not begin others.
    Unknown,
    /// There are as many as there may be.
    TooMany {
        /// The limit.
        most: usize,
    },
    /// Its generator was refused.
    Build(BuildError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "there is no such namespace: add it to the configuration, or let clients begin \
                 namespaces there",
            ),
            Self::TooMany { most } => write!(
                f,
                "there are {most} namespaces already, which is the limit: use one of them, or \
                 raise limits.namespaces in the configuration"
            ),
            Self::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Unknown | Self::TooMany { .. } => None,
        }
    }
}

impl Namespaces {
    pub(crate) fn new(build: Build, most: usize) -> Self {
        Self {
            made: ArcSwap::default(),
            making: Mutex::default(),
            build,
            most,
        }
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
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.made.load_full();
        if let Some(found) = made.get(name) {
            return Ok(Arc::clone(found));
        }
        if made.len() >= self.most {
            return Err(OpenError::TooMany { most: self.most });
        }
        let namespace = Arc::new(Namespace {
            name: name.to_owned(),
            generator: (self.build)(name)?,
        });
        let mut more = HashMap::clone(&made);
        more.insert(name.to_owned(), Arc::clone(&namespace));
        self.made.store(Arc::new(more));
        Ok(namespace)
    }

    /// All whose generator is made, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Namespace>> {
        let mut all: Vec<_> = self.made.load().values().cloned().collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Shuts all generators down side by side, once no front has one any more, and answers
    /// what became of their leases.
    pub(crate) fn shutdown(self, patience: Duration) -> Vec<(String, Shutdown)> {
        let made = self.made.into_inner();
        let end = |namespace: Arc<Namespace>| match Arc::try_unwrap(namespace) {
            Ok(Namespace { name, generator }) => (name, generator.shutdown(patience)),
            Err(namespace) => (namespace.name.clone(), Shutdown::InUse),
        };
        // The fronts are gone, so nobody else has the map.
        let namespaces = Arc::try_unwrap(made).unwrap_or_else(|made| HashMap::clone(&made));
        std::thread::scope(|scope| {
            let ends: Vec<_> = namespaces
                .into_values()
                .map(|namespace| scope.spawn(move || end(namespace)))
                .collect();
            ends.into_iter().filter_map(|end| end.join().ok()).collect()
        })
    }
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.all();
        let names = names.iter().map(|namespace| &namespace.name);
        f.debug_set().entries(names).finish()
    }
}
