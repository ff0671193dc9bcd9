//! What does it cost to take one ID from a full ring, alone and against
//! another thread?
//!
//! `ring` is the ring by itself, `generator` is `CachedGenerator::take`, with as many IDs for
//! each core as a sample takes in all. Nobody refills them while they are timed.

use criterion::{Criterion, criterion_group, criterion_main};
use ringflake::{CachedGenerator, Id, RingBuffer};

use self::common::measure::{SLOTS, Supply, config, group, measure};
use self::common::race::{Contest, put};
use self::common::stock;
use self::common::yardsticks;

mod common;

fn take(criterion: &mut Criterion) {
    let cipher = stock::cipher();
    let raw = |id: Id| cipher.decrypt(id.to_u64());

    let ring = Contest::new(
        || stock::ring(SLOTS),
        |_| (),
        |ring: &RingBuffer, _, [id]: &mut [Id; 1]| put(id, ring.take()),
    );
    let generator = Contest::new(
        || stock::full(SLOTS, 2),
        |_| (),
        |ids: &CachedGenerator, _, [id]: &mut [Id; 1]| put(id, ids.take().ok()),
    );

    let mut group = group(criterion, "take");
    for threads in [1, 2] {
        measure(&mut group, "ring", threads, Supply::OneStock, &ring, raw);
        measure(
            &mut group,
            "generator",
            threads,
            Supply::OneStock,
            &generator,
            raw,
        );
        yardsticks::fetch_add(&mut group, threads);
        yardsticks::full_queue(&mut group, threads);
    }
    group.finish();
}

criterion_group! { name = benches; config = config(); targets = take }
criterion_main!(benches);
