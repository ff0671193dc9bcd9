//! What one worker has for all of its clients.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use ringflake::{Id, TakeError, lease};

use crate::access::{Rights, Role};
use crate::clients::Client;
use crate::front::{FrontCounters, add};
use crate::limits::Limits;
use crate::namespaces::{Namespace, Namespaces, OpenError};

/// A namespace's name is no longer.
const NAME_BYTES: usize = lease::Namespace::MAX_NAME;

/// IDs that are taken or written in one step. Some 50 KiB of replies.
pub(super) const STEP: usize = 2_048;

/// IDs that answers in steps may hold in each worker: 32 MiB, or two requests'.
const HELD: usize = 4 << 20;

/// A token has no more bytes.
const TOKEN_BYTES: usize = *crate::tokens::LENGTH.end();

/// What all workers of a front share.
pub(super) struct Common {
    pub(super) rights: Arc<dyn Rights>,
    pub(super) limits: Limits,
    pub(super) started: Instant,
    /// Of each worker.
    pub(super) counters: Vec<Arc<FrontCounters>>,
}

/// The namespaces that a worker has met, its counts, and room for IDs.
pub(super) struct Desk {
    pub(super) common: Arc<Common>,
    counters: Arc<FrontCounters>,
    namespaces: Arc<Namespaces>,
    /// Never fewer. Others count their references, so a request does not.
    met: Vec<Arc<Namespace>>,
    by_name: HashMap<Box<str>, Met>,
    /// The one that was asked for last.
    last: usize,
    ids: Box<[Id]>,
    /// IDs that answers have or may take, and how many of them are each client's.
    held: usize,
    held_by: HashMap<Client, usize>,
}

/// A namespace that a worker has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met(usize);

/// What is known of a name.
#[derive(Debug)]
pub(super) enum Lookup<'a> {
    Made(Met),
    /// It is to be opened.
    Unknown(&'a str),
    Impossible(OpenFailure),
}

/// Why a namespace can't be had, as a client may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OpenFailure {
    Name,
    /// It was not begun, and this does not begin it.
    NotInUse,
    /// In the words of the error, which name nothing of the server's inside.
    Refused(String),
    /// The server's log has more.
    Build,
    /// The server drains.
    Ends,
}

impl From<&OpenError> for OpenFailure {
    fn from(error: &OpenError) -> Self {
        match error {
            OpenError::Unknown
            | OpenError::TooMany { .. }
            | OpenError::Name(_)
            | OpenError::LocalName(_) => Self::Refused(error.to_string()),
            OpenError::Stopping => Self::Ends,
            _ => Self::Build,
        }
    }
}

impl OpenFailure {
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Name | Self::NotInUse | Self::Refused(_) => "ERR",
            Self::Build | Self::Ends => "TRYAGAIN",
        }
    }
}

impl fmt::Display for OpenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => write!(
                f,
                "a namespace's name has 1 to {NAME_BYTES} bytes and is UTF-8"
            ),
            Self::NotInUse => {
                f.write_str("no namespace of this name is in use: take an ID of it first")
            }
            Self::Refused(why) => f.write_str(why),
            Self::Build => f.write_str(
                "the namespace can't be opened at the moment, and the server's log says why: \
                 try again in a second",
            ),
            Self::Ends => f.write_str("the server stops: ask another one, or this one later"),
        }
    }
}

/// Why a client may not do what it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) why: &'static str,
}

impl Refusal {
    pub(super) const UNKNOWN: Self = Self {
        code: "NOAUTH",
        why: "Authentication required.",
    };
}

impl Desk {
    pub(super) fn new(
        common: Arc<Common>,
        counters: Arc<FrontCounters>,
        namespaces: Arc<Namespaces>,
    ) -> Self {
        Self {
            common,
            counters,
            namespaces,
            met: Vec::new(),
            by_name: HashMap::new(),
            last: 0,
            ids: vec![Id::default(); STEP].into_boxed_slice(),
            held: 0,
            held_by: HashMap::new(),
        }
    }

    /// The namespace of that name, if it is made.
    pub(super) fn find<'a>(&mut self, name: &'a [u8]) -> Lookup<'a> {
        if let Some(last) = self.met.get(self.last)
            && last.name.as_bytes() == name
        {
            return Lookup::Made(Met(self.last));
        }
        let name = match std::str::from_utf8(name) {
            Ok(name) if (1..=NAME_BYTES).contains(&name.len()) => name,
            _ => return Lookup::Impossible(OpenFailure::Name),
        };
        let met = match self.by_name.get(name) {
            Some(&met) => met,
            None => match self.namespaces.get(name) {
                Some(made) => {
                    let met = Met(self.met.len());
                    self.met.push(made);
                    self.by_name.insert(name.into(), met);
                    met
                }
                None => return Lookup::Unknown(name),
            },
        };
        self.last = met.0;
        Lookup::Made(met)
    }

    pub(super) fn namespace(&self, met: Met) -> &Namespace {
        &self.met[met.0]
    }

    /// All namespaces that are made.
    pub(super) fn all(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.all()
    }

    /// As many IDs as there are, up to `count` and up to [`STEP`], and if that is less than
    /// `count`, why.
    pub(super) fn take(&mut self, met: Met, count: usize) -> (&[Id], Option<TakeError>) {
        let generator = &self.met[met.0].generator;
        let (mut taken, mut error) = (0, None);
        let wanted = count.min(STEP);
        // A batch that comes short says no reason; the one after it does.
        while taken < wanted && error.is_none() {
            match generator.take_batch(&mut self.ids[taken..wanted]) {
                Ok(more) => taken += more,
                Err(why) => error = Some(why),
            }
        }
        add(&self.counters.ids, taken as u64);
        (&self.ids[..taken], error)
    }

    /// Whether an answer to this client may hold so many IDs; then they are set aside. One
    /// client has half of what there is at most, so that others find room.
    pub(super) fn may_hold(&mut self, client: Client, count: usize) -> bool {
        let most = HELD.max(2 * self.common.limits.count);
        let own = self.held_by.get(&client).copied().unwrap_or(0);
        let fits = self.held + count <= most && own + count <= most / 2;
        if fits {
            self.held += count;
            self.held_by.insert(client, own + count);
        }
        fits
    }

    /// Gives back what was set aside.
    pub(super) fn release(&mut self, client: Client, count: usize) {
        self.held -= count;
        if let Some(own) = self.held_by.get_mut(&client) {
            *own -= count;
            if *own == 0 {
                self.held_by.remove(&client);
            }
        }
    }

    /// Why a client with this token may not do that.
    pub(super) fn refusal(&self, role: Role, token: Option<&[u8]>) -> Option<Refusal> {
        if self.common.rights.allows(role, token) {
            None
        } else if token.is_none() {
            Some(Refusal::UNKNOWN)
        } else {
            Some(Refusal {
                code: "NOPERM",
                why: match role {
                    Role::Take => "this token may not take IDs",
                    Role::Inspect => "this token may not inspect IDs",
                    Role::Lease => "this token may not be given leases",
                    Role::Admin => "this token may not read the server's figures",
                },
            })
        }
    }

    /// Whether a client with this token may do anything at all.
    pub(super) fn knows(&self, token: Option<&[u8]>) -> bool {
        // It is kept for as long as its connection, so it has a limit.
        if token.is_some_and(|token| token.len() > TOKEN_BYTES) {
            return false;
        }
        let rights = &self.common.rights;
        Role::ALL.into_iter().any(|role| rights.allows(role, token))
    }

    pub(super) fn count_requests(&self, more: usize) {
        add(&self.counters.requests, more as u64);
    }

    pub(super) fn count_errors(&self, more: u64) {
        if more > 0 {
            add(&self.counters.errors, more);
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("met", &self.met.len())
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::tests::kit::{Everything, generator};

    const ME: Client = Client::User(Some(1));
    const OTHER: Client = Client::User(Some(2));

    fn desk(count: usize) -> Desk {
        let namespaces = Namespaces::new(Box::new(|_| Ok(generator())), 3);
        let common = Common {
            rights: Arc::new(Everything),
            limits: Limits {
                count,
                ..Limits::default()
            },
            started: Instant::now(),
            counters: vec![Arc::default()],
        };
        let counters = Arc::clone(&common.counters[0]);
        Desk::new(Arc::new(common), counters, Arc::new(namespaces))
    }

    #[test]
    fn a_namespace_is_met_once() {
        let mut desk = desk(1);
        let found = |desk: &mut Desk, name: &str| match desk.find(name.as_bytes()) {
            Lookup::Made(Met(index)) => Some(index),
            _ => None,
        };
        assert_eq!(found(&mut desk, "a"), None);
        for name in ["a", "b", "not-met"] {
            desk.namespaces.open(name).unwrap();
        }
        for round in 0..3 {
            for (index, name) in ["a", "a", "b", "b"].into_iter().enumerate() {
                assert_eq!(found(&mut desk, name), Some(index / 2), "{round}");
                // That is the one that is looked at first.
                assert_eq!(desk.last, index / 2);
                assert_eq!(desk.namespace(Met(index / 2)).name, name);
            }
        }
        assert_eq!(desk.met.len(), 2);
        let all: Vec<_> = desk.all().iter().map(|one| one.name.clone()).collect();
        assert_eq!(all, ["a", "b", "not-met"]);
    }

    #[test]
    fn one_client_holds_half_of_what_there_is() {
        // There is room for two requests, however large they may be.
        for (count, half) in [(1, HELD / 2), (3 * HELD, 3 * HELD)] {
            let mut desk = desk(count);
            assert!(!desk.may_hold(ME, half + 1));
            assert!(desk.may_hold(ME, half));
            assert!(!desk.may_hold(ME, 1));
            assert!(!desk.may_hold(OTHER, half + 1));
            assert!(desk.may_hold(OTHER, half));
            assert!(!desk.may_hold(Client::User(None), 1));
            desk.release(ME, half);
            desk.release(OTHER, half - 1);
            assert_eq!((desk.held, desk.held_by.len()), (1, 1));
            desk.release(OTHER, 1);
            assert_eq!((desk.held, desk.held_by.len()), (0, 0));
        }
    }

    #[test]
    fn a_client_knows_of_a_failure_what_it_can_do() {
        for (error, code, said) in [
            (OpenError::Unknown, "ERR", OpenError::Unknown.to_string()),
            (
                OpenError::Stopping,
                "TRYAGAIN",
                OpenFailure::Ends.to_string(),
            ),
            (
                OpenError::TooMany { most: 7 },
                "ERR",
                OpenError::TooMany { most: 7 }.to_string(),
            ),
            (
                OpenError::UrlFile {
                    path: "private".into(),
                    source: std::io::Error::other("inside").into(),
                },
                "TRYAGAIN",
                OpenFailure::Build.to_string(),
            ),
        ] {
            let failure = OpenFailure::from(&error);
            assert_eq!((failure.code(), failure.to_string()), (code, said));
        }
    }
}
