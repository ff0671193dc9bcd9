//! IDs in other libraries. Those that need a server, or an SQLite of their own, are in
//! `tests/types`.

// Only this feature builds an SQLite.
#[cfg(feature = "sqlite")]
mod rusqlite {
    use crate::User;
    use ringflake::{Id, TypedId};
    use ringflake_kit::assert_matches;
    use rusqlite::Connection;
    use rusqlite::types::Type;

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
            assert_matches!(error, rusqlite::Error::InvalidColumnType(0, _, found)
                if *found == kind);
        }
    }
}
