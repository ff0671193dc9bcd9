//! `Debug` of leases for people: with times, and without fields that only the
//! program reads.

use std::fmt;
use std::ops::Range;

use crate::layout::{Layout, Utc};
use crate::lease::grant::Grant;
use crate::lease::rectangle::Lease;

/// Ticks, and the times that they begin and end at.
pub(super) struct Ticks<'a>(pub(super) &'a Layout, pub(super) Range<u64>);

impl fmt::Debug for Ticks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(layout, ticks) = self;
        let time = |tick| Utc(layout.tick_start_unix_ms(tick));
        write!(
            f,
            "{ticks:?} ({} to {})",
            time(ticks.start),
            time(ticks.end)
        )
    }
}

/// A layout by its name, or by its numbers if it has none.
pub(super) struct Named<'a>(pub(super) &'a Layout);

impl fmt::Debug for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name() {
            Some(name) => f.write_str(name),
            None => fmt::Display::fmt(self.0, f),
        }
    }
}

/// Shows the ticks as times, too: `Lease { nodes: 0..32, ticks: 0..600
/// (2024-10-27T03:33:20Z to 2024-10-27T03:43:20Z), layout: randflake }`.
impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("nodes", &self.nodes())
            .field("ticks", &Ticks(self.layout(), self.ticks()))
            .field("layout", &Named(self.layout()))
            .finish()
    }
}

/// Without times: a grant does not know its layout.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("block", &format_args!("{}", self.block))
            .field("epoch", &format_args!("{}", self.epoch))
            .field("ticks", &self.ticks)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::{Block, Epoch, StaticLease};

    #[test]
    fn a_lease_shows_times_and_the_layouts_name() {
        let ticks = 65_000_000..65_000_600;
        let lease = Lease::new(Layout::RANDFLAKE, 0..32, ticks).unwrap();
        assert_eq!(
            format!("{lease:?}"),
            "Lease { nodes: 0..32, ticks: 65000000..65000600 (2026-11-18T11:06:40Z to \
             2026-11-18T11:16:40Z), layout: randflake }"
        );
        let fine = Lease::new(Layout::TWITTER, 1..2, 0..1).unwrap();
        let shown = format!("{fine:?}");
        let times = "ticks: 0..1 (2010-11-04T01:42:54.657Z to 2010-11-04T01:42:54.658Z)";
        assert!(shown.contains(times), "{shown}");
    }

    #[test]
    fn a_lease_beyond_the_year_9999_is_shown_too() {
        let layout = Layout::builder()
            .bits(46, 8, 8)
            .tick(Duration::from_secs(1))
            .build()
            .unwrap();
        let lease = Lease::new(layout, 0..1, 0..layout.ticks()).unwrap();
        let shown = format!("{lease:?}");
        assert!(
            shown.contains("(2024-10-27T03:33:20Z to the year 2231921"),
            "{shown}"
        );
        assert!(
            shown.contains("layout: 46/8/8@2024-10-27T03:33:20Z/1s"),
            "{shown}"
        );
    }

    #[test]
    fn a_static_lease_shows_its_start() {
        let nodes = || StaticLease::assume_unique(Layout::RANDFLAKE, 3..5);
        for (lease, start) in [
            (nodes(), "now"),
            (nodes().starting_at_tick(1), "tick 1 (2024-10-27T03:33:21Z)"),
            // Of ticks that the layout has not there is no time.
            (
                nodes().starting_at_tick(u64::MAX),
                "tick 18446744073709551615",
            ),
            (
                nodes().starting_at_unix_ms(1_500),
                "1970-01-01T00:00:01.500Z",
            ),
        ] {
            assert_eq!(
                format!("{lease:?}"),
                format!("StaticLease {{ nodes: 3..5, start: {start}, layout: randflake }}")
            );
        }
    }

    #[test]
    fn a_grant_shows_its_numbers() {
        let grant = Grant::new(Block::new(3), Epoch::FIRST, 10..20);
        assert_eq!(
            format!("{grant:?}"),
            "Grant { block: 3, epoch: 1, ticks: 10..20 }"
        );
    }
}
