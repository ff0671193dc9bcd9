//! Small layouts, and what goes with them.

use std::ops::Range;

use ringflake::{Layout, Lease, ManualClock, Secret};

/// A layout with ticks of a second from Randflake's epoch on.
pub(crate) fn layout(time: u32, node: u32, sequence: u32) -> Layout {
    Layout::builder()
        .bits(time, node, sequence)
        .build()
        .unwrap()
}

pub(crate) fn lease(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> Lease {
    Lease::new(layout, nodes, ticks).unwrap()
}

/// A clock that stands at the start of `tick`.
pub(crate) fn clock_at(layout: Layout, tick: u64) -> ManualClock {
    ManualClock::new(layout.tick_start_unix_ms(tick))
}

pub(crate) fn secret() -> Secret {
    Secret::from_bytes(*b"secrets for test")
}
