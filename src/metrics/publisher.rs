//! Publishes the figures of one generator.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ::metrics::Label;

use super::catalogue;
use super::counters::Published;
use super::report::Report;
use crate::generator::{CachedGenerator, Stats, WeakGenerator};
use crate::layout::Layout;
use crate::lease::LeaseStatus;

/// Publishes the figures of one generator to the recorder of the program.
///
/// It does not keep the generator alive. See the [module](crate::metrics) for a use, and for
/// what it promises.
pub struct Publisher {
    ids: WeakGenerator,
    labels: Vec<Label>,
    layout: Layout,
    build_info: [Label; 3],
    is_described: AtomicBool,
    published: Published,
}

impl Publisher {
    /// A publisher of `ids`: the only one for its recorder, as long as the generator lives,
    /// or its counts are added up twice. It keeps a reference that is
    /// [not counted](WeakGenerator).
    pub fn new(ids: &CachedGenerator) -> Self {
        Self {
            ids: ids.downgrade(),
            labels: Vec::new(),
            layout: *ids.layout(),
            build_info: [
                Label::from_static_parts("version", env!("CARGO_PKG_VERSION")),
                Label::new("backend", ids.backend().to_string()),
                Label::new("layout", ids.layout().to_string()),
            ],
            is_described: AtomicBool::new(false),
            published: Published::nothing(),
        }
    }

    /// With labels that all its metrics get, beside those that it got before.
    ///
    /// Where a program has several generators at a time, each publisher needs labels of its own, or
    /// their gauges write over each other. A generator that replaces an ended one may have the same
    /// labels: the counts are added up. The names `cause`, `reason`, `state`, `outcome`, `fence`,
    /// `version`, `backend` and `layout` are taken.
    #[must_use]
    pub fn with_labels<K, V>(mut self, labels: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let labels = labels.into_iter();
        let label = |(name, value): (K, V)| Label::new(name.into(), value.into());
        self.labels.extend(labels.map(label));
        self
    }

    /// Publishes once, to the recorder of this thread, and returns whether the generator is
    /// still there. Nothing is published once it is gone, nor in a forked child.
    ///
    /// Call it when the recorder is read, so that the figures are as of that moment. Where the
    /// recorder is read by other code, call it every ten seconds until it returns `false`; a call
    /// in progress during [`shutdown`](CachedGenerator::shutdown) may leave the generator
    /// [in use](crate::Shutdown::InUse).
    ///
    /// Any thread may call it, several at once too. It reads the generator's counters and its
    /// clock, takes the lock of [`lease_status`](CachedGenerator::lease_status) for
    /// microseconds, and hands some fifty values to the recorder, with an allocation or two
    /// for each. The first time it describes each metric.
    ///
    /// # Panics
    /// If the recorder does.
    ///
    /// # Examples
    ///
    /// Into a registry of one's own, here one that keeps nothing:
    ///
    /// ```
    /// use metrics::{NoopRecorder, with_local_recorder};
    /// use ringflake::metrics::Publisher;
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 911..912);
    /// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// let publisher = Publisher::new(&ids).with_labels([("namespace", "orders")]);
    /// let registry = NoopRecorder;
    /// assert!(with_local_recorder(&registry, || publisher.publish()));
    /// drop(ids);
    /// assert!(!publisher.publish());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn publish(&self) -> bool {
        let Some((stats, lease)) = self.read() else {
            return false;
        };
        ::metrics::with_recorder(|recorder| {
            // Relaxed: the word decides alone.
            if !self.is_described.swap(true, Relaxed) {
                catalogue::describe(recorder);
            }
            let report = Report {
                recorder,
                labels: &self.labels,
                layout: &self.layout,
                build_info: &self.build_info,
            };
            report.all(&stats, lease.as_ref(), &self.published);
        });
        true
    }

    /// Holds the generator for this call only. None in a forked child, even if the generator's
    /// clock has just forked it.
    fn read(&self) -> Option<(Stats, Option<LeaseStatus>)> {
        let ids = self.ids.upgrade()?;
        let read = (ids.stats(), ids.lease_status());
        // After the one call that runs the user's code, that of the clock.
        (!ids.is_forked()).then_some(read)
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}
