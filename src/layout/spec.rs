//! Layouts as text: `time/node/sequence@epoch/tick`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::preset::PRESETS;
use super::utc::{self, Utc};
use super::{Layout, LayoutError};

impl fmt::Display for Layout {
    /// Writes the form with all numbers, for a preset too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}@{}/",
            self.time_bits,
            self.node_bits,
            self.sequence_bits,
            Utc(self.epoch_unix_ms)
        )?;
        if self.tick_ms.is_multiple_of(1_000) {
            write!(f, "{}s", self.tick_ms / 1_000)
        } else {
            write!(f, "{}ms", self.tick_ms)
        }
    }
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    /// Reads the name of a preset, in upper or lower case, or the form
    /// `time/node/sequence@epoch/tick`: three widths in bits, the epoch as
    /// RFC 3339 in UTC with at most milliseconds, and the tick as a whole
    /// number with the unit `ms` or `s`.
    ///
    /// # Errors
    ///
    /// [`ParseLayoutError`], with the part that is wrong.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// let layout: Layout = "28/22/13@2016-05-20T00:00:00Z/1s".parse()?;
    /// assert_eq!(layout, Layout::BAIDU);
    /// assert_eq!("Baidu".parse(), Ok(layout));
    /// assert_eq!(layout.to_string(), "28/22/13@2016-05-20T00:00:00Z/1s");
    /// # Ok::<(), ringflake::ParseLayoutError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        if let Some(preset) = Self::from_name(text) {
            return Ok(preset);
        }
        if let Some(incomplete) = incomplete(text) {
            return Err(incomplete);
        }
        let unrecognized = || ParseLayoutError::Unrecognized { text: text.into() };

        let (widths, rest) = text.split_once('@').ok_or_else(unrecognized)?;
        let (epoch, tick) = rest.split_once('/').ok_or_else(unrecognized)?;
        let (time, rest) = widths.split_once('/').ok_or_else(unrecognized)?;
        let (node, sequence) = rest.split_once('/').ok_or_else(unrecognized)?;

        Self::builder()
            .bits(
                parse_width(time)?,
                parse_width(node)?,
                parse_width(sequence)?,
            )
            .tick(parse_tick(tick)?)
            .epoch_unix_ms(parse_epoch(epoch)?)
            .build()
            .map_err(ParseLayoutError::Invalid)
    }
}

/// What a text lacks that begins with three widths.
fn incomplete(text: &str) -> Option<ParseLayoutError> {
    let (widths, epoch, tick) = match text.split_once('@') {
        Some((widths, rest)) => (widths, true, rest.contains('/')),
        None => {
            let end = text.match_indices('/').nth(2).map(|(end, _)| end);
            (&text[..end.unwrap_or(text.len())], false, end.is_some())
        }
    };
    let missing = match (epoch, tick) {
        (true, true) => return None,
        (true, false) => "no tick",
        (false, true) => "no epoch",
        (false, false) => "no epoch and no tick",
    };
    let widths: Vec<u32> = widths.split('/').map(parse_digits).collect::<Option<_>>()?;
    let widths = widths.try_into().ok()?;
    Some(ParseLayoutError::Incomplete {
        text: text.into(),
        missing,
        widths,
    })
}

fn parse_width(text: &str) -> Result<u32, ParseLayoutError> {
    parse_digits(text).ok_or_else(|| ParseLayoutError::Width { text: text.into() })
}

fn parse_epoch(text: &str) -> Result<u64, ParseLayoutError> {
    utc::parse_unix_ms(text).map_err(|reason| ParseLayoutError::Epoch {
        text: text.into(),
        reason,
    })
}

/// Two units are enough for a tick, and make for one way to write most of
/// them. `humantime::parse_duration` would also take sums of units, and panics on
/// some that exceed `Duration::MAX` (2.4.0: `18446744073709551615s 1000ms`).
fn parse_tick(text: &str) -> Result<Duration, ParseLayoutError> {
    let tick = if let Some(number) = text.strip_suffix("ms") {
        parse_digits(number).map(Duration::from_millis)
    } else if let Some(number) = text.strip_suffix('s') {
        parse_digits(number).map(Duration::from_secs)
    } else {
        None
    };
    tick.ok_or_else(|| ParseLayoutError::Tick { text: text.into() })
}

/// Like `parse`, without the leading `+` that it allows.
fn parse_digits<N: FromStr>(text: &str) -> Option<N> {
    if text.starts_with('+') {
        return None;
    }
    text.parse().ok()
}

/// Why a text is not a [`Layout`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseLayoutError {
    /// Neither the name of a preset nor of the form
    /// `time/node/sequence@epoch/tick`.
    Unrecognized {
        /// The whole text.
        text: String,
    },
    /// Widths without an epoch or a tick.
    Incomplete {
        /// The whole text.
        text: String,
        /// What is missing: `no epoch`, `no tick` or both.
        missing: &'static str,
        /// Bits of time, node and sequence.
        widths: [u32; 3],
    },
    /// A width is not a whole number.
    Width {
        /// The part that stands for the width.
        text: String,
    },
    /// The epoch is not a date and time in UTC with at most milliseconds.
    Epoch {
        /// The part that stands for the epoch.
        text: String,
        /// The reason why it is not valid.
        reason: String,
    },
    /// The tick is not a whole number with the unit `ms` or `s`.
    Tick {
        /// The part that stands for the tick.
        text: String,
    },
    /// The text has the form, but its numbers are not those of a layout.
    Invalid(LayoutError),
}

/// The presets of these widths, or where there are none how to write a layout of them.
fn write_completions(f: &mut fmt::Formatter<'_>, [time, node, sequence]: [u32; 3]) -> fmt::Result {
    let same = PRESETS
        .iter()
        .filter(|(_, it)| (it.time_bits, it.node_bits, it.sequence_bits) == (time, node, sequence));
    let mut separator = "";
    for (name, layout) in same {
        write!(f, "{separator}{name}, which is {layout}")?;
        separator = ", or ";
    }
    if separator.is_empty() {
        let epoch = Utc(Layout::RANDFLAKE.epoch_unix_ms());
        write!(
            f,
            "{time}/{node}/{sequence}@EPOCH/TICK, such as {time}/{node}/{sequence}@{epoch}/1s"
        )?;
    }
    Ok(())
}

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete {
                text,
                missing,
                widths,
            } => {
                write!(f, "the layout {text:?} has {missing}; give ")?;
                write_completions(f, *widths)
            }
            Self::Unrecognized { text } => {
                write!(f, "unknown layout {text:?}; give one of ")?;
                for (name, _) in PRESETS {
                    write!(f, "{name}, ")?;
                }
                write!(
                    f,
                    "or time/node/sequence@epoch/tick, such as {}",
                    Layout::BAIDU_2026
                )
            }
            Self::Width { text } => write!(
                f,
                "the width {text:?} is not a number of bits; give a whole number from 1 to 62"
            ),
            Self::Epoch { text, reason } => write!(
                f,
                "the epoch {text:?} is not valid: {reason}; \
                 give a date and time in UTC such as {} or {}",
                Utc(Layout::BAIDU.epoch_unix_ms()),
                Utc(Layout::TWITTER.epoch_unix_ms())
            ),
            Self::Tick { text } => write!(
                f,
                "the tick {text:?} is not valid; \
                 give a whole number with the unit ms or s, such as 10ms or 1s"
            ),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl Error for ParseLayoutError {}
