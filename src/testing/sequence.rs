//! IDs that are known beforehand.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::cipher::Cipher;
use crate::generator::{IdSource, TakeError};
use crate::id::Id;

/// Counts: 1, 2, 3 and so on, encrypted if a test wants IDs that look like real ones.
///
/// Lock-free; usable from any thread, and threads that share one get each number once. It
/// gives 2<sup>64</sup> IDs and then begins again.
///
/// # Examples
///
/// ```
/// use ringflake::testing::Sequence;
/// use ringflake::{Cipher, Id, IdSource, Secret};
///
/// let ids = Sequence::new();
/// assert_eq!(ids.take(), Ok(Id::from_u64(1)));
/// assert_eq!(ids.take(), Ok(Id::from_u64(2)));
///
/// let cipher = Cipher::sparx64(&Secret::from_bytes([7; 16]));
/// let ids = Sequence::starting_at(100).encrypted_by(cipher.clone());
/// assert_eq!(cipher.decrypt(ids.take()?.to_u64()), 100);
/// # Ok::<(), ringflake::TakeError>(())
/// ```
#[derive(Debug)]
pub struct Sequence {
    next: AtomicU64,
    cipher: Cipher,
}

impl Sequence {
    /// From 1 on, plain.
    pub const fn new() -> Self {
        Self::starting_at(1)
    }

    /// From `first` on, plain.
    pub const fn starting_at(first: u64) -> Self {
        Self {
            next: AtomicU64::new(first),
            cipher: Cipher::plain(),
        }
    }

    /// The same numbers, encrypted.
    #[must_use]
    pub fn encrypted_by(mut self, cipher: Cipher) -> Self {
        self.cipher = cipher;
        self
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new()
    }
}

impl IdSource for Sequence {
    fn take(&self) -> Result<Id, TakeError> {
        // Relaxed: a count, which guards no other memory.
        let number = self.next.fetch_add(1, Relaxed);
        Ok(Id::from_u64(self.cipher.encrypt(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::Secret;

    #[test]
    fn a_sequence_counts_on_and_gives_each_number_once() {
        let ids = Sequence::default();
        let mut batch = [Id::default(); 3];
        assert_eq!(ids.take_batch(&mut batch), Ok(3));
        assert_eq!(batch.map(Id::to_u64), [1, 2, 3]);
        assert_eq!(ids.take(), Ok(Id::from_u64(4)));
        assert_eq!(Sequence::starting_at(9).take(), Ok(Id::from_u64(9)));
    }

    #[test]
    fn an_encrypted_sequence_is_the_same_numbers() {
        let cipher = Cipher::sparx64(&Secret::from_bytes([7; 16]));
        let ids = Sequence::starting_at(9).encrypted_by(cipher.clone());
        for number in 9..12 {
            let expected = Id::from_u64(cipher.encrypt(number));
            assert_eq!(ids.take(), Ok(expected));
            assert_ne!(expected.to_u64(), number);
        }
    }
}
