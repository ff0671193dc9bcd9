//! IDs in other libraries. Those that need a server, or an SQLite of their own, are in
//! `tests/types`.

#[cfg(any(feature = "sqlite", feature = "uuid"))]
enum User {}

#[cfg(any(feature = "sqlite", feature = "uuid"))]
impl ringflake::IdKind for User {
    const PREFIX: &'static str = "user";
}

#[cfg(feature = "uuid")]
mod uuid {
    use proptest::prelude::*;
    use ringflake::{Id, PublicId, TypedId};
    use uuid::{Uuid, Variant, uuid};

    use super::User;

    #[test]
    fn the_digits_of_an_id_stand_in_its_uuid() {
        for (number, uuid) in [
            (0, uuid!("00000000-0000-8000-8066-6c616b653634")),
            (
                0x0123_4567_89ab_cdef,
                uuid!("01234567-89ab-8cde-8f66-6c616b653634"),
            ),
            (u64::MAX, uuid!("ffffffff-ffff-8fff-8f66-6c616b653634")),
        ] {
            assert_eq!(Uuid::from(Id::from_u64(number)), uuid);
            assert_eq!(Id::try_from(uuid), Ok(Id::from_u64(number)));
        }
        assert_eq!(Uuid::from(Id::default()).as_bytes()[9..], *b"flake64");
    }

    #[test]
    fn a_uuid_with_one_other_bit_carries_another_id_or_none() {
        let id = Id::from_u64(12_037_510_499_902_272_547);
        let carrier = Uuid::from(id);
        let mut carriers = 0;
        for bit in 0..u128::BITS {
            let uuid = Uuid::from_u128(carrier.as_u128() ^ 1 << bit);
            match Id::try_from(uuid) {
                Ok(other) => {
                    assert_eq!((other.to_u64() ^ id.to_u64()).count_ones(), 1);
                    carriers += 1;
                }
                Err(error) => {
                    assert_eq!(error.uuid, uuid);
                    let says = format!("the UUID {uuid} holds no ID");
                    assert!(error.to_string().starts_with(&says), "{error}");
                }
            }
        }
        assert_eq!(carriers, 64);
    }

    proptest! {
        #[test]
        fn an_id_goes_through_a_uuid_of_version_8(number: u64) {
            let id = Id::from_u64(number);
            let uuid = Uuid::from(id);
            prop_assert_eq!(uuid.get_version_num(), 8);
            prop_assert_eq!(uuid.get_variant(), Variant::RFC4122);
            prop_assert_eq!(Id::try_from(uuid), Ok(id));
            let typed = TypedId::<User>::from_id(id);
            prop_assert_eq!(Uuid::from(typed), uuid);
            prop_assert_eq!(TypedId::try_from(uuid), Ok(typed));
            let public = PublicId::from_u64(number);
            prop_assert_eq!(Uuid::from(public), uuid);
            prop_assert_eq!(PublicId::try_from(uuid), Ok(public));
        }

        #[test]
        fn no_other_uuid_carries_an_id(number: u64, other: u128, shift in 0..=u128::BITS) {
            // The fewer bits are another's, the likelier there is an ID.
            let other = other.checked_shl(shift).unwrap_or(0);
            let uuid = Uuid::from_u128(Uuid::from(Id::from_u64(number)).as_u128() ^ other);
            let bytes = uuid.as_bytes();
            let is_marked = bytes[9..] == *b"flake64" && bytes[6] >> 4 == 8 && bytes[8] >> 4 == 8;
            match Id::try_from(uuid) {
                Ok(id) => prop_assert!(is_marked && Uuid::from(id) == uuid),
                Err(error) => prop_assert_eq!((is_marked, error.uuid), (false, uuid)),
            }
        }

        #[test]
        fn uuids_order_as_the_ids_do(left: u64, right: u64) {
            let uuid = |number| Uuid::from(Id::from_u64(number));
            prop_assert_eq!(uuid(left).cmp(&uuid(right)), left.cmp(&right));
        }
    }
}

// Only this feature builds an SQLite.
#[cfg(feature = "sqlite")]
mod rusqlite {
    use ringflake::{Id, TypedId};
    use rusqlite::Connection;
    use rusqlite::types::Type;

    use super::User;

    fn table() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE things (id INTEGER PRIMARY KEY, owner INTEGER) STRICT";
        connection.execute(table, ()).unwrap();
        connection
    }

    #[test]
    fn rusqlite_keeps_ids_as_signed_numbers() {
        let connection = table();
        for number in [0, 1, i64::MAX as u64, 1 << 63, u64::MAX] {
            let id = Id::from_u64(number);
            let owner = (number % 2 == 1).then(|| TypedId::<User>::from_id(Id::from_u64(!number)));
            let insert = "INSERT INTO things VALUES (?, ?)";
            connection.execute(insert, (id, owner)).unwrap();

            let by_id = "SELECT id, owner, id FROM things WHERE id = ? AND owner IS ?";
            let found: (Id, Option<TypedId<User>>, i64) = connection
                .query_row(by_id, (id, owner), |row| row.try_into())
                .unwrap();
            assert_eq!(found, (id, owner, number as i64));
        }
    }

    #[test]
    fn rusqlite_takes_nothing_else_for_an_id() {
        let connection = table();
        for (value, kind) in [
            ("'1'", Type::Text),
            ("1.0", Type::Real),
            ("NULL", Type::Null),
        ] {
            let select = format!("SELECT {value}");
            let error = connection
                .query_row(&select, (), |row| row.get::<_, Id>(0))
                .unwrap_err();
            assert!(
                matches!(error, rusqlite::Error::InvalidColumnType(0, _, found) if found == kind),
                "{error}"
            );
        }
    }
}
