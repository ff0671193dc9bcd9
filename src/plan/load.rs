//! What is asked of a generator, over time.

use std::fmt;
use std::time::Duration;

use super::burst::Burst;
use super::piece::Piece;
use super::rate::Rate;
use super::span::Span;
use super::trace::Trace;

/// IDs asked for over time: a steady rate, with or without a burst that comes
/// back, or a [`Trace`].
///
/// Time is in seconds from the beginning. IDs are a flow here, so there are
/// fractions of them.
///
/// # Examples
///
/// ```
/// use ringflake::plan::Load;
///
/// let load = Load::steady("1M".parse()?).with_burst("20M:100ms/1s".parse()?);
/// assert_eq!(load.demanded_by(0.1), 2_000_000.0);
/// assert_eq!(load.demanded_by(1.0), 2_900_000.0);
/// assert_eq!((load.mean(), load.peak()), (2_900_000.0, 20_000_000.0));
/// assert_eq!(load.to_string(), "1M/s, and 20M/s for the first 100ms of every 1s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    kind: Kind,
    /// All of it, or a period that repeats.
    pieces: Box<[Piece]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Steady(Rate),
    Bursts(Rate, Burst),
    Trace { ids: u64 },
}

impl Load {
    /// The same rate for ever.
    pub fn steady(rate: Rate) -> Self {
        let whole = Piece::default().then(f64::INFINITY, rate.per_second() as f64);
        Self {
            kind: Kind::Steady(rate),
            pieces: [whole].into(),
        }
    }

    /// This load with a burst, whose rate takes the place of the steady one
    /// while it lasts. Each period begins with it, the first one too.
    ///
    /// A trace has its own bursts, and stays as it is.
    #[must_use]
    pub fn with_burst(self, burst: Burst) -> Self {
        let (Kind::Steady(rate) | Kind::Bursts(rate, _)) = self.kind else {
            return self;
        };
        let [length, period] = [burst.length(), burst.period()].map(|it| it.as_secs_f64());
        let high = Piece::default().then(length, burst.rate().per_second() as f64);
        Self {
            kind: Kind::Bursts(rate, burst),
            pieces: [high, high.then(period, rate.per_second() as f64)].into(),
        }
    }

    /// How many IDs are asked for in the first `seconds`; none before 0.
    pub fn demanded_by(&self, seconds: f64) -> f64 {
        let (before, within) = self.split(seconds.max(0.0), self.end(), self.ids());
        let index = self.pieces.partition_point(|piece| piece.until <= within);
        let of_turn = self.pieces.get(index).map_or_else(
            || self.ids(),
            |piece| piece.before + piece.rate * (within - piece.from),
        );
        before + of_turn
    }

    /// When the first `ids` have been asked for, in seconds, or `None` if a
    /// trace ends before that.
    pub fn due_at(&self, ids: f64) -> Option<f64> {
        if ids <= 0.0 {
            return Some(0.0);
        }
        let (start, within) = self.split(ids, self.ids(), self.end());
        let index = self.pieces.partition_point(|piece| piece.after() < within);
        let piece = self.pieces.get(index)?;
        Some(start + piece.from + (within - piece.before) / piece.rate)
    }

    /// Splits `amount`, of which each period has `each`, into whole periods and a rest:
    /// `other` for each of these periods, and the rest.
    fn split(&self, amount: f64, each: f64, other: f64) -> (f64, f64) {
        if self.period().is_none() {
            return (0.0, amount);
        }
        let turns = (amount / each).floor();
        (turns * other, (amount - turns * each).clamp(0.0, each))
    }

    /// The spans of one rate each, in order; without end unless it is a trace.
    pub fn pieces(&self) -> Box<dyn Iterator<Item = Piece> + '_> {
        let Some(period) = self.period() else {
            return Box::new(self.pieces.iter().copied());
        };
        let of_turn = move |turn: u64| {
            let start = turn as f64 * period.as_secs_f64();
            self.pieces.iter().map(move |piece| Piece {
                from: start + piece.from,
                until: start + piece.until,
                before: turn as f64 * self.ids() + piece.before,
                ..*piece
            })
        };
        Box::new((0..).flat_map(of_turn))
    }

    /// The same, cut off at `seconds`.
    pub fn pieces_until(&self, seconds: f64) -> impl Iterator<Item = Piece> + '_ {
        self.pieces()
            .take_while(move |piece| piece.from < seconds)
            .map(move |piece| Piece {
                until: piece.until.min(seconds),
                ..piece
            })
    }

    /// IDs a second on average: over a period, or over the whole trace.
    pub fn mean(&self) -> f64 {
        match self.kind {
            Kind::Steady(rate) => rate.per_second() as f64,
            Kind::Bursts(..) | Kind::Trace { .. } => self.ids() / self.end(),
        }
    }

    /// The highest rate, in IDs a second.
    pub fn peak(&self) -> f64 {
        let rates = self.pieces.iter().map(|piece| piece.rate);
        rates.fold(0.0, f64::max)
    }

    /// The time from one burst to the next, if it has a burst that comes back.
    pub fn period(&self) -> Option<Duration> {
        match self.kind {
            Kind::Bursts(_, burst) => Some(burst.period()),
            Kind::Steady(_) | Kind::Trace { .. } => None,
        }
    }

    /// How long it lasts, or `None` if it goes on for ever.
    pub fn duration(&self) -> Option<Duration> {
        match self.kind {
            Kind::Steady(_) | Kind::Bursts(..) => None,
            Kind::Trace { .. } => Some(Duration::from_secs_f64(self.end())),
        }
    }

    /// Where the last piece ends.
    fn end(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.until)
    }

    /// How many IDs all pieces ask for.
    fn ids(&self) -> f64 {
        match self.kind {
            Kind::Trace { ids } => ids as f64,
            Kind::Steady(_) | Kind::Bursts(..) => self.pieces.last().map_or(0.0, Piece::after),
        }
    }
}

impl From<Trace> for Load {
    fn from(trace: Trace) -> Self {
        Self {
            kind: Kind::Trace { ids: trace.ids() },
            pieces: trace.pieces,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Steady(rate) => write!(f, "{rate}"),
            Kind::Bursts(rate, burst) => write!(
                f,
                "{rate}, and {} for the first {} of every {}",
                burst.rate(),
                Span(burst.length()),
                Span(burst.period())
            ),
            Kind::Trace { ids } => write!(f, "a trace of {ids} IDs in {} s", self.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn bursts() -> Load {
        Load::steady(rate("1M")).with_burst("20M:100ms/1s".parse().unwrap())
    }

    fn trace() -> Load {
        Load::from("0,100\n1,0\n3,50\n".parse::<Trace>().unwrap())
    }

    #[track_caller]
    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1e-3), "{a} {b}");
    }

    #[test]
    fn a_burst_replaces_the_steady_rate() {
        for (seconds, ids) in [
            (-1.0, 0.0),
            (0.0, 0.0),
            (0.05, 1e6),
            (0.1, 2e6),
            (0.2, 2.1e6),
            (1.0, 2.9e6),
            (1.05, 3.9e6),
            (10.0, 29e6),
        ] {
            assert_near(bursts().demanded_by(seconds), ids);
        }
        assert_near(bursts().due_at(2.05e6).unwrap(), 0.15);
        assert_near(bursts().due_at(4.9e6).unwrap(), 1.1);
    }

    #[test]
    fn a_trace_ends() {
        for (seconds, ids) in [
            (0.5, 50.0),
            (2.0, 100.0),
            (4.0, 125.0),
            (5.0, 150.0),
            (99.0, 150.0),
        ] {
            assert_near(trace().demanded_by(seconds), ids);
        }
        assert_near(trace().due_at(100.0).unwrap(), 1.0);
        assert_near(trace().due_at(101.0).unwrap(), 3.04);
        assert_eq!(trace().due_at(151.0), None);
        assert_eq!(trace().duration(), Some(Duration::from_secs(5)));
        assert_eq!((trace().mean(), trace().peak()), (30.0, 100.0));
        let still = trace().with_burst("20M:100ms/1s".parse().unwrap());
        assert_eq!(still, trace());
    }

    #[test]
    fn a_load_has_a_mean_a_peak_and_its_times() {
        let steady = Load::steady(rate("50k"));
        assert_eq!((steady.mean(), steady.peak()), (5e4, 5e4));
        assert_eq!((steady.period(), steady.duration()), (None, None));
        assert_eq!((bursts().mean(), bursts().peak()), (2.9e6, 2e7));
        let period = Some(Duration::from_secs(1));
        assert_eq!((bursts().period(), bursts().duration()), (period, None));
        assert_eq!(trace().period(), None);
        let dip = Load::steady(rate("5M")).with_burst("1M:1s/4s".parse().unwrap());
        assert_eq!((dip.mean(), dip.peak()), (4e6, 5e6));
        let other = bursts().with_burst("1M:1s/4s".parse().unwrap());
        assert_eq!((other.mean(), other.peak()), (1e6, 1e6), "in its place");
    }

    #[test]
    fn a_period_is_a_burst_and_the_rest() {
        let pieces: Vec<_> = bursts().pieces().take(4).collect();
        let expected = [
            (0.0, 0.1, 2e7),
            (0.1, 1.0, 1e6),
            (1.0, 1.1, 2e7),
            (1.1, 2.0, 1e6),
        ];
        for (piece, (from, until, rate)) in pieces.iter().zip(expected) {
            assert_eq!((piece.from, piece.until, piece.rate), (from, until, rate));
            assert_near(piece.ids(), rate * (until - from));
        }
        assert_eq!(pieces.len(), 4);
    }

    #[test]
    fn a_steady_load_is_one_piece() {
        let steady = Load::steady(rate("50k"));
        assert_eq!(
            (steady.demanded_by(3.0), steady.due_at(1e5)),
            (1.5e5, Some(2.0))
        );
        assert_eq!(steady.due_at(-1.0), Some(0.0));
        let all: Vec<_> = steady.pieces().collect();
        let whole = Piece {
            from: 0.0,
            until: f64::INFINITY,
            rate: 5e4,
            before: 0.0,
        };
        assert_eq!(all, [whole]);
        let cut: Vec<_> = steady.pieces_until(2.0).collect();
        assert_eq!(
            cut,
            [Piece {
                until: 2.0,
                ..whole
            }]
        );
        assert_eq!(steady.pieces_until(0.0).count(), 0);
    }

    #[test]
    fn a_load_says_what_it_is() {
        assert_eq!(Load::steady(rate("50k")).to_string(), "50k/s");
        assert_eq!(
            bursts().to_string(),
            "1M/s, and 20M/s for the first 100ms of every 1s"
        );
        assert_eq!(trace().to_string(), "a trace of 150 IDs in 5 s");
    }

    #[test]
    fn pieces_are_cut_off() {
        let pieces: Vec<_> = bursts().pieces_until(1.05).collect();
        assert_eq!(pieces.len(), 3);
        assert_near(pieces[2].seconds(), 0.05);
        assert_eq!(
            Load::steady(rate("5/s"))
                .pieces_until(3.0)
                .next()
                .unwrap()
                .ids(),
            15.0
        );
    }

    fn any_load() -> impl Strategy<Value = Load> {
        let rates = || (1..100_000_000_u64).prop_map(|rate| Rate::new(rate).unwrap());
        let spans = (1..1000_u64, 1..1000_u64);
        prop_oneof![
            rates().prop_map(Load::steady),
            (rates(), rates(), spans).prop_map(|(steady, high, (length, rest))| {
                let length = Duration::from_millis(length);
                let period = length + Duration::from_millis(rest);
                Load::steady(steady).with_burst(Burst::new(high, length, period).unwrap())
            }),
            prop::collection::vec(0..100_000_u64, 1..30).prop_map(|counts| {
                let lines = counts
                    .iter()
                    .enumerate()
                    .map(|(at, count)| format!("{at},{}\n", count + 1));
                Load::from(lines.collect::<String>().parse::<Trace>().unwrap())
            }),
        ]
    }

    proptest! {
        #[test]
        fn demand_is_the_sum_of_its_pieces(load in any_load(), seconds in 0.001..20.0_f64) {
            let sum: f64 = load.pieces_until(seconds).map(|piece| piece.ids()).sum();
            let demanded = load.demanded_by(seconds);
            prop_assert!((sum - demanded).abs() <= 1e-6 * demanded.max(1.0), "{sum} {demanded}");
        }

        #[test]
        fn due_is_the_inverse_of_demand(load in any_load(), seconds in 0.001..20.0_f64) {
            let ids = load.demanded_by(seconds);
            if let Some(due) = load.due_at(ids * (1.0 - 1e-9)) {
                prop_assert!(due <= seconds + 1e-6, "{due} {seconds}");
                prop_assert!((load.demanded_by(due) - ids).abs() <= 1e-6 * ids.max(1.0));
            }
        }

        #[test]
        fn no_piece_is_above_the_peak(load in any_load(), seconds in 0.001..20.0_f64) {
            for piece in load.pieces_until(seconds) {
                prop_assert!(piece.rate <= load.peak() && piece.seconds() > 0.0);
                let before = load.demanded_by(piece.from);
                prop_assert!((piece.before - before).abs() <= 1e-6 * before.max(1.0));
            }
            prop_assert!(load.mean() <= load.peak() * (1.0 + 1e-9));
        }
    }
}
