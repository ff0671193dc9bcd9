//! Lines of a stream, numbered, one at a time.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::str;

/// The longest line that is looked at, in bytes. No ID comes near it.
const LIMIT: usize = 1024;

/// The lines of a reader. Holds one of them at a time, so a stream may be
/// endless, and so may a line.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 16, reader),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Waits for the first bytes of the stream; answers whether there are any.
    pub(super) fn wait(&mut self) -> io::Result<bool> {
        Ok(!self.reader.fill_buf()?.is_empty())
    }

    /// Whether the next line has to be read from the stream first.
    pub(super) fn would_wait(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// The next line, without the white space around it, and its number from
    /// 1 on; `None` after the last one.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, LineFault>)>> {
        self.line.clear();
        let mut start = (&mut self.reader).take(LIMIT as u64 + 1);
        if start.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let line = if self.line.len() > LIMIT && !self.line.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
            Err(LineFault::TooLong)
        } else {
            str::from_utf8(&self.line)
                .map(str::trim_ascii)
                .map_err(|_| LineFault::NotUtf8)
        };
        Ok(Some((self.number, line)))
    }
}

/// Why a line can't be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFault {
    TooLong,
    NotUtf8,
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {LIMIT} bytes, and so no ID"),
            Self::NotUtf8 => f.write_str("not UTF-8, and so no ID"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, Result<String, LineFault>)> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            all.push((number, line.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn lines_are_numbered_and_trimmed() {
        let lines = all(b"a\r\n\n \tb \nc");
        let expected = ["a", "", "b", "c"].map(|text| Ok(text.to_owned()));
        assert_eq!(lines, (1..).zip(expected).collect::<Vec<_>>());
        assert_eq!(all(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_one_fault() {
        let mut text = vec![b'x'; 5000];
        text.extend(b"\nok\n\xff\nok\n");
        text.extend([b'y'; LIMIT]);
        text.extend(b"\n");
        text.extend([b'z'; LIMIT + 1]);
        let lines: Vec<_> = all(&text).into_iter().map(|(_, line)| line).collect();
        let ok = || Ok("ok".to_owned());
        assert_eq!(
            lines[..4],
            [Err(LineFault::TooLong), ok(), Err(LineFault::NotUtf8), ok()]
        );
        assert_eq!(lines[4].as_ref().unwrap().len(), LIMIT);
        assert_eq!(lines[5..], [Err(LineFault::TooLong)]);
    }
}
