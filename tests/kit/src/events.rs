//! Collects the events for `tracing` in a test.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};

pub struct OnEvent<F>(pub F);

impl<F: Fn(&Event<'_>) + 'static> Subscriber for OnEvent<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        (self.0)(event);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Clone, Debug, Default)]
pub struct Fields(pub Vec<(&'static str, String)>);

impl Fields {
    pub fn of(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = self.0.iter();
        fields.try_for_each(|(name, value)| write!(f, "{name}: {value}; "))
    }
}

/// Held while a subscriber is registered, and during a fork: `tracing` takes a lock for the
/// first, which a child forked meanwhile would wait for in vain.
pub fn registering() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` with this subscriber on this thread, also in processes that fork.
pub fn with_subscriber<T>(
    subscriber: impl Subscriber + Send + Sync + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let lock = registering();
    let dispatch = Dispatch::new(subscriber);
    drop(lock);
    dispatcher::with_default(&dispatch, work)
}

/// What ringflake says while `work` runs on this thread: of each event the level and the
/// fields, in one line.
pub fn said(work: impl FnOnce()) -> Vec<String> {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&logged);
    let subscriber = OnEvent(move |event: &Event<'_>| {
        let metadata = event.metadata();
        if metadata.target().starts_with("ringflake") {
            let line = format!("{} {}", metadata.level(), Fields::of(event));
            lines.lock().unwrap().push(line);
        }
    });
    with_subscriber(subscriber, work);
    Arc::into_inner(logged).unwrap().into_inner().unwrap()
}

/// The warnings among that.
pub fn warnings(work: impl FnOnce()) -> Vec<String> {
    let mut lines = said(work);
    lines.retain(|line| line.starts_with("WARN "));
    lines
}
