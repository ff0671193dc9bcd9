//! What a worker thread keeps for all of its connections.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hmac_sha256::Hash;
use ringflake::{Id, TakeError, lease};

use super::budget::Budget;
use super::reply::{Errors, Rejection, Replies};
use crate::access::Role;
use crate::clients::Client;
use crate::counters::{Counters, add};
use crate::log_limit::LogLimit;
use crate::namespaces::{Namespace, OpenError};
use crate::setup::Setup;

/// Maximum bytes of one read.
pub(super) const READ: usize = 64 << 10;

/// Maximum length of a namespace's name.
const NAME_BYTES: usize = lease::Namespace::MAX_NAME;

/// Maximum length of a token.
const TOKEN_BYTES: usize = *crate::tokens::LENGTH.end();

/// The address that the settings announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) host: String,
    pub(super) port: u16,
    /// Of the node: 40 hexadecimal digits.
    pub(super) id: String,
}

impl Announced {
    /// Of `HOST:PORT`, which the configuration has checked.
    pub(super) fn new(address: &str) -> Option<Self> {
        let (host, port) = address.rsplit_once(':')?;
        let digest = Hash::hash(address.as_bytes());
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().ok()?,
            id: digest
                .iter()
                .take(20)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }
}

/// What all workers share.
pub(super) struct Shared {
    pub(super) setup: Setup,
    /// For cluster and Sentinel clients.
    pub(super) announced: Option<Announced>,
    pub(super) started: Instant,
    pub(super) budget: Budget,
    auth_failures: LogLimit,
    sessions: AtomicU64,
    contexts: AtomicUsize,
}

impl Shared {
    pub(super) fn new(setup: Setup) -> Self {
        let announced = setup.config.announce.as_deref();
        Self {
            announced: announced.and_then(Announced::new),
            started: Instant::now(),
            setup,
            budget: Budget::default(),
            auth_failures: LogLimit::default(),
            sessions: AtomicU64::new(0),
            contexts: AtomicUsize::new(0),
        }
    }

    /// Whether a client with this token may do anything at all.
    pub(super) fn knows(&self, token: Option<&[u8]>) -> bool {
        // It is kept for as long as its connection, so it has a limit.
        if token.is_some_and(|token| token.len() > TOKEN_BYTES) {
            return false;
        }
        let rights = &self.setup.rights;
        Role::ALL.into_iter().any(|role| rights.allows(role, token))
    }

    /// The mode of Redis in which cluster clients find this server.
    pub(super) fn mode(&self) -> &'static str {
        match self.announced {
            Some(_) => "cluster",
            None => "standalone",
        }
    }

    /// The number of a new session, from 1.
    pub(super) fn next_session(&self) -> u64 {
        // Only unique.
        1 + self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// The context of a worker thread, and buffers for the turn that runs on it.
pub(super) struct Worker {
    pub(super) context: WorkerContext,
    /// Input of an earlier turn, and one read behind it.
    pub(super) input: Box<[u8]>,
    pub(super) output: Vec<u8>,
}

impl Worker {
    /// Calls `work` with the worker of this thread. The first call on a thread makes it.
    pub(super) fn with<R>(shared: &Arc<Shared>, work: impl FnOnce(&mut Self) -> R) -> R {
        WORKER.with_borrow_mut(|worker| {
            work(worker.get_or_insert_with(|| {
                // Only unique.
                let index = shared.contexts.fetch_add(1, Ordering::Relaxed);
                Self {
                    context: WorkerContext::new(Arc::clone(shared), index),
                    input: vec![0; shared.setup.limits.request_bytes + READ].into_boxed_slice(),
                    output: Vec::new(),
                }
            }))
        })
    }

    /// Drops the worker of this thread, if there is one.
    pub(super) fn clear() {
        WORKER.take();
    }
}

/// The namespaces that a worker has looked up, its counters, and a buffer for IDs.
pub(super) struct WorkerContext {
    pub(super) shared: Arc<Shared>,
    counters: Arc<Counters>,
    /// Never shrinks. A request uses an index, so it counts no references.
    known: Vec<Arc<Namespace>>,
    by_name: HashMap<Box<str>, NamespaceIndex>,
    /// The namespace of the last lookup.
    last: usize,
    ids: Vec<Id>,
}

/// A namespace that a worker has looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamespaceIndex(usize);

/// Why there is no namespace for a request.
#[derive(Debug)]
pub(super) enum Missing {
    /// It has to be opened first.
    Open(String),
    Rejected(Rejection),
}

impl Missing {
    /// Refuses `count` requests; or returns the name of a namespace that has to be opened.
    pub(super) fn refuse(self, count: usize, replies: &mut Replies<'_>) -> Option<String> {
        let rejection = match self {
            Self::Open(name) => return Some(name),
            Self::Rejected(rejection) => rejection,
        };
        for _ in 0..count {
            replies.reject(&rejection);
        }
        None
    }
}

/// Why there is no namespace, as a client may know it.
impl Rejection {
    pub(super) const NOT_IN_USE: Self = Self::new(
        "ERR",
        "no ID was taken in this namespace since the server started: take one first",
    );
    pub(super) const CANNOT_OPEN: Self = Self::new(
        "TRYAGAIN",
        "the namespace can't be opened at the moment: try again in a second; the server's log has \
         the cause",
    );
    pub(super) const STILL_OPENING: Self = Self::new(
        "TRYAGAIN",
        "the namespace is still being opened: try again in a second",
    );
}

impl From<&OpenError> for Rejection {
    fn from(error: &OpenError) -> Self {
        let code = match error {
            OpenError::Unknown
            | OpenError::TooMany { .. }
            | OpenError::Name(_)
            | OpenError::LocalName(_) => "ERR",
            OpenError::Stopping => "TRYAGAIN",
            // The rest names files and servers, which are not the client's business.
            _ => return Self::CANNOT_OPEN,
        };
        let why = error.to_string();
        Self {
            code,
            ..Self::of(why)
        }
    }
}

impl WorkerContext {
    /// `index` is that of the worker, which alone writes its counters.
    pub(super) fn new(shared: Arc<Shared>, index: usize) -> Self {
        Self {
            counters: Arc::clone(&shared.setup.counters[1 + index]),
            shared,
            known: Vec::new(),
            by_name: HashMap::new(),
            last: 0,
            ids: Vec::new(),
        }
    }

    /// The name of the namespace that a key stands for.
    pub(super) fn name_of<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        let name = match self.shared.setup.config.key_prefix.as_bytes() {
            // To compare nothing is slow: `memcmp` loads from the dangling address of an empty
            // string, and a masked load that would fault takes some 100 ns.
            [] => key,
            prefix => key.strip_prefix(prefix).unwrap_or(key),
        };
        match self.shared.setup.config.colon {
            Some(colon) if name.contains(&b':') => {
                let with = |&byte: &u8| if byte == b':' { colon as u8 } else { byte };
                name.iter().map(with).collect()
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// The namespace of that key, if it is made.
    pub(super) fn find(&mut self, key: &[u8]) -> Result<NamespaceIndex, Missing> {
        let name = &*self.name_of(key);
        if let Some(last) = self.known.get(self.last)
            && last.name.as_bytes() == name
        {
            return Ok(NamespaceIndex(self.last));
        }
        let name = match std::str::from_utf8(name) {
            Ok(name) if (1..=NAME_BYTES).contains(&name.len()) => name,
            _ => {
                let why = format!("the namespace's name must be UTF-8 of 1 to {NAME_BYTES} bytes");
                return Err(Missing::Rejected(Rejection::of(why)));
            }
        };
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None => match self.shared.setup.namespaces.get(name) {
                Some(made) => {
                    let index = NamespaceIndex(self.known.len());
                    self.known.push(made);
                    self.by_name.insert(name.into(), index);
                    index
                }
                None => return Err(Missing::Open(name.to_owned())),
            },
        };
        self.last = index.0;
        Ok(index)
    }

    pub(super) fn namespace(&self, index: NamespaceIndex) -> &Namespace {
        &self.known[index.0]
    }

    /// All namespaces that are made.
    pub(super) fn all(&self) -> Vec<Arc<Namespace>> {
        self.shared.setup.namespaces.all()
    }

    /// Up to `count` IDs, and if they are fewer, why.
    pub(super) fn take(
        &mut self,
        index: NamespaceIndex,
        count: usize,
    ) -> (&[Id], Option<TakeError>) {
        let generator = &self.known[index.0].generator;
        let (mut taken, mut error) = (0, None);
        if self.ids.len() < count {
            self.ids.resize(count, Id::default());
        }
        // A short batch gives no reason; the next one does.
        while taken < count && error.is_none() {
            match generator.take_batch(&mut self.ids[taken..count]) {
                Ok(more) => taken += more,
                Err(why) => error = Some(why),
            }
        }
        add(&self.counters.ids, taken as u64);
        (&self.ids[..taken], error)
    }

    /// Why a client with this token may not do that.
    pub(super) fn rejection(&self, role: Role, token: Option<&[u8]>) -> Option<Rejection> {
        if self.shared.setup.rights.allows(role, token) {
            return None;
        }
        if token.is_none() {
            return Some(Rejection::UNAUTHENTICATED);
        }
        let why = match role {
            Role::Take => "this token may not take IDs",
            Role::Inspect => "this token may not inspect IDs",
            Role::Admin => "this token may not read the server's figures",
        };
        Some(Rejection::new("NOPERM", why))
    }

    /// Requests that were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.counters.requests.load(Ordering::Relaxed)
    }

    /// Counts the time that the requests of a turn took, each of them.
    pub(super) fn record_duration(&self, duration: Duration, requests: u64) {
        self.counters.durations.record(duration, requests, add);
    }

    /// Counts a failed authentication, and logs one a minute for each client.
    pub(super) fn count_auth_failure(&self, client: Client, peer: &str) {
        add(&self.counters.auth_failures, 1);
        if let Some(suppressed) = self.shared.auth_failures.permit(&client.to_string()) {
            tracing::warn!(peer, suppressed, "authentication failed");
        }
    }

    pub(super) fn count_requests(&self, more: usize) {
        add(&self.counters.requests, more as u64);
    }

    pub(super) fn count_errors(&self, more: Errors) {
        if more != Errors::default() {
            add(&self.counters.errors, more.all);
            add(&self.counters.denied, more.denied);
            add(&self.counters.unavailable, more.unavailable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::namespaces::Namespaces;
    use crate::namespaces::tests::generator;

    #[test]
    fn every_open_failure_reads_as_in_its_snapshot() {
        let Err(Missing::Rejected(name)) = context().find(b"") else {
            panic!("no name is empty");
        };
        let rejections = [
            ("a wrong name", name),
            ("not in use", Rejection::NOT_IN_USE),
            ("unknown", Rejection::from(&OpenError::Unknown)),
            ("can't be opened", Rejection::CANNOT_OPEN),
            ("still being opened", Rejection::STILL_OPENING),
            (
                "over the rate",
                Rejection::over_rate(std::time::Duration::from_micros(1_250_100)),
            ),
            (
                "the server is stopping",
                Rejection::from(&OpenError::Stopping),
            ),
        ];
        let show = |(name, Rejection { code, why, .. }): &(&str, Rejection)| {
            ringflake_kit::snapshot::entry(name, format!("{code} {why}"), &[])
        };
        let text: String = rejections.iter().map(show).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/resp.txt");
        ringflake_kit::snapshot::assert_snapshot(path, &text);
    }

    fn context() -> WorkerContext {
        let namespaces = Namespaces::new(Box::new(|_| Ok(generator())), 3);
        let shared = Shared::new(Setup::of(Access::open(), namespaces));
        WorkerContext::new(Arc::new(shared), 0)
    }

    #[test]
    fn a_namespace_is_looked_up_once_per_worker() {
        let mut context = context();
        let found = |context: &mut WorkerContext, name: &str| {
            let found = context.find(name.as_bytes());
            found.ok().map(|NamespaceIndex(index)| index)
        };
        assert_eq!(found(&mut context, "a"), None);
        for name in ["a", "b", "unknown"] {
            context.shared.setup.namespaces.open(name).unwrap();
        }
        for round in 0..3 {
            for (index, name) in ["a", "a", "b", "b"].into_iter().enumerate() {
                assert_eq!(found(&mut context, name), Some(index / 2), "{round}");
                // The last name is compared first.
                assert_eq!(context.last, index / 2);
                assert_eq!(context.namespace(NamespaceIndex(index / 2)).name, name);
            }
        }
        assert_eq!(context.known.len(), 2);
        let all: Vec<_> = context.all().iter().map(|one| one.name.clone()).collect();
        assert_eq!(all, ["a", "b", "unknown"]);
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let node = Announced::new("[2001:db8::1]:6379").unwrap();
        assert_eq!((&*node.host, node.port), ("2001:db8::1", 6379));
        assert_eq!(node.id.len(), 40);
        assert_eq!(Announced::new("ids.example.com"), None);
        assert_eq!(Announced::new("ids.example.com:port"), None);
    }
}
