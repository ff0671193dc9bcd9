//! The cost of an ID when 64 are taken at once from a full ring, alone and against another thread.
//!
//! The yardsticks have no batches: they take one number at a time.

use criterion::{Criterion, criterion_group, criterion_main};
use ringflake::{CachedGenerator, Id, RingBuffer};

use self::common::measure::{SLOTS, Supply, config, group, measure};
use self::common::race::Contest;
use self::common::stock;
use self::common::yardsticks;

mod common;

/// IDs a call.
const BATCH: usize = 64;

fn batch(criterion: &mut Criterion) {
    let cipher = stock::cipher();
    let raw = |id: Id| cipher.decrypt(id.to_u64());

    let ring = Contest::new(
        || stock::ring(SLOTS),
        |_| (),
        |ring: &RingBuffer, _, ids: &mut [Id; BATCH]| ring.take_batch(ids) == BATCH,
    );
    let generator = Contest::new(
        || stock::full(SLOTS, 2),
        |_| (),
        |source: &CachedGenerator, _, ids: &mut [Id; BATCH]| {
            stock::take_batch_patiently(source, ids)
        },
    );

    let mut group = group(criterion, "batch");
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

criterion_group! { name = benches; config = config(); targets = batch }
criterion_main!(benches);
