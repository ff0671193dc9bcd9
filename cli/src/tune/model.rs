//! Where the search begins: the least capacity by arithmetic alone.

use std::time::Duration;

use ringflake::plan::{self, Load, Rate};

use super::machine::Machine;
use super::setting::Threshold;

/// Capacities this many times below the model's answer, or above it, are left out.
const FAR_BELOW: usize = 16;
const FAR_ABOVE: usize = 64;

/// By how much a producer has to be faster than the peak, so that every fill ends
/// soon.
const CLEARLY_FASTER: f64 = 2.0;

/// How many slots have to lie below the threshold, by what was measured of this
/// machine; nothing if no ring is enough.
pub(super) fn slots_needed(load: &Load, machine: &Machine, producers: usize) -> Option<usize> {
    let fill_rate = machine.fill_rate * producers as f64;
    if fill_rate < load.peak() * CLEARLY_FASTER {
        return slots_beside_the_peak(load, fill_rate, machine.wake_longest);
    }
    let fill_rate = Rate::new((fill_rate as u64).clamp(1, Rate::MAX.per_second())).ok()?;
    let wake = Duration::from_secs_f64(machine.wake_longest);
    let config = plan::capacity_for(load, &plan::Machine::new(fill_rate, wake)).ok()?;
    config.threshold().in_slots(config.capacity()).ok()
}

/// The same where a producer is hardly faster than the peak, or slower: what is
/// taken while it wakes up, and what is missing when the longest of the pieces
/// that are faster than it is over.
fn slots_beside_the_peak(load: &Load, fill_rate: f64, wake: f64) -> Option<usize> {
    const PIECES: usize = 10_000;
    if load.mean() >= fill_rate {
        return None;
    }
    let (mut missing, mut most) = (0.0_f64, 0.0_f64);
    for piece in load.pieces().take(PIECES).filter(|it| it.until.is_finite()) {
        missing = (missing + (piece.rate - fill_rate) * piece.seconds()).max(0.0);
        most = most.max(missing);
    }
    Some((load.peak() * wake + most).ceil() as usize)
}

/// The least capacity with so many slots below its threshold.
pub(super) fn least_capacity(slots: usize, threshold: Threshold) -> usize {
    let capacity = slots.saturating_mul(100) / threshold.percent_at_most() as usize;
    capacity.max(1).next_power_of_two()
}

/// Of `capacities`, in ascending order, those that the model does not rule out:
/// far below its answers each ring runs dry, and far above no ring does.
pub(super) fn pruned(capacities: Vec<usize>, predicted: &[usize]) -> Vec<usize> {
    let least = predicted.iter().min().copied().unwrap_or(1);
    let most = predicted.iter().max().copied().unwrap_or(usize::MAX);
    let near = least / FAR_BELOW..=most.saturating_mul(FAR_ABOVE);
    let (kept, ruled_out): (Vec<_>, Vec<_>) =
        (capacities.into_iter()).partition(|capacity| near.contains(capacity));
    // What nothing is left of was not to be pruned.
    if kept.is_empty() { ruled_out } else { kept }
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

    #[test]
    fn a_burst_is_met_by_what_lies_below_the_threshold() {
        let load = Load::steady("1M".parse().unwrap()).with_burst("20M:100ms/1s".parse().unwrap());
        let slots = slots_needed(&load, &MACHINE, 1).unwrap();
        // 20 M/s x 1 ms, and a bit for what is taken meanwhile.
        assert!((20_000..23_000).contains(&slots), "{slots}");
        assert_eq!(least_capacity(slots, Threshold::Percent(75)), 32_768);
        assert_eq!(least_capacity(slots, Threshold::Percent(25)), 131_072);
        assert_eq!(least_capacity(slots, Threshold::Adaptive), 32_768);
    }

    #[test]
    fn a_burst_that_is_faster_than_a_producer_needs_what_is_missing() {
        let load = Load::steady("1M".parse().unwrap()).with_burst("500M:10ms/1s".parse().unwrap());
        let slots = slots_needed(&load, &MACHINE, 1).unwrap();
        // 500 M/s x 1 ms, and 100 M/s x 10 ms.
        assert!((1_500_000..1_500_010).contains(&slots), "{slots}");
        // With a second producer there is nothing missing.
        assert!(slots_needed(&load, &MACHINE, 2).unwrap() < 700_000);
    }

    #[test]
    fn no_ring_is_enough_for_a_load_above_what_is_made() {
        let load = Load::steady("1G".parse().unwrap());
        assert_eq!(slots_needed(&load, &MACHINE, 1), None);
    }

    #[test]
    fn what_is_far_from_the_model_is_left_out() {
        let all: Vec<_> = (6..=24).map(|shift| 1 << shift).collect();
        let kept = pruned(all, &[4096, 16_384]);
        assert_eq!(kept.first(), Some(&256));
        assert_eq!(kept.last(), Some(&(1 << 20)));
        assert_eq!(pruned(vec![64], &[1 << 20]), [64]);
    }
}
