//! To consumers, several stripes are one cache.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

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

/// Counts the calls of the hook on an empty ring.
fn with_hook(builder: CachedGeneratorBuilder) -> (CachedGenerator, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let builder = builder.on_empty_hook(move |_| _ = count.fetch_add(1, Relaxed));
    (builder.build().unwrap(), calls)
}

#[test]
fn the_hook_on_an_empty_cache_runs_once_a_take_and_not_once_a_stripe() {
    for answer in [OnEmpty::Error, OnEmpty::Generate] {
        // Too many for what a run leaves behind.
        let mut batch = [Id::default(); 4096];
        let (ids, calls) = with_hook(four_stripes().on_empty(answer));
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
    let (ids, calls) = with_hook(four_stripes());
    assert_eq!(ids.take_batch(&mut [Id::default(); 300]), Ok(256));
    assert_eq!(calls.load(Relaxed), 1);
}

#[test]
fn a_check_shows_the_threshold_that_the_stripes_have_together() {
    for (fill, stripes, expected) in [
        (ThresholdFill::slots(17), 1, 17),
        // Each has its share, rounded up.
        (ThresholdFill::slots(17), 2, 18),
        (ThresholdFill::slots(17), 16, 32),
        (ThresholdFill::slots(1), 64, 64),
        (ThresholdFill::slots(64), 64, 64),
        (ThresholdFill::percent(50), 16, 32),
        (ThresholdFill::percent(30), 4, 20),
    ] {
        let case = format!("{fill:?} of {stripes}");
        let builder = builder().capacity(64).stripes(stripes).threshold_fill(fill);
        assert_eq!(builder.check().unwrap().threshold, expected, "{case}");
        assert_eq!(
            builder.build().unwrap().stats().threshold,
            expected,
            "{case}"
        );
    }
    let never = four_stripes();
    assert_eq!(never.check().unwrap().threshold, 0);
    assert_eq!(never.build().unwrap().stats().threshold, 0);
}
