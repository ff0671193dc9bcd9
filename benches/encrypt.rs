//! What does it cost to encrypt a block, one at a time and in runs?
//!
//! `encrypt/scalar` is the reference, called block by block; the other rows are
//! `encrypt_run` on each backend that this processor has. Each fills the same
//! buffer, small enough to stay in the first cache. The rows of `positive` are the
//! same for positive IDs, which take two encryptions on average. Before a row is
//! timed, its IDs are checked against the reference and for uniqueness.

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ringflake::{Backend, BackendUnavailable, Cipher, Secret};

/// Blocks in a run: what a timeline claims at least, what a fill mints at once, and a long one.
const RUNS: [usize; 3] = [64, 1024, 4096];

/// The first raw of the runs: aligned as claimed runs are, and not near the
/// end of a section.
const FIRST: u64 = 0x1234_5678_9abc_1000;

fn encrypt(criterion: &mut Criterion) {
    let secret = Secret::from_bytes(*b"0123456789abcdef");
    let wide = |backend| Cipher::with_backend(&secret, backend);
    measure_all(criterion, "encrypt", &Cipher::sparx64(&secret), wide);
    let positive = |backend| Cipher::positive_with_backend(&secret, backend);
    measure_all(criterion, "positive", &Cipher::positive(&secret), positive);
}

fn measure_all(
    criterion: &mut Criterion,
    name: &str,
    reference: &Cipher,
    on: impl Fn(Backend) -> Result<Cipher, BackendUnavailable>,
) {
    let mut group = criterion.benchmark_group(name);
    for length in RUNS {
        group.throughput(Throughput::Elements(length as u64));
        measure(&mut group, "scalar", reference, length, |first, out| {
            for (id, raw) in out.iter_mut().zip(first..) {
                *id = reference.encrypt(raw);
            }
        });
        for backend in Backend::available() {
            let Ok(cipher) = on(backend) else {
                continue;
            };
            let name = backend.to_string();
            measure(&mut group, &name, reference, length, |first, out| {
                cipher.encrypt_run(first, out);
            });
        }
    }
    group.finish();
}

fn measure(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    reference: &Cipher,
    length: usize,
    fill: impl Fn(u64, &mut [u64]),
) {
    let mut out = vec![0; length];
    fill(FIRST, &mut out);
    for (&id, raw) in out.iter().zip(FIRST..) {
        assert_eq!(id, reference.encrypt(raw), "{name}: raw {raw:#x}");
    }
    let distinct: HashSet<u64> = out.iter().copied().collect();
    assert_eq!(distinct.len(), length, "{name}: duplicates");

    group.bench_function(BenchmarkId::new(name, length), |bencher| {
        bencher.iter(|| fill(black_box(FIRST), black_box(&mut out)));
    });
}

/// IDs of 53 bits, which another cipher makes one by one.
#[cfg(feature = "js-safe")]
fn js_safe(criterion: &mut Criterion) {
    /// Below 2^53.
    const FIRST: u64 = 0x0012_3456_789a_b000;
    let cipher = Cipher::js_safe(&Secret::from_bytes(*b"0123456789abcdef"));
    let mut group = criterion.benchmark_group("encrypt");
    for length in RUNS {
        let mut out = vec![0; length];
        cipher.encrypt_run(FIRST, &mut out);
        let distinct: HashSet<u64> = out.iter().copied().collect();
        assert_eq!(distinct.len(), length, "duplicates");
        assert!(out.iter().all(|id| id >> 53 == 0));
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::new("js_safe", length), |bencher| {
            bencher.iter(|| cipher.encrypt_run(black_box(FIRST), black_box(&mut out)));
        });
    }
    group.finish();
}

#[cfg(not(feature = "js-safe"))]
fn js_safe(_: &mut Criterion) {}

criterion_group!(benches, encrypt, js_safe);
criterion_main!(benches);
