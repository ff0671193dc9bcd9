//! The session of a client.

use super::budget::UNAUTHENTICATED_BYTES;
use super::context::{Missing, NamespaceIndex, Shared, WorkerContext};
use super::decode::Decoder;
use super::reply::{Protocol, Rejection};
use super::transaction::Transaction;
use crate::access::{Exceeded, Role};
use crate::clients::Client;

/// The state of a client from one request to the next.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) client: Client,
    pub(super) protocol: Protocol,
    token: Option<Box<[u8]>>,
    is_authenticated: bool,
    /// Of the rights by which the client is authenticated.
    rights_version: u64,
    pub(super) name: String,
    pub(super) library: [String; 2],
    pub(super) decoder: Decoder,
    /// Begun by `MULTI`.
    pub(super) transaction: Option<Box<Transaction>>,
    /// Whether a byte of a request was seen.
    pub(super) has_begun: bool,
    /// The namespace that was to be opened for the request in front.
    failed: Option<(String, Rejection)>,
}

impl Session {
    pub(super) fn new(number: u64, peer: String, client: Client, shared: &Shared) -> Self {
        let mut session = Self {
            number,
            peer,
            client,
            protocol: Protocol::default(),
            token: None,
            is_authenticated: false,
            rights_version: 0,
            name: String::new(),
            library: Default::default(),
            decoder: Decoder::new(0),
            transaction: None,
            has_begun: false,
            failed: None,
        };
        session.authenticate(None, shared);
        session
    }

    /// Sets the token, and with it how long requests may be.
    pub(super) fn authenticate(&mut self, token: Option<&[u8]>, shared: &Shared) {
        self.token = token.map(Into::into);
        // First, so that a change meanwhile is seen later.
        self.rights_version = shared.setup.drain.rights_version();
        self.is_authenticated = shared.knows(token);
        self.decoder.limit(match self.is_authenticated {
            true => shared.setup.limits.request_bytes,
            false => shared.setup.limits.request_bytes.min(UNAUTHENTICATED_BYTES),
        });
    }

    /// Whether a change of rights has taken all permissions from an authenticated client.
    pub(super) fn is_revoked(&mut self, shared: &Shared) -> bool {
        if self.rights_version == shared.setup.drain.rights_version() {
            return false;
        }
        let was_authenticated = self.is_authenticated;
        let token = self.token.take();
        self.authenticate(token.as_deref(), shared);
        was_authenticated && !self.is_authenticated
    }

    pub(super) fn token(&self) -> Option<&[u8]> {
        self.token.as_deref()
    }

    /// Whether the client has any permission, by its token or because none is needed.
    pub(super) const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, |queue| queue.bytes())
    }

    /// The namespace of `requests` that take `amount` IDs each, which are counted against the
    /// token's limits. Fails if none of the requests is allowed.
    pub(super) fn find_to_take(
        &mut self,
        name: &[u8],
        requests: usize,
        amount: usize,
        context: &mut WorkerContext,
    ) -> Result<Allowed, Missing> {
        let found = self.find(name, context);
        let (name, amount) = match &found {
            Ok(index) => (context.namespace(*index).name.as_str(), amount),
            // The take comes again once it is open, which not every token may cause.
            Err(Missing::Open(name)) => (name.as_str(), 0),
            Err(Missing::Rejected(rejection)) => return Err(Missing::Rejected(rejection.clone())),
        };
        match self.spend(Role::Take, name, requests, amount, context) {
            (0, Err(rejection)) => Err(Missing::Rejected(rejection)),
            (requests, others) => Ok(Allowed {
                namespace: found?,
                requests,
                others,
            }),
        }
    }

    /// Whether the client has this role. Logs a rejection.
    pub(super) fn check_right(&self, role: Role, context: &WorkerContext) -> Result<(), Rejection> {
        match context.rejection(role, self.token()) {
            Some(rejection) => Err(self.logged(role, None, rejection, context)),
            None => Ok(()),
        }
    }

    /// Counts requests of `amount` IDs (or 1) each against the limits of the token, which has this
    /// role. Returns how many of them are allowed, and why the others are not, which is logged.
    pub(super) fn spend(
        &self,
        role: Role,
        namespace: &str,
        requests: usize,
        amount: usize,
        context: &WorkerContext,
    ) -> (usize, Result<(), Rejection>) {
        let (rights, token) = (&context.shared.setup.rights, self.token());
        let (allowed, spent) = rights.spend_each(role, token, namespace, requests, amount as u64);
        let others = spent.map_err(|exceeded| {
            let rejection = match exceeded {
                Exceeded::Namespace => {
                    Rejection::new("NOPERM", "this token may not use this namespace")
                }
                Exceeded::Rate { retry_after } => Rejection::over_rate(retry_after),
            };
            self.logged(role, Some(namespace), rejection, context)
        });
        (allowed, others)
    }

    fn logged(
        &self,
        role: Role,
        namespace: Option<&str>,
        rejection: Rejection,
        context: &WorkerContext,
    ) -> Rejection {
        // Each connection has another port, and a network of IPv6 as many addresses as it likes.
        let client = self.client.to_string();
        let rights = &context.shared.setup.rights;
        rights.log_refusal(&client, role, self.token(), namespace, &rejection.why);
        rejection
    }

    /// The request in front can't be answered: its namespace was not opened.
    pub(super) fn open_failed(&mut self, name: String, why: Rejection) {
        self.failed = Some((name, why));
    }

    pub(super) fn find(
        &mut self,
        name: &[u8],
        context: &mut WorkerContext,
    ) -> Result<NamespaceIndex, Missing> {
        context.find(name).map_err(|missing| {
            let Missing::Open(name) = &missing else {
                return missing;
            };
            let failed = self.failed.take_if(|(failed, _)| failed == name);
            let rejection = failed.map(|(_, why)| why);
            rejection
                .or_else(|| has_colon(name, &context.shared.setup.config.key_prefix))
                .map_or(missing, Missing::Rejected)
        })
    }

    /// The namespace of a request that begins none.
    pub(super) fn find_made(
        &mut self,
        name: &[u8],
        context: &mut WorkerContext,
    ) -> Result<NamespaceIndex, Rejection> {
        self.find(name, context).map_err(|missing| match missing {
            Missing::Open(_) => Rejection::NOT_IN_USE,
            Missing::Rejected(rejection) => rejection,
        })
    }
}

/// The error for a key such as `app:orders`, of which `name` is left after `stripped` was cut
/// off. No namespace has a name with a colon.
fn has_colon(name: &str, stripped: &str) -> Option<Rejection> {
    let (prefix, rest) = name.rsplit_once(':')?;
    let dotted = name.replace(':', ".");
    let mut why = format!(
        "namespace name {name:?} contains ':', which is not allowed: use {dotted:?}, or set \
         resp.replace-colons = \".\" in the server's configuration"
    );
    if stripped.is_empty() && !rest.is_empty() {
        let prefix = format!("{prefix}:");
        why += &format!(", or resp.key-prefix = {prefix:?} to strip that from all keys");
    }
    Some(Rejection::of(why))
}

/// Takes that the limits of a token allow.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) namespace: NamespaceIndex,
    /// How many.
    pub(super) requests: usize,
    /// Why the others are refused, if there are any.
    pub(super) others: Result<(), Rejection>,
}
