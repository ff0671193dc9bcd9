//! Diesel, with its backends.

use ::diesel::connection::SimpleConnection;
use ::diesel::prelude::*;
use ringflake::{Id, TypedId};
use ringflake_kit::server::{MariaDb, Postgres, TestServer};
use ringflake_kit::started;
use ringflake_types_tests::{IDS, User, in_signed_order, rows};

::diesel::table! {
    things (id) {
        id -> BigInt,
        owner -> Nullable<BigInt>,
    }
}

#[derive(Clone, Debug, PartialEq, Identifiable, Insertable, Queryable, Selectable, AsChangeset)]
#[diesel(table_name = things)]
#[diesel(treat_none_as_null = true)]
struct Thing {
    id: Id,
    owner: Option<TypedId<User>>,
}

/// The same for each backend.
macro_rules! ids_are_kept {
    ($connection:ident) => {
        let table = "CREATE TABLE things (id BIGINT PRIMARY KEY, owner BIGINT)";
        $connection.batch_execute(table).unwrap();
        let whole: Vec<_> = rows()
            .into_iter()
            .map(|(id, owner)| Thing { id, owner })
            .collect();
        for thing in &whole {
            let insert = ::diesel::insert_into(things::table).values(thing);
            assert_eq!(insert.execute(&mut $connection).unwrap(), 1);
        }
        for thing in &whole {
            let by_id = things::table
                .filter(things::id.eq(thing.id))
                .select(Thing::as_select());
            assert_eq!(
                by_id.load(&mut $connection).unwrap(),
                std::slice::from_ref(thing)
            );
            // The number that is there is the signed one.
            let number = things::table.find(thing.id).select(things::id);
            assert_eq!(
                number.load::<i64>(&mut $connection).unwrap(),
                [thing.id.to_i64()]
            );
            if let Some(owner) = thing.owner {
                let by_owner = things::table
                    .filter(things::owner.eq(owner))
                    .select(things::id);
                assert_eq!(by_owner.load::<Id>(&mut $connection).unwrap(), [thing.id]);
            }
        }
        let all = things::table.order(things::id).select(things::id);
        assert_eq!(all.load::<Id>(&mut $connection).unwrap(), in_signed_order());
        let among = things::table
            .filter(things::id.eq_any(&IDS[3..5]))
            .order(things::id);
        let among = among.select(things::id);
        assert_eq!(among.load::<Id>(&mut $connection).unwrap(), IDS[3..5]);
        let without = things::table.filter(things::owner.is_null()).count();
        assert_eq!(without.get_result::<i64>(&mut $connection).unwrap(), 3);

        let mut changed = whole[1].clone();
        changed.owner = None;
        let update = ::diesel::update(&changed).set(&changed);
        assert_eq!(update.execute(&mut $connection).unwrap(), 1);
        let found = things::table
            .find(changed.id)
            .first::<Thing>(&mut $connection)
            .unwrap();
        assert_eq!(found, changed);
    };
}

#[test]
fn postgres_keeps_ids_and_arrays_of_them() {
    use ::diesel::dsl::sql;
    use ::diesel::sql_types::{Array, BigInt};

    let server = started!(Postgres::start());
    let mut connection = PgConnection::establish(&server.url()).unwrap();
    ids_are_kept!(connection);

    let query = sql::<Array<BigInt>>("").bind::<Array<BigInt>, _>(IDS.to_vec());
    let echo = ::diesel::select(query)
        .get_result::<Vec<Id>>(&mut connection)
        .unwrap();
    assert_eq!(echo, IDS);
}

#[test]
fn mysql_keeps_ids() {
    let server = started!(MariaDb::start());
    let mut connection = MysqlConnection::establish(&server.url()).unwrap();
    ids_are_kept!(connection);
}

#[test]
fn sqlite_keeps_ids() {
    let mut connection = SqliteConnection::establish(":memory:").unwrap();
    ids_are_kept!(connection);
}
