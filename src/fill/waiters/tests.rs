//! Threads that wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use super::*;
use crate::wakers::Ticket;
use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

fn announced(waiters: &Waiters) -> usize {
    waiters.count.load(Relaxed)
}

fn no_more() -> bool {
    false
}

/// The number of attempts in a wait of this length for nothing.
fn attempts_in(limit: Duration) -> usize {
    let mut attempts = 0;
    let attempt = || {
        attempts += 1;
        None::<()>
    };
    assert_eq!(Waiters::new().wait(limit, attempt, no_more), None);
    attempts
}

#[test]
fn a_consumer_that_has_waited_is_not_counted_any_more() {
    let waiters = Waiters::new();
    let seen = waiters.wait(HOUR, || Some(announced(&waiters)), no_more);
    assert_eq!(seen, Some(1));
    assert_eq!(waiters.wait(Duration::ZERO, || None::<()>, no_more), None);
    assert_eq!(announced(&waiters), 0);
}

#[test]
fn a_notification_counts_only_where_somebody_waits() {
    let waiters = Waiters::new();
    let noted = || waiters.sequence.load(Relaxed);
    let ways: [fn(&Waiters); 2] = [Waiters::notify, Waiters::notify_all];
    for notify in ways {
        let before = noted();
        notify(&waiters);
        assert_eq!(noted(), before);
        let attempt = || {
            notify(&waiters);
            Some(noted())
        };
        assert_eq!(waiters.wait(HOUR, attempt, no_more), Some(before + 1));
    }
}

#[test]
fn a_waiting_consumer_sleeps_between_attempts() {
    let attempts = attempts_in(Duration::from_millis(50));
    assert!(attempts < 100, "{attempts}");
}

#[test]
fn a_notification_before_the_sleep_is_not_missed() {
    let waiters = Waiters::new();
    let mut attempts = 0;
    let attempt = || {
        attempts += 1;
        // Comes between the attempt and the sleep.
        waiters.notify();
        (attempts == 3).then_some(attempts)
    };
    assert_eq!(waiters.wait(MINUTE, attempt, no_more), Some(3));
}

#[test]
fn a_panic_in_an_attempt_leaves_nobody_counted() {
    let waiters = Waiters::new();
    let died = catch_unwind(AssertUnwindSafe(|| {
        waiters.wait(
            HOUR,
            || -> Option<()> { panic!("the clock breaks") },
            no_more,
        )
    }));
    assert!(died.is_err());
    assert_eq!(announced(&waiters), 0);
    waiters.notify();
    assert_eq!(waiters.wait(HOUR, || Some(1), no_more), Some(1));
}

#[test]
fn the_last_attempt_is_made_when_the_time_is_over() {
    let attempts = attempts_in(Duration::from_millis(1));
    assert!(attempts >= 2, "{attempts}");
}

#[test]
fn a_slow_attempt_holds_up_nobody_else() {
    let waiters = Waiters::new();
    let (entered, is_in) = mpsc::channel();
    let (let_go, wait_for) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let waiters = &waiters;
        scope.spawn(move || {
            let attempt = || {
                entered.send(()).unwrap();
                wait_for.recv().ok()
            };
            waiters.wait(HOUR, attempt, no_more)
        });
        is_in.recv_timeout(MINUTE).unwrap();
        // Neither a wait nor a notification stops at the slow one.
        let (through, comes) = mpsc::channel();
        scope.spawn(move || {
            waiters.notify();
            through
                .send(waiters.wait(HOUR, || Some(7), no_more))
                .unwrap();
        });
        let passed = comes.recv_timeout(MINUTE);
        let_go.send(()).unwrap();
        assert_eq!(passed, Ok(Some(7)));
    });
}

/// Consumers that wait for the IDs that `ids` counts.
#[derive(Default)]
struct Consumers {
    ids: AtomicUsize,
    attempts: AtomicUsize,
    served: AtomicUsize,
    over: AtomicBool,
}

impl Consumers {
    fn take(&self) -> Option<()> {
        self.attempts.fetch_add(1, Relaxed);
        let taken = self
            .ids
            .fetch_update(Relaxed, Relaxed, |ids| ids.checked_sub(1));
        if taken.is_ok() {
            self.served.fetch_add(1, Relaxed);
        }
        (taken.is_ok() || self.over.load(Relaxed)).then_some(())
    }

    /// Waits for longer than `eventually` does, but not for ever: a failing test joins it.
    fn wait(&self, waiters: &Waiters) {
        waiters.wait(2 * MINUTE, || self.take(), || self.ids.load(Relaxed) > 0);
    }

    /// Returns when all `count` have looked, and have had the time to fall asleep.
    fn until_asleep(&self, count: usize) {
        eventually("all have looked", || self.attempts.load(Relaxed) >= count);
        std::thread::sleep(MOMENT);
    }
}

/// The time in which a thread that has a core falls asleep or wakes up.
const MOMENT: Duration = Duration::from_millis(20);

/// How many attempts ten consumers make for a publication of three IDs.
fn attempts_for_three_ids() -> usize {
    let waiters = Waiters::new();
    let consumers = Consumers::default();
    let mut attempts = 0;
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| consumers.wait(&waiters));
        }
        consumers.until_asleep(10);
        let before = consumers.attempts.load(Relaxed);
        consumers.ids.store(3, Relaxed);
        waiters.notify();
        eventually("each wakes the next", || {
            consumers.served.load(Relaxed) == 3
        });
        // The time in which a consumer that was woken for nothing looks in vain.
        std::thread::sleep(MOMENT);
        attempts = consumers.attempts.load(Relaxed) - before;
        consumers.over.store(true, Relaxed);
        waiters.notify_all();
    });
    assert_eq!(announced(&waiters), 0);
    attempts
}

#[test]
fn one_publication_serves_as_many_as_it_has_ids() {
    // On a slow machine some are not asleep yet, and look once more by themselves. With many
    // tries, one would pass by chance even if all ten were woken.
    let is_few = (0..10).any(|_| attempts_for_three_ids() <= 5);
    assert!(is_few, "three IDs wake more than five consumers");
}

#[test]
fn all_are_woken_where_there_may_be_nothing_to_wait_for() {
    let waiters = Waiters::new();
    let consumers = Consumers::default();
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| consumers.wait(&waiters));
        }
        // One that is still awake sees the end by itself: that can only hide a missing
        // wake-up.
        consumers.until_asleep(10);
        consumers.over.store(true, Relaxed);
        waiters.notify_all();
        let left = || announced(&waiters) == 0;
        let deadline = Instant::now() + MINUTE;
        while !left() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let all = left();
        // Lets the test end, also if one was not woken.
        while !left() {
            waiters.notify();
        }
        assert!(all, "some were not woken");
    });
}

#[test]
fn those_who_wait_for_the_last_are_all_woken_once() {
    let waiters = Waiters::new();
    let all = [Counting::new(), Counting::new()];
    let mut tickets = [(); 2].map(|()| Ticket::default());
    waiters.count.store(2, Relaxed);
    let mut woken_by_a_publication = || {
        for (ticket, counting) in tickets.iter_mut().zip(&all) {
            wakers::discard(waiters.lock().enter(ticket, counting.waker()));
        }
        waiters.notify();
        all.each_ref().map(|counting| counting.woken())
    };
    waiters.wait_for_the_last();
    assert_eq!(woken_by_a_publication(), [1, 1]);
    assert_eq!(woken_by_a_publication(), [2, 1], "the oldest alone");
}
