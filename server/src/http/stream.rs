//! A long answer: a body whose parts are made when the client has read those before.
//!
//! ```text
//!         a part is there          it is left to others
//! taking ---------------> sending ---------------------> taking ... -> tail -> end
//!   |  ^
//!   |  +-- after a refusal that passes, within the deadline
//!   +----> broken: after any other; the body ends before its length
//! ```
//!
//! A broken body shows to the client: a binary one is shorter than its `Content-Length`, and
//! one of another shape lacks its last chunk in HTTP/1.1; in HTTP/2 the stream is reset.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use ringflake::{Id, TakeError};

use super::bulk::Place;
use super::format::Writer;
use super::negotiate::Shape;
use crate::front::{FrontCounters, add_shared};
use crate::namespaces::Namespace;

/// Bytes of a part, about: large enough for few turns and calls, small enough for a cache.
const PART_BYTES: usize = 64 << 10;

/// IDs that are taken at a time.
const BATCH: usize = 1024;

/// The shortest pause after a refusal.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// The memory of a batch.
type Batch = Box<[Id; BATCH]>;

/// A batch with so many IDs in it, or the reason why there is none.
type Taken = (Batch, Result<usize, TakeError>);

/// The body of a long answer.
pub(super) struct IdStream {
    namespace: Arc<Namespace>,
    writer: Writer,
    /// IDs that are not taken yet.
    left: usize,
    stage: Stage,
    /// A part that is not whole yet.
    part: Vec<u8>,
    is_first: bool,
    deadline: Instant,
    counters: Arc<FrontCounters>,
    _place: Place,
}

enum Stage {
    /// With room for a batch.
    Taking(Batch),
    /// A take that waits for IDs, or for a refusal to pass.
    Waiting(Pin<Box<dyn Future<Output = Taken> + Send>>),
    /// A part was sent just now.
    Sent(Batch),
    Ended,
}

/// The answer ended early.
#[derive(Debug)]
pub(super) struct Broken(TakeError);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer ended early: {}", self.0)
    }
}

impl std::error::Error for Broken {}

impl IdStream {
    /// With its first IDs, so that an error there can still be the answer.
    pub(super) async fn begin(
        namespace: Arc<Namespace>,
        count: usize,
        writer: Writer,
        deadline: Instant,
        place: Place,
        counters: Arc<FrontCounters>,
    ) -> Result<Self, TakeError> {
        let mut batch = Box::new([Id::default(); BATCH]);
        let wanted = &mut batch[..count.min(BATCH)];
        let taking = namespace.generator.take_batch_async(wanted);
        let taken = match tokio::time::timeout_at(deadline.into(), taking).await {
            Ok(taken) => taken?,
            Err(_) => return Err(TakeError::Empty),
        };
        let mut part = Vec::with_capacity(PART_BYTES);
        writer.head(&namespace.name, &mut part);
        let mut stream = Self {
            namespace,
            writer,
            left: count,
            stage: Stage::Ended,
            part,
            is_first: true,
            deadline,
            counters,
            _place: place,
        };
        stream.add(&batch[..taken]);
        stream.stage = Stage::Taking(batch);
        Ok(stream)
    }

    /// Adds to the part.
    fn add(&mut self, ids: &[Id]) {
        self.writer.ids(ids, self.is_first, &mut self.part);
        self.is_first = false;
        self.left -= ids.len();
        add_shared(&self.counters.ids, ids.len() as u64);
    }

    /// Adds a batch to the part.
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TakeError>> {
        let wanted = self.left.min(BATCH);
        // Ended, should a take panic.
        let (batch, taken) = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Taking(mut batch) | Stage::Sent(mut batch) => {
                let generator = &self.namespace.generator;
                // In the first poll it takes what there is.
                let taken = pin!(generator.take_batch_async(&mut batch[..wanted])).poll(cx);
                match taken {
                    Poll::Ready(Ok(taken)) => (batch, Ok(taken)),
                    refused => {
                        let refused = match refused {
                            Poll::Ready(Err(error)) => Some(error),
                            _ => None,
                        };
                        let namespace = Arc::clone(&self.namespace);
                        let later = take_later(namespace, batch, wanted, refused, self.deadline);
                        self.stage = Stage::Waiting(Box::pin(later));
                        return self.poll_take(cx);
                    }
                }
            }
            Stage::Waiting(mut waiting) => match waiting.as_mut().poll(cx) {
                Poll::Ready(taken) => taken,
                Poll::Pending => {
                    self.stage = Stage::Waiting(waiting);
                    return Poll::Pending;
                }
            },
            Stage::Ended => return Poll::Ready(Ok(())),
        };
        let taken = taken?;
        self.add(&batch[..taken]);
        self.stage = Stage::Taking(batch);
        Poll::Ready(Ok(()))
    }

    /// Whether another batch goes into the part.
    fn has_room(&self) -> bool {
        self.part.len() + BATCH * self.writer.most_bytes() <= PART_BYTES
    }
}

/// Takes once `refused` has passed, and again until there are IDs, the reason does not pass
/// or the deadline comes.
async fn take_later(
    namespace: Arc<Namespace>,
    mut batch: Batch,
    wanted: usize,
    mut refused: Option<TakeError>,
    deadline: Instant,
) -> Taken {
    loop {
        if let Some(error) = refused {
            let pause = error.retry_after().map(|wait| wait.max(SHORTEST_PAUSE));
            let again = pause.and_then(|pause| Instant::now().checked_add(pause));
            let Some(again) = again.filter(|again| *again < deadline) else {
                return (batch, Err(error));
            };
            tokio::time::sleep_until(again.into()).await;
        }
        let taking = namespace.generator.take_batch_async(&mut batch[..wanted]);
        refused = match tokio::time::timeout_at(deadline.into(), taking).await {
            Ok(Ok(taken)) => return (batch, Ok(taken)),
            Ok(Err(error)) => Some(error),
            Err(_) => return (batch, Err(TakeError::Empty)),
        };
    }
}

impl Body for IdStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        match std::mem::replace(&mut this.stage, Stage::Ended) {
            Stage::Ended => return Poll::Ready(None),
            Stage::Sent(batch) => {
                // Everybody else comes first.
                this.stage = Stage::Taking(batch);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            stage => this.stage = stage,
        }
        while this.left > 0 && this.has_room() {
            if let Err(error) = ready!(this.poll_take(cx)) {
                this.stage = Stage::Ended;
                return Poll::Ready(Some(Err(Broken(error))));
            }
        }
        if this.left == 0 {
            this.part.extend_from_slice(this.writer.tail());
            this.stage = Stage::Ended;
        } else if let Stage::Taking(batch) = std::mem::replace(&mut this.stage, Stage::Ended) {
            this.stage = Stage::Sent(batch);
        }
        let part = std::mem::replace(&mut this.part, Vec::with_capacity(PART_BYTES));
        Poll::Ready(Some(Ok(Frame::data(part.into()))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match self.writer.shape {
            Shape::Binary => SizeHint::with_exact(
                (self.part.len() + self.left * self.writer.most_bytes()) as u64,
            ),
            Shape::Json | Shape::Text => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use ringflake::CachedGenerator;
    use ringflake_kit::small;
    use tokio::sync::Semaphore;

    use super::super::bulk::Bulk;
    use super::super::format::Format;
    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stream(count: usize, shape: Shape) -> IdStream {
        let layout = small::layout(20, 2, 17);
        let generator = CachedGenerator::builder(layout)
            .plain()
            .lease(small::lease(layout, 0..4, 0..10))
            .clock(ringflake::ManualClock::new(layout.epoch_unix_ms()))
            .build()
            .unwrap();
        let namespace = Arc::new(Namespace {
            name: "orders".to_owned(),
            generator,
        });
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        runtime.block_on(async {
            let deadline = Instant::now() + Duration::from_secs(3600);
            let one = Arc::new(Semaphore::new(1));
            let place = Bulk::new(1).enter(&one, deadline).await.unwrap();
            let format = Format::Fixed;
            let writer = Writer { shape, format };
            let counters = Arc::default();
            let begin = IdStream::begin(namespace, count, writer, deadline, place, counters);
            begin.await.unwrap()
        })
    }

    #[test]
    fn each_part_is_a_turn_of_its_own() {
        let count = 5 * (PART_BYTES / 8) + 1;
        let mut stream = stream(count, Shape::Binary);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let (mut bytes, mut turns) = (0, 0);
        loop {
            assert_eq!(stream.size_hint().exact(), Some((8 * count - bytes) as u64));
            match Pin::new(&mut stream).poll_frame(&mut cx) {
                Poll::Ready(Some(frame)) => {
                    let part = frame.unwrap().into_data().unwrap();
                    assert!(part.len() <= PART_BYTES);
                    bytes += part.len();
                    turns += 1;
                }
                Poll::Ready(None) => break,
                Poll::Pending => {
                    // Others are served now, and it goes on behind them.
                    assert_eq!(woken.0.load(Ordering::Relaxed), turns);
                    assert_eq!(bytes, turns * PART_BYTES, "after every whole part");
                }
            }
        }
        assert_eq!((bytes, turns), (8 * count, 6));
        assert_eq!(woken.0.load(Ordering::Relaxed), 5);
        assert!(stream.is_end_stream());
    }

    #[test]
    fn the_size_of_text_is_not_known_before() {
        for shape in [Shape::Json, Shape::Text] {
            let stream = stream(2000, shape);
            assert_eq!(stream.size_hint().exact(), None);
            assert!(!stream.is_end_stream());
        }
    }
}
