//! How the IDs of a stream are spelled, as far as known.

use std::fmt;

use crate::ids::{InputFormat, ReadIdError, Spelling};

/// The spellings of the unambiguous IDs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Evidence {
    #[default]
    None,
    /// All of them were spelled in this way.
    One {
        spelling: Spelling,
        /// Whether ambiguous texts were read by it.
        relied_on: bool,
    },
    Both,
}

impl Evidence {
    /// Notes an ID of this spelling.
    ///
    /// # Errors
    ///
    /// [`Undecided::TooLate`] if ambiguous texts were read in the other one.
    pub(super) fn add(&mut self, shown: Spelling) -> Result<(), Undecided> {
        match *self {
            Self::None => {
                *self = Self::One {
                    spelling: shown,
                    relied_on: false,
                };
            }
            Self::One {
                spelling,
                relied_on,
            } if spelling != shown => {
                *self = Self::Both;
                if relied_on {
                    return Err(Undecided::TooLate { shown });
                }
            }
            Self::One { .. } | Self::Both => {}
        }
        Ok(())
    }

    /// How an ambiguous text is to be read.
    pub(super) fn decide(&mut self) -> Result<InputFormat, Undecided> {
        match self {
            Self::None => Err(Undecided::NothingToGoBy),
            Self::Both => Err(Undecided::Both),
            Self::One {
                spelling,
                relied_on,
            } => {
                *relied_on = true;
                Ok(InputFormat::from(*spelling))
            }
        }
    }
}

/// Why it is not known how a text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecided {
    NothingToGoBy,
    Both,
    TooLate { shown: Spelling },
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToGoBy => ReadIdError::Ambiguous.fmt(f),
            Self::Both => f.write_str(
                "may be base32hex or a decimal number, and both came before: give those \
                 apart, with --input base32hex and with --input u64",
            ),
            Self::TooLate { shown } => {
                let (this, those) = match shown {
                    Spelling::Decimal => ("a decimal number", "base32hex"),
                    Spelling::Base32hex => ("base32hex", "decimal numbers"),
                };
                write!(
                    f,
                    "{this}, but digits before it were read as {those}, which may be wrong: \
                     give --input base32hex or --input u64"
                )
            }
        }
    }
}
