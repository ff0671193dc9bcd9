//! The text by which a client names a lease.
//!
//! ```text
//! base64url of:  1 | length of the name | name | block | epoch | from | until | tag
//!                1          1              n      8       8      8       8     16  bytes
//! ```
//! Numbers are big-endian. The tag is the first half of HMAC-SHA256 over all before it. Its
//! key is that of the namespace: HMAC-SHA256(secret, "ringflake lease of a client"), so every
//! server that has the namespace knows it, before and after a restart, and no other namespace
//! has it. Without a secret it is HMAC-SHA256 of the same with no key, which finds accidents
//! alone.
//!
//! No ID comes twice by a text that was guessed: it names a grant and its end, and what follows
//! there the store gives to one who asks. The tag keeps others from asking for it, so that a
//! client loses its lease to none who has not the secret. Who has it can make any ID anyway.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::HMAC;
use ringflake::Secret;
use ringflake::lease::{Block, Epoch, Grant, Namespace};
use subtle::ConstantTimeEq;

const VERSION: u8 = 1;
const TAG: usize = 16;
const NUMBERS: usize = 4 * 8;

/// The longest text: that of the longest name.
pub(crate) const MOST_BYTES: usize = (2 + Namespace::MAX_NAME + NUMBERS + TAG).div_ceil(3) * 4;

#[derive(Clone)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(secret: Option<&Secret>) -> Self {
        let secret = secret.map_or(&[][..], |secret| &secret.expose()[..]);
        Self(HMAC::mac("ringflake lease of a client", secret))
    }

    fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        let whole = HMAC::mac(bytes, self.0);
        std::array::from_fn(|at| whole[at])
    }
}

/// A text that was read, whose tag is still to be compared.
#[derive(Clone, Debug)]
pub(super) struct Unproven {
    namespace: String,
    signed: Vec<u8>,
    tag: [u8; TAG],
    numbers: [u64; 4],
}

/// The text of a grant.
pub(super) fn write(key: &Key, namespace: &str, grant: &Grant) -> String {
    let mut bytes = Vec::with_capacity(2 + namespace.len() + NUMBERS + TAG);
    // The name of a namespace has at most 64 bytes.
    bytes.extend([VERSION, u8::try_from(namespace.len()).unwrap_or(u8::MAX)]);
    bytes.extend_from_slice(namespace.as_bytes());
    let Grant {
        block,
        epoch,
        ticks,
        ..
    } = grant;
    for number in [block.index(), epoch.get(), ticks.start, ticks.end] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let tag = key.tag(&bytes);
    bytes.extend_from_slice(&tag);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a text; none if it was not written as above. Nothing of it is known to be true then.
pub(super) fn read(text: &str) -> Option<Unproven> {
    if text.len() > MOST_BYTES {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (signed, tag) = bytes.split_last_chunk::<TAG>()?;
    let (&[version, length], rest) = signed.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(length))?;
    let (numbers, []) = rest.as_chunks::<8>() else {
        return None;
    };
    if version != VERSION {
        return None;
    }
    let numbers: [[u8; 8]; 4] = numbers.try_into().ok()?;
    Some(Unproven {
        namespace: std::str::from_utf8(name).ok()?.to_owned(),
        signed: signed.to_vec(),
        tag: *tag,
        numbers: numbers.map(u64::from_be_bytes),
    })
}

impl Unproven {
    /// The name of the namespace whose key is needed.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The grant as the store answered last, if the tag is by this key. Takes as long for
    /// every tag.
    pub(super) fn prove(&self, key: &Key) -> Option<Grant> {
        let is_ours = key.tag(&self.signed).ct_eq(&self.tag);
        let [block, epoch, from, until] = self.numbers;
        bool::from(is_ours).then(|| Grant::new(Block::new(block), Epoch::new(epoch), from..until))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> Key {
        Key::of(Some(&Secret::from_bytes([byte; 16])))
    }

    fn proven(text: &str, key: &Key) -> Option<(String, Grant)> {
        let unproven = read(text)?;
        let grant = unproven.prove(key)?;
        Some((unproven.namespace().to_owned(), grant))
    }

    prop_compose! {
        fn grants()(block: u64, epoch: u64, from: u64, until: u64) -> Grant {
            Grant::new(Block::new(block), Epoch::new(epoch), from..until)
        }
    }

    proptest! {
        #[test]
        fn a_text_names_its_grant_and_no_other_text_does(
            name in "[a-z0-9]{1,64}", grant in grants(),
            at: prop::sample::Index, other in "[A-Za-z0-9_=+ -]", bit in 0..8_u32,
            cut in 1..40_usize, more in "[A-Za-z0-9_-]{1,8}",
        ) {
            let text = write(&key(7), &name, &grant);
            prop_assert!(text.len() <= MOST_BYTES);
            prop_assert_eq!(proven(&text, &key(7)), Some((name, grant)));
            let mut altered = text.clone();
            let character = at.index(text.len());
            altered.replace_range(character..=character, &other);
            let mut bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
            let byte = at.index(bytes.len());
            bytes[byte] ^= 1_u8 << bit;
            for wrong in [
                altered,
                URL_SAFE_NO_PAD.encode(bytes),
                text[..text.len() - cut].to_owned(),
                format!("{text}{more}"),
            ] {
                prop_assert!(wrong == text || proven(&wrong, &key(7)).is_none(), "{wrong}");
            }
        }

        #[test]
        fn any_text_can_be_read_or_not(text: String, bytes: Vec<u8>) {
            for text in [text, URL_SAFE_NO_PAD.encode(bytes)] {
                prop_assert_eq!(proven(&text, &key(7)), None);
            }
        }
    }

    #[test]
    fn a_key_is_that_of_one_secret() {
        let grant = Grant::new(Block::new(1), Epoch::FIRST, 3..4);
        let text = write(&key(7), "orders", &grant);
        assert_eq!(proven(&text, &key(8)), None);
        assert_eq!(proven(&text, &Key::of(None)), None);
    }

    /// Servers of this version know the texts of those before.
    #[test]
    fn the_text_of_a_grant_never_changes() {
        let grant = Grant::new(Block::new(3), Epoch::new(2), 1000..1120);
        assert_eq!(
            write(&key(7), "orders", &grant),
            "AQZvcmRlcnMAAAAAAAAAAwAAAAAAAAACAAAAAAAAA-gAAAAAAAAEYP5Oh3KMuZHreamLwGX1E2Y"
        );
    }
}
