//! Tables on servers that are reached by one connection: how it is opened, kept and closed,
//! and when an operation is repeated. Each server has its own [`Session`].

use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::{Commit, Description, Key, Query, Snapshot, Table, Txn};
use crate::lease::error::StoreError;
use crate::lease::store::connect::deadline::{self, Deadline};
use crate::lease::store::connect::durability::DurabilityGate;
use crate::lease::store::key::StoreKey;
use crate::lease::store::options::{OpenError, OpenOptions};

/// A connection that was idle for longer is tried before it is used, so that a server that
/// went away is noticed while nothing is at stake.
const IDLE: Duration = Duration::from_secs(1);

/// A costly connection that is not needed for so long is closed. Servers allow a few hundred; a
/// new one costs some milliseconds.
const CLOSES_FOR: Duration = Duration::from_secs(20);

/// A connection that was used more recently is not closed: a process that starts one
/// generator may start more.
const LINGERS: Duration = Duration::from_secs(2);

/// The pause before a transaction is repeated; doubled up to the second.
const PAUSE: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

impl Failure {
    /// Fails where the server can lose what it has confirmed and nobody accepted that.
    pub(super) fn admit(gate: &mut DurabilityGate, weaknesses: &[String]) -> Result<(), Self> {
        match gate.refusal(weaknesses) {
            None => Ok(()),
            Some(reason) => Err(Self::Refused(StoreError::NotDurable {
                store: gate.store().to_owned(),
                reason,
            })),
        }
    }
}

/// The outcome of a transaction.
#[derive(Debug)]
pub(in crate::lease) enum Applied {
    Done,
    /// A condition does not hold. Nothing was written.
    Rejected,
    /// The same, with what the commit was to read instead.
    Conflict(Snapshot),
}

/// A connection to a server.
///
/// [`read`](Self::read) and [`apply`](Self::apply) pass on the server's state to the
/// [`DurabilityGate`], and fail where the server can lose what it confirms and nobody
/// accepted that, unless [`connect`](Self::connect) does so.
pub(in crate::lease) trait Session: Send + Sized {
    /// How to reach the server. Its text names the server, without credentials.
    type Server: fmt::Display + Send;

    /// Without a ping, a connection is used for a read this long after its last use, and
    /// this long for a commit.
    const TRUSTED: [Duration; 2] = [IDLE; 2];

    /// Whether a connection costs its server a thread or a process, so that one that is not
    /// needed for long is closed.
    const IS_COSTLY: bool = true;

    /// Where the server at `url` is. Connects to nothing yet.
    fn server(url: &str, options: &OpenOptions) -> Result<Self::Server, OpenError>;

    /// Connects, and checks what the server is and how it is set up.
    fn connect(server: &Self::Server, deadline: Deadline) -> Result<Self, Failure>;

    /// Begins an operation that must be over by `deadline`.
    fn start(&mut self, deadline: Deadline);

    /// One round trip, to see whether the server is there. No reply within `patience` is a
    /// failure.
    fn ping(&mut self, patience: Duration) -> Result<(), Failure>;

    /// Ends a transaction without effect, if there is one.
    fn roll_back(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads the server's current settings.
    fn inspect(&mut self) -> Result<(), Failure>;

    /// The server's name and durability.
    fn gate(&self) -> &DurabilityGate;

    /// Creates tables, and what belongs to them, where they are missing.
    fn create(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// [`Table::read`].
    fn read(&mut self, query: &Query) -> Result<Snapshot, Failure>;

    /// Writes all puts of a commit in one transaction if its conditions hold.
    ///
    /// # Errors
    /// [`Failure::Unknown`] alone if it may have been committed.
    fn apply(&mut self, txn: &Txn, instead: &Query) -> Result<Applied, Failure>;

    /// Runs an operation where this kind of connection may block.
    fn blocking<T: Send>(operation: impl FnOnce() -> T + Send) -> T {
        operation()
    }
}

/// A table over a session that is opened when needed, and kept while it is sound.
#[allow(private_bounds, reason = "a user's tables implement Table")]
pub struct ServerTable<S: Session> {
    server: S::Server,
    timeout: Duration,
    key: StoreKey,
    /// With the time of its last use.
    session: Option<(S, Instant)>,
}

#[allow(private_bounds, reason = "as of the type")]
impl<S: Session> ServerTable<S> {
    /// The table on the server at `url`. Connects to nothing yet.
    pub(in crate::lease) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            server: S::server(url, options)?,
            timeout: options.operation_timeout(),
            key: StoreKey::new(url, options),
            session: None,
        })
    }

    /// Runs `step`, and repeats it while the server rolls it back and time is left. A
    /// connection that was not used for as long as it is `trusted` is tried first.
    fn run<T: Send>(
        &mut self,
        trusted: Duration,
        mut step: impl FnMut(&mut S) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        S::blocking(|| {
            let deadline = Deadline::after(self.timeout);
            let mut session = self.open(trusted, deadline)?;
            let [mut pause, longest] = PAUSE;
            loop {
                session.start(deadline);
                let outcome = step(&mut session);
                if let Err(failure) = &outcome {
                    // A session that is not sound is dropped, which ends its connection, and
                    // with that its transaction.
                    if !failure.keeps_connection() || session.roll_back().is_err() {
                        return outcome;
                    }
                    let is_late = deadline.left().map_or(true, |left| left <= pause);
                    if matches!(failure, Failure::Again(_)) && !is_late {
                        thread::sleep(pause);
                        pause = longest.min(pause * 2);
                        continue;
                    }
                }
                self.session = Some((session, Instant::now()));
                return outcome;
            }
        })
    }

    fn open(&mut self, trusted: Duration, deadline: Deadline) -> Result<S, Failure> {
        if let Some((mut session, used)) = self.session.take() {
            session.start(deadline);
            if used.elapsed() < trusted || session.ping(deadline::of_a_try(self.timeout)).is_ok() {
                return Ok(session);
            }
        }
        S::connect(&self.server, deadline)
    }
}

impl<S: Session> Table for ServerTable<S> {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        let [trusted, _] = S::TRUSTED;
        let read = self.run(trusted, |session| session.read(query));
        read.map_err(Failure::into_error)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let [_, trusted] = S::TRUSTED;
        if txn.creates {
            // With a deadline of its own: what is late here was not committed.
            let created = self.run(trusted, S::create);
            created.map_err(Failure::into_error)?;
        }
        let outcome = self.run(trusted, |session| {
            match session.apply(txn, instead) {
                Ok(Applied::Done) => Ok(Commit::Done),
                Ok(Applied::Conflict(snapshot)) => Ok(Commit::Conflict(snapshot)),
                Ok(Applied::Rejected) => session.read(instead).map(Commit::Conflict),
                Err(Failure::Short(cause)) => {
                    session.roll_back()?;
                    // Another transaction may have changed them, or nobody has.
                    let snapshot = session.read(instead)?;
                    match is_current(session, txn, instead, &snapshot)? {
                        true => Err(Failure::Short(cause)),
                        false => Ok(Commit::Conflict(snapshot)),
                    }
                }
                Err(failure) => Err(failure),
            }
        });
        match outcome {
            Err(Failure::Unknown(cause)) => Ok(Commit::Unknown(cause)),
            outcome => outcome.map_err(Failure::into_error),
        }
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        let described = self.run(IDLE, |session| {
            session.inspect()?;
            let gate = session.gate();
            Ok(Description::new(gate.store(), gate.durability()))
        });
        described.map_err(Failure::into_error)
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }

    fn rest(&mut self, at_least: Duration) {
        let idle = |(_, used): &mut (S, Instant)| used.elapsed() >= LINGERS;
        if S::IS_COSTLY && at_least >= CLOSES_FOR {
            // Closed by its drop.
            self.session.take_if(idle);
        }
    }
}

impl<S: Session> fmt::Debug for ServerTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTable")
            .field("server", &format_args!("{}", self.server))
            .finish_non_exhaustive()
    }
}

/// The first of these hosts with which `attempt` succeeds. One that hangs leaves time for the
/// others; one that is gone, or lets nobody in, is passed over.
pub(super) fn one_of<H, T>(
    hosts: &[H],
    deadline: Deadline,
    mut attempt: impl FnMut(&H, Deadline) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut last = None;
    for (index, host) in hosts.iter().enumerate() {
        let share = match deadline.share(hosts.len() - index) {
            Ok(share) => share,
            Err(late) => return Err(last.unwrap_or_else(|| Failure::not_done(late))),
        };
        match attempt(host, share) {
            Err(failure @ (Failure::NotDone(_) | Failure::Denied(_))) => last = Some(failure),
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| Failure::not_done("there is no host to connect to")))
}

/// Whether all compared keys have the values that a commit expects, where `snapshot` is that of
/// `read`.
fn is_current<S: Session>(
    session: &mut S,
    txn: &Txn,
    read: &Query,
    snapshot: &Snapshot,
) -> Result<bool, Failure> {
    let is_as_expected = |entries: &BTreeMap<Key, String>| {
        let mut compare = txn.compare.iter();
        compare.all(|(key, expected)| entries.get(key) == expected.as_ref())
    };
    let keys: Vec<_> = txn.compare.iter().map(|(key, _)| key.clone()).collect();
    if keys.iter().all(|key| read.keys.contains(key)) {
        return Ok(is_as_expected(&snapshot.entries));
    }
    let query = Query { keys, blocks: None };
    Ok(is_as_expected(&session.read(&query)?.entries))
}
