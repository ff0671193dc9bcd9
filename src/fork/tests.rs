use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn a_value_is_kept_and_printed() {
    let mut one = WipeOnFork::new(41_u64).unwrap();
    *one += 1;
    assert_eq!(*one, 42);

    let many = WipeOnFork::new(array::from_fn::<_, 1000, _>(|i| i as u64)).unwrap();
    assert!(many.iter().copied().eq(0..1000));
    assert_eq!(format!("{one:?}"), "WipeOnFork(42)");
}

#[test]
fn is_shared_and_sent_as_its_value_is() {
    fn assert_both<T: Send + Sync>() {}
    fn assert_send<T: Send>() {}
    assert_both::<WipeOnFork<[AtomicU64; 2]>>();
    assert_send::<WipeOnFork<Cell<u64>>>();
}

#[cfg(all(unix, not(miri)))]
mod forking {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use ringflake_kit::child;

    use super::super::pages::Method;
    use super::super::registry;
    use super::*;

    /// What `see` finds in a child.
    ///
    /// The test process has many threads, so `see` must do what a signal
    /// handler may do: read memory, fork again, nothing that locks, allocates
    /// or panics.
    fn in_child(see: impl FnOnce() -> bool) -> bool {
        match child::in_a_fork(|| u8::from(see())) {
            Ok(seen @ (0 | 1)) => seen == 1,
            other => panic!("{other:?}"),
        }
    }

    fn one(method: Method, value: u64) -> WipeOnFork<CachePadded<AtomicU64>> {
        let value = CachePadded::new(AtomicU64::new(value));
        WipeOnFork::new_in(|layout| Region::map_by(method, layout), value).unwrap()
    }

    fn many<const LEN: usize>(method: Method) -> WipeOnFork<[AtomicU64; LEN]> {
        let values = array::from_fn(|i| AtomicU64::new(i as u64 + 1));
        WipeOnFork::new_in(|layout| Region::map_by(method, layout), values).unwrap()
    }

    fn methods() -> &'static [Method] {
        if cfg!(target_os = "linux") {
            &[Method::Mark, Method::Handler]
        } else {
            &[Method::Handler]
        }
    }

    /// Shows that the tests below would notice memory that is not wiped.
    #[test]
    fn a_child_keeps_plain_memory() {
        let plain = Box::new(AtomicU64::new(7));
        assert!(in_child(|| plain.load(Ordering::Relaxed) == 7));
    }

    #[test]
    fn a_child_reads_zero_and_the_parent_its_value() {
        for &method in methods() {
            let value = one(method, u64::MAX);
            assert!(
                in_child(|| value.load(Ordering::Relaxed) == 0),
                "{method:?}"
            );
            assert_eq!(value.load(Ordering::Relaxed), u64::MAX, "{method:?}");
        }
    }

    #[test]
    fn the_method_chosen_by_default_wipes() {
        let value = WipeOnFork::new(AtomicU64::new(7)).unwrap();
        assert!(in_child(|| value.load(Ordering::Relaxed) == 0));
        assert_eq!(value.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn a_static_is_made_once_a_process_and_anew_in_a_child() {
        static NUMBER: PerProcess<usize> = PerProcess::new();
        let get = || NUMBER.get(|parent| Ok(parent.map_or(1, |number| number + 1)));
        let number = get().unwrap();
        assert_eq!(**number, 1);
        assert!(std::ptr::eq(number, get().unwrap()));

        assert!(!number.is_inherited());
        assert!(in_child(|| number.is_inherited()));
        // It makes its own. `fork` of glibc leaves the allocator usable.
        #[cfg(target_env = "gnu")]
        assert!(in_child(|| get().is_ok_and(|number| **number == 2)));
        assert_eq!(**get().unwrap(), 1);
    }

    #[test]
    fn every_page_is_wiped() {
        // Three pages and a bit, also where pages are 16 KiB.
        const LEN: usize = 3 * 2048 + 5;
        for &method in methods() {
            let values = many::<LEN>(method);
            let all_zero = || values.iter().all(|v| v.load(Ordering::Relaxed) == 0);
            assert!(in_child(all_zero), "{method:?}");
            let kept = |(i, v): (usize, &AtomicU64)| v.load(Ordering::Relaxed) == i as u64 + 1;
            assert!(values.iter().enumerate().all(kept), "{method:?}");
        }
    }

    #[test]
    fn a_child_can_use_the_memory_and_its_own_child_reads_zero() {
        for &method in methods() {
            let value = one(method, 7);
            let seen = in_child(|| {
                value.store(8, Ordering::Relaxed);
                in_child(|| value.load(Ordering::Relaxed) == 0)
                    && value.load(Ordering::Relaxed) == 8
            });
            assert!(seen, "{method:?}");
            assert_eq!(value.load(Ordering::Relaxed), 7, "{method:?}");
        }
    }

    #[test]
    fn entries_are_used_again() {
        for round in 0..200 {
            let values: Vec<_> = (0..8)
                .map(|i| one(Method::Handler, round + i + 1))
                .collect();
            drop(values);
        }
        let values: Vec<_> = (0..8).map(|i| one(Method::Handler, i + 1)).collect();
        assert!(in_child(|| values
            .iter()
            .all(|v| v.load(Ordering::Relaxed) == 0)));
        for (i, value) in values.iter().enumerate() {
            assert_eq!(value.load(Ordering::Relaxed), i as u64 + 1);
        }
        // Other tests have a few live at the same time. Without reuse there
        // would be more than 1600.
        assert!(registry::len() < 200, "{} nodes", registry::len());
    }

    /// A child whose registry named pages that were gone would be killed while
    /// it wipes them. More threads than cores, so that some are stopped at
    /// every point of `new` and of `drop` when the process forks.
    #[test]
    fn forks_while_other_threads_create_and_drop() {
        const FORKS: usize = 150;
        let stop = AtomicBool::new(false);
        let value = one(Method::Handler, 7);
        thread::scope(|scope| {
            for pages in 1..=8 {
                let stop = &stop;
                // Different sizes, so that a gap is not filled at once by the
                // next thread's region. Bare regions, since values would only
                // take time to write.
                let layout = Layout::from_size_align(pages * 4096, 8).unwrap();
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        Region::map_by(Method::Handler, layout).unwrap();
                    }
                });
            }
            let wiped = (0..FORKS)
                .map(|_| child::in_a_fork(|| u8::from(value.load(Ordering::Relaxed) == 0)))
                .filter(|wiped| *wiped == Ok(1))
                .count();
            // Before anything that could panic: the scope waits for the threads.
            stop.store(true, Ordering::Relaxed);
            assert_eq!(wiped, FORKS);
        });
        assert_eq!(value.load(Ordering::Relaxed), 7);
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use ringflake_kit::seccomp::{self, Answer};

        use super::*;

        /// 16 GiB of address space, of which no page is touched.
        #[test]
        fn dropped_pages_leave_the_address_space() {
            const BYTES: usize = 256 << 20;
            let mapped = || {
                let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
                let pages: usize = sizes.split(' ').next().unwrap().parse().unwrap();
                pages * 4096
            };
            let before = mapped();
            for &method in methods() {
                for _ in 0..32 {
                    let layout = Layout::from_size_align(BYTES, 8).unwrap();
                    let region = Region::map_by(method, layout).unwrap();
                    assert_eq!(region.start().as_ptr().align_offset(4096), 0);
                }
            }
            // Other tests have their own memory at the same time.
            assert!(mapped() < before + 8 * BYTES, "{} before", before);
        }

        /// The kernel's mark is what is taken where it can be had: it holds
        /// where the C library doesn't know of the fork.
        #[test]
        fn a_raw_clone_is_wiped_by_the_mark() {
            let value = WipeOnFork::new(AtomicU64::new(7)).unwrap();
            // SAFETY: without `CLONE_VM` this is a fork; the child only reads
            // memory and exits.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            if child == 0 {
                let wiped = value.load(Ordering::Relaxed) == 0;
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(wiped.into()) };
            }
            assert_eq!(child::wait_for(child as libc::pid_t), Ok(1));
            assert_eq!(value.load(Ordering::Relaxed), 7);
        }

        /// As on a kernel that doesn't know the mark.
        #[test]
        fn the_handler_steps_in_where_the_mark_is_refused() {
            on_thread_with(&[(libc::MADV_WIPEONFORK, libc::EINVAL)], || {
                let error = WipeOnFork::new_in(|l| Region::map_by(Method::Mark, l), 7_u64);
                assert_eq!(error.unwrap_err().kind(), io::ErrorKind::Unsupported);
                wiped_by_default();
            });
        }

        /// As under an emulator that answers "done" to any advice.
        #[test]
        fn the_handler_steps_in_where_the_mark_is_a_lie() {
            on_thread_with(&[(libc::MADV_WIPEONFORK, 0), (-1, 0)], wiped_by_default);
        }

        /// Other errors are the caller's to know: the handler would be a weaker
        /// promise than the system at hand can keep.
        #[test]
        fn other_refusals_are_errors() {
            on_thread_with(&[(libc::MADV_WIPEONFORK, libc::ENOMEM)], || {
                let error = WipeOnFork::new(7_u64).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
            });
        }

        fn wiped_by_default() {
            let value = WipeOnFork::new(AtomicU64::new(7)).unwrap();
            assert!(in_child(|| value.load(Ordering::Relaxed) == 0));
            assert_eq!(value.load(Ordering::Relaxed), 7);
        }

        /// Runs `test` on a thread of its own, and so also in its children, with
        /// a `madvise` that answers each of these advices with this error
        /// without doing anything; 0 is success.
        fn on_thread_with(answers: &[(libc::c_int, libc::c_int)], test: fn()) {
            let answer = |&(value, error)| Answer { value, error };
            let answers: Vec<Answer> = answers.iter().map(answer).collect();
            thread::scope(|scope| {
                scope.spawn(|| {
                    seccomp::answer(libc::SYS_madvise, 2, &answers);
                    test();
                });
            });
        }
    }
}
