//! How many nodes a load needs, and how far ahead of the clock it drives its lease.
//!
//! A lease sustains `nodes x sequences / tick` IDs a second. IDs beyond that are borrowed
//! from the seconds to come, and paid back when less is asked for: a debt that grows by the
//! difference of the two rates. It never falls below 0, because IDs that a second did not
//! give away are not kept.

use std::time::Duration;

use super::MARGIN;
use super::load::Load;
use crate::layout::Layout;

/// How many nodes a lease needs for `load`, if up to `limit` may be borrowed.
///
/// The nodes sustain [`MARGIN`] times the mean rate, and a burst borrows no more than the
/// limit divided by [`MARGIN`]. The result may be more than `layout` has.
pub fn nodes_for(load: &Load, layout: &Layout, limit: Duration) -> u64 {
    let of_one = sustained(layout, 1);
    let limit = limit.as_secs_f64() / MARGIN;
    let is_enough = |nodes: u64| {
        let sustained = of_one * nodes as f64;
        sustained >= MARGIN * load.mean() && load.excess(sustained) <= limit * sustained
    };
    // Nothing is borrowed by a load at whose peak the nodes keep up.
    let most = load.peak().max(MARGIN * load.mean()) / of_one;
    let (mut few, mut enough) = (0, most.ceil().max(1.0) as u64);
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        match is_enough(middle) {
            true => enough = middle,
            false => few = middle,
        }
    }
    enough
}

/// IDs a second that a lease on `nodes` nodes of `layout` sustains without borrowing.
///
/// # Examples
///
/// ```
/// use ringflake::{Layout, plan};
///
/// assert_eq!(plan::sustained(&Layout::RANDFLAKE, 32), 4_194_304.0);
/// ```
pub fn sustained(layout: &Layout, nodes: u64) -> f64 {
    nodes as f64 * layout.sequences() as f64 * 1000.0 / layout.tick_ms() as f64
}

/// What a load borrows; see [`borrowing`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Borrowing {
    /// The most seconds that are borrowed at once, were there no limit. Infinite if the load
    /// never pays them back.
    pub most: f64,
    /// When the limit is reached, in seconds from the beginning: from then on
    /// takes are refused. Beyond the second burst, an estimate from the mean rate.
    pub used_up_at: Option<f64>,
}

/// What `load` borrows of a lease that sustains `sustained` IDs a second, if up to `limit` may
/// be borrowed.
///
/// A full ring borrows `capacity / sustained` seconds on top.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::{self, Load};
///
/// let load = Load::steady("1M".parse()?);
/// let borrowed = plan::borrowing(&load, 500e3, Duration::from_secs(60));
/// assert_eq!(borrowed.most, f64::INFINITY);
/// assert_eq!(borrowed.used_up_at, Some(60.0));
/// # Ok::<(), ringflake::plan::LoadError>(())
/// ```
pub fn borrowing(load: &Load, sustained: f64, limit: Duration) -> Borrowing {
    let (most, limit) = (load.excess(sustained), limit.as_secs_f64() * sustained);
    Borrowing {
        most: most / sustained,
        used_up_at: (most > limit).then(|| used_up_at(load, sustained, limit)),
    }
}

/// When a debt that passes `limit` IDs does so.
fn used_up_at(load: &Load, sustained: f64, limit: f64) -> f64 {
    // The debt of a burst is paid within the next period, or grows by the mean rate.
    let period = load.period().map(|it| it.as_secs_f64());
    let mut debt = 0.0_f64;
    for piece in load.pieces_until(period.map_or(f64::INFINITY, |it| 2.0 * it)) {
        let growth = piece.rate - sustained;
        let after = debt + growth * piece.seconds();
        if after > limit {
            return piece.from + (limit - debt) / growth;
        }
        debt = after.max(0.0);
    }
    limit / (load.mean() - sustained)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::load;

    #[test]
    fn nodes_sustain_twice_the_mean_and_bursts_borrow_half_of_the_limit() {
        let nodes = |text, limit| {
            let limit = Duration::from_secs(limit);
            nodes_for(&load(text), &Layout::RANDFLAKE, limit)
        };
        for (text, limit, expected) in [
            ("1/s", 60, 1),
            ("65536/s", 60, 1),
            ("65537/s", 60, 2),
            ("1M 20M:100ms/1s", 60, 45),
            // 2 M IDs in 200 ms; three nodes would do for the burst.
            ("50k 10M:200ms/10s", 60, 4),
            // Ten seconds above the mean: the limit decides.
            ("1k 10M:10s/1h", 60, 20),
            ("1k 10M:10s/1h", 600, 3),
            // Nothing may be borrowed.
            ("1k 10M:10s/1h", 0, 77),
        ] {
            assert_eq!(nodes(text, limit), expected, "{text}, {limit} s");
        }
    }

    #[test]
    fn a_lease_sustains_its_sequences_in_each_tick() {
        assert_eq!(sustained(&Layout::RANDFLAKE, 32), 4_194_304.0);
        // 256 in each of the 100 ticks of a second.
        assert_eq!(sustained(&Layout::SONYFLAKE_SIZED, 3), 76_800.0);
    }

    #[test]
    fn a_debt_that_is_not_repaid_reaches_the_limit() {
        let never = f64::INFINITY;
        for (text, sustained, most, used_up_at) in [
            ("2/s", 1.0, never, Some(60.0)),
            // 1.6 M are borrowed in each burst, and 2.7 M can be paid back after it.
            ("1M 20M:100ms/1s", 4e6, 0.4, None),
            // 40 s are borrowed in each burst, and none are paid back.
            ("1/s 3/s:20s/30s", 1.0, never, Some(40.0)),
            // By the mean rate, which is 1.9 M above what is sustained.
            ("1M 20M:100ms/1s", 1e6, never, Some(60.0 / 1.9)),
            // A limit that is just reached is not passed.
            ("0,120\n60,0\n", 1.0, 60.0, None),
            // Seconds that were not used are not kept.
            ("0,0\n50,0\n99,5\n100,0\n", 1.0, 4.0, None),
            ("0,0\n100,200\n150,0\n", 1.0, 150.0, Some(120.0)),
        ] {
            let found = borrowing(&load(text), sustained, Duration::from_secs(60));
            let rounded = |seconds: f64| (seconds * 1e6).round();
            assert_eq!(rounded(found.most), rounded(most), "{text}");
            let at = found.used_up_at.map(rounded);
            assert_eq!(at, used_up_at.map(rounded), "{text}");
        }
    }
}
