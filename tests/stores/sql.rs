//! What the stores on SQL servers are put through alike. A test of each server
//! starts one and hands it over.

mod agreement;
pub(crate) mod batches;
mod replies;

use std::collections::BTreeSet;
use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::conformance::{Given, Suite};
use ringflake::lease::{
    Acquire, Block, Durability, Epoch, Fence, Fingerprint, Floor, Grant, History, Holder, Init,
    LeaseStore, Namespace, OpenError, OpenOptions, Renew, StoreError, open,
};
use ringflake::{Clock, Layout, SystemClock};

use crate::kit::{exhausted, not_initialised, not_quarantined};

pub(crate) use self::agreement::agrees_with_the_reference;
pub(crate) use self::batches::a_block_that_is_locked_holds_up_no_other;
pub(crate) use self::replies::{
    a_kill_before_the_reply_leaves_the_mark_moved, each_reply_lost_is_told_right,
    no_answer_is_waited_for_in_vain,
};
pub(crate) use ringflake_kit::events::warnings;
use ringflake_kit::server::{PASSWORD, TestServer};
use ringflake_kit::{eventually, words};

/// A server under test.
pub(crate) trait Database: TestServer {
    /// As a role that may do anything.
    fn execute(&self, sql: &str);
    /// As that role, without the constraints on blocks.
    fn damage(&self, sql: &str);
    /// Why the tables refuse this statement of that role.
    fn refusal(&self, sql: &str) -> String;
    /// How many connections stores have.
    fn sessions(&self) -> u64;
    /// One connection of that role, for statements that hold locks.
    fn holding(&self) -> Box<dyn FnMut(&str) + '_>;
    /// Whether a store waits for a lock.
    fn is_waited_for(&self) -> bool;

    /// One more connection, patient with a machine that has other things to do.
    fn store(&self) -> Box<dyn LeaseStore> {
        open(&self.url(), &patient()).unwrap()
    }
}

/// What every SQL server is asked.
macro_rules! tests_of_sql {
    ($server:ty) => {
        crate::kit::tests_on! { $server;
            idle: a_forgotten_connection_is_replaced;
            sharing:
                a_connection_that_would_be_idle_for_long_is_closed
                a_hundred_generators_are_one_connection;
            sql:
                a_block_that_is_locked_holds_up_no_other
                a_connection_that_died_while_idle_puts_nothing_in_doubt
                a_kill_before_the_reply_leaves_the_mark_moved
                a_new_incarnation_raises_the_floor_once
                a_repair_judges_what_others_left
                a_row_that_nobody_wrote_is_quarantined
                acquirers_do_not_queue
                agrees_with_the_reference
                an_outage_is_unavailable_and_over_when_it_is_over
                conforms
                each_reply_lost_is_told_right
                holders_are_kept_as_they_are
                no_answer_is_waited_for_in_vain
                no_error_shows_a_password
                one_of_many_inits_wins
                rows_are_made_up_to_a_bound
                silence_ends_with_the_time_out
                the_clock_is_read_after_the_locks
                the_tables_refuse_numbers_that_disagree
                twenty_threads_get_disjoint_rectangles;
        }
    };
}
pub(crate) use tests_of_sql;

pub(crate) fn now() -> u64 {
    SystemClock.unix_ms()
}

/// How much later than its time-out an operation may end where others compete for
/// the processors. Without a time-out it would not end at all.
pub(crate) const SLACK: Duration = Duration::from_secs(15);

pub(crate) fn patient() -> OpenOptions {
    OpenOptions::new().timeout(Duration::from_secs(60))
}

/// A namespace of 2^17 / 2^`block_bits` blocks, with ticks of a second.
pub(crate) fn space(name: &str, block_bits: u32) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(block_bits))
        .unwrap()
}

/// The same on record.
pub(crate) fn made(store: &mut dyn LeaseStore, name: &str, block_bits: u32) -> Namespace {
    let space = space(name, block_bits);
    let init = Init::new(History::New, now());
    store.init(&space, &init).unwrap();
    space
}

pub(crate) fn tick(space: &Namespace) -> u64 {
    space.layout().tick_at(now()).unwrap()
}

pub(crate) fn take(store: &mut dyn LeaseStore, space: &Namespace, length: u64) -> Grant {
    let mut grants = store
        .acquire(space, &Acquire::new(1, length, now()))
        .unwrap();
    assert_eq!(grants.len(), 1);
    grants.remove(0)
}

/// The mark of a block, as the server has it.
pub(crate) fn mark(store: &mut dyn LeaseStore, space: &Namespace, block: Block) -> Option<u64> {
    let blocks = store.list(space).unwrap().blocks;
    let found = blocks.iter().find(|known| known.block == block);
    found.map(|known| known.hwm_end)
}

/// Everything that an error shows.
pub(crate) fn all_of(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(" {inner} {inner:?}"));
        cause = inner.source();
    }
    text
}

/// What every method but `init` answers.
pub(crate) fn answers(store: &mut dyn LeaseStore, space: &Namespace) -> Vec<StoreError> {
    let grant = Grant::new(Block::new(0), Epoch::FIRST, 0..1);
    [
        store.acquire(space, &Acquire::new(1, 10, now())).err(),
        store.renew(space, &Renew::new(&grant, 2, now())).err(),
        store.release(space, grant.block, grant.epoch).err(),
        store.list(space).err(),
        store.raise_floor(space, Floor::Tick(1), now()).err(),
        store.check(space, now()).err(),
    ]
    .map(|error| error.expect("an error"))
    .into()
}

pub(crate) fn conforms(server: &dyn Database) {
    let damage = |space: &Namespace, block: Block| {
        // A mark that no layout has, or an epoch that no mark has.
        let change = match block.index() % 2 {
            0 => "hwm_end = 9000000000000000000",
            _ => "epoch = hwm_end + 7",
        };
        server.damage(&format!(
            "UPDATE ringflake_block SET {change} WHERE namespace = '{}' AND block = {block}",
            space.name()
        ));
    };
    Suite::new(&|| server.store(), &now)
        .with_damage(&damage)
        .run();
}

pub(crate) fn one_of_many_inits_wins(server: &dyn Database) {
    let space = space("orders", 5);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let init = Init::new(History::New, now());
                    server.store().init(&space, &init)
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let mut won = 0;
    for outcome in outcomes {
        match outcome {
            Ok(_) => won += 1,
            Err(StoreError::AlreadyInitialised { .. }) => {}
            Err(other) => panic!("{}", all_of(&other)),
        }
    }
    assert_eq!(won, 1);
    let most = Acquire::new(127, 10, now());
    assert_eq!(server.store().acquire(&space, &most).unwrap().len(), 127);
}

/// With the node bits of Baidu's layout there are as many blocks as there may be;
/// with one bit less a block there are too many.
pub(crate) fn rows_are_made_up_to_a_bound(server: &dyn Database) {
    let mut store = server.store();
    let layout = Layout::builder()
        .bits(32, Layout::BAIDU.node_bits(), 10)
        .epoch_unix_ms(1_700_000_000_000)
        .build()
        .unwrap();
    let most = Namespace::new("most", &layout, Fingerprint::PLAIN).unwrap();
    assert_eq!(most.blocks(), 1 << 17);
    let init = Init::new(History::New, now());
    store.init(&most, &init).unwrap();
    let grant = take(&mut *store, &most, 10);
    assert_eq!(grant.block, Block::new(0));

    let more = Namespace::new("more", &layout, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(4))
        .unwrap();
    match store.init(&more, &init).unwrap_err() {
        StoreError::Invalid { value, max, .. } => assert_eq!((value, max), (1 << 18, 1 << 17)),
        other => panic!("{other}"),
    }
    not_initialised(store.list(&more));
}

/// Twenty connections acquire, renew and release what they like, on few blocks.
pub(crate) fn twenty_threads_get_disjoint_rectangles(server: &dyn Database) {
    let space = made(&mut *server.store(), "orders", 12);
    assert_eq!(space.blocks(), 32);
    let work = |worker: u64| {
        let mut store = server.store();
        let mut given = Vec::new();
        for round in 0..15 {
            let ask = Acquire::new(1 + (worker % 3) as u32, 2 + round % 3, now());
            let grants = match store.acquire(&space, &ask) {
                Ok(grants) => grants,
                Err(StoreError::Exhausted { .. }) => continue,
                Err(other) => panic!("{}", all_of(&other)),
            };
            for grant in grants {
                let renew = Renew::new(&grant, grant.ticks.end + 1, now());
                let end = store.renew(&space, &renew).unwrap();
                store.release(&space, grant.block, grant.epoch).unwrap();
                given.push((grant, end));
            }
        }
        given
    };
    let all: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..20).map(|w| scope.spawn(move || work(w))).collect();
        let joined = workers.into_iter().map(|w| w.join().unwrap());
        joined.flatten().collect()
    });
    let mut given = Given::default();
    for (grant, end) in &all {
        given.add(grant);
        given.extend(grant, *end);
    }
    assert!(all.len() >= 300, "only {} grants", all.len());
    let blocks = server.store().list(&space).unwrap().blocks;
    assert_eq!(blocks.len(), 32);
    for known in blocks {
        assert_eq!(known.hwm_end, given.mark(known.block));
    }
}

pub(crate) fn a_new_incarnation_raises_the_floor_once(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grant = take(&mut *store, &space, 2);
    server.execute("UPDATE ringflake_namespace SET incarnation = 'another'");

    assert!(store.check(&space, now()).unwrap().history_lost());
    let renew = Renew::new(&grant, grant.ticks.end + 1, now());
    let fence = |result: Result<u64, StoreError>| match result {
        Err(StoreError::Fenced { fence, .. }) => fence,
        other => panic!("{other:?}"),
    };
    assert_eq!(fence(store.renew(&space, &renew)), Fence::Incarnation);
    let mut other = renew.clone();
    other.block = Block::new(9);
    for answer in store.renew_all(&[(&space, &renew), (&space, &other)]) {
        assert_eq!(fence(answer), Fence::Incarnation);
    }

    // All see it at once. Each would raise the floor, and those that were late
    // would raise it further.
    let before = tick(&space);
    let floors: BTreeSet<u64> = thread::scope(|scope| {
        let ask = || match server.store().acquire(&space, &Acquire::new(1, 2, now())) {
            Err(StoreError::FloorAhead { floor, .. }) => floor,
            other => panic!("{other:?}"),
        };
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let [floor]: [u64; 1] = Vec::from_iter(floors).try_into().unwrap();
    let over = 660 + 60 + 1;
    let expected = before + over..=tick(&space) + over;
    assert!(expected.contains(&floor), "{floor}, not {expected:?}");

    // It was kept, though nothing was granted.
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.record.floor, floor);
    assert!(!report.history_lost());
    let known = grant.ticks.end;
    assert_eq!(
        fence(store.renew(&space, &renew)),
        Fence::Floor { known, floor }
    );
}

/// A server that is not there, comes, goes and comes back.
pub(crate) fn an_outage_is_unavailable_and_over_when_it_is_over(server: &mut dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let mut grant = take(&mut *store, &space, 60);
    for crash in [false, true] {
        if crash {
            server.kill();
        } else {
            server.stop();
        }
        // Idle for long enough to be tried first, so that nothing is in doubt.
        thread::sleep(Duration::from_millis(1100));
        for error in answers(&mut *store, &space) {
            assert!(
                matches!(error, StoreError::Unavailable { .. }),
                "{}",
                all_of(&error)
            );
        }
        server.restart();
        let renew = Renew::new(&grant, grant.ticks.end + 1, now());
        grant.ticks.end = store.renew(&space, &renew).unwrap();
    }
}

/// A restart that the store sleeps through.
pub(crate) fn a_connection_that_died_while_idle_puts_nothing_in_doubt(server: &mut dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grant = take(&mut *store, &space, 60);
    server.kill();
    server.restart();
    thread::sleep(Duration::from_millis(1100));
    let renew = Renew::new(&grant, grant.ticks.end + 1, now());
    assert_eq!(store.renew(&space, &renew).unwrap(), grant.ticks.end + 1);
}

/// A peer that takes the connection and never says a word.
pub(crate) fn silence_ends_with_the_time_out(server: &dyn Database) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let timeout = Duration::from_millis(300);
    let options = OpenOptions::new().timeout(timeout);
    let mut store = open(&server.url_through(port), &options).unwrap();
    let began = Instant::now();
    crate::kit::unavailable(store.list(&space("orders", 5)));
    assert!(began.elapsed() < timeout + SLACK);
}

pub(crate) fn no_error_shows_a_password(server: &dyn Database) {
    let password = PASSWORD;
    let wrong = format!("{password}-wrong");
    let space = space("orders", 5);
    let mut store = open(&server.url().replace(password, &wrong), &patient()).unwrap();
    for error in answers(&mut *store, &space) {
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let text = all_of(&error);
        assert!(!text.contains(password), "{text}");
    }
    assert!(!format!("{store:?}").contains(password), "{store:?}");

    let mut store = server.store();
    let made = made(&mut *store, "orders", 5);
    let report = store.check(&made, now()).unwrap();
    let shown = format!("{store:?} {report:?}");
    assert!(!shown.contains(password), "{shown}");
}

/// `damages` are statements, each of which leaves something that no version of
/// this crate writes.
pub(crate) fn what_nobody_wrote_is_corrupt(server: &dyn Database, damages: &[&str]) {
    for damage in damages {
        let mut store = server.store();
        let name = format!(
            "space-{}",
            damages.iter().position(|d| d == damage).unwrap()
        );
        let space = made(&mut *store, &name, 5);
        take(&mut *store, &space, 60);
        server.execute(&damage.replace("{name}", &name));
        let error = store.list(&space).unwrap_err();
        assert!(
            matches!(error, StoreError::Corrupt { .. }),
            "{damage}: {error}"
        );
        let error = store
            .acquire(&space, &Acquire::new(127, 60, now()))
            .unwrap_err();
        let refused = matches!(
            error,
            StoreError::Corrupt { .. } | StoreError::Exhausted { .. }
        );
        assert!(refused, "{damage}: {error}");
    }
}

#[track_caller]
pub(crate) fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>, why: &str) {
    let text = crate::kit::unavailable(result);
    assert!(text.contains(why), "{text}");
}

pub(crate) fn the_tables_refuse_numbers_that_disagree(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    take(&mut *store, &space, 60);
    for change in [
        "epoch = hwm_end + 1",
        "epoch = 0",
        "hwm_end = -5",
        "epoch = -1",
    ] {
        let sql = format!("UPDATE ringflake_block SET {change} WHERE block = 0");
        let error = server.refusal(&sql);
        // The name of a constraint of that table.
        assert!(error.contains("ringflake_block_"), "{change}: {error}");
    }
}

/// Each scheme opens a store on that port, which shows no password.
pub(crate) fn the_schemes_open_it(schemes: [&str; 2], port: u16) {
    let options = OpenOptions::new();
    for scheme in schemes {
        let store = open(&format!("{scheme}://me:hunter2@example.com/app"), &options).unwrap();
        let shown = format!("{store:?}");
        let place = format!("app at example.com:{port}");
        assert!(shown.contains(&place), "{shown}");
        let tells = shown.contains("hunter2") || shown.contains("me:");
        assert!(!tells, "{shown}");
        let unknown = format!("{scheme}://me:hunter2@h/app?ssl=1");
        let error = open(&unknown, &options).unwrap_err();
        assert!(matches!(error, OpenError::Invalid { .. }), "{error}");
    }
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
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
}

/// Of numbers in the row of a block.
const DAMAGES: &[&str] = &[
    "hwm_end = 9000000000000000000",
    "hwm_end = -5",
    "hwm_end = 0",
    "epoch = -1",
    "epoch = 0",
    "epoch = hwm_end + 1",
];

/// [`DAMAGES`] change the row of a block to what no version of this crate writes.
pub(crate) fn a_row_that_nobody_wrote_is_quarantined(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    for change in DAMAGES {
        let grant = take(&mut *store, &space, 60);
        let block = grant.block;
        server.damage(&format!(
            "UPDATE ringflake_block SET {change} WHERE namespace = 'orders' AND block = {block}"
        ));
        // Whether they come first among the candidates or last.
        let more = store.acquire(&space, &Acquire::new(127, 1, now())).unwrap();
        assert_eq!(more.len(), 127, "{change}");
        assert!(more.iter().all(|more| more.block != block), "{change}");
        let listing = store.list(&space).unwrap();
        let [found] = &listing.quarantined[..] else {
            panic!("{change}: {:?}", listing.quarantined);
        };
        assert_eq!(found.block, Some(block), "{change}");
        let report = store.check(&space, now()).unwrap();
        assert_eq!(&report.quarantined, &listing.quarantined, "{change}");
        let repaired = store.repair(&space, block, now()).unwrap();
        assert!(repaired.hwm_end > grant.ticks.end, "{change}");
        assert!(store.list(&space).unwrap().quarantined.is_empty());
    }
}

/// A row that is locked is judged once it is had.
pub(crate) fn a_repair_judges_what_others_left(server: &dyn Database) {
    let mut run = server.holding();
    let is_waited_for = || server.is_waited_for();
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grant = take(&mut *store, &space, 60);
    let update = |mark: u64| {
        format!(
            "UPDATE ringflake_block SET hwm_end = {mark} WHERE namespace = 'orders' AND block = 0"
        )
    };
    server.damage(&update(9_000_000_000_000_000_000));
    run("BEGIN");
    run(&update(grant.ticks.end));
    thread::scope(|scope| {
        let repairing = scope.spawn(|| store.repair(&space, grant.block, now()));
        eventually("the repair waits for the row", is_waited_for);
        run("COMMIT");
        not_quarantined(repairing.join().unwrap());
    });
    assert_eq!(
        mark(&mut *server.store(), &space, grant.block),
        Some(grant.ticks.end)
    );
}

/// The clock that counts is read once the locks are held. `lock` and `unlock`
/// are statements of one connection that hold the record meanwhile.
pub(crate) fn the_clock_is_read_after_the_locks(server: &dyn Database) {
    let mut lock = server.holding();
    let is_waited_for = || server.is_waited_for();
    // A tick of 10 ms, of which the wait below takes some.
    let layout = Layout::builder()
        .bits(36, 10, 12)
        .tick(Duration::from_millis(10))
        .epoch_unix_ms(1_700_000_000_000)
        .build()
        .unwrap();
    let space = Namespace::new("ticking", &layout, Fingerprint::PLAIN).unwrap();
    let mut store = server.store();
    let init = Init::new(History::New, now());
    store.init(&space, &init).unwrap();

    lock("BEGIN");
    lock("SELECT * FROM ringflake_namespace FOR UPDATE");
    let grant = thread::scope(|scope| {
        let worker = scope.spawn(|| store.acquire(&space, &Acquire::new(1, 10, now())));
        eventually("the acquisition waits", is_waited_for);
        let waiting = now();
        while now() < waiting + 100 {
            thread::yield_now();
        }
        let released = layout.tick_at(now()).unwrap();
        lock("ROLLBACK");
        let grants = worker.join().unwrap().unwrap();
        assert!(
            grants[0].ticks.start >= released,
            "{} begins before {released}, when the record was free",
            grants[0]
        );
        grants
    });
    assert_eq!(grant.len(), 1);
}

/// Locks of others are skipped, and waited for only where nothing else is left.
pub(crate) fn acquirers_do_not_queue(server: &dyn Database) {
    let mut lock = server.holding();
    let is_waited_for = || server.is_waited_for();
    let mut store = server.store();
    let many = made(&mut *store, "many", 5);
    let only = made(&mut *store, "only", 17);

    lock("BEGIN");
    lock(
        "SELECT * FROM ringflake_block WHERE namespace = 'many' AND block IN (0, 1, 2) FOR UPDATE",
    );
    let grants = store.acquire(&many, &Acquire::new(2, 10, now())).unwrap();
    let blocks: Vec<_> = grants.iter().map(|grant| grant.block.index()).collect();
    assert_eq!(blocks, [3, 4]);
    lock("ROLLBACK");

    // Somebody who has the only block under lock need not take it in the end.
    lock("BEGIN");
    lock("SELECT * FROM ringflake_block WHERE namespace = 'only' FOR UPDATE");
    thread::scope(|scope| {
        let worker = scope.spawn(|| store.acquire(&only, &Acquire::new(1, 10, now())));
        eventually("the acquisition waits", is_waited_for);
        lock("ROLLBACK");
        assert_eq!(worker.join().unwrap().unwrap()[0].block, Block::new(0));
    });

    // And if he does take it, that is exhaustion.
    exhausted(store.acquire(&only, &Acquire::new(1, 10, now())));
}

/// A transaction that the server sacrifices to another one is repeated. The other
/// one takes its locks the wrong way round, as no store does: a block's and then, by
/// `hold_record`, what keeps the record of "orders" to itself.
pub(crate) fn a_deadlock_is_repeated(
    server: &dyn Database,
    lock: &mut dyn FnMut(&str),
    hold_record: &str,
) {
    let is_waited_for = || server.is_waited_for();
    let mut store = server.store();
    let space = made(&mut *store, "orders", 12);
    let grant = take(&mut *store, &space, 10);
    lock("BEGIN");
    lock("UPDATE ringflake_block SET granted_unix_ms = 7");
    thread::scope(|scope| {
        let renew = Renew::new(&grant, grant.ticks.end + 1, now());
        let (store, space) = (&mut store, &space);
        let worker = scope.spawn(move || store.renew(space, &renew));
        eventually("the renewal waits", is_waited_for);
        lock(hold_record);
        lock("COMMIT");
        assert_eq!(worker.join().unwrap().unwrap(), grant.ticks.end + 1);
    });
    assert_eq!(
        mark(&mut *store, &space, grant.block),
        Some(grant.ticks.end + 1)
    );
}

/// What somebody accepted for `setting` is done, reported, and said once for each
/// connection.
pub(crate) fn best_effort_is_said_once_a_connection(
    server: &dyn Database,
    space: &Namespace,
    setting: &str,
) {
    let options = patient().accept_best_effort(true);
    let mut store = open(&server.url(), &options).unwrap();
    let heard = warnings(|| {
        let grant = take(&mut *store, space, 60);
        let renew = Renew::new(&grant, grant.ticks.end + 1, now());
        store.renew(space, &renew).unwrap();
        match store.check(space, now()).unwrap().durability {
            Durability::BestEffort { reason } => assert!(reason.contains(setting), "{reason}"),
            other => panic!("{other}"),
        }
    });
    let [line]: [String; 1] = heard.try_into().unwrap();
    assert!(
        line.contains("store not durable") && line.contains(setting),
        "{line}"
    );
    let mut another = open(&server.url(), &options).unwrap();
    assert_eq!(warnings(|| drop(another.list(space).unwrap())).len(), 1);
}

/// What is kept of a holder comes back, and a name that looks like SQL is a name.
pub(crate) fn holders_are_kept_as_they_are(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    for (host, instance) in [
        ("host-1", "4711"),
        ("", ""),
        ("Robert'); DROP TABLE ringflake_block; --", "\\\"'%_`"),
        ("数据库-ö-🦀", "\u{1}"),
    ] {
        let holder = Holder::new(host, instance);
        let ask = Acquire::new(1, 10, now()).held_by(holder.clone());
        let grant = store.acquire(&space, &ask).unwrap().remove(0);
        let blocks = store.list(&space).unwrap().blocks;
        let known = blocks.iter().find(|known| known.block == grant.block);
        assert_eq!(known.unwrap().holder, Some(holder));
    }
}
