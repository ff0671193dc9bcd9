//! Spinning before a worker parks.
//!
//! To park a thread and to wake it costs several microseconds on both sides. Where requests
//! come close together, a worker that polls for some moments avoids that. Where they do not,
//! polling is wasted:
//!
//! ```text
//!                 a request came: the next park spins first, too
//!            +-----+
//!            v     |
//! park --> spin ---+--> nothing came: park, and so do the next 1, 3, 7, … 63 times
//! ```
//!
//! So a busy worker spins each time, and an idle one for [`SPIN`] in 64 parks.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// How long a worker polls before it parks.
const SPIN: Duration = Duration::from_micros(30);

/// Maximum number of parks without a spin.
const MAX_SKIPPED: u32 = 63;

#[derive(Debug, Default)]
struct Backoff {
    /// Parks left without a spin.
    left: u32,
    /// Where `left` started.
    skipped: u32,
}

impl Backoff {
    /// Whether the park that begins now spins first.
    fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    fn record(&mut self, found_work: bool) {
        self.skipped = match found_work {
            true => 0,
            false => (2 * self.skipped + 1).min(MAX_SKIPPED),
        };
        self.left = self.skipped;
    }
}

#[derive(Debug, Default)]
struct Spin {
    backoff: Backoff,
    /// Counts work of this thread.
    work: u64,
    is_due: bool,
    /// Of the task that spins.
    waker: Option<Waker>,
}

thread_local! {
    static SPIN_STATE: RefCell<Spin> = RefCell::default();
}

/// To be called for each turn of a connection.
pub(super) fn record_work() {
    SPIN_STATE.with_borrow_mut(|state| state.work += 1);
}

/// To be called before the runtime parks. If a spin is due it wakes the task of [`spin`], and
/// the runtime does not park then.
pub(super) fn before_park() {
    let waker = SPIN_STATE.with_borrow_mut(|state| {
        let waker = state.waker.as_ref()?;
        let waker = state.backoff.is_due().then(|| waker.clone());
        state.is_due |= waker.is_some();
        waker
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The task that spins. It yields to the runtime, which polls for events then and does not wait.
pub(super) async fn spin() {
    loop {
        let work = poll_fn(|context| {
            SPIN_STATE.with_borrow_mut(|state| {
                if std::mem::take(&mut state.is_due) {
                    return Poll::Ready(state.work);
                }
                state.waker = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await;
        let end = Instant::now() + SPIN;
        let found_work = loop {
            yield_now().await;
            if SPIN_STATE.with_borrow(|state| state.work != work) {
                break true;
            }
            if Instant::now() >= end {
                break false;
            }
        };
        SPIN_STATE.with_borrow_mut(|state| state.backoff.record(found_work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parks without a spin before the next spin, which finds work or does not.
    fn skipped(backoff: &mut Backoff, found_work: bool) -> u32 {
        let skipped = (0..).find(|_| backoff.is_due()).unwrap();
        backoff.record(found_work);
        skipped
    }

    #[test]
    fn spins_without_work_become_rare() {
        let mut backoff = Backoff::default();
        let all: Vec<_> = (0..9).map(|_| skipped(&mut backoff, false)).collect();
        assert_eq!(all, [0, 1, 3, 7, 15, 31, 63, 63, 63]);
    }

    #[test]
    fn a_spin_with_work_is_followed_by_another() {
        let mut backoff = Backoff::default();
        for _ in 0..9 {
            skipped(&mut backoff, false);
        }
        assert_eq!(skipped(&mut backoff, true), 63);
        for _ in 0..9 {
            assert_eq!(skipped(&mut backoff, true), 0);
        }
        assert_eq!(skipped(&mut backoff, false), 0);
        assert_eq!(skipped(&mut backoff, false), 1);
    }
}
