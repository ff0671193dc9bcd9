//! The ring that a load needs on a machine: one formula.
//!
//! # Inputs
//!
//! | | |
//! |---|---|
//! | `R` | the peak rate of the load |
//! | `E(M)` | the most IDs that the load asks for beyond `M` IDs a second ([`Load::excess`]) |
//! | `W` | the longest wake-up of a producer |
//! | `F` | IDs a second that all producers make |
//! | `A` | IDs a second that takes make while they assist: those that the consumers' cores make in the time that takes leave, `F of one x (consumers - R / takes of one)`; 0 without assists |
//! | `C`, `S` | slots and stripes |
//! | `T` | slots below the threshold, without those in the hands of takes |
//! | `m` | the low marks of all stripes, by default `C / 10`; 0 without assists |
//!
//! # The formula
//!
//! The worst case: the peak begins when the level has just not reached the threshold.
//!
//! ```text
//! level     what happens                            the level falls by
//! T
//! |         the producer wakes up                   R x W,      and E(F) after that
//! m         takes assist from here on               (R - A) x the rest of W,   E(F + A)
//! |         while a take assists, others take on    R x 5 us x S
//! 0         the ring is empty
//! ```
//!
//! The ring is enough if `T` is more than the sum, and if an assist is in time wherever the
//! load comes to one stripe: `m > R x 5 us x S`. [`capacity_for`] starts at the default capacity
//! and doubles it until both hold with each of these terms times [`MARGIN`], the only margin.
//!
//! # Why it holds
//!
//! *Without assists.* While no request is open each stripe holds its share of the threshold:
//! the take that leaves less asks. So whichever stripe asks first, the ring as a whole holds
//! the threshold by then, and takes find the IDs of other stripes when their own has none. Up
//! to 255 IDs are in the hands of each take that moves some, on a core of its own: `S - 1` of
//! them at once, and never more than half of what is there. A producer that is awake serves
//! every open request before it sleeps, so there is one wake-up to bridge.
//!
//! *With assists.* The take that leaves fewer than its stripe's low mark makes a run of IDs, and
//! takes nothing meanwhile. Only others can empty the stripe: takes of other cores, and threads
//! scheduled on this core. If the whole load comes to this one stripe, they take `R` x the time of
//! an assist. An assist takes 1 to 2 us on a quiet machine; 5 us are allowed.
//! When it is done the level is higher by its run, or the next take goes on.
//!
//! *Room for the stripes.* A generator has at most one stripe for each 1,024 slots. With a
//! single stripe, a thread that is stopped while it publishes or assists hides or holds up what
//! the others need. With two, takes go on to the other stripe. So no answer has fewer than
//! 1,024 slots for each core.
//!
//! Two things are not covered: stops in all stripes at once, and a batch of more than `m` IDs,
//! which makes the rest itself.

use std::error::Error;
use std::time::Duration;

use super::MARGIN;
use super::load::Load;
use super::rate::{self, Rate};
use crate::describe::describe;
use crate::fill::{AssistFill, PolicyError, Stripe, ThresholdFill};
use crate::ring::RingBuffer;

/// The capacity of a generator by default.
const DEFAULT_CAPACITY: usize = 1 << 16;

/// The time that an assist may take.
const ASSIST_SECONDS: f64 = 5e-6;

/// The most IDs that a take moves from one stripe to another.
const MOVED: usize = 255;

/// A machine, as measured or as assumed, and the threads on it.
///
/// The default is a slow machine of two cores. `ringflake tune` measures one.
///
/// # Examples
///
/// ```
/// use ringflake::plan::Machine;
///
/// let mut machine = Machine::default();
/// machine.cores = 16;
/// machine.fill_rate = "500M".parse()?;
/// # Ok::<(), ringflake::plan::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Machine {
    /// Cores. A generator has a stripe for each, rounded up to a power of two.
    pub cores: usize,
    /// Producer threads.
    pub producers: usize,
    /// Threads that take IDs.
    pub consumers: usize,
    /// IDs that one producer makes in a second.
    pub fill_rate: Rate,
    /// IDs that one thread takes in a second from a ring that has some.
    pub take_rate: Rate,
    /// The longest time from the take that asks for a fill to the first new ID.
    pub wake_up: Duration,
    /// Whether takes make IDs when the ring has very few
    /// ([`assist_fill`](crate::CachedGeneratorBuilder::assist_fill)).
    pub assists: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            cores: 2,
            producers: 1,
            consumers: 1,
            fill_rate: Rate::of(100_000_000),
            take_rate: Rate::of(50_000_000),
            wake_up: Duration::from_millis(5),
            assists: true,
        }
    }
}

impl Machine {
    fn wanted_stripes(&self) -> usize {
        self.cores.clamp(1, Stripe::MOST).next_power_of_two()
    }

    /// The stripes of a ring.
    fn stripes(&self, capacity: usize) -> usize {
        let room = capacity / Stripe::MIN_SLOTS;
        self.wanted_stripes().min(room).max(1)
    }

    /// The slots of the smallest ring that has a stripe for each core.
    fn cores_room(&self) -> usize {
        self.wanted_stripes() * Stripe::MIN_SLOTS
    }

    /// IDs a second that all producers make.
    fn made(&self) -> f64 {
        self.producers as f64 * self.fill_rate.per_second() as f64
    }

    /// IDs a second that takes make while they assist under so many takes a second.
    fn assisted(&self, taken: f64) -> f64 {
        if !self.assists {
            return 0.0;
        }
        let busy = taken / self.take_rate.per_second() as f64;
        let cores = self.consumers.min(self.cores) as f64;
        self.fill_rate.per_second() as f64 * (cores - busy).max(0.0)
    }

    /// A take that leaves fewer IDs than this in its stripe assists; 0 if none does.
    fn low_mark(&self, capacity: usize, threshold: usize) -> usize {
        let stripes = self.stripes(capacity);
        match self.assists {
            true => (AssistFill::DEFAULT.in_slots(capacity / stripes)).min(threshold / stripes),
            false => 0,
        }
    }
}

/// How low a load drives a ring, in the worst case; see [`lowest_level`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Level {
    /// The lowest level.
    pub lowest: f64,
    /// Takes that find the ring empty in a peak. Infinite if they do so in the end, however
    /// large the ring is.
    pub empties: f64,
    /// Whether the level comes so low that takes assist.
    pub assisted: bool,
}

/// How low `load` drives a ring of `capacity` slots on `machine`, in the worst case.
///
/// # Errors
///
/// [`PolicyError`] if `threshold` is out of range for such a ring.
///
/// # Examples
///
/// ```
/// use ringflake::ThresholdFill;
/// use ringflake::plan::{self, Load, Machine};
///
/// // 1 M/s x 5 ms are 5,000 IDs, which are taken while a producer wakes up.
/// let load = Load::steady("1M".parse()?);
/// let level = |percent| {
///     let threshold = ThresholdFill::percent(percent);
///     plan::lowest_level(&load, &Machine::default(), 1 << 16, threshold)
/// };
/// // 255 more may be on their way between the two stripes.
/// assert_eq!(level(50)?.lowest, 32_768.0 - 255.0 - 5_000.0);
/// assert_eq!(level(25)?.lowest, 16_384.0 - 255.0 - 5_000.0);
/// // A tenth of the ring is left when takes begin to assist, and they keep it up.
/// assert!(level(15)?.assisted && level(15)?.empties == 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lowest_level(
    load: &Load,
    machine: &Machine,
    capacity: usize,
    threshold: ThresholdFill,
) -> Result<Level, PolicyError> {
    level_with(1.0, load, machine, capacity, threshold)
}

/// The level with each term of the formula multiplied by `factor`.
fn level_with(
    factor: f64,
    load: &Load,
    machine: &Machine,
    capacity: usize,
    threshold: ThresholdFill,
) -> Result<Level, PolicyError> {
    let peak = load.peak();
    let in_wake_up = peak * machine.wake_up.as_secs_f64() * factor;
    let threshold = threshold.in_slots(capacity)?;
    let stripes = machine.stripes(capacity);
    let mark = (machine.low_mark(capacity, threshold) * stripes) as f64;
    let threshold = threshold as f64;
    let moved = (MOVED * (stripes - 1)) as f64;
    let level = threshold - moved.min(threshold / 2.0).floor();

    // Down to the mark in the wake-up, and from there on with the help of takes.
    let above = (level - mark).max(0.0);
    let unassisted = in_wake_up.min(above);
    let assisted = machine.assisted(peak);
    let missing = (1.0 - assisted / peak).max(0.0);
    let in_wake_up = unassisted + (in_wake_up - unassisted) * missing;
    // The same once the producers are awake.
    let above = (above - in_wake_up).max(0.0);
    let excess = load.excess(machine.made()) * factor;
    let below = (excess - above).max(0.0);
    let with_assists = load.excess(machine.made() + assisted) * factor;
    let later = excess.min(above) + below.min(with_assists);
    let is_assisted = machine.assists && (below > 0.0 || above == 0.0);
    let meanwhile = match is_assisted {
        true => peak * ASSIST_SECONDS * stripes as f64 * factor,
        false => 0.0,
    };
    let left = level - in_wake_up - later - meanwhile;
    Ok(Level {
        lowest: left.max(0.0),
        empties: (-left).max(0.0),
        assisted: is_assisted,
    })
}

/// The capacity of a ring that `load` does not empty, with a margin of [`MARGIN`], and at least
/// the default of 65,536 slots.
///
/// A pure function of the worst case: no phase of the fills is assumed.
///
/// # Errors
///
/// [`SizingError`] if no ring is large enough.
pub fn capacity_for(
    load: &Load,
    machine: &Machine,
    threshold: ThresholdFill,
) -> Result<usize, SizingError> {
    let wanted = load.peak();
    let taken = machine.consumers as f64 * machine.take_rate.per_second() as f64;
    if wanted > taken {
        return Err(SizingError::Takes { wanted, taken });
    }
    let made = machine.made() + machine.assisted(wanted);
    if load.excess(made).is_infinite() {
        let wanted = load.mean();
        return Err(SizingError::TooSlow { wanted, made });
    }
    let least = DEFAULT_CAPACITY.max(machine.cores_room());
    let mut capacities = (least.ilog2()..=RingBuffer::MAX_CAPACITY.ilog2()).map(|log| 1 << log);
    capacities
        .find(|&capacity| is_enough(load, machine, capacity, threshold))
        .ok_or(SizingError::TooLarge)
}

/// Whether `load` does not empty a ring of `capacity` slots on `machine`, with a margin of
/// [`MARGIN`].
pub fn is_enough(
    load: &Load,
    machine: &Machine,
    capacity: usize,
    threshold: ThresholdFill,
) -> bool {
    let Ok(level) = level_with(MARGIN, load, machine, capacity, threshold) else {
        return false;
    };
    let threshold = threshold.in_slots(capacity).unwrap_or(0);
    let mark = machine.low_mark(capacity, threshold) as f64;
    level.lowest >= 1.0 && (!machine.assists || mark > load.peak() * ASSIST_SECONDS * MARGIN)
}

/// Why no ring is large enough for a load.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SizingError {
    /// The peak asks for more IDs than the threads take.
    Takes {
        /// IDs a second of the peak.
        wanted: f64,
        /// IDs a second that all threads take.
        taken: f64,
    },
    /// More IDs are asked for than are made, not only in bursts.
    TooSlow {
        /// IDs a second that are asked for on average.
        wanted: f64,
        /// IDs a second that producers make, and takes that assist.
        made: f64,
    },
    /// A burst, or a wake-up, takes more than the largest ring holds.
    TooLarge,
}

describe! {
    SizingError;

    Self::Takes { wanted, taken } => (
        "the peak needs {} IDs/s, and the threads take at most {} IDs/s one by one; take batches, \
         or use more threads on more cores", about(*wanted), about(*taken));
    Self::TooSlow { wanted, made } => (
        "the load needs {} IDs/s on average, and producers and takes generate at most {} IDs/s; \
         use more producers on more cores, or share the load among processes",
        about(*wanted), about(*made));
    Self::TooLarge => (
        "a burst takes more IDs than the largest ring holds, {} slots; share the load among \
         processes", RingBuffer::MAX_CAPACITY);
}

impl Error for SizingError {}

/// A number of IDs with three digits.
fn about(ids: f64) -> String {
    let unit = 10_f64.powf(ids.log10().floor() - 2.0).max(1.0);
    rate::short((ids / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::tests::load;

    const HALF: ThresholdFill = ThresholdFill::percent(50);

    /// Two cores, of which one takes.
    fn machine(fill_rate: &str, wake_micros: u64) -> Machine {
        Machine {
            fill_rate: fill_rate.parse().unwrap(),
            wake_up: Duration::from_micros(wake_micros),
            take_rate: Rate::MAX,
            ..Machine::default()
        }
    }

    fn unassisted(fill_rate: &str, wake_micros: u64) -> Machine {
        Machine {
            cores: 1,
            assists: false,
            ..machine(fill_rate, wake_micros)
        }
    }

    #[test]
    fn the_level_falls_by_the_terms_of_the_formula() {
        let (half, marks) = (32_768.0, 6554.0);
        // After 259.59 us the level meets the mark, and 20 M/s are missing from then on.
        let met = 20.0 * (300.0 - (half - 255.0 - marks) / 120.0);
        let falls = |text, machine: Machine, lowest: f64, empties: f64, is_assisted| {
            let level = lowest_level(&load(text), &machine, 1 << 16, HALF).unwrap();
            let is_near = |a: f64, b: f64| a == b || (a - b).abs() < 2.0;
            let are_near = is_near(level.lowest, lowest) && is_near(level.empties, empties);
            assert!(are_near, "{text}: {level:?}, not {lowest} and {empties}");
            assert_eq!(level.assisted, is_assisted, "{text}");
        };
        let alone = |wake_micros| unassisted("100M", wake_micros);
        let assisted = |wake_micros| machine("100M", wake_micros);
        // R x W.
        falls("1M", alone(10_000), half - 1e4, 0.0, false);
        falls("1M", alone(40_000), 0.0, 4e4 - half, false);
        // E(F): 10 M/s are missing for 1 ms.
        let burst = "1M 110M:1ms/1s";
        falls(burst, alone(0), half - 1e4, 0.0, false);
        falls(burst, alone(100), half - 2.1e4, 0.0, false);
        // More is asked for than is made.
        falls("101M", alone(0), 0.0, f64::INFINITY, false);
        // Two stripes with marks of 3,277 slots: 255 IDs are on their way.
        falls("1M", assisted(10_000), half - 255.0 - 1e4, 0.0, false);
        // Takes make more than is taken, and 5 us x 2 stripes are left to others.
        falls("1M", assisted(40_000), marks - 10.0, 0.0, true);
        // R - A.
        let peak = "1M 120M:1us/1s";
        falls(peak, assisted(300), marks - 1200.0 - met, 0.0, true);
        // E(F + A): 50 M/s are missing for 1 ms, and once takes assist none.
        let burst = "1M 150M:1ms/1s";
        falls(burst, assisted(0), marks - 1500.0, 0.0, true);
    }

    #[test]
    fn takes_leave_less_time_for_assists_the_faster_they_are() {
        let mut machine = machine("100M", 0);
        machine.take_rate = Rate::of(50_000_000);
        machine.consumers = 3;
        // On two cores.
        assert_eq!(machine.assisted(0.0), 200e6);
        assert_eq!(machine.assisted(25e6), 150e6);
        assert_eq!(machine.assisted(100e6), 0.0);
        machine.assists = false;
        assert_eq!(machine.assisted(0.0), 0.0);
    }

    #[test]
    fn the_answer_is_the_default_or_has_the_margin() {
        let on_cores = |cores| Machine {
            cores,
            ..machine("400M", 5000)
        };
        for (text, machine, percent, capacity) in [
            ("1/s", on_cores(2), 50, 1 << 16),
            ("1M 20M:100ms/1s", on_cores(2), 50, 1 << 16),
            // Twice 5 us x 20 M/s are 200 IDs; the mark of 1,024 slots is 103.
            ("1M 20M:100ms/1s", on_cores(64), 50, 1 << 17),
            // No more than 64 stripes.
            ("1/s", on_cores(192), 50, 1 << 16),
            // Twice 20 M/s x 5 ms.
            ("1M 20M:100ms/1s", unassisted("400M", 5000), 50, 1 << 19),
            ("1M 20M:100ms/1s", unassisted("400M", 5000), 25, 1 << 20),
            // Twice 50 M/s x 10 ms.
            ("1M 100M:10ms/1s", unassisted("50M", 0), 50, 1 << 21),
        ] {
            let fill = ThresholdFill::percent(percent);
            let found = capacity_for(&load(text), &machine, fill);
            assert_eq!(found, Ok(capacity), "{text}, {percent} %");
        }
    }

    #[test]
    fn a_load_that_no_ring_serves_has_its_reason() {
        let mut slow_takes = machine("400M", 10);
        slow_takes.take_rate = Rate::of(1_000_000);
        let takes =
            "needs 2M IDs/s, and the threads take at most 1M IDs/s one by one; take batches";
        let too_slow = "500M IDs/s on average, and producers and takes generate at most 400M";
        for (text, machine, said) in [
            ("2M", slow_takes, takes),
            ("500M", machine("200M", 10), too_slow),
            (
                "1M 100M:10s/1h",
                unassisted("50M", 0),
                "the largest ring holds",
            ),
            ("1G", unassisted("1G", 2_000_000), "1073741824 slots"),
        ] {
            let error = capacity_for(&load(text), &machine, HALF).unwrap_err();
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_threshold_that_is_none_is_refused() {
        let none = ThresholdFill::percent(0);
        let machine = Machine::default();
        assert!(lowest_level(&load("1M"), &machine, 1 << 16, none).is_err());
    }

    proptest! {
        #[test]
        fn more_slots_and_higher_thresholds_are_never_worse(
            rate in 1_000_000..200_000_000_u64,
            millis in 1..50_u64,
            wake in 0..10_000_u64,
            fill in 20..500_u64,
            assists: bool,
            cores in 1..16_usize,
            percent in 1..=75_u32,
        ) {
            let load = load(&format!("1M {rate}/s:{millis}ms/1s"));
            let machine = Machine { cores, assists, ..machine(&format!("{fill}M"), wake) };
            let fill = ThresholdFill::percent(percent);
            let Ok(capacity) = capacity_for(&load, &machine, fill) else {
                return Ok(());
            };
            prop_assert!(lowest_level(&load, &machine, capacity, fill).unwrap().empties == 0.0);
            prop_assert!(is_enough(&load, &machine, 2 * capacity, fill));
            let higher = ThresholdFill::percent(percent + 25);
            prop_assert!(is_enough(&load, &machine, capacity, higher));
        }
    }
}
