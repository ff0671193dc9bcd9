//! The one place where a layout is checked.

use std::time::Duration;

use super::{Layout, LayoutError, LayoutField, utc};

impl Layout {
    /// The same widths and ticks from another epoch, in milliseconds since 1970.
    ///
    /// Its numbers are those of this layout once more, so it is for an ID space of its own.
    ///
    /// # Errors
    ///
    /// [`LayoutError::EpochTooLate`] after the year 9999, and [`LayoutError::EndTooLate`]
    /// where the last tick would end after `u64::MAX` milliseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Layout, LayoutError};
    ///
    /// // 2026-01-01T00:00:00Z
    /// let layout = Layout::BAIDU.with_epoch(1_767_225_600_000)?;
    /// assert_eq!(layout, Layout::BAIDU_2026);
    /// assert!(matches!(
    ///     layout.with_epoch(u64::MAX),
    ///     Err(LayoutError::EpochTooLate { .. })
    /// ));
    /// # Ok::<(), LayoutError>(())
    /// ```
    pub const fn with_epoch(self, epoch_unix_ms: u64) -> Result<Self, LayoutError> {
        LayoutBuilder {
            time_bits: self.time_bits,
            node_bits: self.node_bits,
            sequence_bits: self.sequence_bits,
            tick: Duration::from_millis(self.tick_ms),
            epoch_unix_ms,
            has_own_widths: true,
            has_own_tick: true,
        }
        .build()
    }

    /// A builder that starts with the values of [`Layout::RANDFLAKE`]: 30/17/17 bits, ticks of
    /// 1 s, and the epoch 2024-10-27T03:33:20Z. Other widths need a tick of their own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use ringflake::Layout;
    ///
    /// let layout = Layout::builder()
    ///     .bits(41, 10, 12)
    ///     .tick(Duration::from_millis(1))
    ///     .epoch_unix_ms(1_288_834_974_657)
    ///     .build()?;
    /// assert_eq!(layout, Layout::TWITTER);
    /// # Ok::<(), ringflake::LayoutError>(())
    /// ```
    #[doc(alias = "new")]
    pub const fn builder() -> LayoutBuilder {
        let Self {
            time_bits,
            node_bits,
            sequence_bits,
            tick_ms,
            epoch_unix_ms,
        } = Self::RANDFLAKE;
        LayoutBuilder {
            time_bits,
            node_bits,
            sequence_bits,
            tick: Duration::from_millis(tick_ms),
            epoch_unix_ms,
            has_own_widths: false,
            has_own_tick: false,
        }
    }
}

/// Collects the values of a [`Layout`]; [`build`](Self::build) checks them.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Clone, Copy, Debug)]
pub struct LayoutBuilder {
    pub(super) time_bits: u32,
    pub(super) node_bits: u32,
    pub(super) sequence_bits: u32,
    pub(super) tick: Duration,
    pub(super) epoch_unix_ms: u64,
    pub(super) has_own_widths: bool,
    pub(super) has_own_tick: bool,
}

impl LayoutBuilder {
    /// Sets the widths in bits: each at least 1, together at most 64. Needs a
    /// [`tick`](Self::tick). Ticks count from Randflake's epoch unless another one is given: for
    /// Twitter's IDs use [`Layout::TWITTER`].
    #[doc(alias = "time_bits")]
    #[doc(alias = "node_bits")]
    #[doc(alias = "sequence_bits")]
    pub const fn bits(self, time: u32, node: u32, sequence: u32) -> Self {
        Self {
            time_bits: time,
            node_bits: node,
            sequence_bits: sequence,
            has_own_widths: true,
            ..self
        }
    }

    /// Sets the length of a tick: a whole number of milliseconds, at least 1.
    pub const fn tick(self, tick: Duration) -> Self {
        Self {
            tick,
            has_own_tick: true,
            ..self
        }
    }

    /// Sets the start of tick 0, in milliseconds since 1970: up to the end of
    /// the year 9999, 253,402,300,799,999. That of [`Layout::RANDFLAKE`] unless given, so a
    /// layout to read the IDs of another generator needs that generator's.
    pub const fn epoch_unix_ms(self, epoch_unix_ms: u64) -> Self {
        Self {
            epoch_unix_ms,
            ..self
        }
    }

    /// The layout, if it is a valid one. Whether it is still alive depends on
    /// the time, and is asked with [`Layout::check_alive`].
    ///
    /// # Errors
    ///
    /// The first that applies, with the numbers:
    ///
    /// - [`LayoutError::ZeroWidth`]: a field has no bits.
    /// - [`LayoutError::TooManyBits`]: the widths add up to more than 64.
    /// - [`LayoutError::NoTick`]: widths were given, and no tick.
    /// - [`LayoutError::Tick`]: the tick is zero, has a fraction of a
    ///   millisecond, or has more milliseconds than a `u64` counts.
    /// - [`LayoutError::EpochTooLate`]: the epoch lies after the year 9999.
    /// - [`LayoutError::EndTooLate`]: the last tick would end after `u64::MAX`
    ///   milliseconds since 1970. Such a layout is refused rather than cut
    ///   short, so that every tick has a time of its own.
    pub const fn build(self) -> Result<Layout, LayoutError> {
        let Self {
            time_bits,
            node_bits,
            sequence_bits,
            tick,
            epoch_unix_ms,
            has_own_widths,
            has_own_tick,
        } = self;

        let zero_width = if time_bits == 0 {
            Some(LayoutField::Time)
        } else if node_bits == 0 {
            Some(LayoutField::Node)
        } else if sequence_bits == 0 {
            Some(LayoutField::Sequence)
        } else {
            None
        };
        if let Some(field) = zero_width {
            return Err(LayoutError::ZeroWidth { field });
        }
        if time_bits as u64 + node_bits as u64 + sequence_bits as u64 > u64::BITS as u64 {
            return Err(LayoutError::TooManyBits {
                time: time_bits,
                node: node_bits,
                sequence: sequence_bits,
            });
        }

        if has_own_widths && !has_own_tick {
            return Err(LayoutError::NoTick {
                time: time_bits,
                node: node_bits,
                sequence: sequence_bits,
            });
        }

        let tick_ms = tick.as_millis();
        let has_fraction = !tick.subsec_nanos().is_multiple_of(1_000_000);
        if has_fraction || tick_ms == 0 || tick_ms > u64::MAX as u128 {
            return Err(LayoutError::Tick { tick });
        }
        let tick_ms = tick_ms as u64;

        if epoch_unix_ms > utc::LATEST_UNIX_MS {
            return Err(LayoutError::EpochTooLate { epoch_unix_ms });
        }
        let end_unix_ms = epoch_unix_ms as u128 + ((tick_ms as u128) << time_bits);
        if end_unix_ms > u64::MAX as u128 {
            return Err(LayoutError::EndTooLate {
                time_bits,
                tick_ms,
                epoch_unix_ms,
            });
        }

        Ok(Layout {
            time_bits,
            node_bits,
            sequence_bits,
            tick_ms,
            epoch_unix_ms,
        })
    }
}
