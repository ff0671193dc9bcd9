//! What does an ID cost while a producer fills the ring that a consumer takes
//! from?
//!
//! The generator has its defaults: one producer, woken when the ring is half
//! empty. A consumer that outruns it makes IDs in place. Two threads work, so
//! the yardsticks have two as well: `fetch_add` on both, and `array_queue`
//! with one that pushes a count and one that pops it.

use criterion::{Criterion, criterion_group, criterion_main};
use ringflake::{CachedGenerator, Handle, Id};

use self::common::measure::{Supply, config, group, measure};
use self::common::race::{Contest, put};
use self::common::stock;
use self::common::yardsticks;

mod common;

/// IDs a call of the batch take.
const BATCH: usize = 64;

fn live(criterion: &mut Criterion) {
    let cipher = stock::cipher();
    let raw = |id: Id| cipher.decrypt(id.to_u64());
    let supply = Supply::Endless;

    let take = Contest::new(
        stock::live,
        |_| (),
        |ids: &CachedGenerator, _, [id]: &mut [Id; 1]| put(id, ids.take().ok()),
    );
    let batch = Contest::new(
        stock::live,
        |_| (),
        |source: &CachedGenerator, _, ids: &mut [Id; BATCH]| source.take_batch(ids) == Ok(BATCH),
    );
    let handle = Contest::new(
        stock::live,
        |ids: &CachedGenerator| ids.handle().expect("a page of memory"),
        |_, handle: &mut Handle, [id]: &mut [Id; 1]| put(id, handle.take().ok()),
    );

    let mut group = group(criterion, "live");
    measure(&mut group, "take", 1, supply, &take, raw);
    measure(&mut group, "batch of 64", 1, supply, &batch, raw);
    measure(&mut group, "handle", 1, supply, &handle, raw);
    // No core is left for the producer: most are made in place.
    measure(&mut group, "handle", 2, supply, &handle, raw);
    yardsticks::fetch_add(&mut group, 1);
    yardsticks::fetch_add(&mut group, 2);
    yardsticks::live_queue(&mut group);
    group.finish();
}

criterion_group! { name = benches; config = config(); targets = live }
criterion_main!(benches);
