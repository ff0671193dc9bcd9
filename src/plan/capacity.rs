//! The smallest ring that a load does not empty.
//!
//! A ring is judged by the worst case: each rise of the rate comes when the level
//! has just not reached the threshold, and the producer sleeps. So the answer
//! does not hang on how the bursts happen to fall, and more slots, or a higher
//! threshold, are never worse.

use std::error::Error;
use std::fmt;

use super::load::Load;
use super::machine::{Config, Machine};
use super::simulation::underruns;
use crate::fill::ThresholdFill;
use crate::ring::RingBuffer;

/// The highest threshold that is planned with, in percent. Above it a producer
/// is woken for too few IDs.
const HIGHEST: u32 = 75;

/// Bursts that are looked at, in case each leaves less for the next.
const BURSTS: u32 = 100;

/// The time for which a steady load is looked at, in seconds. It has one shape.
const STEADY: f64 = 1e6;

/// The smallest ring that does not run dry under `load` on `machine`, with the lowest
/// threshold that does for it, of at most 75 %.
///
/// In the worst case, that is: no phase of the fills is assumed. There is no margin
/// in it but for the power of two; [`Machine::with_margin`] adds one. Bursts are
/// assumed to come back for 100 periods.
///
/// A pure function, whose time grows with the pieces of the load, and not with
/// how long each lasts.
///
/// # Errors
///
/// [`SizingError`] if no ring is large enough.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::{self, Load, Machine};
///
/// // 2 M/s x 1 ms are 2,000 IDs, which is less than half of 4,096.
/// let machine = Machine::new("400M".parse()?, Duration::from_millis(1));
/// let config = plan::capacity_for(&Load::steady("2M".parse()?), &machine)?;
/// assert_eq!(config.capacity(), 4096);
/// assert_eq!(config.threshold().in_slots(4096), Ok(2008));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn capacity_for(load: &Load, machine: &Machine) -> Result<Config, SizingError> {
    let seconds = horizon(load);
    let holds = |capacity, percent| {
        let config = Config::new(capacity, ThresholdFill::percent(percent)).ok()?;
        (!underruns(load, machine, &config, seconds)).then_some(config)
    };
    let mut capacities = (0..=RingBuffer::MAX_CAPACITY.ilog2()).map(|log| 1 << log);
    let smallest = capacities.find(|&capacity| holds(capacity, HIGHEST).is_some());
    let percents: Vec<u32> = (1..=HIGHEST).collect();
    let planned = smallest.and_then(|capacity| {
        let lowest = percents.partition_point(|&percent| holds(capacity, percent).is_none());
        holds(capacity, *percents.get(lowest)?)
    });
    planned.ok_or_else(|| {
        let (wanted, made) = (load.mean(), machine.fill_rate().per_second() as f64);
        if wanted > made {
            SizingError::TooSlow { wanted, made }
        } else {
            SizingError::TooLarge
        }
    })
}

/// For how long a load is looked at, in seconds.
fn horizon(load: &Load) -> f64 {
    match (load.duration(), load.period()) {
        (Some(whole), _) => whole.as_secs_f64(),
        (None, Some(period)) => period.as_secs_f64() * f64::from(BURSTS),
        (None, None) => STEADY,
    }
}

/// Why no ring is large enough for a load.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SizingError {
    /// More IDs are asked for than are made, not only in bursts.
    TooSlow {
        /// IDs a second that are asked for on average.
        wanted: f64,
        /// IDs a second that the producers make.
        made: f64,
    },
    /// A burst, or a wake-up, takes more than [`RingBuffer::MAX_CAPACITY`] IDs.
    TooLarge,
}

impl fmt::Display for SizingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSlow { wanted, made } => write!(
                f,
                "no ring keeps up: {wanted:.0} IDs/s are asked for on average and {made:.0} \
                 IDs/s are made; run more producers, or share the load among processes"
            ),
            Self::TooLarge => write!(
                f,
                "no ring of up to {} slots is enough: more than that is taken before a producer \
                 makes up for it; share the load among processes",
                RingBuffer::MAX_CAPACITY
            ),
        }
    }
}

impl Error for SizingError {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::simulate;
    use crate::plan::tests::{config, load, machine};

    #[test]
    fn a_load_is_looked_at_for_so_long() {
        for (text, seconds) in [
            ("1M 2M:10ms/10s", 10.0 * f64::from(BURSTS)),
            ("1M", STEADY),
            ("0,1\n2,1", 4.0),
        ] {
            assert_eq!(horizon(&load(text)), seconds, "{text}");
        }
    }

    #[test]
    fn a_load_has_its_smallest_ring_or_none() {
        let too_slow = |wanted, made| Err(SizingError::TooSlow { wanted, made });
        let too_large = || Err(SizingError::TooLarge);
        let ring = |capacity, percent| Ok(config(capacity, percent));
        for (text, machine, expected) in [
            // Days are no work. 20 are taken while a producer wakes up.
            ("1M 2M:1h/24h", machine(400_000_000, 10), ring(32, 63)),
            // 100 M/s asked for, 50 M/s made, for 10 ms: half a million are missing,
            // and 5,000 more, since those made in the first 100 us are too late.
            (
                "1M 100M:10ms/1s",
                machine(50_000_000, 100),
                ring(1 << 20, 49),
            ),
            // Smaller rings underrun again and again there, for longer than anybody waits.
            ("1M", machine(1_000_000, 1000), ring(2048, 49)),
            ("1M", machine(1_000_001, 950), ring(2048, 47)),
            // One is missing in each of a million seconds.
            ("1M", machine(999_999, 1000), ring(1 << 21, 48)),
            ("1G", machine(1, 1000), too_slow(1e9, 1.0)),
            (
                "1M 50M:1s/2s",
                machine(20_000_000, 100),
                too_slow(25.5e6, 20e6),
            ),
            ("1M 1000G:10ms/1h", machine(30_000_000, 100), too_large()),
            // As many are made as are asked for, too late.
            ("1G", machine(1_000_000_000, 2_000_000), too_large()),
        ] {
            let found = capacity_for(&load(text), &machine);
            assert_eq!(found, expected, "{text}, {machine:?}");
        }
        let (wanted, made) = (50.5e6, 40e6);
        let error = SizingError::TooSlow { wanted, made }.to_string();
        assert!(error.contains("50500000 IDs/s are asked for"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_ring_holds_and_half_of_it_does_not(
            rate in 1_000_000..50_000_000_u64,
            millis in 1..50_u64,
            wake in 1..2000_u64,
            fill in 20..500_u64,
        ) {
            let load = load(&format!("1M {rate}/s:{millis}ms/1s"));
            let machine = machine(fill * 1_000_000, wake);
            let Ok(planned) = capacity_for(&load, &machine) else {
                return Ok(());
            };
            let run = simulate(&load, &machine, &planned, Duration::from_secs(3));
            prop_assert_eq!(run.empties, 0.0);
            let capacity = planned.capacity();
            let underrun = |capacity, percent| {
                underruns(&load, &machine, &config(capacity, percent), horizon(&load))
            };
            for percent in [1, 25, 50, 75] {
                prop_assert!(underrun(capacity / 2, percent));
                prop_assert!(!underrun(capacity * 2, 75));
                // More is never worse.
                if !underrun(capacity, percent) {
                    prop_assert!(!underrun(capacity, percent + 25));
                    prop_assert!(!underrun(capacity * 2, percent));
                }
            }
        }
    }
}
