//! The store that many teams have: a key for each node in a Redis, which goes away
//! by itself when its holder does not come back. It knows nothing of what the
//! holder has issued, so it gives what was borrowed a second time.

use redis::{Client, cmd};
use ringflake::lease::{
    Acquire, Block, Durability, Epoch, Grant, Incarnation, LeaseStore, Namespace, Renew,
    StoreError, StoreRecord, StoreReport,
};

use super::space::{LEASE_DURATION, limits};

/// Far less than what a greedy worker borrows.
const TTL_MS: u64 = 500;

#[derive(Debug)]
pub(crate) struct TtlOnly(Client);

impl TtlOnly {
    pub(crate) fn open(url: &str) -> Self {
        Self(Client::open(url).unwrap())
    }

    /// What no worker with this store does.
    fn forward<T>(&mut self, operation: &str, _: impl FnOnce(&mut Self) -> T) -> T {
        unreachable!("{operation}")
    }
}

fn key(block: Block) -> String {
    format!("ttl/{block}")
}

fn failed(error: redis::RedisError) -> StoreError {
    StoreError::Unavailable {
        source: Box::new(error),
    }
}

impl LeaseStore for TtlOnly {
    ringflake::forward_store! { self.forward =>
        init list raise_floor write_test
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let holder = u64::from(std::process::id());
        for block in (0..space.blocks()).map(Block::new) {
            let mut take = cmd("SET");
            take.arg(key(block)).arg(holder).arg(("NX", "PX", TTL_MS));
            if take.query(&mut self.0).map_err(failed)? {
                let start = space.layout().tick_at(acquire.now_unix_ms).unwrap();
                let ticks = start..start + acquire.length;
                return Ok(vec![Grant::new(block, Epoch::new(holder), ticks)]);
            }
        }
        Err(StoreError::Exhausted {
            wanted: acquire.blocks,
            blocks: space.blocks(),
            retry_after: LEASE_DURATION,
        })
    }

    fn renew(&mut self, _: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let mut renewal = cmd("PEXPIRE");
        renewal.arg((key(renew.block), TTL_MS));
        renewal.exec(&mut self.0).map_err(failed)?;
        Ok(renew.new_end)
    }

    fn release(&mut self, _: &Namespace, block: Block, _: Epoch) -> Result<(), StoreError> {
        cmd("DEL").arg(key(block)).exec(&mut self.0).map_err(failed)
    }

    fn check(&mut self, space: &Namespace, now: u64) -> Result<StoreReport, StoreError> {
        let incarnation = Incarnation::new("ttl");
        let record = StoreRecord::new(space.clone(), limits(), 0, incarnation.clone());
        let durability = Durability::Volatile;
        Ok(StoreReport::new(
            "ttl",
            record,
            incarnation,
            durability,
            now,
        ))
    }
}
