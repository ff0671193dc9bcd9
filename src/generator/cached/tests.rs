//! Recalls in the middle of takes by threads that change cores all the time, over stripes of
//! few slots: so IDs are on their way from one stripe to another in many of them.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Instant;

use super::*;
use crate::clock::ManualClock;
use crate::fill::AssistFill;
use crate::generator::handle::Handle;
use crate::layout::Layout;
use crate::timeline::Refused;
use ringflake_kit::affinity::Cores;
use ringflake_kit::eventually;

/// Longer than any take that waits sleeps, unless nobody wakes it.
const WAIT: Duration = Duration::from_secs(60);

const TICKS: u64 = 64;

/// 512 IDs to a tick, from one node: so of two raws the larger one was claimed later.
fn layout(round: u64) -> Layout {
    let builder = Layout::builder()
        .bits(40, 1, 9)
        .tick(Duration::from_secs(1));
    // A process makes each ID once.
    let epoch = Layout::RANDFLAKE.epoch_unix_ms() + 1_000 * round;
    builder.epoch_unix_ms(epoch).build().unwrap()
}

/// One bit for each ID that was given out.
struct GivenOut {
    words: Vec<AtomicU64>,
    count: AtomicU64,
    /// No take begins once so many were given out: else a recalling thread that is stopped
    /// finds the lease used up.
    pause_at: AtomicU64,
    /// Whatever a take gives that begins after this was read was made after it.
    recalled_up_to: AtomicU64,
}

impl GivenOut {
    fn new() -> Self {
        Self {
            words: (0..TICKS * 1024 / 64).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            pause_at: AtomicU64::new(0),
            recalled_up_to: AtomicU64::new(0),
        }
    }

    fn mark(&self, id: Id) {
        let raw = id.to_u64();
        let bit = 1 << (raw % 64);
        let word = self.words[(raw / 64) as usize].fetch_or(bit, Relaxed);
        assert_eq!(word & bit, 0, "U1: {raw} was given out twice");
        self.count.fetch_add(1, Relaxed);
    }

    fn wait_for_recalls(&self) {
        while self.count.load(Relaxed) >= self.pause_at.load(Relaxed) {
            thread::yield_now();
        }
    }
}

/// Lets takes go on without recalls when it is dropped, also by a panic.
struct NoMoreRecalls<'a>(&'a GivenOut);

impl Drop for NoMoreRecalls<'_> {
    fn drop(&mut self) {
        self.0.pause_at.store(u64::MAX, Relaxed);
    }
}

/// Takes in every way until the lease ends, from another core each time.
fn take_all(ids: &CachedGenerator, given_out: &GivenOut, cores: &Cores, thread: usize) {
    let mut batch = [Id::default(); 20];
    let mut handle: Option<Handle> = None;
    for take in thread.. {
        given_out.wait_for_recalls();
        cores.go_to(take / 3);
        // Acquire: pairs with the Release after a recall.
        let old = given_out.recalled_up_to.load(Acquire);
        let began = Instant::now();
        let taken = match take % 8 {
            0..=2 => ids.take().map(|id| batch[0] = id).map(|()| 1),
            3 => ids.take_batch(&mut batch),
            // The IDs left in it go back.
            7 => {
                handle = None;
                continue;
            }
            _ => handle
                .get_or_insert_with(|| ids.handle().unwrap())
                .take()
                .map(|id| batch[0] = id)
                .map(|()| 1),
        };
        assert!(
            began.elapsed() < WAIT,
            "it slept on until its time was over"
        );
        match taken {
            Ok(count) => {
                for &id in &batch[..count] {
                    assert!(id.to_u64() >= old, "S4: {id} was recalled below {old}");
                    given_out.mark(id);
                }
            }
            Err(TakeError::Refused(Refused::LeaseEnded { .. })) => return,
            Err(TakeError::Empty) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Recalls everything again and again, and returns how many IDs it has made for that.
fn recall_all(ids: &CachedGenerator, given_out: &GivenOut, is_over: impl Fn() -> bool) -> u64 {
    const RECALLS: u64 = 60;
    /// How many recalls takes may be ahead.
    const AHEAD: u64 = 4;
    let _goes_on = NoMoreRecalls(given_out);
    let due = |recall: u64| recall * TICKS * 512 / (2 * RECALLS);
    for recall in 0..RECALLS {
        let wanted = due(recall);
        given_out.pause_at.store(due(recall + AHEAD), Relaxed);
        while given_out.count.load(Relaxed) < wanted && !is_over() {
            thread::yield_now();
        }
        // All that were made before it are to be dropped.
        let mut marker = [Id::default()];
        if ids.filler.source().mint(&mut marker).is_err() {
            return recall;
        }
        given_out.mark(marker[0]);
        while ids.filler.recall() {
            thread::yield_now();
        }
        let raw = marker[0].to_u64();
        given_out.recalled_up_to.store(raw, Release);
        ids.filler.ask_for_what_is_missing();
    }
    RECALLS
}

#[test]
fn s4_r1_recalls_against_threads_that_change_cores() {
    const THREADS: usize = 4;
    let cores = Cores::of_this_thread();
    let mut recalls = 0;
    for (round, (stripes, capacity, on_empty)) in [
        (2, 4, OnEmpty::Wait(WAIT)),
        (2, 64, OnEmpty::Generate),
        (4, 16, OnEmpty::Error),
        (8, 512, OnEmpty::Wait(WAIT)),
        (16, 16, OnEmpty::Generate),
        (4, 1024, OnEmpty::Generate),
        // With stocks of the cores.
        (4, 4096, OnEmpty::Generate),
        (2, 4096, OnEmpty::Wait(WAIT)),
    ]
    .into_iter()
    .enumerate()
    {
        let layout = layout(round as u64);
        let ids = CachedGenerator::builder(layout)
            .plain()
            .lease(Lease::new(layout, 0..1, 0..TICKS).unwrap())
            .clock(ManualClock::new(layout.tick_start_unix_ms(0)))
            .borrow_limit(Duration::from_secs(3600))
            .stripes(stripes)
            .capacity(capacity)
            .assist_fill((round % 3 > 0).then_some(AssistFill::below(100)))
            .producers(1 + round % 3)
            .on_empty(on_empty)
            .build()
            .unwrap();
        let given_out = GivenOut::new();
        let ended = AtomicUsize::new(0);
        let mut own = 0;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ids, given_out, cores, ended) = (&ids, &given_out, &cores, &ended);
                scope.spawn(move || {
                    let counts = Ended(ended);
                    take_all(ids, given_out, cores, 11 * thread);
                    drop(counts);
                });
            }
            own = recall_all(&ids, &given_out, || ended.load(Relaxed) == THREADS);
        });
        recalls += own;
        eventually(
            "all that was made is given out or counted as retired",
            || {
                while let Ok(id) = ids.take() {
                    given_out.mark(id);
                }
                let stats = ids.stats();
                assert_eq!(stats.issued + own, given_out.count.load(Relaxed));
                let all = stats.issued + own + stats.retired;
                assert!(all <= TICKS * 512, "more than there are: {stats:?}");
                (all, stats.level + stats.in_stocks) == (TICKS * 512, 0)
            },
        );
    }
    assert!(recalls > 100, "only {recalls} recalls");
}

/// Counts a thread that ends, also by a panic.
struct Ended<'a>(&'a AtomicUsize);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}
