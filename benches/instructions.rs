//! How many instructions does one ID take? Run under callgrind by
//! `benches/instructions.sh`, which subtracts two runs of different length.
//!
//! ```text
//! instructions OPERATION COUNT
//! ```

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use ringflake::{
    CachedGenerator, Cipher, DirectGenerator, Id, Layout, PaddingFill, RingBuffer, Secret,
    StaticLease,
};

/// IDs that are ready before anything is counted.
const READY: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` and `cargo test` pass options of their own.
    let [operation, count] = arguments.as_slice() else {
        println!("usage: instructions OPERATION COUNT; see benches/instructions.sh");
        return Ok(());
    };
    let Ok(count) = count.parse::<usize>() else {
        println!("usage: instructions OPERATION COUNT; see benches/instructions.sh");
        return Ok(());
    };
    assert!(count <= READY, "at most {READY} IDs are ready");
    let secret = Secret::from_bytes(*b"0123456789abcdef");
    let nodes = StaticLease::assume_unique(Layout::RANDFLAKE, 0..Layout::RANDFLAKE.nodes());
    let cached = |padding: PaddingFill, capacity: usize| {
        CachedGenerator::builder(Layout::RANDFLAKE)
            .secret(&secret)
            .lease(nodes.clone())
            .padding_fill(padding)
            .threshold_fill(None)
            .capacity(capacity)
            .borrow_limit(Duration::from_secs(3600))
            .build()
    };
    let mut batch = [Id::default(); 64];
    let mut run = [0; 64];
    match operation.as_str() {
        "ring_take" => {
            let ring = RingBuffer::with_capacity(READY)?;
            assert_eq!(ring.push_batch(&vec![Id::default(); READY]), READY);
            for _ in 0..count {
                black_box(ring.take());
            }
        }
        "take" => {
            let ids = cached(PaddingFill::BeforeFirstTake, READY)?;
            for _ in 0..count {
                black_box(ids.take()?);
            }
        }
        "batch_64" => {
            let ids = cached(PaddingFill::BeforeFirstTake, READY)?;
            for _ in 0..count / 64 {
                black_box(ids.take_batch(&mut batch)?);
            }
        }
        "handle_take" => {
            let mut handle = cached(PaddingFill::BeforeFirstTake, READY)?.handle()?;
            for _ in 0..count {
                black_box(handle.take()?);
            }
        }
        "in_place_64" => {
            let ids = cached(PaddingFill::Off, 1)?;
            for _ in 0..count / 64 {
                black_box(ids.take_batch(&mut batch)?);
            }
        }
        "direct_take" => {
            let ids = DirectGenerator::builder(Layout::RANDFLAKE)
                .secret(&secret)
                .lease(nodes)
                .build()?;
            for _ in 0..count {
                black_box(ids.take()?);
            }
        }
        "encrypt" => {
            let cipher = Cipher::sparx64(&secret);
            for raw in 0..count as u64 {
                black_box(cipher.encrypt(raw));
            }
        }
        "encrypt_run_64" => {
            let cipher = Cipher::sparx64(&secret);
            for first in (0..count as u64).step_by(64) {
                cipher.encrypt_run(black_box(first), &mut run);
                black_box(&run);
            }
        }
        "fill" => {
            let ring = RingBuffer::with_capacity(READY)?;
            let ids = vec![Id::default(); 1024];
            for _ in 0..count / 1024 {
                black_box(ring.push_batch(&ids));
            }
        }
        unknown => return Err(format!("no operation {unknown}").into()),
    }
    Ok(())
}
