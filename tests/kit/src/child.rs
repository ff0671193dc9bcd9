//! Children of `fork(2)`, and what they find.
//!
//! The child of a process with many threads may do little. What it found is the
//! status that it exits with.

use std::env;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::events::registering;
use crate::printed;

/// Runs the test that calls it again, in a process without other tests. Returns true there, and
/// false where that process has passed.
///
/// For children that start threads. The standard library of Rust 1.95 locks a list of threads
/// while one starts or ends, as tests do. A child that is forked meanwhile has a copy of the lock
/// that nobody unlocks, and its first thread waits for it.
pub fn is_alone() -> bool {
    const ALONE: &str = "RINGFLAKE_TEST_IS_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    passes(this_test().env(ALONE, "1"));
    false
}

/// The test that calls this, in another process without other tests.
pub fn this_test() -> Command {
    // The thread of a test has its name.
    let test = thread::current().name().unwrap().to_owned();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([&*test, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// Asserts that this process of a test passes.
#[track_caller]
pub fn passes(test: &mut Command) {
    let printed = printed(test);
    assert!(printed.contains("1 passed"), "{test:?}: {printed}");
}

/// Runs `child` in a fork of this process and gives the status it exits with.
pub fn in_a_fork(child: impl FnOnce() -> u8) -> Result<u8, String> {
    let lock = registering();
    // SAFETY: the child runs `child` and exits. It takes no lock that another
    // thread of the parent could have held, as far as the tests can tell: to
    // find that out, and see a child hang, is what they are for.
    let pid = unsafe { libc::fork() };
    drop(lock);
    match pid {
        -1 => Err(io::Error::last_os_error().to_string()),
        0 => {
            let status = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            // SAFETY: ends the child without running what the parent has
            // registered for its own end.
            unsafe { libc::_exit(i32::from(status)) }
        }
        pid => wait_for(pid),
    }
}

pub const PANICKED: u8 = 255;

pub fn wait_for(pid: libc::pid_t) -> Result<u8, String> {
    // Longer than `eventually` waits, which a child may call.
    let deadline = Instant::now() + Duration::from_secs(90);
    let mut status = 0;
    loop {
        // SAFETY: `status` is a local variable, and only this function waits for the child.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => thread::sleep(Duration::from_micros(200)),
            0 => {
                // SAFETY: the process is our child, and not waited for yet.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                // SAFETY: as above.
                unsafe { libc::waitpid(pid, &raw mut status, 0) };
                return Err("the child hung".to_owned());
            }
            waited if waited == pid && libc::WIFEXITED(status) => {
                return Ok(libc::WEXITSTATUS(status) as u8);
            }
            waited if waited == pid => {
                return Err(format!(
                    "the child died by signal {}",
                    libc::WTERMSIG(status)
                ));
            }
            _ => return Err(io::Error::last_os_error().to_string()),
        }
    }
}

/// Runs `child` in a fork of this process, and gives the number of the first check that fails
/// there; 0 if all hold.
pub fn checks_in_a_fork(child: impl FnOnce(&mut Checks)) -> Result<u8, String> {
    in_a_fork(|| {
        let mut checks = Checks {
            number: 0,
            failed: 0,
        };
        child(&mut checks);
        checks.failed
    })
}

pub struct Checks {
    number: u8,
    failed: u8,
}

impl Checks {
    pub fn check(&mut self, holds: bool) {
        self.number += 1;
        if !holds && self.failed == 0 {
            self.failed = self.number;
        }
    }
}
