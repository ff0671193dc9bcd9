//! The demand on a generator, over time.

use std::fmt;
use std::time::Duration;

use super::burst::{Burst, Span};
use super::rate::{self, Piece, Rate};
use super::{LoadError, trace};

/// IDs asked for over time: a steady rate, with or without a burst in each period, or a
/// recorded trace.
///
/// Time is in seconds from the start. IDs are modelled as a flow, so there are fractions of
/// them.
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
/// assert_eq!(
///     load.to_string(),
///     "1M/s, and 20M/s for the first 100ms of every 1s (2M IDs a burst)",
/// );
///
/// let trace = Load::trace("# orders\n0,5000\n0.5,20000\n1,0\n")?;
/// assert_eq!(trace.demanded_by(1.0), 25_000.0);
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
        Self {
            kind: Kind::Steady(rate),
            pieces: [Piece::new(0.0, f64::INFINITY, rate)].into(),
        }
    }

    /// This load with a burst at the start of each period, whose rate replaces the steady
    /// one while it lasts. A trace has its own bursts and stays as it is.
    #[must_use]
    pub fn with_burst(self, burst: Burst) -> Self {
        let (Kind::Steady(rate) | Kind::Bursts(rate, _)) = self.kind else {
            return self;
        };
        let [length, period] = [burst.length(), burst.period()].map(|it| it.as_secs_f64());
        let high = Piece::new(0.0, length, burst.rate());
        Self {
            kind: Kind::Bursts(rate, burst),
            pieces: [high, Piece::new(length, period, rate)].into(),
        }
    }

    /// A recorded load: `seconds,count` a line. So many IDs are asked for, evenly, from that
    /// moment until the next line's.
    ///
    /// The last span lasts as long as the one before it, and a single one lasts a second.
    /// Time counts from the first line, so Unix time does as well as a count from 0. Empty
    /// lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    ///
    /// [`LoadError`], with the number of the line that is wrong.
    pub fn trace(text: &str) -> Result<Self, LoadError> {
        let (pieces, ids) = trace::parse(text)?;
        let kind = Kind::Trace { ids };
        Ok(Self { kind, pieces })
    }

    /// How many IDs are asked for in the first `seconds`; none before 0.
    pub fn demanded_by(&self, seconds: f64) -> f64 {
        let seconds = seconds.max(0.0);
        let (before, within) = match self.period().map(|it| it.as_secs_f64()) {
            Some(period) => {
                let turns = (seconds / period).floor();
                let within = (seconds - turns * period).clamp(0.0, period);
                (turns * self.ids(), within)
            }
            None => (0.0, seconds),
        };
        if within >= self.end() {
            // Whole, unlike the sum of what the pieces of a trace ask for.
            return before + self.ids();
        }
        let begun = self.pieces.iter().take_while(|piece| piece.from < within);
        let of_turn = begun.map(|it| it.rate * (it.until.min(within) - it.from));
        before + of_turn.sum::<f64>()
    }

    /// The spans of one rate each, in order, and cut off at `seconds`. With
    /// [`f64::INFINITY`] they have no end unless the load is a trace.
    pub fn pieces_until(&self, seconds: f64) -> impl Iterator<Item = Piece> + '_ {
        let (turns, period) = match self.period() {
            Some(period) => (u64::MAX, period.as_secs_f64()),
            None => (1, 0.0),
        };
        let of_turn = move |turn: u64| {
            let start = turn as f64 * period;
            self.pieces.iter().map(move |piece| Piece {
                from: start + piece.from,
                until: (start + piece.until).min(seconds),
                ..*piece
            })
        };
        (0..turns)
            .flat_map(of_turn)
            .take_while(move |piece| piece.from < seconds)
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

    /// The most IDs that are asked for beyond `rate` IDs a second, at any moment: what a
    /// stock has to hold that gains `rate` IDs a second. Infinite if the stock runs out in
    /// the end, however large it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::plan::Load;
    ///
    /// let load = Load::steady("1M".parse()?).with_burst("20M:100ms/1s".parse()?);
    /// assert_eq!(load.excess(10e6).round(), 1e6);
    /// assert_eq!(load.excess(2e6), f64::INFINITY);
    /// # Ok::<(), ringflake::plan::LoadError>(())
    /// ```
    pub fn excess(&self, rate: f64) -> f64 {
        let beyond = |piece: &Piece| (piece.rate - rate) * piece.seconds();
        if self.duration().is_none() {
            if self.mean() > rate {
                return f64::INFINITY;
            }
            // The rest of the period pays for the part with the higher rate.
            let high = self.pieces.iter().filter(|piece| piece.rate > rate);
            return high.map(beyond).fold(0.0, f64::max);
        }
        let (mut debt, mut most) = (0.0_f64, 0.0_f64);
        for piece in &self.pieces {
            debt = (debt + beyond(piece)).max(0.0);
            most = most.max(debt);
        }
        most
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
        let ends = matches!(self.kind, Kind::Trace { .. });
        ends.then(|| Duration::from_secs_f64(self.end()))
    }

    /// Where the last piece ends.
    fn end(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.until)
    }

    /// How many IDs all pieces ask for.
    fn ids(&self) -> f64 {
        match self.kind {
            Kind::Trace { ids } => ids as f64,
            Kind::Steady(_) | Kind::Bursts(..) => self.pieces.iter().map(Piece::ids).sum(),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Steady(rate) => write!(f, "{rate}"),
            Kind::Bursts(rate, burst) => write!(
                f,
                "{rate}, and {} for the first {} of every {} ({} IDs a burst)",
                burst.rate(),
                Span(burst.length()),
                Span(burst.period()),
                rate::short(self.pieces[0].ids())
            ),
            Kind::Trace { ids } => write!(f, "a trace of {ids} IDs in {} s", self.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::load;

    const STEADY: &str = "50k";
    const BURSTS: &str = "1M 20M:100ms/1s";
    const TRACE: &str = "0,100\n1,0\n3,50\n";

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1e-3)
    }

    #[test]
    fn a_load_has_a_mean_a_peak_and_its_times() {
        let secs = |seconds| Some(Duration::from_secs(seconds));
        let bursts = "1M/s, and 20M/s for the first 100ms of every 1s (2M IDs a burst)";
        let trace = "a trace of 150 IDs in 5 s";
        let dip = "5M/s, and 1M/s for the first 1s of every 4s (1M IDs a burst)";
        for (text, said, mean, peak, period, duration) in [
            (STEADY, "50k/s", 5e4, 5e4, None, None),
            (BURSTS, bursts, 2.9e6, 2e7, secs(1), None),
            ("5M 1M:1s/4s", dip, 4e6, 5e6, secs(4), None),
            (TRACE, trace, 30.0, 100.0, None, secs(5)),
        ] {
            let load = load(text);
            assert_eq!(load.to_string(), said);
            assert_eq!((load.mean(), load.peak()), (mean, peak), "{text}");
            assert_eq!(load.period(), period, "{text}");
            assert_eq!(load.duration(), duration, "{text}");
        }
    }

    #[test]
    fn a_burst_takes_the_place_of_another_and_none_in_a_trace() {
        let burst: Burst = "1M:1s/4s".parse().unwrap();
        assert_eq!(load(BURSTS).with_burst(burst), load("1M 1M:1s/4s"));
        assert_eq!(load(TRACE).with_burst(burst), load(TRACE));
    }

    #[test]
    fn so_many_ids_are_asked_for_by_then() {
        for (text, seconds, ids) in [
            (STEADY, 3.0, 1.5e5),
            (BURSTS, -1.0, 0.0),
            (BURSTS, 0.0, 0.0),
            (BURSTS, 0.05, 1e6),
            (BURSTS, 0.1, 2e6),
            (BURSTS, 0.2, 2.1e6),
            (BURSTS, 1.0, 2.9e6),
            (BURSTS, 1.05, 3.9e6),
            (BURSTS, 10.0, 29e6),
            ("5M 1M:1s/4s", 9.0, 33e6),
            (TRACE, 0.5, 50.0),
            (TRACE, 2.0, 100.0),
            (TRACE, 4.0, 125.0),
            (TRACE, 5.0, 150.0),
            (TRACE, 99.0, 150.0),
        ] {
            let load = load(text);
            let found = load.demanded_by(seconds);
            assert!(is_near(found, ids), "{text}: {found} by {seconds} s");
            let pieces: Vec<_> = load.pieces_until(seconds).collect();
            let sum = pieces.iter().map(Piece::ids).sum();
            assert!(is_near(sum, ids), "{text}: {pieces:?} until {seconds} s");
            assert!(pieces.iter().all(|it| it.seconds() > 0.0), "{pieces:?}");
        }
    }

    #[test]
    fn the_excess_is_what_a_stock_has_to_hold() {
        for (text, rate, excess) in [
            (STEADY, 5e4, 0.0),
            (STEADY, 6e4, 0.0),
            (STEADY, 4e4, f64::INFINITY),
            (BURSTS, 20e6, 0.0),
            (BURSTS, 10e6, 1e6),
            // It takes the rest of the period to make up for the burst.
            (BURSTS, 2.9e6, 1.71e6),
            (BURSTS, 2.8e6, f64::INFINITY),
            // The load dips first: the high rate lasts for 3 s of each 4 s.
            ("5M 1M:1s/4s", 4e6, 3e6),
            (TRACE, 40.0, 60.0),
            (TRACE, 20.0, 80.0),
            (TRACE, 0.0, 150.0),
        ] {
            let found = load(text).excess(rate);
            let is_right = found == excess || is_near(found, excess);
            assert!(is_right, "{text} {rate}: {found}");
        }
    }
}
