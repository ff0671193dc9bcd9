//! The level of a ring over time, simulated for a load on a machine.
//!
//! IDs are modelled as a fluid. Between two events all rates stay the same, so the
//! simulation steps from event to event:
//!
//! ```text
//!                level under the threshold          wake_latency later
//!     asleep ----------------------------> waking -------------------> filling
//!        ^                                                                |
//!        |              all made that was missing at the start            |
//!        +----------------------------------------------------------------+
//!                         under the threshold again: fill on
//! ```
//!
//! The other events are a change of the load's rate, a ring that becomes empty,
//! consumers that have caught up, and a level that has come down to where takes assist.
//! There it stays as long as producers and takes together make what is asked for; see
//! `capacity` for where that is. The model differs from a [`CachedGenerator`] in four
//! ways: IDs come one by one rather than in blocks, all wake-ups last equally long,
//! consumers and producers do not slow each other down, and all stripes have the same
//! level.
//!
//! [`CachedGenerator`]: crate::CachedGenerator

use std::time::Duration;

use super::load::Load;
use super::machine::{Config, Machine};
use super::piece::Piece;
use crate::fill::{FillSample, Targets, ThresholdController};

/// The level over time; see [`simulate`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Simulation {
    /// The level at each event, in order. In between it runs straight.
    pub level: Vec<Point>,
    /// IDs that were asked for while the ring was empty, and that no producer
    /// had made.
    pub empties: f64,
    /// The lowest level.
    pub lowest: f64,
    /// Fills.
    pub fills: u64,
    /// IDs taken, those of an empty ring included.
    pub taken: f64,
    /// IDs that takes made for the ring, because it had few.
    pub assisted: f64,
    /// The level on average over time. Divided by the rate of the takes it is the average
    /// age of an ID that is taken, in seconds.
    pub mean_level: f64,
}

/// A ring at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Point {
    /// Since the beginning.
    pub seconds: f64,
    /// IDs in the ring.
    pub level: f64,
    /// The threshold, in slots.
    pub threshold: u64,
    /// Whether a fill is under way from here on.
    pub filling: bool,
}

/// The level of the ring `config` on `machine` under `load`, from a full ring on,
/// for at most as long as the load lasts.
///
/// A pure function. Takes time and memory for each fill and each piece of the
/// load, so give no more time than you want to look at.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::ThresholdFill;
/// use ringflake::plan::{self, Config, Load, Machine};
///
/// // 20 M/s x 100 us: 2,000 IDs are taken while a producer wakes up.
/// let load = Load::steady("20M".parse()?);
/// // Here none of them makes any.
/// let machine = Machine::new("500M".parse()?, Duration::from_micros(100)).with_assist_fill(None);
/// let empties = |percent| {
///     let config = Config::new(1 << 12, ThresholdFill::percent(percent))?;
///     let simulation = plan::simulate(&load, &machine, &config, Duration::from_secs(1));
///     Ok::<_, plan::ConfigError>(simulation.empties)
/// };
/// assert_eq!(empties(50)?, 0.0);
/// assert!(empties(25)? > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate(load: &Load, machine: &Machine, config: &Config, duration: Duration) -> Simulation {
    let mut ring = FluidRing::new(machine, config);
    ring.record();
    for piece in load.pieces_until(duration.as_secs_f64()) {
        while ring.seconds < piece.until {
            ring.step(piece);
            ring.record();
            // A mistake in the arithmetic fails here by name instead of going on for ever.
            #[cfg(test)]
            assert!(ring.result.level.len() < 1 << 22, "the model stands still");
        }
    }
    if ring.seconds > 0.0 {
        ring.result.mean_level = ring.level_seconds / ring.seconds;
    }
    ring.result
}

/// Whether the ring becomes empty in the worst case: if each rise of the rate comes
/// when the level has just not reached the threshold.
pub(super) fn underruns(load: &Load, machine: &Machine, config: &Config, seconds: f64) -> bool {
    let mut ring = FluidRing::new(machine, config);
    load.pieces_until(seconds).any(|piece| {
        ring.run_worst(piece);
        ring.result.empties > 0.0
    })
}

#[derive(Clone, Copy, Debug)]
enum Producer {
    Asleep,
    Waking {
        at: f64,
    },
    Filling {
        left: f64,
        /// The level when it began.
        from: f64,
    },
}

/// IDs a second, until the next event.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// By consumers.
    asked: f64,
    /// By producers.
    made: f64,
    /// By takes.
    assisted: f64,
    /// Whether consumers find nothing but what is made.
    is_empty: bool,
}

/// A ring as a fluid model, at one moment.
struct FluidRing {
    capacity: f64,
    fill_rate: f64,
    take_rate: f64,
    wake_latency: f64,
    assists: Assists,
    /// IDs that other takes may be moving between stripes.
    in_hands: f64,
    controller: Option<ThresholdController>,
    targets: Targets,
    seconds: f64,
    level: f64,
    /// IDs that are asked for, and that the consumers have not come to.
    waiting: f64,
    producer: Producer,
    last_rate: f64,
    /// The level, integrated over time.
    level_seconds: f64,
    /// How often the level has come down to where takes assist.
    assisted: u64,
    result: Simulation,
}

/// What takes make in the whole ring when its level is low.
#[derive(Clone, Copy, Debug)]
struct Assists {
    /// IDs a second; 0 if no take makes any.
    rate: f64,
    low_mark: f64,
    stripes: f64,
}

/// The time that a take which assists may last, in each stripe: so until a ring of two is
/// empty 10 us. Measured by `cargo bench --bench plan -- --only assist`: 0.9 to 1.2 us as a
/// rule; of those with cold caches 1 in 100 took more than 3.5 to 7.8 us, by the backend, and
/// more than 8 to 12 us with other work on each core, stops of the thread included.
const ASSIST_SECONDS: f64 = 5e-6;

/// The most IDs that a take moves from one stripe to another.
const MOVED: usize = 255;

impl Assists {
    /// The level that is kept up where so many are asked for in a second: what others take
    /// from a stripe until an assist is done lies below its mark. Nothing is kept up
    /// where that is 0.
    fn floor(self, asked: f64) -> f64 {
        if self.rate == 0.0 {
            return 0.0;
        }
        ((self.low_mark - 1.0 - asked * ASSIST_SECONDS) * self.stripes).max(0.0)
    }
}

/// After so many steps within a piece no fill is followed by a pause: the producer
/// is hardly faster than the consumers, or slower.
const STEPS_BEFORE_TREND: u32 = 1_000;

/// Rounding errors of sums; IDs are whole.
const NEGLIGIBLE: f64 = 1e-6;

impl FluidRing {
    fn new(machine: &Machine, config: &Config) -> Self {
        let capacity = config.capacity() as f64;
        let stripes = machine.stripes(config);
        let low_mark = machine.low_mark(config) * stripes as u64;
        let controller = (config.threshold()).controller(config.capacity(), low_mark);
        let moved = MOVED * (stripes - 1);
        let fixed = Targets {
            threshold: config.threshold_in_slots(),
            above: config.capacity() as u64,
        };
        Self {
            capacity,
            fill_rate: machine.fill_rate().per_second() as f64,
            take_rate: machine.take_rate().per_second() as f64,
            // A wake-up of no length would have endless events in no time.
            wake_latency: machine.wake_latency().as_secs_f64().max(1e-6),
            assists: Assists {
                rate: machine.assisted(),
                low_mark: machine.low_mark(config) as f64,
                stripes: stripes as f64,
            },
            in_hands: (moved as f64)
                .min(config.threshold_in_slots() as f64 / 2.0)
                .floor(),
            targets: controller
                .as_ref()
                .map_or(fixed, ThresholdController::targets),
            controller,
            seconds: 0.0,
            level: capacity,
            waiting: 0.0,
            producer: Producer::Asleep,
            last_rate: 0.0,
            level_seconds: 0.0,
            assisted: 0,
            result: Simulation {
                level: Vec::new(),
                empties: 0.0,
                lowest: capacity,
                fills: 0,
                taken: 0.0,
                assisted: 0.0,
                mean_level: capacity,
            },
        }
    }

    /// The level at which a take asks for a fill: it leaves fewer than the
    /// threshold.
    fn crossing(&self) -> f64 {
        self.targets.threshold as f64 - 1.0
    }

    fn is_low(&self) -> bool {
        self.level <= self.crossing() + NEGLIGIBLE
    }

    /// Goes through a piece, at whose beginning the level is as low as it can be without
    /// a producer awake, if the rate rises.
    fn run_worst(&mut self, piece: Piece) {
        if piece.rate > self.last_rate {
            self.drop_to_threshold();
        }
        self.last_rate = piece.rate;
        let fills = self.result.fills;
        for _ in 0..STEPS_BEFORE_TREND {
            if self.seconds >= piece.until {
                return;
            }
            self.step(piece);
            if self.result.fills > fills && self.is_settled() {
                // From here on each fill is like the one before it.
                self.seconds = piece.until;
                self.drop_to_threshold();
            }
        }
        self.look_ahead(piece);
    }

    /// Goes to the end of a piece at once, in which the producer fills without a
    /// pause: the level has its trend, and either lasts that long or does not.
    fn look_ahead(&mut self, piece: Piece) {
        let left = piece.until - self.seconds;
        let asked = piece.rate.min(self.take_rate);
        let falls_by = ((asked - self.fill_rate) * left).max(0.0);
        // Above the floor that assists keep, and then below it.
        let floor = self.assists.floor(asked).min(self.level);
        let above = falls_by.min(self.level - floor);
        let missing = falls_by - above;
        let per_second = asked - self.fill_rate;
        let below = match missing > 0.0 {
            true => (missing / per_second) * (per_second - self.assists.rate).max(0.0),
            false => 0.0,
        };
        let below = if floor > 0.0 { below } else { missing };
        self.result.assisted += missing - below;
        self.result.empties += (below - floor).max(0.0);
        self.level = (self.level - above - below).max(0.0);
        self.seconds = piece.until;
    }

    /// Whether the producer is asleep, and no take waits.
    fn is_settled(&self) -> bool {
        matches!(self.producer, Producer::Asleep) && self.waiting <= NEGLIGIBLE
    }

    /// Lets the level be what it is when the producer is about to be woken.
    fn drop_to_threshold(&mut self) {
        if matches!(self.producer, Producer::Asleep) {
            let threshold = self.targets.threshold as f64;
            self.level = self.level.min(threshold - self.in_hands);
        }
    }

    /// On to the next event, which lies in the piece.
    fn step(&mut self, piece: Piece) {
        if matches!(self.producer, Producer::Asleep) && self.is_low() {
            let at = self.seconds + self.wake_latency;
            self.producer = Producer::Waking { at };
        }
        let catching_up = self.waiting > NEGLIGIBLE;
        let asked = if catching_up {
            self.take_rate
        } else {
            piece.rate.min(self.take_rate)
        };
        let made = match self.producer {
            Producer::Filling { .. } => self.fill_rate,
            _ => 0.0,
        };
        let floor = self.assists.floor(asked);
        let is_assisted = floor > 0.0 && self.level <= floor + NEGLIGIBLE && asked > made;
        let missing = (asked - made).max(0.0);
        let assisted = match is_assisted {
            true => self.assists.rate.min(missing),
            false => 0.0,
        };
        let keeps_up = assisted >= missing;
        let is_empty = self.level <= NEGLIGIBLE && !keeps_up;
        let mut time = piece.until - self.seconds;
        let mut sooner = |other: f64| time = time.min(other.max(0.0));
        match self.producer {
            // Above the crossing: at it the producer is awake.
            Producer::Asleep => sooner((self.level - self.crossing()) / asked),
            Producer::Waking { at } => sooner(at - self.seconds),
            Producer::Filling { left, .. } => sooner(left / (made + assisted)),
        }
        if !is_empty && !keeps_up {
            let until = if is_assisted { 0.0 } else { floor };
            sooner((self.level - until) / (missing - assisted));
        }
        if catching_up && self.take_rate > piece.rate {
            sooner(self.waiting / (self.take_rate - piece.rate));
        }
        let flow = Flow {
            asked,
            made,
            assisted,
            is_empty,
        };
        self.advance(time, piece.rate, flow);
        self.switch_producer();
    }

    /// Lets time pass in which nothing happens.
    fn advance(&mut self, time: f64, wanted: f64, flow: Flow) {
        let gave = flow.asked * time;
        let made = (flow.made + flow.assisted) * time;
        let before = self.level;
        if flow.assisted > 0.0 {
            self.assisted += 1;
            self.result.assisted += flow.assisted * time;
        }
        if flow.is_empty {
            self.level = 0.0;
            self.result.empties += gave - made;
        } else {
            self.level = (self.level + made - gave).clamp(0.0, self.capacity);
        }
        self.result.taken += gave;
        self.waiting = (self.waiting + (wanted - flow.asked) * time).max(0.0);
        self.level_seconds += time * before.midpoint(self.level);
        self.seconds += time;
        self.result.lowest = self.result.lowest.min(self.level);
        if let Producer::Filling { left, .. } = &mut self.producer {
            *left -= made;
        }
    }

    /// What the producer does next, if its time has come.
    fn switch_producer(&mut self) {
        match self.producer {
            Producer::Waking { at } if at <= self.seconds => self.start_fill(),
            Producer::Filling { left, from } if left <= NEGLIGIBLE => {
                self.result.fills += 1;
                self.observe(from);
                self.producer = Producer::Asleep;
                if self.is_low() {
                    self.start_fill();
                }
            }
            _ => {}
        }
    }

    fn start_fill(&mut self) {
        let goal = self.targets.goal(self.capacity as u64) as f64;
        self.producer = Producer::Filling {
            left: (goal - self.level).max(0.0),
            from: self.level,
        };
    }

    fn observe(&mut self, from: f64) {
        if let Some(controller) = &mut self.controller {
            self.targets = controller.observe(FillSample {
                at: Duration::from_secs_f64(self.seconds),
                taken: self.result.taken as u64,
                retired: 0,
                assists: self.assisted,
                threshold: controller.targets().threshold,
                lowest: from.min(self.level) as u64,
            });
        }
    }

    fn record(&mut self) {
        self.result.level.push(Point {
            seconds: self.seconds,
            level: self.level,
            threshold: self.targets.threshold,
            filling: matches!(self.producer, Producer::Filling { .. }),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::tests::{config, load, machine};

    const SECOND: Duration = Duration::from_secs(1);

    /// 16 slots, filled at 8: a take that leaves 7 asks for it. 100 IDs a second
    /// from a tenth of a second later on.
    fn small() -> (Machine, Config) {
        (machine(100, 100_000), config(16, 50))
    }

    /// Moments and levels, with a `+` where a fill is under way from there on.
    fn points_of(run: &Simulation) -> String {
        let short = |value: f64| (value * 1e9).round() / 1e9;
        let point = |point: &Point| {
            let sign = if point.filling { "+" } else { "" };
            format!("{}:{}{sign}", short(point.seconds), short(point.level))
        };
        run.level.iter().map(point).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_event_has_its_moment() {
        let (usual, config) = small();
        let quick = machine(100, 10_000);
        let taking = usual.with_take_rate("200/s".parse().unwrap());
        // What was taken, empties, the lowest level, fills; and the mean of the level
        // times seconds.
        for (load, machine, points, figures, level_seconds) in [
            ("100/s", usual, "0:16", [0.0, 0.0, 16.0, 0.0], 0.0),
            (
                // Ten are made in a fill, and one is taken meanwhile.
                "10/s",
                usual,
                "0:16 0.9:7 1:6+ 1.1:15 1.9:7 2:6+ 2.1:15 2.9:7 2.95:6.5",
                [29.5, 0.0, 6.0, 2.0],
                0.9 * 11.5 + 2.0 * (0.1 * 6.5 + 0.1 * 10.5 + 0.8 * 11.0) + 0.05 * 6.75,
            ),
            (
                // The level falls during a fill.
                "200/s",
                quick,
                "0:16 0.045:7 0.055:5+ 0.105:0+ 0.165:0+",
                [33.0, 6.0, 0.0, 1.0],
                0.045 * 11.5 + 0.01 * 6.0 + 0.05 * 2.5,
            ),
            (
                // No fill is followed by a pause. The ring gives 16, and from 0.145 s on
                // half of what is asked for is made.
                "200/s",
                usual,
                "0:16 0.045:7 0.08:0 0.145:0+ 0.305:0+ 0.465:0+ 0.625:0+ 0.785:0+ 0.945:0+ 1:0+",
                [200.0, 200.0 - 101.5, 0.0, 5.0],
                0.045 * 11.5 + 0.035 * 3.5,
            ),
            (
                // At 0.05 s ten of the twenty have been taken, and the rest waits. Four
                // find nothing.
                "0,20\n0.05,0\n2,0",
                taking,
                "0:16 0.045:7 0.05:6 0.08:0 0.1:0 0.145:0+ 0.305:16 1:16",
                [20.0, 4.0, 0.0, 1.0],
                0.045 * 11.5 + 0.005 * 6.5 + 0.03 * 3.0 + 0.16 * 8.0 + 0.695 * 16.0,
            ),
        ] {
            let (_, last) = points.rsplit_once(' ').unwrap_or(("", points));
            let seconds: f64 = last.split_once(':').unwrap().0.parse().unwrap();
            let duration = Duration::from_secs_f64(seconds);
            let run = simulate(&self::load(load), &machine, &config, duration);
            assert_eq!(points_of(&run), points, "{load} {machine:?}");
            assert!(
                run.level.iter().all(|point| point.threshold == 8),
                "{run:?}"
            );
            let mean = if seconds > 0.0 {
                level_seconds / seconds
            } else {
                16.0
            };
            let found = [run.taken, run.empties, run.lowest, run.fills as f64];
            for (found, figure) in found
                .into_iter()
                .zip(figures)
                .chain([(run.mean_level, mean)])
            {
                assert!(
                    (found - figure).abs() < 1e-9,
                    "{load} {machine:?}: {found} {figure}"
                );
            }
        }
    }

    fn piece(rate: f64, until: f64) -> Piece {
        Piece::default().then(until, rate)
    }

    #[test]
    fn who_waits_is_served_at_the_rate_of_takes_until_nobody_does() {
        let machine = small().0.with_take_rate("200/s".parse().unwrap());
        let mut ring = FluidRing::new(&machine, &config(64, 50));
        ring.waiting = 10.0;
        ring.step(piece(50.0, 1.0));
        assert!(
            (ring.seconds - 10.0 / 150.0).abs() < 1e-9,
            "{}",
            ring.seconds
        );
        assert!(ring.waiting <= NEGLIGIBLE, "{}", ring.waiting);
    }

    #[test]
    fn the_worst_case_is_settled_asleep_with_nobody_waiting() {
        let (machine, config) = small();
        let mut ring = FluidRing::new(&machine, &config);
        for (producer, waiting, settled) in [
            (Producer::Asleep, NEGLIGIBLE, true),
            (Producer::Asleep, 1.0, false),
            (Producer::Waking { at: 1.0 }, 0.0, false),
        ] {
            (ring.producer, ring.waiting) = (producer, waiting);
            assert_eq!(ring.is_settled(), settled, "{producer:?}, {waiting}");
        }
    }

    #[test]
    fn a_producer_that_rests_after_a_fill_does_so_after_each() {
        let (machine, config) = small();
        let mut ring = FluidRing::new(&machine, &config);
        ring.run_worst(piece(10.0, 1e6));
        assert_eq!((ring.result.fills, ring.seconds), (1, 1e6));
        assert!(ring.level <= 8.0, "as before the next one");
    }

    #[test]
    fn a_piece_of_the_same_rate_goes_on_where_the_last_one_ended() {
        let (machine, config) = small();
        let mut ring = FluidRing::new(&machine, &config);
        // The first rise comes at the threshold.
        ring.run_worst(piece(10.0, 0.01));
        assert!((ring.level - 7.9).abs() < 1e-9, "{}", ring.level);
        ring.level = 16.0;
        ring.run_worst(piece(10.0, 0.11));
        assert!((ring.level - 15.0).abs() < 1e-9, "{}", ring.level);
        ring.run_worst(piece(11.0, 0.12));
        assert!(ring.level < 8.0, "a rise is");
    }

    #[test]
    fn without_a_pause_after_any_fill_the_end_is_known_at_once() {
        let mut ring = FluidRing::new(&machine(100, 1_000), &config(64, 50));
        ring.level = 50.0;
        ring.look_ahead(piece(105.0, 4.0));
        assert_eq!((ring.level, ring.seconds), (30.0, 4.0));
        assert_eq!(ring.result.empties, 0.0);
        ring.look_ahead(piece(105.0, 14.0));
        assert_eq!((ring.level, ring.result.empties), (0.0, 20.0));
        // Where more is made than taken, it stays where it is.
        ring.level = 50.0;
        ring.look_ahead(piece(95.0, 20.0));
        assert_eq!((ring.level, ring.result.empties), (50.0, 20.0));

        let mut ring = FluidRing::new(&machine(999_999, 1_000), &config(1 << 16, 50));
        ring.run_worst(piece(1e6, 1e4));
        assert!((2..=STEPS_BEFORE_TREND.into()).contains(&ring.result.fills));
        assert_eq!((ring.seconds, ring.result.empties), (1e4, 0.0));
    }

    #[test]
    fn the_worst_case_has_its_threshold() {
        let (usual, small) = small();
        // 1,000 are missing in each second.
        let slow = machine(3_119_000, 100);
        for (load, machine, config, seconds, dry) in [
            // Seven are left when the producer is asked, and a tenth of a second goes by.
            ("70/s", machine(1000, 100_000), small, 10.0, false),
            ("71/s", machine(1000, 100_000), small, 10.0, true),
            // Half of 1,048,576 slots last for so long,
            ("3.12M", slow, config(1 << 20, 50), 500.0, false),
            ("3.12M", slow, config(1 << 20, 50), 550.0, true),
            // and of 512 the 200 that are left after the 100 us of a wake-up.
            ("3.12M", slow, config(1 << 10, 50), 0.15, false),
            ("3.12M", slow, config(1 << 10, 50), 0.25, true),
            // Each rise meets the ring at its threshold: one of 16, and then 15 before the
            // producer wakes up.
            ("0,1\n1,15\n1.05,0\n2,0", usual, small, 1.0, false),
            ("0,1\n1,15\n1.05,0\n2,0", usual, small, 2.0, true),
        ] {
            let found = underruns(&self::load(load), &machine, &config, seconds);
            assert_eq!(found, dry, "{load}, {config:?}, {seconds} s");
        }
        let rises = load("0,1\n1,15\n1.05,0\n2,0");
        assert_eq!(simulate(&rises, &usual, &small, 2 * SECOND).empties, 0.0);
    }

    fn any_trace() -> impl Strategy<Value = Load> {
        prop::collection::vec(0..100_000_u64, 1..20).prop_map(|counts| {
            let line = |(at, count): (usize, &u64)| format!("0.{at:02},{}\n", count + 1);
            load(&counts.iter().enumerate().map(line).collect::<String>())
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            load in any_trace(),
            fill_rate in 100_000..100_000_000_u64,
            wake in 0..10_000_u64,
            log in 4..16_u32,
            percent in 1..=100_u32,
        ) {
            let config = config(1 << log, percent);
            let run = simulate(&load, &machine(fill_rate, wake), &config, SECOND);
            let asked = load.demanded_by(1.0);
            prop_assert!((run.taken - asked).abs() < 1e-6 * asked);
            prop_assert!(run.empties >= 0.0 && run.empties <= asked);
            for point in &run.level {
                prop_assert!(0.0 <= point.level && point.level <= f64::from(1 << log));
            }
            prop_assert!(run.level.is_sorted_by(|a, b| a.seconds <= b.seconds));
            prop_assert!(run.lowest <= run.mean_level && run.mean_level <= f64::from(1 << log));
        }

        #[test]
        fn a_faster_producer_never_leaves_it_dry(
            rate in 1..10_000_000_u64,
            fill_rate in 100_000..50_000_000_u64,
            faster in 1..4_u64,
            wake in 0..5_000_u64,
            log in 4..16_u32,
            percent in 1..=75_u32,
        ) {
            // Under a load that does not change. One that rises finds a slow producer
            // awake more often.
            let load = load(&format!("{rate}/s"));
            let underrun = |fill_rate, wake| {
                let machine = machine(fill_rate, wake);
                underruns(&load, &machine, &config(1 << log, percent), 1.0)
            };
            if !underrun(fill_rate, wake) {
                prop_assert!(!underrun(fill_rate * faster, wake));
                prop_assert!(!underrun(fill_rate, wake / faster));
            }
        }

        #[test]
        fn a_threshold_that_outlasts_a_wake_up_is_enough(
            load in any_trace(),
            more in 0..50_000_000_u64,
            part in 0.0..1.0_f64,
            log in 6..16_u32,
            percent in 10..=75_u32,
        ) {
            let config = config(1 << log, percent);
            let peak = load.peak();
            // A take that leaves fewer than the threshold asks; one more is under way.
            let outlasts = (config.threshold_in_slots() as f64 - 2.0) / peak;
            let wake = (outlasts * part * 1e6) as u64;
            let machine = machine(peak.ceil() as u64 + more, wake);
            prop_assume!((wake.max(1) as f64) * 1e-6 <= outlasts);
            prop_assert!(!underruns(&load, &machine, &config, 1.0));
        }
    }
}
