//! A load that was recorded.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::piece::Piece;
use super::rate::Rate;
use super::span::whole;

/// How many IDs were asked for, span by span.
///
/// As text one span a line, `seconds,count`: from that moment until the next
/// line's so many IDs are asked for, evenly. The last span lasts as long as the
/// one before it, and a single one lasts a second. Time counts from the first
/// line, so that Unix time will do as well as a count from 0. Lines that are
/// empty, or begin with `#`, say nothing.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::Trace;
///
/// let trace: Trace = "# orders\n0,5000\n0.5,20000\n1,0\n".parse()?;
/// assert_eq!(trace.duration(), Duration::from_millis(1500));
/// assert_eq!(trace.ids(), 25_000);
/// # Ok::<(), ringflake::plan::TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Never empty, in order, without a gap, and not all of them 0.
    pub(super) pieces: Box<[Piece]>,
    ids: u64,
}

/// A line's two numbers, and where it stands.
#[derive(Clone, Copy)]
struct Line {
    number: usize,
    seconds: f64,
    count: u64,
}

impl Trace {
    /// The latest moment that a line may say, in seconds: the year 9999 in Unix
    /// time.
    const MAX_SECONDS: f64 = 253_402_300_800.0;

    /// From the first line to the end of the last span.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.pieces.last().map_or(0.0, |piece| piece.until))
    }

    /// How many IDs are asked for in all; at least 1.
    pub const fn ids(&self) -> u64 {
        self.ids
    }

    /// Makes the spans between the lines.
    fn new(lines: &[Line]) -> Result<Self, TraceError> {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Err(TraceError::Empty);
        };
        let last_span = match lines {
            [.., before, last] => last.seconds - before.seconds,
            _ => 1.0,
        };
        let ends = lines[1..].iter().map(|line| line.seconds);
        let ends = ends.chain([last.seconds + last_span]);
        let mut ids = 0_u64;
        let mut piece = Piece::default();
        let mut pieces = Vec::with_capacity(lines.len());
        for (line, end) in lines.iter().zip(ends) {
            let seconds = end - line.seconds;
            piece = piece.then(end - first.seconds, line.count as f64 / seconds);
            // Whole, unlike the sum of what the pieces ask for.
            piece.before = ids as f64;
            if piece.rate > Rate::MAX.per_second() as f64 {
                return Err(TraceError::TooFast {
                    line: line.number,
                    count: line.count,
                    seconds,
                });
            }
            pieces.push(piece);
            ids = ids.saturating_add(line.count);
        }
        if ids == 0 {
            return Err(TraceError::NoIds);
        }
        Ok(Self {
            pieces: pieces.into(),
            ids,
        })
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    /// Reads one `seconds,count` a line; see [`Trace`].
    ///
    /// # Errors
    ///
    /// [`TraceError`], with the number of the line that is wrong.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut lines: Vec<Line> = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line = parse_line(index + 1, text)?;
            if let Some(before) = lines.last()
                && line.seconds <= before.seconds
            {
                return Err(TraceError::NotLater {
                    line: line.number,
                    seconds: line.seconds,
                    before: before.seconds,
                });
            }
            lines.push(line);
        }
        Self::new(&lines)
    }
}

fn parse_line(line: usize, text: &str) -> Result<Line, TraceError> {
    let form = || TraceError::Form {
        line,
        text: text.into(),
    };
    let (seconds, count) = text.split_once(',').ok_or_else(form)?;
    let [seconds, count] = [seconds, count].map(str::trim);
    Ok(Line {
        number: line,
        seconds: parse_seconds(seconds).ok_or_else(|| TraceError::Seconds {
            line,
            text: seconds.into(),
        })?,
        count: whole(count).ok_or_else(|| TraceError::Count {
            line,
            text: count.into(),
        })?,
    })
}

fn parse_seconds(text: &str) -> Option<f64> {
    // Not what else `f64` reads: exponents, signs, infinities.
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    (seconds <= Trace::MAX_SECONDS).then_some(seconds)
}

/// Why a text is no [`Trace`]. Lines count from 1.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no line that says anything.
    Empty,
    /// No line asks for any ID.
    NoIds,
    /// A line is not `seconds,count`.
    Form {
        /// The line's number.
        line: usize,
        /// The line.
        text: String,
    },
    /// What stands before the comma is no moment.
    Seconds {
        /// The line's number.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// What stands after the comma is no count.
    Count {
        /// The line's number.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line's moment is not later than that of the line before.
    NotLater {
        /// The line's number.
        line: usize,
        /// Its moment, in seconds.
        seconds: f64,
        /// The moment of the line before.
        before: f64,
    },
    /// A line asks for more than [`Rate::MAX`].
    TooFast {
        /// The line's number.
        line: usize,
        /// The IDs that it asks for.
        count: u64,
        /// The length of its span, in seconds.
        seconds: f64,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the trace has no line: give at least one, as in 0,5000 for 5,000 IDs from \
                 second 0 on",
            ),
            Self::NoIds => f.write_str("the trace asks for no ID: all its counts are 0"),
            Self::Form { line, text } => write!(
                f,
                "line {line} of the trace is {text:?}: write seconds,count as in 12.5,40000, \
                 or begin a comment with #"
            ),
            Self::Seconds { line, text } => write!(
                f,
                "line {line} of the trace has {text:?} for its moment: write seconds from 0 \
                 on, with a point before fractions"
            ),
            Self::Count { line, text } => write!(
                f,
                "line {line} of the trace has {text:?} for its count: write a whole number of IDs"
            ),
            Self::NotLater {
                line,
                seconds,
                before,
            } => write!(
                f,
                "line {line} of the trace goes back in time: {seconds} s does not come after \
                 the {before} s of the line before; sort the lines, and add up those of one moment"
            ),
            Self::TooFast {
                line,
                count,
                seconds,
            } => write!(
                f,
                "line {line} of the trace asks for {count} IDs in {seconds} s: \
                 at most {} can be planned for",
                Rate::MAX
            ),
        }
    }
}

impl Error for TraceError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Vec<(f64, f64, f64)>, TraceError> {
        let trace: Trace = text.parse()?;
        let piece = |piece: &Piece| (piece.from, piece.until, piece.rate);
        Ok(trace.pieces.iter().map(piece).collect())
    }

    #[test]
    fn a_span_reaches_to_the_next_line() {
        let text = "# a comment\n\n 100 , 10 \r\n101.5,0\n  # another\n102,8";
        let spans = [(0.0, 1.5, 10.0 / 1.5), (1.5, 2.0, 0.0), (2.0, 2.5, 16.0)];
        assert_eq!(parse(text), Ok(spans.into()));
        assert_eq!(parse("7,3"), Ok(vec![(0.0, 1.0, 3.0)]));
        let duration = text.parse().map(|trace: Trace| trace.duration());
        assert_eq!(duration, Ok(Duration::from_millis(2500)));
        let unix = "1763000000,5\n1763000060,6";
        let spans = [(0.0, 60.0, 5.0 / 60.0), (60.0, 120.0, 0.1)];
        assert_eq!(parse(unix), Ok(spans.into()));
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        for (text, line, reason) in [
            ("0,1\nseconds,count", 2, "its moment"),
            ("0,1\n\n1", 3, "write seconds,count"),
            ("-1,1", 1, "its moment"),
            ("1e3,1", 1, "its moment"),
            ("inf,1", 1, "its moment"),
            (",1", 1, "its moment"),
            ("999999999999,1", 1, "its moment"),
            ("0,1.5", 1, "its count"),
            ("0,-1", 1, "its count"),
            ("0,1,2", 1, "its count"),
            ("0,18446744073709551616", 1, "its count"),
            ("#\n5,1\n4.9,1", 3, "back in time"),
            ("5,1\n5,1", 2, "back in time"),
            ("0,1\n1,2000000000000", 2, "at most 1000G/s"),
        ] {
            let error = text.parse::<Trace>().unwrap_err().to_string();
            let begin = format!("line {line} of the trace");
            assert!(
                error.starts_with(&begin) && error.contains(reason),
                "{error}"
            );
        }
        assert_eq!(parse(""), Err(TraceError::Empty));
        assert_eq!(parse("\n# 1,2\n"), Err(TraceError::Empty));
        assert_eq!(parse("0,0\n1,0"), Err(TraceError::NoIds));
    }

    proptest! {
        #[test]
        fn no_id_is_lost(lines in prop::collection::vec((1..1000_u32, 0..1_000_000_u64), 1..50)) {
            let mut text = String::new();
            let (mut seconds, mut ids) = (0.0, 0);
            for &(gap, count) in &lines {
                text += &format!("{seconds},{count}\n");
                seconds += f64::from(gap) / 16.0;
                ids += count;
            }
            let Ok(trace) = text.parse::<Trace>() else {
                prop_assert_eq!((ids, text.parse::<Trace>()), (0, Err(TraceError::NoIds)));
                return Ok(());
            };
            prop_assert_eq!((trace.ids(), trace.pieces.len()), (ids, lines.len()));
            let (mut asked, last) = (0, trace.pieces.last().unwrap());
            for (piece, (_, count)) in trace.pieces.iter().zip(&lines) {
                prop_assert_eq!(piece.before, asked as f64, "a whole number");
                asked += count;
            }
            prop_assert!((last.after() - ids as f64).abs() <= 1e-6 * ids as f64);
        }
    }
}
