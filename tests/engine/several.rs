//! What callers write without looking it up: several IDs at once, sources as objects, one
//! source for a process, and references that don't keep a generator alive.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringflake::{
    AlreadyInitialised, AssistFill, CachedGenerator, CachedGeneratorBuilder, ClockPolicy, Id,
    IdSource, OnEmpty, Refused, Shutdown, TakeError,
};
use ringflake_kit::assert_matches;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{cached, clock_at, direct, layout};

/// 8 ticks of 16 IDs for one node, and a ring that nothing fills but its start.
fn few() -> CachedGeneratorBuilder {
    cached(layout(40, 8, 4), 77..78, 0..8)
        .capacity(64)
        .stripes(1)
        .threshold_fill(None)
        .assist_fill(None::<AssistFill>)
        .on_empty(OnEmpty::Error)
}

fn distinct(ids: &[Id]) -> bool {
    let mut sorted = ids.to_vec();
    sorted.sort();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

#[test]
fn an_array_and_a_vector_hold_as_many_as_were_asked_for() {
    let ids = few().build().unwrap();
    let array = ids.take_array::<10>().unwrap();
    let vector = ids.take_vec(20).unwrap();
    assert_eq!(vector.len(), 20);
    assert!(distinct(&[&array[..], &vector].concat()));
    assert_eq!(ids.stats().issued, 30);
    assert_eq!(ids.take_array::<0>(), Ok([]));
    assert_eq!(ids.take_vec(0), Ok(vec![]));

    let direct = direct(layout(40, 8, 4), 77..79, 0..8).build().unwrap();
    let array = direct.take_array::<10>().unwrap();
    let vector = direct.take_vec(20).unwrap();
    assert!(distinct(&[&array[..], &vector].concat()));
}

#[test]
fn what_a_failed_take_had_goes_back_into_the_ring() {
    let ids = few().build().unwrap();
    let before = ids.stats();
    assert_eq!(before.level, 64);
    let error = ids.take_vec(65).unwrap_err();
    assert_eq!(error, TakeError::Empty);
    let after = ids.stats();
    assert_eq!((after.level, after.issued, after.retired), (64, 0, 0));
    assert!(distinct(&ids.take_vec(64).unwrap()));
    assert_eq!(ids.take_array::<1>(), Err(TakeError::Empty));
}

#[test]
fn a_batch_that_ends_at_a_run_is_gone_on_with() {
    // Runs of 16, so each batch of the direct generator gives no more.
    let layout = layout(40, 8, 4);
    let clock = clock_at(layout, 3);
    let ids = direct(layout, 80..84, 0..8).clock(clock);
    let ids = ids.clock_policy(ClockPolicy::Refuse).build().unwrap();
    let oracle = Oracle::new(layout, 80..84, 0..8);
    for id in ids.take_vec(64).unwrap() {
        oracle.mark(ids.inspect(id).unwrap()).unwrap();
    }
    let refused = ids.take_array::<2>().unwrap_err();
    assert_matches!(refused, TakeError::Refused(Refused::BorrowLimit { .. }));
}

#[test]
fn an_iterator_goes_on_after_an_error() {
    let ids = few().build().unwrap();
    assert_eq!(ids.iter().size_hint(), (usize::MAX, None));
    let taken: Result<Vec<Id>, TakeError> = ids.iter().take(64).collect();
    assert!(distinct(&taken.unwrap()));
    let mut iter = ids.iter();
    assert_eq!(iter.next(), Some(Err(TakeError::Empty)));
    assert_eq!(iter.next(), Some(Err(TakeError::Empty)));
    let mut seen = 0;
    for id in &ids {
        assert_eq!(id, Err(TakeError::Empty));
        seen += 1;
        if seen == 3 {
            break;
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn every_generator_is_a_source_and_an_object() {
    let layout = layout(40, 8, 4);
    let oracle = Oracle::new(layout, 90..96, 0..8);
    let cached = cached(layout, 90..93, 0..8).build().unwrap();
    let direct = direct(layout, 93..96, 0..8).build().unwrap();
    let inspector = cached.inspector();
    let sources: Vec<Box<dyn IdSource>> = vec![
        Box::new(RefCell::new(cached.handle().unwrap())),
        Box::new(Mutex::new(cached.handle().unwrap())),
        Box::new(Rc::new(cached.clone())),
        Box::new(Arc::new(direct.clone())),
        Box::new(cached),
        Box::new(direct),
    ];
    for source in &sources {
        oracle
            .mark(inspector.inspect(source.take().unwrap()).unwrap())
            .unwrap();
        let mut batch = [Id::default(); 3];
        assert_eq!(source.take_batch(&mut batch), Ok(3));
        for id in batch {
            oracle.mark(inspector.inspect(id).unwrap()).unwrap();
        }
    }
}

#[test]
fn a_default_batch_says_how_many_it_got() {
    /// Gives one ID fewer with each turn of a handle, and then fails.
    struct Three(RefCell<u64>);
    impl IdSource for Three {
        fn take(&self) -> Result<Id, TakeError> {
            let mut left = self.0.borrow_mut();
            *left = left.checked_sub(1).ok_or(TakeError::Empty)?;
            Ok(Id::from_u64(*left))
        }
    }
    let source = Three(RefCell::new(3));
    let mut batch = [Id::default(); 2];
    assert_eq!(source.take_batch(&mut batch), Ok(2));
    assert_eq!(batch.map(Id::to_u64), [2, 1]);
    assert_eq!(source.take_batch(&mut batch), Ok(1));
    assert_eq!(source.take_batch(&mut batch), Err(TakeError::Empty));
    assert_eq!(source.take_batch(&mut []), Ok(0));
}

#[test]
fn a_default_batch_in_a_forked_child_has_nothing() {
    /// Gives two IDs before its clock forks; this is the child.
    struct Forks(Cell<u64>);
    impl IdSource for Forks {
        fn take(&self) -> Result<Id, TakeError> {
            let count = self.0.get();
            self.0.set(count + 1);
            match count {
                0 | 1 => Ok(Id::from_u64(count)),
                _ => Err(Refused::Forked.into()),
            }
        }
    }
    let taken = Forks(Cell::new(0)).take_batch(&mut [Id::default(); 5]);
    assert_eq!(taken, Err(Refused::Forked.into()));
}

#[test]
fn clones_of_a_direct_generator_share_it() {
    let layout = layout(40, 8, 4);
    let ids = direct(layout, 97..99, 0..8).build().unwrap();
    let clone = ids.clone();
    assert_ne!(ids.take().unwrap(), clone.take().unwrap());
    assert_eq!(clone.layout(), &layout);
    assert_eq!(clone.shutdown(Duration::ZERO), Shutdown::InUse);
    ids.take().unwrap();
    assert_eq!(ids.shutdown(Duration::from_secs(60)), Shutdown::Released);
}

#[test]
fn a_weak_reference_does_not_keep_a_generator() {
    let ids = few().build().unwrap();
    let weak = ids.downgrade();
    let handle = ids.handle().unwrap();
    drop(ids);
    let again = weak.upgrade().expect("the handle keeps it");
    again.take().unwrap();
    assert_eq!(again.shutdown(Duration::ZERO), Shutdown::InUse);
    drop(handle);
    assert!(weak.upgrade().is_none());
    assert!(weak.clone().upgrade().is_none());
}

/// One test for all of it, since a process has only one.
#[test]
fn a_process_has_one_source_and_names_the_way_to_it() {
    let error = ringflake::id().unwrap_err();
    assert_eq!(error, TakeError::NotInitialised);
    assert!(error.to_string().contains("ringflake::init"), "{error}");

    let build = |node| -> CachedGenerator {
        let layout = layout(39, 9, 4);
        cached(layout, node..node + 1, 0..8).build().unwrap()
    };
    let first = build(300);
    ringflake::init(first.clone()).unwrap();
    let node = first.inspect(ringflake::id().unwrap()).unwrap().node;
    assert_eq!(node, 300);

    let again: AlreadyInitialised<CachedGenerator> = ringflake::init(build(301)).unwrap_err();
    assert!(again.to_string().contains("once"), "{again}");
    assert!(format!("{again:?}").starts_with("AlreadyInitialised"));
    let second = again.source;
    assert_eq!(second.inspect(second.take().unwrap()).unwrap().node, 301);
    let node = first.inspect(ringflake::id().unwrap()).unwrap().node;
    assert_eq!(node, 300, "the first stays");
}
