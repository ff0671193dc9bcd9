//! Forks in the middle of takes by threads that change cores all the time, over stripes of
//! few slots: the child has copies of stripes that IDs are just moved between.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use ringflake::AssistFill;
use ringflake_kit::affinity::Cores;
use ringflake_kit::eventually;

use super::*;

const NODES: std::ops::Range<u64> = 0..4;
const TICKS: std::ops::Range<u64> = 0..100;

/// Counts a thread that ends, also by a panic.
struct Ended<'a>(&'a AtomicUsize);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Takes in every way until the lease ends, from another core each time.
fn take_all(ids: &CachedGenerator, oracle: &Oracle, cores: &Cores, thread: usize) {
    let mut batch = [Id::default(); 20];
    let mut handle = None;
    for take in thread.. {
        cores.go_to(take);
        let taken = match take % 8 {
            0..=2 => ids.take().map(|id| batch[0] = id).map(|()| 1),
            3 => ids.take_batch(&mut batch),
            // Dropping the handle puts its rest back.
            7 => {
                handle = None;
                continue;
            }
            _ => handle
                .get_or_insert_with(|| ids.handle().unwrap())
                .take()
                .map(|id| batch[0] = id)
                .map(|()| 1),
        };
        match taken {
            Ok(count) => {
                for &id in &batch[..count] {
                    oracle.mark(ids.inspect(id).unwrap()).unwrap();
                }
            }
            Err(TakeError::Refused(Refused::LeaseEnded { .. })) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn u1_r1_forks_while_threads_change_cores() {
    const THREADS: usize = 4;
    const FORKS: u64 = 20;
    let cores = Cores::of_this_thread();
    for (stripes, capacity, on_empty) in [
        (2, 4, OnEmpty::Generate),
        (8, 64, OnEmpty::Wait(Duration::from_secs(60))),
        (16, 512, OnEmpty::Generate),
        // With stocks of the cores.
        (4, 4096, OnEmpty::Generate),
    ] {
        let layout = layout(40, 8, 8);
        let cells = NODES.end * TICKS.end * layout.sequences();
        let oracle = Oracle::new(layout, NODES, TICKS);
        let ids = cached(layout, NODES, TICKS)
            .borrow_limit(HOUR)
            .stripes(stripes)
            .capacity(capacity)
            .assist_fill(AssistFill::below(100))
            .producers(2)
            .on_empty(on_empty)
            .build()
            .unwrap();
        let ended = AtomicUsize::new(0);
        let mut outcomes = Vec::new();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ids, oracle, cores, ended) = (&ids, &oracle, &cores, &ended);
                scope.spawn(move || {
                    let _counts = Ended(ended);
                    take_all(ids, oracle, cores, 11 * thread);
                });
            }
            // A stock of its own, which the child has a copy of.
            let mut handle = ids.handle().unwrap();
            for fork in 0..FORKS {
                // All the way through the lease.
                let wanted = fork * cells / (FORKS + 1);
                while oracle.marked() < wanted && ended.load(Relaxed) < THREADS {
                    thread::yield_now();
                }
                if let Ok(id) = handle.take() {
                    oracle.mark(ids.inspect(id).unwrap()).unwrap();
                }
                outcomes.push(checks_in_a_fork(|checks| {
                    for core in 0..cores.count().clamp(1, 16) {
                        cores.go_to(core);
                        check_cached(checks, &ids, &mut handle);
                    }
                }));
            }
        });
        outcomes.retain(|outcome| *outcome != Ok(0));
        assert_eq!(outcomes, [], "what the children found");
        eventually("the parent has lost none and got none twice", || {
            while let Ok(id) = ids.take() {
                oracle.mark(ids.inspect(id).unwrap()).unwrap();
            }
            let stats = ids.stats();
            assert_eq!(stats.issued, oracle.marked(), "{stats:?}");
            let all = stats.issued + stats.retired;
            assert!(all <= cells, "more than there are: {stats:?}");
            (all, stats.level + stats.in_stocks) == (cells, 0)
        });
    }
}
