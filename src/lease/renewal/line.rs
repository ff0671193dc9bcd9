//! Which courier a keeper comes to.
//!
//! ```text
//!   start --its key is known--> newcomer of that courier ----------.
//!     |                                                            v
//!     `--otherwise--> thread started, entered under its key --> rounds
//!                                                                  | nobody sits there,
//!                                 struck off, store closed <-------' nobody has come
//! ```
//! # Why it is right
//! *Nobody is forgotten.* A keeper comes to a courier under the lock of the lines, while
//! the courier is entered. The courier strikes itself off under the same lock, and only if
//! nobody has come; so who comes after that finds it no more, and starts another one. One
//! whose thread ends in another way, by a panic, strikes itself off all the same, and lets
//! go of those who have come: their builders are told.
//!
//! *A moment of two.* A courier that was struck off may still be closing its store while
//! the next one opens one. They serve different desks, so no lease is asked for by both.
//!
//! *A fork.* A child has lines of its own ([`PerProcess`]), and so never waits for a lock
//! of its parent's.
//!
//! Couriers without a key are entered nowhere, and nobody else comes to them. Nor does who
//! starts a keeper on a courier's own thread, from a clock, a store or a subscriber: it
//! waits there, and would not be served.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread, ThreadId};

use crossbeam_queue::SegQueue;

use super::super::{LeaseStore, StoreKey};
use super::courier::Courier;
use super::seat::Seat;
use crate::fork::PerProcess;
use crate::unwind::catching;

/// The way to a courier.
#[derive(Clone)]
pub(super) struct Line {
    post: Arc<Post>,
    thread: Thread,
}

/// Where a courier finds those who have come.
pub(super) struct Post {
    newcomers: SegQueue<Seat>,
    /// Those in which it is entered, if it is.
    lines: Option<&'static Lines>,
}

/// The couriers of a process that others may come to.
type Lines = Mutex<Vec<(StoreKey, Line)>>;

static LINES: PerProcess<Lines> = PerProcess::new();

thread_local! {
    /// Whether this thread is a courier.
    static ON_DUTY: Cell<bool> = const { Cell::new(false) };
}

impl Line {
    /// Brings a seat to the courier that has this store's key, or starts one with it.
    ///
    /// # Errors
    /// The operating system's, if it gives no thread or memory. The seat is dropped then.
    pub(super) fn of(store: Box<dyn LeaseStore>, seat: Seat) -> io::Result<Self> {
        let key = match ON_DUTY.get() {
            true => None,
            false => catching(|| store.key()).flatten(),
        };
        let Some(key) = key else {
            return Self::start(store, seat, None);
        };
        let lines: &'static Lines = LINES.get(|_| Ok(Mutex::default()))?;
        let mut entered = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, line)) = entered.iter().find(|(other, _)| *other == key) {
            let line = line.clone();
            line.post.newcomers.push(seat);
            drop(entered);
            line.wake();
            return Ok(line);
        }
        let line = Self::start(store, seat, Some(lines))?;
        entered.push((key, line.clone()));
        Ok(line)
    }

    fn start(
        store: Box<dyn LeaseStore>,
        seat: Seat,
        lines: Option<&'static Lines>,
    ) -> io::Result<Self> {
        let post = Arc::new(Post {
            newcomers: SegQueue::new(),
            lines,
        });
        post.newcomers.push(seat);
        let courier = Courier::new(Arc::clone(&post), store);
        let thread = thread::Builder::new()
            .name("ringflake-lease".to_owned())
            .spawn(move || courier.run())?;
        Ok(Self {
            post,
            thread: thread.thread().clone(),
        })
    }

    /// Has the courier look at its seats.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread.id()
    }
}

impl Post {
    /// Those who have come since the last call.
    pub(super) fn newcomers(&self) -> impl Iterator<Item = Seat> {
        std::iter::from_fn(|| self.newcomers.pop())
    }

    /// Strikes the courier off if nobody has come, and answers whether it did.
    pub(super) fn close(&self) -> bool {
        self.strike_off(SegQueue::is_empty)
    }

    /// Strikes the courier off when what is returned is dropped, whoever has come.
    pub(super) fn on_duty(&self) -> impl Drop {
        ON_DUTY.set(true);
        OnDuty(self)
    }

    fn strike_off(&self, may: impl FnOnce(&SegQueue<Seat>) -> bool) -> bool {
        let Some(lines) = self.lines else {
            return may(&self.newcomers);
        };
        let mut entered = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let may = may(&self.newcomers);
        if may {
            entered.retain(|(_, line)| !std::ptr::eq(&*line.post, self));
        }
        may
    }
}

struct OnDuty<'a>(&'a Post);

impl Drop for OnDuty<'_> {
    fn drop(&mut self) {
        self.0.strike_off(|_| true);
        self.0.newcomers().for_each(drop);
    }
}
