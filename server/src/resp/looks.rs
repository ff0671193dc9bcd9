//! Whether a worker that has nothing to do looks for events once more before it sleeps.
//!
//! To sleep, and to be woken by whoever sends the next request, costs both several
//! microseconds. Where requests come close together, a worker that looks for some moments
//! spares them. Where they do not, each look is lost time:
//!
//! ```text
//!              a look finds something: the next wait begins with one again
//!            +---+
//!            v   |
//! waits --> looks --> finds nothing: sleeps, and so do the next 1, 3, 7, .. 63 waits
//! ```
//!
//! So a worker that is busy looks each time, and one that is not for [`LOOK`] in 64 waits.

use std::time::Duration;

/// How long a look lasts that finds nothing.
pub(super) const LOOK: Duration = Duration::from_micros(30);

/// Waits that begin with no look, at most, after one that found nothing.
const MOST_SKIPPED: u32 = 63;

/// What came of the looks before.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Waits that are still to begin without one.
    left: u32,
    /// How many those were at first.
    skipped: u32,
}

impl Looks {
    /// Whether the wait that begins now begins with a look.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    /// What came of a look.
    pub(super) fn found(&mut self, something: bool) {
        self.skipped = match something {
            true => 0,
            false => (2 * self.skipped + 1).min(MOST_SKIPPED),
        };
        self.left = self.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits without a look before the next one, which finds something or not.
    fn skipped(looks: &mut Looks, something: bool) -> u32 {
        let skipped = (0..).find(|_| looks.is_due()).unwrap();
        looks.found(something);
        skipped
    }

    #[test]
    fn looks_that_find_nothing_become_rare() {
        let mut looks = Looks::default();
        let all: Vec<_> = (0..9).map(|_| skipped(&mut looks, false)).collect();
        assert_eq!(all, [0, 1, 3, 7, 15, 31, 63, 63, 63]);
    }

    #[test]
    fn a_look_that_finds_something_is_followed_by_another() {
        let mut looks = Looks::default();
        for _ in 0..9 {
            skipped(&mut looks, false);
        }
        assert_eq!(skipped(&mut looks, true), 63);
        for _ in 0..9 {
            assert_eq!(skipped(&mut looks, true), 0);
        }
        assert_eq!(skipped(&mut looks, false), 0);
        assert_eq!(skipped(&mut looks, false), 1);
    }
}
