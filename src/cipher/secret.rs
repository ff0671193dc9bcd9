//! The key, and the ways to come by one.

mod shell;
#[cfg(unix)]
mod trust;

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub use self::shell::quoted as shell_quoted;
#[cfg(unix)]
pub(crate) use self::trust::{as_owner, chown_to};
use crate::describe::describe;

const BYTES: usize = 16;

const DIGITS: usize = 2 * BYTES;

/// Bytes that a secret file may have: the digits and some white space.
const FILE_LIMIT: usize = 64;

/// A 128-bit key.
///
/// Anyone who has it can tell when and where each ID was made, and make any ID. All generators of
/// one namespace share one secret.
///
/// It is overwritten with zeros when dropped, and its `Debug` output is always
/// `Secret(..)`. There is no `Display` and no serialisation;
/// [`expose`](Self::expose) is the one way to the bytes.
#[derive(Clone)]
pub struct Secret([u8; BYTES]);

impl Secret {
    /// The secret made of these bytes. The caller's own copy of them is the
    /// caller's to overwrite.
    #[doc(alias = "new")]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads 32 hexadecimal digits, upper or lower case.
    ///
    /// Better keep them in a [file](Self::from_file): child processes inherit an environment
    /// variable, and crash reports often contain it.
    ///
    /// # Errors
    ///
    /// [`SecretError::HexLength`] or [`SecretError::HexDigit`]; neither repeats
    /// any of `digits`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Secret;
    ///
    /// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
    /// assert_eq!(secret.expose()[15], 0xff);
    /// assert!(Secret::from_hex("0011").is_err());
    /// # Ok::<(), ringflake::SecretError>(())
    /// ```
    #[doc(alias = "from_env")]
    pub fn from_hex(digits: &str) -> Result<Self, SecretError> {
        Self::parse_hex(digits.as_bytes()).map_err(|fault| match fault {
            HexFault::Length { found } => SecretError::HexLength { found },
            HexFault::Digit { position } => SecretError::HexDigit { position },
        })
    }

    /// Reads a file of exactly 16 raw bytes, or of 32 hexadecimal digits and
    /// any white space after them, up to 64 bytes in all.
    ///
    /// The bytes pass through a buffer that is overwritten with zeros.
    ///
    /// On Unix the file and the directory that it lies in must belong to this user or
    /// to root, and nobody else may write them, as ssh asks of its keys. Links are
    /// followed first. A directory with the sticky bit may be written by all, and one's
    /// own group counts as this user. What is no regular file, such as a pipe, is taken
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`SecretError::FileUnreadable`], [`SecretError::FileNotTrusted`],
    /// [`SecretError::FileLength`] or [`SecretError::FileDigit`], each with the path.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SecretError> {
        let path = path.as_ref();
        let unreadable = |source| SecretError::FileUnreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        #[cfg(unix)]
        if let Some(reason) = trust::objection(&file, path).map_err(unreadable)? {
            return Err(SecretError::FileNotTrusted {
                path: path.to_owned(),
                reason,
            });
        }
        // More room than is needed: `read_to_end` reads straight into it and never moves it, so that
        // no copy is left behind.
        let mut contents = Zeroizing::new(Vec::with_capacity(256));
        // One byte more than allowed, to tell a file at the limit from a longer one.
        let mut file = file.take(FILE_LIMIT as u64 + 1);
        let length = file.read_to_end(&mut contents).map_err(unreadable)?;
        if let Ok(bytes) = contents[..].try_into() {
            return Ok(Self(bytes));
        }
        let digits = if length > FILE_LIMIT {
            &contents[..]
        } else {
            contents.trim_ascii_end()
        };
        Self::parse_hex(digits).map_err(|fault| match fault {
            HexFault::Length { .. } => SecretError::FileLength {
                path: path.to_owned(),
                found: length,
            },
            HexFault::Digit { position } => SecretError::FileDigit {
                path: path.to_owned(),
                position,
            },
        })
    }

    /// Refuses a directory in which others can replace the file of a secret, as
    /// [`from_file`](Self::from_file) of that file would.
    #[cfg(feature = "sqlite")]
    pub(crate) fn check_directory(file: &Path) -> Result<(), SecretError> {
        #[cfg(unix)]
        if let Some(directory) = file.parent()
            && let Some(reason) = trust::objection_to_directory(directory).map_err(|source| {
                let path = directory.to_owned();
                SecretError::FileUnreadable { path, source }
            })?
        {
            let path = file.to_owned();
            return Err(SecretError::FileNotTrusted { path, reason });
        }
        #[cfg(not(unix))]
        let _ = file;
        Ok(())
    }

    /// Writes the secret to a new file that only its owner may read, as 32
    /// hexadecimal digits and a newline, and syncs it. An existing file is never
    /// overwritten. If it fails half-way the file is removed.
    ///
    /// # Errors
    ///
    /// The operating system's; [`io::ErrorKind::AlreadyExists`] for a file that is
    /// there.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Secret;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("ringflake.key");
    /// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
    /// secret.to_new_file(&path)?;
    /// assert_eq!(Secret::from_file(&path)?.expose(), secret.expose());
    /// assert!(secret.to_new_file(&path).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_new_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        self.write_hex(&mut file)
            .and_then(|()| file.sync_all())
            .inspect_err(|_| {
                // The first error is the one to report.
                let _ = fs::remove_file(path);
            })
    }

    /// Writes the text of a secret file: 32 hexadecimal digits and a newline.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_hex(&self, out: &mut impl Write) -> io::Result<()> {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = Zeroizing::new([b'\n'; DIGITS + 1]);
        for (digits, byte) in text.chunks_exact_mut(2).zip(&self.0) {
            digits[0] = HEX[usize::from(byte >> 4)];
            digits[1] = HEX[usize::from(byte & 0xf)];
        }
        out.write_all(text.as_slice())
    }

    /// Draws a secret from the operating system's random source.
    ///
    /// May block early in the boot of a machine, until the source is ready.
    ///
    /// # Errors
    ///
    /// [`SecretError::Random`] if there is no such source or it fails.
    #[cfg(feature = "getrandom")]
    pub fn generate() -> Result<Self, SecretError> {
        let mut secret = Self([0; BYTES]);
        getrandom::fill(&mut secret.0).map_err(|error| SecretError::Random {
            source: error.raw_os_error().map_or_else(
                || io::Error::other(error.to_string()),
                io::Error::from_raw_os_error,
            ),
        })?;
        Ok(secret)
    }

    /// The bytes themselves, for writing a key file.
    ///
    /// Copies made of them are the caller's to protect and to overwrite.
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    fn parse_hex(digits: &[u8]) -> Result<Self, HexFault> {
        let digits: &[u8; DIGITS] = digits.try_into().map_err(|_| HexFault::Length {
            found: digits.len(),
        })?;
        let mut secret = Self([0; BYTES]);
        for (position, &digit) in digits.iter().enumerate() {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return Err(HexFault::Digit { position }),
            };
            let byte = &mut secret.0[position / 2];
            *byte = *byte << 4 | value;
        }
        Ok(secret)
    }
}

/// The fault of a text that should be hexadecimal digits.
enum HexFault {
    Length { found: usize },
    Digit { position: usize },
}

impl FromStr for Secret {
    type Err = SecretError;

    /// Reads 32 hexadecimal digits: [`from_hex`](Self::from_hex).
    fn from_str(digits: &str) -> Result<Self, SecretError> {
        Self::from_hex(digits)
    }
}

impl From<[u8; BYTES]> for Secret {
    fn from(bytes: [u8; BYTES]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl AsRef<Self> for Secret {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why there is no [`Secret`]. Never contains any part of one.
#[derive(Debug)]
#[non_exhaustive]
pub enum SecretError {
    /// The text does not have 32 hexadecimal digits.
    HexLength {
        /// The length of the text in bytes.
        found: usize,
    },
    /// A character of the text is no hexadecimal digit.
    HexDigit {
        /// Its place in the text, in bytes from 0.
        position: usize,
    },
    /// The file could not be opened or read.
    FileUnreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Somebody else can have put the file there, or written it.
    FileNotTrusted {
        /// The file.
        path: PathBuf,
        /// Who, and what to do about it.
        reason: String,
    },
    /// The file has neither 16 bytes nor 32 hexadecimal digits.
    FileLength {
        /// The file.
        path: PathBuf,
        /// Its length in bytes; 65 stands for any length over 64.
        found: usize,
    },
    /// A character of the file is no hexadecimal digit.
    FileDigit {
        /// The file.
        path: PathBuf,
        /// The character's place in the file, in bytes from 0.
        position: usize,
    },
    /// The operating system's random source failed.
    Random {
        /// The operating system's answer.
        source: io::Error,
    },
}

describe! {
    SecretError;

    Self::HexLength { found } =>
        "a secret must be {DIGITS} hexadecimal digits, got {found} bytes of text";
    Self::HexDigit { position } =>
        "the character at position {position}, counted from 0, is not a hexadecimal digit; a \
         secret is {DIGITS} of 0-9, a-f, A-F";
    Self::FileUnreadable { path, .. } => (
        "the secret file {} cannot be read: check its path and permissions", path.display());
    Self::FileNotTrusted { path, reason } => (
        "other users can write or replace the secret file {}: {reason}, or pass its content on a \
         pipe", path.display());
    Self::FileLength { path, found } => (
        "the secret file {} has {}{} bytes; it must have {BYTES} raw bytes or {DIGITS} hexadecimal \
         digits",
        path.display(), if *found > FILE_LIMIT { "more than " } else { "" }, FILE_LIMIT.min(*found));
    Self::FileDigit { path, position } => (
        "the character at position {position}, counted from 0, of the secret file {} is not a \
         hexadecimal digit; the file must have {DIGITS} of 0-9, a-f, A-F, or {BYTES} raw bytes",
        path.display());
    Self::Random { .. } =>
        "the operating system's random source failed; try again, or use a secret made elsewhere";
}

impl Error for SecretError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::FileUnreadable { source, .. } | Self::Random { source } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let bytes = *b"\x00\x01\x0f\x10\x7f\x80\x9a\xff\xf0\x55\xaa\x33\xcc\x12\xed\xb7";
        let secret = Secret::from_bytes(bytes);
        let mut text = Vec::new();
        secret.write_hex(&mut text).unwrap();
        assert_eq!(text, b"00010f107f809afff055aa33cc12edb7\n");

        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        secret.to_new_file(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), text);
        assert_eq!(Secret::from_file(&path).unwrap().expose(), &bytes);
        let error = secret.to_new_file(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
