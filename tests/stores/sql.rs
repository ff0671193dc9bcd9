//! Tests of the stores on SQL servers. A test of each server starts one and passes it in.

pub(crate) mod batches;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Block, Durability, Grant, History, Holder, Init, LeaseStore, MAX_ACQUIRE, Namespace, open,
};

use crate::kit::{
    acquire, already_initialised, answers, ask, begin, corrupt, denied, fenced, limits, longer,
    made, not_durable, not_initialised, now, renew, several, space, take, unavailable,
};
use crate::served::{Served, patient, store};
use ringflake_kit::events::warnings;
use ringflake_kit::server::PASSWORD;
use ringflake_kit::{assert_says, eventually, printed, words};

pub(crate) trait Database: Served {
    /// Runs a statement as a role that may do anything.
    fn execute(&self, sql: &str);
    fn sessions(&self) -> u64;
    /// The first column of what a query of that role returns.
    fn values(&self, sql: &str) -> Vec<String>;
    fn key_column(&self) -> &'static str;

    fn row(&self, space: &Namespace, block: Block) -> String {
        let (column, name) = (self.key_column(), space.name());
        format!("{column} = '{name}/block/{:020}'", block.index())
    }

    fn change_record(&self, name: &str, from: &str, to: &str) {
        let column = self.key_column();
        self.execute(&format!(
            "UPDATE ringflake SET value = REPLACE(value, '{from}', '{to}')
            WHERE {column} = '{name}/record'"
        ));
    }
}

macro_rules! tests_of_sql {
    ($server:ty, $store:ty) => {
        impl crate::served::Served for $server {
            fn table(&self) -> Box<dyn ringflake::lease::table::Table> {
                let store = <$store>::from_url(&self.url(), &crate::served::patient());
                Box::new(store.unwrap().into_table())
            }

            fn lose(&self, name: &str) {
                let column = self.key_column();
                self.execute(&format!(
                    "DELETE FROM ringflake WHERE {column} = '{name}/record'"
                ));
            }

            fn is_done(&self) -> bool {
                self.sessions() == 1
            }

            fn has_transactions(&self) -> bool {
                true
            }
        }

        crate::served::tests_of_servers!($server);
        crate::kit::tests_on! { $server;
            served: a_connection_that_would_be_idle_for_long_is_closed;
            sql:
                a_dropped_or_emptied_table_is_not_initialised
                a_table_in_the_place_of_the_view_is_named
                a_table_of_another_shape_is_corrupt
                an_outage_is_unavailable_and_over_when_it_is_over
                no_error_shows_a_password
                one_of_many_inits_wins;
        }
    };
}
pub(crate) use tests_of_sql;

pub(crate) fn a_table_of_another_shape_is_corrupt(server: &dyn Database) {
    let (mut store, space) = server.with("orders", 5);
    server.execute("ALTER TABLE ringflake RENAME COLUMN value TO content");
    corrupt(store.list(&space));
    corrupt(acquire(&mut store, &space));
}

pub(crate) fn a_table_in_the_place_of_the_view_is_named(server: &dyn Database) {
    server.execute("CREATE TABLE ringflake_block (block BIGINT)");
    let outcome = server.store().init(&space("orders"), &begin());
    corrupt(outcome).says("ringflake_block is a table, and its name is needed for a view");
}

/// The view has a row of each block, and one with these values hides no other.
pub(crate) fn the_view_shows_blocks_to_people(server: &dyn Database, damaged: &[&str]) {
    let (mut store, space) = server.with("orders", 5);
    let ask = ask(1, 60).held_by(Holder::new("host \"1\"", "ö"));
    let grant = store.acquire(&space, &ask).unwrap().remove(0);
    let blocks = || {
        server.values(
            "SELECT concat_ws('|', namespace, block, epoch, hwm_end, start, released,
                granted_unix_ms > 0, holder_host, holder_instance) FROM ringflake_block",
        )
    };
    let (block, ticks) = (grant.block, &grant.ticks);
    let truths = server
        .values("SELECT concat_ws('|', 1 = 0, 1 = 1)")
        .remove(0);
    let (start, end) = (ticks.start, ticks.end);
    let expected = format!("orders|{block}|1|{end}|{start}|{truths}|host \"1\"|ö");
    assert_eq!(blocks(), [expected]);
    take(&mut store, &space, 60);
    for value in damaged {
        let row = server.row(&space, block);
        server.execute(&format!(
            "UPDATE ringflake SET value = '{value}' WHERE {row}"
        ));
        let blocks = blocks();
        assert_eq!(blocks.len(), 2, "{blocks:?}");
        assert!(blocks.contains(&format!("orders|{block}")), "{blocks:?}");
    }
}

/// After `DROP TABLE` or `TRUNCATE` nothing is initialised, and a namespace of unknown history
/// starts above its former grants.
pub(crate) fn a_dropped_or_emptied_table_is_not_initialised(server: &dyn Database) {
    let mut store = server.store();
    // One block, so that its first epochs come again.
    let space = made(&mut store, "orders", 17);
    for statement in ["DROP TABLE ringflake CASCADE", "TRUNCATE TABLE ringflake"] {
        let lost = take(&mut store, &space, 300);
        server.execute(statement);
        not_initialised(store.list(&space));
        not_initialised(acquire(&mut store, &space));
        not_initialised(store.check(&space, now()));
        not_initialised(renew(&mut server.store(), &space, &lost));
        let init = Init::new(History::Unknown, now()).with_limits(limits());
        let record = store.init(&space, &init).unwrap();
        assert!(lost.ticks.end < record.floor);
        fenced(renew(&mut store, &space, &lost));
        // So that it grants again at once.
        server.change_record(
            "orders",
            &format!("\"floor\":{}", record.floor),
            &format!("\"floor\":{}", lost.ticks.end),
        );
        let grant = take(&mut store, &space, 10);
        assert!(grant.ticks.start >= lost.ticks.end);
        assert_eq!(grant.epoch.get(), 1);
        store.release(&space, grant.block, grant.epoch).unwrap();
    }
}

pub(crate) fn one_of_many_inits_wins(server: &dyn Database) {
    let space = space("orders");
    let outcomes: Vec<_> = thread::scope(|scope| {
        let ask = || server.store().init(&space, &begin());
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for outcome in lost {
        already_initialised(outcome);
    }
    several(&mut server.store(), &space, MAX_ACQUIRE, 10);
}

/// A server that is not there, comes, goes and comes back.
pub(crate) fn an_outage_is_unavailable_and_over_when_it_is_over(server: &mut dyn Database) {
    /// After this a store tries a connection before it uses it, so that nothing is in doubt.
    const IDLE: Duration = Duration::from_secs(1);
    let wait_since = |used: Instant| {
        eventually("nobody has used the connection for long", || {
            used.elapsed() > IDLE
        });
    };
    let (mut store, space) = server.with("orders", 5);
    let mut grant = take(&mut store, &space, 60);
    let mut used = Instant::now();
    for crash in [false, true] {
        if crash {
            server.kill();
        } else {
            server.stop();
        }
        wait_since(used);
        for answer in answers(&mut store, &space) {
            unavailable(answer);
        }
        server.restart();
        grant.ticks.end = renew(&mut store, &space, &grant).unwrap();
        used = Instant::now();
    }
    // A restart that the store sleeps through.
    server.kill();
    server.restart();
    wait_since(used);
    renew(&mut store, &space, &grant).unwrap();
}

pub(crate) fn no_error_shows_a_password(server: &dyn Database) {
    let wrong = format!("{PASSWORD}-wrong");
    let mut stranger = store(&server.url().replace(PASSWORD, &wrong));
    for answer in answers(&mut stranger, &space("orders")) {
        denied(answer).hides(PASSWORD);
    }
    let (mut store, space) = server.with("orders", 5);
    let report = store.check(&space, now()).unwrap();
    let shown = format!("{stranger:?} {store:?} {report:?}");
    assert!(!shown.contains(PASSWORD), "{shown}");
}

/// A key and a certificate for 127.0.0.1 that signs itself, for a server of this user.
pub(crate) fn certificate(directory: &Path, user: &str) {
    let mut command = Command::new("openssl");
    command.current_dir(directory).args(words(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test \
         -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
         -keyout server.key -out server.crt",
    ));
    ringflake_kit::server::as_user(&mut command, user);
    printed(&mut command);
}

/// While `setting` lets the server forget, nothing is done, on the connection that was good
/// a moment ago and on a new one. What somebody accepts is done and reported, and this process
/// logs it once for each store.
pub(crate) fn to_forget_is_refused(
    server: &dyn Database,
    good: &mut dyn LeaseStore,
    space: &Namespace,
    grant: &Grant,
    setting: &str,
) {
    let mut other = longer(grant);
    other.block = Block::new(9);
    for store in [good, &mut server.store()] {
        not_durable(acquire(store, space)).says(setting);
        not_durable(renew(store, space, grant)).says(setting);
        let both = [(space, &longer(grant)), (space, &other)];
        for answer in store.renew_all(&both) {
            not_durable(answer).says(setting);
        }
        not_durable(store.check(space, now())).says(setting);
    }
    let options = patient().accept_best_effort(true);
    let mut store = open(&server.url(), &options).unwrap();
    let logged = warnings(|| {
        let grant = take(&mut store, space, 60);
        renew(&mut store, space, &grant).unwrap();
        match store.check(space, now()).unwrap().durability {
            Durability::BestEffort { reason } => assert_says(&reason, &[setting]),
            other => panic!("{other}"),
        }
    });
    let [line]: [String; 1] = logged.try_into().unwrap();
    assert_says(&line, &["store not durable", setting]);
    let mut another = open(&server.url(), &options).unwrap();
    assert_eq!(warnings(|| drop(another.list(space).unwrap())), [""; 0]);
}
