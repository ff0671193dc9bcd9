//! A namespace that leases are given of, and the queue before its store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringflake::lease::{Confirmed, Grant, LeaseStore, Namespace};

use super::terms::{MOST_HAD, Origin, Parameters, Refusal, Size};
use super::text::{self, Key};
use crate::rate::Bucket;

/// How many calls may wait for a store of one namespace, that of the one who has it included.
const MAX_QUEUED: usize = 32;

/// A namespace, its store, and who waits for that.
pub(super) struct LeaseService {
    /// With the name that it is served by, as in texts.
    pub(super) parameters: Parameters,
    /// As the store has it.
    pub(super) namespace: Namespace,
    pub(super) key: Key,
    pub(super) store: Mutex<Box<dyn LeaseStore>>,
    pub(super) budget: Mutex<Bucket>,
    /// How many have or want the store.
    pub(super) queued: AtomicUsize,
}

impl LeaseService {
    pub(super) fn new(origin: Origin, per_minute: u32) -> Self {
        let per_minute = f64::from(per_minute);
        let budget = Bucket::new(per_minute / 60.0, per_minute, Instant::now());
        Self {
            parameters: Parameters {
                namespace: origin.name,
                layout: *origin.namespace.layout(),
                id_width: origin.id_width,
                is_encrypted: origin.secret.is_some(),
            },
            namespace: origin.namespace,
            key: Key::of(origin.secret.as_ref()),
            store: Mutex::new(origin.store),
            budget: Mutex::new(budget),
            queued: AtomicUsize::new(0),
        }
    }

    /// Rounded up, and one at least.
    pub(super) fn ticks(&self, duration: Duration) -> u64 {
        let tick = u128::from(self.namespace.layout().tick_ms());
        u64::try_from(duration.as_millis().div_ceil(tick)).map_or(u64::MAX, |ticks| ticks.max(1))
    }

    /// How many blocks that is, of which a request may have up to `most`.
    pub(super) fn blocks(&self, size: Size, most: u32) -> Result<u32, Refusal> {
        let a_block = self.namespace.block_nodes();
        let blocks = match size {
            Size::Blocks(blocks) => blocks,
            Size::Nodes(nodes) => nodes.div_ceil(a_block),
        };
        let allowed = u32::try_from(blocks).ok();
        let allowed = allowed.filter(|blocks| (1..=most).contains(blocks));
        allowed.ok_or_else(|| {
            Refusal::Invalid(format!(
                "so many nodes are not allowed at once: give 1 to {most} for blocks, or 1 to {} \
                 for nodes, of which a block has {a_block}",
                u64::from(most).saturating_mul(a_block),
            ))
        })
    }

    /// The store's confirmations that these texts are, the latest of each block: evidence for its
    /// next acquisition. None where there is no secret: anybody can write a text then, and
    /// evidence stops a namespace.
    pub(super) fn evidence(&self, texts: &[String]) -> Result<Vec<Confirmed>, Refusal> {
        if texts.len() > MOST_HAD {
            return Err(Refusal::Invalid(format!(
                "so many leases in had are not allowed: give the last {MOST_HAD} at most"
            )));
        }
        if !self.parameters.is_encrypted {
            return Ok(Vec::new());
        }
        let lease = |text: &String| {
            let unproven = text::read(text)?;
            let is_of_this = unproven.namespace() == self.parameters.namespace;
            unproven.prove(&self.key).filter(|_| is_of_this)
        };
        let mut latest: Vec<Confirmed> = Vec::new();
        for text in texts {
            let Grant {
                block,
                epoch,
                ticks,
                ..
            } = lease(text).ok_or_else(|| {
                Refusal::Invalid(
                    "had names what is no lease of this namespace: leave it out".to_owned(),
                )
            })?;
            let confirmed = Confirmed::new(block, epoch, ticks.end);
            match latest.iter_mut().find(|own| own.block == block) {
                Some(own) if (own.epoch, own.end) < (epoch, ticks.end) => *own = confirmed,
                Some(_) => {}
                None => latest.push(confirmed),
            }
        }
        Ok(latest)
    }

    pub(super) fn enter_queue(&self) -> Result<QueuePermit<'_>, Refusal> {
        // It orders nothing: the lock of the store does.
        let before = self.queued.fetch_add(1, Ordering::Relaxed);
        let permit = QueuePermit(&self.queued);
        match before < MAX_QUEUED {
            true => Ok(permit),
            false => Err(Refusal::Busy),
        }
    }
}

pub(super) struct QueuePermit<'a>(&'a AtomicUsize);

impl Drop for QueuePermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that panicked leaves at worst a store whose connection is gone, or a count that is
/// too low.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
