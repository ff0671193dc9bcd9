//! Reading an ID back.

use crate::cipher::Cipher;
use crate::id::Id;
use crate::layout::{Layout, LayoutError, Parts};

/// Takes IDs apart: decrypts them and splits the fields.
///
/// Needs the layout and the secret that the IDs were made with, and nothing
/// else: no lease, no clock. Cheap to clone; usable from any thread.
///
/// Inspecting is not authenticating: with [`Layout::RANDFLAKE`] each of the
/// 2^64 values decrypts to something plausible, also one that was never issued
/// or was made with another secret.
///
/// # Examples
///
/// ```
/// use ringflake::{Cipher, Id, Inspector, Layout, Secret};
///
/// let secret = Secret::from_hex("73757065722d7365637265742d6b6579")?;
/// let inspector = Inspector::new(Layout::RANDFLAKE, Cipher::sparx64(&secret));
/// let parts = inspector.inspect("3lh74f63lfp08".parse()?)?;
/// assert_eq!((parts.unix_ms, parts.node, parts.sequence), (1730000123000, 1, 131071));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inspector {
    layout: Layout,
    cipher: Cipher,
}

impl Inspector {
    /// An inspector for IDs of `layout`, encrypted by `cipher`.
    pub const fn new(layout: Layout, cipher: Cipher) -> Self {
        Self { layout, cipher }
    }

    /// The layout of the IDs.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The cipher of the IDs.
    pub const fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    /// The tick, node and sequence of `id`. Some twenty nanoseconds.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] if the raw number has bits that the layout does not use,
    /// which shows that the ID was not made with this layout and secret; never
    /// with a layout of 64 bits. And if the ID has more bits than the cipher's:
    /// those of [`Cipher::positive`] are below 2<sup>63</sup>.
    pub fn inspect(&self, id: Id) -> Result<Parts, LayoutError> {
        let id_bits = self.cipher.id_bits();
        if id.to_u64().leading_zeros() < u64::BITS - id_bits {
            return Err(LayoutError::NotOfCipher {
                id: id.to_u64(),
                id_bits,
            });
        }
        self.layout.unpack(self.cipher.decrypt(id.to_u64()))
    }
}
