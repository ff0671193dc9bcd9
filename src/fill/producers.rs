//! The threads that fill.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::filler::Filler;
use super::policy::FillCause;
use crate::events;
use crate::sync::thread::{self, JoinHandle};
use crate::timeline::Refused;
use crate::unwind::catching;

/// How long a producer pauses after a panic of a clock or a hook.
const PAUSE_AFTER_PANIC: Duration = Duration::from_millis(100);

/// The shortest and the longest pause after a refusal. The longest is short enough that
/// a corrected clock is noticed soon.
const PAUSE_AFTER_REFUSAL: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_secs(1));

/// How long a producer pauses when its lease is used up.
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
        // On an error this stops and joins the threads that did start.
        let producers = Self { filler, threads };
        spawned.map(|()| producers)
    }

    pub(crate) fn are_any(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Whether they have ended.
    #[cfg(all(test, not(all(loom, feature = "loom"))))]
    pub(crate) fn are_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
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
        // A panic here could meet one that is under way.
        catching(events::stopped);
    }
}

/// The loop of producer `index`. The first producer that finds a scheduled fill due
/// takes it on.
fn produce(filler: &Filler, index: usize) {
    let requests = filler.requests();
    requests.register(index);
    // A thread can start late. Requests from before then come first, so that a padding
    // fill is counted as one.
    let mut is_new = true;
    loop {
        let wanted = requests.wanted();
        // A fill can call code that forks: the child has nothing to fill.
        if wanted.stop() || filler.source().timeline().is_forked() {
            return;
        }
        let cause = if !std::mem::take(&mut is_new) && filler.take_due() {
            Some(FillCause::Scheduled)
        } else {
            wanted.cause()
        };
        let Some(cause) = cause else {
            requests.sleep(index, filler.time_left());
            continue;
        };
        let pause = match catching(|| filler.serve(cause, wanted)) {
            Some(Ok(())) => continue,
            Some(Err(refused)) => pause_after(refused),
            None => {
                catching(|| filler.count_panic());
                // Another thread may succeed, with a clock that has a state for each
                // thread, for example.
                requests.wake_one();
                PAUSE_AFTER_PANIC
            }
        };
        // A child must not pause, whatever the fill came to.
        if filler.source().timeline().is_forked() {
            return;
        }
        // Consumers that wait for this fill may have to give up.
        filler.wake_waiters();
        // IDs that grow too old are retired in time, also where none can replace them.
        let pause = filler.time_left().map_or(pause, |left| left.min(pause));
        requests.pause(wanted, pause);
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
