//! The calendar clock of a server, in the hands of a test.
//!
//! libfaketime does this for many programs, but not for one whose allocator asks
//! for the time while it starts, as Debian's Redis. This needs nothing but a
//! C compiler, and works for every program that takes the time from libc.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use tempfile::TempDir;

use crate::printed;

/// The clock of a server that was started with [`preload`](Self::preload). It follows the
/// machine's clock until a test moves it; the monotonic clock is left alone.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: File,
    _directory: TempDir,
}

impl Clock {
    pub fn new() -> Self {
        let directory = crate::server::directory();
        // Where the server's own user can read it.
        let library = directory.path().join("libclock.so");
        fs::copy(shared_library(), &library).unwrap();
        let path = directory.path().join("clock");
        let file = File::create_new(&path).unwrap();
        let clock = Self {
            library,
            path,
            file,
            _directory: directory,
        };
        clock.run_ahead(0);
        clock
    }

    pub fn preload(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("RINGFLAKE_CLOCK_FILE", &self.path);
    }

    /// Runs with the machine's clock, ahead by this much; negative: behind.
    pub fn run_ahead(&self, milliseconds: i64) {
        let bytes = milliseconds.to_ne_bytes();
        self.file.write_all_at(&bytes, 0).unwrap();
    }
}

fn shared_library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

/// Leaves it beside the program, for those who come later: no server is to read it while
/// another process writes it.
fn build() -> PathBuf {
    const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/clock_shim.c");
    let program = env::current_exe().unwrap();
    let library = program.with_extension("clock.so");
    let is_newer = |than: &Path| modified(&library) > modified(than);
    if is_newer(&program) && is_newer(Path::new(SOURCE)) {
        return library;
    }
    let fresh = program.with_extension(format!("clock{}.so", std::process::id()));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut compile = Command::new(compiler);
    compile.args(["-shared", "-fPIC", "-O2", SOURCE, "-o"]);
    printed(compile.arg(&fresh));
    fs::rename(&fresh, &library).unwrap();
    library
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
