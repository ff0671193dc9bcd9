//! Leases for generators that are no part of this server: in Go, in Java, in whatever speaks
//! HTTP.
//!
//! # A lease
//! It is a rectangle: nodes `[start, end)` and ticks `[from, until)`. Its holder may issue
//! any ID with a node and a tick out of it, each once, and nothing else. It needs no clock
//! for that: a tick that it chooses to issue in is one of the rectangle, or it is none.
//!
//! ```text
//!              acquire                     renew: [from, until) becomes [from, later)
//! (nothing) ------------> held <---------------------------------------------+
//!                          | |                                               |
//!                          | +-----------------------------------------------+
//!                          |
//!                          +-- release, or renew answers "lost" --> ended: issues nothing
//!                          +-- no answer --> held as before, up to the `until` that it knows
//! ```
//! A lease that reaches its `until` has no ticks left. It may still be renewed for as long as
//! its block was not given to another.
//!
//! # What the server keeps of it
//! Nothing. A lease is a grant of the namespace's own `LeaseStore`, acquired, renewed and
//! released there as a generator does it, in one call for each request. The client keeps the
//! rest, in the [text] that names the lease: block, epoch, and the end as the store
//! confirmed it. So a server can crash, start again, or be another one before the same store.
//!
//! Where the server keeps leases in reserve in a tier, those of clients still come from the store
//! above it, so that any server can renew and release them.
//!
//! # Why no ID comes twice
//! 1. Two leases of clients, or one and one of any generator, are grants of one store. Those
//!    are disjoint (S1, S6), and so are those below a tier (S9). Each call compares layout, size of
//!    blocks and fingerprint with those on record in its own step (S5), so that the rectangle
//!    means the same to all.
//! 2. A client knows a rectangle only from a positive answer (S2), and each answer of the
//!    store goes into one answer of the server: calls are never repeated, and answers never
//!    kept. A lease that can't be handed over is nobody's, and is released.
//! 3. A renewal is the store's compare-and-set on epoch and known end, and moves that end. So of
//!    all requests with one text, from copies of a client and repetitions included, at most one is
//!    given the ticks after it. The others lose the lease, and keep the ticks that they had of it,
//!    which only a copied memory (S4) has twice.
//! 4. A release leaves the mark: the next lease begins at the end of the released one. A client
//!    that goes on using a released lease, against the rules, still issues its own ticks.
//! 5. A text that is old, or made up, names an epoch or an end that is not on record, and is
//!    refused. One that happens to be right gets what rule 3 gives: ticks after the end on record.
//!    The tag keeps a client its lease, and keeps `from`, which is not on record, as the store gave
//!    it. A forged text gains nothing beyond a lease.
//! 6. A store that lost its history shows it by an incarnation, or by a client's evidence (S8): the
//!    texts of leases that it had, given to the next acquisition. The tag proves that the store
//!    confirmed them. Without a secret it proves nothing, and all texts are ignored.
//!
//! The client is responsible for S3 and S4: each raw once, in one memory.
//!
//! # Bounds
//! | of | by | then |
//! |---|---|---|
//! | blocks of one request | `Limits::leases` | refused |
//! | blocks given away in a minute, of each namespace | `Limits::leases_per_minute` | refused, with the time to wait |
//! | calls that wait for one store | `MAX_QUEUED` | refused |
//! | how far a lease reaches | the namespace's horizon (S7) | it ends there |

mod service;
mod terms;
mod text;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringflake::Clock;
use ringflake::lease::{Acquire, Grant, Holder, Renew, StoreError};

use self::service::{LeaseService, lock};
pub(crate) use self::terms::{
    AcquireRequest, DEFAULT_DURATION, Granted, MOST_DURATION, MOST_HAD, Origin, Refusal, Size,
    Sublease,
};
pub(crate) use self::text::MOST_BYTES as MOST_TEXT;
use crate::causes::Causes;
use crate::limits::Limits;
use crate::namespaces::OpenError;

/// Opens the store of a namespace that has been used before. Asks no server.
pub(crate) type Open = Box<dyn Fn(&str) -> Result<Origin, OpenError> + Send + Sync>;

/// Gives leases to clients. Its methods block for as long as a store does.
pub(crate) struct Subleases {
    open: Open,
    clock: Arc<dyn Clock>,
    most_blocks: u32,
    per_minute: u32,
    /// Locked for moments.
    services: Mutex<HashMap<String, Arc<LeaseService>>>,
    counts: Counts,
}

/// How much was given, renewed, released and refused since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) given: AtomicU64,
    pub(crate) renewed: AtomicU64,
    pub(crate) released: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Subleases {
    pub(crate) fn new(open: Open, clock: Arc<dyn Clock>, limits: &Limits) -> Self {
        let number = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        Self {
            open,
            clock,
            // More than there are in a minute could never be paid.
            most_blocks: number(limits.leases.min(limits.leases_per_minute)),
            per_minute: number(limits.leases_per_minute),
            services: Mutex::default(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Leases of this namespace, one for each block; fewer than wanted where the store has no
    /// more, but one at least.
    pub(crate) fn acquire(&self, name: &str, wanted: &AcquireRequest) -> Result<Granted, Refusal> {
        let given = self.service(name).and_then(|service| {
            let grants = self.grants(&service, wanted)?;
            Ok(self.given(&service, grants))
        });
        self.count(given, |given| (&self.counts.given, given.leases.len()))
    }

    fn grants(
        &self,
        service: &LeaseService,
        wanted: &AcquireRequest,
    ) -> Result<Vec<Grant>, Refusal> {
        let blocks = service.blocks(wanted.size, self.most_blocks)?;
        let evidence = service.evidence(&wanted.had)?;
        let _permit = service.enter_queue()?;
        lock(&service.budget)
            .take(u64::from(blocks), Instant::now())
            .map_err(Refusal::OverBudget)?;
        let via = Holder::this_process();
        let holder = Holder::new(
            wanted.holder.as_deref().unwrap_or("a client"),
            format!("via {via}"),
        );
        let mut store = lock(&service.store);
        let now = self.clock.unix_ms();
        let length = service.ticks(wanted.duration);
        let acquire = Acquire::new(blocks, length, now)
            .held_by(holder)
            .with_evidence(evidence);
        let outcome = store.acquire(&service.namespace, &acquire);
        drop(store);
        if let Err(error @ StoreError::HistoryLost { .. }) = &outcome {
            // As of a generator.
            let namespace = &service.parameters.namespace;
            tracing::error!(target: "ringflake", namespace, %error, "lease history lost");
        }
        let unused = match &outcome {
            Ok(grants) => blocks.saturating_sub(u32::try_from(grants.len()).unwrap_or(blocks)),
            // They may have been granted.
            Err(StoreError::Ambiguous { .. }) => 0,
            Err(_) => blocks,
        };
        lock(&service.budget).put_back(u64::from(unused));
        Ok(outcome?)
    }

    /// The lease with this text, up to `duration` ahead of the clock or to where it ends
    /// already, if that is later.
    pub(crate) fn renew(&self, text: &str, duration: Duration) -> Result<Granted, Refusal> {
        let given = self.find(text).and_then(|(service, mut grant)| {
            let _permit = service.enter_queue()?;
            let mut store = lock(&service.store);
            let now = self.clock.unix_ms();
            let layout = service.namespace.layout();
            let tick = layout.tick_at(now).ok_or(StoreError::BeforeEpoch {
                unix_ms: now,
                epoch_unix_ms: layout.epoch_unix_ms(),
            })?;
            let end = tick.saturating_add(service.ticks(duration));
            let renew = Renew::new(&grant, end.max(grant.ticks.end), now);
            grant.ticks.end = store.renew(&service.namespace, &renew)?;
            drop(store);
            Ok(self.given(&service, vec![grant]))
        });
        self.count(given, |_| (&self.counts.renewed, 1))
    }

    /// Ends the lease with this text, so that the store can give its block to others. They
    /// begin where it would have ended.
    pub(crate) fn release(&self, text: &str) -> Result<Granted, Refusal> {
        let given = self.find(text).and_then(|(service, grant)| {
            let _permit = service.enter_queue()?;
            let mut store = lock(&service.store);
            store.release(&service.namespace, grant.block, grant.epoch)?;
            drop(store);
            Ok(self.given(&service, vec![grant]))
        });
        self.count(given, |_| (&self.counts.released, 1))
    }

    /// Releases leases whose client is gone. A failure is passed over: their blocks come free at
    /// their end.
    pub(crate) fn give_back(&self, given: &Granted) {
        for lease in &given.leases {
            let _ = self.release(&lease.text);
        }
    }

    /// The namespace that a lease names, which need not be true.
    pub(crate) fn namespace_of(text: &str) -> Option<String> {
        Some(text::read(text)?.namespace().to_owned())
    }

    /// The namespace of the lease that a text names, and its grant.
    fn find(&self, text: &str) -> Result<(Arc<LeaseService>, Grant), Refusal> {
        let unproven = text::read(text).ok_or(Refusal::Unknown)?;
        let service = self
            .service(unproven.namespace())
            .map_err(|refusal| match refusal {
                // Any text can name any namespace.
                Refusal::Open(OpenError::Unknown | OpenError::Name(_)) => Refusal::Unknown,
                refusal => refusal,
            })?;
        let grant = unproven.prove(&service.key).ok_or(Refusal::Unknown)?;
        Ok((service, grant))
    }

    fn service(&self, name: &str) -> Result<Arc<LeaseService>, Refusal> {
        if let Some(service) = lock(&self.services).get(name) {
            return Ok(Arc::clone(service));
        }
        let service = (self.open)(name).map_err(|error| {
            // Any client can name what is not there.
            if !matches!(error, OpenError::Unknown | OpenError::Name(_)) {
                let error = Causes(&error);
                tracing::warn!(namespace = name, %error, "the lease store can't be opened");
            }
            Refusal::Open(error)
        })?;
        let service = Arc::new(LeaseService::new(service, self.per_minute));
        // Of two that were opened at once one stays.
        let mut services = lock(&self.services);
        Ok(Arc::clone(
            services.entry(name.to_owned()).or_insert(service),
        ))
    }

    fn given(&self, service: &LeaseService, grants: Vec<Grant>) -> Granted {
        let name = &service.parameters.namespace;
        let leases = grants.into_iter().map(|grant| Sublease {
            text: text::write(&service.key, name, &grant),
            nodes: service.namespace.nodes_of(grant.block),
            ticks: grant.ticks.clone(),
            grant,
        });
        Granted {
            parameters: service.parameters.clone(),
            leases: leases.collect(),
            unix_ms: self.clock.unix_ms(),
        }
    }

    fn count<'a>(
        &'a self,
        given: Result<Granted, Refusal>,
        success: impl FnOnce(&Granted) -> (&'a AtomicU64, usize),
    ) -> Result<Granted, Refusal> {
        let (count, more) = match &given {
            Ok(given) => success(given),
            Err(_) => (&self.counts.refused, 1),
        };
        // A figure, which orders nothing.
        count.fetch_add(more as u64, Ordering::Relaxed);
        given
    }
}

#[cfg(test)]
pub(crate) mod tests;
