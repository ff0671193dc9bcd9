//! Lines of a stream, numbered, one at a time.

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

    /// The next line, without the white space around it, or why it can't be looked at; and its
    /// number from 1 on. `None` after the last one.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, String>)>> {
        self.line.clear();
        let mut start = (&mut self.reader).take(LIMIT as u64 + 1);
        if start.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let line = if self.line.len() > LIMIT && !self.line.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
            Err(format!("longer than {LIMIT} bytes, and so no ID"))
        } else {
            str::from_utf8(&self.line)
                .map(str::trim_ascii)
                .map_err(|_| "not UTF-8, and so no ID".to_owned())
        };
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_one_fault() {
        let mut text = vec![b'x'; 5000];
        text.extend(b"\nok\n\xff\nok\n");
        text.extend([b'y'; LIMIT]);
        text.extend(b"\n");
        text.extend([b'z'; LIMIT + 1]);
        let mut reader = Lines::new(&text[..]);
        let mut lines = Vec::new();
        while let Some((_, line)) = reader.next().unwrap() {
            lines.push(line.map(str::to_owned));
        }
        let [long, one, binary, two, longest, longer] = <[_; 6]>::try_from(lines).unwrap();
        assert_eq!([one, two], [Ok("ok".to_owned()), Ok("ok".to_owned())]);
        assert_eq!(longest.unwrap().len(), LIMIT);
        assert_eq!(binary, Err("not UTF-8, and so no ID".to_owned()));
        assert_eq!(
            [&long, &longer],
            [&Err("longer than 1024 bytes, and so no ID".to_owned()); 2]
        );
    }
}
