//! The rings, queues and generators that contestants take from.
//!
//! Each full one has IDs of its own, so that those of many rounds can be checked
//! together. A live one is on all nodes, and lasts for a whole check.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, Id, Layout, OnEmpty, PaddingFill, RingBuffer,
    Secret, StaticLease,
};

pub(crate) const LAYOUT: Layout = Layout::RANDFLAKE;

/// More than a benchmark of minutes can use up.
const BORROW_LIMIT: Duration = Duration::from_secs(86_400);

/// How long a take waits for IDs that another thread moves.
const PATIENCE: Duration = Duration::from_secs(1);

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
        .secret(secret())
        .lease(StaticLease::assume_unique(layout, nodes))
        .borrow_limit(BORROW_LIMIT)
}

/// A generator on all nodes, with default fills but for what `shape` configures.
pub(crate) fn live(
    shape: impl Fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder,
) -> CachedGenerator {
    shape(generator(0..LAYOUT.nodes()))
        .build()
        .expect("the configuration is valid")
}

/// A generator with a full cache that is not refilled: `part` slots for each core, or for
/// each of `threads` where there are more of those.
///
/// A take may find it empty too early, where another thread has been stopped while it moves
/// IDs. So a race from it is to be [patient](super::race::Plan::patient).
pub(crate) fn full(part: usize, threads: usize) -> CachedGenerator {
    filled_once(part * places(threads))
        .build()
        .expect("the configuration is valid")
}

/// Takes as many IDs as `out` has room for, of a stock that has more: waits for those that
/// another thread moves, for up to a second. Returns whether there were so many.
#[inline]
pub(crate) fn take_batch_patiently(ids: &CachedGenerator, out: &mut [Id]) -> bool {
    let done = ids.take_batch(out).unwrap_or(0);
    done == out.len() || take_rest_patiently(ids, &mut out[done..])
}

#[cold]
#[inline(never)]
fn take_rest_patiently(ids: &CachedGenerator, out: &mut [Id]) -> bool {
    let started = Instant::now();
    let mut done = 0;
    while done < out.len() && started.elapsed() < PATIENCE {
        thread::yield_now();
        done += ids.take_batch(&mut out[done..]).unwrap_or(0);
    }
    done == out.len()
}

/// The cores that this process may use, or `threads` if that is more; rounded up to a power
/// of two, as stripes are.
pub(crate) fn places(threads: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.max(threads).next_power_of_two()
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

/// A generator whose ring stays empty: consumers make their IDs themselves.
pub(crate) fn without_a_ring() -> CachedGenerator {
    generator(0..LAYOUT.nodes())
        .capacity(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .expect("the configuration is valid")
}

/// A full ring by itself.
pub(crate) fn ring(slots: usize) -> RingBuffer {
    let ring = RingBuffer::with_capacity(slots).expect("a capacity that is valid");
    assert_eq!(ring.push_batch(&ids(slots)), slots);
    ring
}

/// A full queue of plain numbers.
pub(crate) fn queue(slots: usize) -> ArrayQueue<u64> {
    let queue = ArrayQueue::new(slots);
    for number in raws(slots) {
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
