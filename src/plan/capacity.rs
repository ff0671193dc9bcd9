//! The smallest ring that a load does not empty.
//!
//! A ring is judged by the worst case: each rise of the rate comes when the level
//! has just not reached the threshold, and the producer sleeps. So the answer
//! does not hang on how the bursts happen to fall, and more slots, or a higher
//! threshold, are never worse.
//!
//! # The law
//!
//! Let a load ask for `R` IDs a second at its peak, and let `W` be the longest wake-up, `F`
//! what producers make in a second, and `A` what takes make while they assist. A ring of `C`
//! slots in `S` stripes has a threshold `T` and a low mark `m` for each stripe, by default
//! `C / (10 x S)`. It never runs dry if
//!
//! ```text
//! without assists   T - 255 x (S - 1)  >  R x W,   and more where R > F
//! with assists      m - 1              >  R x 5 us,  and more where R > F + A
//! ```
//!
//! *Without assists.* While no request is open each stripe holds its share of `T`: the take
//! that leaves less asks. So whichever stripe asks first, and whichever cores take, the
//! ring as a whole holds `T` by then, and takes find the IDs of other stripes when their own
//! has none. But up to 255 of these are in the hands of each take that moves some, which runs
//! on a core of its own; `S - 1` of them at once, and never more than half of what is there.
//! The one who misses them is on the last core. A producer that is awake serves every stripe
//! whose request is open before it sleeps, so there is one wake-up to bridge.
//!
//! *With assists.* The take that leaves fewer than `m` in a stripe makes a run for it, and
//! takes nothing meanwhile. So only others can empty the stripe: takes of other cores, where
//! there are fewer stripes than cores, and threads that get this core. If all of the load
//! comes to this one stripe, they take `R` x the time of an assist, for which 5 us are
//! allowed: it takes one or two on a quiet machine, see `benches/README.md`. When it is done
//! the level is higher by its run, or the next take goes on. So the wake-up is not part of it.
//! With `A` and `F` together below `R` the level falls by the difference, for as long as the
//! peak lasts.
//!
//! *Room for the stripes.* A generator has no more stripes than one for each 1,024 slots. With
//! fewer than one a core, cores share the cache line that each take writes. And with a single
//! one nothing helps where a thread is *stopped* in the wrong place: a producer or a take that
//! is about to publish hides what others publish after it, and one that is stopped in an
//! assist keeps the permission. Takes go on to another stripe then, and assist that. So no
//! ring is planned that has no room for all stripes. With one stripe, whether there is one
//! core or one was asked for, such a stop empties a ring that is not sized as one without
//! assists; so do stops in all stripes at once.
//!
//! One more thing is not bridged: a batch of more than `m` IDs can find fewer than it asks
//! for.

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

/// The lowest one where takes assist, likewise: by default. It decides how often they have
/// to, and not whether the ring runs dry.
const LOWEST_WITH_ASSISTS: u32 = 50;

/// Bursts that are looked at, in case each leaves less for the next.
const BURSTS: u32 = 100;

/// The time for which a steady load is looked at, in seconds. It has one shape.
const STEADY: f64 = 1e6;

/// The smallest ring that does not run dry under `load` on `machine`, with the lowest
/// threshold that does for it, of at most 75 %; and of at least 50 % where takes assist, so
/// that they seldom have to.
///
/// Takes that assist make up for a producer that wakes up late. With the default, a tenth,
/// each stripe is as large as ten times what is taken in 5 us. Without assists the threshold
/// is as high as what is taken during the longest wake-up.
///
/// The ring has room for all [stripes](Machine::with_stripes), 1,024 slots for each, however
/// little is taken: in a smaller one cores share stripes, and takes of different cores slow
/// each other down. Where that does not matter and IDs should be as fresh as can be, ask for
/// one stripe, which can be of any size.
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
/// let load = Load::steady("2M".parse()?);
/// let machine = Machine::new("400M".parse()?, Duration::from_millis(1));
/// // The least that two stripes have; on 64 cores it is 65,536.
/// assert_eq!(plan::capacity_for(&load, &machine)?.capacity(), 2048);
/// assert_eq!(plan::capacity_for(&load, &machine.with_stripes(64))?.capacity(), 65_536);
/// assert_eq!(plan::capacity_for(&load, &machine.with_stripes(1))?.capacity(), 128);
///
/// // 2 M/s x 1 ms are 2,000 IDs, and 255 may be on their way between the stripes.
/// let config = plan::capacity_for(&load, &machine.with_assist_fill(None))?;
/// assert_eq!(config.capacity(), 4096);
/// assert_eq!(config.threshold().in_slots(4096), Ok(2294));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn capacity_for(load: &Load, machine: &Machine) -> Result<Config, SizingError> {
    let seconds = horizon(load);
    let holds = |capacity, percent| {
        let config = Config::new(capacity, ThresholdFill::percent(percent)).ok()?;
        (!underruns(load, machine, &config, seconds)).then_some(config)
    };
    let least = machine.room_for_stripes().ilog2();
    let mut capacities = (least..=RingBuffer::MAX_CAPACITY.ilog2()).map(|log| 1 << log);
    let smallest = capacities.find(|&capacity| holds(capacity, HIGHEST).is_some());
    let lowest = match machine.assisted() > 0.0 {
        true => LOWEST_WITH_ASSISTS,
        false => 1,
    };
    let percents: Vec<u32> = (lowest..=HIGHEST).collect();
    let planned = smallest.and_then(|capacity| {
        let lowest = percents.partition_point(|&percent| holds(capacity, percent).is_none());
        holds(capacity, *percents.get(lowest)?)
    });
    planned.ok_or_else(|| {
        let made = machine.fill_rate().per_second() as f64 + machine.assisted();
        let wanted = load.mean();
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
        /// IDs a second that the producers make, and takes that assist.
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
    use crate::fill::AssistFill;
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

    #[test]
    fn with_assists_no_wake_up_is_bridged() {
        let ring = |text, machine: Machine| capacity_for(&load(text), &machine);
        let assisted = |fill, wake| machine(fill, wake).with_assist_fill(AssistFill::DEFAULT);
        // A usual wake-up is no longer than half of a smaller ring lasts.
        let quick = ring("1M 20M:100ms/1s", assisted(200_000_000, 10));
        assert_eq!(quick, Ok(config(512, 50)));
        for wake in [4000, 1_000_000] {
            // 20 M/s x 5 us are 100 IDs, one more is under way: a tenth of 1,024 is 103.
            let found = ring("1M 20M:100ms/1s", assisted(200_000_000, wake));
            assert_eq!(found, Ok(config(1024, 50)), "{wake} us");
        }
        // The low mark decides, and is no higher than the threshold.
        let machine =
            |percent| machine(200_000_000, 4000).with_assist_fill(AssistFill::below(percent));
        let bursts = "1M 20M:100ms/1s";
        assert_eq!(ring(bursts, machine(20)), Ok(config(512, 50)));
        assert_eq!(ring(bursts, machine(100)), Ok(config(256, 50)));
        // Of each stripe.
        let striped = |count| assisted(200_000_000, 4000).with_stripes(count);
        assert_eq!(ring(bursts, striped(64)), Ok(config(1 << 16, 50)));
        let twice = "1M 40M:100ms/1s";
        assert_eq!(ring(twice, striped(1)), Ok(config(2048, 50)));
        assert_eq!(ring(twice, striped(64)), Ok(config(1 << 17, 50)));
        // Producers and takes together make 80 M/s, and 20 M/s x 10 ms are missing.
        let found = ring("1M 100M:10ms/1s", assisted(40_000_000, 4000));
        assert_eq!(found, Ok(config(1 << 20, 53)));
        let slow = Err(SizingError::TooSlow {
            wanted: 1e8,
            made: 8e7,
        });
        assert_eq!(ring("100M", assisted(40_000_000, 4000)), slow);
    }

    #[test]
    fn the_ring_has_room_for_a_stripe_on_each_core() {
        let capacity = |cores, assist| {
            let machine = machine(400_000_000, 10)
                .with_assist_fill(assist)
                .with_stripes(cores);
            capacity_for(&load("1k"), &machine).unwrap().capacity()
        };
        for (cores, slots) in [(2, 2048), (6, 8192), (64, 1 << 16), (192, 1 << 16)] {
            assert_eq!(capacity(cores, Some(AssistFill::DEFAULT)), slots, "{cores}");
            assert_eq!(capacity(cores, None), slots, "{cores}, without assists");
        }
        // One ring for all cores is as small as it can be.
        assert!(capacity(1, Some(AssistFill::DEFAULT)) < 64);
        assert!(capacity(1, None) < 64);
        // Without a word about it there are two.
        let usual = Machine::new("400M".parse().unwrap(), Duration::from_micros(10));
        assert_eq!(capacity_for(&load("1k"), &usual).unwrap().capacity(), 2048);
    }

    #[test]
    fn what_is_moved_between_stripes_is_not_there() {
        // 2,000 are taken while a producer wakes up.
        let ring = |stripes| {
            let machine = machine(400_000_000, 1000).with_stripes(stripes);
            let config = capacity_for(&load("2M"), &machine).unwrap();
            (
                config.capacity(),
                config.threshold().in_slots(config.capacity()).unwrap(),
            )
        };
        assert_eq!(ring(1), (4096, 2008));
        // 255 more for each other stripe, of which 4,096 slots have 4.
        assert_eq!(ring(2), (4096, 2294));
        assert_eq!(ring(4), (4096, 2786));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_ring_holds_and_half_of_it_does_not(
            rate in 1_000_000..50_000_000_u64,
            millis in 1..50_u64,
            wake in 1..2000_u64,
            fill in 20..500_u64,
            assist in 0..=20_u32,
            stripes in 1..8_usize,
        ) {
            let load = load(&format!("1M {rate}/s:{millis}ms/1s"));
            let machine = machine(fill * 1_000_000, wake)
                .with_assist_fill((assist > 0).then_some(AssistFill::below(assist)))
                .with_stripes(stripes);
            let Ok(planned) = capacity_for(&load, &machine) else {
                return Ok(());
            };
            let run = simulate(&load, &machine, &planned, Duration::from_secs(3));
            prop_assert_eq!(run.empties, 0.0);
            let capacity = planned.capacity();
            let underrun = |capacity, percent| {
                underruns(&load, &machine, &config(capacity, percent), horizon(&load))
            };
            let has_smaller = capacity > machine.room_for_stripes();
            for percent in [1, 25, 50, 75] {
                prop_assert!(!has_smaller || underrun(capacity / 2, percent));
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
