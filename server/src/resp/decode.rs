//! Requests out of bytes.
//!
//! A request is an array of bulk strings, `*2\r\n$4\r\nINCR\r\n$2\r\nns\r\n`, or a line of
//! words, as somebody types it. Nothing else is one: a client never sends the other types of
//! the protocol, and without nested arrays there is nothing that could nest.
//!
//! The plain form of a bulk string, a length of one to three digits and a string that is there
//! as a whole, has a path of its own, which costs a few nanoseconds. Property tests hold it
//! against the path of all others, and both against the crate `redis-protocol`.
//!
//! The decoder keeps its state of an incomplete request, so a request that arrives byte by
//! byte is decoded once and not once for each byte.

use std::ops::Range;

/// Arguments that are kept; more are counted and passed over. No command has as many.
pub(super) const KEPT: usize = 16;

/// A header, `*` or `$` with a number, is no longer.
const HEADER: usize = 32;

/// The arguments of a request, the command's name first. Places in the bytes it was read
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    places: [(u32, u32); KEPT],
    count: u32,
}

impl Arguments {
    const NONE: Self = Self {
        places: [(0, 0); KEPT],
        count: 0,
    };

    fn push(&mut self, place: Range<usize>) {
        if let Some(slot) = self.places.get_mut(self.count as usize) {
            // A request has at most `u32::MAX` bytes, which `Decoder::new` sees to.
            *slot = (place.start as u32, place.end as u32);
        }
        self.count += 1;
    }

    /// How many there are, kept or not.
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// The words that are kept, out of the request's bytes.
    pub(super) fn of<'a>(&self, request: &'a [u8]) -> Words<'a> {
        let mut words = [&[][..]; KEPT];
        for (word, &(start, end)) in words.iter_mut().zip(&self.places[..self.kept()]) {
            *word = request.get(start as usize..end as usize).unwrap_or(&[]);
        }
        Words {
            words,
            kept: self.kept(),
            count: self.len(),
        }
    }

    /// Where one of those that are kept stands.
    #[inline]
    pub(super) fn place(&self, index: usize) -> Option<(usize, usize)> {
        let (start, end) = self.places[..self.kept()].get(index)?;
        Some((*start as usize, *end as usize))
    }

    fn kept(&self) -> usize {
        self.len().min(KEPT)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    words: [&'a [u8]; KEPT],
    kept: usize,
    count: usize,
}

impl<'a> Words<'a> {
    /// The command's name, and what follows it, as far as that is kept.
    pub(super) fn split(&self) -> (&'a [u8], &[&'a [u8]]) {
        match self.words[..self.kept].split_first() {
            Some((name, rest)) => (name, rest),
            None => (&[], &[]),
        }
    }

    /// How many follow the name, kept or not.
    pub(super) fn len(&self) -> usize {
        self.count.saturating_sub(1)
    }
}

/// The first request in the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A request of so many bytes.
    Request(Arguments, usize),
    /// So many bytes that ask for nothing: an empty line.
    Nothing(usize),
    /// The front of a request, or no byte at all.
    Part,
}

/// Why bytes are no request. The connection can't go on, since nobody knows where the next
/// request would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    ArrayLength,
    BulkLength,
    /// Something else than a bulk string in an array.
    NotBulk(u8),
    /// A bulk string that ends elsewhere than its length says.
    BulkEnd,
    TooLong {
        most: usize,
    },
    /// A request of HTTP, by a browser that somebody was made to open.
    Http,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Protocol error: ")?;
        match *self {
            Self::ArrayLength => f.write_str("invalid multibulk length"),
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::NotBulk(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::BulkEnd => f.write_str("a string does not end where its length says"),
            Self::TooLong { most } => write!(f, "a request has at most {most} bytes"),
            Self::Http => f.write_str("this is not HTTP, but the protocol of Redis"),
        }
    }
}

/// The state of an incomplete request.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Of a request.
    most_bytes: usize,
    /// Arguments that are still to come; `None` before the array's header is there.
    left: Option<usize>,
    /// Bytes that are done with.
    at: usize,
    arguments: Arguments,
}

impl Decoder {
    pub(super) fn new(most_bytes: usize) -> Self {
        let mut decoder = Self {
            most_bytes: 0,
            left: None,
            at: 0,
            arguments: Arguments::NONE,
        };
        decoder.limit(most_bytes);
        decoder
    }

    /// Sets how many bytes a request may have.
    pub(super) fn limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes.min(u32::MAX as usize);
    }

    /// Decodes the front of `input`, which begins where it began in the last call if that
    /// answered [`Decoded::Part`].
    pub(super) fn decode(&mut self, input: &[u8]) -> Result<Decoded, Malformed> {
        let decoded = match (self.left, input.first()) {
            (None, None) => return Ok(Decoded::Part),
            (None, Some(b'*')) => self.array(input),
            (None, Some(_)) => self.line(input),
            (Some(left), _) => self.bulks(input, left),
        }?;
        if decoded == Decoded::Part {
            if input.len() >= self.most_bytes {
                return Err(self.too_long());
            }
        } else {
            self.forget();
        }
        Ok(decoded)
    }

    /// The next call begins with a request, whatever was decoded of one.
    pub(super) fn forget(&mut self) {
        (self.left, self.at) = (None, 0);
    }

    fn too_long(&self) -> Malformed {
        Malformed::TooLong {
            most: self.most_bytes,
        }
    }

    fn array(&mut self, input: &[u8]) -> Result<Decoded, Malformed> {
        let Some((length, used)) = header(input).map_err(|()| Malformed::ArrayLength)? else {
            return Ok(Decoded::Part);
        };
        // Each has five bytes at least.
        if length > self.most_bytes as i64 / 5 {
            return Err(self.too_long());
        }
        if length <= 0 {
            return Ok(Decoded::Nothing(used));
        }
        self.arguments.count = 0;
        self.at = used;
        self.bulks(input, length as usize)
    }

    fn bulks(&mut self, input: &[u8], mut left: usize) -> Result<Decoded, Malformed> {
        while left > 0 {
            let rest = input.get(self.at..).unwrap_or(&[]);
            let found = match plain_bulk(rest) {
                Some(found) => Some(found),
                None => any_bulk(rest, self.most_bytes)?,
            };
            let Some((string, used)) = found else {
                self.left = Some(left);
                return Ok(Decoded::Part);
            };
            if self.at + used > self.most_bytes {
                return Err(self.too_long());
            }
            self.arguments
                .push(self.at + string.start..self.at + string.end);
            self.at += used;
            left -= 1;
        }
        Ok(Decoded::Request(self.arguments, self.at))
    }

    fn line(&mut self, input: &[u8]) -> Result<Decoded, Malformed> {
        // Where the last call stopped to look.
        let Some(end) = input[self.at..].iter().position(|&byte| byte == b'\n') else {
            self.at = input.len();
            return Ok(Decoded::Part);
        };
        let used = self.at + end + 1;
        if used > self.most_bytes {
            return Err(self.too_long());
        }
        self.arguments.count = 0;
        let mut from = 0;
        for word in input[..used].split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                self.arguments.push(from..from + word.len());
            }
            from += word.len() + 1;
        }
        if self.arguments.count == 0 {
            return Ok(Decoded::Nothing(used));
        }
        let name = self.arguments.of(input).split().0;
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            return Err(Malformed::Http);
        }
        Ok(Decoded::Request(self.arguments, used))
    }
}

/// The number of `*12\r\n` or `$12\r\n`, and its bytes; `None` if it is not all there.
fn header(input: &[u8]) -> Result<Option<(i64, usize)>, ()> {
    let front = &input[..input.len().min(HEADER)];
    let Some(end) = front.iter().position(|&byte| byte == b'\n') else {
        return if front.len() < HEADER {
            Ok(None)
        } else {
            Err(())
        };
    };
    let number = front[1..end].strip_suffix(b"\r").ok_or(())?;
    let number = std::str::from_utf8(number).map_err(|_| ())?;
    Ok(Some((number.parse().map_err(|_| ())?, end + 1)))
}

/// A string, and the bytes of all of it.
type Bulk = (Range<usize>, usize);

/// A bulk string in its plain form. `None` says nothing about any other.
#[inline]
fn plain_bulk(input: &[u8]) -> Option<Bulk> {
    let (&[b'$', first, ref rest @ ..], mut from) = (input, 2) else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    let mut length = digit(first)?;
    for &byte in rest.iter().take(2) {
        let Some(next) = digit(byte) else { break };
        length = length * 10 + next;
        from += 1;
    }
    let end = from + 2 + length;
    let there = input.get(from..end + 2)?;
    (there.starts_with(b"\r\n") && there.ends_with(b"\r\n")).then_some((from + 2..end, end + 2))
}

/// Any bulk string; `None` if it is not all there.
fn any_bulk(input: &[u8], most_bytes: usize) -> Result<Option<Bulk>, Malformed> {
    match input.first() {
        None => return Ok(None),
        Some(b'$') => {}
        Some(&byte) => return Err(Malformed::NotBulk(byte)),
    }
    let Some((length, used)) = header(input).map_err(|()| Malformed::BulkLength)? else {
        return Ok(None);
    };
    if length < 0 {
        return Err(Malformed::BulkLength);
    }
    if length > most_bytes as i64 {
        return Err(Malformed::TooLong { most: most_bytes });
    }
    let end = used + length as usize;
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((used..end, end + 2))),
        Some(_) => Err(Malformed::BulkEnd),
    }
}

#[cfg(test)]
pub(super) mod tests;
