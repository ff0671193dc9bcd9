//! What keeps a listener from accepting, in the log.

use std::io;
use std::time::{Duration, Instant};

/// How long one line is enough.
const QUIET: Duration = Duration::from_secs(60);

/// Failures to accept that are not of one connection. A process can be short of files for
/// hours, and tries many times a second.
#[derive(Debug, Default)]
pub(crate) struct AcceptFailures {
    said: Option<Instant>,
}

impl AcceptFailures {
    /// Says it, unless that was said a moment ago.
    pub(crate) fn warn(&mut self, protocol: &str, error: &io::Error) {
        if self.is_news(Instant::now()) {
            tracing::warn!(
                protocol,
                %error,
                "no connection can be accepted at the moment; it is tried again"
            );
        }
    }

    fn is_news(&mut self, now: Instant) -> bool {
        let is_news = self
            .said
            .is_none_or(|said| now.saturating_duration_since(said) >= QUIET);
        if is_news {
            self.said = Some(now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ringflake_kit::events::{Fields, OnEvent};

    use super::*;

    #[test]
    fn a_failure_is_logged_once() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let subscriber = OnEvent(move |event: &tracing::Event<'_>| {
            seen.lock().unwrap().push(Fields::of(event).to_string());
        });
        let mut failures = AcceptFailures::default();
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..3 {
                failures.warn("http", &io::Error::other("out of files"));
            }
        });
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("out of files"), "{lines:?}");
    }

    #[test]
    fn one_line_is_enough_for_a_minute() {
        let mut failures = AcceptFailures::default();
        let first = Instant::now();
        let after = |seconds| first + Duration::from_secs(seconds);
        assert!(failures.is_news(first));
        assert!(!failures.is_news(first));
        assert!(!failures.is_news(after(59)));
        assert!(failures.is_news(after(60)));
        assert!(!failures.is_news(after(119)));
        assert!(failures.is_news(after(120)));
    }
}
