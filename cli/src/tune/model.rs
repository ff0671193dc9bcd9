//! What the library's model says of the load on this machine: where the search begins.

use std::time::Duration;

use ringflake::plan::{self, Load, Rate};

use super::machine::Machine;
use super::setting::Choices;
use crate::threshold::Threshold;

/// Capacities this many times below the model's answer, or above it, are left out.
const FAR_BELOW: usize = 16;
const FAR_ABOVE: usize = 64;

/// How many IDs have to lie below the threshold, from the longest wake-up of this
/// machine; `None` if no ring is enough.
pub(super) fn slots_needed(load: &Load, machine: &Machine, producers: usize) -> Option<usize> {
    let fill_rate = (machine.fill_rate * producers as f64) as u64;
    let fill_rate = Rate::new(fill_rate.clamp(1, Rate::MAX.per_second())).ok()?;
    let wake = Duration::from_secs_f64(machine.wake_longest);
    let config = plan::capacity_for(load, &plan::Machine::new(fill_rate, wake)).ok()?;
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
        wake_usual: 10e-6,
        wake_slow: 5e-4,
        wake_longest: 1e-3,
        take_cost: 5e-9,
    };

    fn slots(rate: &str, burst: &str, producers: usize) -> Option<usize> {
        let load = Load::steady(rate.parse().unwrap()).with_burst(burst.parse().unwrap());
        slots_needed(&load, &MACHINE, producers)
    }

    #[test]
    fn a_burst_is_met_by_what_lies_below_the_threshold() {
        let slots = slots("1M", "20M:100ms/1s", 1).unwrap();
        // 20 M/s x 1 ms, rounded up to whole percents.
        assert!((20_000..23_000).contains(&slots), "{slots}");
        assert_eq!(minimum_capacity(slots, Threshold::Percent(75)), 32_768);
        assert_eq!(minimum_capacity(slots, Threshold::Percent(25)), 131_072);
        assert_eq!(minimum_capacity(slots, Threshold::Adaptive), 32_768);
    }

    #[test]
    fn a_burst_that_outruns_a_producer_needs_the_difference() {
        // 500 M/s x 1 ms, and 100 M/s x the 9 ms that are left.
        let alone = slots("1M", "500M:10ms/1s", 1).unwrap();
        assert!((1_400_000..1_425_000).contains(&alone), "{alone}");
        assert!(slots("1M", "500M:10ms/1s", 2).unwrap() < 700_000);
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
