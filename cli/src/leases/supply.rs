//! A generator on leases, for one run.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use ringflake::lease::{Fingerprint, Holder, LeasePlan, LeaseStore, Namespace};
use ringflake::{
    BuildError, CachedGenerator, CachedGeneratorBuilder, Clock, Layout, PaddingFill, Secret,
    StaticLease, SystemClock,
};

use super::place::Site;
use super::run_store::RunStore;
use super::terms::Terms;
use super::{Appetite, Ledger, Place};
use crate::args::SupplyArgs;
use crate::data_dir::DataDir;
use crate::report::say;
use crate::secret::Key;
use crate::usage::Misuse;

/// Where a run's IDs come from.
#[derive(Debug)]
pub(crate) struct Supply {
    pub(crate) generator: CachedGenerator,
    place: Place,
    ledger: Arc<Ledger>,
    wait: Duration,
    /// Whether it was said that the run goes on as the clock does.
    told: AtomicBool,
}

impl Supply {
    /// A generator with the leases that `args` name, shaped by `shape`. Waits for
    /// nodes that others hold. Refuses what the library will not do before anything
    /// is written or asked.
    pub(crate) fn new(
        args: &SupplyArgs,
        data_dir: &DataDir,
        appetite: Appetite,
        shape: impl Fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder,
    ) -> Result<Self> {
        let leases = &args.leases;
        if leases.nodes.given().is_some() && args.place.store.url().is_some() {
            let text = "--nodes is about leases.db: with --store the store chooses the nodes";
            return Err(Misuse(text.to_owned()).into());
        }
        let builder = || shape(CachedGenerator::builder(args.place.layout.layout));
        rehearse(args, builder())?;

        if leases.nodes.given().is_some() && args.place.store.namespace.is_some() {
            let text = "--nodes is about namespaces without a name: leave out one of the two";
            return Err(Misuse(text.to_owned()).into());
        }
        let place = Place::to_make_ids(&args.place, data_dir)?;
        let namespace = &place.namespace;
        let nodes = leases.nodes.given();
        let (terms, store): (_, Box<dyn LeaseStore>) = match &place.site {
            Site::DataDir(_) if nodes.is_some() && namespace.block_bits() > 0 => {
                let text = "--nodes is about namespaces without a name: this one has blocks of \
                            several nodes, and the store chooses them";
                return Err(Misuse(text.to_owned()).into());
            }
            Site::DataDir(space) => (
                Terms::embedded(namespace, leases, appetite, nodes.as_ref()),
                Box::new(space.store()?.within(nodes)),
            ),
            Site::Url(_) => (Terms::shared(namespace, leases, appetite), place.open()?),
        };
        let ledger = Arc::new(Ledger::new(namespace.clone()));
        let mut builder = place
            .key
            .give_to(builder())
            .namespace(namespace.name())
            .block_bits(namespace.block_bits())
            .blocks(terms.blocks)
            .lease_duration(terms.keeper_cover)
            .holder(this_process())
            // The store below waits for as long as it is to.
            .first_lease_within(Duration::ZERO);
        if let Some(widen_to) = terms.widen_to {
            builder = builder.widen_to(widen_to);
        }
        let store = RunStore {
            store,
            terms,
            ledger: Arc::clone(&ledger),
            wait: Some(leases.wait),
        };
        let generator = match builder.lease_store(store).build() {
            Err(BuildError::Store(error) | BuildError::NoLeaseYet { error, .. }) => {
                return Err(place.explain(error));
            }
            outcome => outcome?,
        };
        place.secret_was_given()?;
        Ok(Self {
            generator,
            place,
            ledger,
            wait: leases.wait,
            told: AtomicBool::new(false),
        })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.place.key
    }

    /// What the store has confirmed.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Waits for a moment while no lease is in force.
    ///
    /// # Errors
    /// What the store says, once it has said nothing better for too long. A run
    /// that has only used up its nodes goes on as the clock does.
    pub(crate) fn wait_out(&self, lull: &mut Lull) -> Result<()> {
        const SILENCE: Duration = Duration::from_secs(1);
        const MOMENT: Duration = Duration::from_millis(2);
        let health = self.generator.lease_status().map(|status| status.health);
        let trouble = health.and_then(|health| health.trouble.zip(health.failing_since_unix_ms));
        if let Some((error, since_unix_ms)) = trouble {
            let lasted = SystemClock.unix_ms().saturating_sub(since_unix_ms);
            if u128::from(lasted) >= self.wait.as_millis() {
                let context = format!("no lease has come for {} s", lasted / 1000);
                return Err(self.place.explain(error).context(context));
            }
        } else if lull.began().elapsed() >= SILENCE && !self.told.swap(true, Relaxed) {
            let layout = self.place.namespace.layout();
            say(format_args!(
                "the nodes at hand give {} IDs every {} ms each, and no more: going on as the \
                 clock does",
                layout.sequences(),
                layout.tick_ms()
            ));
        }
        thread::sleep(MOMENT);
        Ok(())
    }
}

/// A time without IDs.
#[derive(Debug, Default)]
pub(crate) struct Lull {
    began: Option<Instant>,
}

impl Lull {
    fn began(&mut self) -> Instant {
        *self.began.get_or_insert_with(Instant::now)
    }

    /// There are IDs again.
    pub(crate) fn end(&mut self) {
        self.began = None;
    }
}

/// Lets the library refuse what it will not do.
fn rehearse(args: &SupplyArgs, builder: CachedGeneratorBuilder) -> Result<()> {
    let layout: Layout = args.place.layout.layout;
    let key = if args.place.key.plain {
        Key::Plain
    } else {
        // Any will do: no ID is made.
        Key::Secret(Secret::from_bytes([0; 16]))
    };
    if let Some(cover) = args.leases.cover {
        // Any namespace: only the length of a tick counts.
        let namespace = Namespace::new("a", &layout, Fingerprint::PLAIN)?;
        LeasePlan::new(1)
            .with_lease_duration(cover)
            .validate(&namespace)?;
    }
    let nodes = args.leases.nodes.given().unwrap_or(0..layout.nodes());
    key.give_to(builder)
        .lease(StaticLease::assume_unique(layout, nodes))
        .padding_fill(PaddingFill::Off)
        .build()?;
    Ok(())
}

/// How this process is called in listings.
fn this_process() -> Holder {
    let host = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_default();
    Holder::new(host.trim(), std::process::id().to_string())
}
