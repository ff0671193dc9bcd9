//! The common part of the tables on SQL servers: connections, retries, and the meaning of
//! failures. Each server has its own [`Session`].

use std::collections::BTreeMap;
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use super::{Commit, Description, Key, Query, Snapshot, TableError, Txn};
use crate::lease::connect::deadline;
use crate::lease::connect::durability::DurabilityGate;

/// A connection that was idle for longer is tried before it is used, so that a server that
/// went away is noticed while nothing is at stake.
const IDLE: Duration = Duration::from_secs(1);

/// A connection that is not needed for so long is closed. Servers keep a thread or a process
/// for each, and allow a few hundred; a new one costs some milliseconds.
const CLOSES_FOR: Duration = Duration::from_secs(20);

/// A connection that was used more recently is not closed: a process that starts one
/// generator may start more.
const LINGERS: Duration = Duration::from_secs(2);

/// The pause before a transaction is repeated; doubled up to the second.
const PAUSE: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// The driver's error, or a text of our own.
pub(super) type Cause = Box<dyn Error + Send + Sync>;

/// How far a transaction was when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The commit was not sent, or had nothing to commit.
    Before,
    /// The commit failed.
    Commit,
}

/// The meaning of a server's error code at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Rolled back in favour of another transaction.
    Again,
    /// A table is missing.
    NoTable,
    /// Only some of the rows were as expected, and the transaction was rolled back.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "a client of MySQL counts the rows itself")
    )]
    Short,
    /// The tables, or what is in them, are not ours.
    Corrupt,
    /// Certainly nothing was done.
    NotDone,
    /// Perhaps it was done.
    Unknown,
}

/// Why a step was not completed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A repetition may succeed.
    Again(Cause),
    NoTable(Cause),
    /// Not all rows were as expected, and nothing was written.
    Short(Cause),
    /// The connection is sound, and the table unusable.
    Refused(TableError),
    /// Certainly nothing was done.
    NotDone(Cause),
    /// The server refused the login.
    Denied(Cause),
    /// Perhaps it was done.
    Unknown(Cause),
}

impl Failure {
    /// The server returned an error.
    pub(super) fn of(verdict: Verdict, cause: Cause) -> Self {
        match verdict {
            Verdict::Again => Self::Again(cause),
            Verdict::NoTable => Self::NoTable(cause),
            Verdict::Short => Self::Short(cause),
            Verdict::NotDone => Self::NotDone(cause),
            Verdict::Unknown => Self::Unknown(cause),
            Verdict::Corrupt => Self::corrupt(
                "the server rejects a statement that its tables should allow",
                Some(cause),
            ),
        }
    }

    /// The server returned nothing, or nothing that makes sense.
    pub(super) fn silence(stage: Stage, cause: Cause) -> Self {
        match stage {
            Stage::Before => Self::NotDone(cause),
            Stage::Commit => Self::Unknown(cause),
        }
    }

    pub(super) fn corrupt(detail: impl Into<String>, source: Option<Cause>) -> Self {
        Self::Refused(TableError::Corrupt {
            detail: detail.into(),
            source,
        })
    }

    /// Whether the connection can be used again after a rollback.
    fn keeps_connection(&self) -> bool {
        match self {
            Self::Again(_) | Self::NoTable(_) | Self::Short(_) | Self::Refused(_) => true,
            Self::NotDone(_) | Self::Denied(_) | Self::Unknown(_) => false,
        }
    }

    /// The error of a call that has not committed.
    fn into_error(self) -> TableError {
        match self {
            Self::Refused(error) => error,
            Self::Denied(cause) => TableError::Denied(cause),
            Self::NoTable(cause) => TableError::Corrupt {
                detail: "a table of ringflake is missing; initialising any new namespace \
                         creates it"
                    .to_owned(),
                source: Some(cause),
            },
            Self::Short(cause) => TableError::Corrupt {
                detail: "the database does not keep all rows that are written".to_owned(),
                source: Some(cause),
            },
            Self::Again(cause) | Self::NotDone(cause) | Self::Unknown(cause) => {
                TableError::Unavailable(cause)
            }
        }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    Done,
    /// A condition does not hold. Nothing was written.
    Rejected,
}

/// A connection to a server.
///
/// [`read`](Self::read) and [`apply`](Self::apply) pass on the server's state to the
/// [`DurabilityGate`], and fail where the server can lose what it confirms and nobody
/// accepted that.
pub(super) trait Session: Sized {
    /// How to reach the server.
    type Server;

    /// Connects, and checks what the server is and how it is set up.
    fn connect(server: &Self::Server, deadline: Instant) -> Result<Self, Failure>;

    /// Begins an operation that must be over by `deadline`.
    fn start(&mut self, deadline: Instant);

    /// One round trip, to see whether the server is there. No reply within `patience` is a
    /// failure.
    fn ping(&mut self, patience: Duration) -> Result<(), Failure>;

    /// Ends a transaction without effect, if there is one.
    fn roll_back(&mut self) -> Result<(), Failure>;

    /// Reads the server's current settings.
    fn inspect(&mut self) -> Result<(), Failure>;

    /// The server's name and durability.
    fn gate(&self) -> &DurabilityGate;

    /// Creates tables, and what belongs to them, where they are missing.
    fn create(&mut self) -> Result<(), Failure>;

    /// [`Table::read`](super::Table::read).
    fn read(&mut self, query: &Query) -> Result<Snapshot, Failure>;

    /// Writes all puts of a commit in one transaction if its conditions hold.
    ///
    /// # Errors
    /// [`Failure::Unknown`] alone if it may have been committed.
    fn apply(&mut self, txn: &Txn) -> Result<Applied, Failure>;
}

/// A table over a session that is opened when needed, and kept while it is sound.
#[derive(Debug)]
pub(super) struct Client<S: Session> {
    server: S::Server,
    timeout: Duration,
    /// With the time of its last use.
    session: Option<(S, Instant)>,
}

impl<S: Session> Client<S> {
    pub(super) fn new(server: S::Server, timeout: Duration) -> Self {
        Self {
            server,
            timeout,
            session: None,
        }
    }

    pub(super) fn server(&self) -> &S::Server {
        &self.server
    }

    pub(super) fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        let read = self.run(|session| session.read(query));
        read.map_err(Failure::into_error)
    }

    pub(super) fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        let outcome = self.run(|session| {
            if txn.creates {
                session.create()?;
            }
            match session.apply(txn) {
                Ok(Applied::Done) => Ok(Commit::Done),
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

    pub(super) fn describe(&mut self) -> Result<Description, TableError> {
        let described = self.run(|session| {
            session.inspect()?;
            let gate = session.gate();
            Ok(Description::new(gate.store(), gate.durability()))
        });
        described.map_err(Failure::into_error)
    }

    /// Uses the connection, if one is open, for something that is not a part of the table;
    /// closes it if that fails.
    #[cfg(feature = "mysql")]
    pub(super) fn also<E>(&mut self, work: impl FnOnce(&mut S) -> Result<(), E>) -> Result<(), E> {
        let Some((mut session, _)) = self.session.take() else {
            return Ok(());
        };
        work(&mut session)?;
        self.session = Some((session, Instant::now()));
        Ok(())
    }

    /// When a call that begins now must be over.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Closes a connection that would be idle for long.
    pub(super) fn rest(&mut self, at_least: Duration) {
        let idle = |(_, used): &mut (S, Instant)| used.elapsed() >= LINGERS;
        if at_least >= CLOSES_FOR {
            // Closed by its drop.
            self.session.take_if(idle);
        }
    }

    /// Runs `step`, and repeats it while the server rolls it back and time is left.
    fn run<T>(&mut self, mut step: impl FnMut(&mut S) -> Result<T, Failure>) -> Result<T, Failure> {
        let deadline = self.deadline();
        let mut session = self.open(deadline)?;
        let [mut pause, longest] = PAUSE;
        loop {
            session.start(deadline);
            let failure = match step(&mut session) {
                Ok(answer) => {
                    self.session = Some((session, Instant::now()));
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            // A session that is not sound is dropped, which ends its connection, and with
            // that its transaction.
            if !failure.keeps_connection() || session.roll_back().is_err() {
                return Err(failure);
            }
            if !matches!(failure, Failure::Again(_)) || Instant::now() + pause >= deadline {
                self.session = Some((session, Instant::now()));
                return Err(failure);
            }
            thread::sleep(pause);
            pause = longest.min(pause * 2);
        }
    }

    fn open(&mut self, deadline: Instant) -> Result<S, Failure> {
        if let Some((mut session, used)) = self.session.take() {
            session.start(deadline);
            if used.elapsed() < IDLE || session.ping(deadline::of_a_try(self.timeout)).is_ok() {
                return Ok(session);
            }
        }
        S::connect(&self.server, deadline)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_commit_that_was_sent_can_be_in_doubt() {
        let silence = |stage| Failure::silence(stage, "cut".into());
        assert!(matches!(silence(Stage::Before), Failure::NotDone(_)));
        assert!(matches!(silence(Stage::Commit), Failure::Unknown(_)));
    }

    #[test]
    fn the_connection_is_kept_only_after_a_definite_reply() {
        assert!(Failure::Again("deadlock".into()).keeps_connection());
        assert!(Failure::NoTable("none".into()).keeps_connection());
        assert!(!Failure::NotDone("cut".into()).keeps_connection());
        assert!(!Failure::Denied("no".into()).keeps_connection());
        assert!(!Failure::Unknown("cut".into()).keeps_connection());
    }
}
