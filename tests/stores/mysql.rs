//! MariaDB, which stands for MySQL too.

use std::thread;

use mysql::prelude::Queryable;
use ringflake::lease::{Durability, Fence, Floor, LeaseStore as _, MysqlStore};

use crate::kit::{
    acquire, answers, copied, denied, fenced, floor_ahead, made, mark, not_durable, now, renew,
    several, take, unavailable,
};
use crate::served::{self, Served as _, store};
use crate::sql::{self, Database, batches};
use ringflake_kit::server::{Lent, MariaDb, TestServer as _};
use ringflake_kit::{eventually, words};

impl Database for MariaDb {
    fn execute(&self, sql: &str) {
        if let Err(error) = self.admin().query_drop(sql) {
            panic!("{sql}: {error}");
        }
    }

    fn sessions(&self) -> u64 {
        let all = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        self.admin().query_first(all).unwrap().unwrap()
    }

    fn values(&self, sql: &str) -> Vec<String> {
        self.admin().query(sql).unwrap()
    }

    fn key_column(&self) -> &'static str {
        "`key`"
    }
}

fn status(server: &MariaDb, variable: &str) -> u64 {
    let sql = format!("SHOW GLOBAL STATUS LIKE '{variable}'");
    let row: Option<(String, u64)> = server.admin().query_first(sql).unwrap();
    row.unwrap().1
}

sql::tests_of_sql!(MariaDb, MysqlStore);

#[test]
fn the_view_shows_blocks_to_people() {
    let server = started!(Lent::<MariaDb>::start());
    sql::the_view_shows_blocks_to_people(&*server, &["{", "", "[]"]);
}

/// With every default turned against the store that a session can turn back.
#[test]
fn conforms_whatever_the_defaults() {
    let server = started!(MariaDb::start_with(&words(
        "--autocommit=0 \
         --sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE \
         --transaction-isolation=SERIALIZABLE --transaction-read-only \
         --default-time-zone=+05:30 --default-storage-engine=MyISAM \
         --character-set-server=latin1 --log-bin --sync-binlog=1",
    )));
    served::conforms(&server);
}

#[test]
fn init_brings_back_what_is_missing() {
    let server = started!(Lent::<MariaDb>::start());
    let (mut store, space) = server.with("orders", 5);
    for (index, statement) in [
        "DROP VIEW ringflake_block",
        "DROP INDEX ringflake_rank ON ringflake",
    ]
    .into_iter()
    .enumerate()
    {
        server.execute(statement);
        made(&mut store, &format!("more-{index}"), 5);
        take(&mut store, &space, 10);
        let shown = "SELECT COUNT(*) FROM ringflake_block WHERE namespace = 'orders'";
        assert_eq!(server.admin().query_first(shown).unwrap(), Some(index + 1));
        let index = "SELECT COUNT(*) FROM information_schema.STATISTICS
            WHERE TABLE_SCHEMA = 'app' AND INDEX_NAME = 'ringflake_rank'";
        assert_eq!(server.admin().query_first(index).unwrap(), Some(2));
    }
}

#[test]
fn renewals_of_the_same_blocks_share_what_is_added() {
    let server = started!(Lent::<MariaDb>::start());
    batches::renewals_of_the_same_blocks_share_what_is_added(&*server);
}

/// The server rolls back the transaction that has written less, and the store repeats it. The
/// other one takes its locks in the wrong order: those of the blocks, and then the record's.
#[test]
fn a_deadlock_is_repeated() {
    let server = started!(Lent::<MariaDb>::start());
    let mut other = server.admin();
    let mut lock = |sql| other.query_drop(sql).unwrap();
    let (mut store, space) = server.with("orders", 12);
    several(&mut store, &space, 20, 10);
    let grant = take(&mut store, &space, 10);
    lock("BEGIN");
    lock("UPDATE ringflake SET `rank` = `rank` + 1 WHERE `rank` IS NOT NULL");
    thread::scope(|scope| {
        let worker = scope.spawn(|| renew(&mut store, &space, &grant));
        // (The list of transactions is a copy, and not renewed for those who ask often.)
        eventually("the renewal waits", || {
            status(&server, "Innodb_row_lock_current_waits") > 0
        });
        lock("SELECT * FROM ringflake WHERE `key` = 'orders/record' FOR UPDATE");
        lock("COMMIT");
        assert_eq!(worker.join().unwrap().unwrap(), grant.ticks.end + 1);
    });
    let kept = mark(&mut store, &space, grant.block);
    assert_eq!(kept, Some(grant.ticks.end + 1));
}

#[test]
fn a_server_with_another_identity_raises_the_floor() {
    let mut server = started!(MariaDb::start_with(&["--server-id=1"]));
    let (mut store, space) = server.with("orders", 5);
    let mut grant = take(&mut store, &space, 3);

    // The same server as before.
    server.kill();
    server.restart();
    let mut store = server.store();
    grant.ticks.end = renew(&mut store, &space, &grant).unwrap();

    // A copy of it, as far as anybody can see.
    server.stop();
    server.configure(&["--server-id=2"]);
    server.restart();
    let mut store = server.store();
    assert!(store.check(&space, now()).unwrap().history_lost());
    let fence = fenced(renew(&mut store, &space, &grant));
    assert_eq!(fence, Fence::Incarnation);
    floor_ahead(acquire(&mut store, &space));
}

#[test]
fn a_copy_in_another_database_grants_nothing_until_it_is_adopted() {
    let server = started!(MariaDb::start());
    let space = made(&mut server.store(), "orders", 5);
    let grant = take(&mut server.store(), &space, 10);
    for sql in [
        "CREATE DATABASE copy",
        "CREATE TABLE copy.ringflake LIKE app.ringflake",
        "INSERT INTO copy.ringflake SELECT * FROM app.ringflake",
        "GRANT ALL ON copy.* TO 'app'@'%'",
    ] {
        server.execute(sql);
    }
    let mut copy = store(&format!(
        "{}/copy",
        server.url().strip_suffix("/app").unwrap()
    ));
    assert!(copy.check(&space, now()).unwrap().is_copy);
    copied(acquire(&mut copy, &space));
    let fence = fenced(renew(&mut copy, &space, &grant));
    assert_eq!(fence, Fence::Incarnation);
    take(&mut server.store(), &space, 10);
    copy.raise_floor(&space, Floor::OverLostGrants, now())
        .unwrap();
    assert!(!copy.check(&space, now()).unwrap().is_copy);
    floor_ahead(acquire(&mut copy, &space));
}

/// As one is that was demoted: another server may grant already.
#[test]
fn a_right_to_write_to_read_only_servers_is_not_used() {
    let server = started!(MariaDb::start());
    server.execute("GRANT READ ONLY ADMIN ON *.* TO app");
    let (mut store, space) = server.with("orders", 5);
    let mut grant = take(&mut store, &space, 60);
    grant.ticks.end = renew(&mut store, &space, &grant).unwrap();
    server.execute("SET GLOBAL read_only = 1");
    unavailable(renew(&mut store, &space, &grant)).says("read-only");
    server.execute("SET GLOBAL read_only = 0");
    renew(&mut store, &space, &grant).unwrap();
}

#[test]
fn a_server_that_can_forget_is_refused() {
    let mut server = started!(MariaDb::start_with(&["--log-bin", "--sync-binlog=1"]));
    let (mut store, space) = server.with("orders", 5);
    let grant = take(&mut store, &space, 60);
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.durability, Durability::Durable);
    assert!(report.store.starts_with("MariaDB 1"), "{}", report.store);

    for (setting, bad) in [("innodb_flush_log_at_trx_commit", 2), ("sync_binlog", 0)] {
        server.execute(&format!("SET GLOBAL {setting} = {bad}"));
        sql::to_forget_is_refused(&server, &mut store, &space, &grant, setting);
        server.execute(&format!("SET GLOBAL {setting} = 1"));
        take(&mut store, &space, 60);
    }

    // Of new sessions: nothing can be written, and a test write finds out.
    server.execute("SET GLOBAL binlog_format = STATEMENT");
    let mut new = server.store();
    new.check(&space, now()).unwrap();
    unavailable(acquire(&mut new, &space)).says("BINLOG_FORMAT");
    unavailable(new.write_test(&space, now())).says("BINLOG_FORMAT");
    server.execute("SET GLOBAL binlog_format = MIXED");

    server.execute("SET GLOBAL read_only = 1");
    for answer in answers(&mut store, &space) {
        unavailable(answer).says("read-only");
    }
    server.execute("SET GLOBAL read_only = 0");

    server.execute("ALTER TABLE ringflake ENGINE = Aria");
    not_durable(server.store().list(&space)).says("ringflake (Aria)");

    for (option, setting) in [
        ("--skip-innodb-doublewrite", "innodb_doublewrite"),
        ("--innodb-flush-method=nosync", "innodb_flush_method"),
    ] {
        server.stop();
        server.configure(&[option]);
        server.restart();
        not_durable(server.store().list(&space)).says(setting);
    }
}

#[test]
fn tls_is_what_the_url_asks_for() {
    let mut server = started!(MariaDb::start());
    let url = server.url();
    let space = made(&mut server.store(), "orders", 5);
    let list = |url: &str| store(url).list(&space).map(drop);
    let check = |query: &str| list(&format!("{url}{query}"));
    unavailable(check("?tls=required")).says("has no TLS");

    let directory = ringflake_kit::server::directory();
    sql::certificate(directory.path(), "mysql");
    let own = directory.path().join("server.crt").display().to_string();
    server.stop();
    let key = directory.path().join("server.key").display().to_string();
    server.configure(&[&format!("--ssl-cert={own}"), &format!("--ssl-key={key}")]);
    server.restart();
    server.execute("ALTER USER app@'%' REQUIRE SSL");

    denied(check("")).says("Access denied");
    check(&format!("?ca={own}")).unwrap();
    unavailable(check("?tls=required")).says("invalid peer certificate");
    let by_name = format!("{}?ca={own}", url.replace("127.0.0.1", "localhost"));
    unavailable(list(&by_name)).says("not valid for name");
}

#[test]
fn renewals_of_many_namespaces_are_one_transaction() {
    let server = started!(Lent::<MariaDb>::start());
    let counts = || {
        ["Com_commit", "Com_update"]
            .map(|count| status(&server, count))
            .to_vec()
    };
    batches::renewals_of_many_namespaces_are_one_transaction(&*server, counts);
}
