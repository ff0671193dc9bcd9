//! A namespace that leases are given of, and the line before its store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringflake::lease::{Confirmed, LeaseStore, Namespace};

use super::budget::Budget;
use super::terms::{MOST_HAD, Origin, Refusal, Shape, Size};
use super::text::{self, Key};

/// How many calls may wait for a store of one namespace, that of the one who has it included.
pub(super) const LINE: usize = 32;

/// One namespace.
pub(super) struct Desk {
    pub(super) shape: Shape,
    pub(super) namespace: Namespace,
    pub(super) key: Key,
    pub(super) store: Mutex<Box<dyn LeaseStore>>,
    pub(super) budget: Mutex<Budget>,
    /// How many have or want the store.
    pub(super) line: AtomicUsize,
}

impl Desk {
    pub(super) fn new(origin: Origin, per_minute: u32) -> Self {
        let Origin {
            namespace,
            secret,
            id_width,
            store,
        } = origin;
        Self {
            shape: Shape {
                namespace: namespace.name().to_owned(),
                layout: *namespace.layout(),
                id_width,
                is_encrypted: secret.is_some(),
            },
            namespace,
            key: Key::of(secret.as_ref()),
            store: Mutex::new(store),
            budget: Mutex::new(Budget::new(per_minute, Instant::now())),
            line: AtomicUsize::new(0),
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

    /// What the store has confirmed of these, the latest of each block. Nothing where there
    /// is no secret: anybody can write a text then, and what is evidence stops a namespace.
    pub(super) fn evidence(&self, texts: &[String]) -> Result<Vec<Confirmed>, Refusal> {
        if texts.len() > MOST_HAD {
            return Err(Refusal::Invalid(format!(
                "so many leases in had are not allowed: give the last {MOST_HAD} at most"
            )));
        }
        if !self.shape.is_encrypted {
            return Ok(Vec::new());
        }
        let mut latest: Vec<Confirmed> = Vec::new();
        for text in texts {
            let unproven = text::read(text);
            let of_this = unproven.filter(|own| own.namespace() == self.namespace.name());
            let grant = of_this.and_then(|unproven| unproven.prove(&self.key));
            let grant = grant.ok_or_else(|| {
                Refusal::Invalid(
                    "had names what is no lease of this namespace: leave it out".to_owned(),
                )
            })?;
            let confirmed = Confirmed::new(grant.block, grant.epoch, grant.ticks.end);
            match latest.iter_mut().find(|own| own.block == confirmed.block) {
                Some(own) if (own.epoch, own.end) < (confirmed.epoch, confirmed.end) => {
                    *own = confirmed;
                }
                Some(_) => {}
                None => latest.push(confirmed),
            }
        }
        Ok(latest)
    }

    pub(super) fn stand_in_line(&self) -> Result<Place<'_>, Refusal> {
        // It orders nothing: the lock of the store does.
        let before = self.line.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.line);
        match before < LINE {
            true => Ok(place),
            false => Err(Refusal::Busy),
        }
    }
}

/// A place in the line of a store.
pub(super) struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that panicked leaves at worst a store whose connection is gone, or a count that is
/// too low.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
