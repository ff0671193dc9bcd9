//! Baidu's `uid-generator`: its ring, its fills and its arithmetic.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use ringflake::{
    CachedGeneratorBuilder, Clock, Id, Layout, ManualClock, OnEmpty, PaddingFill, RingBuffer,
    ScheduledFill, ThresholdFill,
};
use tracing::{Event, Level};

use super::{Finding, assert_caught};
use ringflake_kit::events::{OnEvent, with_subscriber};
use ringflake_kit::small::{cached, clock_at, layout, plain};
use ringflake_kit::{eventually, short_or_long};

/// A generator of 8 IDs a tick, with a ring of 64.
fn eight_a_tick(clock: &ManualClock) -> CachedGeneratorBuilder {
    let layout = layout(40, 8, 3);
    cached(layout, 0..1, 0..1_000_000)
        .clock(clock.clone())
        .capacity(64)
}

// A take compares a cursor that it read before the update with one read after.

/// Two takes overlap on a ring that holds one ID, and here is what they got.
type Overlap<'a> = &'a mut dyn FnMut() -> [Option<u64>; 2];

fn the_last_id_goes_to_one(rounds: u32, overlap: Overlap<'_>) -> Finding {
    for _ in 0..rounds {
        match overlap() {
            [Some(_), None] | [None, Some(_)] => {}
            [None, None] => return Err("nobody was given the ID".to_owned()),
            [Some(a), Some(b)] => return Err(format!("both were given one: {a} and {b}")),
        }
    }
    Ok(())
}

/// Its ring: a slot is the position that the cursor has moved to.
struct BaiduRing {
    slots: RefCell<Vec<u64>>,
    tail: Cell<u64>,
    cursor: Cell<u64>,
}

impl BaiduRing {
    fn of_one(id: u64) -> Self {
        Self {
            slots: RefCell::new(vec![0, id, 0, 0]),
            tail: Cell::new(1),
            cursor: Cell::new(0),
        }
    }

    /// The first step of a take.
    fn look(&self) -> u64 {
        self.cursor.get()
    }

    /// The second, `updateAndGet`: moves the cursor unless the ring is empty.
    fn update(&self) -> u64 {
        if self.cursor.get() != self.tail.get() {
            self.cursor.set(self.cursor.get() + 1);
        }
        self.cursor.get()
    }

    /// The third: no movement is taken for an empty ring.
    fn read(&self, before: u64, after: u64) -> Option<u64> {
        (after != before).then(|| self.slots.borrow()[after as usize % 4])
    }
}

#[test]
fn r1_two_consumers_are_given_one_slot() {
    let mistaken = the_last_id_goes_to_one(1, &mut || {
        let ring = BaiduRing::of_one(7);
        let a = ring.look();
        // The other one comes between.
        let b = ring.look();
        let after_b = ring.update();
        let after_a = ring.update();
        [ring.read(a, after_a), ring.read(b, after_b)]
    });
    let ring = RingBuffer::with_capacity(4).unwrap();
    // Each round waits until two threads have run.
    let rounds = short_or_long(300, 2_000);
    let here = the_last_id_goes_to_one(rounds, &mut || {
        ring.push(Id::from_u64(7)).unwrap();
        let together = Barrier::new(2);
        thread::scope(|scope| {
            let take = || {
                together.wait();
                ring.take().map(Id::to_u64)
            };
            let other = scope.spawn(take);
            let mine = take();
            [mine, other.join().unwrap()]
        })
    });
    assert_caught(mistaken, here, "both were given one: 7 and 7");
}

// A handler for a full ring that throws leaves the flag `running` behind.

/// Empties the ring, and says whether it is full again.
fn a_failed_fill_is_not_the_last(drain_and_wait: &mut dyn FnMut() -> bool) -> Finding {
    for round in 0..3 {
        if !drain_and_wait() {
            return Err(format!("in round {round} nobody filled the ring"));
        }
    }
    Ok(())
}

#[test]
fn r3_a_put_handler_that_throws_wedges_filling() {
    let running = AtomicBool::new(false);
    let ring = RefCell::new(VecDeque::new());
    let fill = || {
        if running.swap(true, Relaxed) {
            return;
        }
        while ring.borrow().len() < 8 {
            ring.borrow_mut().push_back(0);
        }
        // The ring is full, and the handler throws.
        let thrown: Result<(), _> = catch_unwind(|| resume_unwind(Box::new("full")));
        if thrown.is_err() {
            return;
        }
        running.store(false, Relaxed);
    };
    let mistaken = a_failed_fill_is_not_the_last(&mut || {
        ring.borrow_mut().clear();
        fill();
        ring.borrow().len() == 8
    });

    let ids = eight_a_tick(&clock_at(layout(40, 8, 3), 0))
        .borrow_limit(Duration::MAX)
        .on_empty(OnEmpty::Error)
        .scheduled_fill(ScheduledFill::every(Duration::from_millis(1)))
        .on_full_hook(|_| resume_unwind(Box::new("full")))
        .build()
        .unwrap();
    let here = a_failed_fill_is_not_the_last(&mut || {
        let panics = ids.stats().panics;
        eventually("the hook panics", || ids.stats().panics > panics);
        assert_eq!(ids.take_batch(&mut [Id::default(); 64]), Ok(64));
        eventually("the ring is full", || ids.stats().level == 64);
        true
    });
    assert_caught(mistaken, here, "in round 1 nobody filled");
}

// A handler for an empty ring that waits returns into a take that has chosen
// its slot already.

fn a_take_that_waited_gets_a_new_id(
    drain: &mut dyn FnMut() -> Vec<u64>,
    take_waiting: &mut dyn FnMut() -> u64,
) -> Finding {
    let before: HashSet<u64> = drain().into_iter().collect();
    let id = take_waiting();
    if before.contains(&id) {
        return Err(format!("{id} was taken before it was waited for"));
    }
    Ok(())
}

#[test]
fn r1_a_take_handler_that_waits_can_not_work() {
    let ring = BaiduRing::of_one(7);
    let take = |handler: &dyn Fn()| {
        let before = ring.look();
        let after = ring.update();
        if after == before {
            handler();
        }
        ring.slots.borrow()[after as usize % 4]
    };
    let mistaken = a_take_that_waited_gets_a_new_id(&mut || vec![take(&|| ())], &mut || {
        take(&|| {
            // It has waited, and a producer has come.
            ring.slots.borrow_mut()[2] = 8;
            ring.tail.set(2);
        })
    });

    let ids = eight_a_tick(&clock_at(layout(40, 8, 3), 0))
        .borrow_limit(Duration::MAX)
        .assist_fill(None)
        .on_empty(OnEmpty::Wait(Duration::from_secs(60)))
        .build()
        .unwrap();
    let take = || ids.take().unwrap().to_u64();
    let mut drain = || {
        // Until takes have had to wait.
        let mut taken = Vec::new();
        while ids.stats().empties < 3 {
            taken.push(take());
        }
        taken
    };
    let here = a_take_that_waited_gets_a_new_id(&mut drain, &mut || take());
    assert_caught(mistaken, here, "7 was taken before");
}

// A fill makes a whole second at a time, and drops what the ring has no room for.

fn ids_are_without_gaps(per_tick: u64, take: &mut dyn FnMut() -> (u64, u64)) -> Finding {
    let mut cells: Vec<u64> = (0..300)
        .map(|_| {
            let (tick, sequence) = take();
            tick * per_tick + sequence
        })
        .collect();
    cells.sort_unstable();
    let lost = cells[299] - cells[0] - 299;
    if lost > 0 {
        return Err(format!("{lost} of {} were thrown away", 300 + lost));
    }
    Ok(())
}

/// Its fills: `last_second` counts on by itself.
struct BaiduFills {
    ring: VecDeque<(u64, u64)>,
    capacity: usize,
    last_second: u64,
}

impl BaiduFills {
    fn starting_at(second: u64) -> Self {
        let mut fills = Self {
            ring: VecDeque::new(),
            capacity: 20,
            last_second: second,
        };
        fills.fill();
        fills
    }

    fn fill(&mut self) {
        while self.ring.len() < self.capacity {
            let second = (0..8).map(|sequence| (self.last_second, sequence));
            let room = self.capacity - self.ring.len();
            self.ring.extend(second.take(room));
            self.last_second += 1;
        }
    }

    fn take(&mut self) -> (u64, u64) {
        let id = self.ring.pop_front().unwrap();
        if self.ring.len() < self.capacity / 2 {
            self.fill();
        }
        id
    }
}

#[test]
fn u1_the_rest_of_a_second_is_thrown_away() {
    let mut fills = BaiduFills::starting_at(0);
    let mistaken = ids_are_without_gaps(8, &mut || fills.take());

    let ids = eight_a_tick(&clock_at(layout(40, 8, 3), 0))
        .borrow_limit(Duration::MAX)
        // No whole number of seconds.
        .capacity(4)
        .threshold_fill(ThresholdFill::slots(3))
        // A take that assists would pass the IDs that a stopped producer has in its hands.
        .assist_fill(None)
        .on_empty(OnEmpty::Wait(Duration::from_secs(60)))
        .build()
        .unwrap();
    let here = ids_are_without_gaps(8, &mut || {
        let parts = ids.inspect(ids.take().unwrap()).unwrap();
        (parts.tick, parts.sequence)
    });
    assert_caught(mistaken, here, "were thrown away");
}

// The fill's second never catches up with the clock.

fn ids_are_recent_after_a_rest(
    in_ring: usize,
    rest: &dyn Fn(u64),
    now: &dyn Fn() -> u64,
    take: &mut dyn FnMut() -> u64,
) -> Finding {
    take();
    rest(10_000);
    // IDs in the ring may be as old as the pause was long.
    for _ in 0..in_ring {
        take();
    }
    let age = now().saturating_sub(take());
    if age > 1 {
        return Err(format!("an ID was made {age} s late"));
    }
    Ok(())
}

#[test]
fn the_fill_second_never_catches_up() {
    let now = Cell::new(0);
    let mut fills = BaiduFills::starting_at(0);
    let mistaken = ids_are_recent_after_a_rest(
        20,
        &|ticks| now.set(now.get() + ticks),
        &|| now.get(),
        &mut || fills.take().0,
    );

    let layout = layout(40, 8, 3);
    let clock = clock_at(layout, 0);
    let ids = eight_a_tick(&clock).build().unwrap();
    let here = ids_are_recent_after_a_rest(
        64,
        &|ticks| clock.advance(Duration::from_secs(ticks)),
        &|| layout.tick_at(clock.unix_ms()).unwrap(),
        &mut || ids.inspect(ids.take().unwrap()).unwrap().tick,
    );
    assert_caught(mistaken, here, "an ID was made 99");
}

// Nothing bounds how far it borrows.

fn borrowing_is_bounded(limit: u64, take: &mut dyn FnMut() -> Option<u64>) -> Finding {
    // The clock stands at 0.
    for _ in 0..10_000 {
        match take() {
            Some(tick) if tick > limit => return Err(format!("{tick} s were borrowed")),
            Some(_) => {}
            None => return Ok(()),
        }
    }
    Err("nothing was refused".to_owned())
}

#[test]
fn u2_borrowing_has_no_bound() {
    let mut fills = BaiduFills::starting_at(0);
    let mistaken = borrowing_is_bounded(30, &mut || Some(fills.take().0));

    let clock = clock_at(layout(40, 8, 3), 0);
    let ids = eight_a_tick(&clock)
        .borrow_limit(Duration::from_secs(30))
        .build()
        .unwrap();
    let here = borrowing_is_bounded(30, &mut || {
        let id = ids.take().ok()?;
        Some(ids.inspect(id).unwrap().tick)
    });
    assert_caught(mistaken, here, "31 s were borrowed");
}

// The time field is not checked where an ID is made.

/// `allocate` gives an ID for a tick, or refuses.
fn time_does_not_spill(allocate: &dyn Fn(u64) -> Option<i64>) -> Finding {
    let end = Layout::BAIDU.ticks();
    for tick in [0, 1, end / 2, end - 1, end, end + 1, 2 * end, 5 * end / 2] {
        match allocate(tick) {
            Some(id) if id < 0 => return Err(format!("{id} was made at tick {tick}")),
            Some(id) if id as u64 >> 35 != tick => {
                return Err(format!("{id:#x} was made at tick {tick}"));
            }
            Some(_) => {}
            None if tick >= end => {}
            None => return Err(format!("tick {tick} was refused")),
        }
    }
    Ok(())
}

#[test]
fn u3_the_time_field_runs_out_and_ids_turn_negative() {
    let mistaken = time_does_not_spill(&|tick| Some((tick << 35 | 1 << 13) as i64));

    let layout = Layout::BAIDU;
    let node = Cell::new(0);
    let id_at = |clock: ManualClock, tick| {
        let node = node.replace(node.get() + 1);
        let ids = plain(layout, node..node + 1, 0..layout.ticks())
            .clock(clock.clone())
            .capacity(4)
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .build()
            .ok()?;
        // One that was built in time goes on into the time after.
        clock.set(layout.tick_start_unix_ms(tick));
        ids.take().ok().map(Id::to_i64)
    };
    let here = time_does_not_spill(&|tick| id_at(clock_at(layout, tick), tick));
    assert_caught(mistaken.clone(), here, "-92233720368547");
    let here = time_does_not_spill(&|tick| id_at(clock_at(layout, 0), tick));
    assert_caught(mistaken.clone(), here, "-92233720368547");
    let pack = |tick| layout.pack(tick, 1, 0).ok().map(u64::cast_signed);
    assert_caught(mistaken, time_does_not_spill(&pack), "-92233720368547");
}

// The threshold is computed in 32 bits.

fn thresholds_lie_in_the_ring(threshold: &dyn Fn(usize, u32) -> i64) -> Finding {
    for bits in 0..=30 {
        let capacity = 1_usize << bits;
        for percent in [1, 25, 50] {
            let slots = threshold(capacity, percent);
            if !(1..=capacity as i64).contains(&slots) {
                return Err(format!("{percent} % of 2^{bits} slots are {slots}"));
            }
        }
    }
    Ok(())
}

#[test]
fn the_threshold_product_overflows() {
    let mistaken = thresholds_lie_in_the_ring(&|capacity, percent| {
        let product = (capacity as i32).wrapping_mul(percent as i32);
        let slots = i64::from(product / 100);
        // To be fair: its rings are never so small.
        if capacity < 100 { slots.max(1) } else { slots }
    });
    let here = thresholds_lie_in_the_ring(&|capacity, percent| {
        let slots = ThresholdFill::percent(percent).in_slots(capacity);
        slots.unwrap() as i64
    });
    assert_caught(mistaken, here, "50 % of 2^26 slots are -");
}

// It logs where IDs are taken.

fn takes_log_nothing(take: &mut dyn FnMut()) -> Finding {
    let events = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&events);
    let subscriber = OnEvent(move |_: &Event<'_>| {
        count.fetch_add(1, Relaxed);
    });
    with_subscriber(subscriber, || (0..1_000).for_each(|_| take()));
    match events.load(Relaxed) {
        0 => Ok(()),
        count => Err(format!("{count} events were logged")),
    }
}

#[test]
fn p1_it_logs_on_the_hot_path() {
    let mut fills = BaiduFills::starting_at(0);
    let mistaken = takes_log_nothing(&mut || {
        let id = fills.take();
        tracing::event!(Level::INFO, ?id, "taken");
    });

    let ids = eight_a_tick(&clock_at(layout(40, 8, 3), 0))
        .borrow_limit(Duration::MAX)
        .capacity(1 << 14)
        .threshold_fill(ThresholdFill::percent(99))
        .build()
        .unwrap();
    let mut handle = ids.handle().unwrap();
    let here = takes_log_nothing(&mut || {
        // Neither before a fill is asked for, nor when it is.
        handle.take().unwrap();
        ids.take().unwrap();
        ids.take_batch(&mut [Id::default(); 1]).unwrap();
    });
    assert_caught(mistaken, here, "1000 events");
}
