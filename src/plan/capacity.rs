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
    let Some(capacity) = capacities.find(|&capacity| holds(capacity, HIGHEST).is_some()) else {
        return Err(SizingError::new(load, machine));
    };
    // The lowest percentage that holds lies above `low` and up to `high`.
    let (mut low, mut high) = (0, HIGHEST);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(capacity, middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    holds(capacity, high).ok_or(SizingError::new(load, machine))
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

impl SizingError {
    fn new(load: &Load, machine: &Machine) -> Self {
        let (wanted, made) = (load.mean(), machine.fill_rate().per_second() as f64);
        if wanted > made {
            Self::TooSlow { wanted, made }
        } else {
            Self::TooLarge
        }
    }
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

    fn bursts(text: &str) -> Load {
        Load::steady("1M".parse().unwrap()).with_burst(text.parse().unwrap())
    }

    fn machine(fill_rate: &str, wake_micros: u64) -> Machine {
        Machine::new(
            fill_rate.parse().unwrap(),
            Duration::from_micros(wake_micros),
        )
    }

    #[test]
    fn bursts_are_looked_at_for_so_many_of_their_periods() {
        assert_eq!(horizon(&bursts("2M:10ms/10s")), 10.0 * f64::from(BURSTS));
        assert_eq!(horizon(&Load::steady("1M".parse().unwrap())), STEADY);
    }

    /// Each ring underruns again and again there, for longer than anybody waits.
    #[test]
    fn a_load_that_is_hardly_met_or_not_at_all_is_found_soon() {
        let wake = Duration::from_millis(1);
        for (made, load) in [
            ("1000000/s", "1M"),
            ("1000001/s", "1M"),
            ("999999/s", "1M"),
            ("1/s", "1G"),
        ] {
            let machine = Machine::new(made.parse().unwrap(), wake);
            let load = Load::steady(load.parse().unwrap());
            if let Ok(config) = capacity_for(&load, &machine) {
                assert!(config.capacity() >= 1000, "{made}: {config:?}");
            }
        }
    }

    #[test]
    fn a_burst_that_outruns_the_producer_needs_the_difference() {
        // 100 M/s asked for, 50 M/s made, for 10 ms: half a million are missing,
        // and 10,000 are taken before the producer begins, of which those made
        // later are too late.
        let config = capacity_for(&bursts("100M:10ms/1s"), &machine("50M", 100)).unwrap();
        assert_eq!(config.capacity(), 1 << 20);
        let slots = config.threshold().in_slots(1 << 20).unwrap();
        assert!(
            (505_000..505_000 + (1 << 20) / 100 + 1).contains(&slots),
            "{slots}"
        );
    }

    #[test]
    fn what_no_ring_can_do_is_said() {
        let error = capacity_for(&bursts("100M:500ms/1s"), &machine("40M", 100)).unwrap_err();
        assert!(error.to_string().contains("50500000 IDs/s"), "{error}");
        let error = capacity_for(&bursts("1000G:10ms/1h"), &machine("30M", 100)).unwrap_err();
        assert_eq!(error, SizingError::TooLarge);
    }

    #[test]
    fn days_of_load_are_no_work() {
        let config = capacity_for(&bursts("2M:1h/24h"), &machine("400M", 10)).unwrap();
        assert_eq!(config.capacity(), 32);
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
            let load = bursts(&format!("{rate}/s:{millis}ms/1s"));
            let machine = machine(&format!("{fill}M"), wake);
            let Ok(config) = capacity_for(&load, &machine) else {
                return Ok(());
            };
            let run = simulate(&load, &machine, &config, Duration::from_secs(3));
            prop_assert_eq!(run.empties, 0.0);
            let seconds = horizon(&load);
            let underrun = |capacity, percent| {
                let config = Config::new(capacity, ThresholdFill::percent(percent)).unwrap();
                underruns(&load, &machine, &config, seconds)
            };
            for percent in [1, 25, 50, 75] {
                prop_assert!(underrun(config.capacity() / 2, percent));
                prop_assert!(!underrun(config.capacity() * 2, 75));
                // More is never worse.
                if !underrun(config.capacity(), percent) {
                    prop_assert!(!underrun(config.capacity(), percent + 25));
                    prop_assert!(!underrun(config.capacity() * 2, percent));
                }
            }
        }
    }
}
