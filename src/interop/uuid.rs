//! An ID in a UUID of version 8, for what takes nothing but UUIDs.
//!
//! Version 8 leaves 122 bits to the maker of the UUID
//! ([RFC 9562, section 5.8](https://www.rfc-editor.org/rfc/rfc9562#section-5.8)): 64 are the
//! ID's, and 58 are a mark that says so.

use std::error::Error;
use std::fmt;

use ::uuid::Uuid;

use crate::id::{Id, IdLike};

/// Version 8 and variant 10 in their places, and the mark: two zeros and `flake64`.
const FIXED: u128 = 0x0000_0000_0000_8000_8066_6c61_6b65_3634;

/// Where the ID's bits are, from the highest: 48, 12 and 4.
const HIGH: Field = Field {
    bits: 48,
    in_uuid: 80,
    in_id: 16,
};
const MIDDLE: Field = Field {
    bits: 12,
    in_uuid: 64,
    in_id: 4,
};
const LOW: Field = Field {
    bits: 4,
    in_uuid: 56,
    in_id: 0,
};
const FIELDS: [Field; 3] = [HIGH, MIDDLE, LOW];

/// Bits that stand together both in the UUID and in the ID, there and there above so many.
struct Field {
    bits: u32,
    in_uuid: u32,
    in_id: u32,
}

impl Field {
    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    fn write(&self, id: u64) -> u128 {
        u128::from(id >> self.in_id & self.mask()) << self.in_uuid
    }

    fn read(&self, uuid: u128) -> u64 {
        ((uuid >> self.in_uuid) as u64 & self.mask()) << self.in_id
    }
}

macro_rules! as_uuid {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> From<$Id> for Uuid {
            /// The UUID of version 8 that carries this ID: `iiiiiiii-iiii-8iii-8i66-6c616b653634`.
            ///
            /// The `i` are the ID's number in hexadecimal, from its highest digit on, and all
            /// else is fixed. So the UUIDs sort as the numbers do.
            fn from(id: $Id) -> Self {
                let id = id.as_plain().to_u64();
                let bits = FIELDS.iter().map(|field| field.write(id));
                Self::from_u128(bits.fold(FIXED, |all, bits| all | bits))
            }
        }

        impl<$($kind)*> TryFrom<Uuid> for $Id {
            type Error = UuidError;

            /// The ID that this UUID carries.
            ///
            /// # Errors
            ///
            /// [`UuidError`] if it carries none.
            fn try_from(uuid: Uuid) -> Result<Self, UuidError> {
                let bits = FIELDS.iter().map(|field| field.read(uuid.as_u128()));
                let id = Self::from_plain(Id::from_u64(bits.fold(0, |all, bits| all | bits)));
                if Uuid::from(id) == uuid {
                    Ok(id)
                } else {
                    Err(UuidError { uuid })
                }
            }
        }
    };
}

for_each_id!(as_uuid);

/// A UUID carries no [`Id`], since it is not as `Uuid::from(id)` makes it.
///
/// # Examples
///
/// ```
/// use ringflake::Id;
/// use uuid::{Uuid, uuid};
///
/// let id = Id::from_u64(0x0123_4567_89ab_cdef);
/// let carrier = Uuid::from(id);
/// assert_eq!(carrier, uuid!("01234567-89ab-8cde-8f66-6c616b653634"));
/// assert_eq!(Id::try_from(carrier), Ok(id));
///
/// let other = uuid!("67e55044-10b1-426f-9247-bb680e5fe0c8");
/// assert_eq!(Id::try_from(other).unwrap_err().uuid, other);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UuidError {
    /// The UUID.
    pub uuid: Uuid,
}

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the UUID {} holds no ID: one that does has the form \
             iiiiiiii-iiii-8iii-8i66-6c616b653634, where the i are an ID in hexadecimal",
            self.uuid
        )
    }
}

impl Error for UuidError {}
