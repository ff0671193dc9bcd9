//! Eight processes share one SQLite file, and no ID comes twice.
//!
//! The program starts itself eight times. Each copy leases a block of nodes from
//! the file, makes its IDs and hands them back; the first process compares them
//! all. Nothing but the file connects the eight.
//!
//! ```sh
//! cargo run --release --features sqlite --example many_processes
//! ```

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};

use ringflake::lease::{
    Fingerprint, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore,
};
use ringflake::{CachedGenerator, Clock, Id, Layout, Secret, SecretError, SystemClock};

const PROCESSES: usize = 8;
const IDS_A_PROCESS: usize = 250_000;
const LAYOUT: Layout = Layout::RANDFLAKE;
const NAMESPACE: &str = "orders";

fn main() -> Result<(), Box<dyn Error>> {
    match env::args_os().nth(1) {
        None => compare(),
        Some(file) => work(Path::new(&file)),
    }
}

/// All who share the file share the secret. A service keeps it in a file of its
/// own: `Secret::from_file`.
fn secret() -> Result<Secret, SecretError> {
    Secret::from_hex("000102030405060708090a0b0c0d0e0f")
}

/// One of the eight.
fn work(file: &Path) -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::new(file, &OpenOptions::new())?;
    let ids = CachedGenerator::builder(LAYOUT)
        .secret(secret()?)
        .lease_store(store)
        .namespace(NAMESPACE)
        .build()?;

    let mut batch = vec![Id::default(); IDS_A_PROCESS];
    let mut taken = 0;
    while taken < batch.len() {
        taken += ids.take_batch(&mut batch[taken..])?;
    }

    let leases: Vec<_> = ids.leases().iter().map(ToString::to_string).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "process {} held {}", process::id(), leases.join("; "))?;
    for id in batch {
        out.write_all(&id.to_u64().to_le_bytes())?;
    }
    // The generator is dropped here, which gives its block back to the store.
    Ok(out.flush()?)
}

/// The process that starts the others.
fn compare() -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?;
    // Beside the program: a system's temporary directory may lie in memory, which
    // a store refuses because it forgets.
    let beside = program.parent().unwrap_or(Path::new("."));
    let directory = tempfile::tempdir_in(beside)?;
    let file = directory.path().join("leases.db");

    // Once for all. `ringflake store init` does the same.
    let mut store = SqliteStore::new(&file, &OpenOptions::new())?;
    let space = Namespace::new(NAMESPACE, &LAYOUT, Fingerprint::of(&secret()?))?;
    store.init(&space, &Init::new(History::New, SystemClock.unix_ms()))?;

    // All at once, and none knows of the others.
    let start = |_| {
        let mut command = Command::new(&program);
        command.arg(&file).stdout(Stdio::piped()).spawn()
    };
    let children = (0..PROCESSES)
        .map(start)
        .collect::<io::Result<Vec<Child>>>()?;

    let mut all = Vec::with_capacity(PROCESSES * IDS_A_PROCESS);
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("a process ended with {}", output.status).into());
        }
        let line_end = output.stdout.iter().position(|&byte| byte == b'\n');
        let ids_begin = line_end.ok_or("a process said nothing")? + 1;
        let (line, ids) = output.stdout.split_at(ids_begin);
        print!("{}", String::from_utf8_lossy(line));
        let (ids, _) = ids.as_chunks::<8>();
        all.extend(ids.iter().map(|&bytes| u64::from_le_bytes(bytes)));
    }
    assert_eq!(all.len(), PROCESSES * IDS_A_PROCESS);

    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), PROCESSES * IDS_A_PROCESS, "an ID came twice");
    println!("{} IDs, all of them distinct", all.len());

    let blocks = store.list(&space)?.blocks;
    let released = blocks.iter().filter(|block| block.released).count();
    println!("{} blocks were leased, {released} given back", blocks.len());
    Ok(())
}
