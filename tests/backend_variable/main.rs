//! The environment variable that forces a backend.
//!
//! A process has one environment, so this is the only test in its file.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringflake::{Backend, Cipher, Secret};
use ringflake_kit::events::OnEvent;
use tracing::{Event, Level, subscriber};

/// Counts warnings, each of which must have these fields.
fn count_warning(event: &Event<'_>, count: &AtomicUsize) {
    let metadata = event.metadata();
    if *metadata.level() > Level::WARN {
        return;
    }
    assert_eq!(*metadata.level(), Level::WARN);
    assert_eq!(metadata.target(), "ringflake");
    let fields = metadata.fields().iter().map(|field| field.name());
    assert_eq!(
        fields.collect::<Vec<_>>(),
        ["message", "value", "chosen", "available"]
    );
    count.fetch_add(1, Ordering::Relaxed);
}

fn set_up(value: Option<&str>) -> (Backend, usize) {
    const NAME: &str = "RINGFLAKE_BACKEND";
    match value {
        // SAFETY: this process has one test, so no other thread reads or writes
        // the environment.
        Some(value) => unsafe { env::set_var(NAME, value) },
        // SAFETY: as above.
        None => unsafe { env::remove_var(NAME) },
    }
    let warnings = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&warnings);
    let counting = OnEvent(move |event: &Event<'_>| count_warning(event, &count));
    let cipher =
        subscriber::with_default(counting, || Cipher::sparx64(&Secret::from_bytes([5; 16])));
    (cipher.backend(), warnings.load(Ordering::Relaxed))
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
        // Only the first value is logged: the warning comes once per process.
        let warnings = usize::from(index == 0);
        assert_eq!(outcome, (fastest, warnings), "{value:?}");
    }
}
