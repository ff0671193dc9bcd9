//! Wakers that count, and futures that are polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it was woken, and does something each time.
pub struct Counting {
    woken: AtomicUsize,
    and_does: Box<dyn Fn() + Send + Sync>,
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, SeqCst);
        (self.and_does)();
    }
}

impl Counting {
    pub fn new() -> Arc<Self> {
        Self::and(|| {})
    }

    pub fn and(does: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicUsize::new(0),
            and_does: Box::new(does),
        })
    }

    pub fn woken(&self) -> usize {
        self.woken.load(SeqCst)
    }

    pub fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    pub fn held(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }

    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = self.waker();
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}
