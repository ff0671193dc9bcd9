//! What is known of a client from one request to the next.

use super::context::{Lookup, NamespaceIndex, OpenFailure, Refusal, WorkerContext};
use super::decode::Decoder;
use super::reply::Protocol;
use crate::access::Role;

/// What a client has said of itself, and what it waits for.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) protocol: Protocol,
    pub(super) token: Option<Box<[u8]>>,
    pub(super) name: String,
    pub(super) library: [String; 2],
    pub(super) decoder: Decoder,
    /// Behind a `MULTI`, which was refused as all up to its end will be.
    pub(super) is_in_transaction: bool,
    /// The namespace that was to be opened for the request in front.
    failed: Option<(String, OpenFailure)>,
}

impl Session {
    pub(super) fn new(number: u64, peer: String, request_bytes: usize) -> Self {
        Self {
            number,
            peer,
            protocol: Protocol::default(),
            token: None,
            name: String::new(),
            library: Default::default(),
            decoder: Decoder::new(request_bytes),
            is_in_transaction: false,
            failed: None,
        }
    }

    /// Counts IDs, or one request, against the limits of the token, which has this role.
    pub(super) fn spend(
        &self,
        role: Role,
        namespace: &[u8],
        amount: usize,
        context: &WorkerContext,
    ) -> Option<Refusal> {
        // Another name is refused when it is looked up.
        let namespace = std::str::from_utf8(namespace).ok()?;
        context.spend(role, self.token.as_deref(), namespace, amount)
    }

    pub(super) fn log_refusal(&self, role: Role, refusal: Refusal, context: &WorkerContext) {
        let rights = &context.shared.rights;
        // Each connection has another port.
        let peer = match self.peer.rsplit_once(':') {
            Some((address, _)) => address,
            None => &self.peer,
        };
        rights.log_refusal(peer, role, self.token.as_deref(), refusal.why);
    }

    /// The request in front can't be answered: its namespace was not opened.
    pub(super) fn open_failed(&mut self, name: String, failure: OpenFailure) {
        self.failed = Some((name, failure));
    }

    /// The namespace of a request.
    pub(super) fn find(
        &mut self,
        name: &[u8],
        context: &mut WorkerContext,
    ) -> Result<NamespaceIndex, Missing> {
        match context.find(name) {
            Lookup::Made(namespace) => Ok(namespace),
            Lookup::Impossible(failure) => Err(Missing::Failed(failure)),
            Lookup::Unknown(name) => match self.failed.take_if(|(failed, _)| failed == name) {
                Some((_, failure)) => Err(Missing::Failed(failure)),
                None => Err(Missing::Open(name.to_owned())),
            },
        }
    }

    /// The namespace of a request that begins none.
    pub(super) fn find_made(
        &self,
        name: &[u8],
        context: &mut WorkerContext,
    ) -> Result<NamespaceIndex, OpenFailure> {
        match context.find(name) {
            Lookup::Made(namespace) => Ok(namespace),
            Lookup::Impossible(failure) => Err(failure),
            Lookup::Unknown(_) => Err(OpenFailure::NotInUse),
        }
    }
}

/// Why there is no namespace for a request.
#[derive(Debug)]
pub(super) enum Missing {
    /// It has to be opened first.
    Open(String),
    Failed(OpenFailure),
}
