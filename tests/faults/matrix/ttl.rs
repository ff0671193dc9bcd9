//! The store that many teams have: a key for each node in a Redis, which goes away
//! by itself when its holder does not come back. It knows nothing of what the
//! holder has issued, so it gives what was borrowed a second time.

use std::collections::HashMap;

use redis::Connection;
use ringflake::lease::{
    Acquire, Block, Durability, Epoch, Floor, Grant, Incarnation, Init, LeaseStore, Listing,
    Namespace, Renew, StoreError, StoreRecord, StoreReport,
};

use super::space::{LEASE_DURATION, limits};
use super::witness::tick;

/// Far less than what a greedy worker borrows.
const TTL_MS: u64 = 500;

pub(crate) struct TtlOnly {
    connection: Connection,
    held: HashMap<u64, u64>,
}

impl std::fmt::Debug for TtlOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TtlOnly")
    }
}

impl TtlOnly {
    pub(crate) fn open(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        Self {
            connection: client.get_connection().unwrap(),
            held: HashMap::new(),
        }
    }
}

fn failed(error: redis::RedisError) -> StoreError {
    StoreError::Unavailable {
        source: Box::new(error),
    }
}

impl LeaseStore for TtlOnly {
    fn init(&mut self, _: &Namespace, _: &Init) -> Result<StoreRecord, StoreError> {
        unreachable!("a worker with this store initialises nothing")
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        for block in 0..space.blocks() {
            let taken: bool = redis::cmd("SET")
                .arg(format!("ttl/{block}"))
                .arg(std::process::id())
                .arg("NX")
                .arg("PX")
                .arg(TTL_MS)
                .query(&mut self.connection)
                .map_err(failed)?;
            if taken {
                let epoch = u64::from(std::process::id());
                self.held.insert(block, epoch);
                let start = tick(space.layout(), acquire.now_unix_ms);
                let ticks = start..start + acquire.length;
                return Ok(vec![Grant::new(
                    Block::new(block),
                    Epoch::new(epoch),
                    ticks,
                )]);
            }
        }
        Err(StoreError::Exhausted {
            wanted: acquire.blocks,
            blocks: space.blocks(),
            retry_after: LEASE_DURATION,
        })
    }

    fn renew(&mut self, _: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        redis::cmd("PEXPIRE")
            .arg(format!("ttl/{}", renew.block.index()))
            .arg(TTL_MS)
            .exec(&mut self.connection)
            .map_err(failed)?;
        Ok(renew.new_end)
    }

    fn release(&mut self, _: &Namespace, block: Block, _: Epoch) -> Result<(), StoreError> {
        redis::cmd("DEL")
            .arg(format!("ttl/{}", block.index()))
            .exec(&mut self.connection)
            .map_err(failed)
    }

    fn list(&mut self, _: &Namespace) -> Result<Listing, StoreError> {
        unreachable!("nobody lists it")
    }

    fn raise_floor(&mut self, _: &Namespace, _: Floor, _: u64) -> Result<u64, StoreError> {
        unreachable!("it has no floor")
    }

    fn check(&mut self, space: &Namespace, now: u64) -> Result<StoreReport, StoreError> {
        let incarnation = Incarnation::new("ttl");
        let record = StoreRecord::new(space.clone(), limits(), 0, incarnation.clone());
        Ok(StoreReport::new(
            "ttl",
            record,
            incarnation,
            Durability::Volatile,
            now,
        ))
    }
}
