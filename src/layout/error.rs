//! What can be wrong with a layout, or with a number for one.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::utc::{LATEST_UNIX_MS, Utc, span};
use crate::describe::describe;

/// One of the three fields of a raw. Displays as `time`, `node` or `sequence`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayoutField {
    /// The ticks since the epoch, in the highest bits.
    Time,
    /// The node, between the two others.
    Node,
    /// The number within tick and node, in the lowest bits.
    Sequence,
}

impl fmt::Display for LayoutField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Time => "time",
            Self::Node => "node",
            Self::Sequence => "sequence",
        })
    }
}

/// Why a [`Layout`](super::Layout) cannot be built, or cannot hold a number.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A field has no bits.
    ZeroWidth {
        /// The first such field.
        field: LayoutField,
    },
    /// The three widths add up to more than 64 bits.
    TooManyBits {
        /// Bits asked for the time field.
        time: u32,
        /// Bits asked for the node field.
        node: u32,
        /// Bits asked for the sequence field.
        sequence: u32,
    },
    /// Widths were given to the builder, and no tick.
    NoTick {
        /// Bits of the time field.
        time: u32,
        /// Bits of the node field.
        node: u32,
        /// Bits of the sequence field.
        sequence: u32,
    },
    /// The tick is not a whole number of milliseconds from 1 to `u64::MAX`.
    Tick {
        /// The length asked for.
        tick: Duration,
    },
    /// The epoch lies after the year 9999, the last that RFC 3339 can write.
    EpochTooLate {
        /// The epoch asked for, in milliseconds since 1970.
        epoch_unix_ms: u64,
    },
    /// The last tick would end after `u64::MAX` milliseconds since 1970.
    EndTooLate {
        /// Bits of the time field.
        time_bits: u32,
        /// Length of a tick in milliseconds.
        tick_ms: u64,
        /// The epoch, in milliseconds since 1970.
        epoch_unix_ms: u64,
    },
    /// A value does not fit its field.
    OutOfRange {
        /// The field.
        field: LayoutField,
        /// The value given.
        value: u64,
        /// The largest value allowed; the smallest is 0.
        max: u64,
    },
    /// A raw has bits above the layout's.
    ExtraBits {
        /// The number given.
        raw: u64,
        /// Bits that the layout has, under 64.
        total_bits: u32,
    },
    /// An ID has bits above the cipher's.
    NotOfCipher {
        /// The ID given, as a number.
        id: u64,
        /// Bits that the cipher's IDs have, under 64.
        id_bits: u32,
    },
    /// The layout has no ticks any more.
    Expired {
        /// When it ended, in milliseconds since 1970.
        end_unix_ms: u64,
        /// The time asked about, in milliseconds since 1970.
        now_unix_ms: u64,
    },
}

describe! {
    LayoutError;

    Self::ZeroWidth { field } => "the {field} field has 0 bits; give each field at least 1";
    Self::TooManyBits { time, node, sequence } => (
        "{time} time, {node} node and {sequence} sequence bits are {}; together they may be 3 to 64",
        u64::from(*time) + u64::from(*node) + u64::from(*sequence));
    Self::NoTick { time, node, sequence } => (
        "the layout {time}/{node}/{sequence} needs a tick: 1ms gives a node {} IDs a second, 1s \
         gives it {}; ticks count from Randflake's epoch unless epoch_unix_ms says otherwise",
        1_000_u128 << sequence, 1_u128 << sequence);
    Self::Tick { tick } =>
        "a tick of {tick:?} is not a whole number of milliseconds from 1 to 2^64 - 1; choose one \
         such as 1s or 10ms";
    Self::EpochTooLate { epoch_unix_ms } => (
        "the epoch, {}, is too late; choose one up to {}",
        Utc(*epoch_unix_ms), Utc(LATEST_UNIX_MS));
    Self::EndTooLate { time_bits, tick_ms, epoch_unix_ms } => (
        "2^{time_bits} ticks of {} from {} end later than 2^64 ms after 1970; use fewer time bits \
         or a shorter tick", span(Duration::from_millis(*tick_ms)), Utc(*epoch_unix_ms));
    Self::OutOfRange { field, value, max } =>
        "{field} {value} is out of range: this layout has 0 to {max}; use one of those, or a \
         layout with a wider {field} field";
    Self::ExtraBits { raw, total_bits } =>
        "{raw:#x} has bits above the layout's {total_bits}; it is still encrypted, or was made \
         with another layout";
    Self::NotOfCipher { id, id_bits } =>
        "{id:#x} has bits above the {id_bits} that this cipher's IDs have; it was encrypted with a \
         64-bit cipher, or not encrypted";
    Self::Expired { end_unix_ms, now_unix_ms } => (
        "the layout ran out of ticks at {} and the clock shows {}; if the clock is right, move to \
         a layout with more time bits, and keep its IDs apart from the old ones: a later epoch \
         alone would issue the same numbers again", Utc(*end_unix_ms), Utc(*now_unix_ms));
}

impl Error for LayoutError {}
