//! The key schedule of SPARX-64/128.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::arx::arx_box;
use super::secret::Secret;

pub(super) const STEPS: usize = 8;

/// One for each branch of each step, and one that is added at the end.
const SUBKEYS: usize = 2 * STEPS + 1;

/// Three rounds of two words. The last subkey lends its first four.
pub(super) type Subkey = [u16; 6];

/// A [`Subkey`] with each word four times in 64 bits.
pub(super) type WideSubkey = [u64; 6];

/// The expanded key, overwritten with zeros when dropped.
#[derive(Clone)]
pub(super) struct Schedule {
    subkeys: [Subkey; SUBKEYS],
    /// The same for vectors: a register is filled with 64 bits from memory by
    /// the load itself, where 16 bits would take shuffles besides.
    wide: [WideSubkey; SUBKEYS],
}

impl Schedule {
    /// A place for a key, not yet one.
    pub(super) fn zeroed() -> Self {
        Self {
            subkeys: [[0; 6]; SUBKEYS],
            wide: [[0; 6]; SUBKEYS],
        }
    }

    /// Computes the subkeys of `secret`.
    pub(super) fn expand(&mut self, secret: &Secret) {
        let mut key = Zeroizing::new([0; 8]);
        let (pairs, _) = secret.expose().as_chunks();
        for (word, bytes) in key.iter_mut().zip(pairs) {
            *word = u16::from_be_bytes(*bytes);
        }
        for (subkey, count) in self.subkeys.iter_mut().zip(1..) {
            subkey.copy_from_slice(&key[..6]);
            (key[0], key[1]) = arx_box((key[0], key[1]));
            key[2] = key[2].wrapping_add(key[0]);
            key[3] = key[3].wrapping_add(key[1]);
            key[7] = key[7].wrapping_add(count);
            key.rotate_right(2);
        }
        for (wide, subkey) in self.wide.iter_mut().zip(&self.subkeys) {
            *wide = subkey.map(widen);
        }
    }

    /// The subkey of one branch in one step, or the last: `0..=16`.
    pub(super) fn subkey(&self, index: usize) -> &Subkey {
        &self.subkeys[index]
    }

    pub(super) fn wide_subkey(&self, index: usize) -> &WideSubkey {
        &self.wide[index]
    }
}

/// One word four times over.
pub(super) fn widen(word: u16) -> u64 {
    u64::from(word) * 0x0001_0001_0001_0001
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.subkeys.zeroize();
        self.wide.zeroize();
    }
}

impl ZeroizeOnDrop for Schedule {}

#[cfg(test)]
mod tests {
    use std::mem::{MaybeUninit, offset_of};
    use std::ptr;

    use super::*;

    #[test]
    fn drop_leaves_zeros() {
        let mut schedule = Schedule::zeroed();
        schedule.expand(&Secret::from_bytes([0xa5; 16]));
        assert!(
            schedule
                .subkeys
                .as_flattened()
                .iter()
                .any(|&word| word != 0)
        );
        assert!(schedule.wide.as_flattened().iter().any(|&word| word != 0));

        let mut place = MaybeUninit::new(schedule);
        // SAFETY: the place was initialised just above and is not used as a
        // `Schedule` again.
        unsafe { place.assume_init_drop() };
        let bytes = place.as_ptr().cast::<u8>();
        let subkeys = bytes.wrapping_add(offset_of!(Schedule, subkeys));
        let wide = bytes.wrapping_add(offset_of!(Schedule, wide));
        // SAFETY: the storage is still owned by `place`; dropping plain integers
        // leaves them initialised.
        let subkeys = unsafe { ptr::read(subkeys.cast::<[Subkey; SUBKEYS]>()) };
        // SAFETY: as above.
        let wide = unsafe { ptr::read(wide.cast::<[WideSubkey; SUBKEYS]>()) };
        assert_eq!(subkeys, [[0; 6]; SUBKEYS]);
        assert_eq!(wide, [[0; 6]; SUBKEYS]);
    }
}
