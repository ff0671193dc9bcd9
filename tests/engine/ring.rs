//! The ring by itself: order, limits, many threads, and the mistake it avoids.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ringflake::{Id, PushError, RingBuffer};
use ringflake_kit::short_or_long;

fn ids(range: std::ops::Range<u64>) -> Vec<Id> {
    range.map(Id::from_u64).collect()
}

#[test]
fn r1_one_thread_gets_ids_in_order_across_many_rounds() {
    for capacity in [1, 2, 4, 64, 128, 256] {
        let ring = RingBuffer::with_capacity(capacity).unwrap();
        let mut next_in = 0;
        let mut next_out = 0;
        for step in 0..2_000 {
            let want = (step * 17) % (capacity as u64 + 3);
            next_in += ring.push_batch(&ids(next_in..next_in + want)) as u64;
            assert_eq!(ring.len() as u64, next_in - next_out);
            assert!(ring.len() <= capacity);
            for _ in 0..(step * 19) % (capacity as u64 + 2) {
                match ring.take() {
                    Some(id) => {
                        assert_eq!(id, Id::from_u64(next_out));
                        next_out += 1;
                    }
                    None => assert_eq!(next_out, next_in),
                }
            }
        }
        assert!(next_out > 3 * capacity as u64, "several rounds were gone");
    }
}

#[test]
fn r1_a_batch_takes_what_there_is_and_no_more() {
    let ring = RingBuffer::with_capacity(8).unwrap();
    assert_eq!(ring.push_batch(&ids(0..5)), 5);
    let mut out = [Id::default(); 8];
    assert_eq!(ring.take_batch(&mut out[..3]), 3);
    assert_eq!(out[..3], ids(0..3));
    // This push wraps, and so does the batch that takes it.
    assert_eq!(ring.push_batch(&ids(5..20)), 6);
    assert_eq!(ring.take_batch(&mut out), 8);
    assert_eq!(out[..], ids(3..11));
    assert_eq!(ring.take_batch(&mut out), 0);
    assert_eq!(ring.take_batch(&mut []), 0);
}

#[test]
fn r2_a_full_ring_gives_the_id_back() {
    let ring = RingBuffer::with_capacity(2).unwrap();
    ring.push(Id::from_u64(1)).unwrap();
    ring.push(Id::from_u64(2)).unwrap();
    assert_eq!(ring.push(Id::from_u64(3)), Err(PushError(Id::from_u64(3))));
    assert_eq!(ring.push_batch(&ids(3..9)), 0);
    assert_eq!(ring.take(), Some(Id::from_u64(1)));
    ring.push(Id::from_u64(3)).unwrap();
    assert_eq!(ring.take(), Some(Id::from_u64(2)));
    assert_eq!(ring.take(), Some(Id::from_u64(3)));
}

#[test]
fn r3_a_producer_that_panics_with_a_permit_leaves_the_room_free() {
    let ring = RingBuffer::with_capacity(4).unwrap();
    let died = thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let _permit = ring.reserve(3).unwrap();
            panic!("the producer dies half-way");
        });
        producer.join()
    });
    assert!(died.is_err());
    assert!(ring.is_empty());
    assert_eq!(ring.push_batch(&ids(0..9)), 4);
    assert_eq!(ring.len(), 4);
}

#[test]
fn r3_a_permit_that_is_held_blocks_nobody() {
    let ring = RingBuffer::with_capacity(4).unwrap();
    let held = ring.reserve(2).unwrap();
    assert_eq!(ring.push_batch(&ids(10..20)), 2);
    assert_eq!(ring.take(), Some(Id::from_u64(10)));
    assert_eq!(held.push(&ids(20..30)), 2);
    let mut out = [Id::default(); 4];
    assert_eq!(ring.take_batch(&mut out), 3);
    assert_eq!(out[..3], [11, 20, 21].map(Id::from_u64));
}

/// Every value below `total`, a multiple of 64, goes in once, from `producers` threads, and is
/// marked when it comes out: one bit each, so that a second one is seen.
fn exchange(capacity: usize, producers: u64, consumers: u64, total: u64, batch: usize) {
    let ring = RingBuffer::with_capacity(capacity).unwrap();
    let seen: Vec<AtomicU64> = (0..total / 64).map(|_| AtomicU64::new(0)).collect();
    let out = AtomicU64::new(0);
    thread::scope(|scope| {
        for producer in 0..producers {
            let ring = &ring;
            scope.spawn(move || {
                let mine = ids(total * producer / producers..total * (producer + 1) / producers);
                for mut pending in mine.chunks(batch * 2 + 1) {
                    while !pending.is_empty() {
                        let pushed = ring.push_batch(pending);
                        pending = &pending[pushed..];
                        if pushed == 0 {
                            thread::yield_now();
                        }
                    }
                }
            });
        }
        for consumer in 0..consumers {
            let (ring, seen, out) = (&ring, &seen, &out);
            scope.spawn(move || {
                let mut buffer = vec![Id::default(); batch];
                while out.load(Ordering::Relaxed) < total {
                    // Half of the consumers take one by one.
                    let count = if consumer % 2 == 0 {
                        ring.take_batch(&mut buffer)
                    } else {
                        ring.take().map_or(0, |id| {
                            buffer[0] = id;
                            1
                        })
                    };
                    for id in &buffer[..count] {
                        let value = id.to_u64();
                        let bit = 1 << (value % 64);
                        let word = seen[(value / 64) as usize].fetch_or(bit, Ordering::Relaxed);
                        assert_eq!(word & bit, 0, "{value} was taken twice");
                    }
                    out.fetch_add(count as u64, Ordering::Relaxed);
                    if count == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    // None twice and none from elsewhere, so that none was lost.
    assert_eq!(out.into_inner(), total);
    assert!(ring.is_empty());
}

#[test]
fn r1_threads_get_each_id_of_a_tiny_ring_once() {
    // Each ID waits for a thread to be scheduled, which takes long beside other work.
    exchange(2, 2, 2, short_or_long(6_400, 32_000), 1);
}

#[test]
fn r1_threads_get_each_id_of_one_word_of_flags_once() {
    exchange(64, 3, 3, short_or_long(256_000, 1_000_000), 7);
}

#[test]
fn r1_threads_get_each_id_of_many_words_of_flags_once() {
    exchange(1024, 4, 4, short_or_long(640_000, 4_000_000), 100);
}
