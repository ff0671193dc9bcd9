//! A long answer: a body whose parts are made when the client has read those before.
//!
//! ```text
//!           its turn comes         a part is there        others had their turn
//! waiting -----------------> making ---------------> sent ---------------------> waiting
//!  | |  ^                      | |
//!  | |  +--- there is no ID ---+ +--> tail --> end
//!  | |       now
//!  | +---- takes again after a refusal that passes, within the deadline
//!  +----> broken: after any other; the body ends before its length
//! ```
//!
//! Only who makes a part has a place among long answers: who waits for IDs gives it back, and
//! waits for it again when they are there. The room of the part is kept, and goes with it.
//!
//! A broken body shows to the client: a binary one is shorter than its `Content-Length`, and
//! one of another shape lacks its last chunk in HTTP/1.1; in HTTP/2 the stream is reset.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use ringflake::{Id, TakeError};

use super::bulk::{Turn, Turns};
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

/// A turn, and a batch with so many IDs in it.
type Next = Result<(Turn, Batch, usize), TakeError>;

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
    turns: Arc<Turns>,
}

enum Stage {
    /// For a turn, perhaps after a take that waits for IDs or for a refusal to pass.
    Waiting(Pin<Box<dyn Future<Output = Next> + Send>>),
    /// With memory for a batch.
    Making(Turn, Batch),
    /// A part was sent just now.
    Sent,
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
    /// With its first IDs, so that an error there can still be the answer. The body has to be
    /// polled at once, since it has a place.
    pub(super) async fn begin(
        namespace: Arc<Namespace>,
        count: usize,
        writer: Writer,
        deadline: Instant,
        turns: Arc<Turns>,
        mut turn: Turn,
        counters: Arc<FrontCounters>,
    ) -> Result<Self, TakeError> {
        let mut batch = empty_batch();
        let taken = {
            let wanted = &mut batch[..count.min(BATCH)];
            let taking = namespace.generator.take_batch_async(wanted);
            let mut taking = pin!(tokio::time::timeout_at(deadline.into(), taking));
            match poll_fn(|cx| Poll::Ready(taking.as_mut().poll(cx))).await {
                Poll::Ready(taken) => taken,
                Poll::Pending => {
                    let room = turn.leave();
                    let taken = taking.await;
                    turn = turns.again(room).await.ok_or(TakeError::Empty)?;
                    taken
                }
            }
        };
        let taken = taken.unwrap_or(Err(TakeError::Empty))?;
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
            turns,
        };
        stream.add(&batch[..taken]);
        stream.stage = Stage::Making(turn, batch);
        Ok(stream)
    }

    /// Adds to the part.
    fn add(&mut self, ids: &[Id]) {
        self.writer.ids(ids, self.is_first, &mut self.part);
        self.is_first = false;
        self.left -= ids.len();
        add_shared(&self.counters.ids, ids.len() as u64);
    }

    /// Adds a batch to the part, or begins one.
    fn poll_make(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TakeError>> {
        let wanted = self.left.min(BATCH);
        // Ended, should a take panic.
        let (turn, batch, taken) = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Making(turn, mut batch) => {
                let generator = &self.namespace.generator;
                // In the first poll it takes what there is.
                let taken = pin!(generator.take_batch_async(&mut batch[..wanted])).poll(cx);
                match taken {
                    Poll::Ready(Ok(taken)) => (turn, batch, taken),
                    refused => {
                        let refused = match refused {
                            Poll::Ready(Err(error)) => Some(error),
                            _ => None,
                        };
                        let namespace = Arc::clone(&self.namespace);
                        let later = take_later(namespace, batch, wanted, refused, self.deadline);
                        let turns = Arc::clone(&self.turns);
                        let room = turn.leave();
                        self.stage = Stage::Waiting(Box::pin(async move {
                            let (batch, taken) = later.await?;
                            let turn = turns.again(room).await.ok_or(TakeError::Empty)?;
                            Ok((turn, batch, taken))
                        }));
                        return self.poll_make(cx);
                    }
                }
            }
            Stage::Waiting(mut waiting) => match waiting.as_mut().poll(cx) {
                Poll::Ready(next) => next?,
                Poll::Pending => {
                    self.stage = Stage::Waiting(waiting);
                    return Poll::Pending;
                }
            },
            Stage::Sent | Stage::Ended => return Poll::Ready(Ok(())),
        };
        // A part that has no room yet has no memory either.
        self.part
            .reserve(PART_BYTES - self.part.len().min(PART_BYTES));
        self.add(&batch[..taken]);
        self.stage = Stage::Making(turn, batch);
        Poll::Ready(Ok(()))
    }

    /// Whether another batch goes into the part.
    fn has_room(&self) -> bool {
        self.part.len() + BATCH * self.writer.most_bytes() <= PART_BYTES
    }
}

fn empty_batch() -> Batch {
    Box::new([Id::default(); BATCH])
}

/// The next turn, with memory for a batch.
async fn next_turn(turns: Arc<Turns>) -> Next {
    let turn = turns.next().await.ok_or(TakeError::Empty)?;
    Ok((turn, empty_batch(), 0))
}

/// Takes once `refused` has passed, and again until there are IDs, the reason does not pass
/// or the deadline comes.
async fn take_later(
    namespace: Arc<Namespace>,
    mut batch: Batch,
    wanted: usize,
    mut refused: Option<TakeError>,
    deadline: Instant,
) -> Result<(Batch, usize), TakeError> {
    loop {
        if let Some(error) = refused {
            let pause = error.retry_after().map(|wait| wait.max(SHORTEST_PAUSE));
            let again = pause.and_then(|pause| Instant::now().checked_add(pause));
            let Some(again) = again.filter(|again| *again < deadline) else {
                return Err(error);
            };
            tokio::time::sleep_until(again.into()).await;
        }
        let taking = namespace.generator.take_batch_async(&mut batch[..wanted]);
        refused = match tokio::time::timeout_at(deadline.into(), taking).await {
            Ok(Ok(taken)) => return Ok((batch, taken)),
            Ok(Err(error)) => Some(error),
            Err(_) => return Err(TakeError::Empty),
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
        match this.stage {
            Stage::Ended => return Poll::Ready(None),
            Stage::Sent => {
                // Everybody else comes first.
                this.stage = Stage::Waiting(Box::pin(next_turn(Arc::clone(&this.turns))));
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Stage::Making(..) | Stage::Waiting(_) => {}
        }
        while this.left > 0 && this.has_room() {
            if let Err(error) = ready!(this.poll_make(cx)) {
                this.stage = Stage::Ended;
                return Poll::Ready(Some(Err(Broken(error))));
            }
        }
        let stage = match this.left {
            0 => {
                this.part.extend_from_slice(this.writer.tail());
                Stage::Ended
            }
            _ => Stage::Sent,
        };
        let part = std::mem::take(&mut this.part);
        let part = match std::mem::replace(&mut this.stage, stage) {
            // Its place ends here, and its room when all of it has gone to the socket.
            Stage::Making(turn, _) => turn.leave().hold(part),
            Stage::Waiting(_) | Stage::Sent | Stage::Ended => part.into(),
        };
        Poll::Ready(Some(Ok(Frame::data(part))))
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

    /// Of a client with one place, and a generator of so many IDs at a time.
    fn stream_of(at_once: u64, count: usize, shape: Shape) -> IdStream {
        let layout = small::layout(20, 2, 10);
        let ticks = at_once.div_ceil(layout.sequences());
        let generator = CachedGenerator::builder(layout)
            .plain()
            .lease(small::lease(layout, 1..2, 0..2 * ticks))
            .clock(ringflake::ManualClock::new(layout.epoch_unix_ms()))
            .borrow_limit(Duration::from_secs(ticks))
            .build()
            .unwrap();
        let namespace = Arc::new(Namespace {
            name: "orders".to_owned(),
            generator,
        });
        let deadline = Instant::now() + Duration::from_secs(3600);
        let turns = Arc::new(Bulk::new(1).turns(Arc::new(Semaphore::new(1))));
        let format = Format::Fixed;
        let writer = Writer { shape, format };
        let counters = Arc::default();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        runtime.block_on(async {
            let turn = turns.next().await.unwrap();
            IdStream::begin(namespace, count, writer, deadline, turns, turn, counters)
                .await
                .unwrap()
        })
    }

    fn stream(count: usize, shape: Shape) -> IdStream {
        stream_of(1 << 17, count, shape)
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
        // None was taken that was not sent.
        assert_eq!(stream.namespace.generator.stats().issued, count as u64);
        assert_eq!(stream.counters.ids.load(Ordering::Relaxed), count as u64);
    }

    #[test]
    fn a_part_that_waits_for_ids_has_no_place() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let _in_runtime = runtime.enter();
        // Its first part has no end for now.
        let mut stream = stream_of(4 << 10, PART_BYTES, Shape::Binary);
        let turns = Arc::clone(&stream.turns);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(turns.next()).poll(&mut cx).is_pending(), "it has one");
        assert!(Pin::new(&mut stream).poll_frame(&mut cx).is_pending());
        assert!(pin!(turns.next()).poll(&mut cx).is_ready());
    }

    #[test]
    fn a_part_that_waits_for_its_client_has_no_place() {
        let mut stream = stream(PART_BYTES, Shape::Binary);
        let turns = Arc::clone(&stream.turns);
        let mut cx = Context::from_waker(Waker::noop());
        let part = Pin::new(&mut stream).poll_frame(&mut cx);
        assert!(part.is_ready());
        assert!(pin!(turns.next()).poll(&mut cx).is_ready());
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
