//! The wakers of futures that wait, oldest first.
//!
//! Such a list lies behind its owner's lock. A waker's `clone`, `wake` and `drop` are the
//! code of a runtime, which may take locks of its own, call back, or panic. So none of them
//! is called here but by [`wake`] and [`discard`], which are for when the lock is free.
//!
//! # Wakers that wake others
//!
//! A waker may poll its future in place, on the thread that wakes it. The future takes an ID,
//! and wakes the next one that waits. Were that one called from there, each that waits would
//! take its part of one stack. So a thread that wakes inside of a waker leaves its wakers to
//! the call of [`wake`] in which that one runs.
//!
//! *None is lost.* A thread's first call of `wake` enters an empty list, and takes it away
//! only when it finds it empty, without anything of others in between. Calls inside of it put
//! their wakers there and return. So each waker is called once those before it have returned.
//! None is called while the list is borrowed, and none unwinds out of the loop.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use crate::sync::thread_local;
use crate::unwind::catching;

/// Wakers of futures that wait. One that has waited for longer comes before the others, also
/// if it was woken in vain meanwhile.
///
/// Allocates for futures that wait, and holds one waker for each of them.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// How many tickets there were.
    tickets: u64,
    list: BTreeMap<u64, Waker>,
}

/// A future's place in the list, from its first entry until it leaves.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<u64>);

impl Ticket {
    /// Whether the future has been in the list: its waker may still be there.
    pub(crate) fn is_drawn(&self) -> bool {
        self.0.is_some()
    }
}

impl Wakers {
    /// Enters a future's waker, and returns the one that it replaces, to be
    /// [discarded](discard).
    #[must_use]
    pub(crate) fn enter(&mut self, ticket: &mut Ticket, waker: Waker) -> Option<Waker> {
        let number = *ticket.0.get_or_insert_with(|| {
            self.tickets += 1;
            self.tickets
        });
        self.list.insert(number, waker)
    }

    /// The future waits no more. Returns its waker, to be [discarded](discard), unless that
    /// was taken to be woken.
    #[must_use]
    pub(crate) fn leave(&mut self, ticket: &mut Ticket) -> Option<Waker> {
        self.list.remove(&ticket.0.take()?)
    }

    #[cfg(any(test, feature = "loom"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes out the waker of the future that has waited longest.
    pub(crate) fn take_oldest(&mut self) -> Option<Waker> {
        self.list.pop_first().map(|(_, waker)| waker)
    }

    /// Takes out all wakers.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.list).into_values()
    }
}

thread_local! {
    /// Wake-ups deferred by wakers running on this thread; `None` when none is running.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's has no const")]
    static LEFT: RefCell<Option<VecDeque<Waker>>> = RefCell::new(None);
}

/// Wakes them one after the other; a call from inside a waker defers them to that waker's
/// caller. A waker's panic is dropped: it concerns neither this thread nor the other wakers.
pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    let mut wakers = wakers.into_iter();
    // A thread that is ending has no list any more, and calls them from here.
    let is_inner = LEFT.try_with(|left| match &mut *left.borrow_mut() {
        Some(left) => {
            left.extend(wakers.by_ref());
            true
        }
        empty => {
            *empty = Some(VecDeque::new());
            false
        }
    });
    for waker in wakers {
        catching(|| waker.wake());
    }
    if let Ok(false) = is_inner {
        while let Some(waker) = next_left() {
            catching(|| waker.wake());
        }
    }
}

/// The next of those that were left to this thread; takes the list away if there is none.
fn next_left() -> Option<Waker> {
    let next = LEFT.try_with(|left| {
        let mut left = left.borrow_mut();
        let next = left.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            *left = None;
        }
        next
    });
    next.unwrap_or(None)
}

/// Drops a waker. A panic in that is dropped, too.
pub(crate) fn discard(waker: Option<Waker>) {
    catching(|| drop(waker));
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::task::Wake;

    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Arc, Mutex};

    use super::*;
    use ringflake_kit::waking::Counting;

    #[test]
    fn the_one_that_has_waited_longest_is_taken_first() {
        let all = [(); 3].map(|()| Counting::new());
        let woken = || all.each_ref().map(|it| it.woken());
        let mut list = Wakers::default();
        let mut tickets = [(); 3].map(|()| Ticket::default());
        for (ticket, counting) in tickets.iter_mut().zip(&all) {
            assert!(list.enter(ticket, counting.waker()).is_none());
        }
        assert!(!list.is_empty());
        // Woken in vain, it keeps its place.
        wake(list.take_oldest());
        assert!(list.enter(&mut tickets[0], all[0].waker()).is_none());
        wake(list.take_oldest());
        assert_eq!(woken(), [2, 0, 0]);
        discard(list.leave(&mut tickets[1]));
        wake(list.take_oldest());
        assert_eq!(woken(), [2, 0, 1]);
        assert!(list.is_empty());
    }

    #[test]
    fn a_waker_that_panics_when_dropped_harms_nobody() {
        struct Breaks;

        impl Wake for Breaks {
            fn wake(self: Arc<Self>) {}
        }

        impl Drop for Breaks {
            fn drop(&mut self) {
                panic!("a runtime breaks");
            }
        }

        let waker = Waker::from(Arc::new(Breaks));
        assert!(catch_unwind(|| discard(Some(waker))).is_ok());
    }

    /// The calls of wakers that have begun and not returned: now, and at most.
    #[derive(Debug, Default)]
    struct Depth(AtomicUsize, AtomicUsize);

    impl Depth {
        fn within(&self, work: impl FnOnce()) {
            let now = self.0.fetch_add(1, Relaxed) + 1;
            self.1.fetch_max(now, Relaxed);
            work();
            self.0.fetch_sub(1, Relaxed);
        }
    }

    #[test]
    fn wakers_that_wake_others_are_called_one_after_the_other() {
        let depth = Arc::new(Depth::default());
        let mut next = Vec::new();
        let mut all = Vec::new();
        for place in 0..100 {
            let (depth, inner) = (Arc::clone(&depth), Mutex::new(std::mem::take(&mut next)));
            let waker = Counting::and(move || {
                depth.within(|| {
                    let inner = std::mem::take(&mut *inner.lock().unwrap());
                    // Two calls of it, and one that wakes nobody.
                    wake(None);
                    inner.into_iter().for_each(|waker| wake(Some(waker)));
                    assert!(place != 50, "a runtime breaks");
                });
            });
            next = vec![waker.waker(), Counting::new().waker()];
            all.push(waker);
        }
        // What the one that panics leaves behind.
        let panicked = 1;
        wake(next);
        assert!(all.iter().all(|it| it.woken() == 1));
        assert_eq!(depth.0.load(Relaxed), panicked);
        assert_eq!(depth.1.load(Relaxed), 1 + panicked);
        // The list is gone, and the next call begins anew.
        let last = Counting::new();
        wake([last.waker()]);
        assert_eq!(last.woken(), 1);
    }
}
