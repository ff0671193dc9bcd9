//! A queue that another thread keeps filling.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

use crossbeam_queue::ArrayQueue;

/// A queue with a thread that pushes a count into it.
pub(crate) struct LiveQueue {
    queue: Arc<ArrayQueue<u64>>,
    stop: Arc<AtomicBool>,
    producer: Option<JoinHandle<()>>,
}

impl LiveQueue {
    pub(crate) fn new() -> Self {
        let queue = Arc::new(ArrayQueue::new(1 << 16));
        let stop = Arc::new(AtomicBool::new(false));
        let producer = {
            let (queue, stop) = (Arc::clone(&queue), Arc::clone(&stop));
            thread::spawn(move || {
                let mut next = 0;
                // Relaxed: a wish to end, which carries nothing.
                while !stop.load(Relaxed) {
                    match queue.push(next) {
                        Ok(()) => next += 1,
                        Err(_) => spin_loop(),
                    }
                }
            })
        };
        Self {
            queue,
            stop,
            producer: Some(producer),
        }
    }

    /// The next number, as soon as there is one.
    #[inline]
    pub(crate) fn pop(&self) -> u64 {
        loop {
            match self.queue.pop() {
                Some(number) => return number,
                None => spin_loop(),
            }
        }
    }
}

impl Drop for LiveQueue {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(producer) = self.producer.take() {
            producer.join().expect("the producer panicked");
        }
    }
}
