//! The URL of a store.

use std::fmt;
use std::path::Path;

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

    /// This URL as it is meant in a file of this directory: a store in a file whose path is
    /// relative is found from there, and not from wherever the server was started, which
    /// would be another store with the same secret, and the same IDs.
    #[must_use]
    pub(crate) fn in_directory(&self, directory: &Path) -> Self {
        Self(in_directory(&self.0, directory))
    }

    /// The store behind a tier.
    pub(crate) fn upstream(&self) -> Option<Self> {
        let (_, upstream) = self.0.strip_prefix("tier:")?.split_once("?upstream=")?;
        Some(Self::new(upstream))
    }

    /// The kind of the store, which is all of it that may be shown.
    pub fn scheme(&self) -> &str {
        let (scheme, _) = self.0.split_once(':').unwrap_or_default();
        scheme
    }
}

/// `sqlite:PATH` and `tier:PATH?upstream=URL` with their paths below `directory`; any other
/// URL as it is.
fn in_directory(url: &str, directory: &Path) -> String {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return format!("sqlite:{}", joined(directory, path));
    }
    let parts = url.strip_prefix("tier:");
    match parts.and_then(|rest| rest.split_once("?upstream=")) {
        Some((path, upstream)) => format!(
            "tier:{}?upstream={}",
            joined(directory, path),
            in_directory(upstream, directory)
        ),
        None => url.to_owned(),
    }
}

/// The path, which stays as it is where it is absolute, or no path of a file.
fn joined(directory: &Path, path: &str) -> String {
    match path {
        "" | ":memory:" => path.to_owned(),
        _ => directory.join(path).display().to_string(),
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({}:..)", self.scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_file_is_found_from_where_the_url_stands() {
        for (url, meant) in [
            ("sqlite:leases.db", "sqlite:/etc/ids/leases.db"),
            ("sqlite:../leases.db", "sqlite:/etc/ids/../leases.db"),
            ("sqlite:/var/leases.db", "sqlite:/var/leases.db"),
            ("sqlite:///var/leases.db", "sqlite:///var/leases.db"),
            (
                "tier:t.db?upstream=sqlite:leases.db",
                "tier:/etc/ids/t.db?upstream=sqlite:/etc/ids/leases.db",
            ),
            (
                "tier:/var/t.db?upstream=postgres://h/d?a=b",
                "tier:/var/t.db?upstream=postgres://h/d?a=b",
            ),
            ("postgres://h/leases.db", "postgres://h/leases.db"),
            // What the store refuses.
            ("sqlite:", "sqlite:"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("sqlite://host/leases.db", "sqlite://host/leases.db"),
            ("tier:t.db", "tier:t.db"),
            ("leases.db", "leases.db"),
        ] {
            let url = StoreUrl::new(url).in_directory(Path::new("/etc/ids"));
            assert_eq!(url.expose(), meant);
        }
        let bare = StoreUrl::new("sqlite:leases.db").in_directory(Path::new(""));
        assert_eq!(bare.expose(), "sqlite:leases.db");
    }
}
