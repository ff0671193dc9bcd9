//! Signal handlers that fork in the middle of a take. The child goes on in that take, with the
//! parent's IDs in its registers and on its stack.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize};

use ringflake_kit::{EndsWhenDropped, short_or_long};

use super::*;

/// The child that the last handler forked, until the test has waited for it; 0 for none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Whether another thread of the parent is to take, while the handler waits for that.
static RIVAL_TAKES: AtomicBool = AtomicBool::new(false);

/// For so long a handler waits for the other thread's take.
const RIVAL_HAS: Duration = Duration::from_millis(1);

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
        child => {
            CHILD.store(child, Release);
            RIVAL_TAKES.store(true, Release);
            // It may wait for a lock that this thread holds, and on a busy machine each
            // yield takes as long as the turns of all others.
            let begun = Instant::now();
            while RIVAL_TAKES.load(Acquire) && begun.elapsed() < RIVAL_HAS {
                // SAFETY: has no arguments.
                unsafe { libc::sched_yield() };
            }
        }
    }
}

/// A word that a child shares with its parent.
fn shared_word() -> &'static AtomicU64 {
    // SAFETY: fresh memory, which stays mapped.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<AtomicU64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: a page is aligned for it, and zero is one of its values.
    unsafe { &*page.cast::<AtomicU64>() }
}

/// Forks again and again while this thread takes. Only the take that was interrupted may succeed
/// in a child, and only with the ID that it gives in the parent, where `rival` takes right after
/// the fork.
fn fork_in_takes<E, T>(mut take: impl FnMut() -> Result<Id, E>, rival: impl Fn() -> T + Sync) {
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
    let is_over = AtomicBool::new(false);
    let in_the_child = shared_word();
    // The first one may allocate.
    assert!(take().is_ok());
    let mut bad = Vec::with_capacity(children);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while !is_over.load(Acquire) {
                if asked.load(Acquire) > sent {
                    sent += 1;
                    // SAFETY: the thread waits for the end of this scope.
                    unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                }
                thread::yield_now();
            }
        });
        scope.spawn(|| {
            while !is_over.load(Acquire) {
                if RIVAL_TAKES.load(Acquire) {
                    let _ = rival();
                    RIVAL_TAKES.store(false, Release);
                }
                thread::yield_now();
            }
        });
        // Also if a take panics.
        let _ends = EndsWhenDropped(&is_over);
        for number in 1..=children {
            // Else a child could inherit a lock that it holds.
            while RIVAL_TAKES.load(Acquire) {
                thread::yield_now();
            }
            asked.store(number, Release);
            let child = loop {
                let taken = black_box(take()).map_or(0, Id::to_u64);
                if IS_CHILD.load(Acquire) {
                    in_the_child.store(taken, Release);
                    let got_some = (0..300).any(|_| take().is_ok());
                    // SAFETY: ends the child without running anything of the parent's.
                    unsafe { libc::_exit(if got_some { GOT_SOME } else { GOT_NOTHING }) };
                }
                let child = CHILD.swap(0, AcqRel);
                if child < 0 {
                    break (false, child, true);
                }
                if child > 0 {
                    let mut status = 0;
                    // SAFETY: waits for a child of ours.
                    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
                    let exited = waited == child && libc::WIFEXITED(status);
                    let theirs = in_the_child.swap(0, AcqRel);
                    let is_same = theirs == 0 || theirs == taken;
                    break (exited, libc::WEXITSTATUS(status), is_same);
                }
            };
            if child != (true, GOT_NOTHING, true) {
                bad.push(child);
            }
        }
    });
    assert_eq!(
        bad,
        [],
        "children: have they ended, with what status, and with no ID of another take"
    );
    assert!(take().is_ok(), "there were too few IDs");
}

fn endless() -> CachedGenerator {
    cached(layout(30, 8, 20), 0..8, 0..86_000)
        .borrow_limit(24 * HOUR)
        .build()
        .unwrap()
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_take_gets_nothing_more() {
    let ids = endless();
    fork_in_takes(|| ids.take(), || ids.take());
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_batch_gets_nothing_more() {
    let ids = endless();
    let mut batch = [Id::default(); 70];
    fork_in_takes(
        || ids.take_batch(&mut batch).map(|count| batch[count - 1]),
        || ids.take(),
    );
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_take_of_a_handle_gets_nothing_more() {
    let ids = endless();
    let mut handle = ids.handle().unwrap();
    fork_in_takes(|| handle.take(), || ids.take());
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_direct_take_gets_nothing_more() {
    let at_most_ahead = 24 * HOUR;
    let ids = direct(layout(30, 8, 20), 8..12, 0..86_000)
        .clock_policy(ClockPolicy::Logical { at_most_ahead })
        .build()
        .unwrap();
    fork_in_takes(|| ids.take(), || ids.take());
}

#[test]
fn u1_a_child_that_a_handler_forks_in_a_take_of_the_past_gets_nothing_more() {
    let layout = layout(34, 4, 26);
    let lease = StaticLease::assume_unique_past(layout, 0..16, 0..10);
    let past = BackfillGenerator::builder(layout)
        .plain()
        .lease(lease.unwrap());
    let ids = past.build().unwrap();
    let moment = UNIX_EPOCH + Duration::from_millis(layout.tick_start_unix_ms(3));
    fork_in_takes(|| ids.take_at(moment), || ids.take_at(moment));
}
