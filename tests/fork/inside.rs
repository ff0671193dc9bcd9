//! A fork in the middle of a take, made by the user's own code: a clock, a hook, or
//! a subscriber of `tracing`.
//!
//! The child goes on with the take that it was forked in, takes again, and tells
//! through a pipe every ID that it got. It must have got none.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use ringflake::{Clock, Id, ManualClock, OnEmpty, Refused, TakeError, ThresholdFill};
use tracing::Event;

use crate::HOUR;
use ringflake_kit::child::wait_for;
use ringflake_kit::events::{OnEvent, with_subscriber};
#[cfg(target_os = "linux")]
use ringflake_kit::eventually;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{POLICIES, Watched, cached, clock_at, direct, layout};
use ringflake_kit::tricky_clock::in_producer;

/// Forks the thread that made it, once, at one of its turns.
#[derive(Debug)]
pub(crate) struct Forker {
    thread: ThreadId,
    /// Turns that are left before it forks; negative if it does not.
    left: AtomicI64,
    /// The writing end of the pipe, in the child.
    child: AtomicI64,
    /// In the parent, what the child reported.
    report: Mutex<Option<Report>>,
}

/// What a child reports: the status that it exited with, and the IDs that it got.
pub(crate) type Report = (Result<u8, String>, Vec<u64>);

pub(crate) const NOTHING: Report = (Ok(0), Vec::new());

/// The status of a child that was refused with anything but `Forked`.
const OTHER_REFUSAL: u8 = 7;

impl Forker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current().id(),
            left: AtomicI64::new(-1),
            child: AtomicI64::new(-1),
            report: Mutex::new(None),
        })
    }

    pub(crate) fn turn(&self) {
        if thread::current().id() != self.thread || self.left.load(Relaxed) < 0 {
            return;
        }
        if self.left.fetch_sub(1, Relaxed) > 0 {
            return;
        }
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two that are written.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child goes on with the take, writes to the pipe and exits.
        match unsafe { libc::fork() } {
            0 => self.child.store(ends[1].into(), Relaxed),
            pid => {
                // SAFETY: the descriptor is ours, and closed once.
                unsafe { libc::close(ends[1]) };
                // SAFETY: as above; the file closes it.
                let mut pipe = unsafe { File::from_raw_fd(ends[0]) };
                let status = wait_for(pid);
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).unwrap();
                let (ids, _) = bytes.as_chunks();
                let ids = ids.iter().map(|&id| u64::from_ne_bytes(id));
                *self.report.lock().unwrap() = Some((status, ids.collect()));
            }
        }
    }

    /// Calls `take`, which gives what it put into the slice or its refusal, with a
    /// fork at turn `at` of it. None if it has not so many turns.
    pub(crate) fn report(
        &self,
        at: i64,
        mut take: impl FnMut(&mut [Id]) -> Result<usize, Option<Refused>>,
        mut issued: impl FnMut(Id),
    ) -> Option<Report> {
        let mut ids = [Id::default(); 40];
        self.left.store(at, Relaxed);
        let mut outcome = take(&mut ids);
        let pipe = self.child.load(Relaxed);
        if pipe < 0 {
            self.left.store(-1, Relaxed);
            let count = outcome.unwrap_or(0);
            ids[..count].iter().for_each(|&id| issued(id));
            return self.report.lock().unwrap().take();
        }
        let mut status = 0;
        for _ in 0..100 {
            match outcome {
                Ok(count) => ids[..count].iter().for_each(|id| {
                    let bytes = id.to_u64().to_ne_bytes();
                    // SAFETY: the bytes are ours, and the descriptor is the pipe's.
                    let written = unsafe { libc::write(pipe as i32, bytes.as_ptr().cast(), 8) };
                    assert_eq!(written, 8);
                }),
                Err(Some(Refused::Forked)) => {}
                Err(_) => status = OTHER_REFUSAL,
            }
            outcome = take(&mut ids);
        }
        // SAFETY: ends the child, which is all it has left to do.
        unsafe { libc::_exit(status.into()) }
    }
}

fn forking(clock: ManualClock, forker: Arc<Forker>) -> impl Clock {
    Watched(clock, move || forker.turn())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Whose {
    Clock,
    Hook,
    Subscriber,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    One,
    Batch,
    /// As many as were asked for, or none.
    All,
    Handle,
}

pub(crate) fn refusal(error: TakeError) -> Option<Refused> {
    match error {
        TakeError::Refused(refused) => Some(refused),
        _ => None,
    }
}

/// Forks at each turn of each way to take, from a ring with four IDs and from one
/// with none. Returns how often.
fn forks_of_cached(whose: Whose) -> usize {
    // The other one's never forks.
    let of = |forker: &Arc<Forker>, one| match one == whose {
        true => Arc::clone(forker),
        false => Forker::new(),
    };
    let mut forks = 0;
    for answer in [
        OnEmpty::Generate,
        OnEmpty::Error,
        OnEmpty::Wait(Duration::from_millis(5)),
    ] {
        // How much may be borrowed, and how many IDs the ring has left.
        for (way, limit, left) in [
            (Way::One, HOUR, 0),
            (Way::One, Duration::ZERO, 0),
            (Way::Batch, HOUR, 4),
            (Way::Batch, Duration::ZERO, 4),
            (Way::Batch, Duration::ZERO, 0),
            (Way::All, HOUR, 4),
            (Way::All, Duration::ZERO, 4),
            (Way::Handle, HOUR, 3),
            (Way::Handle, HOUR, 0),
            (Way::Handle, Duration::ZERO, 3),
            (Way::Handle, Duration::ZERO, 0),
        ] {
            for at in 0.. {
                let layout = layout(52, 8, 2);
                let forker = Forker::new();
                let hooks = of(&forker, Whose::Hook);
                // Four IDs a tick, of which the ring holds as many.
                let ids = cached(layout, 0..1, 0..400)
                    .clock(forking(clock_at(layout, 0), of(&forker, Whose::Clock)))
                    .borrow_limit(limit)
                    .capacity(4)
                    .on_empty(answer)
                    .on_empty_hook(move |_| hooks.turn())
                    .build()
                    .unwrap();
                let oracle = Oracle::new(layout, 0..1, 0..400);
                let mark = |id: Id| oracle.mark(ids.inspect(id).unwrap()).unwrap();
                let mut handle = ids.handle().unwrap();
                for _ in left..4 {
                    mark(ids.take().unwrap());
                }
                let take = |out: &mut [Id]| {
                    let taken = match way {
                        Way::One => ids.take().map(|id| out[0] = id).map(|()| 1),
                        Way::Batch => ids.take_batch(&mut out[..9]),
                        Way::All => ids.take_vec(9).map(|all| {
                            out[..9].copy_from_slice(&all);
                            9
                        }),
                        Way::Handle => handle.take().map(|id| out[0] = id).map(|()| 1),
                    };
                    taken.map_err(refusal)
                };
                let subscribed = of(&forker, Whose::Subscriber);
                let subscriber = OnEvent(move |event: &Event<'_>| {
                    if event.metadata().target() == "ringflake" {
                        subscribed.turn();
                    }
                });
                let report = || forker.report(at, take, mark);
                let report = with_subscriber(subscriber, report);
                let Some(report) = report else {
                    break;
                };
                forks += 1;
                let case = format!("{answer:?}, {way:?}, {limit:?}, {left} left, turn {at}");
                assert_eq!(report, NOTHING, "U1: the child's, {case}");
                // The parent goes on, and has each ID once.
                for _ in 0..9 {
                    ids.take().into_iter().for_each(mark);
                }
            }
        }
    }
    forks
}

#[test]
fn u1_a_callback_that_forks_in_a_take_gives_the_child_nothing() {
    // A producer may come before those takes that may borrow, and then the hook has no turn.
    for (whose, least) in [
        (Whose::Clock, 20),
        (Whose::Hook, 12),
        (Whose::Subscriber, 20),
    ] {
        let forks = forks_of_cached(whose);
        assert!(forks >= least, "{whose:?}: only {forks} forks");
    }
}

/// The threads of this process that have not ended.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
#[cfg(target_os = "linux")]
fn r3_a_fork_inside_a_build_leaves_no_producer_at_work() {
    let layout = layout(52, 8, 2);
    // How many forks there were in a fill.
    let mut forks = 0;
    for at in 0.. {
        let forker = Forker::new();
        let clock = forking(clock_at(layout, 0), Arc::clone(&forker));
        forker.left.store(at, Relaxed);
        let built = cached(layout, 0..1, 0..400)
            .clock(clock)
            .borrow_limit(HOUR)
            .capacity(4)
            .on_empty(OnEmpty::Error)
            .build();
        if forker.child.load(Relaxed) >= 0 {
            let is_parents = match built {
                Ok(ids) => ids.take() == Err(TakeError::Refused(Refused::Forked)),
                Err(_) => true,
            };
            if is_parents {
                // A producer that the child has started ends.
                eventually("they end", || threads() == 1);
            }
            // SAFETY: ends the child, which is all it has left to do.
            unsafe { libc::_exit((!is_parents).into()) }
        }
        let Some(report) = forker.report.lock().unwrap().take() else {
            break;
        };
        match report.0 {
            Ok(0) => forks += 1,
            // Forked before there was anything to inherit.
            Ok(1) => assert_eq!(forks, 0, "turn {at}"),
            failed => panic!("turn {at}: {failed:?}"),
        }
    }
    assert!(forks >= 2, "only {forks} forks");
}

#[test]
fn r3_a_child_that_a_clock_forks_in_a_producer_ends_at_once() {
    let layout = layout(52, 8, 2);
    let (child, forked) = mpsc::channel();
    let child = Mutex::new(Some(child));
    let fork = move || {
        if !in_producer() {
            return;
        }
        let Some(child) = child.lock().unwrap().take() else {
            return;
        };
        // SAFETY: the child goes on with the fill, and ends with this thread, its only one.
        match unsafe { libc::fork() } {
            0 => std::mem::forget(child),
            pid => child.send(pid).unwrap(),
        }
    };
    let ids = cached(layout, 0..1, 0..400)
        .clock(Watched(clock_at(layout, 0), fork))
        .borrow_limit(HOUR)
        .capacity(4)
        .threshold_fill(ThresholdFill::percent(100))
        .build()
        .unwrap();
    assert!(ids.take().is_ok());
    let pid = forked.recv_timeout(Duration::from_secs(60)).unwrap();
    let began = Instant::now();
    assert_eq!(wait_for(pid), Ok(0));
    // A producer that is refused for good pauses for a minute.
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(ids.take().is_ok());
}

#[test]
fn u1_a_clock_that_forks_in_a_direct_take_gives_the_child_nothing() {
    let mut forks = 0;
    for policy in POLICIES {
        // As many IDs as a take wants, fewer, and with a clock set back.
        for (sequence_bits, want, back) in [
            (8, 1, 0),
            (8, 40, 0),
            (2, 40, 0),
            (2, 1, 1),
            (2, 40, 1),
            (2, 9, 0),
        ] {
            for at in 0.. {
                let layout = layout(54 - sequence_bits, 8, sequence_bits);
                let forker = Forker::new();
                let clock = clock_at(layout, 5);
                let ids = direct(layout, 8..12, 3..400)
                    .clock(forking(clock.clone(), Arc::clone(&forker)))
                    .clock_policy(policy)
                    .build()
                    .unwrap();
                let oracle = Oracle::new(layout, 8..12, 3..400);
                let mark = |id: Id| oracle.mark(ids.inspect(id).unwrap()).unwrap();
                mark(ids.take().unwrap());
                clock.step_back(Duration::from_secs(back));
                let take = |out: &mut [Id]| {
                    let taken = match want {
                        1 => ids.take().map(|id| out[0] = id).map(|()| 1),
                        9 => ids.take_array::<9>().map(|all| {
                            out[..9].copy_from_slice(&all);
                            9
                        }),
                        _ => ids.take_batch(&mut out[..want]),
                    };
                    taken.map_err(refusal)
                };
                let Some(report) = forker.report(at, take, mark) else {
                    break;
                };
                forks += 1;
                let case = format!("{policy:?}, {want} of {sequence_bits} bits, back {back}");
                assert_eq!(report, NOTHING, "U1: the child's, {case}, turn {at}");
                for _ in 0..9 {
                    ids.take().into_iter().for_each(mark);
                }
            }
        }
    }
    assert!(forks >= 40, "only {forks} forks");
}
