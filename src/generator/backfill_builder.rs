//! The builder of a backfill generator.

use std::ops::Range;
use std::time::SystemTime;

use super::backfill::BackfillGenerator;
use super::backing::LeaseBacking;
use super::error::BuildError;
use super::options::{cipher_options, namespace_options};
use super::setup::Setup;
use crate::clock::{Clock, SystemClock};
use crate::layout::Layout;
use crate::lease::{Acquire, Holder, Lease, LeaseStore, StoreError};

impl BackfillGenerator {
    /// Starts building a generator for IDs of `layout`, which may have ended.
    #[doc(alias = "new")]
    pub fn builder(layout: Layout) -> BackfillGeneratorBuilder {
        BackfillGeneratorBuilder {
            setup: Setup::new(layout),
            lease: None,
            moments: None,
        }
    }
}

/// Configures a [`BackfillGenerator`]. It has the options of the other builders that are not
/// about the present: there is no clock to choose, and a store is asked once.
#[derive(Debug)]
#[must_use = "nothing is built before `build`"]
pub struct BackfillGeneratorBuilder {
    setup: Setup,
    lease: Option<Lease>,
    moments: Option<Range<SystemTime>>,
}

impl BackfillGeneratorBuilder {
    cipher_options!();
    namespace_options!();

    /// The nodes and past ticks to make IDs of; see
    /// [`StaticLease::assume_unique_past`](crate::StaticLease::assume_unique_past). Instead of
    /// [`lease_store`](Self::lease_store).
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Has the nodes granted by `store`, for the moments [`between`](Self::between) two:
    /// [one block](Acquire::past) of the [`namespace`](Self::namespace), which nobody else is
    /// granted for any tick of them. An import that needs more IDs of a tick builds a second
    /// generator, which has another block.
    ///
    /// [`build`](Self::build) asks once, and closes the connection. The block stays granted for
    /// the time up to the end of these moments, whatever becomes of the generator. So each run
    /// of an import takes a block of which nothing was granted from its first moment on. A
    /// namespace has 4,096 blocks by default, and the generators of the present take those
    /// never granted as well.
    ///
    /// If the store was ever put back to an earlier state, raise its floor before:
    /// [`Acquire::past`] says why.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use ringflake::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace};
    /// use ringflake::{BackfillGenerator, Clock, Layout, SystemClock};
    ///
    /// // Once for all: `ringflake store init --history unused` does the same.
    /// let mut store = MemoryStore::new(Arc::new(SystemClock));
    /// let orders = Namespace::new("orders", &Layout::TWITTER, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::Unused, SystemClock.unix_ms()))?;
    ///
    /// // Rows of November 2024.
    /// let [from, to] = [1_730_419_200, 1_733_011_200].map(|s| UNIX_EPOCH + Duration::from_secs(s));
    /// let past = BackfillGenerator::builder(Layout::TWITTER)
    ///     .plain()
    ///     .lease_store(store)
    ///     .namespace("orders")
    ///     .between(from..to)
    ///     .build()?;
    /// let id = past.take_at(from + Duration::from_secs(86_400))?;
    /// assert_eq!(past.inspect(id)?.unix_ms, 1_730_505_600_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lease_store(mut self, store: impl LeaseStore + 'static) -> Self {
        self.setup.store = Some(Box::new(store));
        self
    }

    /// The moments of the rows, for [`lease_store`](Self::lease_store): the end is not among
    /// them. All ticks that they lie in must be over.
    pub fn between(mut self, moments: Range<SystemTime>) -> Self {
        self.moments = Some(moments);
        self
    }

    /// Checks everything and makes the generator. Asks the store, if there is one, and waits
    /// for it as long as its time-outs allow.
    ///
    /// # Errors
    ///
    /// [`BuildError`] with the value that is wrong and what is allowed.
    /// [`BuildError::LeaseTaken`] while any generator of this process uses some of the nodes
    /// and ticks, and [`BuildError::LeaseUsed`] where one did. [`BuildError::LeaseNotPast`] if
    /// some of the ticks are not over by the system's clock: generators of the present make
    /// their IDs. [`BuildError::Store`] with the store's refusal: of the past that may be
    /// [`StoreError::BeforeFloor`] or
    /// [`StoreError::PastExhausted`]. An error after
    /// the store's grant costs the block.
    pub fn build(self) -> Result<BackfillGenerator, BuildError> {
        let Self {
            mut setup,
            lease,
            moments,
        } = self;
        setup.check_width()?;
        let cipher = setup.cipher()?;
        let lease = match (lease, setup.store.take()) {
            (None, None) => return Err(BuildError::NoLease),
            (Some(_), Some(_)) => return Err(BuildError::TwoLeases),
            (Some(lease), None) => {
                setup.lease_options.check_unused()?;
                if moments.is_some() {
                    let option = "between";
                    return Err(BuildError::NoStore { option });
                }
                check_past(&setup.layout, lease.ticks().end, SystemClock.unix_ms())?;
                lease
            }
            (None, Some(store)) => {
                let moments = moments.ok_or(BuildError::NoMoments)?;
                granted(&setup, store, &moments)?
            }
        };
        let (rest, claimed) = LeaseBacking::past(lease, &setup.layout, setup.secret.as_ref())?;
        BackfillGenerator::new(rest, claimed, cipher).map_err(BuildError::System)
    }
}

/// Refuses ticks that are not over.
fn check_past(layout: &Layout, end: u64, now_unix_ms: u64) -> Result<(), BuildError> {
    let end_unix_ms = layout.tick_start_unix_ms(end);
    if end_unix_ms > now_unix_ms {
        return Err(BuildError::LeaseNotPast {
            end_unix_ms,
            now_unix_ms,
        });
    }
    Ok(())
}

/// The lease that the store grants for the ticks of these moments.
fn granted(
    setup: &Setup,
    mut store: Box<dyn LeaseStore>,
    moments: &Range<SystemTime>,
) -> Result<Lease, BuildError> {
    let (layout, options) = (&setup.layout, &setup.lease_options);
    let ticks = ticks_of(layout, moments)?;
    let namespace = options.namespace(layout, setup.fingerprint())?;
    let now_unix_ms = SystemClock.unix_ms();
    check_past(layout, ticks.end, now_unix_ms)?;
    let holder = options.holder.clone();
    let acquire = Acquire::past(1, ticks.clone(), now_unix_ms)
        .held_by(holder.unwrap_or_else(Holder::this_process));
    let grants = store
        .acquire(&namespace, &acquire)
        .map_err(BuildError::Store)?;
    match &grants[..] {
        [grant] if grant.ticks == ticks => grant.to_lease(&namespace).map_err(BuildError::Lease),
        // A store that knows nothing of the past may grant the present.
        _ => Err(BuildError::Store(StoreError::Corrupt {
            detail: format!("asked for one block for ticks {ticks:?}, it has granted {grants:?}"),
            source: None,
        })),
    }
}

fn ticks_of(layout: &Layout, moments: &Range<SystemTime>) -> Result<Range<u64>, BuildError> {
    // Not by way of the last moment before the end: how far that is depends on the platform.
    let ends = layout
        .tick_of(moments.start)
        .zip(layout.end_tick_of(moments.end));
    let ticks = ends.map(|(first, end)| first..end);
    let ticks = ticks.filter(|_| moments.start < moments.end);
    let ticks = ticks.filter(|ticks| ticks.end <= layout.ticks());
    ticks.ok_or_else(|| BuildError::Moments {
        from: moments.start,
        to: moments.end,
        epoch_unix_ms: layout.epoch_unix_ms(),
        end_unix_ms: layout.end_unix_ms(),
    })
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_past_from_the_millisecond_of_its_end_on() {
        let layout = Layout::RANDFLAKE;
        let end_unix_ms = layout.tick_start_unix_ms(7);
        assert!(check_past(&layout, 7, end_unix_ms).is_ok());
        let error = check_past(&layout, 7, end_unix_ms - 1).unwrap_err();
        assert!(
            matches!(error, BuildError::LeaseNotPast { end_unix_ms: end, now_unix_ms }
                if (end, now_unix_ms) == (end_unix_ms, end_unix_ms - 1)),
            "{error:?}"
        );
    }
}
