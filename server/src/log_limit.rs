//! Limits how often the same cause is logged.
//!
//! A client or a full disk can cause thousands of equal warnings a second, and the log may be
//! on that disk.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// One line of each cause in this time.
const INTERVAL: Duration = Duration::from_secs(60);

/// The most causes that are counted separately. All others count as one.
const MAX_CAUSES: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    causes: Mutex<HashMap<String, Logged>>,
}

#[derive(Debug)]
struct Logged {
    at: Instant,
    suppressed: u64,
}

impl LogLimit {
    /// If a line of this cause may be logged now: how many were suppressed since the last one,
    /// `None` where none was, so that the line leaves it out.
    pub(crate) fn permit(&self, cause: &str) -> Option<Option<u64>> {
        let suppressed = self.permit_at(cause, Instant::now())?;
        Some(Some(suppressed).filter(|&lines| lines > 0))
    }

    #[cfg(test)]
    pub(crate) fn causes(&self) -> Vec<String> {
        self.causes.lock().unwrap().keys().cloned().collect()
    }

    fn permit_at(&self, cause: &str, now: Instant) -> Option<u64> {
        let mut causes = lock(&self.causes);
        if causes.len() >= MAX_CAUSES && !causes.contains_key(cause) {
            causes.retain(|_, logged| now.saturating_duration_since(logged.at) < INTERVAL);
        }
        let key = match causes.len() >= MAX_CAUSES && !causes.contains_key(cause) {
            true => "",
            false => cause,
        };
        match causes.get_mut(key) {
            Some(logged) if now.saturating_duration_since(logged.at) < INTERVAL => {
                logged.suppressed += 1;
                None
            }
            Some(logged) => {
                logged.at = now;
                Some(std::mem::take(&mut logged.suppressed))
            }
            None => {
                let logged = Logged {
                    at: now,
                    suppressed: 0,
                };
                causes.insert(key.to_owned(), logged);
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_once_a_minute_with_the_number_suppressed() {
        let limit = LogLimit::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(limit.permit_at("disk", at(0)), Some(0));
        assert_eq!(limit.permit_at("disk", at(1)), None);
        assert_eq!(limit.permit_at("token", at(1)), Some(0));
        assert_eq!(limit.permit_at("disk", at(59)), None);
        assert_eq!(limit.permit_at("disk", at(60)), Some(2));
        assert_eq!(limit.permit_at("disk", at(61)), None);
    }

    #[test]
    fn causes_that_a_client_makes_up_share_one_line_and_bounded_memory() {
        let limit = LogLimit::default();
        let start = Instant::now();
        let permitted = (0..10_000)
            .filter(|number| limit.permit_at(&format!("name {number}"), start).is_some())
            .count();
        assert_eq!(permitted, MAX_CAUSES + 1);
        assert!(limit.causes.lock().unwrap().len() <= MAX_CAUSES + 1);
        // They are forgotten when they are over.
        let later = start + INTERVAL;
        assert_eq!(limit.permit_at("a new one", later), Some(0));
        assert!(limit.causes.lock().unwrap().len() < 3);
    }
}
