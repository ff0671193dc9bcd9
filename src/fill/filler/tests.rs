//! One filler without its threads.
//!
//! The clock breaks where it is read without end, so what would hang fails.

mod asking;
mod assists;
mod moves;
mod rooms;
mod runs;

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};

use super::*;
use crate::cipher::Cipher;
use crate::clock::Clock;
use crate::id::Id;
use crate::layout::Layout;
use crate::lease::Lease;
use crate::ring::RingBuffer;
use crate::timeline::Refused;
use crate::timeline::{ClaimPolicy, Timeline};
use crate::unwind::catching;

/// 64 IDs to a tick, so that each claim gives no more.
fn layout() -> Layout {
    Layout::builder()
        .bits(30, 1, 6)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap()
}

/// The first `count` raws of node 0.
fn first_raws(count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|at| layout().pack(at / 64, 0, at % 64).unwrap())
}

/// When tick 0 begins, in milliseconds since 1970.
fn now() -> u64 {
    layout().epoch_unix_ms()
}

/// A clock that stands still, and takes IDs at each reading if the test asks for it.
#[derive(Debug, Default)]
struct Limited {
    readings: AtomicUsize,
    /// Taken from the ring at each reading.
    takes: AtomicUsize,
    /// Whether everything is recalled at each reading.
    recalls: AtomicBool,
    /// The stripe whose request is opened at each reading, plus one.
    opens: AtomicUsize,
    /// The room in the first stripe at the last reading.
    room: AtomicUsize,
    later_ms: AtomicU64,
    filler: OnceLock<Weak<Filler>>,
}

impl Clock for Limited {
    fn unix_ms(&self) -> u64 {
        let readings = self.readings.fetch_add(1, Relaxed);
        assert!(readings < 1_000, "the fill does not end");
        let mut ids = vec![Id::default(); self.takes.load(Relaxed)];
        if let Some(filler) = self.filler.get().and_then(Weak::upgrade) {
            assert_eq!(filler.stripes[0].ring.take_batch(&mut ids), ids.len());
            let room = filler.stripes[0].ring.settled_level().room;
            self.room.store(room as usize, Relaxed);
            if self.recalls.load(Relaxed) {
                filler.recall();
            }
            if let Some(stripe) = self.opens.load(Relaxed).checked_sub(1) {
                filler.requests.request_for(&filler.stripes[stripe].request);
            }
        }
        now() + self.later_ms.load(Relaxed)
    }
}

struct Setup {
    stripes: usize,
    /// Of each stripe.
    slots: usize,
    threshold: u64,
    low_mark: u64,
    ticks: u64,
    schedule: Option<ScheduledFill>,
}

const SETUP: Setup = Setup {
    stripes: 1,
    slots: 256,
    threshold: 256,
    low_mark: 0,
    ticks: 1_000,
    schedule: None,
};

fn with(change: impl FnOnce(&mut Setup)) -> Made {
    let mut setup = SETUP;
    change(&mut setup);
    setup.make()
}

struct Made {
    filler: Arc<Filler>,
    clock: Arc<Limited>,
    found_full: Arc<AtomicUsize>,
}

impl Setup {
    /// With one producer, whose blocks are half of a stripe.
    fn make(self) -> Made {
        self.make_with(1)
    }

    fn make_with(self, producers: usize) -> Made {
        let clock = Arc::new(Limited::default());
        let lease = Lease::new(layout(), 0..1, 0..self.ticks).unwrap();
        let policy = ClaimPolicy {
            borrow_limit: u64::MAX,
            follows_clock: true,
            serves_the_past: true,
        };
        let timeline = Timeline::new(&lease, 0, clock.clone(), policy).unwrap();
        let found_full = Arc::new(AtomicUsize::new(0));
        let on_full: FullHook = {
            let found_full = Arc::clone(&found_full);
            Box::new(move |_| _ = found_full.fetch_add(1, Relaxed))
        };
        let stripe = |_| {
            RingBuffer::with_capacity(self.slots)
                .map(|ring| Stripe::new(ring, self.threshold, self.low_mark))
        };
        let filler = Arc::new(Filler::new(FillerParts {
            stripes: PerCore::try_new(self.stripes, stripe).unwrap(),
            stocks: None,
            source: Source::new(timeline, Cipher::plain()),
            schedule: self.schedule,
            on_full: Some(on_full),
            producers,
        }));
        clock.filler.set(Arc::downgrade(&filler)).unwrap();
        Made {
            filler,
            clock,
            found_full,
        }
    }
}

impl Made {
    /// A take as a generator does it.
    fn take(&self) -> Option<Id> {
        let at_once = self.filler.take_at_once(None, self.filler.stripes());
        at_once.or_else(|| self.filler.take_slowly())
    }

    fn stripe(&self) -> &Stripe {
        &self.filler.stripes[0]
    }

    fn ring(&self) -> &RingBuffer {
        &self.stripe().ring
    }

    fn request(&self, cause: FillCause) {
        match cause {
            FillCause::Threshold => self.filler.requests.request_for(&self.stripe().request),
            _ => self.filler.requests.request(cause),
        }
    }

    /// Serves what is wanted, for the most pressing cause.
    fn serve(&self) -> Result<(), Refused> {
        let wanted = self.filler.requests.wanted();
        self.filler.serve(wanted.cause().unwrap(), wanted)
    }

    #[track_caller]
    fn ask_and_serve(&self, cause: FillCause) {
        self.request(cause);
        assert_eq!(self.serve(), Ok(()), "{cause:?}");
    }

    /// Fills the first stripe but for `spare` slots.
    fn fill_leaving(&self, spare: usize) {
        self.fill_leaving_in(0, spare);
    }

    /// Fills a stripe but for `spare` slots, and asks for nothing.
    fn fill_leaving_in(&self, place: usize, spare: usize) {
        let stripe = &self.filler.stripes[place];
        let held = stripe.ring.reserve(spare);
        self.filler.fill_stripe(stripe, &mut 0).unwrap();
        drop(held);
    }

    fn wanted(&self) -> Option<FillCause> {
        self.filler.requests.wanted().cause()
    }

    fn fills(&self, cause: FillCause) -> u64 {
        self.filler.counters.fills[cause as usize].load(Relaxed)
    }
}

#[test]
fn all_permits_together_leave_half_of_the_ring() {
    for (capacity, producers, block) in [
        (1, 1, 1),
        (8, 64, 1),
        (512, 1, 256),
        (512, 4, 64),
        (1 << 16, 1, BLOCK),
        (1 << 16, 32, BLOCK),
        (1 << 16, 64, BLOCK / 2),
        // A generator without producers fills while it is built.
        (512, 0, 256),
    ] {
        let found = block_of(capacity, producers);
        assert_eq!(found, block, "{capacity}, {producers}");
    }
}

#[test]
fn a_block_is_minted_up_to_its_last_64() {
    // Claims end where a tick does, after 64 IDs.
    for (len, minted) in [
        (1, 1),
        (64, 64),
        (65, 64),
        (127, 64),
        (128, 128),
        (191, 128),
        (1_000, 960),
    ] {
        let Made { filler, .. } = SETUP.make();
        let mut block = vec![Id::default(); len];
        assert_eq!(filler.mint_block(&mut block), (minted, Ok(())), "{len}");
        let raws = block[..minted].iter().map(|id| id.to_u64());
        assert!(raws.eq(first_raws(minted)), "{len}");
    }
}

#[test]
fn a_block_that_is_refused_gives_the_ids_made_before() {
    let made = Setup { ticks: 2, ..SETUP }.make();
    let mut block = [Id::default(); 256];
    let (count, outcome) = made.filler.mint_block(&mut block);
    assert_eq!(count, 128);
    assert!(outcome.is_err());
}

#[test]
fn a_fill_makes_the_missing_ids_and_says_how_many() {
    let made = SETUP.make();
    assert_eq!(made.filler.fill(FillCause::Padding), Ok(256));
    assert_eq!(made.filler.fill(FillCause::Padding), Ok(0));
    assert_eq!(made.fills(FillCause::Padding), 1, "of which one made IDs");
    let mut out = [Id::default(); 300];
    assert_eq!(made.ring().take_batch(&mut out), 256);
    assert!(out[..256].iter().map(|id| id.to_u64()).eq(first_raws(256)));
}

#[test]
fn a_fill_goes_to_the_limit_as_it_was() {
    let made = SETUP.make();
    made.filler.fill(FillCause::Padding).unwrap();
    let mut out = [Id::default(); 128];
    assert_eq!(made.ring().take_batch(&mut out), 128);
    // Two blocks of 64, and as many are taken meanwhile.
    made.clock.takes.store(1, Relaxed);
    let before = made.clock.readings.load(Relaxed);
    assert_eq!(made.filler.fill(FillCause::Padding), Ok(128));
    let readings = made.clock.readings.load(Relaxed) - before;
    assert!(readings > 0);
    assert_eq!(made.ring().len(), 256 - readings);
}

#[test]
fn a_fill_ends_when_the_producers_are_to() {
    let made = SETUP.make();
    made.filler.requests.stop();
    assert_eq!(made.filler.fill(FillCause::Padding), Ok(0));
    assert!(made.ring().is_empty());
}

#[test]
fn a_request_that_is_served_is_settled() {
    let made = SETUP.make();
    made.ask_and_serve(FillCause::Threshold);
    assert_eq!(made.ring().len(), 256);
    assert_eq!(made.wanted(), None);
    assert_eq!(made.fills(FillCause::Threshold), 1);
}

#[test]
fn a_request_that_is_refused_stays_open() {
    let made = Setup { ticks: 2, ..SETUP }.make();
    made.request(FillCause::Threshold);
    made.serve().unwrap_err();
    assert_eq!(made.ring().len(), 128, "the IDs made before are there");
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
    assert_eq!(made.filler.counters.refusals.load(Relaxed), 1);
    assert_eq!(made.fills(FillCause::Threshold), 0);
}

/// Another producer may have settled them meanwhile, counting on this one.
#[test]
fn r4_requests_that_another_has_settled_are_put_back_where_a_fill_fails() {
    for panics in [false, true] {
        let made = Setup { ticks: 1, ..SETUP }.make();
        if panics {
            made.clock.readings.store(1_000, Relaxed);
        }
        made.request(FillCause::Threshold);
        let wanted = made.filler.requests.wanted();
        made.filler.requests.settle(wanted);
        assert_eq!(made.wanted(), None);
        let served = catching(|| made.filler.serve(FillCause::Threshold, wanted));
        assert_eq!(served.is_none(), panics);
        assert_ne!(served, Some(Ok(())));
        assert_eq!(made.wanted(), Some(FillCause::Threshold), "{panics}");
        assert!(made.stripe().request.is_open());
    }
}

/// It may have retired IDs that it could not replace, and only the timetable asks for it.
#[test]
fn a_scheduled_fill_that_is_refused_is_asked_for() {
    let made = Setup { ticks: 1, ..SETUP }.make();
    let wanted = made.filler.requests.wanted();
    let served = made.filler.serve(FillCause::Scheduled, wanted);
    assert!(served.is_err());
    assert_eq!(made.wanted(), Some(FillCause::Scheduled));
}

/// Half full, with a clock that takes one ID at each reading.
fn half_full_among_takes(threshold: u64) -> Made {
    let made = Setup { threshold, ..SETUP }.make();
    made.filler.fill(FillCause::Padding).unwrap();
    let mut out = [Id::default(); 128];
    assert_eq!(made.ring().take_batch(&mut out), 128);
    made.clock.takes.store(1, Relaxed);
    made
}

#[test]
fn r4_ids_taken_during_a_fill_are_asked_for_again() {
    let made = half_full_among_takes(256);
    made.ask_and_serve(FillCause::Threshold);
    assert!(made.ring().len() < 256);
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
}

#[test]
fn ids_taken_during_a_fill_above_the_threshold_are_not() {
    // Without the report that follows, for which the clock is read once more.
    let serve = |threshold| {
        let made = half_full_among_takes(threshold);
        let level = made.filler.serve_stripe(made.stripe(), true, &mut 0);
        (level.unwrap(), made.wanted())
    };
    let (level, wanted) = serve(1);
    assert!(level < 256);
    assert_eq!(wanted, None);
    assert_eq!(
        serve(level),
        (level, None),
        "at the threshold, not under it"
    );
    assert_eq!(serve(level + 1), (level, Some(FillCause::Threshold)));
}

#[test]
fn room_that_others_have_promised_is_left_to_them() {
    let made = SETUP.make();
    let held = made.ring().reserve(100).unwrap();
    made.ask_and_serve(FillCause::Threshold);
    assert_eq!(made.ring().len(), 156);
    assert_eq!(made.wanted(), None);
    drop(held);
}

#[test]
fn a_take_below_the_threshold_asks_for_a_fill() {
    let ways: [fn(&Made) -> Option<Id>; 3] = [
        Made::take,
        // Each by itself: the one stands in for the other.
        |made| made.filler.take_slowly(),
        |made| match made.filler.stripes.here_at_once() {
            Some(_) => made.filler.take_at_once(None, made.filler.stripes()),
            // Not on this system.
            None => made.filler.take_slowly(),
        },
    ];
    for (way, take) in ways.into_iter().enumerate() {
        let made = with(|setup| setup.threshold = 2);
        made.fill_leaving(252);
        for (left, wanted) in [
            (3, None),
            (2, None),
            (1, Some(FillCause::Threshold)),
            (0, Some(FillCause::Threshold)),
        ] {
            let taken = take(&made).map(|id| id.to_u64());
            assert_eq!(taken, first_raws(4 - left).last(), "{way}, {left} left");
            assert_eq!(made.ring().len(), left);
            assert_eq!(made.wanted(), wanted, "{way}, {left} left");
        }
        assert_eq!(take(&made), None);
    }
}

#[test]
fn a_batch_below_the_threshold_asks_for_a_fill() {
    let made = with(|setup| setup.threshold = 253);
    made.filler.fill(FillCause::Padding).unwrap();
    let mut out = [Id::default(); 3];
    assert_eq!(made.filler.take_batch(&mut out), 3);
    assert!(out.iter().map(|id| id.to_u64()).eq(first_raws(3)));
    assert_eq!(made.wanted(), None, "at the threshold, not under it");
    assert_eq!(made.filler.take_batch(&mut out), 3);
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
}

#[test]
fn a_ring_that_a_recall_emptied_is_asked_for() {
    let made = SETUP.make();
    made.filler.ask_for_what_is_missing();
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
}
