//! The URL of a store.

use std::fmt;

/// A URL that may hold a password, which no text of this type shows.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL, which is checked when it is opened.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL as a store takes it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The kind of the store, which is all of it that may be shown.
    pub fn scheme(&self) -> &str {
        let (scheme, _) = self.0.split_once(':').unwrap_or_default();
        scheme
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({}:..)", self.scheme())
    }
}
