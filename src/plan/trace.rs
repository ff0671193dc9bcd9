//! A recorded load, as text: `seconds,count` a line.

use super::LoadError;
use super::rate::{Piece, Rate};

/// The latest moment of a line, in seconds: the year 9999 in Unix time.
const MAX_SECONDS: f64 = 253_402_300_800.0;

/// The number of a line, from 1, and its seconds and IDs.
type Line = (usize, f64, u64);

/// The spans between the lines of `text`, and how many IDs they ask for: never empty, in
/// order, without a gap, and not all of them 0.
pub(super) fn parse(text: &str) -> Result<(Box<[Piece]>, u64), LoadError> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let (number, text) = (index + 1, text.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((seconds, count)) = parse_line(text) else {
            return Err(LoadError(format!(
                "line {number} of the trace is {text:?}: write seconds,count as in 12.5,40000 \
                 (seconds from 0 to {MAX_SECONDS}, a whole number of IDs), or begin a comment with #"
            )));
        };
        if let Some(&(_, before, _)) = lines.last()
            && seconds <= before
        {
            return Err(LoadError(format!(
                "line {number} of the trace goes back in time: {seconds} s does not come after the \
                 {before} s of the line before; sort the lines, and add up those of the same moment"
            )));
        }
        lines.push((number, seconds, count));
    }
    pieces(&lines)
}

fn pieces(lines: &[Line]) -> Result<(Box<[Piece]>, u64), LoadError> {
    let ids = (lines.iter()).fold(0_u64, |ids, &(_, _, count)| ids.saturating_add(count));
    let (Some(&(_, first, _)), Some(&(_, last, _)), 1..) = (lines.first(), lines.last(), ids)
    else {
        let text = "the trace asks for no ID: give at least one line, as in 0,5000 for 5,000 IDs \
                    from second 0 on";
        return Err(LoadError(text.into()));
    };
    let last_span = match lines {
        [.., (_, before, _), _] => last - before,
        _ => 1.0,
    };
    let ends = lines[1..].iter().map(|&(_, seconds, _)| seconds);
    let ends = ends.chain([last + last_span]);
    let piece = |(&(number, from, count), end): (&Line, f64)| {
        let seconds = end - from;
        let rate = count as f64 / seconds;
        if rate > Rate::MAX.per_second() as f64 {
            return Err(LoadError(format!(
                "line {number} of the trace asks for {count} IDs in {seconds} s: the highest rate \
                 is {}",
                Rate::MAX
            )));
        }
        Ok(Piece {
            from: from - first,
            until: end - first,
            rate,
        })
    };
    let pieces: Result<_, _> = lines.iter().zip(ends).map(piece).collect();
    Ok((pieces?, ids))
}

/// The seconds and the IDs of a line.
fn parse_line(text: &str) -> Option<(f64, u64)> {
    let (seconds, count) = text.split_once(',')?;
    let (seconds, count) = (seconds.trim(), whole(count.trim())?);
    // Not what else `f64` reads: exponents, signs, infinities.
    let is_plain = seconds.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = seconds.parse().ok().filter(|_| is_plain)?;
    (seconds <= MAX_SECONDS).then_some((seconds, count))
}

/// A whole number without a sign.
pub(super) fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
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
        let wrong = "seconds,count|1|-1,1|1e3,1|inf,1|,1|999999999999,1|0,1.5|0,-1|0,1,2|\
                     0,18446744073709551616";
        let wrong: Vec<_> = wrong
            .split('|')
            .map(|line| format!("# begin\n\n{line}"))
            .collect();
        let wrong = wrong
            .iter()
            .map(|text| (text.as_str(), 3, "write seconds,count"));
        for (text, line, reason) in wrong.chain([
            ("#\n5,1\n4.9,1", 3, "back in time"),
            ("5,1\n5,1", 2, "back in time"),
            ("0,1\n1,2000000000000", 2, "1000G/s"),
        ]) {
            let (error, begin) = (error(text), format!("line {line} of the trace"));
            assert!(
                error.starts_with(&begin) && error.contains(reason),
                "{error}"
            );
        }
        for empty in ["", "\n# 1,2\n", "0,0\n1,0"] {
            assert!(error(empty).contains("no ID"));
        }
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
