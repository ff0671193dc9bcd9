//! Which store a namespace has, and with which secret.
//!
//! A generator and the leases of clients make IDs of one namespace, which are unique if their
//! leases come from one store. So what the files say when a namespace is opened counts for as
//! long as the server runs, whatever they say later. One that can't be opened keeps the server
//! from starting, so nothing is ever to be forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringflake::Secret;

use crate::config::StoreUrl;

/// The store of a namespace.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) url: StoreUrl,
    /// None where IDs are plain.
    pub(super) secret: Option<Secret>,
}

impl Upstream {
    /// The keys of the files that say something else in `other`.
    fn differs(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let secret = self.secret.as_ref().map(Secret::expose);
        let differ = [
            ("store-url-file", self.url != other.url),
            (
                "secret-file",
                secret != other.secret.as_ref().map(Secret::expose),
            ),
        ];
        differ
            .into_iter()
            .filter_map(|(key, differs)| differs.then_some(key))
    }
}

/// The stores that generators use.
#[derive(Default)]
pub(super) struct Stores(Mutex<HashMap<String, Upstream>>);

impl Stores {
    pub(super) fn kept(&self, namespace: &str) -> Option<Upstream> {
        self.lock().get(namespace).cloned()
    }

    /// Keeps this one, unless there is one; which of them counts.
    pub(super) fn keep(&self, namespace: &str, upstream: Upstream) -> Upstream {
        let mut kept = self.lock();
        kept.entry(namespace.to_owned()).or_insert(upstream).clone()
    }

    /// The keys of files that say something else than what is kept. One that can't be read
    /// says nothing.
    pub(super) fn changed<E>(
        &self,
        read: impl Fn(&str) -> Result<Option<Upstream>, E>,
    ) -> Vec<&'static str> {
        let kept = self.lock().clone();
        let mut changed: Vec<_> = kept
            .iter()
            .filter_map(|(namespace, kept)| Some((kept, read(namespace).ok()??)))
            .flat_map(|(kept, now)| kept.differs(&now).collect::<Vec<_>>())
            .collect();
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Upstream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str, secret: Option<u8>) -> Upstream {
        Upstream {
            url: StoreUrl::new(url),
            secret: secret.map(|byte| Secret::from([byte; 16])),
        }
    }

    #[test]
    fn a_key_whose_files_have_changed_is_named_once() {
        let stores = Stores::default();
        for name in ["a", "b", "c"] {
            stores.keep(name, upstream("sqlite:db", Some(1)));
        }
        // The first one counts.
        stores.keep("a", upstream("sqlite:other", None));
        let changed = |url: &'static str, byte| {
            stores.changed(|_| Ok::<_, ()>(Some(upstream(url, Some(byte)))))
        };
        assert_eq!(changed("sqlite:db", 1), [""; 0]);
        assert_eq!(changed("sqlite:other", 1), ["store-url-file"]);
        let both = ["secret-file", "store-url-file"];
        assert_eq!(changed("sqlite:other", 2), both);
        // What can't be read says nothing.
        let changed = stores.changed(|name| match name {
            "a" => Ok(Some(upstream("sqlite:db", None))),
            "b" => Ok(None),
            _ => Err(()),
        });
        assert_eq!(changed, ["secret-file"]);
    }
}
