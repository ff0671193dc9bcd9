//! PostgreSQL.

mod batches;

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use ringflake::lease::table::{Commit, Description, PostgresTable, Query, Snapshot, Table, Txn};
use ringflake::lease::{
    Durability, Fence, Floor, Grant, LeaseStore, Leases, OpenOptions, PostgresStore, Renew,
    StoreError,
};

use crate::kit::{
    acquire, acquire_at_a_start, ambiguous, answers, copied, corrupt, fenced, floor_ahead, made,
    mark, not_durable, now, renew, several, table_missing, take, tick, unavailable,
};
use crate::served::{Served as _, store};
use crate::sql::{self, Database};
use ringflake_kit::server::{Lent, PASSWORD, Postgres, Session, TestServer as _};
use ringflake_kit::{eventually, short_or_long};

impl Database for Postgres {
    fn execute(&self, sql: &str) {
        self.admin().execute(sql);
    }

    fn sessions(&self) -> u64 {
        let all = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringflake'";
        self.admin().value(all).parse().unwrap()
    }

    fn values(&self, sql: &str) -> Vec<String> {
        self.admin().values(sql)
    }

    fn key_column(&self) -> &'static str {
        "key"
    }
}

sql::tests_of_sql!(Postgres, PostgresStore);

#[test]
fn the_view_shows_blocks_to_people() {
    let server = started!(Lent::<Postgres>::start());
    let unreadable = r#"{"epoch":"x","hwm_end":"99999999999999999999"}"#;
    sql::the_view_shows_blocks_to_people(&*server, &["{", "", "[]", unreadable]);
}

#[test]
fn init_brings_back_what_is_missing() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, space) = server.with("orders", 5);
    for (index, statement) in [
        "DROP TABLE ringflake_ledger",
        "DROP VIEW ringflake_block",
        "DROP TRIGGER ringflake_ledger_insert ON ringflake",
        "DROP TRIGGER ringflake_ledger_update ON ringflake",
        "DROP FUNCTION ringflake_note_grants CASCADE",
        "DROP FUNCTION ringflake_text CASCADE",
        "DROP INDEX ringflake_rank",
    ]
    .into_iter()
    .enumerate()
    {
        server.execute(statement);
        if index == 0 {
            table_missing(acquire(&mut store, &space)).says("ringflake_ledger");
        }
        made(&mut store, &format!("more-{index}"), 5);
        let grant = take(&mut store, &space, 10);
        let held = format!(
            "SELECT ticks FROM ringflake_ledger AS l JOIN ringflake_block AS b
                USING (namespace, block, epoch)
            WHERE namespace = 'orders' AND block = {} AND ticks = int8range(start, hwm_end)",
            grant.block
        );
        let ticks = format!("[{},{})", grant.ticks.start, grant.ticks.end);
        assert_eq!(server.owner().value(&held), ticks, "{statement}");
    }
}

/// A database that was made of a used one, and took its name, has the same tables.
#[test]
fn a_database_made_from_a_template_grants_nothing_until_it_is_adopted() {
    let server = started!(Postgres::start());
    let space = made(&mut server.store(), "orders", 5);
    let grant = take(&mut server.store(), &space, 10);
    let before = server.store().check(&space, now()).unwrap().incarnation;
    eventually("nobody is connected to it", || server.sessions() == 0);
    let system = |sql: &str| {
        server.run(
            "psql",
            &["--quiet", "--command", sql],
            &[(
                "--dbname",
                Path::new(&format!(
                    "host=127.0.0.1 port={} user=postgres password={PASSWORD} dbname=postgres",
                    server.port()
                )),
            )],
        )
    };
    system("CREATE DATABASE copy TEMPLATE app OWNER app");
    let url = server.url();
    let copy = format!("{}/copy", url.strip_suffix("/app").unwrap());
    for sql in [
        "CREATE SCHEMA other",
        "CREATE TABLE other.ringflake (LIKE ringflake INCLUDING ALL)",
        "INSERT INTO other.ringflake (key, value, rank) SELECT key, value, rank FROM ringflake",
        "GRANT ALL ON SCHEMA other TO app",
        "GRANT ALL ON other.ringflake TO app",
    ] {
        server.execute(sql);
    }
    let schema = format!("{url}?options=-csearch_path%3Dother");
    copied(acquire(&mut store(&schema), &space));
    let report = store(&copy).check(&space, now()).unwrap();
    assert!(report.is_copy && report.history_lost(), "{report:?}");
    // The original goes on, and the copy grants nothing, also in its place.
    copied(acquire(&mut store(&copy), &space));
    let fence = fenced(renew(&mut store(&copy), &space, &grant));
    assert_eq!(fence, Fence::Incarnation);
    take(&mut server.store(), &space, 10);
    eventually("nobody is connected to them", || server.sessions() == 0);
    system("DROP DATABASE app");
    system("ALTER DATABASE copy RENAME TO app");
    let mut store = server.store();
    copied(acquire(&mut store, &space));
    // Until somebody says that it is the one to go on with.
    store
        .raise_floor(&space, Floor::OverLostGrants, now())
        .unwrap();
    let report = store.check(&space, now()).unwrap();
    assert_ne!(report.incarnation, before);
    assert!(!report.is_copy && !report.history_lost(), "{report:?}");
    floor_ahead(acquire(&mut store, &space));
}

#[test]
fn the_database_itself_refuses_intervals_that_overlap() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, only) = server.with("only", 17);
    let other = made(&mut store, "other", 17);
    let mut grant = take(&mut store, &only, 10);
    let (start, end) = (grant.ticks.start, grant.ticks.end);
    take(&mut store, &other, 100);

    // By hand: the last tick is taken, the next one is not.
    let owner = server.owner();
    let block = grant.block;
    let insert = |epoch: u64, from: u64, to: u64| {
        owner.try_execute(&format!(
            "INSERT INTO ringflake_ledger VALUES ('only', {block}, {epoch}, '[{from}, {to})')"
        ))
    };
    let refused = |result: Result<(), tokio_postgres::Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "23P01", "{error:?}");
    };
    refused(insert(7, end - 1, end + 1));
    refused(insert(7, start - 1, start + 1));

    // A renewal that would overlap.
    insert(7, end, end + 1).unwrap();
    corrupt(renew(&mut store, &only, &grant)).says("ringflake_ledger_disjoint");
    assert_eq!(mark(&mut store, &only, grant.block), Some(end));
    owner.execute("DELETE FROM ringflake_ledger WHERE epoch = 7");

    // A renewal extends the grant's own row, and holds what it adds.
    let by_20 = Renew::new(&grant, end + 20, now());
    grant.ticks.end = store.renew(&only, &by_20).unwrap();
    assert_eq!(grant.ticks.end, end + 20);
    refused(insert(7, end + 19, end + 30));

    // A mark that went back, as no rule of this crate allows: the grant that
    // would overlap is refused, and nothing is kept of it.
    let row = server.row(&only, block);
    owner.execute(&format!(
        "UPDATE ringflake SET rank = 1,
            value = regexp_replace(value, '\"hwm_end\":\"[0-9]+\"', '\"hwm_end\":\"{:020}\"')
        WHERE {row}",
        1
    ));
    let before = owner.values("SELECT * FROM ringflake_ledger");
    corrupt(acquire(&mut server.store(), &only)).says("ringflake_ledger_disjoint");
    assert_eq!(mark(&mut store, &only, block), Some(1));
    assert_eq!(owner.values("SELECT * FROM ringflake_ledger"), before);

    // An epoch that was granted twice, after the row was put back.
    let value = owner.value(&format!("SELECT value FROM ringflake WHERE {row}"));
    owner.execute("DELETE FROM ringflake_ledger");
    let again = take(&mut server.store(), &only, 10);
    owner.execute(&format!(
        "UPDATE ringflake SET value = '{value}', rank = 1 WHERE {row}"
    ));
    corrupt(acquire(&mut server.store(), &only)).says("ringflake_ledger_disjoint");
    assert_eq!(
        owner.value("SELECT max(epoch) FROM ringflake_ledger"),
        again.epoch.to_string()
    );
}

#[test]
fn the_ledger_forgets_after_a_week() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, space) = server.with("orders", 17);
    let block = take(&mut store, &space, 1).block;
    let owner = server.owner();
    let ahead = tick(&space) + 100_000;
    for (block, epoch, end, days) in [
        (block.index(), 100, 100, 8),
        (block.index(), 101, 200, 6),
        (block.index() + 1, 100, 100, 8),
        // Whatever its age: it lies ahead.
        (block.index(), 102, ahead, 8),
    ] {
        owner.execute(&format!(
            "INSERT INTO ringflake_ledger VALUES ('orders', {block}, {epoch}, '[{}, {end})',
                now() - interval '{days} days')",
            end - 10
        ));
    }
    eventually("it can be granted again", || {
        acquire(&mut store, &space).is_ok()
    });
    let rows = owner.values("SELECT block || ' ' || epoch FROM ringflake_ledger ORDER BY 1");
    // Of this block the old one is gone; the other block is looked at when it is granted.
    assert_eq!(rows, ["0 1", "0 101", "0 102", "0 2", "1 100"]);
}

#[test]
fn a_standby_serves_nobody_until_it_is_promoted_and_then_is_another() {
    let mut primary = started!(Postgres::start());
    let (mut store, space) = primary.with("orders", 5);
    let grant = take(&mut store, &space, 60);
    let old = store.check(&space, now()).unwrap().incarnation;
    let standby = primary.standby();
    let behind = standby.admin();
    let end = grant.ticks.end.to_string();
    eventually("the standby has the grant", || {
        behind.value("SELECT max(rank) FROM ringflake") == end
    });
    let mut replica = standby.store();
    for answer in answers(&mut replica, &space) {
        unavailable(answer).says("standby in recovery");
    }
    primary.kill();
    standby.promote();

    // At once, though the control file says otherwise until the next checkpoint.
    let report = replica.check(&space, now()).unwrap();
    assert!(report.history_lost(), "{report:?}");
    assert!(old.as_str().ends_with("/timeline 00000001"), "{old}");
    let new = report.incarnation;
    assert!(new.as_str().ends_with("/timeline 00000002"), "{new}");
    let fence = fenced(renew(&mut replica, &space, &grant));
    assert_eq!(fence, Fence::Incarnation);
    let floor = floor_ahead(acquire(&mut replica, &space));
    let fence = fenced(renew(&mut replica, &space, &grant));
    let known = grant.ticks.end;
    assert_eq!(fence, Fence::Floor { known, floor });
}

#[test]
fn a_dump_restored_over_the_tables_is_noticed() {
    let server = started!(Postgres::start());
    let (mut store, space) = server.with("orders", 17);
    let grant = take(&mut store, &space, 10);

    let port = server.port();
    let at = format!("host=127.0.0.1 port={port} user=app password={PASSWORD} dbname=app");
    let file = server.data().join("dump");
    let options = [("--dbname", Path::new(&at)), ("--file", &file)];
    server.run("pg_dump", &["--clean", "--table=ringflake*"], &options);
    renew(&mut store, &space, &grant).unwrap();
    server.run("psql", &["--quiet"], &options);

    // The restored mark agrees with the holder again, as before the renewal.
    let restored = mark(&mut store, &space, grant.block);
    assert_eq!(restored, Some(grant.ticks.end));
    let fence = fenced(renew(&mut store, &space, &grant));
    assert_eq!(fence, Fence::Incarnation);
}

#[test]
fn a_server_that_can_forget_is_refused() {
    let mut server = started!(Postgres::start());
    let (mut store, space) = server.with("orders", 5);
    let grant = take(&mut store, &space, 60);
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.durability, Durability::Durable);
    assert!(report.store.starts_with("PostgreSQL "), "{}", report.store);

    for setting in ["fsync", "full_page_writes"] {
        server.configure(&format!("{setting} = off"));
        server.reload(setting, "off");
        // A session that is open learns of it a moment later than a new one.
        eventually("the open session has the setting", || {
            store.check(&space, now()).is_err()
        });
        sql::to_forget_is_refused(&server, &mut store, &space, &grant, setting);
        server.configure(&format!("{setting} = on"));
        server.reload(setting, "on");
        eventually("the open session has the setting", || {
            store.check(&space, now()).is_ok()
        });
        take(&mut store, &space, 60);
    }

    // A crash would empty it.
    for statement in [
        "ALTER TABLE ringflake_ledger SET UNLOGGED",
        "ALTER TABLE ringflake SET UNLOGGED",
    ] {
        server.execute(statement);
    }
    not_durable(acquire(&mut store, &space)).says("ringflake, ringflake_ledger");
    server.stop();
}

/// Returns the result of `operation` on a server that waits for a missing standby, after the wait
/// was cancelled. The server confirms the commit then, with a mere warning.
fn with_the_wait_cancelled<T: Send>(
    server: &Postgres,
    operation: impl FnOnce(&mut dyn LeaseStore) -> T + Send,
) -> T {
    let admin = server.admin();
    thread::scope(|scope| {
        let mut store = server.store();
        let worker = scope.spawn(move || operation(&mut store));
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        eventually("the commit waits for the standby", || {
            admin.value(&format!("SELECT count(*) {waiting}")) == "1"
        });
        admin.execute(&format!("SELECT pg_cancel_backend(pid) {waiting}"));
        worker.join().unwrap()
    })
}

/// Waits until commits wait for the standby. The checkpointer decides that, and may read the
/// configuration later than a session does.
fn wait_for_synchronous_commits(server: &Postgres) {
    let admin = server.admin();
    let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually("commits wait for the standby", || {
        thread::scope(|scope| {
            let writing = scope.spawn(|| server.execute("INSERT INTO probe VALUES (1)"));
            let mut waits = false;
            eventually("the commit waits, or is done", || {
                waits = admin.value(&format!("SELECT count(*) {waiting}")) == "1";
                waits || writing.is_finished()
            });
            if waits {
                admin.execute(&format!("SELECT pg_cancel_backend(pid) {waiting}"));
            }
            writing.join().unwrap();
            waits
        })
    });
}

/// `synchronous_commit` is on whatever the role's default, so a standby that is
/// configured is waited for.
#[test]
fn a_commit_that_no_standby_has_is_in_doubt() {
    let server = started!(Postgres::start());
    let mut store = server.store();
    let space = &made(&mut store, "orders", 5);
    let grants = &several(&mut store, space, 3, 10);
    server.execute("ALTER ROLE app SET synchronous_commit = off");
    server.execute("ALTER ROLE app SET client_min_messages = error");
    server.execute("CREATE TABLE probe (number INT)");
    server.configure("synchronous_standby_names = 'nobody'");
    server.reload("synchronous_standby_names", "nobody");
    wait_for_synchronous_commits(&server);

    let acquired = with_the_wait_cancelled(&server, |store| acquire(store, space));
    ambiguous(acquired).says("synchronous replication");
    let renewed = with_the_wait_cancelled(&server, |store| renew(store, space, &grants[0]));
    ambiguous(renewed).says("synchronous replication");

    // All of several are in doubt, and are not sent again.
    let before = batches::next_transaction(&server);
    let answers = with_the_wait_cancelled(&server, |store| {
        sql::batches::renew_all(store, &sql::batches::all(space, &grants[1..]))
    });
    assert_eq!(answers.len(), 2);
    for answer in answers {
        ambiguous(answer).says("synchronous replication");
    }
    assert_eq!(batches::next_transaction(&server), before + 1);

    // So that the server can end.
    server.configure("synchronous_standby_names = ''");
    server.reload("synchronous_standby_names", "");
}

/// The server's other warnings are not taken for that one.
#[test]
fn a_trigger_that_warns_puts_nothing_in_doubt() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, space) = server.with("orders", 5);
    server.execute(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN RAISE WARNING ''somebody changes a row''; RETURN NEW; END';
         CREATE TRIGGER warn BEFORE INSERT OR UPDATE ON ringflake
         FOR EACH ROW EXECUTE FUNCTION warn()",
    );
    let grant = take(&mut store, &space, 10);
    renew(&mut store, &space, &grant).unwrap();
}

/// A trigger, a rule or a policy can drop rows without an error.
#[test]
fn what_the_database_does_not_keep_is_not_granted() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, space) = server.with("orders", 5);
    server.execute(
        "CREATE FUNCTION ignore() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    );
    for (event, table) in [
        ("INSERT", "ringflake_ledger"),
        ("INSERT", "ringflake"),
        ("UPDATE", "ringflake"),
    ] {
        server.execute(&format!(
            "CREATE TRIGGER ignore BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION ignore()"
        ));
        let answer = if event == "UPDATE" {
            let floor = Floor::Tick(tick(&space) + 1);
            store.raise_floor(&space, floor, now()).map(drop)
        } else {
            acquire(&mut store, &space).map(drop)
        };
        assert!(
            matches!(answer, Err(StoreError::Corrupt { .. })),
            "{event} {table}: {answer:?}"
        );
        server.execute(&format!("DROP TRIGGER ignore ON {table}"));
    }
    take(&mut store, &space, 10);
}

/// Whether one session of the store waits for a lock of this kind: "advisory" for that of
/// the record.
fn waits(admin: &Session, kind: &str) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringflake'
         AND wait_event_type = 'Lock' AND wait_event = ";
    admin.value(&format!("{waiting}'{kind}'")) == "1"
}

/// Nothing was compared yet, so nothing is in doubt.
#[test]
fn a_renewal_cancelled_before_it_has_the_lock_is_not_done() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let (mut store, space) = server.with("orders", 5);
    let grant = take(&mut store, &space, 10);
    // As the store has it, in a transaction that somebody left open.
    holding.execute("BEGIN; SELECT pg_advisory_xact_lock(1919315051, 471239387)");
    let outcome = thread::scope(|scope| {
        let renewing = scope.spawn(|| renew(&mut store, &space, &grant));
        eventually("the renewal waits", || waits(&admin, "advisory"));
        admin.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'",
        );
        renewing.join().unwrap()
    });
    unavailable(outcome).says("canceling statement due to user request");
    holding.execute("COMMIT");
    let end = renew(&mut store, &space, &grant).unwrap();
    assert_eq!(end, grant.ticks.end + 1);
}

/// Lists of transactions that share a row, which only vacuum clears away.
#[test]
fn renewals_make_no_multixacts() {
    const THREADS: u32 = 4;
    const ROUNDS: u64 = 25;
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let space = &made(&mut server.store(), "orders", 5);
    let mut grants = several(&mut server.store(), space, 1 + THREADS, 10);
    let slow = &grants.remove(0);
    let multixacts = || {
        admin.execute("CHECKPOINT");
        admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()")
    };
    let renew_often = |grant: &Grant| {
        let mut store = server.store();
        let mut grant = grant.clone();
        for _ in 0..ROUNDS {
            grant.ticks.end = renew(&mut store, space, &grant).unwrap();
        }
        store.release(space, grant.block, grant.epoch).unwrap();
    };

    let before = multixacts();
    // One renewal is under way all the time, with which the others would share.
    let row = server.row(space, slow.block);
    holding.execute("BEGIN");
    holding.execute(&format!("SELECT * FROM ringflake WHERE {row} FOR UPDATE"));
    thread::scope(|scope| {
        let slowly = scope.spawn(|| renew(&mut server.store(), space, slow));
        eventually("it waits for its block", || waits(&admin, "transactionid"));
        thread::scope(|scope| {
            for grant in &grants {
                scope.spawn(|| renew_often(grant));
            }
        });
        holding.execute("COMMIT");
        slowly.join().unwrap().unwrap();
    });
    assert_eq!(multixacts(), before);
    for grant in &grants {
        let kept = mark(&mut server.store(), space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + ROUNDS));
    }
}

#[derive(Debug)]
struct Counted<'a>(PostgresTable, &'a AtomicU64);

impl Table for Counted<'_> {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        self.0.read(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let commit = self.0.commit(txn, instead)?;
        let is_conflict = matches!(commit, Commit::Conflict(_));
        self.1.fetch_add(u64::from(is_conflict), Relaxed);
        Ok(commit)
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        self.0.describe()
    }
}

#[test]
fn hundreds_of_stores_get_through_at_once() {
    let stores = short_or_long(20, 200);
    let server = started!(Lent::<Postgres>::start());
    let space = made(&mut server.store(), "orders", 5);
    let (start, conflicts) = (Barrier::new(stores), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..stores {
            scope.spawn(|| {
                let store = PostgresStore::from_url(&server.url(), &OpenOptions::new());
                let table = store.unwrap().into_table();
                let mut store = Leases::over(Counted(table, &conflicts));
                start.wait();
                acquire_at_a_start(&mut store, &space);
            });
        }
    });
    let conflicts = conflicts.into_inner();
    eprintln!("{stores} stores saw {conflicts} conflicts");
    // With the same choice in each, there would be more than one for each.
    assert!(conflicts < stores as u64, "{conflicts}");
    assert!(server.store().list(&space).unwrap().blocks.len() >= stores);
}

#[test]
fn it_can_be_used_and_dropped_inside_of_a_runtime() {
    let server = started!(Lent::<Postgres>::start());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut store, space) = server.with("orders", 5);
        several(&mut store, &space, 3, 10);
    });
}

#[test]
fn tls_is_what_the_url_asks_for() {
    let mut server = started!(Postgres::start());
    let url = server.url();
    let space = made(&mut server.store(), "orders", 5);
    // Whether the session of the store is encrypted.
    let check = |server: &Postgres, query: &str| -> Result<bool, StoreError> {
        let mut store = store(&format!("{url}{query}"));
        store.check(&space, now())?;
        let encrypted = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'ringflake'";
        Ok(server.admin().values(encrypted) == ["t"])
    };
    assert!(!check(&server, "").unwrap());
    unavailable(check(&server, "?tls=required")).says("has no TLS");

    let other = ringflake_kit::server::directory();
    for directory in [&server.data(), other.path()] {
        sql::certificate(directory, "postgres");
    }
    let path = |directory: &Path| directory.join("server.crt").display().to_string();
    let (own, other) = (path(&server.data()), path(other.path()));
    server.configure("ssl = on");
    server.stop();
    server.restart();
    for (query, encrypted) in [
        ("", false),
        ("?sslmode=disable", false),
        ("?tls=off", false),
        (&format!("?sslmode=verify-full&sslrootcert={own}"), true),
        (&format!("?channel_binding=require&ca={own}"), true),
    ] {
        // Until the connection before has gone from the server's list.
        eventually(query, || check(&server, query).unwrap() == encrypted);
    }
    for (query, reason) in [
        (
            &*format!("?sslmode=verify-full&sslrootcert={other}"),
            "invalid peer certificate",
        ),
        ("?tls=required", "invalid peer certificate"),
        ("?sslmode=require", "invalid peer certificate"),
    ] {
        unavailable(check(&server, query)).says(reason);
    }
}
