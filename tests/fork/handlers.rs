//! Signal handlers that fork in the middle of a take. The child goes on in that take, with the
//! parent's IDs in its registers and on its stack.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::{AtomicI32, AtomicUsize};

use ringflake_kit::short_or_long;

use super::*;

/// The child that the last handler forked, until the test has waited for it; 0 for none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Exit statuses of a child.
const GOT_NOTHING: i32 = 40;
const GOT_SOME: i32 = 41;

extern "C" fn fork_here(_: libc::c_int) {
    // SAFETY: the child calls nothing that allocates or locks before it exits.
    match unsafe { libc::fork() } {
        0 => {
            IS_CHILD.store(true, Release);
            // SAFETY: ends a child that hangs.
            unsafe { libc::alarm(20) };
        }
        // Negative if the fork failed, which fails the test.
        child => CHILD.store(child, Release),
    }
}

/// Forks again and again while this thread takes. Only the take that was interrupted may succeed
/// in a child.
fn fork_in_takes(mut take: impl FnMut() -> Result<Id, TakeError>) {
    /// One test at a time.
    static TURN: Mutex<()> = Mutex::new(());

    let _turn = TURN.lock().unwrap_or_else(|broken| broken.into_inner());
    // SAFETY: zeros are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = fork_here as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: no other test of this process uses the signal.
    let failed = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
    // SAFETY: has no arguments.
    let this = unsafe { libc::pthread_self() };
    let children = short_or_long(300, 3000);
    // How many signals this thread has asked for. It asks where it neither allocates nor frees:
    // `fork` would wait for a lock that this thread holds.
    let asked = AtomicUsize::new(0);
    let mut statuses = Vec::with_capacity(children);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=children {
                while asked.load(Acquire) < number {
                    thread::yield_now();
                }
                // SAFETY: the thread waits for the end of this scope.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
            }
        });
        while statuses.len() < children {
            asked.store(statuses.len() + 1, Release);
            _ = black_box(take());
            if IS_CHILD.load(Acquire) {
                let got_some = (0..300).any(|_| take().is_ok());
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(if got_some { GOT_SOME } else { GOT_NOTHING }) };
            }
            let child = CHILD.swap(0, AcqRel);
            if child > 0 {
                let mut status = 0;
                // SAFETY: waits for a child of ours.
                let waited = unsafe { libc::waitpid(child, &mut status, 0) };
                let exited = waited == child && libc::WIFEXITED(status);
                statuses.push((exited, libc::WEXITSTATUS(status)));
            } else if child < 0 {
                statuses.push((false, child));
            }
        }
    });
    statuses.retain(|status| *status != (true, GOT_NOTHING));
    assert_eq!(
        statuses,
        [],
        "children that got IDs, did not end, or were not made"
    );
}

fn endless() -> CachedGenerator {
    cached(layout(40, 8, 8), 0..8, 0..86_000)
        .borrow_limit(24 * HOUR)
        .build()
        .unwrap()
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_take_gets_nothing_more() {
    let ids = endless();
    fork_in_takes(|| ids.take());
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_take_of_a_handle_gets_nothing_more() {
    let ids = endless();
    let mut handle = ids.handle().unwrap();
    fork_in_takes(|| handle.take());
}
