//! What the stores on SQL servers are put through besides. A test of each server
//! starts one and hands it over.

mod agreement;
pub(crate) mod batches;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::conformance::Suite;
use ringflake::lease::{
    Block, Durability, Fence, Fingerprint, Grant, Holder, LeaseStore, MAX_ACQUIRE, Namespace,
    OpenError, OpenOptions, StoreError, open,
};
use ringflake::{Layout, LayoutBuilder};

pub(crate) use self::agreement::agrees_with_the_reference;
pub(crate) use self::batches::a_block_that_is_locked_holds_up_no_other;
use crate::kit::{
    Shown, acquire, already_initialised, ambiguous, answers, ask, begin, denied, exhausted, fenced,
    floor_ahead, init, invalid, longer, made, mark, not_durable, not_initialised, not_quarantined,
    now, renew, several, space, take, tick, unavailable,
};
use crate::served::{Served, patient, store};
use ringflake_kit::events::warnings;
use ringflake_kit::proxy::{Fault, Proxy, Then};
use ringflake_kit::server::{PASSWORD, TestServer};
use ringflake_kit::{assert_says, eventually, words};

/// A server under test.
pub(crate) trait Database: TestServer + Served {
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
}

impl<D: Database> Served for D {
    fn is_done(&self) -> bool {
        self.sessions() == 1
    }

    fn has_transactions(&self) -> bool {
        true
    }
}

/// What every SQL server is asked.
macro_rules! tests_of_sql {
    ($server:ty) => {
        crate::served::tests_of_servers!($server);
        crate::kit::tests_on! { $server;
            served: a_connection_that_would_be_idle_for_long_is_closed;
            sql:
                a_block_that_is_locked_holds_up_no_other
                a_kill_before_the_reply_leaves_the_mark_moved
                a_new_incarnation_raises_the_floor_once
                a_repair_judges_what_others_left
                a_row_that_nobody_wrote_is_quarantined
                acquirers_do_not_queue
                agrees_with_the_reference
                an_outage_is_unavailable_and_over_when_it_is_over
                conforms
                holders_are_kept_as_they_are
                no_error_shows_a_password
                one_of_many_inits_wins
                rows_are_made_up_to_a_bound
                the_clock_is_read_after_the_locks
                the_tables_refuse_numbers_that_disagree;
        }
    };
}
pub(crate) use tests_of_sql;

/// A layout of ticks of this length, with as many nodes as `bits` says.
fn layout(bits: (u32, u32, u32), tick: Duration) -> Layout {
    let layout: LayoutBuilder = Layout::builder().bits(bits.0, bits.1, bits.2);
    let layout = layout.tick(tick).epoch_unix_ms(1_700_000_000_000);
    layout.build().unwrap()
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

/// With the node bits of Baidu's layout there are as many blocks as there may be;
/// with one bit less a block there are too many.
pub(crate) fn rows_are_made_up_to_a_bound(server: &dyn Database) {
    let mut store = server.store();
    let layout = layout((32, Layout::BAIDU.node_bits(), 10), Duration::from_secs(1));
    let most = Namespace::new("most", &layout, Fingerprint::PLAIN).unwrap();
    assert_eq!(most.blocks(), 1 << 17);
    init(&mut store, &most);
    assert_eq!(take(&mut store, &most, 10).block, Block::new(0));

    let more = Namespace::new("more", &layout, Fingerprint::PLAIN).unwrap();
    let more = more.with_block_bits(4).unwrap();
    invalid(store.init(&more, &begin()))
        .says("value: 262144")
        .says("max: 131072");
    not_initialised(store.list(&more));
}

pub(crate) fn a_new_incarnation_raises_the_floor_once(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    let grant = take(&mut store, &space, 2);
    server.execute("UPDATE ringflake_namespace SET incarnation = 'another'");

    assert!(store.check(&space, now()).unwrap().history_lost());
    let mut other = longer(&grant);
    other.block = Block::new(9);
    let both = [(&space, &longer(&grant)), (&space, &other)];
    let alone = renew(&mut store, &space, &grant);
    for answer in store.renew_all(&both).into_iter().chain([alone]) {
        assert_eq!(fenced(answer), Fence::Incarnation);
    }

    // All see it at once. Each would raise the floor, and those that were late
    // would raise it further.
    let floors: BTreeSet<u64> = thread::scope(|scope| {
        let ask = || floor_ahead(acquire(&mut server.store(), &space));
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let [floor]: [u64; 1] = Vec::from_iter(floors).try_into().unwrap();

    // It was kept, though nothing was granted.
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.record.floor, floor);
    assert!(!report.history_lost());
    let fence = fenced(renew(&mut store, &space, &grant));
    let known = grant.ticks.end;
    assert_eq!(fence, Fence::Floor { known, floor });
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
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
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
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    let report = store.check(&space, now()).unwrap();
    let shown = format!("{stranger:?} {store:?} {report:?}");
    assert!(!shown.contains(PASSWORD), "{shown}");
}

/// `damages` are statements, each of which leaves something that no version of
/// this crate writes.
pub(crate) fn what_nobody_wrote_is_corrupt(server: &dyn Database, damages: &[&str]) {
    for (index, damage) in damages.iter().enumerate() {
        let mut store = server.store();
        let name = format!("space-{index}");
        let space = made(&mut store, &name, 5);
        take(&mut store, &space, 60);
        server.execute(&damage.replace("{name}", &name));
        for answer in [
            store.list(&space).map(drop),
            store.acquire(&space, &ask(MAX_ACQUIRE, 60)).map(drop),
        ] {
            let is_corrupt = matches!(answer, Err(StoreError::Corrupt { .. }));
            assert!(is_corrupt, "{damage}: {answer:?}");
        }
    }
}

pub(crate) fn the_tables_refuse_numbers_that_disagree(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    take(&mut store, &space, 60);
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
        let leaks = shown.contains("hunter2") || shown.contains("me:");
        assert!(!leaks, "{shown}");
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
    let space = made(&mut store, "orders", 5);
    for change in DAMAGES {
        let grant = take(&mut store, &space, 60);
        let block = grant.block;
        server.damage(&format!(
            "UPDATE ringflake_block SET {change} WHERE namespace = 'orders' AND block = {block}"
        ));
        // Whether they come first among the candidates or last.
        let more = several(&mut store, &space, MAX_ACQUIRE, 1);
        assert!(more.iter().all(|more| more.block != block), "{change}");
        let quarantined = store.list(&space).unwrap().quarantined;
        let blocks: Vec<_> = quarantined.iter().map(|found| found.block).collect();
        assert_eq!(blocks, [Some(block)], "{change}");
        let report = store.check(&space, now()).unwrap();
        assert_eq!(report.quarantined, quarantined, "{change}");
        let repaired = store.repair(&space, block, now()).unwrap();
        assert!(repaired.hwm_end > grant.ticks.end, "{change}");
        assert_eq!(store.list(&space).unwrap().quarantined, [], "{change}");
    }
}

/// A row that is locked is judged once it is had.
pub(crate) fn a_repair_judges_what_others_left(server: &dyn Database) {
    let mut run = server.holding();
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    let grant = take(&mut store, &space, 60);
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
        eventually("the repair waits for the row", || server.is_waited_for());
        run("COMMIT");
        not_quarantined(repairing.join().unwrap());
    });
    let kept = mark(&mut server.store(), &space, grant.block);
    assert_eq!(kept, Some(grant.ticks.end));
}

/// The clock that counts is read once the locks are held.
pub(crate) fn the_clock_is_read_after_the_locks(server: &dyn Database) {
    let mut lock = server.holding();
    // A tick of 10 ms, of which the wait below takes some.
    let layout = layout((36, 10, 12), Duration::from_millis(10));
    let space = Namespace::new("ticking", &layout, Fingerprint::PLAIN).unwrap();
    let mut store = server.store();
    init(&mut store, &space);

    lock("BEGIN");
    lock("SELECT * FROM ringflake_namespace FOR UPDATE");
    thread::scope(|scope| {
        let worker = scope.spawn(|| take(&mut store, &space, 10));
        eventually("the acquisition waits", || server.is_waited_for());
        let waiting = tick(&space);
        eventually("it waits for long", || tick(&space) >= waiting + 10);
        let released = tick(&space);
        lock("ROLLBACK");
        let grant = worker.join().unwrap();
        assert!(
            grant.ticks.start >= released,
            "{grant} begins before {released}, when the record was free"
        );
    });
}

/// Locks of others are skipped, and waited for only where nothing else is left.
pub(crate) fn acquirers_do_not_queue(server: &dyn Database) {
    let mut lock = server.holding();
    let mut store = server.store();
    let many = made(&mut store, "many", 5);
    let only = made(&mut store, "only", 17);

    lock("BEGIN");
    lock(
        "SELECT * FROM ringflake_block WHERE namespace = 'many' AND block IN (0, 1, 2) FOR UPDATE",
    );
    let grants = several(&mut store, &many, 2, 10);
    let blocks: Vec<_> = grants.iter().map(|grant| grant.block.index()).collect();
    assert_eq!(blocks, [3, 4]);
    lock("ROLLBACK");

    // Somebody who has the only block under lock need not take it in the end.
    lock("BEGIN");
    lock("SELECT * FROM ringflake_block WHERE namespace = 'only' FOR UPDATE");
    thread::scope(|scope| {
        let worker = scope.spawn(|| acquire(&mut store, &only));
        eventually("the acquisition waits", || server.is_waited_for());
        lock("ROLLBACK");
        assert_eq!(worker.join().unwrap().unwrap().block, Block::new(0));
    });

    // And if he does take it, that is exhaustion.
    exhausted(acquire(&mut store, &only));
}

/// A transaction that the server sacrifices to another one is repeated. The other
/// one takes its locks the wrong way round, as no store does: after `begin`, a block's and
/// then, by `hold_record`, what keeps the record of "orders" to itself.
pub(crate) fn a_deadlock_is_repeated(server: &dyn Database, begin: &str, hold_record: &str) {
    let mut lock = server.holding();
    let mut store = server.store();
    let space = made(&mut store, "orders", 12);
    let grant = take(&mut store, &space, 10);
    lock(begin);
    lock("UPDATE ringflake_block SET granted_unix_ms = 7");
    thread::scope(|scope| {
        let worker = scope.spawn(|| renew(&mut store, &space, &grant));
        eventually("the renewal waits", || server.is_waited_for());
        lock(hold_record);
        lock("COMMIT");
        assert_eq!(worker.join().unwrap().unwrap(), grant.ticks.end + 1);
    });
    let kept = mark(&mut store, &space, grant.block);
    assert_eq!(kept, Some(grant.ticks.end + 1));
}

/// The server dies when it has committed and before its reply is sent.
pub(crate) fn a_kill_before_the_reply_leaves_the_mark_moved(server: &mut dyn Database) {
    let space = made(&mut server.store(), "orders", 16);
    let block = Block::new(0);
    let proxy = Proxy::to(server.port());
    let url = server.url_through(proxy.port());
    // How many replies come before the one that counts.
    let trial = made(&mut server.store(), "trial", 5);
    let lose = |after, then| proxy.set(Fault::LoseReplies { after, then });
    let counts = |replies: &u64| {
        lose(*replies, Then::Close);
        let asked = acquire(&mut store(&url), &trial);
        matches!(asked, Err(StoreError::Ambiguous { .. }))
    };
    let replies = (0..60).find(counts).unwrap();

    let lost = proxy.lost();
    lose(replies, Then::Hang);
    let before = tick(&space);
    let mut witness = server.store();
    let outcome = thread::scope(|scope| {
        let worker = scope.spawn(|| acquire(&mut store(&url), &space));
        eventually("the server has answered", || proxy.lost() > lost);
        eventually("and committed", || {
            mark(&mut witness, &space, block).is_some()
        });
        server.kill();
        worker.join().unwrap()
    });
    ambiguous(outcome);

    server.restart();
    let mut store = server.store();
    let moved = mark(&mut store, &space, block).expect("the grant was committed");
    let expected = before + 60..=tick(&space) + 60;
    assert!(expected.contains(&moved), "{moved}, not {expected:?}");
    // Nobody has it, and nobody gets it before the mark.
    assert_eq!(take(&mut store, &space, 60).block, Block::new(1));
    exhausted(acquire(&mut store, &space));
}

/// A user `other`, who may do what `grant` lets him once the tables are there, and a
/// database that is not there.
pub(crate) fn to_create_is_needed_only_where_tables_are_missing(
    server: &dyn Database,
    grant: &dyn Fn(),
    refused: fn(Result<(), StoreError>) -> Shown,
    reasons: [&str; 2],
) {
    let mut other = store(&server.url().replace("//app:", "//other:"));
    let mine = space("mine");
    refused(other.init(&mine, &begin()).map(drop)).says(reasons[0]);
    let orders = made(&mut server.store(), "orders", 5);
    refused(other.list(&orders).map(drop)).says(reasons[0]);
    grant();
    init(&mut other, &mine);
    let grant = take(&mut other, &orders, 10);
    renew(&mut other, &orders, &grant).unwrap();
    other.release(&orders, grant.block, grant.epoch).unwrap();
    other.check(&orders, now()).unwrap();

    let mut nowhere = store(&format!("{}-not", server.url()));
    refused(nowhere.list(&orders).map(drop)).says(reasons[1]);
}

/// While `setting` lets the server forget, nothing is done, on the connection that was good
/// a moment ago and on a new one. What somebody accepts is done, reported, and said once for
/// each connection.
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
    assert_eq!(warnings(|| drop(another.list(space).unwrap())).len(), 1);
}

/// What is kept of a holder comes back, and a name that looks like SQL is a name.
pub(crate) fn holders_are_kept_as_they_are(server: &dyn Database) {
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    for (host, instance) in [
        ("host-1", "4711"),
        ("", ""),
        ("Robert'); DROP TABLE ringflake_block; --", "\\\"'%_`"),
        ("数据库-ö-🦀", "\u{1}"),
    ] {
        let holder = Holder::new(host, instance);
        let ask = ask(1, 10).held_by(holder.clone());
        let grant = store.acquire(&space, &ask).unwrap().remove(0);
        let blocks = store.list(&space).unwrap().blocks;
        let known = blocks.iter().find(|known| known.block == grant.block);
        assert_eq!(known.unwrap().holder, Some(holder));
    }
}
