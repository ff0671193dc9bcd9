//! Bringing back a block that is quarantined, under the comparison of every write.

use super::transaction::{Written, dated, range};
use super::{EtcdStore, clock, record, wire};
use crate::lease::block::{Block, BlockState};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Quarantined;

impl EtcdStore {
    /// As [`repair`](crate::lease::store::LeaseStore::repair).
    pub(super) fn repair_block(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let deadline = self.deadline();
        let record_key = record::record_key(namespace);
        let block_key = record::block_key(namespace, block);
        let ops = || {
            let keys = [&record_key, &block_key];
            keys.map(|key| wire::read(wire::get(key))).to_vec()
        };
        let mut reply = self.read(ops(), &deadline)?;
        loop {
            let opened = self.open(namespace, &reply.body)?;
            let date_ms = dated(reply.date_ms)?;
            let nearest = clock::nearest(date_ms, deadline.elapsed(), now_unix_ms);
            opened.record.check_skew(nearest, now_unix_ms)?;
            let now = opened.record.tick_at(date_ms)?;
            let found = range(&reply.body, 1)?.kvs.first();
            let damaged = found.filter(|kv| {
                let judged = record::judge(namespace, kv);
                matches!(judged, Err(Quarantined { block: Some(_), .. }))
            });
            let Some(kv) = damaged else {
                return Err(StoreError::NotQuarantined { block });
            };
            let repaired = opened.record.repaired(now, block, record::read_mark(kv));
            let compare = vec![
                wire::unchanged(&record_key, opened.mod_revision),
                wire::unchanged(&block_key, kv.mod_revision),
            ];
            let mut puts = vec![wire::put(&block_key, &record::encode_block(&repaired)?)];
            puts.extend(opened.new_term(&record_key)?);
            let header = &opened.header;
            match self.write("repair", header, compare, puts, ops(), &deadline)? {
                Written::Done => return Ok(repaired),
                Written::Overtaken(again) => reply = again,
            }
        }
    }
}
