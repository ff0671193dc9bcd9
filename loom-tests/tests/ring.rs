//! The ring by itself.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use ringflake::{Id, RingBuffer};
use ringflake_loom_tests::{Role, explore, race};

fn ids(numbers: &[u64]) -> Vec<Id> {
    numbers.iter().copied().map(Id::from_u64).collect()
}

fn ring(capacity: usize, filled: &[u64]) -> Arc<RingBuffer> {
    let ring = RingBuffer::with_capacity(capacity).unwrap();
    assert_eq!(ring.push_batch(&ids(filled)), filled.len());
    Arc::new(ring)
}

/// A role that takes up to `times` IDs, one by one.
fn taking(ring: &Arc<RingBuffer>, times: usize) -> Role<Vec<u64>> {
    let ring = Arc::clone(ring);
    Box::new(move || {
        (0..times)
            .filter_map(|_| ring.take())
            .map(Id::to_u64)
            .collect()
    })
}

/// A role that takes one batch of up to `want`.
fn taking_batch(ring: &Arc<RingBuffer>, want: usize) -> Role<Vec<u64>> {
    let ring = Arc::clone(ring);
    Box::new(move || {
        let mut out = vec![Id::default(); want];
        let count = ring.take_batch(&mut out);
        out[..count].iter().map(|id| id.to_u64()).collect()
    })
}

/// A role that pushes `numbers` in one step and returns those that were accepted.
fn pushing(ring: &Arc<RingBuffer>, numbers: &'static [u64]) -> Role<Vec<u64>> {
    let ring = Arc::clone(ring);
    Box::new(move || {
        let pushed = ring.push_batch(&ids(numbers));
        numbers[..pushed].to_vec()
    })
}

/// Everything that is left, in order.
fn drain(ring: &RingBuffer) -> Vec<u64> {
    std::iter::from_fn(|| ring.take()).map(Id::to_u64).collect()
}

/// The IDs of `pushed` came out in `taken`, each once, in whatever order.
fn assert_each_once(mut taken: Vec<u64>, mut pushed: Vec<u64>) {
    taken.sort_unstable();
    pushed.sort_unstable();
    assert_eq!(taken, pushed);
}

/// R1: of two takes on the last ID one gets it, and the other finds the ring empty.
#[test]
fn take_against_take_on_the_last_id() {
    explore(2, None, |first| {
        let ring = ring(2, &[7]);
        let taken = race(first, [taking(&ring, 1), taking(&ring, 1)]);
        assert_each_once(taken.concat(), vec![7]);
        assert!(ring.is_empty());
    });
}

/// R1: a take and a batch never share an ID, and leave none behind.
#[test]
fn take_against_batch() {
    explore(2, None, |first| {
        let ring = ring(4, &[1, 2, 3]);
        let taken = race(first, [taking(&ring, 2), taking_batch(&ring, 2)]);
        let left = drain(&ring);
        assert_each_once([taken.concat(), left].concat(), vec![1, 2, 3]);
    });
}

/// A role that takes one ID and pushes one of `numbers`, again and again, and returns
/// the IDs that it took.
fn going_round(ring: &Arc<RingBuffer>, numbers: &'static [u64]) -> Role<Vec<u64>> {
    let ring = Arc::clone(ring);
    Box::new(move || {
        let mut taken = Vec::new();
        for &number in numbers {
            taken.extend(ring.take().map(Id::to_u64));
            // If another thread was faster, there is room as well.
            ring.push(Id::from_u64(number)).unwrap();
        }
        taken
    })
}

/// R1: a batch that has loaded `cursor` before whole rounds went by finds more
/// between it and `tail` than there are slots, and reads none of them twice.
#[test]
fn batch_of_more_than_the_ring_against_rounds() {
    explore(2, None, |first| {
        let ring = ring(1, &[1]);
        let taken = race(first, [taking_batch(&ring, 4), going_round(&ring, &[2, 3])]);
        let left = drain(&ring);
        assert_each_once([taken.concat(), left].concat(), vec![1, 2, 3]);
    });
}

/// A level that is read while rounds go by is one that the ring can have.
#[test]
fn level_against_rounds() {
    explore(2, None, |first| {
        let ring = ring(1, &[1]);
        let looking: Role<Vec<u64>> = {
            let ring = Arc::clone(&ring);
            Box::new(move || {
                let level = ring.len();
                assert!(level <= 1, "{level} in a ring of one");
                Vec::new()
            })
        };
        let [_, taken] = race(first, [looking, going_round(&ring, &[2, 3])]);
        assert_eq!(taken, [1, 2]);
        assert_eq!(drain(&ring), [3]);
    });
}

/// A ring into which an ID is put before each take is never empty, nor reads as empty.
#[test]
fn level_of_a_ring_that_is_never_empty() {
    explore(2, None, |first| {
        let ring = ring(2, &[1]);
        let looking: Role<Vec<u64>> = {
            let ring = Arc::clone(&ring);
            Box::new(move || {
                let level = ring.len();
                assert!((1..=2).contains(&level), "{level} where there are 1 or 2");
                Vec::new()
            })
        };
        let pushing_first: Role<Vec<u64>> = {
            let ring = Arc::clone(&ring);
            Box::new(move || {
                ring.push(Id::from_u64(2)).unwrap();
                ring.take().map(Id::to_u64).into_iter().collect()
            })
        };
        let [_, taken] = race(first, [looking, pushing_first]);
        assert_eq!(taken, [1]);
        assert_eq!(drain(&ring), [2]);
    });
}

/// R1: a take finds an ID that was pushed before it, whole, also when the flags are
/// in their second round.
#[test]
fn take_against_push() {
    explore(2, None, |first| {
        let ring = ring(1, &[1]);
        assert_eq!(drain(&ring), [1]);
        let [early, pushed] = race(first, [taking(&ring, 1), pushing(&ring, &[2])]);
        assert_eq!(pushed, [2]);
        let late = drain(&ring);
        assert_each_once([early, late].concat(), vec![2]);
    });
}

/// R2: a slot that is being taken is not written for the next round before the
/// take is done, and the ID that is written there is read whole.
#[test]
fn take_against_fill_at_the_wrap() {
    explore(2, None, |first| {
        let ring = ring(1, &[1]);
        let producer = {
            let ring = Arc::clone(&ring);
            Box::new(move || {
                let mut pushed = ids(&[2, 3]);
                pushed.retain(|&id| ring.push(id).is_ok());
                pushed.iter().map(|id| id.to_u64()).collect()
            })
        };
        let [mut taken, pushed] = race(first, [taking(&ring, 2), producer]);
        taken.extend(drain(&ring));
        // One producer, one consumer: in order, too.
        assert_eq!(taken, [vec![1], pushed].concat());
    });
}

/// R1, R2: the same with two consumers that contend for the slot.
#[test]
fn two_takes_against_fill_at_the_wrap() {
    explore(3, Some(3), |first| {
        let ring = ring(1, &[1]);
        let roles = [taking(&ring, 1), taking(&ring, 1), pushing(&ring, &[2])];
        let [a, b, pushed] = race(first, roles);
        let left = drain(&ring);
        assert_each_once([a, b, left].concat(), [vec![1], pushed].concat());
    });
}

/// R3: whichever of two producers finishes first, everything that they pushed
/// can be taken when both have finished. Their flags lie in two words.
#[test]
fn two_producers_the_second_finishing_first() {
    explore(2, Some(3), |first| {
        let ring = ring(4, &[]);
        let pushed = race(first, [pushing(&ring, &[1, 2]), pushing(&ring, &[3, 4])]);
        assert_each_once(drain(&ring), pushed.concat());
    });
}

/// R3: the same with the flags of both in one word.
#[test]
fn two_producers_in_one_word_of_flags() {
    explore(2, None, |first| {
        let ring = ring(2, &[]);
        let pushed = race(first, [pushing(&ring, &[1]), pushing(&ring, &[2])]);
        assert_each_once(drain(&ring), pushed.concat());
    });
}

/// R1, R3: a consumer between two producers takes nothing unfinished, and
/// nothing is lost.
#[test]
fn two_producers_and_a_consumer() {
    explore(3, Some(3), |first| {
        let ring = ring(4, &[]);
        let roles = [
            pushing(&ring, &[1, 2]),
            pushing(&ring, &[3]),
            taking(&ring, 2),
        ];
        let [a, b, taken] = race(first, roles);
        let left = drain(&ring);
        assert_each_once([taken, left].concat(), [a, b].concat());
    });
}

/// R1, R2: one consumer's take is behind the other's, never ahead of `tail`.
#[test]
fn a_producer_and_two_consumers() {
    explore(3, Some(3), |first| {
        let ring = ring(2, &[]);
        let roles = [pushing(&ring, &[1, 2]), taking(&ring, 1), taking(&ring, 1)];
        let [pushed, a, b] = race(first, roles);
        let left = drain(&ring);
        assert_each_once([a, b, left].concat(), pushed);
    });
}

/// R2: a producer may write where another one saw the room, which it has not
/// seen itself.
#[test]
fn room_passes_between_producers() {
    explore(3, Some(3), |first| {
        let ring = ring(2, &[1]);
        // One slot is free; a permit for the other one takes a take.
        let roles = [taking(&ring, 1), pushing(&ring, &[2]), pushing(&ring, &[3])];
        let [taken, a, b] = race(first, roles);
        let left = drain(&ring);
        assert_each_once([taken, left].concat(), [vec![1], a, b].concat());
    });
}

/// R2: two producers compete for the room that takes make at the wrap.
#[test]
fn producers_compete_for_room() {
    explore(3, Some(3), |first| {
        let ring = ring(2, &[1, 2]);
        let roles = [taking(&ring, 2), pushing(&ring, &[3]), pushing(&ring, &[4])];
        let [taken, a, b] = race(first, roles);
        let left = drain(&ring);
        assert_each_once([taken, left].concat(), [vec![1, 2], a, b].concat());
    });
}

/// R3: a producer that dies while it holds a permit leaves its room to the
/// others, and no slot that a consumer could take.
#[test]
fn a_producer_that_dies_half_way() {
    explore(2, None, |first| {
        let ring = ring(2, &[]);
        let dying = {
            let ring = Arc::clone(&ring);
            Box::new(move || {
                let permit = ring.reserve(2);
                let died = catch_unwind(AssertUnwindSafe(|| {
                    let _permit = permit;
                    resume_unwind(Box::new("dies"));
                }));
                assert!(died.is_err());
                Vec::new()
            })
        };
        let [_, pushed] = race(first, [dying, pushing(&ring, &[1])]);
        assert_eq!(drain(&ring), pushed);
        // All the room is back.
        assert_eq!(ring.push_batch(&ids(&[2, 3, 4])), 2);
        assert_eq!(drain(&ring), [2, 3]);
    });
}
