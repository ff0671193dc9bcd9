//! The first record of a namespace, and the claim of its secret.

use serde_json::Value;

use super::cluster::{Change, Cluster};
use super::wire::{self, TxnReply};
use super::{clock, history, record};
use crate::lease::connect::deadline::Deadline;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::namespace::Namespace;
use crate::lease::record::StoreRecord;
use crate::lease::request::Init;
use crate::lease::voucher::{Trace, Voucher};

pub(super) fn run(
    cluster: &mut Cluster,
    namespace: &Namespace,
    init: &Init,
    voucher: Voucher,
    deadline: &Deadline,
) -> Result<StoreRecord, StoreError> {
    // Before anything is sent.
    init.limits.validate(namespace.layout())?;
    let claims = init.claims(namespace);
    let keys = keys_with_secrets(namespace, &claims);
    let blocks = record::all_blocks(namespace);
    let absent = voucher.is_doubtful(init).then_some(&blocks);
    cluster.change_where("init", &keys, absent, deadline, |_, reply| {
        let body = &reply.body;
        if body.key_value(0)?.is_some() {
            return Err(namespace.already_initialised());
        }
        let date_ms = reply.dated()?;
        let header = &body.header;
        let incarnation = history::new_incarnation(header);
        let record = StoreRecord::create_at(namespace, init, &incarnation, date_ms)?;
        let value = record::encode_record(&record, header.raft_term)?;
        let puts = puts(namespace, &keys, &claims, body, value)?;
        if absent.is_some() {
            if !claims.is_empty() && body.key_value(1)?.is_some() {
                return Err(Voucher::refusal(namespace, Trace::Secret));
            }
            if body.key_value(keys.len())?.is_some() {
                return Err(Voucher::refusal(namespace, Trace::Blocks));
            }
        }
        let nearest = clock::nearest(date_ms, deadline.elapsed(), init.now_unix_ms);
        record.check_skew(nearest, init.now_unix_ms)?;
        Ok(Change {
            puts,
            answer: record,
        })
    })
}

/// The keys of the record and, where there is one, of the namespace's secret: for each
/// fingerprint that no other namespace may have, its own first. A transaction compares them
/// all, so of two that claim one secret at two widths the second finds the first.
pub(super) fn keys_with_secrets(namespace: &Namespace, claims: &[Fingerprint]) -> Vec<String> {
    let secrets = claims.iter().map(|&claimed| record::secret_key(claimed));
    std::iter::once(record::record_key(namespace))
        .chain(secrets)
        .collect()
}

/// Writes this value of the record, and claims the namespace's secret unless another
/// namespace has. `reply` has these `keys` of [`keys_with_secrets`].
pub(super) fn puts(
    namespace: &Namespace,
    keys: &[String],
    claims: &[Fingerprint],
    reply: &TxnReply,
    value: String,
) -> Result<Vec<Value>, StoreError> {
    for (place, &claimed) in claims.iter().enumerate() {
        let owner = reply.key_value(place + 1)?;
        let owner = owner.map(|kv| String::from_utf8_lossy(&kv.value));
        namespace.check_secret(claimed, owner.as_deref())?;
    }
    let mut puts = Vec::with_capacity(2);
    for (key, value) in keys.iter().zip([value.as_str(), namespace.name()]) {
        puts.push(wire::put(key, value));
    }
    Ok(puts)
}
