//! What the library's model says of the load on this machine: where the search begins.

use std::time::Duration;

use ringflake::plan::{self, Load, Rate};

use super::machine::Machine;
use super::setting::Choices;
use crate::threshold::Threshold;

/// Capacities this many times below the model's answer, or above it, are left out.
const FAR_BELOW: usize = 16;
const FAR_ABOVE: usize = 64;

/// The threads that take part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub(super) producers: usize,
    pub(super) consumers: usize,
    pub(super) cores: usize,
}

/// How many IDs have to lie below the threshold, from the longest wake-up of this
/// machine and what takes make themselves; `None` if no ring is enough.
pub(super) fn slots_needed(load: &Load, machine: &Machine, threads: Threads) -> Option<usize> {
    let rate_of = |count: usize, rate: f64| {
        let rate = (rate * count as f64) as u64;
        Rate::new(rate.clamp(1, Rate::MAX.per_second())).ok()
    };
    let wake = Duration::from_secs_f64(machine.wake_longest);
    // One take at a time for each core assists. Takes that other work keeps from running ask
    // for nothing meanwhile: so they make as many as they would without it.
    let assisting = threads.consumers.min(threads.cores);
    let machine = plan::Machine::new(rate_of(threads.producers, machine.fill_rate)?, wake)
        .with_assist_rate(rate_of(assisting, machine.running_fill_rate)?)
        .with_stripes(threads.cores);
    let config = plan::capacity_for(load, &machine).ok()?;
    config.threshold().in_slots(config.capacity()).ok()
}

/// The smallest capacity with so many slots below its threshold.
pub(super) fn minimum_capacity(slots: usize, threshold: Threshold) -> usize {
    let capacity = slots.saturating_mul(100) / threshold.highest_percent() as usize;
    let capacity = capacity.max(1).checked_next_power_of_two();
    capacity.unwrap_or(usize::MAX)
}

/// Takes away the capacities that the model rules out: far below its answers each ring
/// runs dry, and far above no ring does.
pub(super) fn prune(choices: &mut Choices, slots: usize) {
    let predicted = (choices.thresholds.iter()).map(|&it| minimum_capacity(slots, it));
    let smallest = predicted.clone().min().unwrap_or(1);
    let largest = predicted.max().unwrap_or(usize::MAX);
    let near = smallest / FAR_BELOW..=largest.saturating_mul(FAR_ABOVE);
    // All of them are kept rather than none.
    if choices.capacities.iter().any(|it| near.contains(it)) {
        choices.capacities.retain(|it| near.contains(it));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        fill_rate: 400e6,
        running_fill_rate: 400e6,
        wake_usual: 10e-6,
        wake_slow: 5e-4,
        wake_longest: 1e-3,
        take_cost: 5e-9,
    };

    fn slots(rate: &str, burst: &str, producers: usize) -> Option<usize> {
        slots_on(&MACHINE, rate, burst, producers)
    }

    fn slots_on(machine: &Machine, rate: &str, burst: &str, producers: usize) -> Option<usize> {
        let load = Load::steady(rate.parse().unwrap()).with_burst(burst.parse().unwrap());
        let threads = Threads {
            producers,
            consumers: 1,
            cores: 2,
        };
        slots_needed(&load, machine, threads)
    }

    #[test]
    fn a_burst_is_met_by_takes_that_assist() {
        let slots = slots("1M", "20M:100ms/1s", 1).unwrap();
        // A tenth of each of two stripes of 1,024 slots is more than 20 M/s x 5 us: half of
        // them.
        assert_eq!(slots, 1024);
        assert_eq!(minimum_capacity(slots, Threshold::Percent(75)), 2048);
        assert_eq!(minimum_capacity(slots, Threshold::Percent(25)), 4096);
        assert_eq!(minimum_capacity(slots, Threshold::Adaptive), 2048);
    }

    #[test]
    fn a_producer_that_is_kept_from_running_makes_takes_no_slower() {
        let busy = Machine {
            fill_rate: 17e6,
            wake_longest: 0.06,
            ..MACHINE
        };
        assert_eq!(slots_on(&busy, "1M", "20M:100ms/1s", 1), Some(1024));
        // Takes that make no more than it does leave 3 M/s missing while it wakes up.
        let slow = Machine {
            running_fill_rate: 17e6,
            ..busy
        };
        let slots = slots_on(&slow, "1M", "20M:100ms/1s", 1).unwrap();
        assert!(slots > 100_000, "{slots}");
    }

    #[test]
    fn a_burst_that_outruns_a_producer_needs_the_difference() {
        // A producer leaves 600 M/s missing and, once the level is low, takes 200 M/s.
        let alone = slots("1M", "1G:10ms/1s", 1).unwrap();
        assert!((4_700_000..4_900_000).contains(&alone), "{alone}");
        // Two, with assists, make more than is taken once they are awake: what is left is a
        // millisecond of the 600 M/s or more that are missing before.
        let both = slots("1M", "1G:10ms/1s", 2).unwrap();
        assert!((600_000..1_200_000).contains(&both), "{both}");
        assert_eq!(slots("1G", "2G:10ms/1s", 1), None, "more than is made");
    }

    #[test]
    fn capacities_far_from_the_model_are_left_out() {
        let pruned = |capacities, slots| {
            let mut choices = Choices {
                capacities,
                thresholds: [100, 25].map(Threshold::Percent).to_vec(),
            };
            prune(&mut choices, slots);
            choices.capacities
        };
        let all = (6..=24).map(|shift| 1 << shift).collect();
        // 4,096 and 16,384 are enough.
        let kept: Vec<_> = (8..=20).map(|shift| 1 << shift).collect();
        assert_eq!(pruned(all, 4096), kept);
        assert_eq!(pruned(vec![64], 1 << 20), [64]);
    }
}
