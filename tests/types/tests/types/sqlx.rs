//! SQLx, with each of its drivers.

use ::sqlx::{Connection, MySqlConnection, PgConnection, SqliteConnection};
use ringflake::{Id, TypedId};
use ringflake_kit::server::{MariaDb, Postgres, TestServer};
use ringflake_kit::started;
use ringflake_types_tests::{IDS, User, in_signed_order, rows};

use crate::runtime;

/// As people write it, by its columns' names.
#[derive(Debug, PartialEq, ::sqlx::FromRow)]
struct Thing {
    id: Id,
    owner: Option<TypedId<User>>,
}

/// The same for each driver. They differ in how a parameter is written.
macro_rules! ids_are_kept {
    ($connection:ident, $insert:literal, $by_id:literal, $by_owner:literal, $among:literal) => {
        let table = "CREATE TABLE things (id BIGINT PRIMARY KEY, owner BIGINT, name VARCHAR(9))";
        ::sqlx::query(table)
            .execute(&mut $connection)
            .await
            .unwrap();
        for (id, owner) in rows() {
            let insert = ::sqlx::query($insert).bind(id).bind(owner);
            insert.execute(&mut $connection).await.unwrap();
        }
        for (id, owner) in rows() {
            let one = ::sqlx::query_as::<_, Thing>($by_id).bind(id);
            let found = one.fetch_all(&mut $connection).await.unwrap();
            assert_eq!(found, [Thing { id, owner }]);
            // The number that is there is the signed one.
            let same = ::sqlx::query_as::<_, Thing>($by_id).bind(id.to_i64());
            assert_eq!(same.fetch_all(&mut $connection).await.unwrap(), found);
            if owner.is_some() {
                let owned = ::sqlx::query_scalar::<_, Id>($by_owner).bind(owner);
                assert_eq!(owned.fetch_all(&mut $connection).await.unwrap(), [id]);
            }
        }
        let all = ::sqlx::query_scalar::<_, Id>("SELECT id FROM things ORDER BY id");
        assert_eq!(
            all.fetch_all(&mut $connection).await.unwrap(),
            in_signed_order()
        );
        let some = ::sqlx::query_scalar::<_, Id>($among)
            .bind(IDS[3])
            .bind(&IDS[5]);
        assert_eq!(
            some.fetch_all(&mut $connection).await.unwrap(),
            [IDS[3], IDS[5]]
        );

        // Neither a text nor a null is an ID.
        let text = ::sqlx::query_scalar::<_, Id>("SELECT 'a' FROM things");
        assert!(text.fetch_all(&mut $connection).await.is_err());
        let null = "SELECT owner FROM things WHERE owner IS NULL";
        let null = ::sqlx::query_scalar::<_, TypedId<User>>(null);
        assert!(null.fetch_all(&mut $connection).await.is_err());
    };
}

#[test]
fn postgres_keeps_ids_and_arrays_of_them() {
    let server = started!(Postgres::start());
    runtime().block_on(async {
        let mut connection = PgConnection::connect(&server.url()).await.unwrap();
        ids_are_kept!(
            connection,
            "INSERT INTO things (id, owner) VALUES ($1, $2)",
            "SELECT owner, id FROM things WHERE id = $1",
            "SELECT id FROM things WHERE owner = $1",
            "SELECT id FROM things WHERE id IN ($1, $2) ORDER BY id"
        );

        let any = "SELECT id FROM things WHERE id = ANY($1) ORDER BY id";
        let any = ::sqlx::query_scalar::<_, Id>(any).bind(&IDS[3..5]);
        assert_eq!(any.fetch_all(&mut connection).await.unwrap(), IDS[3..5]);
        let array = ::sqlx::query_scalar("SELECT array_agg(id ORDER BY id) FROM things");
        let array: Vec<Id> = array.fetch_one(&mut connection).await.unwrap();
        assert_eq!(array, in_signed_order());
        let owners: Vec<_> = rows().into_iter().map(|(_, owner)| owner).collect();
        let echo = ::sqlx::query_scalar("SELECT $1::BIGINT[]").bind(&owners);
        let echo: Vec<Option<TypedId<User>>> = echo.fetch_one(&mut connection).await.unwrap();
        assert_eq!(echo, owners);
    });
}

#[test]
fn mysql_keeps_ids() {
    let server = started!(MariaDb::start());
    runtime().block_on(async {
        let mut connection = MySqlConnection::connect(&server.url()).await.unwrap();
        ids_are_kept!(
            connection,
            "INSERT INTO things (id, owner) VALUES (?, ?)",
            "SELECT owner, id FROM things WHERE id = ?",
            "SELECT id FROM things WHERE owner = ?",
            "SELECT id FROM things WHERE id IN (?, ?) ORDER BY id"
        );
    });
}

#[test]
fn sqlite_keeps_ids() {
    runtime().block_on(async {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        ids_are_kept!(
            connection,
            "INSERT INTO things (id, owner) VALUES (?, ?)",
            "SELECT owner, id FROM things WHERE id = ?",
            "SELECT id FROM things WHERE owner = ?",
            "SELECT id FROM things WHERE id IN (?, ?) ORDER BY id"
        );
    });
}

/// `ringflake` keeps leases in its own SQLite file; all three have to link one library.
#[test]
fn local_ids_sqlx_and_diesel_share_one_sqlite() {
    use ::diesel::sql_types::BigInt;
    use ::diesel::{Connection as _, IntoSql as _, RunQueryDsl as _};

    let home = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ids = ringflake::local_in(home.path().join("data"), "orders").unwrap();
    runtime().block_on(async {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        ::sqlx::query("CREATE TABLE things (id BIGINT PRIMARY KEY)")
            .execute(&mut connection)
            .await
            .unwrap();
        let id = ids.take().unwrap();
        let insert = ::sqlx::query("INSERT INTO things (id) VALUES (?)").bind(id);
        insert.execute(&mut connection).await.unwrap();
        let all = ::sqlx::query_scalar::<_, Id>("SELECT id FROM things");
        assert_eq!(all.fetch_all(&mut connection).await.unwrap(), [id]);
    });
    let mut connection = ::diesel::SqliteConnection::establish(":memory:").unwrap();
    let id = ids.take().unwrap();
    let echo = ::diesel::select(id.into_sql::<BigInt>()).get_result::<Id>(&mut connection);
    assert_eq!(echo, Ok(id));
}
