//! IDs by the time in them.

use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Layout;
use crate::id::Id;

const NANOS_A_MILLISECOND: i128 = 1_000_000;

impl Layout {
    /// The tick that `time` falls in: [`tick_at`](Self::tick_at) for a [`SystemTime`].
    ///
    /// `None` before the epoch. After the layout's end the count goes on, up to `u64::MAX`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// use ringflake::Layout;
    ///
    /// let epoch = UNIX_EPOCH + Duration::from_millis(Layout::BAIDU_2026.epoch_unix_ms());
    /// assert_eq!(Layout::BAIDU_2026.tick_of(epoch + Duration::from_millis(2_500)), Some(2));
    /// assert_eq!(Layout::BAIDU_2026.tick_of(epoch - Duration::from_nanos(1)), None);
    /// ```
    pub fn tick_of(&self, time: SystemTime) -> Option<u64> {
        let age = self.age_nanos(time);
        (age >= 0).then(|| u64::try_from(age / self.tick_nanos()).unwrap_or(u64::MAX))
    }

    /// The first tick that begins at `time` or after it, so that ticks up to it have all
    /// moments before `time`. `None` before the epoch; up to `u64::MAX` after the end.
    pub(crate) fn end_tick_of(&self, time: SystemTime) -> Option<u64> {
        let (age, tick) = (self.age_nanos(time), self.tick_nanos());
        (age >= 0).then(|| u64::try_from((age + tick - 1) / tick).unwrap_or(u64::MAX))
    }

    /// The plain IDs whose tick begins in `window`, from the first to the last, as for
    /// `WHERE id BETWEEN $1 AND $2`. `None` if there are none, and so nothing to ask for.
    ///
    /// **Only plain IDs.** Encrypted ones are spread over all 64 bits whatever the time is,
    /// and no range of them stands for a window.
    ///
    /// The time of an ID is the start of its tick, [`Parts::unix_ms`](super::Parts::unix_ms),
    /// and an ID is in exactly if that time is in the window, whichever its node and
    /// sequence are. So windows that meet, as `a..b` and `b..c`, have no ID in common and
    /// leave none out. A window that begins within a tick begins with the next one: begin
    /// at the tick's start to have that tick too. What lies before the epoch or after
    /// the layout's end is cut off.
    ///
    /// An ID may have been taken up to the borrow limit before its time, and later if it
    /// waited in a ring: widen the window by that where it matters. [`DirectGenerator`]
    /// issues IDs of the tick in which they are taken.
    ///
    /// **As signed numbers**, in a `BIGINT`, plain IDs sort by time as long as they are
    /// under 2<sup>63</sup>: always in a layout of up to 63 [bits](Self::total_bits), which
    /// all presets have but `RANDFLAKE` and `REGION_TYPE_MACHINE`. Those two pass
    /// 2<sup>63</sup> half-way through their life, on 2041-10-31 at 22:21:52 UTC, and are negative from
    /// then on. A window that lies wholly before or after that moment is one range of signed
    /// numbers; one that contains it has to be asked for in two.
    ///
    /// Wait-free, a few divisions.
    ///
    /// [`DirectGenerator`]: crate::DirectGenerator
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// use ringflake::{Id, Layout};
    ///
    /// let layout = Layout::BAIDU_2026;
    /// let midnight = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
    /// let hour = Duration::from_secs(3_600);
    ///
    /// let second_hour = layout.ids_between(midnight + hour..midnight + 2 * hour).unwrap();
    /// assert_eq!(second_hour.start(), &Id::from_u64(layout.pack(3_600, 0, 0)?));
    /// let (last_node, last_sequence) = (layout.nodes() - 1, layout.sequences() - 1);
    /// let last = layout.pack(7_199, last_node, last_sequence)?;
    /// assert_eq!(second_hour.end(), &Id::from_u64(last));
    ///
    /// // For a `BIGINT`: positive, since this layout has 63 bits.
    /// assert!(second_hour.end().to_i64() > 0);
    /// assert_eq!(layout.ids_between(..midnight), None);
    /// # Ok::<(), ringflake::LayoutError>(())
    /// ```
    pub fn ids_between(&self, window: impl RangeBounds<SystemTime>) -> Option<RangeInclusive<Id>> {
        let first = match window.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&from) => self.ticks_before(from, false),
            Bound::Excluded(&from) => self.ticks_before(from, true),
        };
        let end = match window.end_bound() {
            Bound::Unbounded => self.ticks(),
            Bound::Included(&to) => self.ticks_before(to, true),
            Bound::Excluded(&to) => self.ticks_before(to, false),
        };
        if first >= end {
            return None;
        }
        let last = self.join(end - 1, self.nodes() - 1, self.sequences() - 1);
        Some(Id::from_u64(self.join(first, 0, 0))..=Id::from_u64(last))
    }

    /// The number of ticks that begin before `moment`, or `or_at` it.
    fn ticks_before(&self, moment: SystemTime, or_at: bool) -> u64 {
        let age = self.age_nanos(moment);
        // Whole nanoseconds: at a moment or before it is before the next one.
        let before = if or_at { age + 1 } else { age };
        if before <= 0 {
            return 0;
        }
        // Tick 0 and one for each whole tick that has passed by the nanosecond before.
        let ticks = (before - 1) / self.tick_nanos() + 1;
        u64::try_from(ticks).map_or(self.ticks(), |ticks| ticks.min(self.ticks()))
    }

    /// Nanoseconds from the epoch to `time`; negative before it. A `SystemTime` has at most
    /// 64 bits of seconds, so nothing here comes near the ends of an `i128`.
    fn age_nanos(&self, time: SystemTime) -> i128 {
        let since_1970 = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        since_1970 - i128::from(self.epoch_unix_ms) * NANOS_A_MILLISECOND
    }

    fn tick_nanos(&self) -> i128 {
        i128::from(self.tick_ms) * NANOS_A_MILLISECOND
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_end_takes_the_tick_in_that_it_lies_in_and_not_the_one_it_begins() {
        let layout = Layout::BAIDU_2026;
        let epoch = UNIX_EPOCH + Duration::from_millis(layout.epoch_unix_ms());
        let nano = Duration::from_nanos(100);
        let tick = Duration::from_millis(layout.tick_ms());
        for (time, expected) in [
            (epoch - nano, None),
            (epoch, Some(0)),
            (epoch + nano, Some(1)),
            (epoch + tick - nano, Some(1)),
            (epoch + tick, Some(1)),
            (epoch + tick + nano, Some(2)),
            (epoch + 5 * tick, Some(5)),
        ] {
            assert_eq!(layout.end_tick_of(time), expected, "{time:?}");
        }
    }
}
