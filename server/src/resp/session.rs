//! What is known of a client from one request to the next.

use super::answer::Answer;
use super::decode::Decoder;
use super::desk::{Desk, Lookup, Met, OpenFailure};
use super::reply::Protocol;
use crate::clients::Client;

/// What a client has said of itself, and what it waits for.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) client: Client,
    pub(super) protocol: Protocol,
    pub(super) token: Option<Box<[u8]>>,
    pub(super) name: String,
    pub(super) library: [String; 2],
    pub(super) decoder: Decoder,
    pub(super) answer: Option<Box<Answer>>,
    /// Behind a `MULTI`, which was refused as all up to its end will be.
    pub(super) is_in_transaction: bool,
    /// The namespace that was to be opened for the request in front.
    failed: Option<(String, OpenFailure)>,
}

impl Session {
    pub(super) fn new(number: u64, peer: String, client: Client, request_bytes: usize) -> Self {
        Self {
            number,
            peer,
            client,
            protocol: Protocol::default(),
            token: None,
            name: String::new(),
            library: Default::default(),
            decoder: Decoder::new(request_bytes),
            answer: None,
            is_in_transaction: false,
            failed: None,
        }
    }

    /// The request in front can't be answered: its namespace was not opened.
    pub(super) fn open_failed(&mut self, name: String, failure: OpenFailure) {
        self.failed = Some((name, failure));
    }

    /// Whether a reply is not written as a whole.
    pub(super) fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Gives up what is set aside for it. What was taken for it is lost.
    pub(super) fn end(&mut self, desk: &mut Desk) {
        if let Some(mut answer) = self.answer.take() {
            answer.end(desk);
        }
    }

    /// The namespace of a request.
    pub(super) fn find(&mut self, name: &[u8], desk: &mut Desk) -> Result<Met, Missing> {
        match desk.find(name) {
            Lookup::Made(namespace) => Ok(namespace),
            Lookup::Impossible(failure) => Err(Missing::Failed(failure)),
            Lookup::Unknown(name) => match self.failed.take_if(|(failed, _)| failed == name) {
                Some((_, failure)) => Err(Missing::Failed(failure)),
                None => Err(Missing::Open(name.to_owned())),
            },
        }
    }

    /// The namespace of a request that begins none.
    pub(super) fn find_made(&self, name: &[u8], desk: &mut Desk) -> Result<Met, OpenFailure> {
        match desk.find(name) {
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
