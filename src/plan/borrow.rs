//! How far ahead of the clock a load drives its lease.
//!
//! A lease of some nodes holds so many IDs for each second. What is asked for
//! beyond that is borrowed from the seconds to come, and paid back when less is
//! asked for: a debt that grows by the difference of the two rates, and never
//! falls below nothing, because what a second did not give away is not kept.

use std::time::Duration;

use super::load::Load;
use crate::layout::Layout;

/// IDs a second that a lease on `nodes` nodes of `layout` has without borrowing.
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
    /// The most seconds that are borrowed at once, were there no limit.
    pub most: f64,
    /// When the limit is reached, in seconds from the beginning: from then on
    /// takes are refused.
    pub used_up_at: Option<f64>,
}

/// What `load` borrows in its first `seconds`, of a lease that has `sustained`
/// IDs a second, where no more than `limit` may be borrowed.
///
/// The ring's own share, `capacity / sustained` seconds while it is full, comes
/// on top. Takes as long as the load has pieces in that time.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::{self, Load};
///
/// let load = Load::steady("1M".parse()?);
/// let borrowed = plan::borrowing(&load, 500e3, Duration::from_secs(60), 100.0);
/// assert_eq!(borrowed.most, 100.0);
/// assert_eq!(borrowed.used_up_at, Some(60.0));
/// # Ok::<(), ringflake::plan::RateError>(())
/// ```
pub fn borrowing(load: &Load, sustained: f64, limit: Duration, seconds: f64) -> Borrowing {
    let limit = limit.as_secs_f64() * sustained;
    let mut debt = 0.0_f64;
    let mut most = 0.0_f64;
    let mut used_up_at = None;
    for piece in load.pieces_until(seconds) {
        let growth = piece.rate - sustained;
        let after = debt + growth * piece.seconds();
        if after > limit {
            used_up_at.get_or_insert(piece.from + (limit - debt) / growth);
        }
        debt = after.max(0.0);
        most = most.max(debt);
    }
    Borrowing {
        most: most / sustained,
        used_up_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::load;

    #[test]
    fn a_lease_has_so_many_ids_a_second() {
        assert_eq!(sustained(&Layout::RANDFLAKE, 32), 4_194_304.0);
        // 256 in each of the 100 ticks of a second.
        assert_eq!(sustained(&Layout::SONYFLAKE_SIZED, 3), 76_800.0);
    }

    #[test]
    fn what_is_not_paid_back_is_used_up() {
        for (text, sustained, seconds, most, used_up_at) in [
            // A limit that is just reached is not passed.
            ("2/s", 1.0, 60.0, 60.0, None),
            ("2/s", 1.0, 60.5, 60.5, Some(60.0)),
            // 1.6 M are borrowed in each burst, and 2.7 M can be paid back after it.
            ("1M 20M:100ms/1s", 4e6, 100.0, 0.4, None),
            // After 31 bursts 58.9 s, and the next one brings 19 s in a second.
            (
                "1M 20M:100ms/1s",
                1e6,
                100.0,
                190.0,
                Some(31.0 + 1.1 / 19.0),
            ),
            // A second that was not used is not kept.
            ("0,0\n50,0\n99,5\n100,0\n", 1.0, 1000.0, 4.0, None),
        ] {
            let found = borrowing(&load(text), sustained, Duration::from_secs(60), seconds);
            assert!((found.most - most).abs() < 1e-6, "{text}: {found:?}");
            // Never is as late as can be.
            let [at, expected] = [found.used_up_at, used_up_at].map(|at| at.unwrap_or(f64::MAX));
            assert!((at - expected).abs() < 1e-6, "{text}: {found:?}");
        }
    }
}
