//! A lease without a store.

use std::fmt;
use std::ops::Range;

use crate::layout::Layout;
use crate::lease::claim::Claim;
use crate::lease::rectangle::{Lease, LeaseError};

/// Nodes that the caller knows to be its own: a StatefulSet's ordinal, a line
/// in a configuration file.
///
/// It gives nodes only. Nothing coordinates and nothing is recorded, so every
/// duty of a store is the caller's.
///
/// # What the caller vouches for
/// From the start tick on, nobody else issues an ID with one of these nodes
/// under this layout and secret. "Nobody else" means every other process and
/// machine, every other generator in this process, and **every earlier run of
/// the same program**:
///
/// * An earlier run may have issued IDs in any part of the tick in which it
///   ended. Without an explicit start the lease begins with the tick that is
///   running, so a restart must wait for the next tick at least.
/// * An earlier run may have borrowed: issued IDs with ticks that still lie in
///   the future, up to its borrow limit ahead of its clock. A restart must wait
///   that long after the end of the earlier run, or start after the last tick
///   that it used, with [`starting_at_tick`](Self::starting_at_tick) or
///   [`starting_at_unix_ms`](Self::starting_at_unix_ms).
/// * "Now" is the clock's time. If the clock was set back since the earlier
///   run, the wait is that much longer.
///
/// A caller that can't promise this uses a [`LeaseStore`](crate::lease::LeaseStore):
/// even an embedded one keeps the runs of a program apart.
///
/// # What this process checks
/// Within one process, a generator is not built if it could repeat an ID:
///
/// * A lease and its clones serve one generator at a time. The next one goes on
///   after the last ID that was claimed, borrowed ones included, whatever start
///   was given: to the sequence, or with the next tick where the nodes are
///   divided among the parts of a [`ClockPolicy`](crate::ClockPolicy).
/// * A lease made separately, in whatever way, is refused while a generator uses
///   any of its nodes and ticks ([`LeaseTaken`](crate::BuildError::LeaseTaken)).
///   Later it is refused unless it starts after the ticks that were used
///   ([`LeaseUsed`](crate::BuildError::LeaseUsed)).
/// * In a child of `fork(2)`, every node that the parent had until then is
///   refused ([`LeaseOfParent`](crate::BuildError::LeaseOfParent)): the parent
///   may continue, whatever the child drops. A process that forks before it
///   builds, as a daemon does, keeps its nodes.
///
/// Generators with another layout or another secret are not compared. Neither are
/// leases that a generator has from a store, so keep nodes of a store out of
/// static leases.
///
/// For these checks the process keeps about 1 KiB for each layout and secret, until it ends.
///
/// # Examples
/// ```
/// use ringflake::{Layout, lease::StaticLease};
///
/// let layout = Layout::RANDFLAKE;
/// // This replica is number 3, and has 32 nodes.
/// let lease = StaticLease::assume_unique(layout, 3 * 32..4 * 32)
///     // When the run before stopped for good, its borrowing included.
///     .starting_at_unix_ms(1_760_000_000_000)
///     .grant(1_760_000_005_000)?;
/// assert_eq!(lease.nodes(), 96..128);
/// assert_eq!(lease.ticks(), 30_000_000..layout.ticks());
/// # Ok::<(), ringflake::lease::LeaseError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct StaticLease {
    layout: Layout,
    nodes: Range<u64>,
    /// Where it starts; by default with the tick that is running when it is granted.
    start_tick: Option<u64>,
    claim: Claim,
}

impl StaticLease {
    /// Assumes that nobody else issues IDs with these nodes; see
    /// [what the caller vouches for](Self#what-the-caller-vouches-for).
    ///
    /// The range is checked by [`grant`](Self::grant).
    #[doc(alias = "new")]
    #[doc(alias = "worker_id")]
    #[doc(alias = "machine_id")]
    pub fn assume_unique(layout: Layout, nodes: Range<u64>) -> Self {
        Self {
            layout,
            nodes,
            start_tick: None,
            claim: Claim::default(),
        }
    }

    /// A lease over ticks that have passed, for a
    /// [`BackfillGenerator`](crate::BackfillGenerator): half-open ticks since the layout's
    /// epoch, as [`Layout::tick_of`] counts them.
    ///
    /// # What the caller vouches for
    /// Nobody else ever issued an ID with one of these nodes and ticks under this layout and
    /// secret, and nobody ever will:
    ///
    /// * Nothing of it is recorded, so it holds for **one generator in one run**. An import that
    ///   starts again, also after a failure, needs other nodes, or ticks from which the run before
    ///   requested nothing.
    /// * Nodes that serve the present have had these ticks, and borrowed ones. Keep nodes for
    ///   imports alone, as the last ones of the layout.
    /// * A store leases every node of its layout, from the floor on that its namespace had
    ///   at the beginning, which `ringflake store init` prints: tick 0 if its history was
    ///   [`Unused`](crate::lease::History::Unused). Under the secret of such a
    ///   namespace only ticks before that floor are nobody's, and only if its history was
    ///   [`New`](crate::lease::History::New). For all others let the store grant the lease, with
    ///   [`lease_store`](crate::BackfillGeneratorBuilder::lease_store).
    ///
    /// # Errors
    /// When a range is empty, or reaches past the layout's nodes or ticks.
    ///
    /// # Examples
    /// ```
    /// use ringflake::{Layout, StaticLease};
    ///
    /// let layout = Layout::RANDFLAKE;
    /// // The first import has the last node, and the next one that before.
    /// let lease = StaticLease::assume_unique_past(layout, 131_071..131_072, 0..1_000_000)?;
    /// assert!(lease.contains(131_071, 999_999));
    /// # Ok::<(), ringflake::LeaseError>(())
    /// ```
    pub fn assume_unique_past(
        layout: Layout,
        nodes: Range<u64>,
        ticks: Range<u64>,
    ) -> Result<Lease, LeaseError> {
        Lease::new(layout, nodes, ticks)
    }

    /// Starts at this tick since the layout's epoch, below `layout.ticks()`. It
    /// may lie in the future.
    pub fn starting_at_tick(mut self, tick: u64) -> Self {
        self.start_tick = Some(tick);
        self
    }

    /// Starts at this time, in milliseconds since 1970. It may lie in the
    /// future.
    ///
    /// A time within a tick means the start of the next tick, since the part
    /// before may have been used. A time before the epoch means tick 0.
    pub fn starting_at_unix_ms(self, unix_ms: u64) -> Self {
        let before = unix_ms.checked_sub(1);
        let running = before.and_then(|before| self.layout.tick_at(before));
        self.starting_at_tick(running.map_or(0, |running| running.saturating_add(1)))
    }

    /// The lease on these nodes, from the start tick to the end of the layout.
    ///
    /// `now_unix_ms`, in milliseconds since 1970, counts only when no start was
    /// given: the lease then starts with the tick that this time lies in.
    ///
    /// # Errors
    /// When the nodes are none or reach past the layout's, when the layout has
    /// run out of ticks, or when no start was given and the time is before the
    /// layout's epoch.
    pub fn grant(&self, now_unix_ms: u64) -> Result<Lease, LeaseError> {
        let layout = &self.layout;
        let running = || layout.tick_at(now_unix_ms);
        let start = self.start_tick.or_else(running);
        let start = start.ok_or(LeaseError::BeforeEpoch {
            unix_ms: now_unix_ms,
            epoch_unix_ms: layout.epoch_unix_ms(),
        })?;
        if start >= layout.ticks() {
            return Err(LeaseError::LayoutEnded {
                start,
                layout_ticks: layout.ticks(),
            });
        }
        Lease::new(*layout, self.nodes.clone(), start..layout.ticks())
            .map(|lease| lease.with_claim(self.claim.clone()))
    }
}

impl fmt::Debug for StaticLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticLease")
            .field("nodes", &self.nodes)
            .field("start_tick", &self.start_tick)
            .field("layout", &format_args!("{}", self.layout))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;

    fn epoch() -> u64 {
        LAYOUT.epoch_unix_ms()
    }

    fn nodes() -> StaticLease {
        StaticLease::assume_unique(LAYOUT, 4..8)
    }

    #[test]
    fn starts_with_the_running_tick_or_the_one_that_was_given() {
        for (ms, running, from) in [
            (0, 0, 0),
            (1, 0, 1),
            (999, 0, 1),
            (1000, 1, 1),
            (1001, 1, 2),
        ] {
            let now = epoch() + ms;
            let lease = nodes().grant(now).unwrap();
            assert_eq!(lease.nodes(), 4..8);
            assert_eq!(lease.ticks(), running..LAYOUT.ticks(), "{ms}");
            // A start within a tick means the next one.
            let lease = nodes().starting_at_unix_ms(now).grant(0).unwrap();
            assert_eq!(lease.ticks().start, from, "{ms}");
        }
        for any in [0, epoch() - 1, epoch(), u64::MAX] {
            let lease = nodes().starting_at_tick(77).grant(any).unwrap();
            assert_eq!(lease.ticks(), 77..LAYOUT.ticks());
        }
        for before in [0, epoch() - 1] {
            let lease = nodes().starting_at_unix_ms(before).grant(0).unwrap();
            assert_eq!(lease.ticks().start, 0);
            let (unix_ms, epoch_unix_ms) = (before, epoch());
            let refused = LeaseError::BeforeEpoch {
                unix_ms,
                epoch_unix_ms,
            };
            assert_eq!(nodes().grant(before), Err(refused));
        }
    }

    #[test]
    fn refuses_a_layout_that_has_ended() {
        let end = LAYOUT.ticks();
        let ended = Err(LeaseError::LayoutEnded {
            start: end,
            layout_ticks: end,
        });
        assert_eq!(nodes().grant(LAYOUT.tick_start_unix_ms(end)), ended);
        assert_eq!(nodes().starting_at_tick(end).grant(0), ended);
        assert!(nodes().starting_at_tick(end - 1).grant(0).is_ok());
    }
}
