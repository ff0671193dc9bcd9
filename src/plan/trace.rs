//! A recorded load, as text: `seconds,count` a line.

use super::LoadError;
use super::load::Piece;
use super::rate::Rate;
use super::span::whole;

/// The latest moment of a line, in seconds: the year 9999 in Unix time.
const MAX_SECONDS: f64 = 253_402_300_800.0;

/// A line's two numbers, and its number from 1.
#[derive(Clone, Copy)]
struct Line {
    number: usize,
    seconds: f64,
    count: u64,
}

/// The spans between the lines of `text`, and how many IDs they ask for: never empty, in
/// order, without a gap, and not all of them 0.
pub(super) fn parse(text: &str) -> Result<(Box<[Piece]>, u64), LoadError> {
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
            return Err(LoadError(format!(
                "line {} of the trace goes back in time: {} s does not come after the {} s of \
                 the line before; sort the lines, and add up those of the same moment",
                line.number, line.seconds, before.seconds
            )));
        }
        lines.push(line);
    }
    pieces(&lines)
}

fn pieces(lines: &[Line]) -> Result<(Box<[Piece]>, u64), LoadError> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        let text = "the trace is empty: give at least one line, as in 0,5000 for 5,000 IDs from \
                    second 0 on";
        return Err(LoadError(text.into()));
    };
    let last_span = match lines {
        [.., before, last] => last.seconds - before.seconds,
        _ => 1.0,
    };
    let ends = lines[1..].iter().map(|line| line.seconds);
    let ends = ends.chain([last.seconds + last_span]);
    let mut ids = 0_u64;
    let mut pieces = Vec::with_capacity(lines.len());
    for (line, end) in lines.iter().zip(ends) {
        let seconds = end - line.seconds;
        let piece = Piece {
            from: line.seconds - first.seconds,
            until: end - first.seconds,
            rate: line.count as f64 / seconds,
        };
        if piece.rate > Rate::MAX.per_second() as f64 {
            return Err(LoadError(format!(
                "line {} of the trace asks for {} IDs in {seconds} s: the highest rate is {}",
                line.number,
                line.count,
                Rate::MAX
            )));
        }
        pieces.push(piece);
        ids = ids.saturating_add(line.count);
    }
    match ids {
        0 => Err(LoadError(
            "the trace asks for no ID: all its counts are 0".into(),
        )),
        _ => Ok((pieces.into(), ids)),
    }
}

fn parse_line(number: usize, text: &str) -> Result<Line, LoadError> {
    let Some((seconds, count)) = text.split_once(',') else {
        return Err(LoadError(format!(
            "line {number} of the trace is {text:?}: write seconds,count as in 12.5,40000, or \
             begin a comment with #"
        )));
    };
    let [seconds, count] = [seconds, count].map(str::trim);
    Ok(Line {
        number,
        seconds: parse_seconds(seconds).ok_or_else(|| {
            LoadError(format!(
                "line {number} of the trace has {seconds:?} as its time: write seconds from 0 on, \
                 with a point before fractions"
            ))
        })?,
        count: whole(count).ok_or_else(|| {
            LoadError(format!(
                "line {number} of the trace has {count:?} as its count: write a whole number of IDs"
            ))
        })?,
    })
}

fn parse_seconds(text: &str) -> Option<f64> {
    // Not what else `f64` reads: exponents, signs, infinities.
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    (seconds <= MAX_SECONDS).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spans(text: &str) -> Vec<(f64, f64, f64)> {
        let (pieces, _) = parse(text).unwrap();
        pieces
            .iter()
            .map(|it| (it.from, it.until, it.rate))
            .collect()
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_span_reaches_to_the_next_line() {
        let text = "# a comment\n\n 100 , 10 \r\n101.5,0\n  # another\n102,8";
        let expected = [(0.0, 1.5, 10.0 / 1.5), (1.5, 2.0, 0.0), (2.0, 2.5, 16.0)];
        assert_eq!(spans(text), expected);
        assert_eq!(spans("7,3"), [(0.0, 1.0, 3.0)]);
        let unix = "1763000000,5\n1763000060,6";
        assert_eq!(spans(unix), [(0.0, 60.0, 5.0 / 60.0), (60.0, 120.0, 0.1)]);
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, line, reason) in [
            ("0,1\nseconds,count", 2, "its time"),
            ("0,1\n\n1", 3, "write seconds,count"),
            ("-1,1", 1, "its time"),
            ("1e3,1", 1, "its time"),
            ("inf,1", 1, "its time"),
            (",1", 1, "its time"),
            ("999999999999,1", 1, "its time"),
            ("0,1.5", 1, "its count"),
            ("0,-1", 1, "its count"),
            ("0,1,2", 1, "its count"),
            ("0,18446744073709551616", 1, "its count"),
            ("#\n5,1\n4.9,1", 3, "back in time"),
            ("5,1\n5,1", 2, "back in time"),
            ("0,1\n1,2000000000000", 2, "1000G/s"),
        ] {
            let (error, begin) = (error(text), format!("line {line} of the trace"));
            assert!(
                error.starts_with(&begin) && error.contains(reason),
                "{error}"
            );
        }
        for empty in ["", "\n# 1,2\n"] {
            assert!(error(empty).contains("the trace is empty"));
        }
        assert!(error("0,0\n1,0").contains("no ID"));
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
            let Ok((pieces, sum)) = parse(&text) else {
                prop_assert_eq!(ids, 0);
                return Ok(());
            };
            prop_assert_eq!((sum, pieces.len()), (ids, lines.len()));
            let asked: f64 = pieces.iter().map(Piece::ids).sum();
            prop_assert!((asked - ids as f64).abs() <= 1e-6 * ids as f64);
        }
    }
}
