//! How many IDs should a fill make and publish at once?
//!
//! A fill encrypts a block of IDs and publishes it. Publishing costs the same
//! few atomic operations for any block, so larger ones spread it thinner, until
//! block and ring lines no longer fit the first cache. Prints nanoseconds per ID,
//! the median of several rounds, and checks that each ID came out once.

use std::time::{Duration, Instant};

use ringflake::{Cipher, Id, RingBuffer, Secret};

const SLOTS: usize = 1 << 16;
const ROUNDS: usize = 15;
const FILLS: usize = 32;

fn main() {
    // Without `cargo bench` it is only seen to work.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let (rounds, fills) = if measured { (ROUNDS, FILLS) } else { (1, 1) };
    println!("| block | ns/ID |");
    println!("|---|---|");
    for block in (4..=13).map(|bits| 1 << bits) {
        let cost = median((0..rounds).map(|_| fill(block, fills)));
        println!("| {block} | {cost:.2} |");
    }
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Fills, with the ring emptied between, outside of what is timed.
fn fill(block: usize, fills: usize) -> f64 {
    let cipher = Cipher::sparx64(&Secret::from_bytes([7; 16]));
    let ring = ring();
    let mut scratch = Scratch::new(block);
    let mut out = vec![Id::default(); SLOTS];
    let mut time = Duration::ZERO;
    for fill in 0..fills {
        let first = (fill * SLOTS) as u64;
        let started = Instant::now();
        for run in (0..SLOTS).step_by(block) {
            push(&cipher, &ring, first + run as u64, &mut scratch);
        }
        time += started.elapsed();
        assert_eq!(ring.take_batch(&mut out), SLOTS);
        check(&cipher, &out, first);
    }
    time.as_nanos() as f64 / (fills * SLOTS) as f64
}

fn ring() -> RingBuffer {
    RingBuffer::with_capacity(SLOTS).expect("a power of two")
}

/// A block on its way into the ring.
struct Scratch {
    raw: Vec<u64>,
    ids: Vec<Id>,
}

impl Scratch {
    fn new(block: usize) -> Self {
        Self {
            raw: vec![0; block],
            ids: vec![Id::default(); block],
        }
    }
}

/// Encrypts one block and publishes it.
fn push(cipher: &Cipher, ring: &RingBuffer, first: u64, scratch: &mut Scratch) {
    cipher.encrypt_run(first, &mut scratch.raw);
    for (id, raw) in scratch.ids.iter_mut().zip(&scratch.raw) {
        *id = Id::from_u64(*raw);
    }
    assert_eq!(ring.push_batch(&scratch.ids), scratch.ids.len());
}

/// One producer keeps the order, so each ID has its place.
fn check(cipher: &Cipher, taken: &[Id], first: u64) {
    for (id, raw) in taken.iter().zip(first..) {
        assert_eq!(cipher.decrypt(id.to_u64()), raw);
    }
}
