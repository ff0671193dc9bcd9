//! Forks while futures wait, and by the wakers of futures.

use std::sync::Arc;
use std::task::Poll;

use ringflake::TakeAsync;
use ringflake_kit::affinity::Cores;
use ringflake_kit::waking::Counting;

use super::*;
use crate::inside::{Forker, NOTHING, refusal};

const WAIT: OnEmpty = OnEmpty::Wait(HOUR);

/// Eight IDs, all of them in a handle, of which so many go back when it is dropped. More are
/// refused.
fn dry(stripes: usize, left: usize) -> (Oracle, CachedGenerator, Handle) {
    let layout = layout(52, 8, 3);
    let ids = cached(layout, 0..1, 0..400)
        .borrow_limit(Duration::ZERO)
        .capacity(8)
        .stripes(stripes)
        .assist_fill(None)
        .on_empty(WAIT)
        .build()
        .unwrap();
    let oracle = Oracle::new(layout, 0..1, 0..400);
    let mut handle = ids.handle().unwrap();
    for _ in left..8 {
        let id = handle.take().unwrap();
        oracle.mark(ids.inspect(id).unwrap()).unwrap();
    }
    (oracle, ids, handle)
}

/// Whichever lock of those who wait another thread holds at that moment.
#[test]
fn u1_a_child_of_a_busy_process_drops_and_polls_what_waits() {
    let (_, ids, _handle) = dry(1, 7);
    let over = AtomicBool::new(false);
    let outcomes = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let counting = Counting::new();
                while !over.load(Acquire) {
                    let mut take = ids.take_async();
                    for _ in 0..10 {
                        assert!(counting.poll(&mut take).is_pending());
                    }
                }
            });
        }
        let counting = Counting::new();
        let outcomes = (0..100).map(|_| {
            let mut takes = [(); 3].map(|()| Some(ids.take_async()));
            let mut batch = [Id::default(); 3];
            let mut of_several = ids.take_batch_async(&mut batch);
            for take in takes.iter_mut().flatten() {
                assert!(counting.poll(take).is_pending());
            }
            assert!(counting.poll(&mut of_several).is_pending());
            checks_in_a_fork(|checks| {
                takes[0] = None;
                checks.check(takes[0].is_none());
                for take in takes.iter_mut().flatten() {
                    checks.check(counting.poll(take) == Poll::Ready(FORKED));
                    checks.check(counting.poll(take) == Poll::Ready(FORKED));
                }
                let several = counting.poll(&mut of_several);
                checks.check(several == Poll::Ready(FORKED.map(|_| 0)));
                let fresh = counting.poll(&mut ids.take_async());
                checks.check(fresh == Poll::Ready(FORKED));
                takes = [const { None }; 3];
                checks.check(takes[1].is_none());
            })
        });
        let outcomes: Vec<_> = outcomes.collect();
        over.store(true, Release);
        outcomes
    });
    let bad: Vec<_> = outcomes.iter().filter(|it| **it != Ok(0)).collect();
    assert!(bad.is_empty(), "what the children found: {bad:?}");
}

/// Four futures wait. Seven IDs come, which wake as many of them as there are stripes. Then
/// `take` takes until that has woken the next one, which forks.
fn forks_by_a_waker(
    stripes: usize,
    take: impl Fn(&CachedGenerator, &mut TakeAsync<'_>) -> Result<Id, TakeError>,
) -> usize {
    // On one core, whose stripe is empty before the other one.
    Cores::of_this_thread().go_to(0);
    let (mut forks, mut tries) = (0, 0);
    // A producer that is refused meanwhile wakes them first, and then there is no fork.
    while tries < 20 || (forks == 0 && tries < 1_000) {
        tries += 1;
        let (oracle, ids, handle) = dry(stripes, 7);
        let mark = |id: Id| oracle.mark(ids.inspect(id).unwrap()).unwrap();
        let forker = Forker::new();
        let forks_then = Arc::clone(&forker);
        let counting = Counting::and(move || forks_then.turn());
        let mut takes = [(); 4].map(|()| ids.take_async());
        for take in &mut takes {
            assert!(counting.poll(take).is_pending());
        }
        drop(handle);
        let [first, ..] = &mut takes;
        let until_woken = |out: &mut [Id]| {
            let before = counting.woken();
            loop {
                let taken = take(&ids, first);
                let is_over = ids.stats().level == 0;
                if taken.is_err() || is_over || counting.woken() > before {
                    return taken.map(|id| out[0] = id).map(|()| 1).map_err(refusal);
                }
            }
        };
        let Some(report) = forker.report(0, until_woken, mark) else {
            continue;
        };
        forks += 1;
        assert_eq!(report, NOTHING, "U1: {stripes} stripes, fork {forks}");
    }
    forks
}

#[test]
fn u1_a_waker_that_forks_in_a_poll_gives_the_child_nothing() {
    let forks = forks_by_a_waker(1, |_, first| match Counting::new().poll(first) {
        Poll::Ready(taken) => taken,
        Poll::Pending => panic!("there are some"),
    });
    assert!(forks > 0, "no fork");
}

/// An ID that is moved from the other stripe wakes a future.
#[test]
fn u1_a_waker_that_forks_in_a_take_gives_the_child_nothing() {
    let forks = forks_by_a_waker(2, |ids, _| ids.take());
    assert!(forks > 0, "no fork");
}
