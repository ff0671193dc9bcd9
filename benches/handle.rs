//! What does it cost to take one ID from a handle, one handle a thread?
//!
//! `full ring` takes each chunk of 64 from a ring that is not refilled while it
//! is timed. `no ring` has none to take from: each chunk is claimed and
//! encrypted in place, which is what a take costs that outruns its producers,
//! and all that is left of it on a machine without idle cores.

use criterion::{Criterion, criterion_group, criterion_main};
use ringflake::{CachedGenerator, Handle, Id};

use self::common::measure::{SLOTS, Supply, config, group, measure};
use self::common::race::{Contest, put};
use self::common::stock;
use self::common::yardsticks;

mod common;

fn handle(criterion: &mut Criterion) {
    let cipher = stock::cipher();
    let raw = |id: Id| cipher.decrypt(id.to_u64());

    let full_ring = Contest::new(|| stock::full(SLOTS, 2), sit, take);
    let no_ring = Contest::new(stock::without_a_ring, sit, take);

    let mut group = group(criterion, "handle");
    for threads in [1, 2] {
        measure(
            &mut group,
            "full ring",
            threads,
            Supply::OneStock,
            &full_ring,
            raw,
        );
        measure(
            &mut group,
            "no ring",
            threads,
            Supply::Endless,
            &no_ring,
            raw,
        );
        yardsticks::fetch_add(&mut group, threads);
        yardsticks::full_queue(&mut group, threads);
    }
    group.finish();
}

fn sit(generator: &CachedGenerator) -> Handle {
    generator.handle().expect("a page of memory")
}

#[inline]
fn take(_: &CachedGenerator, handle: &mut Handle, [id]: &mut [Id; 1]) -> bool {
    put(id, handle.take().ok())
}

criterion_group! { name = benches; config = config(); targets = handle }
criterion_main!(benches);
