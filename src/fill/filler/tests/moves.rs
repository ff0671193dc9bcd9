//! Takes that find their own stripe empty, and fills of several stripes.

use ringflake_kit::affinity::on_one_core;

use super::*;

fn stripes(count: usize) -> Made {
    with(|setup| setup.stripes = count)
}

/// Full stripes, of which one is then emptied.
fn all_but(count: usize, empty: usize) -> Made {
    let made = stripes(count);
    made.filler.fill(FillCause::Padding).unwrap();
    made.empty(empty);
    made
}

impl Made {
    fn empty(&self, stripe: usize) {
        let ring = &self.filler.stripes[stripe].ring;
        assert_eq!(ring.take_batch(&mut [Id::default(); 256]), 256);
    }

    fn levels(&self) -> Vec<usize> {
        self.filler.stripes.iter().map(|it| it.ring.len()).collect()
    }

    fn are_open(&self) -> Vec<bool> {
        let open = self.filler.stripes.iter().map(|it| it.request.is_open());
        open.collect()
    }
}

#[test]
fn r1_a_move_gives_out_one_and_loses_none() {
    let made = all_but(2, 0);
    let mut taken = vec![made.filler.take_elsewhere(0).unwrap()];
    assert_eq!(made.levels(), [127, 128], "half of them, less the one");
    assert_eq!(made.filler.stripes[1].moved(), 127);
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 0);
    let figures = made.filler.taken();
    let given_out = figures.all - figures.moved - figures.retired;
    assert_eq!(given_out, 256 + 1, "those that are moved do not count");
    for stripe in made.filler.stripes.iter() {
        taken.extend(std::iter::from_fn(|| stripe.ring.take()));
    }
    let raws: Vec<u64> = taken.iter().map(|id| id.to_u64()).collect();
    assert!(raws.into_iter().eq(first_raws(512).skip(256)));
}

#[test]
fn a_move_takes_no_more_than_there_is_room_for() {
    let made = all_but(2, 0);
    let held = made.filler.stripes[0].ring.reserve(250);
    assert!(made.filler.take_elsewhere(0).is_some());
    assert_eq!(made.levels(), [6, 256 - 7]);
    drop(held);
}

#[test]
fn a_move_is_of_255_at_most() {
    let made = with(|setup| (setup.stripes, setup.slots) = (2, 1024));
    made.fill_leaving_in(1, 0);
    assert!(made.filler.take_elsewhere(0).is_some());
    assert_eq!(made.levels(), [255, 1024 - 256]);
}

#[test]
fn a_take_passes_over_empty_stripes() {
    let made = stripes(4);
    made.fill_leaving_in(3, 255);
    assert!(made.filler.take_elsewhere(0).is_some());
    assert_eq!(made.levels(), [0; 4]);
    assert_eq!(made.filler.take_elsewhere(0), None);
}

#[test]
fn r4_a_move_asks_for_both_stripes() {
    let made = with(|setup| (setup.stripes, setup.threshold) = (4, 128));
    made.filler.fill(FillCause::Padding).unwrap();
    made.empty(2);
    made.filler.take_elsewhere(2);
    // The level of the next one is 128, which is enough.
    assert_eq!(made.are_open(), [false, false, true, false]);
    made.empty(1);
    made.filler.take_elsewhere(1);
    // Of the 127 that were moved before.
    assert_eq!(made.are_open(), [false, true, true, false]);
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
    let made = with(|setup| (setup.stripes, setup.threshold) = (2, 129));
    made.filler.fill(FillCause::Padding).unwrap();
    made.empty(0);
    made.filler.take_elsewhere(0);
    assert_eq!(made.are_open(), [true, true]);
}

/// Behind younger IDs an older one would be found later than the limit allows.
#[test]
fn with_an_age_limit_nothing_is_moved() {
    let every = ScheduledFill::every(Duration::from_secs(3600));
    for (schedule, moved) in [(every, 127), (every.max_age(Duration::from_secs(3600)), 0)] {
        let made = with(|setup| (setup.stripes, setup.schedule) = (2, Some(schedule)));
        made.filler.fill(FillCause::Padding).unwrap();
        made.empty(0);
        assert!(made.filler.take_elsewhere(0).is_some());
        assert_eq!(made.levels(), [moved, 256 - 1 - moved]);
    }
}

#[test]
fn a_batch_asks_for_another_stripe_below_its_threshold() {
    let made = with(|setup| (setup.stripes, setup.threshold) = (2, 253));
    made.fill_leaving_in(1, 0);
    let take_3 = || made.filler.take_batch_elsewhere(0, &mut [Id::default(); 3]);
    assert_eq!(take_3(), Some(3));
    assert_eq!(made.are_open(), [false, false], "at it");
    assert_eq!(take_3(), Some(3));
    assert_eq!(made.are_open(), [false, true]);
}

#[test]
fn a_request_of_a_stripe_fills_that_one() {
    let made = stripes(4);
    made.filler
        .requests
        .request_for(&made.filler.stripes[2].request);
    made.serve().unwrap();
    assert_eq!(made.levels(), [0, 0, 256, 0]);
    assert_eq!(made.wanted(), None);
    for cause in [FillCause::Padding, FillCause::Scheduled] {
        let made = stripes(4);
        made.ask_and_serve(cause);
        assert_eq!(made.levels(), [256; 4], "{cause:?} is for all");
    }
}

/// A take opens its request after the producer has looked there, and sets the bit before
/// the producer clears that.
#[test]
fn r4_a_request_that_a_fill_has_missed_is_found_after_it() {
    on_one_core(|| {
        let made = stripes(2);
        // The first that the producer looks at.
        let missed = made.filler.stripes.here();
        let other = &made.filler.stripes[1 - missed];
        made.filler.requests.request_for(&other.request);
        made.clock.opens.store(missed + 1, Relaxed);
        made.serve().unwrap();
        assert_eq!((made.filler.level(), other.ring.len()), (256, 256));
        assert_eq!(made.wanted(), Some(FillCause::Threshold));
        made.clock.opens.store(0, Relaxed);
        made.serve().unwrap();
        assert_eq!((made.filler.level(), made.wanted()), (512, None));
    });
}

#[test]
fn stripes_whose_fill_is_refused_are_asked_for_still() {
    // Two ticks of 64, for the first stripe.
    let made = with(|setup| (setup.stripes, setup.ticks) = (2, 2));
    for stripe in made.filler.stripes.iter() {
        made.filler.requests.request_for(&stripe.request);
    }
    made.serve().unwrap_err();
    assert_eq!(made.levels().iter().sum::<usize>(), 128);
    assert_eq!(made.are_open(), [true, true]);
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
}

/// Of two producers that have found it open one closes it, finds no room, and leaves the
/// missing IDs to the other, which holds the permits.
#[test]
fn r4_a_request_that_another_has_closed_is_put_back() {
    let made = with(|setup| (setup.stripes, setup.ticks) = (2, 1));
    let chosen = &made.filler.stripes[1];
    made.filler.requests.request_for(&chosen.request);
    chosen.request.close();
    made.filler.serve_stripe(chosen, true, &mut 0).unwrap_err();
    assert_eq!(made.are_open(), [false, true]);
}

#[test]
fn ids_that_are_too_old_are_retired_in_all_stripes() {
    let max_age = Duration::from_secs(10);
    let schedule = ScheduledFill::every(Duration::from_secs(3600)).max_age(max_age);
    let made = with(|setup| (setup.stripes, setup.schedule) = (2, Some(schedule)));
    made.filler.fill(FillCause::Padding).unwrap();
    made.clock.later_ms.store(100_000, Relaxed);
    made.ask_and_serve(FillCause::Scheduled);
    let retired = made.filler.stripes.iter().map(Stripe::retired);
    assert_eq!(retired.collect::<Vec<_>>(), [256, 256]);
    assert_eq!(made.filler.taken().retired, 512);
    assert_eq!(made.levels(), [256, 256]);
}

#[test]
fn the_hook_on_a_full_cache_runs_where_all_stripes_are_full() {
    let made = stripes(2);
    made.fill_leaving_in(0, 0);
    made.fill_leaving_in(1, 0);
    let held = made.filler.stripes[1].ring.take();
    let room = made.filler.stripes[1].ring.reserve(1);
    made.ask_and_serve(FillCause::Scheduled);
    assert_eq!(made.found_full.load(Relaxed), 0);
    drop((held, room));
    made.ask_and_serve(FillCause::Scheduled);
    made.ask_and_serve(FillCause::Scheduled);
    assert_eq!(made.found_full.load(Relaxed), 1);
}

#[test]
fn s4_a_recall_empties_all_stripes() {
    let made = stripes(4);
    made.filler.fill(FillCause::Padding).unwrap();
    let counted = made.filler.stripes[3].insertions.begin();
    assert!(made.filler.recall(), "whichever stripe it inserts into");
    drop(counted);
    assert_eq!(made.levels(), [0; 4]);
    assert!(!made.filler.recall());
}

/// Two stripes, of which the second is full. Takes that leave fewer than 26 assist.
fn one_full() -> Made {
    let made = with(|setup| {
        setup.stripes = 2;
        setup.low_mark = 26;
    });
    made.fill_leaving_in(1, 0);
    assert_eq!(made.levels(), [0, 256]);
    made
}

#[test]
fn nothing_is_moved_behind_a_thread_that_was_stopped() {
    let made = one_full();
    made.filler.stripes[0].ring.hold_back(1);
    for left in (26..256).rev() {
        assert!(made.filler.take_elsewhere(0).is_some(), "{left} hidden");
        assert_eq!(made.levels(), [0, left]);
    }
}

#[test]
fn takes_assist_the_stripe_that_they_have_gone_to() {
    let made = one_full();
    made.filler.stripes[0].ring.hold_back(1);
    for taken in 0..1000 {
        assert!(made.filler.take_elsewhere(0).is_some(), "dry after {taken}");
    }
    // Those before were made by a producer; each run gives a tick's 64.
    let assists = [0, 1].map(|place| made.filler.stripes[place].assists());
    assert_eq!(assists, [0, (1000 - 256 + 26_u64).div_ceil(64)]);

    let mut ids = [Id::default(); 10];
    for _ in 0..100 {
        assert_eq!(made.filler.take_batch_elsewhere(0, &mut ids), Some(10));
    }
}

#[test]
fn nothing_is_made_for_a_stripe_that_would_hide_it() {
    let made = one_full();
    // The empty one, in which there is room.
    let held_back = &made.filler.stripes[0];
    held_back.ring.hold_back(1);
    made.filler.assist(held_back);
    assert_eq!((held_back.assists(), made.levels()), (0, vec![0, 256]));

    for place in [0, 1] {
        let made = with(|setup| setup.stripes = 2);
        made.filler.stripes[place].ring.hold_back(1);
        let mut id = [Id::default()];
        let MadeInPlace { given, stocked } = made.filler.make_in_place(&mut id).unwrap();
        assert_eq!((given, stocked), (1, 63));
        assert_eq!(made.levels()[1 - place], 63, "{place} is held back");
    }
}
