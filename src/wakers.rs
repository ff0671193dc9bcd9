//! The wakers of futures that wait, oldest first.
//!
//! Such a list lies behind its owner's lock. A waker's `clone`, `wake` and `drop` are the
//! code of a runtime, which may take locks of its own, call back, or panic. So none of them
//! is called here but by [`wake`] and [`discard`], which are for when the lock is free.

use std::collections::BTreeMap;
use std::task::Waker;

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

    /// Whether there is none.
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

/// Wakes them, one after the other. A panic of one is dropped: it is no matter of the
/// thread that wakes, nor of the others.
pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        catching(|| waker.wake());
    }
}

/// Drops a waker. A panic in that is dropped, too.
pub(crate) fn discard(waker: Option<Waker>) {
    catching(|| drop(waker));
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Arc;
    use std::task::Wake;

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
    fn a_future_has_one_waker_however_often_it_is_polled() {
        let [old, new] = [Counting::new(), Counting::new()];
        let mut list = Wakers::default();
        let mut ticket = Ticket::default();
        assert!(!ticket.is_drawn());
        assert!(list.enter(&mut ticket, old.waker()).is_none());
        for _ in 0..10 {
            let replaced = list.enter(&mut ticket, new.waker());
            assert!(replaced.is_some());
            discard(replaced);
        }
        assert!(ticket.is_drawn());
        assert_eq!((old.held(), new.held()), (0, 1));
        wake(list.take_all());
        assert_eq!((old.woken(), new.woken()), (0, 1));
        assert!(list.leave(&mut ticket).is_none());
        assert!(!ticket.is_drawn());
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

    #[test]
    fn a_waker_that_panics_keeps_nobody_from_being_woken() {
        let breaks = Counting::and(|| panic!("a runtime breaks"));
        let other = Counting::new();
        wake([breaks.waker(), other.waker()]);
        assert_eq!((breaks.woken(), other.woken()), (1, 1));
    }
}
