//! What does a slot cost to fill?
//!
//! `build` is the padding fill, from the configuration to a full ring: the
//! memory for the slots, the claims, the encryption, the publication.
//! `push_batch of 1024` is the last of these alone, with IDs made before.
//! Yardsticks: an `ArrayQueue` filled number by number, and `fetch_add`.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use ringflake::{CachedGeneratorBuilder, Id, RingBuffer};

use self::common::measure::{SLOTS, config, group};
use self::common::stock;
use self::common::unique::Marks;
use self::common::yardsticks;

mod common;

/// IDs a push.
const BATCH: usize = 1024;

fn fill(criterion: &mut Criterion) {
    let cipher = stock::cipher();
    let mut group = group(criterion, "fill");

    for slots in [1 << 16, 1 << 20] {
        measure(
            &mut group,
            &format!("build, {slots} slots"),
            slots,
            || stock::filled_once(slots),
            |builder: CachedGeneratorBuilder| builder.build(),
            |built| {
                let ids = built.expect("the configuration is valid");
                let taken = std::iter::from_fn(move || ids.take().ok());
                taken.map(|id| cipher.decrypt(id.to_u64())).collect()
            },
        );
    }

    measure(
        &mut group,
        "push_batch of 1024",
        SLOTS,
        || (RingBuffer::with_capacity(SLOTS), stock::ids(SLOTS)),
        |(ring, ids)| {
            let ring = ring.expect("a capacity that is valid");
            for batch in ids.chunks(BATCH) {
                assert_eq!(ring.push_batch(batch), batch.len());
            }
            // The IDs too, or dropping them would be timed.
            (ring, ids)
        },
        |(ring, _)| {
            let taken = std::iter::from_fn(|| ring.take());
            taken.map(|id: Id| cipher.decrypt(id.to_u64())).collect()
        },
    );

    measure(
        &mut group,
        "array_queue",
        SLOTS,
        || (ArrayQueue::new(SLOTS), stock::raws(SLOTS)),
        |(queue, raws)| {
            for raw in raws {
                // A full queue would be seen when it is emptied.
                let _ = queue.push(raw);
            }
            queue
        },
        |queue| std::iter::from_fn(|| queue.pop()).collect(),
    );

    group.throughput(Throughput::Elements(SLOTS as u64));
    yardsticks::fetch_add(&mut group, 1);
    group.finish();
}

/// Times `fill` on what `make` made, then fills as often as in a sample again
/// and checks that `empty` finds `slots` numbers each time and none twice.
fn measure<Empty, Full>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    slots: usize,
    make: impl Fn() -> Empty,
    fill: impl Fn(Empty) -> Full,
    empty: impl Fn(Full) -> Vec<u64>,
) {
    let sample = Cell::new(0);
    group.throughput(Throughput::Elements(slots as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            sample.set(iterations);
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                let made = black_box(make());
                let start = Instant::now();
                let full = black_box(fill(made));
                time += start.elapsed();
                drop(full);
            }
            time
        });
    });

    let mut marks = Marks::default();
    for _ in 0..sample.get() {
        let raws = empty(fill(make()));
        assert_eq!(raws.len(), slots, "{name}: not full");
        for raw in raws {
            assert!(marks.mark(raw), "{name}: {raw:#x} came twice");
        }
    }
}

criterion_group! { name = benches; config = config(); targets = fill }
criterion_main!(benches);
