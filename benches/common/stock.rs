//! What the contestants of this crate take from.
//!
//! Each full stock has IDs of its own, so that those of many rounds can be
//! checked together. A live one is on all nodes, and lasts for a whole check.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, Id, Layout, OnEmpty, PaddingFill, RingBuffer,
    Secret, StaticLease,
};

/// Slots in a ring: the default of [`CachedGenerator`], half a megabyte.
pub(crate) const SLOTS: usize = 1 << 16;

pub(crate) const LAYOUT: Layout = Layout::RANDFLAKE;

/// More than a benchmark of minutes can use up.
const BORROW_LIMIT: Duration = Duration::from_secs(86_400);

pub(crate) fn secret() -> Secret {
    Secret::from_bytes(*b"0123456789abcdef")
}

/// The cipher of all stocks, to read IDs with.
pub(crate) fn cipher() -> Cipher {
    Cipher::sparx64(&secret())
}

/// [`LAYOUT`] with an epoch that is a millisecond earlier at each call. A process
/// makes each ID once, so generators on the same nodes need layouts that differ.
pub(crate) fn layout_of_its_own() -> Layout {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let earlier = CALLS.fetch_add(1, Relaxed);
    let layout = Layout::builder()
        .bits(
            LAYOUT.time_bits(),
            LAYOUT.node_bits(),
            LAYOUT.sequence_bits(),
        )
        .tick(Duration::from_millis(LAYOUT.tick_ms()))
        .epoch_unix_ms(LAYOUT.epoch_unix_ms() - earlier);
    layout.build().expect("as valid as the other")
}

/// A generator on `nodes` of a lease, ready to be configured further.
pub(crate) fn generator(nodes: Range<u64>) -> CachedGeneratorBuilder {
    let layout = layout_of_its_own();
    CachedGenerator::builder(layout)
        .secret(&secret())
        .lease(StaticLease::assume_unique(layout, nodes))
        .borrow_limit(BORROW_LIMIT)
}

/// A generator on all nodes, with default fills.
pub(crate) fn live() -> CachedGenerator {
    generator(0..LAYOUT.nodes())
        .build()
        .expect("the configuration is valid")
}

/// A generator with a full ring that nobody refills, and that fails when dry.
pub(crate) fn filled_up() -> CachedGenerator {
    filled_once(SLOTS)
        .build()
        .expect("the configuration is valid")
}

/// A generator that will fill a ring of `slots` when it is built, and then no
/// more. Each is on nodes of its own, enough of them not to borrow.
pub(crate) fn filled_once(slots: usize) -> CachedGeneratorBuilder {
    static NODE: AtomicU64 = AtomicU64::new(0);
    let nodes = (slots as u64).div_ceil(LAYOUT.sequences());
    let first = NODE.fetch_add(nodes, Relaxed) % (LAYOUT.nodes() - nodes);
    generator(first..first + nodes)
        .capacity(slots)
        .threshold_fill(None)
        .on_empty(OnEmpty::Error)
}

/// A generator whose ring stays empty: it makes IDs in the consumer's thread.
pub(crate) fn without_a_ring() -> CachedGenerator {
    generator(0..LAYOUT.nodes())
        .capacity(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .expect("the configuration is valid")
}

/// A full ring by itself.
pub(crate) fn ring() -> RingBuffer {
    let ring = RingBuffer::with_capacity(SLOTS).expect("a capacity that is valid");
    assert_eq!(ring.push_batch(&ids(SLOTS)), SLOTS);
    ring
}

/// A full queue of plain numbers.
pub(crate) fn queue() -> ArrayQueue<u64> {
    let queue = ArrayQueue::new(SLOTS);
    for number in raws(SLOTS) {
        queue.push(number).expect("the queue has room");
    }
    queue
}

/// Encrypted IDs that nothing else has.
pub(crate) fn ids(count: usize) -> Vec<Id> {
    let mut ids = vec![0; count];
    cipher().encrypt_run(raws(count).start, &mut ids);
    ids.into_iter().map(Id::from_u64).collect()
}

/// Plain numbers that nothing else has.
pub(crate) fn raws(count: usize) -> Range<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = NEXT.fetch_add(count as u64, Relaxed);
    first..first + count as u64
}

/// A queue with a thread that pushes a count into it.
pub(crate) struct LiveQueue {
    queue: Arc<ArrayQueue<u64>>,
    stop: Arc<AtomicBool>,
    producer: Option<JoinHandle<()>>,
}

impl LiveQueue {
    pub(crate) fn new() -> Self {
        let queue = Arc::new(ArrayQueue::new(SLOTS));
        let stop = Arc::new(AtomicBool::new(false));
        let producer = {
            let (queue, stop) = (Arc::clone(&queue), Arc::clone(&stop));
            thread::spawn(move || {
                let mut next = 0;
                // Relaxed: a wish to end, which carries nothing.
                while !stop.load(Relaxed) {
                    match queue.push(next) {
                        Ok(()) => next += 1,
                        Err(_) => spin_loop(),
                    }
                }
            })
        };
        Self {
            queue,
            stop,
            producer: Some(producer),
        }
    }

    /// The next number, as soon as there is one.
    #[inline]
    pub(crate) fn pop(&self) -> u64 {
        loop {
            match self.queue.pop() {
                Some(number) => return number,
                None => spin_loop(),
            }
        }
    }
}

impl Drop for LiveQueue {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(producer) = self.producer.take() {
            producer.join().expect("the producer panicked");
        }
    }
}
