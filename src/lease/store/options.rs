//! How stores are opened, and why one is not.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use crate::describe::describe;

/// How stores are opened.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake::lease::OpenOptions;
///
/// let options = OpenOptions::new().timeout(Duration::from_secs(2));
/// assert!(!options.accepts_best_effort());
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    timeout: Duration,
    best_effort: bool,
    password: Option<Ask>,
}

impl OpenOptions {
    /// Five seconds for an operation, and durable stores only.
    pub const fn new() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            best_effort: false,
            password: None,
        }
    }

    /// How long one operation may take at most, connecting included; at least a
    /// millisecond. After that its outcome is unknown.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether to use a store that can lose what it has confirmed, such as a
    /// Redis without an append-only file. When it does, IDs may be issued twice:
    /// only the incarnation, if it shows the loss, and the horizon are left to
    /// prevent duplicates. Refused by default.
    #[must_use]
    pub const fn accept_best_effort(mut self, accept: bool) -> Self {
        self.best_effort = accept;
        self
    }

    /// Calls `password` for the password at each new connection, so that it can be a
    /// token that expires. It takes precedence over every other password, that in the URL
    /// included. The caller of the store waits for the answer, without a limit: with
    /// generators, that is a thread which all that were given clones of these options
    /// share for one URL. An error is
    /// [`StoreError::Unavailable`](crate::lease::error::StoreError::Unavailable), and the
    /// next operation asks again. Stores that have no password never ask.
    ///
    /// # Examples
    /// ```
    /// use ringflake::lease::OpenOptions;
    ///
    /// let options = OpenOptions::new()
    ///     .with_password(|| std::fs::read_to_string("/run/vault/token"));
    /// ```
    #[must_use]
    pub fn with_password(
        mut self,
        password: impl Fn() -> io::Result<String> + Send + Sync + 'static,
    ) -> Self {
        self.password = Some(Ask::new(password));
        self
    }

    pub(crate) fn password(&self) -> Option<&Ask> {
        self.password.as_ref()
    }

    /// See [`timeout`](Self::timeout).
    pub const fn operation_timeout(&self) -> Duration {
        self.timeout
    }

    /// See [`accept_best_effort`](Self::accept_best_effort).
    pub const fn accepts_best_effort(&self) -> bool {
        self.best_effort
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The program's callback that returns the password.
#[derive(Clone)]
pub(crate) struct Ask(Arc<dyn Fn() -> io::Result<String> + Send + Sync>);

impl Ask {
    pub(crate) fn new(ask: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The password as it is now.
    pub(crate) fn get(&self) -> io::Result<String> {
        (self.0)()
    }
}

/// Compares identity: whether it is the same callback, not whether the
/// passwords are equal.
impl PartialEq for Ask {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Ask {}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask")
    }
}

/// A text that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(String);

impl Hidden {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Why a URL names no store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no `scheme:` at its start.
    NoScheme,
    /// No store has this scheme.
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The store exists, but this program was built without it.
    FeatureOff {
        /// The crate's feature.
        feature: &'static str,
    },
    /// The rest of the URL, or an option, is wrong.
    Invalid {
        /// The scheme.
        scheme: &'static str,
        /// The mistake and the allowed values, without the URL.
        reason: String,
    },
}

/// The schemes of stores.
const KNOWN: &str =
    "sqlite:, postgres://, mysql://, redis://, rediss://, etcd://, etcds:// or tier:";

describe! {
    OpenError;

    Self::NoScheme => "the store's URL has no scheme: begin it with {KNOWN}";
    Self::Scheme { scheme } => "no store has the scheme {scheme:?}: use {KNOWN}";
    Self::FeatureOff { feature } =>
        "this program was built without the {feature} store: build it with the feature {feature:?}";
    Self::Invalid { scheme, reason } => "the {scheme} URL is wrong: {reason}";
}

impl std::error::Error for OpenError {}
