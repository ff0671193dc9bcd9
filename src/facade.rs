//! Two faces of a key: a plain one inside, an encrypted one outside.

mod error;
mod public_id;

use std::fmt;

use zeroize::Zeroizing;

use crate::cipher::{Cipher, Secret};
use crate::id::Id;

use self::error::MAX_LABEL;

pub use self::error::FacadeError;
pub use self::public_id::PublicId;

/// Prefix of the label, so that no key is that of anything else the secret is used for.
const DOMAIN: &[u8] = b"ringflake facade\0";

/// Shows the keys of a table outside, without what they say.
///
/// Keys that a database counts up, and IDs that are [plain](crate::Cipher::plain), have two
/// faces. *Inside*, in the database and between its services, they are an [`Id`]: small,
/// sorted, good for indexes. *Outside*, in URLs, APIs and on invoices, anybody who sees two of
/// them learns how many customers there are, how many orders a day brings, and which number
/// to try next. There, show the [`PublicId`] that a facade makes of them: an encrypted number that
/// reveals nothing and opens to the one key that it was made of. Nothing is stored for it.
///
/// IDs that a generator has encrypted need no facade: they reveal nothing already.
///
/// Each kind of key has a *label*, such as the name of its table, and under it a key of its
/// own, derived from the secret. So user 1 and order 1 look nothing alike.
///
/// # What it does not do
///
/// * It does not authenticate. Every number opens to some key. A guessed number, or one of another
///   label, opens to a number as good as random, which is refused because there is no such row.
///   Look the row up, and check who may see it, as always.
/// * It does not hide that two public IDs are the same: a key has one for each label.
///
/// # Secret and label stay
///
/// A public ID holds no version, and opens rightly only under the secret and the label that it
/// was made under. Change either, and each link that is out in the world leads to a row that
/// is not there, or to a wrong one, without an error. So give a facade a secret of its own
/// and keep it for as long as its links are to work; name labels after what does not
/// change. If the secret must go, keep a facade of the old one for old links, at addresses that
/// tell them from the new.
///
/// A facade is a pure function and its key: wait-free, no allocation, usable from any
/// thread, cheap to clone. Sealing costs one encryption, opening one decryption.
///
/// # Examples
///
/// A key that the database counts up, as `BIGSERIAL` or `AUTO_INCREMENT`:
///
/// ```
/// use ringflake::{Facade, Id, PublicId, Secret};
///
/// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
/// let users = Facade::new(&secret, "users")?;
///
/// let key: i64 = 1;
/// let public = users.seal(Id::from_i64(key));
/// assert_eq!(format!("/users/{public}"), "/users/5qt3jqccvl6bi");
///
/// let asked: PublicId = "5qt3jqccvl6bi".parse()?;
/// assert_eq!(users.open(asked).to_i64(), 1);
///
/// // Under another label it opens to an unrelated number.
/// let orders = Facade::new(&secret, "orders")?;
/// assert_ne!(orders.open(asked).to_i64(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Facade {
    label: Box<str>,
    cipher: Cipher,
}

impl Facade {
    /// The facade of the keys that `label` names: 1 to 64 bytes, of which each counts.
    ///
    /// Costs about a microsecond and two allocations.
    ///
    /// The cipher is SPARX-64/128, and its key the first 16 bytes of HMAC-SHA-256 under
    /// `secret`, of `ringflake facade`, a zero byte and the label.
    ///
    /// # Errors
    ///
    /// [`FacadeError::EmptyLabel`] and [`FacadeError::LabelTooLong`].
    pub fn new(secret: &Secret, label: &str) -> Result<Self, FacadeError> {
        match label.len() {
            0 => return Err(FacadeError::EmptyLabel),
            1..=MAX_LABEL => {}
            bytes => return Err(FacadeError::LabelTooLong { bytes }),
        }
        let mut mac = hmac_sha256::HMAC::new(secret.expose());
        mac.update(DOMAIN);
        mac.update(label);
        let tag = Zeroizing::new(mac.finalize());
        let mut key = Zeroizing::new([0; 16]);
        key.copy_from_slice(&tag[..16]);
        Ok(Self {
            label: label.into(),
            cipher: Cipher::sparx64(&Secret::from_bytes(*key)),
        })
    }

    /// What names the keys.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What to show of `id` outside.
    #[doc(alias = "encrypt")]
    pub fn seal(&self, id: Id) -> PublicId {
        PublicId::from_u64(self.cipher.encrypt(id.to_u64()))
    }

    /// The key that `public` was made of, if it was made by a facade of this secret and label;
    /// or else some number, which can't be told from one.
    #[doc(alias = "decrypt")]
    pub fn open(&self, public: PublicId) -> Id {
        Id::from_u64(self.cipher.decrypt(public.to_u64()))
    }
}

/// The label, and nothing of the key.
impl fmt::Debug for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facade")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}
