//! Replies as bytes.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

use ringflake::{Id, TakeError};

use crate::named::named;

/// Which version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

impl Protocol {
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

named! {
    #[derive(Default)]
    pub(super) enum Form {
        /// A string of decimal digits: the signed number that `INCR` answers.
        #[default]
        Decimal = "decimal",
        /// A string of decimal digits, never negative.
        Unsigned = "unsigned",
        /// Base32hex, as `Id` is displayed.
        Text = "text",
        /// The protocol's integer.
        Integer = "integer",
    }
}

impl Form {
    pub(super) fn by_name(name: &[u8]) -> Option<Self> {
        let is_named = |form: &Self| name.eq_ignore_ascii_case(form.name().as_bytes());
        Self::ALL.into_iter().find(is_named)
    }

    /// The ID that is written so.
    pub(super) fn read(self, text: &[u8]) -> Option<Id> {
        let text = std::str::from_utf8(text).ok()?;
        match self {
            Self::Text => text.parse().ok(),
            // A signed number, and above its range an unsigned one: none is both.
            Self::Decimal | Self::Unsigned | Self::Integer => {
                let signed = text.parse().ok().map(Id::from_i64);
                signed.or_else(|| text.parse().ok().map(Id::from_u64))
            }
        }
    }
}

/// Why a request is not done, as a client may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) code: &'static str,
    pub(super) why: Cow<'static, str>,
    /// Whether it is counted as denied, whatever its code.
    pub(super) is_denied: bool,
}

impl Rejection {
    pub(super) const UNAUTHENTICATED: Self = Self::new("NOAUTH", "Authentication required.");

    pub(super) const fn new(code: &'static str, why: &'static str) -> Self {
        Self {
            code,
            why: Cow::Borrowed(why),
            is_denied: false,
        }
    }

    pub(super) fn of(why: impl Into<Cow<'static, str>>) -> Self {
        let why = why.into();
        Self {
            why,
            ..Self::new("ERR", "")
        }
    }

    /// Clients retry after this code. They take `NOPERM` as final.
    pub(super) fn over_rate(retry_after: Duration) -> Self {
        let after = retry_after.as_micros().div_ceil(1_000).max(1);
        let why = format!(
            "this token has used up its rate: ask for less, or try again later (retry in {after} ms)"
        );
        Self {
            code: "TRYAGAIN",
            why: why.into(),
            is_denied: true,
        }
    }
}

/// Where replies go, one after the other.
#[derive(Debug)]
pub(super) struct Replies<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    pub(super) protocol: Protocol,
    pub(super) errors: Errors,
}

/// How many replies were errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) all: u64,
    /// The token does not allow the request, or has used up its rate.
    pub(super) denied: u64,
    /// Those that may pass in time.
    pub(super) unavailable: u64,
}

impl Replies<'_> {
    pub(super) fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// `code` first, and then why.
    pub(super) fn error(&mut self, code: &str, why: impl fmt::Display) {
        match code {
            "NOAUTH" | "NOPERM" | "WRONGPASS" => self.errors.denied += 1,
            "TRYAGAIN" => self.errors.unavailable += 1,
            _ => {}
        }
        self.error_line(code, why);
    }

    fn error_line(&mut self, code: &str, why: impl fmt::Display) {
        self.errors.all += 1;
        let from = self.bytes.len();
        // Writing to a vector can't fail, and a `Display` that does has said less.
        let _ = write!(Text(self.bytes), "-{code} {why}");
        // The reply is one line, whatever a client has put into its request.
        for byte in &mut self.bytes[from..] {
            if byte.is_ascii_control() {
                *byte = b' ';
            }
        }
        self.end();
    }

    pub(super) fn reject(&mut self, rejection: &Rejection) {
        if rejection.is_denied {
            self.errors.denied += 1;
            self.error_line(rejection.code, &rejection.why);
        } else {
            self.error(rejection.code, &rejection.why);
        }
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    pub(super) fn bulk(&mut self, string: &[u8]) {
        self.header(b'$', string.len());
        self.bytes.extend_from_slice(string);
        self.end();
    }

    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    pub(super) fn array(&mut self, length: usize) {
        self.header(b'*', length);
    }

    /// Of so many keys, each followed by its value.
    pub(super) fn map(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', 2 * length),
            Protocol::Resp3 => self.header(b'%', length),
        }
    }

    /// A key and its value.
    pub(super) fn pair(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.bulk(key.as_ref());
        self.bulk(value.as_ref());
    }

    /// A key and its number.
    pub(super) fn figure(&mut self, key: &str, number: i64) {
        self.bulk(key.as_bytes());
        self.integer(number);
    }

    pub(super) fn id(&mut self, id: Id, form: Form) {
        let mut digits = itoa::Buffer::new();
        let string = match form {
            Form::Integer => return self.integer(id.to_i64()),
            Form::Decimal => digits.format(id.to_i64()),
            Form::Unsigned => digits.format(id.to_u64()),
            Form::Text => {
                let from = self.bytes.len();
                let _ = write!(Text(self.bytes), "$00\r\n{id}\r\n");
                let length = self.bytes.len() - from - 7;
                self.bytes[from + 1] += (length / 10) as u8;
                self.bytes[from + 2] += (length % 10) as u8;
                return;
            }
        };
        // Two digits at most: no further number is written.
        let head = [b'$', b'0' + (string.len() / 10) as u8];
        let skip = usize::from(string.len() < 10);
        self.bytes.extend_from_slice(&head[..2 - skip]);
        self.bytes.push(b'0' + (string.len() % 10) as u8);
        self.end();
        self.bytes.extend_from_slice(string.as_bytes());
        self.end();
    }

    fn header(&mut self, kind: u8, number: impl itoa::Integer) {
        self.bytes.push(kind);
        let mut digits = itoa::Buffer::new();
        self.bytes
            .extend_from_slice(digits.format(number).as_bytes());
        self.end();
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Text into a vector of bytes.
struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The reply to a take that gave nothing.
pub(super) fn refuse_take(replies: &mut Replies<'_>, error: TakeError) {
    match error.retry_after() {
        Some(after) => replies.error(
            "TRYAGAIN",
            format_args!("{error} (retry in {} ms)", after.as_millis().max(1)),
        ),
        None => replies.error("ERR", error),
    }
}

#[cfg(test)]
mod tests;
