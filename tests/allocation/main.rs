//! P1: a take allocates nothing, and makes no system call unless the ring is dry.

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::time::Duration;

use ringflake::{CachedGenerator, Handle, Id, OnEmpty, TakeError, ThresholdFill};

use ringflake_kit::small::{cached, direct, layout};
use ringflake_kit::{eventually, short_or_long};

/// The system's allocator, counting what each thread asks of it. All else leads to these two.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more, and is none of a test.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, start: *mut u8, memory: Memory) {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(start, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// A ring that is filled again and again during 30,000 takes or more.
fn live_ring() -> CachedGenerator {
    let layout = layout(40, 8, 12);
    cached(layout, 0..64, 0..100)
        .capacity(1 << 14)
        .threshold_fill(ThresholdFill::percent(75))
        .build()
        .unwrap()
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(Box::new(1_u64))), 2);
    assert_eq!(allocations(|| drop(vec![0_u8; 100])), 2);
    let mut grown = vec![1_u8];
    assert!(allocations(|| grown.extend([1; 1000])) >= 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn p1_a_take_from_a_ring_allocates_nothing() {
    type Take = fn(&CachedGenerator, &mut Handle, &mut [Id]) -> Result<(), TakeError>;
    let ways: [(&str, Take); 3] = [
        ("one", |ids, _, _| ids.take().map(drop)),
        ("a batch", |ids, _, batch| ids.take_batch(batch).map(drop)),
        ("a handle", |_, handle, _| handle.take().map(drop)),
    ];
    let takes = short_or_long(30_000, 100_000);
    for (way, take) in ways {
        let ids = live_ring();
        let mut handle = ids.handle().unwrap();
        let mut batch = [Id::default(); 20];
        let taken =
            || (0..takes).for_each(|n| take(&ids, &mut handle, &mut batch[..n % 20]).unwrap());
        assert_eq!(allocations(taken), 0, "{way}");
        // The fill was requested; the producer may run later.
        eventually("there is a fill", || ids.stats().fills.threshold > 0);
    }
}

#[test]
fn p1_a_take_in_place_allocates_nothing() {
    let layout = layout(40, 8, 12);
    let ids = cached(layout, 0..64, 0..100)
        .capacity(1)
        .threshold_fill(None)
        .build()
        .unwrap();
    let mut batch = [Id::default(); 10];
    let taken = || {
        for _ in 0..10_000 {
            ids.take().unwrap();
            ids.take_batch(&mut batch).unwrap();
        }
    };
    assert_eq!(allocations(taken), 0);
    assert!(ids.stats().in_place > 100_000);
}

#[test]
fn p1_a_take_that_fails_allocates_nothing() {
    for answer in [
        OnEmpty::Generate,
        OnEmpty::Error,
        OnEmpty::Wait(Duration::from_micros(1)),
    ] {
        let layout = layout(40, 8, 1);
        let ids = cached(layout, 0..1, 0..9)
            .borrow_limit(Duration::ZERO)
            .capacity(2)
            .on_empty(answer)
            .build()
            .unwrap();
        ids.take_batch(&mut [Id::default(); 2]).unwrap();
        let mut handle = ids.handle().unwrap();
        let failed = || {
            for _ in 0..300 {
                assert!(ids.take().is_err() && handle.take().is_err());
            }
        };
        assert_eq!(allocations(failed), 0, "{answer:?}");
    }
}

#[test]
fn p1_a_direct_take_allocates_nothing() {
    let layout = layout(40, 8, 14);
    let ids = direct(layout, 0..64, 0..100).build().unwrap();
    let taken = || (0..100_000).for_each(|_| _ = ids.take().unwrap());
    assert_eq!(allocations(taken), 0);
}

/// No system call: the takes run in a process of their own, in a thread whose
/// system calls the kernel answers by ending the process.
#[cfg(target_os = "linux")]
mod system_calls {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::SeqCst;
    use std::{env, hint, thread};

    use super::*;
    use ringflake_kit::child::this_test;
    use ringflake_kit::seccomp::{NUMBER, end, install, load, skip};

    const CHILD: &str = "RINGFLAKE_TEST_CHILD";

    /// Runs this test again, as a child that finds its role in the environment.
    fn run_again(role: &str) -> ExitStatus {
        let child = this_test().env(CHILD, role).output();
        child.unwrap().status
    }

    /// From here on this thread may only end the process, and make the system
    /// calls in `allowed`.
    fn forbid_system_calls(allowed: &[libc::c_long]) {
        let mut program = vec![load(NUMBER)];
        for &number in [libc::SYS_exit_group].iter().chain(allowed) {
            program.extend([skip(number as u32, 1), end(libc::SECCOMP_RET_ALLOW)]);
        }
        program.push(end(libc::SECCOMP_RET_KILL_PROCESS));
        install(&mut program);
    }

    fn exit(good: bool) -> ! {
        // SAFETY: ends the process, and nothing else.
        unsafe { libc::_exit(if good { 0 } else { 1 }) }
    }

    fn take_without_system_calls(way: &str) -> ! {
        let layout = layout(40, 8, 12);
        let threshold = ThresholdFill::percent(if way == "crossing" { 50 } else { 1 });
        let ids = cached(layout, 0..64, 0..100)
            .capacity(1 << 16)
            .stripes(1)
            .threshold_fill(threshold)
            .on_empty(OnEmpty::Error)
            .build()
            .unwrap();
        if way == "contended" {
            take_in_two_threads(ids);
        }
        let mut handle = ids.handle().unwrap();
        let mut batch = [Id::default(); 60];
        // Waking a sleeping producer is one call, and the only one.
        let wake = [libc::SYS_futex];
        forbid_system_calls(if way == "crossing" { &wake } else { &[] });
        let good = match way {
            "take" | "crossing" => (0..60_000).all(|_| ids.take().is_ok()),
            "batch" => (0..1_000).all(|_| ids.take_batch(&mut batch) == Ok(60)),
            _ => (0..60_000).all(|_| handle.take().is_ok()),
        };
        exit(good)
    }

    /// Threads that get in each other's way still don't give up their slice.
    fn take_in_two_threads(ids: CachedGenerator) -> ! {
        static DONE: AtomicU32 = AtomicU32::new(0);
        for _ in 0..2 {
            let ids = ids.clone();
            thread::spawn(move || {
                forbid_system_calls(&[]);
                if !(0..30_000).all(|_| ids.take().is_ok()) {
                    exit(false);
                }
                DONE.fetch_add(1, SeqCst);
                // To return would be a system call.
                loop {
                    hint::spin_loop();
                }
            });
        }
        for _ in 0..20_000 {
            if DONE.load(SeqCst) == 2 {
                exit(true);
            }
            thread::sleep(Duration::from_millis(1));
        }
        exit(false)
    }

    #[test]
    fn p1_takes_make_no_system_call() {
        if let Ok(way) = env::var(CHILD) {
            take_without_system_calls(&way);
        }
        for way in ["take", "batch", "handle", "crossing", "contended"] {
            let status = run_again(way);
            assert!(status.success(), "{way}: {status}");
        }
    }

    #[test]
    fn a_dry_ring_is_what_takes_a_system_call() {
        // The other half of the promise: a wait sleeps. A filter that forbids nothing
        // would be noticed.
        if env::var(CHILD).is_ok() {
            let layout = layout(40, 8, 1);
            let ids = cached(layout, 0..1, 0..9)
                .borrow_limit(Duration::ZERO)
                .capacity(2)
                .on_empty(OnEmpty::Wait(Duration::from_millis(1)))
                .build()
                .unwrap();
            forbid_system_calls(&[]);
            exit((0..3).all(|_| ids.take().is_ok()));
        }
        assert_eq!(run_again("dry").signal(), Some(libc::SIGSYS));
    }
}
