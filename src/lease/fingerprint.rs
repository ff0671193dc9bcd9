//! A secret's fingerprint, which a store keeps in its place.

use std::fmt;

use crate::cipher::{IdWidth, Secret};

/// A secret's fingerprint. A store keeps it to detect a wrong secret, and a secret that
/// belongs to another namespace.
///
/// It is the first 16 bytes of HMAC-SHA256, keyed with the secret, over a fixed
/// label. It reveals nothing of the secret except where else it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Of a namespace whose IDs are not encrypted. Any number of such namespaces
    /// may share a store; they issue the same numbers.
    pub const PLAIN: Self = Self([0; 16]);

    /// Of `secret`: the first 16 bytes of HMAC-SHA256(secret, "ringflake secret").
    ///
    /// # Examples
    /// ```
    /// use ringflake::{Secret, lease::Fingerprint};
    ///
    /// let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
    /// let fingerprint = Fingerprint::of(&secret);
    /// assert_eq!(fingerprint.to_string(), "5428ccafa9b9632a919eb868cc9380dd");
    /// # Ok::<(), ringflake::SecretError>(())
    /// ```
    pub fn of(secret: &Secret) -> Self {
        Self::mac(secret, &[b"ringflake secret"])
    }

    /// Of `secret` for IDs of this width, so that a namespace never has IDs of two: that of
    /// [`of`](Self::of) for [`IdWidth::Full`]; or else the first 16 bytes of
    /// HMAC-SHA256(secret, "ringflake secret, 63 bits"), or "53 bits".
    ///
    /// A store can't know by itself that two of them are of one secret, whose IDs would meet.
    /// [`Init::with_secret`](crate::lease::Init::with_secret) lets it refuse that; generators, `Local`
    /// and the command line use it.
    ///
    /// # Examples
    /// ```
    /// use ringflake::{IdWidth, Secret, lease::Fingerprint};
    ///
    /// let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
    /// let fingerprint = Fingerprint::of_width(&secret, IdWidth::Positive);
    /// assert_ne!(fingerprint, Fingerprint::of(&secret));
    /// # Ok::<(), ringflake::SecretError>(())
    /// ```
    pub fn of_width(secret: &Secret, width: IdWidth) -> Self {
        match width {
            IdWidth::Full => Self::of(secret),
            narrower => {
                let width = format!(", {} bits", narrower.bits());
                Self::mac(secret, &[b"ringflake secret", width.as_bytes()])
            }
        }
    }

    /// Those of `secret` for IDs of each width.
    pub(crate) fn of_all_widths(secret: &Secret) -> [Self; IdWidth::ALL.len()] {
        IdWidth::ALL.map(|width| Self::of_width(secret, width))
    }

    fn mac(secret: &Secret, message: &[&[u8]]) -> Self {
        let mut mac = hmac_sha256::HMAC::new(secret.expose());
        for part in message {
            mac.update(part);
        }
        let digest = mac.finalize();
        let (kept, _) = digest.split_at(16);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(kept);
        Self(bytes)
    }

    /// A fingerprint computed elsewhere, or read back from a store.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    /// Thirty-two hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are Python's, from `hmac.new(key, message, hashlib.sha256)`.
    #[test]
    fn a_fingerprint_is_an_hmac() {
        let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f").unwrap();
        let fingerprint = Fingerprint::of(&secret);
        assert_eq!(fingerprint.to_string(), "5428ccafa9b9632a919eb868cc9380dd");
        for (width, print) in [
            (IdWidth::Full, "5428ccafa9b9632a919eb868cc9380dd"),
            (IdWidth::Positive, "9bd5da1e0104811a083d1f4ef958d692"),
            (IdWidth::JsSafe, "de8fd4f066759c88c3ee0da374c2a75a"),
        ] {
            assert_eq!(Fingerprint::of_width(&secret, width).to_string(), print);
        }
    }
}
