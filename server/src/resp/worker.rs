//! A thread with an event loop, and the connections that are its own.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::accept::Acceptor;
use super::connection::{Connection, Phase, Scratch, Wants};
use super::desk::{Desk, OpenFailure};
use super::inbox::{Accepted, Inbox, Message};
use super::looks::{LOOK, Looks};
use super::opener::Order;
use super::session::Session;
use crate::clients::Clients;
use crate::drain::Drain;
use crate::front::{FrontCounters, add};
use crate::limits::{LEAST_BYTES_PER_SECOND, Limits};

/// The tokens of everything that is no connection.
pub(super) const WAKER: Token = Token(usize::MAX);
pub(super) const LISTENERS: usize = usize::MAX / 2;

/// What deadlines are counted in.
const TICK: Duration = Duration::from_millis(50);

/// How long a connection is kept for a client that has all replies and does not close.
const LINGER: Duration = Duration::from_millis(500);

/// Sockets that the event loop reports at once.
const EVENTS: usize = 256;

pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) poll: Poll,
    pub(super) acceptor: Option<Acceptor>,
    pub(super) inboxes: Arc<[Inbox]>,
    pub(super) orders: Sender<Order>,
    pub(super) clients: Arc<Clients>,
    pub(super) drain: Drain,
    /// All connections are to be closed as they are.
    pub(super) aborts: Arc<AtomicBool>,
    pub(super) counters: Arc<FrontCounters>,
    pub(super) desk: Desk,
    pub(super) limits: Limits,
}

/// The connections, and when each has waited long enough.
#[derive(Default)]
struct Slots {
    connections: Vec<Option<Box<Connection>>>,
    /// In ticks. Beside the connections, as all of them are looked through.
    deadlines: Vec<u32>,
    /// Those of `connections` that are empty.
    free: Vec<usize>,
    /// No deadline is earlier.
    due: u32,
    /// Those whose turn it is, each once.
    queue: VecDeque<usize>,
}

const NEVER: u32 = u32::MAX;

struct Loop {
    worker: Worker,
    slots: Slots,
    scratch: Scratch,
    looks: Looks,
    drains: bool,
    /// No connection comes any more from the worker that accepts them.
    has_all: bool,
    /// Which worker the next connection is for.
    next: usize,
    started: Instant,
    now: u32,
    request_ticks: u32,
    idle_ticks: u32,
}

impl Worker {
    /// Serves until the server drains and all clients have gone.
    pub(super) fn run(self) {
        let limits = &self.limits;
        let this = Loop {
            scratch: Scratch::new(limits.request_bytes),
            request_ticks: ticks(limits.request_time),
            idle_ticks: ticks(limits.idle_time),
            worker: self,
            slots: Slots {
                due: NEVER,
                ..Slots::default()
            },
            looks: Looks::default(),
            drains: false,
            has_all: false,
            next: 0,
            started: Instant::now(),
            now: 0,
        };
        if let Err(error) = this.run() {
            tracing::error!(%error, "an event loop has ended");
        }
    }
}

fn ticks(time: Duration) -> u32 {
    let ticks = time.as_millis().div_ceil(TICK.as_millis());
    // Some six years at most.
    u32::try_from(ticks).unwrap_or(NEVER).min(NEVER / 2)
}

/// As long as a client may need to read so many bytes.
fn reading_ticks(bytes: usize) -> u32 {
    ticks(Duration::from_secs(bytes as u64 / LEAST_BYTES_PER_SECOND))
}

impl Loop {
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let timeout = self.timeout();
            if timeout == Some(Duration::ZERO) || !self.looks.is_due() || !self.look(&mut events)? {
                self.poll(&mut events, timeout)?;
            }
            self.now = (self.started.elapsed().as_millis() / TICK.as_millis()) as u32;
            for event in &events {
                match event.token() {
                    WAKER => self.read_inbox(),
                    Token(token) if token >= LISTENERS => {
                        if let Some(acceptor) = &mut self.worker.acceptor {
                            acceptor.is_ready(token - LISTENERS);
                        }
                    }
                    Token(slot) => {
                        if let Some(connection) = self.slots.get(slot) {
                            connection.is_readable |= event.is_readable();
                            connection.is_hung_up |= event.is_read_closed();
                            self.slots.queue(slot);
                        }
                    }
                }
            }
            self.accept();
            if self.slots.due <= self.now {
                self.expire();
            }
            // Those that are queued meanwhile come after all that wait for events.
            for _ in 0..self.slots.queue.len() {
                if let Some(slot) = self.slots.queue.pop_front() {
                    self.turn(slot);
                }
            }
            if self.ends() {
                return Ok(());
            }
        }
    }

    /// Waits for events. There may be none, even before the timeout.
    fn poll(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        match self.worker.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Looks for events for some moments, and says whether there are any.
    fn look(&mut self, events: &mut Events) -> io::Result<bool> {
        let until = Instant::now() + LOOK;
        loop {
            self.poll(events, Some(Duration::ZERO))?;
            let found = !events.is_empty();
            if found || Instant::now() >= until {
                self.looks.found(found);
                return Ok(found);
            }
            std::hint::spin_loop();
        }
    }

    /// For how long the loop may sleep; `None` until something happens.
    fn timeout(&self) -> Option<Duration> {
        if !self.slots.queue.is_empty() {
            return Some(Duration::ZERO);
        }
        let tick = (self.slots.due != NEVER).then(|| self.started + TICK * self.slots.due);
        let accept = self.worker.acceptor.as_ref().and_then(Acceptor::due);
        let first = [tick, accept].into_iter().flatten().min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    fn read_inbox(&mut self) {
        for message in self.worker.inboxes[self.worker.index].take() {
            match message {
                Message::Accepted(accepted) => self.insert(*accepted),
                Message::AllAccepted => self.has_all = true,
                Message::Opened {
                    slot,
                    session,
                    name,
                    failure,
                } => self.unpark(slot, session, name, failure),
            }
        }
        if self.worker.drain.has_begun() && !self.drains {
            self.drains = true;
            if self.worker.acceptor.take().is_some() {
                // After all that were accepted, so none of them is left in an inbox.
                for inbox in self.worker.inboxes.iter() {
                    inbox.send(Message::AllAccepted);
                }
            }
            for slot in 0..self.slots.connections.len() {
                if let Some(connection) = self.slots.get(slot) {
                    // What has come and was not read is answered, too.
                    connection.is_readable = true;
                    self.slots.queue(slot);
                }
            }
        }
    }

    /// Whether there is nothing more to do, ever.
    fn ends(&mut self) -> bool {
        // Pairs with the `Release` in `Front::join`, after which this loop is woken.
        self.worker.aborts.load(Ordering::Acquire)
            || self.drains && self.has_all && self.slots.are_empty()
    }

    fn accept(&mut self) {
        let Some(mut acceptor) = self.worker.acceptor.take() else {
            return;
        };
        let counters = Arc::clone(&self.worker.counters);
        acceptor.accept(&counters, |accepted| {
            let index = self.next;
            self.next = (index + 1) % self.worker.inboxes.len();
            if index == self.worker.index {
                self.insert(*accepted);
            } else {
                self.worker.inboxes[index].send(Message::Accepted(accepted));
            }
        });
        self.worker.acceptor = Some(acceptor);
    }

    fn insert(&mut self, accepted: Accepted) {
        let Accepted {
            mut stream,
            client,
            peer,
            number,
        } = accepted;
        let slot = self.slots.free.pop().unwrap_or_else(|| {
            self.slots.connections.push(None);
            self.slots.deadlines.push(NEVER);
            self.slots.connections.len() - 1
        });
        let registry = self.worker.poll.registry();
        if let Err(error) = registry.register(&mut stream, Token(slot), Interest::READABLE) {
            tracing::warn!(%error, "a connection could not be watched");
            self.slots.free.push(slot);
            self.worker.clients.leave(client);
            add(&self.worker.counters.closed, 1);
            return;
        }
        let session = Session::new(number, peer, client, self.worker.limits.request_bytes);
        let mut connection = Box::new(Connection::new(stream, session));
        // The event loop reports what there is to read.
        connection.is_readable = self.drains;
        connection.since = self.now;
        // Its silence is that of any client, but for one from whom a handshake is due.
        let ticks = match connection.is_idle() {
            true => self.idle_ticks,
            false => self.request_ticks,
        };
        self.slots.connections[slot] = Some(connection);
        self.slots
            .set_deadline(slot, self.now.saturating_add(ticks));
        if self.drains {
            self.slots.queue(slot);
        }
    }

    /// Gives a connection its turn, and does what it wants next.
    fn turn(&mut self, slot: usize) {
        let Some(connection) = &mut self.slots.connections[slot] else {
            return;
        };
        connection.is_queued = false;
        let was_idle = connection.is_idle();
        let wants = connection.turn(&mut self.worker.desk, &mut self.scratch, self.drains);
        // The time of a request begins with its first byte, not with the silence before it.
        let begins = was_idle && !connection.is_idle();
        if std::mem::take(&mut connection.has_moved) || begins {
            connection.since = self.now;
        }
        let ticks = match connection.phase {
            Phase::Lingering => ticks(LINGER),
            Phase::Serving if connection.is_idle() => self.idle_ticks,
            _ => self.request_ticks,
        };
        let mut deadline = connection.since.saturating_add(ticks);
        if let Some(answer) = &mut connection.session.answer {
            // However it is read, bit by bit or not at all.
            let now = self.now.saturating_add(self.request_ticks);
            deadline = deadline.min(answer.due(|bytes| now.saturating_add(reading_ticks(bytes))));
        }
        let reports = connection.has_output();
        if connection.reports_writable != reports && wants != Wants::Close {
            let interest = if reports {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            let registry = self.worker.poll.registry();
            let stream = &mut connection.stream;
            if registry.reregister(stream, Token(slot), interest).is_err() {
                return self.close(slot);
            }
            connection.reports_writable = reports;
        }
        match wants {
            Wants::Close => return self.close(slot),
            Wants::Turn => self.slots.queue(slot),
            Wants::Namespace(name) => {
                let order = Order {
                    worker: self.worker.index,
                    slot,
                    session: connection.session.number,
                    name,
                };
                // Its thread lives as long as there are workers.
                if let Err(lost) = self.worker.orders.send(order) {
                    let Order { session, name, .. } = lost.0;
                    self.unpark(slot, session, name, Some(OpenFailure::Build));
                }
            }
            Wants::Read | Wants::Write => {}
        }
        self.slots.set_deadline(slot, deadline);
    }

    /// The namespace is open that this session waits for, if it still does.
    fn unpark(&mut self, slot: usize, session: u64, name: String, failure: Option<OpenFailure>) {
        let Some(connection) = self.slots.get(slot) else {
            return;
        };
        let waits = matches!(&connection.phase, Phase::Parked(awaited) if *awaited == name);
        if connection.session.number != session || !waits {
            return;
        }
        connection.phase = Phase::Serving;
        connection.has_moved = true;
        connection.serve_again();
        if let Some(failure) = failure {
            connection.session.open_failed(name, failure);
        }
        // The deadline at which it was parked may be over before its turn.
        let deadline = self.now.saturating_add(self.request_ticks);
        self.slots.set_deadline(slot, deadline);
        self.slots.queue(slot);
    }

    /// Closes connections that have waited for too long.
    fn expire(&mut self) {
        self.slots.due = NEVER;
        for slot in 0..self.slots.deadlines.len() {
            let deadline = self.slots.deadlines[slot];
            if deadline > self.now {
                self.slots.due = self.slots.due.min(deadline);
                continue;
            }
            let Some(connection) = &self.slots.connections[slot] else {
                continue;
            };
            match &connection.phase {
                // Its client waits for an answer, and may have one.
                Phase::Parked(name) => {
                    let (session, name) = (connection.session.number, name.clone());
                    self.unpark(slot, session, name, Some(OpenFailure::Build));
                }
                _ => self.close(slot),
            }
        }
    }

    fn close(&mut self, slot: usize) {
        let Some(mut connection) = self.slots.connections[slot].take() else {
            return;
        };
        connection.session.end(&mut self.worker.desk);
        // A socket that is closed is watched no more in any case.
        let _ = self
            .worker
            .poll
            .registry()
            .deregister(&mut connection.stream);
        self.slots.deadlines[slot] = NEVER;
        self.slots.free.push(slot);
        self.worker.clients.leave(connection.session.client);
        add(&self.worker.counters.closed, 1);
    }
}

impl Slots {
    fn get(&mut self, slot: usize) -> Option<&mut Connection> {
        self.connections.get_mut(slot)?.as_deref_mut()
    }

    fn are_empty(&self) -> bool {
        self.free.len() == self.connections.len()
    }

    fn queue(&mut self, slot: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(slot)
            && !connection.is_queued
        {
            connection.is_queued = true;
            self.queue.push_back(slot);
        }
    }

    fn set_deadline(&mut self, slot: usize, deadline: u32) {
        self.deadlines[slot] = deadline;
        self.due = self.due.min(deadline);
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
