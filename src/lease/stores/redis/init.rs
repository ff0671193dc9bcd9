//! The first record of a namespace: the arguments of its script, and its answer.

use super::answers::{self, disagreement};
use super::script::{self, Answer};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::request::{History, Init};
use crate::lease::row::RecordRow;
use crate::lease::voucher::{Trace, Voucher};

pub(super) struct Request<'a> {
    namespace: &'a Namespace,
    init: &'a Init,
    voucher: Voucher,
    claims: Vec<Fingerprint>,
    /// Without what the script adds.
    record: StoreRecord,
}

impl<'a> Request<'a> {
    /// # Errors
    /// [`StoreError::Invalid`] for what is out of range.
    pub(super) fn new(
        namespace: &'a Namespace,
        init: &'a Init,
        voucher: Voucher,
    ) -> Result<Self, StoreError> {
        // A time at which every layout has begun: the script looks at the clock.
        let layout = namespace.layout();
        let none = Incarnation::new("");
        let record = StoreRecord::create_at(namespace, init, &none, layout.epoch_unix_ms())?;
        let end = layout.end_unix_ms();
        if end > script::LATEST_END {
            return Err(StoreError::Invalid {
                what: "the end of the layout in milliseconds since 1970",
                value: end,
                min: 0,
                max: script::LATEST_END,
            });
        }
        Ok(Self {
            namespace,
            init,
            voucher,
            claims: init.claims(namespace),
            record,
        })
    }

    /// The arguments of `init.lua` after those that every script has.
    pub(super) fn arguments(&self) -> Vec<String> {
        let history = match self.init.history {
            History::Unused => "unused",
            History::New => "new",
            History::Unknown => "unknown",
        };
        let doubt = match self.voucher.is_doubtful(self.init) {
            true => "1",
            false => "0",
        };
        let client = self.init.now_unix_ms.to_string();
        let mut arguments = vec![history.to_owned(), doubt.to_owned(), client];
        arguments.extend(script::fields(&RecordRow::new(&self.record)));
        arguments.extend(self.claims.iter().map(Fingerprint::to_string));
        arguments
    }

    /// The record that `init.lua` has made, or why it has made none.
    pub(super) fn outcome(&self, answer: &Answer) -> Result<StoreRecord, StoreError> {
        let namespace = self.namespace;
        match &*answer.tag {
            "made" => answer.record(),
            "exists" => Err(namespace.already_initialised()),
            "in_use" => Err(answers::in_use(namespace, &self.claims, answer)),
            "traces" => Err(Voucher::refusal(
                namespace,
                match answer.text(0)? {
                    "secret" => Trace::Secret,
                    _ => Trace::Blocks,
                },
            )),
            "before" => {
                self.record.tick_at(answer.unix_ms)?;
                Err(disagreement())
            }
            "skew" => {
                let client_unix_ms = self.init.now_unix_ms;
                self.record.check_skew(answer.unix_ms, client_unix_ms)?;
                Err(disagreement())
            }
            _ => Err(disagreement()),
        }
    }
}
