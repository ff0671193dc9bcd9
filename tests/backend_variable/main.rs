//! The environment variable that forces a backend.
//!
//! A process has one environment, so this is the only test in its file.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringflake::{Backend, Cipher, Secret};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, subscriber};

/// Counts warnings, and fails on any but the one that the variable can cause.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        assert_eq!(*metadata.level(), Level::WARN);
        assert_eq!(metadata.target(), "ringflake");
        let fields = metadata.fields().iter().map(|field| field.name());
        assert_eq!(
            fields.collect::<Vec<_>>(),
            ["message", "value", "chosen", "available"]
        );
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The backend of a key set up under this value, and the warnings given.
fn set_up(value: Option<&str>) -> (Backend, usize) {
    const NAME: &str = "RINGFLAKE_BACKEND";
    match value {
        // SAFETY: this process has one test, so no other thread reads or writes
        // the environment.
        Some(value) => unsafe { env::set_var(NAME, value) },
        // SAFETY: as above.
        None => unsafe { env::remove_var(NAME) },
    }
    let warnings = Warnings::default();
    let cipher = subscriber::with_default(warnings.clone(), || {
        Cipher::sparx64(&Secret::from_bytes([5; 16]))
    });
    (cipher.backend(), warnings.0.load(Ordering::Relaxed))
}

#[test]
fn the_variable_forces_a_backend() {
    for backend in Backend::available() {
        assert_eq!(set_up(Some(&backend.to_string())), (backend, 0));
    }

    let fastest = Backend::available().next().unwrap();
    assert_eq!(set_up(None), (fastest, 0));

    let foreign = if cfg!(target_arch = "x86_64") {
        Backend::Neon
    } else {
        Backend::Avx2
    };
    let unusable = ["", "avx1024", "PORTABLE", &foreign.to_string()]
        .map(|value| (value.to_owned(), set_up(Some(value))));
    for (index, (value, outcome)) in unusable.into_iter().enumerate() {
        // Only the first is told, for it is told once a process.
        let warnings = usize::from(index == 0);
        assert_eq!(outcome, (fastest, warnings), "{value:?}");
    }
}
