//! To consumers, several stripes are one cache.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use ringflake::{CachedGenerator, CachedGeneratorBuilder, Id, OnEmpty, TakeError, ThresholdFill};

use super::{builder, level};

/// Four stripes of 64 IDs, which nothing fills again.
fn four_stripes() -> CachedGeneratorBuilder {
    builder().capacity(256).stripes(4).threshold_fill(None)
}

fn distinct(ids: impl IntoIterator<Item = Id>) -> usize {
    ids.into_iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn r1_a_handle_restocks_from_all_stripes() {
    let ids = four_stripes().build().unwrap();
    let mut handle = ids.handle().unwrap();
    let first = handle.take().unwrap();
    assert_eq!(level(&ids), 128, "a stock is what two stripes have");
    let rest: Vec<Id> = (1..256).map(|_| handle.take().unwrap()).collect();
    assert_eq!(level(&ids), 0);
    assert_eq!(distinct(rest.into_iter().chain([first])), 256);
    assert_eq!(ids.stats().empties, 0, "none of them found it dry");
    assert_eq!(handle.take(), Err(TakeError::Empty));
}

#[test]
fn r1_a_batch_gets_all_that_all_stripes_have() {
    let ids = four_stripes().build().unwrap();
    let mut batch = [Id::default(); 300];
    assert_eq!(ids.take_batch(&mut batch), Ok(256));
    assert_eq!(
        (distinct(batch[..256].iter().copied()), level(&ids)),
        (256, 0)
    );
    assert_eq!(ids.take_batch(&mut batch), Err(TakeError::Empty));
}

/// Counts the calls of the hook on an empty ring, each by this thread.
fn with_hook(answer: OnEmpty) -> (CachedGenerator, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let consumer = thread::current().id();
    let builder = four_stripes().on_empty(answer).on_empty_hook(move |ring| {
        assert_eq!(thread::current().id(), consumer);
        let empties = count.fetch_add(1, Relaxed) + 1;
        assert_eq!((ring.empties, ring.answer), (empties, answer));
    });
    (builder.build().unwrap(), calls)
}

#[test]
fn the_hook_on_an_empty_cache_runs_once_a_take_and_not_once_a_stripe() {
    for answer in [OnEmpty::Error, OnEmpty::Generate] {
        // Too many for what a run leaves behind.
        let mut batch = [Id::default(); 4096];
        let (ids, calls) = with_hook(answer);
        ids.take_vec(256).unwrap();
        assert_eq!(ids.take().is_ok(), answer == OnEmpty::Generate);
        assert_eq!(calls.load(Relaxed), 1);
        assert_eq!(
            ids.take_batch(&mut batch).is_ok(),
            answer == OnEmpty::Generate
        );
        assert_eq!(calls.load(Relaxed), 2);
        assert_eq!(ids.stats().empties, 2);
    }
    // Also where some had IDs.
    let (ids, calls) = with_hook(OnEmpty::Error);
    assert_eq!(ids.take_batch(&mut [Id::default(); 300]), Ok(256));
    assert_eq!(calls.load(Relaxed), 1);
}

#[test]
fn a_check_shows_the_threshold_that_the_stripes_have_together() {
    // Each has its share, rounded up.
    for (fill, stripes, expected) in [
        (ThresholdFill::slots(17), 16, 32),
        (ThresholdFill::percent(30), 4, 20),
    ] {
        let builder = builder().capacity(64).stripes(stripes).threshold_fill(fill);
        let checked = builder.check().unwrap().threshold;
        let built = builder.build().unwrap().stats().threshold;
        assert_eq!((checked, built), (expected, expected), "{fill:?}");
    }
}
