//! The ten things that are measured.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result, bail};
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, Id, Layout, OnEmpty, PaddingFill, RingBuffer,
    Secret, StaticLease,
};

use super::race::{Expected, Race, Sink, Workload};

/// Every name, in the order in which they are shown.
pub(super) const NAMES: [&str; 10] = [
    "fetch_add",
    "array_queue_pop",
    "ring_take",
    "ring_take_batch_64",
    "handle_take",
    "live_take",
    "live_batch_64",
    "in_place",
    "encrypt_scalar",
    "encrypt_batch",
];

/// IDs in the race of a ring or queue that is filled before and emptied in it.
const PREFILLED: usize = if SHORT { 1 << 14 } else { 1 << 20 };

/// IDs in a race that has no such natural end. Several times the capacity of
/// a live ring, which is full at the start.
const ENDLESS: u64 = if SHORT { 1 << 18 } else { 1 << 22 };

/// IDs in a race that is ten times slower than the others.
const SLOW: u64 = if SHORT { 1 << 14 } else { 1 << 20 };

/// The figures of a build that is not optimised tell nothing.
const SHORT: bool = cfg!(debug_assertions);

/// IDs in a batch.
const BATCH: usize = 64;

/// The workload of this name, for this many runners.
pub(super) fn by_name(name: &str, runners: usize, secret: &Secret) -> Result<Box<dyn Race>> {
    let cipher = Cipher::sparx64(secret);
    let ring = || RingBuffer::with_capacity(PREFILLED);
    let endless = Length::shares(ENDLESS, runners);
    Ok(match name {
        "fetch_add" => Box::new(FetchAdd(CachePadded::default())),
        "array_queue_pop" => Box::new(Prefilled::new(ArrayQueue::new(PREFILLED), &cipher)),
        "ring_take" => Box::new(Prefilled::new(ring()?, &cipher)),
        "ring_take_batch_64" => Box::new(Prefilled::new(Batched(ring()?), &cipher)),
        "handle_take" => Box::new(Generated::<ByHandle>::new(full, Length::DRAIN)),
        "live_take" => Box::new(Generated::<Singly>::new(live, endless)),
        "live_batch_64" => Box::new(Generated::<Batches>::new(live, endless)),
        "in_place" => Box::new(Generated::<Batches>::new(without_ring, endless)),
        "encrypt_scalar" => Box::new(EncryptScalar(cipher, Length::shares(SLOW, runners))),
        "encrypt_batch" => Box::new(EncryptBatch(cipher, endless)),
        _ => bail!("there is no workload {name}"),
    })
}

/// How many IDs a race has.
#[derive(Clone, Copy, Debug)]
struct Length {
    all: u64,
    /// Each runner's share; without a limit if they empty one ring together.
    share: u64,
}

impl Length {
    const DRAIN: Self = Self {
        all: PREFILLED as u64,
        share: u64::MAX,
    };

    /// Equal shares, in whole batches, of about `ids`.
    fn shares(ids: u64, runners: usize) -> Self {
        let batches = ids / BATCH as u64 / runners as u64;
        let share = batches.max(1) * BATCH as u64;
        Self {
            all: share * runners as u64,
            share,
        }
    }

    fn expected(self) -> Expected {
        Expected {
            ids: self.all,
            sum: None,
        }
    }
}

/// The yardstick: a shared counter.
struct FetchAdd(CachePadded<AtomicU64>);

impl Workload for FetchAdd {
    fn prepare(&mut self) -> Result<()> {
        *self.0.get_mut() = 0;
        Ok(())
    }

    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
        Ok(|sink: &mut S| {
            loop {
                let number = self.0.fetch_add(1, Relaxed);
                if number >= ENDLESS {
                    break;
                }
                sink.put(Id::from_u64(number));
            }
        })
    }

    fn expected(&self) -> Expected {
        Expected {
            ids: ENDLESS,
            sum: Some(ENDLESS * (ENDLESS - 1) / 2),
        }
    }
}

/// A queue of IDs that is filled before each race, and emptied in it by all
/// the runners together.
struct Prefilled<Q> {
    queue: Q,
    ids: Box<[Id]>,
}

trait Queue: Send + Sync {
    fn fill(&self, ids: &[Id]);
    fn drain<S: Sink>(&self, sink: &mut S);
}

impl<Q: Queue> Prefilled<Q> {
    fn new(queue: Q, cipher: &Cipher) -> Self {
        let raws = 0..PREFILLED as u64;
        let ids = raws.map(|raw| Id::from_u64(cipher.encrypt(raw))).collect();
        Self { queue, ids }
    }
}

impl<Q: Queue> Workload for Prefilled<Q> {
    fn prepare(&mut self) -> Result<()> {
        self.queue.fill(&self.ids);
        Ok(())
    }

    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
        Ok(|sink: &mut S| self.queue.drain(sink))
    }

    fn expected(&self) -> Expected {
        let sum = |sum: u64, id: &Id| sum.wrapping_add(id.to_u64());
        Expected {
            ids: self.ids.len() as u64,
            sum: Some(self.ids.iter().fold(0, sum)),
        }
    }
}

impl Queue for ArrayQueue<Id> {
    fn fill(&self, ids: &[Id]) {
        for &id in ids {
            // A full queue shows in the count.
            let _ = self.push(id);
        }
    }

    fn drain<S: Sink>(&self, sink: &mut S) {
        while let Some(id) = self.pop() {
            sink.put(id);
        }
    }
}

impl Queue for RingBuffer {
    fn fill(&self, ids: &[Id]) {
        assert_eq!(self.push_batch(ids), ids.len(), "the ring has room");
    }

    fn drain<S: Sink>(&self, sink: &mut S) {
        while let Some(id) = self.take() {
            sink.put(id);
        }
    }
}

/// A ring that is emptied in batches.
struct Batched(RingBuffer);

impl Queue for Batched {
    fn fill(&self, ids: &[Id]) {
        self.0.fill(ids);
    }

    fn drain<S: Sink>(&self, sink: &mut S) {
        let mut ids = [Id::default(); BATCH];
        loop {
            let count = self.0.take_batch(&mut ids);
            if count == 0 {
                break;
            }
            sink.put_all(&ids[..count]);
        }
    }
}

/// A generator, a new one for each race, from which IDs are taken in the way `T`.
struct Generated<T> {
    configure: fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder,
    length: Length,
    generator: Option<CachedGenerator>,
    way: PhantomData<T>,
}

/// A way of taking IDs from a generator.
trait Taking: Send + Sync {
    /// Makes one thread ready to take up to `share` IDs, or all there are.
    fn runner<S: Sink>(generator: &CachedGenerator, share: u64) -> Result<impl FnMut(&mut S)>;
}

impl<T> Generated<T> {
    fn new(
        configure: fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder,
        length: Length,
    ) -> Self {
        Self {
            configure,
            length,
            generator: None,
            way: PhantomData,
        }
    }
}

impl<T: Taking> Workload for Generated<T> {
    fn prepare(&mut self) -> Result<()> {
        let layout = Layout::RANDFLAKE;
        let builder = CachedGenerator::builder(layout)
            // IDs of its own: each is made once in a process.
            .secret(&Secret::generate()?)
            .lease(StaticLease::assume_unique(layout, 0..layout.nodes()));
        // The old one ends first, so that its threads are in nobody's way.
        self.generator = None;
        self.generator = Some((self.configure)(builder).build()?);
        Ok(())
    }

    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
        let generator = self.generator.as_ref().context("nothing was prepared")?;
        T::runner(generator, self.length.share)
    }

    fn expected(&self) -> Expected {
        self.length.expected()
    }
}

/// A full ring and nobody who fills it again.
fn full(builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
    builder
        .capacity(PREFILLED)
        .threshold_fill(None)
        .on_empty(OnEmpty::Error)
}

/// One producer, and the defaults throughout.
fn live(builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
    builder
}

/// A ring that is always empty: each batch is claimed and encrypted on the spot.
fn without_ring(builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
    builder
        .capacity(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
}

struct Singly;

impl Taking for Singly {
    fn runner<S: Sink>(generator: &CachedGenerator, share: u64) -> Result<impl FnMut(&mut S)> {
        Ok(move |sink: &mut S| {
            for _ in 0..share {
                // One that is missing shows in the count.
                let Ok(id) = generator.take() else { break };
                sink.put(id);
            }
        })
    }
}

struct Batches;

impl Taking for Batches {
    fn runner<S: Sink>(generator: &CachedGenerator, share: u64) -> Result<impl FnMut(&mut S)> {
        Ok(move |sink: &mut S| {
            let mut ids = [Id::default(); BATCH];
            let mut left = share;
            while left > 0 {
                let want = left.min(BATCH as u64) as usize;
                let Ok(count) = generator.take_batch(&mut ids[..want]) else {
                    break;
                };
                sink.put_all(&ids[..count]);
                left -= count as u64;
            }
        })
    }
}

struct ByHandle;

impl Taking for ByHandle {
    fn runner<S: Sink>(generator: &CachedGenerator, share: u64) -> Result<impl FnMut(&mut S)> {
        let mut handle = generator.handle()?;
        Ok(move |sink: &mut S| {
            for _ in 0..share {
                let Ok(id) = handle.take() else { break };
                sink.put(id);
            }
        })
    }
}

/// One raw after the other, each by itself.
struct EncryptScalar(Cipher, Length);

impl Workload for EncryptScalar {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
        Ok(|sink: &mut S| {
            for raw in 0..self.1.share {
                sink.put(Id::from_u64(self.0.encrypt(raw)));
            }
        })
    }

    fn expected(&self) -> Expected {
        self.1.expected()
    }
}

/// Runs of 64 raws.
struct EncryptBatch(Cipher, Length);

impl Workload for EncryptBatch {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
        Ok(|sink: &mut S| {
            let mut numbers = [0; BATCH];
            for first in (0..self.1.share).step_by(BATCH) {
                self.0.encrypt_run(first, &mut numbers);
                for number in numbers {
                    sink.put(Id::from_u64(number));
                }
            }
        })
    }

    fn expected(&self) -> Expected {
        self.1.expected()
    }
}
