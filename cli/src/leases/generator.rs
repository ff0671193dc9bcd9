//! A generator on leases, for one run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use ringflake::lease::{Fingerprint, History, LeasePlan, LeaseStore, Namespace, StoreError};
use ringflake::{
    BuildError, CachedGenerator, CachedGeneratorBuilder, Clock, Layout, Secret, StaticLease,
    SystemClock,
};

use super::audit_log::{AuditLog, AuditedStore};
use super::lease_request::{DemandEstimate, LeaseRequest};
use super::store_target::{Purpose, Site, StoreTarget};
use crate::args::SupplyArgs;
use crate::data_dir::DataDir;
use crate::report::{say, say_waiting};
use crate::secret::Key;

/// Where a run's IDs come from.
pub(crate) struct LeasedGenerator {
    pub(crate) generator: CachedGenerator,
    pub(crate) target: StoreTarget,
    /// The leases that the store has confirmed.
    pub(crate) audit_log: Arc<AuditLog>,
    wait: Duration,
    /// Whether it was said that the run goes on as the clock does.
    told: AtomicBool,
}

impl LeasedGenerator {
    /// A generator with the leases that `args` name, shaped by `shape`. Waits for
    /// nodes that others hold. Refuses what the library will not do before anything
    /// is written or asked.
    pub(crate) fn new(
        args: &SupplyArgs,
        data_dir: &DataDir,
        demand: DemandEstimate,
        shape: impl Fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder,
    ) -> Result<Self> {
        let leases = &args.leases;
        let builder = || shape(CachedGenerator::builder(args.target.layout.layout));
        rehearse(args, builder())?;

        let data_dir = data_dir.with_patience(leases.wait);
        let target = StoreTarget::find(&args.target, &data_dir, Purpose::MakeIds)?;
        let namespace = &target.namespace;
        let (request, store): (_, Box<dyn LeaseStore>) = match &target.site {
            Site::DataDir(space) => {
                let mut store = space.store()?;
                let in_the_future = space.begun == Some(History::Unknown)
                    || begins_in_the_future(&mut store, namespace);
                let request = LeaseRequest::embedded(namespace, leases, demand, in_the_future);
                (request, Box::new(store))
            }
            Site::Url(_) => (
                LeaseRequest::shared(namespace, leases, demand),
                target.open()?,
            ),
        };
        let audit_log = Arc::new(AuditLog::new(namespace.clone()));
        let mut builder = target
            .key
            .give_to(builder())
            .namespace(namespace.name())
            .block_bits(namespace.block_bits())
            .blocks(request.blocks)
            .first_lease_duration(request.first_duration)
            .lease_duration(request.duration)
            .first_lease_within(leases.wait)
            .on_lease_wait_hook(wait_notice());
        if let Some(widen_to) = request.widen_to {
            builder = builder.widen_to(widen_to);
        }
        let store = AuditedStore {
            store,
            audit_log: Arc::clone(&audit_log),
        };
        let generator = match builder.lease_store(store).build() {
            Err(BuildError::Store(error) | BuildError::NoLeaseYet { error, .. }) => {
                return Err(target.explain(error));
            }
            outcome => outcome?,
        };
        target.secret_was_given()?;
        Ok(Self {
            generator,
            target,
            audit_log,
            wait: leases.wait,
            told: AtomicBool::new(false),
        })
    }

    /// Waits for a moment while no lease is in force. `stalled` holds when the wait began.
    ///
    /// # Errors
    /// The store's last error, once the store has been failing for as long as `wait` allows. A run
    /// that has only used up its nodes goes on as the clock does.
    pub(crate) fn wait_out(&self, stalled: &mut Option<Instant>) -> Result<()> {
        const SILENCE: Duration = Duration::from_secs(1);
        const MOMENT: Duration = Duration::from_millis(2);
        let health = self.generator.lease_status().map(|status| status.health);
        let trouble = health.and_then(|health| health.last_error.zip(health.failing_since_unix_ms));
        if let Some((error, since_unix_ms)) = trouble {
            let lasted = SystemClock.unix_ms().saturating_sub(since_unix_ms);
            if u128::from(lasted) >= self.wait.as_millis() {
                let context = format!(
                    "no lease was granted for {}",
                    humantime::format_duration(Duration::from_secs(lasted / 1000))
                );
                return Err(self.target.explain(error).context(context));
            }
        } else if stalled.get_or_insert_with(Instant::now).elapsed() >= SILENCE
            && !self.told.swap(true, Relaxed)
        {
            let layout = self.target.namespace.layout();
            say(format_args!(
                "each node has {} IDs every {}: waiting for the clock",
                layout.sequences(),
                humantime::format_duration(Duration::from_millis(layout.tick_ms()))
            ));
        }
        thread::sleep(MOMENT);
        Ok(())
    }
}

/// Lets the library refuse what it will not do.
fn rehearse(args: &SupplyArgs, builder: CachedGeneratorBuilder) -> Result<()> {
    let layout: Layout = args.target.layout.layout;
    let given = &args.target.key;
    // Any will do: no ID is made.
    let secret = (!given.plain).then(|| Secret::from_bytes([0; 16]));
    let key = Key::new(secret, given.id_width);
    if let Some(duration) = args.leases.lease_duration {
        // Any namespace: only the length of a tick counts.
        let namespace = Namespace::new("a", &layout, Fingerprint::PLAIN)?;
        LeasePlan::new(1)
            .with_lease_duration(duration)
            .validate(&namespace)?;
    }
    key.give_to(builder)
        .lease(StaticLease::assume_unique(layout, 0..layout.nodes()))
        // What a run borrows ends with the leases of its store.
        .borrow_limit(Duration::ZERO)
        .check()?;
    Ok(())
}

/// Whether the floor lies ahead of the clock, as after it was raised. A store that can't
/// answer is left to the build, which reports it.
fn begins_in_the_future(store: &mut dyn LeaseStore, namespace: &Namespace) -> bool {
    store
        .check(namespace, SystemClock.unix_ms())
        .is_ok_and(|report| !report.floor_ahead().is_zero())
}

/// Says once what a run waits for, unless it is about to go on.
fn wait_notice() -> impl Fn(&StoreError) + Send + Sync + 'static {
    /// Most waits are shorter.
    const SILENCE: Duration = Duration::from_secs(1);
    let started = Instant::now();
    let told = AtomicBool::new(false);
    move |error| {
        let is_long = match error {
            StoreError::Exhausted { .. } => started.elapsed() >= SILENCE,
            StoreError::FloorAhead { retry_after, .. } => *retry_after >= SILENCE,
            _ => true,
        };
        // Relaxed: the flag stands for itself.
        if is_long && !told.swap(true, Relaxed) {
            say_waiting(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use ringflake::lease::{Floor, Init, MemoryStore};

    use super::*;

    #[test]
    fn a_floor_ahead_of_the_clock_is_seen() {
        let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let mut store = MemoryStore::new(Arc::new(SystemClock));
        assert!(!begins_in_the_future(&mut store, &orders), "no record");
        let now = SystemClock.unix_ms();
        store.init(&orders, &Init::new(History::New, now)).unwrap();
        assert!(!begins_in_the_future(&mut store, &orders));
        store
            .raise_floor(&orders, Floor::OverLostGrants, now)
            .unwrap();
        assert!(begins_in_the_future(&mut store, &orders));
    }
}
