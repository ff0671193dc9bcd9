//! `tokio-postgres`, by the feature `postgres-types`.

use ::tokio_postgres::NoTls;
use ringflake::{Id, TypedId};
use ringflake_kit::server::{Postgres, TestServer};
use ringflake_kit::started;
use ringflake_types_tests::{IDS, User, in_signed_order, rows};

use crate::runtime;

#[test]
fn tokio_postgres_keeps_ids_and_arrays_of_them() {
    let server = started!(Postgres::start());
    runtime().block_on(async {
        let connected = ::tokio_postgres::connect(&server.url(), NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        let table = "CREATE TABLE things (id BIGINT PRIMARY KEY, owner BIGINT)";
        client.batch_execute(table).await.unwrap();
        for (id, owner) in rows() {
            let insert = "INSERT INTO things VALUES ($1, $2)";
            client.execute(insert, &[&id, &owner]).await.unwrap();
        }
        for (id, owner) in rows() {
            let by_id = "SELECT id, owner FROM things WHERE id = $1";
            let row = client.query_one(by_id, &[&id]).await.unwrap();
            assert_eq!((row.get(0), row.get(1)), (id, owner));
            // The number that is there is the signed one.
            assert_eq!(row.get::<_, i64>(0), id.to_i64());
            if owner.is_some() {
                let by_owner = "SELECT id FROM things WHERE owner = $1";
                let row = client.query_one(by_owner, &[&owner]).await.unwrap();
                assert_eq!(row.get::<_, Id>(0), id);
            }
        }

        let any = "SELECT id FROM things WHERE id = ANY($1) ORDER BY id";
        let found = client.query(any, &[&&IDS[3..5]]).await.unwrap();
        let found: Vec<Id> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, IDS[3..5]);
        let all = "SELECT array_agg(id ORDER BY id) FROM things";
        let array: Vec<Id> = client.query_one(all, &[]).await.unwrap().get(0);
        assert_eq!(array, in_signed_order());
    });
}

#[test]
fn tokio_postgres_takes_no_other_type_for_an_id() {
    let server = started!(Postgres::start());
    runtime().block_on(async {
        let connected = ::tokio_postgres::connect(&server.url(), NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        for kind in ["TEXT", "INT", "NUMERIC"] {
            let read = format!("SELECT '1'::{kind}, NULL::BIGINT");
            let row = client.query_one(&read, &[]).await.unwrap();
            assert!(row.try_get::<_, Id>(0).is_err(), "{kind}");
            assert!(row.try_get::<_, TypedId<User>>(0).is_err(), "{kind}");
            assert!(row.try_get::<_, Id>(1).is_err(), "{kind}");
            assert_eq!(row.get::<_, Option<Id>>(1), None);
            let write = format!("SELECT $1::{kind}");
            assert!(
                client.query_one(&write, &[&IDS[1]]).await.is_err(),
                "{kind}"
            );
        }
    });
}
