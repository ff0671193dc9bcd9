//! The threads that fill.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{FillCause, Filler};
use crate::events;
use crate::sync;
use crate::sync::thread::{self, JoinHandle};
use crate::timeline::Refused;
use crate::unwind::catching;

/// How long a producer rests after a panic of a clock or a hook.
const PAUSE_AFTER_PANIC: Duration = Duration::from_millis(100);

/// The shortest and the longest rest after a refusal. The longest lets a clock
/// that was corrected be noticed soon.
const PAUSE_AFTER_REFUSAL: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_secs(1));

/// How long a producer rests when its lease is used up.
const PAUSE_AT_THE_END: Duration = Duration::from_secs(60);

/// Running producer threads. Dropping it stops and joins them.
#[derive(Debug)]
pub(crate) struct Producers {
    filler: Arc<Filler>,
    threads: Vec<JoinHandle<()>>,
}

impl Producers {
    /// Starts `count` threads on `filler`; none are left running on an error.
    pub(crate) fn spawn(filler: Arc<Filler>, count: usize) -> io::Result<Self> {
        let mut threads = Vec::with_capacity(count);
        let spawned = (0..count).try_for_each(|index| {
            let filler = Arc::clone(&filler);
            let thread = thread::Builder::new()
                .name(format!("ringflake-{index}"))
                .spawn(move || produce(&filler, index))?;
            threads.push(thread);
            Ok(())
        });
        let handles = threads.iter().map(|thread| thread.thread().clone());
        filler.requests().wake_these(handles.collect());
        // On an error this stops and joins those that did start.
        let producers = Self { filler, threads };
        spawned.map(|()| producers)
    }
}

impl Drop for Producers {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if self.filler.source().timeline().is_forked() {
            // The threads are the parent's; here there is nothing to join.
            std::mem::forget(threads);
            return;
        }
        self.filler.requests().stop();
        let here = thread::current().id();
        for thread in threads {
            // A hook may own the last generator; its thread ends by itself.
            if thread.thread().id() != here {
                // Panics are caught in the loop; there is nothing to report.
                let _ = thread.join();
            }
        }
        events::stopped();
    }
}

/// The life of producer `index`. The first of them also keeps the schedule.
fn produce(filler: &Filler, index: usize) {
    let mut schedule = filler
        .schedule()
        .filter(|_| index == 0)
        .map(|schedule| Timetable::new(schedule.period()));
    loop {
        let wanted = filler.requests().wanted();
        if wanted.stop() {
            return;
        }
        let due = schedule.as_mut().is_some_and(Timetable::is_due);
        let cause = if due {
            Some(FillCause::Scheduled)
        } else {
            wanted.cause()
        };
        let Some(cause) = cause else {
            let nap = schedule.as_ref().map(Timetable::time_left);
            filler.requests().rest(index, nap);
            continue;
        };
        let pause = match catching(|| filler.serve(cause, wanted)) {
            Some(Ok(())) => continue,
            Some(Err(refused)) => pause_after(refused),
            None => {
                catching(|| filler.note_panic());
                PAUSE_AFTER_PANIC
            }
        };
        // Who waits for what did not come may have to give up.
        filler.wake_waiters();
        sync::park(Some(pause));
    }
}

fn pause_after(refused: Refused) -> Duration {
    let (shortest, longest) = PAUSE_AFTER_REFUSAL;
    match refused {
        Refused::BorrowLimit { retry_after, .. } => retry_after.clamp(shortest, longest),
        // Nothing to wait for, unless the clock is at fault and is corrected.
        _ => PAUSE_AT_THE_END,
    }
}

/// When the next scheduled fill is due.
struct Timetable {
    period: Duration,
    next: Instant,
}

impl Timetable {
    fn new(period: Duration) -> Self {
        Self {
            period,
            next: later(Instant::now(), period),
        }
    }

    /// Whether a fill is due; if so, the next one is a period from now.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = later(now, self.period);
        }
        due
    }

    fn time_left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}

/// `period` after `now`, or a century where the clock can't count that far.
fn later(now: Instant, period: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    now.checked_add(period).unwrap_or(now + CENTURY)
}
