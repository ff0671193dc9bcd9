//! How a raw number is divided into time, node and sequence.

mod builder;
mod error;
mod preset;
#[cfg(feature = "serde")]
mod serde_text;
mod spec;
mod utc;
mod window;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::builder::LayoutBuilder;
pub use self::error::{LayoutError, LayoutField};
pub use self::spec::ParseLayoutError;
pub(crate) use self::utc::{Moment, Utc, span};

/// How a raw number is divided, and what its time field counts.
///
/// ```text
///  63                                                              0
/// +--------+----------------------+----------------+----------------+
/// | unused |         tick         |      node      |    sequence    |
/// +--------+----------------------+----------------+----------------+
///            time_bits              node_bits        sequence_bits
/// ```
///
/// A raw is always a `u64` and never read as a signed number, so a layout may
/// use all 64 bits. The tick counts units of [`tick_ms`](Self::tick_ms)
/// milliseconds from the epoch; every tick lies wholly within the 64-bit count
/// of Unix milliseconds, so none of the arithmetic here can overflow.
///
/// Get one of the presets, build one with [`Layout::builder`], or read one
/// from text such as `28/22/13@2016-05-20T00:00:00Z/1s` or `twitter`
/// ([`FromStr`](std::str::FromStr)). [`Display`](std::fmt::Display) writes the
/// text that reads back as an equal layout. There is no default: programs that share IDs must name
/// the same layout.
///
/// A layout is a small plain value. Its methods are a few arithmetic
/// instructions, wait-free and without allocation. They know no clock and take
/// the time from the caller.
///
/// # Examples
///
/// ```
/// use ringflake::Layout;
///
/// let layout = Layout::RANDFLAKE;
/// let raw = layout.pack(123, 1, 131_071)?;
/// assert_eq!(raw, 2_113_124_171_775);
///
/// let parts = layout.unpack(raw)?;
/// assert_eq!((parts.tick, parts.node, parts.sequence), (123, 1, 131_071));
/// assert_eq!(parts.unix_ms, 1_730_000_123_000);
/// # Ok::<(), ringflake::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Each width is at least 1, and their sum at most 64.
    time_bits: u32,
    node_bits: u32,
    sequence_bits: u32,
    /// At least 1.
    tick_ms: u64,
    /// `epoch_unix_ms + ticks() * tick_ms` fits a `u64`.
    epoch_unix_ms: u64,
}

impl Layout {
    /// Bits of the time field, 1 to 62.
    pub const fn time_bits(&self) -> u32 {
        self.time_bits
    }

    /// Bits of the node field, 1 to 62.
    pub const fn node_bits(&self) -> u32 {
        self.node_bits
    }

    /// Bits of the sequence field, 1 to 62.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence_bits
    }

    /// Bits of a raw, 3 to 64. Those above are zero in every raw.
    pub const fn total_bits(&self) -> u32 {
        self.time_bits + self.node_bits + self.sequence_bits
    }

    /// Length of a tick in milliseconds, at least 1.
    pub const fn tick_ms(&self) -> u64 {
        self.tick_ms
    }

    /// Start of tick 0 in milliseconds since 1970.
    pub const fn epoch_unix_ms(&self) -> u64 {
        self.epoch_unix_ms
    }

    /// Number of ticks in the layout's life: 2 to the power of `time_bits`.
    pub const fn ticks(&self) -> u64 {
        1 << self.time_bits
    }

    /// Number of nodes: 2 to the power of `node_bits`.
    pub const fn nodes(&self) -> u64 {
        1 << self.node_bits
    }

    /// Raws of one node in one tick: 2 to the power of `sequence_bits`.
    pub const fn sequences(&self) -> u64 {
        1 << self.sequence_bits
    }

    /// Joins the three fields into a raw.
    ///
    /// # Errors
    ///
    /// [`LayoutError::OutOfRange`], with the value and the largest one
    /// allowed, if `tick` is not under [`ticks`](Self::ticks), `node` not under
    /// [`nodes`](Self::nodes), or `sequence` not under
    /// [`sequences`](Self::sequences). No field ever spills into another.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// assert_eq!(Layout::TWITTER.pack(1, 2, 3), Ok(1 << 22 | 2 << 12 | 3));
    /// assert_eq!(
    ///     Layout::TWITTER.pack(1, 1024, 3).unwrap_err().to_string(),
    ///     "node 1024 is out of range: this layout has 0 to 1023; \
    ///      use one of those, or a layout with a wider node field",
    /// );
    /// ```
    pub const fn pack(&self, tick: u64, node: u64, sequence: u64) -> Result<u64, LayoutError> {
        let (field, value, count) = if tick >= self.ticks() {
            (LayoutField::Time, tick, self.ticks())
        } else if node >= self.nodes() {
            (LayoutField::Node, node, self.nodes())
        } else if sequence >= self.sequences() {
            (LayoutField::Sequence, sequence, self.sequences())
        } else {
            return Ok(self.join(tick, node, sequence));
        };
        Err(LayoutError::OutOfRange {
            field,
            value,
            max: count - 1,
        })
    }

    /// [`pack`](Self::pack) for callers that have checked the ranges already.
    #[inline]
    pub(crate) const fn join(&self, tick: u64, node: u64, sequence: u64) -> u64 {
        debug_assert!(tick < self.ticks());
        debug_assert!(node < self.nodes());
        debug_assert!(sequence < self.sequences());
        (tick << self.node_bits | node) << self.sequence_bits | sequence
    }

    /// Splits a raw into its fields.
    ///
    /// In a layout of 64 bits every `u64` is a raw, so success proves nothing
    /// about where the number came from.
    ///
    /// # Errors
    ///
    /// [`LayoutError::ExtraBits`] if a bit at or above
    /// [`total_bits`](Self::total_bits) is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Layout, LayoutError};
    ///
    /// assert_eq!(Layout::RANDFLAKE.unpack(u64::MAX)?.tick, (1 << 30) - 1);
    /// assert_eq!(
    ///     Layout::JS_SAFE.unpack(1 << 53),
    ///     Err(LayoutError::ExtraBits { raw: 1 << 53, total_bits: 53 }),
    /// );
    /// # Ok::<(), LayoutError>(())
    /// ```
    pub const fn unpack(&self, raw: u64) -> Result<Parts, LayoutError> {
        let tick = raw >> (self.node_bits + self.sequence_bits);
        if tick >= self.ticks() {
            return Err(LayoutError::ExtraBits {
                raw,
                total_bits: self.total_bits(),
            });
        }
        Ok(Parts {
            tick,
            node: (raw >> self.sequence_bits) & (self.nodes() - 1),
            sequence: raw & (self.sequences() - 1),
            unix_ms: self.tick_start_unix_ms(tick),
        })
    }

    /// The tick that the time `unix_ms`, in milliseconds since 1970, falls in.
    ///
    /// `None` before the epoch. After the layout's end the count simply goes
    /// on: the result is then [`ticks`](Self::ticks) or more, and
    /// [`pack`](Self::pack) refuses it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// let layout = Layout::SONYFLAKE_SIZED;
    /// let epoch = layout.epoch_unix_ms();
    /// assert_eq!(layout.tick_at(epoch - 1), None);
    /// assert_eq!(layout.tick_at(epoch + 9), Some(0));
    /// assert_eq!(layout.tick_at(epoch + 10), Some(1));
    /// ```
    pub const fn tick_at(&self, unix_ms: u64) -> Option<u64> {
        match unix_ms.checked_sub(self.epoch_unix_ms) {
            Some(age_ms) => Some(age_ms / self.tick_ms),
            None => None,
        }
    }

    /// Start of a tick in milliseconds since 1970.
    ///
    /// Exact for every tick up to and including [`ticks`](Self::ticks), and
    /// `u64::MAX` for those that lie past the end of the 64-bit count.
    pub const fn tick_start_unix_ms(&self, tick: u64) -> u64 {
        self.epoch_unix_ms
            .saturating_add(tick.saturating_mul(self.tick_ms))
    }

    /// The first millisecond since 1970 that the layout has no tick for.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// // 2024-11-20T21:24:16Z
    /// assert_eq!(Layout::BAIDU.end_unix_ms(), 1_732_137_856_000);
    /// ```
    pub const fn end_unix_ms(&self) -> u64 {
        self.tick_start_unix_ms(self.ticks())
    }

    /// Time left at `now_unix_ms`, in milliseconds since 1970, until the layout
    /// has no ticks any more; zero once it has ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime, UNIX_EPOCH};
    ///
    /// use ringflake::Layout;
    ///
    /// let end = Layout::TWITTER.end_unix_ms();
    /// assert_eq!(Layout::TWITTER.remaining_lifetime(end - 5), Duration::from_millis(5));
    /// assert_eq!(Layout::TWITTER.remaining_lifetime(end + 5), Duration::ZERO);
    /// ```
    pub const fn remaining_lifetime(&self, now_unix_ms: u64) -> Duration {
        Duration::from_millis(self.end_unix_ms().saturating_sub(now_unix_ms))
    }

    /// Checks that the layout has not ended at `now_unix_ms`, in milliseconds
    /// since 1970. A time before the epoch passes: that layout has its life
    /// ahead.
    ///
    /// # Errors
    ///
    /// [`LayoutError::Expired`], with the end and the time asked about.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// let now_unix_ms = 1_750_000_000_000;
    /// assert!(Layout::RANDFLAKE.check_alive(now_unix_ms).is_ok());
    /// assert_eq!(
    ///     Layout::BAIDU.check_alive(now_unix_ms).unwrap_err().to_string(),
    ///     "the layout ran out of ticks at 2024-11-20T21:24:16Z and the clock shows \
    ///      2025-06-15T15:06:40Z; if the clock is right, move to a layout with more \
    ///      time bits, and keep its IDs apart from the old ones: a later epoch alone \
    ///      would issue the same numbers again",
    /// );
    /// ```
    pub const fn check_alive(&self, now_unix_ms: u64) -> Result<(), LayoutError> {
        let end_unix_ms = self.end_unix_ms();
        if now_unix_ms < end_unix_ms {
            Ok(())
        } else {
            Err(LayoutError::Expired {
                end_unix_ms,
                now_unix_ms,
            })
        }
    }
}

/// The fields of a raw, as [`Layout::unpack`] finds them.
///
/// With the `serde` feature it is a map of the four fields by name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parts {
    /// Ticks since the layout's epoch, under [`Layout::ticks`].
    pub tick: u64,
    /// The node, under [`Layout::nodes`].
    #[doc(alias = "worker_id")]
    #[doc(alias = "machine_id")]
    pub node: u64,
    /// Number within the tick and node, under [`Layout::sequences`].
    pub sequence: u64,
    /// Start of the tick in milliseconds since 1970. The ID may have been
    /// taken earlier, if it was borrowed from the future, or later, if it
    /// waited in a ring.
    pub unix_ms: u64,
}

impl Parts {
    /// Start of the tick as the standard library's time; [`unix_ms`](Self::unix_ms) says how
    /// that relates to the take. Exact up to the year 30,828, where the time of Windows
    /// ends; there it stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// let parts = ringflake::Layout::RANDFLAKE.unpack(0)?;
    /// assert_eq!(parts.time(), UNIX_EPOCH + Duration::from_secs(1_730_000_000));
    /// # Ok::<(), ringflake::LayoutError>(())
    /// ```
    pub fn time(&self) -> SystemTime {
        /// Seconds from 1970 to the last that a signed count of 100 ns since 1601 holds.
        const LAST_ON_WINDOWS: u64 = 910_692_730_085;

        UNIX_EPOCH
            .checked_add(Duration::from_millis(self.unix_ms))
            .or_else(|| UNIX_EPOCH.checked_add(Duration::from_secs(LAST_ON_WINDOWS)))
            .unwrap_or(UNIX_EPOCH)
    }
}
