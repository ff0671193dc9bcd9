//! What Sonyflake, snowflaked, Leaf, CosId and yitter do when a clock steps
//! or a guard fails.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringflake::{
    CachedGenerator, Clock, ClockPolicy, DirectGenerator, Layout, Lease, ManualClock, PaddingFill,
};

use super::{Finding, assert_caught};
use ringflake_kit::eventually;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{POLICIES, cached, clock_at, direct, epoch_of_its_own, layout, lease};

fn milliseconds() -> Layout {
    let builder = Layout::builder().bits(42, 8, 6);
    let builder = builder.epoch_unix_ms(epoch_of_its_own());
    builder.tick(Duration::from_millis(1)).build().unwrap()
}

fn direct_by(layout: Layout, clock: &ManualClock, policy: ClockPolicy) -> DirectGenerator {
    direct(layout, 0..4, 0..100_000)
        .clock(clock.clone())
        .clock_policy(policy)
        .build()
        .unwrap()
}

// Sonyflake sleeps through a clock step with the mutex held.

/// A clock that counts how often it is read.
#[derive(Clone, Debug)]
struct ReadClock {
    clock: ManualClock,
    reads: Arc<AtomicUsize>,
}

impl ReadClock {
    fn new(layout: Layout) -> Self {
        Self {
            clock: clock_at(layout, 90_000),
            reads: Arc::default(),
        }
    }
}

impl Clock for ReadClock {
    fn unix_ms(&self) -> u64 {
        let now = self.clock.unix_ms();
        self.reads.fetch_add(1, AcqRel);
        now
    }
}

/// A take, with a flag that it sets after it has slept.
type Take = Arc<dyn Fn(&AtomicBool) + Send + Sync>;

/// One take sleeps through a step back of the clock, for as long as that is. The clock is
/// then put right: a second take has no reason to wait for the first.
fn a_sleeper_keeps_nobody(clock: &ReadClock, step: Duration, take: Take) -> Finding {
    let unheeded = AtomicBool::new(false);
    take(&unheeded);
    clock.clock.step_back(step);
    let read_before = clock.reads.load(Acquire);
    let woken = Arc::new(AtomicBool::new(false));
    let sleeper = {
        let (take, woken) = (Arc::clone(&take), Arc::clone(&woken));
        move || {
            take(&woken);
            woken.store(true, Release);
        }
    };
    // Not joined: it may sleep for longer than the test runs.
    thread::spawn(sleeper);
    // Having read it, the take is bound to sleep.
    eventually("the first has read the clock", || {
        clock.reads.load(Acquire) > read_before
    });
    clock.clock.advance(step);
    take(&unheeded);
    match woken.load(Acquire) {
        true => Err("a take that had no reason to waited for a sleeper".to_owned()),
        false => Ok(()),
    }
}

#[test]
fn sonyflake_sleeps_with_the_mutex_held() {
    let layout = milliseconds();
    let slow = ReadClock::new(layout);
    let read = slow.clone();
    let last = Mutex::new(0);
    // The second take waits for the mutex, however short the sleep is.
    let mistaken = a_sleeper_keeps_nobody(
        &slow,
        Duration::from_millis(100),
        Arc::new(move |slept: &AtomicBool| {
            let mut last = last.lock().unwrap();
            let now = read.unix_ms();
            thread::sleep(Duration::from_millis(u64::saturating_sub(*last, now)));
            slept.store(true, Release);
            *last = now.max(*last);
        }),
    );
    let quick = ReadClock::new(layout);
    let at_most = Duration::from_secs(3_600);
    let ids = direct(layout, 0..4, 0..100_000)
        .clock(quick.clone())
        .clock_policy(ClockPolicy::Wait { at_most })
        .build()
        .unwrap();
    // The sleeper must still sleep when the second take returns, also on a slow machine.
    let here = a_sleeper_keeps_nobody(
        &quick,
        Duration::from_secs(60),
        Arc::new(move |_: &AtomicBool| _ = ids.take().unwrap()),
    );
    assert_caught(mistaken, here, "waited for a sleeper");
}

// snowflaked panics on it.

fn a_clock_step_does_not_panic(clock: &ManualClock, take: &dyn Fn()) -> Finding {
    for step in [0, 1, 500, 10_000_000] {
        clock.step_back(Duration::from_millis(step));
        if catch_unwind(AssertUnwindSafe(take)).is_err() {
            return Err(format!("a step back of {step} ms panics"));
        }
    }
    Ok(())
}

#[test]
fn snowflaked_panics_when_the_clock_steps_back() {
    let layout = milliseconds();
    let clock = clock_at(layout, 50_000);
    let last = Cell::new(0);
    let mistaken = a_clock_step_does_not_panic(&clock, &|| {
        if clock.unix_ms() < last.replace(clock.unix_ms()) {
            resume_unwind(Box::new("clock has moved backwards"));
        }
    });
    for policy in POLICIES {
        let layout = milliseconds();
        let clock = clock_at(layout, 50_000);
        let ids = direct_by(layout, &clock, policy);
        // Refused or not.
        let here = a_clock_step_does_not_panic(&clock, &|| {
            let _ = ids.take();
        });
        assert_caught(mistaken.clone(), here, "a step back of 1 ms panics");
    }
    let clock = clock_at(layout, 50_000);
    let ids = cached(layout, 0..4, 0..100_000)
        .clock(clock.clone())
        .capacity(2)
        .build()
        .unwrap();
    let here = a_clock_step_does_not_panic(&clock, &|| {
        let _ = ids.take();
    });
    assert_caught(mistaken, here, "a step back of 1 ms panics");
    assert_eq!(ids.stats().panics, 0);
}

// Leaf compares its clock with the last run's, unless ZooKeeper does not answer.

/// A generator that is running: it gives a tick and a sequence at a time.
type Running<'a> = Box<dyn FnMut(u64) -> Option<(u64, u64)> + 'a>;

/// Starts one at a time, with a store that answers or does not.
type Start<'a> = &'a dyn Fn(u64, bool) -> Option<Running<'a>>;

fn a_restart_behind_the_last_run(layout: Layout, start: Start<'_>) -> Finding {
    let oracle = Oracle::new(layout, 0..1, 0..100_000);
    for (now, store_answers) in [(1_000, true), (990, true), (990, false), (1_005, true)] {
        let Some(mut take_at) = start(now, store_answers) else {
            continue;
        };
        for later in 0..20 {
            let Some((tick, sequence)) = take_at(now + later) else {
                continue;
            };
            let raw = layout.pack(tick, 0, sequence).unwrap();
            if let Err(fault) = oracle.mark(layout.unpack(raw).unwrap()) {
                return Err(format!("{fault:?}, started at {now}"));
            }
        }
    }
    match oracle.marked() {
        0..20 => Err("too few IDs were made".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn u1_leaf_skips_its_clock_check_when_the_store_fails() {
    let layout = milliseconds();
    let last_run = Cell::new(0);
    let mistaken = a_restart_behind_the_last_run(layout, &|now, store_answers| {
        if store_answers && now < last_run.get() {
            return None;
        }
        let last_run = &last_run;
        Some(Box::new(move |now| {
            last_run.set(now);
            Some((now, 0))
        }))
    });

    // A store that gives out ticks, and is the only source of them.
    let granted = Cell::new(0);
    let acquire = |now: u64, answers: bool| -> Option<Lease> {
        let start = now.max(granted.get());
        answers.then(|| {
            granted.set(start + 50);
            lease(layout, 0..1, start..start + 50)
        })
    };
    let here = a_restart_behind_the_last_run(layout, &|now, store_answers| {
        let clock = clock_at(layout, now);
        let builder = CachedGenerator::builder(layout)
            .plain()
            .clock(clock.clone())
            .borrow_limit(Duration::from_secs(1))
            .capacity(16)
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None);
        let builder = match acquire(now, store_answers) {
            Some(lease) => builder.lease(lease),
            None => builder,
        };
        // Without a lease this is an error.
        let ids = builder.build().ok()?;
        Some(Box::new(move |now| {
            clock.set(layout.tick_start_unix_ms(now));
            let parts = ids.inspect(ids.take().ok()?).unwrap();
            Some((parts.tick, parts.sequence))
        }))
    });
    assert_caught(mistaken, here, "Twice");
}

// CosId and yitter go on when the guard of their machine ID has failed.

/// The lease ends at tick 50, and nobody renews it.
fn nothing_after_the_lease(take_at: &mut dyn FnMut(u64) -> Option<u64>) -> Finding {
    let mut made = 0;
    for now in 40..70 {
        match take_at(now) {
            Some(tick) if tick >= 50 => return Err(format!("tick {tick} is another's")),
            Some(_) => made += 1,
            None => {}
        }
    }
    match made {
        0 => Err("no ID was made".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn u2_cosid_and_yitter_go_on_when_their_guard_has_failed() {
    let guard_failed = Cell::new(false);
    let mistaken = nothing_after_the_lease(&mut |now| {
        if now >= 50 && !guard_failed.replace(true) {
            // Its heartbeat has thrown; a line is logged, and that is all.
        }
        Some(now)
    });

    let own = layout(40, 8, 3);
    let clock = clock_at(own, 40);
    let ring = cached(own, 0..1, 40..50)
        .clock(clock.clone())
        .capacity(16)
        .build()
        .unwrap();
    let here = nothing_after_the_lease(&mut |now| {
        clock.set(own.tick_start_unix_ms(now));
        Some(ring.inspect(ring.take().ok()?).unwrap().tick)
    });
    assert_caught(mistaken.clone(), here, "tick 50 is another's");

    let at_most_ahead = Duration::MAX;
    let logical = ClockPolicy::Logical { at_most_ahead };
    for policy in [
        ClockPolicy::SwitchNode,
        ClockPolicy::RollbackBits(1),
        logical,
    ] {
        let layout = layout(40, 8, 3);
        let ids = direct(layout, 0..2, 40..50)
            .clock_policy(policy)
            .build()
            .unwrap();
        let here =
            nothing_after_the_lease(&mut |_| Some(ids.inspect(ids.take().ok()?).unwrap().tick));
        assert_caught(mistaken.clone(), here, "tick 50 is another's");
    }
}
