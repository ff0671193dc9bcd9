//! Places for long answers.
//!
//! A long answer keeps a core busy for as long as its client reads. There are a few places,
//! and a client has no more than half of them, so that nobody who comes alone waits for
//! somebody who came in numbers. Both queues are first in, first out: a client waits in its
//! own first, and takes one place in the common one at a time for each of its own.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of all clients.
#[derive(Debug)]
pub(super) struct Bulk(Arc<Semaphore>);

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_client: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Bulk {
    /// Places of one client, where threads are so many.
    pub(super) fn of_one(workers: usize) -> usize {
        workers
    }

    pub(super) fn new(workers: usize) -> Self {
        Self(Arc::new(Semaphore::new(2 * Self::of_one(workers))))
    }

    /// A place; none if there was none until then.
    pub(super) async fn enter(&self, of_client: &Arc<Semaphore>, until: Instant) -> Option<Place> {
        let enter = async {
            // Neither is ever closed.
            let of_client = Arc::clone(of_client).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.0).acquire_owned().await.ok()?;
            Some(Place {
                _of_client: of_client,
                _of_all: of_all,
            })
        };
        let entered = tokio::time::timeout_at(until.into(), enter).await;
        entered.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;

    /// The first poll of each that waits, in order.
    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_client_in_numbers_leaves_a_place_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let _in_runtime = runtime.enter();
        let (bulk, until) = (Bulk::new(1), Instant::now() + Duration::from_secs(3600));
        let client = || Arc::new(Semaphore::new(Bulk::of_one(1)));
        let (many, one, two) = (client(), client(), client());

        let mut first = pin!(bulk.enter(&many, until));
        let Poll::Ready(Some(first)) = poll(first.as_mut()) else {
            panic!("all places are free");
        };
        let mut second = pin!(bulk.enter(&many, until));
        assert!(poll(second.as_mut()).is_pending(), "it has its half");
        let mut other = pin!(bulk.enter(&one, until));
        let Poll::Ready(Some(other)) = poll(other.as_mut()) else {
            panic!("the other half is free, whoever waits");
        };
        let mut third = pin!(bulk.enter(&two, until));
        assert!(poll(third.as_mut()).is_pending(), "all are taken");

        // Who came alone is before the second of who came in numbers.
        drop(first);
        assert!(poll(second.as_mut()).is_pending());
        let Poll::Ready(Some(third)) = poll(third.as_mut()) else {
            panic!("a place is free");
        };
        drop(other);
        assert!(matches!(poll(second.as_mut()), Poll::Ready(Some(_))));
        drop(third);
    }

    #[test]
    fn a_wait_for_a_place_has_an_end() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let client = Arc::new(Semaphore::new(0));
        let place = runtime.block_on(Bulk::new(1).enter(&client, Instant::now()));
        assert!(place.is_none());
    }
}
