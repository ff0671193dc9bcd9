//! Plans for the recorded loads in `tests/traces`.

use std::time::Duration;

use ringflake::ThresholdFill;
use ringflake::plan::{self, Config, Load, Machine, Simulation, Trace};

const TRACES: [(&str, &str); 6] = [
    ("steady", include_str!("../traces/steady.csv")),
    ("bursts", include_str!("../traces/bursts.csv")),
    ("ramp", include_str!("../traces/ramp.csv")),
    ("day", include_str!("../traces/day.csv")),
    ("on_off", include_str!("../traces/on_off.csv")),
    ("tenfold", include_str!("../traces/tenfold.csv")),
];

fn load(text: &str) -> Load {
    text.parse::<Trace>().unwrap().into()
}

fn machines() -> impl Iterator<Item = Machine> {
    let of = |(rate, micros): (&str, u64)| {
        Machine::new(rate.parse().unwrap(), Duration::from_micros(micros))
            .with_assist_fill(None)
            .with_stripes(1)
    };
    [("400M", 50), ("400M", 1000), ("100M", 300), ("50M", 4000)]
        .into_iter()
        .map(of)
}

fn run(load: &Load, machine: &Machine, capacity: usize, fill: ThresholdFill) -> Simulation {
    let config = Config::new(capacity, fill).unwrap();
    plan::simulate(load, machine, &config, Duration::MAX)
}

/// Of the fixed thresholds that don't run dry the one that keeps the fewest IDs.
fn best_fixed(load: &Load, machine: &Machine, capacity: usize) -> Option<Simulation> {
    let fixed = [5, 10, 25, 50, 75, 90].map(ThresholdFill::percent);
    let simulations = fixed.map(|fill| run(load, machine, capacity, fill));
    simulations
        .into_iter()
        .filter(|it| it.empties == 0.0)
        .min_by(|a, b| a.mean_level.total_cmp(&b.mean_level))
}

/// Rings that have a margin of two for their wake-ups, and larger ones.
fn capacities(load: &Load, machine: &Machine) -> [usize; 3] {
    let config = plan::capacity_for(load, &machine.with_margin(2)).unwrap();
    [1, 2, 4].map(|factor| factor * config.capacity())
}

#[test]
fn an_adaptive_threshold_underruns_no_sooner_with_fewer_ids() {
    let mut compared = 0;
    for (name, text) in TRACES {
        let load = load(text);
        for machine in machines() {
            for capacity in capacities(&load, &machine) {
                let Some(best) = best_fixed(&load, &machine, capacity) else {
                    continue;
                };
                let adaptive = run(&load, &machine, capacity, ThresholdFill::adaptive());
                let case = format!("{name}, {machine:?}, {capacity} slots");
                assert_eq!(adaptive.empties, 0.0, "{case}");
                let (level, other) = (adaptive.mean_level, best.mean_level);
                assert!(level < other, "{case}: {level} {other}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 72, "a fixed threshold does for each of these");
}

#[test]
fn the_planned_ring_holds_on_every_trace() {
    for (name, text) in TRACES {
        let load = load(text);
        for machine in machines() {
            let config = plan::capacity_for(&load, &machine).unwrap();
            let simulation = plan::simulate(&load, &machine, &config, Duration::MAX);
            let case = format!("{name}, {machine:?}, {config:?}");
            assert_eq!(simulation.empties, 0.0, "{case}");
            // What is taken while a producer wakes up is no more than the ring has.
            let least = load.peak() * machine.wake_latency().as_secs_f64();
            assert!(config.capacity() as f64 >= least, "{case}");
            let quarter = run(
                &load,
                &machine,
                config.capacity() / 4,
                ThresholdFill::percent(75),
            );
            assert!(quarter.empties > 0.0, "{case}");
        }
    }
}
