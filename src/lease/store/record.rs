//! The rules of a store's decisions.

mod choice;

use std::fmt;
use std::ops::Range;

pub use self::choice::{LowestMarks, MarkWindow};
use crate::layout::Layout;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::{Fence, StoreError};
use crate::lease::namespace::Namespace;
use crate::lease::store::limits::StoreLimits;
use crate::lease::store::request::{Floor, History, Init, Renew};

/// The identity of a store's history: of the server and of its timeline.
///
/// It must change whenever confirmed writes may have been lost: when a replica
/// is promoted, a backup restored, the data directory made anew. A store where
/// it does not needs [`raise_floor`](crate::lease::LeaseStore::raise_floor) by hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Incarnation(String);

impl Incarnation {
    /// The incarnation that the server calls by this name. One named `SERVER/database D` grants
    /// nothing where only `D` differs from the record: that is a copy within the server.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are of one file, in this life of it or another.
    #[cfg(feature = "sqlite")]
    pub(in crate::lease) fn is_same_file(&self, other: &Self) -> bool {
        let identity = |it: &Self| {
            let parts = it.0.rsplit_once(", life ");
            parts.map(|(identity, _)| identity.to_owned())
        };
        identity(self) == identity(other)
    }

    /// Whether this is another database, or another schema, than that of `original`, of the same
    /// SQL server. It has the record, so it was made from that one, which may still grant.
    pub(in crate::lease) fn is_copy_of(&self, original: &Self) -> bool {
        match (self.database(), original.database()) {
            (Some((server, own)), Some((other_server, other))) => {
                server == other_server && own != other
            }
            _ => false,
        }
    }

    /// The server and the database of `SERVER/database D`, or of `SERVER/database D/table T`. A
    /// name may have slashes.
    fn database(&self) -> Option<(&str, &str)> {
        let (server, rest) = self.0.split_once("/database ")?;
        let database = rest.split_once("/table ").map_or(rest, |(it, _)| it);
        Some((server, database))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A store's record of a namespace as a whole, and the rules that follow from
/// it.
///
/// The methods are pure. A store reads the record inside its transaction, calls
/// them, and writes their result. `now` is the store's time in ticks, from
/// [`tick_at`](Self::tick_at).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreRecord {
    /// The namespace.
    pub namespace: Namespace,
    /// The limits.
    pub limits: StoreLimits,
    /// No grant starts before this tick.
    pub floor: u64,
    /// The server's incarnation when something was last granted.
    pub incarnation: Incarnation,
}

impl StoreRecord {
    /// A record read back from a store.
    pub fn new(
        namespace: Namespace,
        limits: StoreLimits,
        floor: u64,
        incarnation: Incarnation,
    ) -> Self {
        Self {
            namespace,
            limits,
            floor,
            incarnation,
        }
    }

    /// The first record of a namespace, at the store's time in milliseconds
    /// since 1970. The [caller's](Init::now_unix_ms) must be near it: a floor that a wrong
    /// clock has set lies below grants of the true time.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a limit out of range,
    /// [`StoreError::BeforeEpoch`], [`StoreError::ClockSkew`].
    pub fn create(
        namespace: &Namespace,
        init: &Init,
        incarnation: &Incarnation,
        store_unix_ms: u64,
    ) -> Result<Self, StoreError> {
        let record = Self::create_at(namespace, init, incarnation, store_unix_ms)?;
        record.check_skew(store_unix_ms, init.now_unix_ms)?;
        Ok(record)
    }

    /// As [`create`](Self::create), for a store that compares the clocks by itself: with
    /// its time when it was asked, or where it does not know its own to the millisecond.
    pub(in crate::lease) fn create_at(
        namespace: &Namespace,
        init: &Init,
        incarnation: &Incarnation,
        store_unix_ms: u64,
    ) -> Result<Self, StoreError> {
        init.limits.validate(namespace.layout())?;
        let mut record = Self::new(namespace.clone(), init.limits, 0, incarnation.clone());
        let now = record.tick_at(store_unix_ms)?;
        record.floor = match init.history {
            History::Unused => 0,
            History::New => now,
            History::Unknown => record.floor_over_lost_grants(now),
        };
        Ok(record)
    }

    /// Compares the namespace that a client names with the one on record.
    ///
    /// # Errors
    /// [`StoreError::LayoutMismatch`], [`StoreError::FingerprintMismatch`].
    pub fn verify(&self, offered: &Namespace) -> Result<(), StoreError> {
        self.namespace.verify(offered)
    }

    /// The tick that the store's time, in milliseconds since 1970, lies in.
    ///
    /// # Errors
    /// [`StoreError::BeforeEpoch`].
    pub fn tick_at(&self, store_unix_ms: u64) -> Result<u64, StoreError> {
        let layout = self.layout();
        layout
            .tick_at(store_unix_ms)
            .ok_or(StoreError::BeforeEpoch {
                unix_ms: store_unix_ms,
                epoch_unix_ms: layout.epoch_unix_ms(),
            })
    }

    /// Refuses two clocks, in milliseconds since 1970, that are further apart
    /// than the limit: one that is years ahead would push marks there, and one
    /// years behind would let grants be useless.
    ///
    /// # Errors
    /// [`StoreError::ClockSkew`].
    pub fn check_skew(&self, store_unix_ms: u64, client_unix_ms: u64) -> Result<(), StoreError> {
        if store_unix_ms.abs_diff(client_unix_ms) <= self.limits.skew_ms() {
            return Ok(());
        }
        Err(StoreError::ClockSkew {
            store_unix_ms,
            client_unix_ms,
            limit: self.limits.skew(),
        })
    }

    /// Takes note of the server's incarnation before something is granted. If it
    /// is a new one, raises the floor over the grants that the change may have
    /// lost and answers true; the record must then be written.
    pub fn observe(&mut self, incarnation: &Incarnation, now: u64) -> bool {
        if self.incarnation == *incarnation {
            return false;
        }
        self.floor = self.floor.max(self.floor_over_lost_grants(now));
        self.incarnation = incarnation.clone();
        true
    }

    /// Raises the floor. It is never lowered.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a tick beyond the layout's,
    /// [`StoreError::FloorTooFar`] for one above the present floor and
    /// [all that a lost grant can reach](Self::floor_over_lost_grants), unless it is
    /// forced.
    pub fn raise_floor(&mut self, floor: Floor, now: u64) -> Result<(), StoreError> {
        let over = self.floor_over_lost_grants(now);
        if let Floor::Tick(tick) | Floor::AnyTick(tick) = floor {
            let last = self.layout().ticks() - 1;
            StoreError::check_range("the floor in ticks", tick, 0..=last)?;
        }
        let floor = match floor {
            Floor::OverLostGrants => over,
            Floor::Tick(tick) if tick > over.max(self.floor) => {
                return Err(self.floor_too_far(tick, over, now));
            }
            Floor::Tick(tick) | Floor::AnyTick(tick) => tick,
        };
        self.floor = self.floor.max(floor);
        Ok(())
    }

    fn floor_too_far(&self, tick: u64, latest: u64, now: u64) -> StoreError {
        let layout = self.layout();
        let at = |tick| layout.tick_start_unix_ms(tick);
        StoreError::FloorTooFar {
            tick,
            tick_unix_ms: at(tick),
            latest,
            latest_unix_ms: at(latest),
            idle: self.until(self.reached_from(tick), at(now)),
        }
    }

    /// Refuses if the store knows less of a block than it has confirmed. `known` is
    /// the state on record. The caller then raises the floor [over lost
    /// grants](Floor::OverLostGrants), and keeps that.
    ///
    /// An end at or below the floor is settled: nothing is granted there again. An
    /// end above all that a lost grant can reach was confirmed by a clock that was
    /// years ahead, and is no evidence about the lost state.
    ///
    /// # Errors
    /// [`StoreError::HistoryLost`].
    pub fn check_history(
        &self,
        now: u64,
        known: Option<&BlockState>,
        confirmed: &Confirmed,
    ) -> Result<(), StoreError> {
        let is_settled = confirmed.end <= self.floor;
        let is_absurd = confirmed.end > self.floor_over_lost_grants(now);
        if is_settled || is_absurd || !confirmed.is_forgotten(known) {
            return Ok(());
        }
        Err(StoreError::HistoryLost {
            confirmed: *confirmed,
            recorded: known.map(|known| (known.epoch, known.hwm_end)),
        })
    }

    /// The first tick above all that a lost grant can reach.
    ///
    /// A superseded primary grants for `failover` at the longest, twice the skew limit
    /// included, and then up to the horizon from there. One tick more
    /// makes up for where within a tick the clocks stand.
    pub fn floor_over_lost_grants(&self, now: u64) -> u64 {
        let failover = self.limits.failover_ms().div_ceil(self.layout().tick_ms());
        now.saturating_add(self.horizon_ticks())
            .saturating_add(failover)
            .saturating_add(1)
    }

    /// The tick at which every grant and renewal must have ended that is made
    /// now.
    pub fn horizon_end(&self, now: u64) -> u64 {
        now.saturating_add(self.horizon_ticks())
            .min(self.layout().ticks())
    }

    /// The earliest time by the store's clock, in milliseconds since 1970, at which a grant or
    /// a renewal may end at this tick.
    pub(in crate::lease) fn earliest_for_end(&self, end: u64) -> u64 {
        let tick = end.saturating_sub(self.horizon_ticks());
        self.layout().tick_start_unix_ms(tick)
    }

    /// The first tick of a grant that is made now, on a block whose mark has passed.
    pub fn earliest_start(&self, now: u64) -> u64 {
        now.max(self.floor)
    }

    /// The interval of a grant of `length` ticks on a block with this mark (0 if
    /// it was never granted); none when it would be empty.
    pub fn grant(&self, now: u64, hwm_end: u64, length: u64) -> Option<Range<u64>> {
        let start = self.earliest_start(now).max(hwm_end);
        let end = start.saturating_add(length).min(self.horizon_end(now));
        (start < end).then_some(start..end)
    }

    /// The state of a block after a renewal, where `known` is the one on record, and
    /// `incarnation` the server's at present. Refuses a grant that is not the block's last, or
    /// that must not grow.
    ///
    /// Another incarnation refuses by itself, before an acquisition has raised
    /// the floor: a stale record may well agree with the holder while a lost
    /// grant begins right behind the end that both know.
    ///
    /// # Errors
    /// [`StoreError::Fenced`].
    pub fn renewed(
        &self,
        incarnation: &Incarnation,
        now: u64,
        known: Option<BlockState>,
        renew: &Renew,
    ) -> Result<BlockState, StoreError> {
        let (held, end) = (renew.epoch, renew.known_end);
        let fence = match known {
            _ if self.incarnation != *incarnation => Fence::Incarnation,
            // Before the other comparisons, which don't matter then: the floor makes up
            // for a loss.
            _ if end < self.floor => Fence::Floor {
                known: end,
                floor: self.floor,
            },
            None => Fence::NeverGranted,
            Some(known) if known.epoch != held => Fence::Epoch {
                held,
                recorded: known.epoch,
            },
            Some(known) if known.hwm_end != end => Fence::End {
                known: end,
                recorded: known.hwm_end,
            },
            Some(known) => {
                return Ok(BlockState {
                    hwm_end: renew.new_end.min(self.horizon_end(now)).max(end),
                    released: false,
                    ..known
                });
            }
        };
        Err(StoreError::Fenced {
            block: renew.block,
            fence,
        })
    }

    /// The state of `block` after the holder of its grant with this epoch has released
    /// it. `known` is the state on record.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if that grant is not the block's last.
    pub fn released(
        block: Block,
        epoch: Epoch,
        known: Option<BlockState>,
    ) -> Result<BlockState, StoreError> {
        let fence = match known {
            Some(known) if known.epoch == epoch => {
                return Ok(BlockState {
                    released: true,
                    ..known
                });
            }
            Some(known) => Fence::Epoch {
                held: epoch,
                recorded: known.epoch,
            },
            None => Fence::NeverGranted,
        };
        Err(StoreError::Fenced { block, fence })
    }

    fn layout(&self) -> &Layout {
        self.namespace.layout()
    }

    fn horizon_ticks(&self) -> u64 {
        self.limits.horizon_ms() / self.layout().tick_ms()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::holder::Holder;

    pub(super) const NOW: u64 = 1_000;
    pub(super) const STORE_MS: u64 = 5_000;
    pub(super) const BLOCK: Block = Block::new(3);

    /// A horizon of 600 ticks, and the floor at tick 900.
    pub(super) fn record() -> StoreRecord {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(600));
        StoreRecord::new(space, limits, 900, Incarnation::new("x"))
    }

    pub(super) fn state(epoch: u64, hwm_end: u64) -> BlockState {
        let mut state = BlockState::new(BLOCK, Epoch::new(epoch), hwm_end);
        state.released = true;
        state.granted_unix_ms = Some(1);
        state.holder = Some(Holder::new("before", "1"));
        state
    }

    #[test]
    fn another_database_of_the_same_server_is_a_copy() {
        for (found, original, is_copy) in [
            (
                "7/database 6/table 9/line 1",
                "7/database 5/table 9/line 1",
                true,
            ),
            (
                "7/database 6/table 8/line 2",
                "7/database 5/table 9/line 1",
                true,
            ),
            (
                "7/database 5/table 8/line 2",
                "7/database 5/table 9/line 1",
                false,
            ),
            (
                "8/database 6/table 9/line 1",
                "7/database 5/table 9/line 1",
                false,
            ),
            ("1/h//d//database ids/b", "1/h//d//database ids/a", true),
            ("1/h//d//database ids/a", "1/h//d//database ids/a", false),
            ("1/g//d//database ids/b", "1/h//d//database ids/a", false),
            ("7/database x/database y", "7/database z/database y", true),
            ("7", "7/database 5", false),
        ] {
            let [found, original] = [found, original].map(Incarnation::new);
            assert_eq!(
                found.is_copy_of(&original),
                is_copy,
                "{found} of {original}"
            );
        }
    }
}
