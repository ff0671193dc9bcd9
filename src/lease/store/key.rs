//! Keys that show which stores are one and the same.

use std::time::Duration;

use crate::describe::opaque_debug;
use crate::lease::store::options::{Ask, Hidden, OpenOptions};

/// The address of a store, and the options of its connection. Of two
/// [stores](crate::lease::LeaseStore) with equal keys either can do the other's work. So
/// generators of one process whose stores have equal keys share one store, with its
/// connection and its thread.
///
/// It holds the URL, and never prints it. Two URLs that are spelled differently are
/// different keys, and so are two callbacks that ask for a password, unless one is the
/// other's [clone](OpenOptions).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake::lease::{OpenOptions, StoreKey};
///
/// let options = OpenOptions::new();
/// let key = StoreKey::new("redis://ids:hunter2@localhost", &options);
/// assert_eq!(key, StoreKey::new("redis://ids:hunter2@localhost", &options));
/// let quick = options.timeout(Duration::from_secs(1));
/// assert_ne!(key, StoreKey::new("redis://ids:hunter2@localhost", &quick));
/// assert!(!format!("{key:?}").contains("hunter2"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreKey {
    url: Hidden,
    timeout: Duration,
    best_effort: bool,
    ask: Option<Ask>,
}

impl StoreKey {
    /// The key of the store that this URL and these options open. A path in it should
    /// be absolute: the working directory may change.
    pub fn new(url: &str, options: &OpenOptions) -> Self {
        Self {
            url: Hidden::new(url),
            timeout: options.operation_timeout(),
            best_effort: options.accepts_best_effort(),
            ask: options.password().cloned(),
        }
    }
}

opaque_debug!(StoreKey);

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "postgres://ids@db.example.com/ids";

    #[test]
    fn stores_that_are_reached_in_another_way_have_another_key() {
        let options = OpenOptions::new();
        let asks = options.clone().with_password(|| Ok(String::new()));
        let asked = StoreKey::new(URL, &asks);
        assert_eq!(asked, StoreKey::new(URL, &asks.clone()));
        for other in [
            StoreKey::new(URL, &options),
            StoreKey::new("postgres://ids@db.example.com/orders", &asks),
            StoreKey::new(URL, &asks.clone().accept_best_effort(true)),
            StoreKey::new(URL, &options.clone().with_password(|| Ok(String::new()))),
        ] {
            assert_ne!(asked, other);
        }
    }
}
