//! Redis.

mod failover;
mod schedules;

use std::time::{Duration, Instant};

use ringflake::lease::conformance::Suite;
use ringflake::lease::{
    Acquire, Block, Durability, Fence, Floor, Grant, History, Holder, Init, LeaseStore, Namespace,
    OpenOptions, RedisStore, Renew, StoreError, open,
};
use ringflake::{Layout, LayoutBuilder};

use crate::kit::tests_on;
use crate::kit::{
    acquire, ambiguous, clock_skew, corrupt, denied, fenced, floor_ahead, init, limits,
    not_durable, now, space, unavailable,
};
use crate::upgrade::upgrades_from_format_1 as upgrades;
use ringflake_kit::events::said;
use ringflake_kit::proxy::{After, Fault, Proxy, Then};
use ringflake_kit::server::Clock;
use ringflake_kit::server::{Lent, Reachable as _, Redis, TestServer as _};

fn options() -> OpenOptions {
    OpenOptions::new().timeout(Duration::from_secs(20))
}

fn store(url: &str) -> RedisStore {
    RedisStore::from_url(url, &options()).unwrap()
}

fn through(proxy: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", proxy.port())
}

tests_on! { Redis;
    idle: a_forgotten_connection_is_replaced;
    lost:
        a_grant_whose_reply_is_lost_is_ambiguous_and_nobodys
        many_at_once_are_given_disjoint_rectangles;
    sharing: a_hundred_generators_are_one_connection;
}

#[test]
fn it_conforms() {
    let redis = started!(Redis::start());
    let connect = || open(&redis.url(), &options()).unwrap();
    // A mark or an epoch that is no number of ticks or grants.
    let damage = |space: &Namespace, block: Block| {
        let name = format!("{:016}", block.index());
        let (command, key, words) = match block.index() % 2 {
            0 => ("ZADD", "hwm_end", ["1.5", &name]),
            _ => ("HSET", "epoch", [&name, "many"]),
        };
        let key = format!("ringflake:{{{}}}:{key}", space.name());
        redis.command(&[&[command, &key], &words[..]].concat());
    };
    Suite::new(&connect, &now).with_damage(&damage).run();
}

#[test]
fn it_conforms_with_a_replica_that_confirms() {
    let redis = started!(Redis::start());
    let _replica = started!(Redis::start_replica(&redis));
    let url = format!("{}/1?wait=1", redis.url());
    let connect = || open(&url, &options()).unwrap();
    Suite::new(&connect, &now).run();
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let redis = started!(Redis::start_with(&["--cluster-enabled", "yes"]));
    let text = unavailable(store(&redis.url()).list(&space("orders")));
    assert!(text.contains("Redis Cluster"), "{text}");
}

#[test]
fn upgrades_from_format_1() {
    let redis = started!(Lent::<Redis>::start());
    let connect = || open(&redis.url(), &options()).unwrap();
    upgrades(&connect, &|name, format, former| {
        let record = format!("ringflake:{{{name}}}:record");
        let (format, former) = (format.to_string(), former.to_string());
        redis.command(&["HSET", &record, "format", &format, "fingerprint", &former]);
        redis.command(&["DEL", "ringflake:secrets"]);
    });
}

// Replies that are lost

#[test]
fn a_renewal_whose_reply_is_lost_is_ambiguous_and_fences() {
    let redis = started!(Lent::<Redis>::start());
    let proxy = Proxy::to(redis.port());
    let space = space("lost");
    let mut cut = store(&through(&proxy));
    init(&mut cut, &space);
    let grant = acquire(&mut cut, &space).unwrap();
    let end = grant.ticks.end;
    // So that the script is known.
    let renew = Renew::new(&grant, end, now());
    cut.renew(&space, &renew).unwrap();

    proxy.set(Fault::LoseReplies {
        after: After::Requests(1),
        then: Then::Close,
    });
    let renew = Renew::new(&grant, end + 5, now());
    ambiguous(cut.renew(&space, &renew));
    proxy.set(Fault::None);
    assert_eq!(
        fenced(cut.renew(&space, &renew)),
        Fence::End {
            known: end,
            recorded: end + 5
        }
    );
}

#[test]
fn every_operation_that_writes_can_be_ambiguous_and_no_other() {
    let redis = started!(Lent::<Redis>::start());
    let proxy = Proxy::to(redis.port());
    let mut cut = store(&through(&proxy));
    let orders = space("orders");
    init(&mut cut, &orders);
    let grant = acquire(&mut cut, &orders).unwrap();
    // The scripts must be known, so that one request is the whole call.
    cut.release(&orders, grant.block, grant.epoch).unwrap();
    cut.raise_floor(&orders, Floor::Tick(0), now()).unwrap();
    cut.list(&orders).unwrap();
    cut.check(&orders, now()).unwrap();

    let lose = |requests| {
        proxy.set(Fault::LoseReplies {
            after: After::Requests(requests),
            then: Then::Close,
        });
    };
    let open_again = |cut: &mut RedisStore| {
        proxy.set(Fault::None);
        cut.list(&orders).unwrap();
    };
    let unborn = space("unborn");
    lose(1);
    ambiguous(cut.init(&unborn, &Init::new(History::New, now())));
    open_again(&mut cut);
    lose(1);
    ambiguous(cut.release(&orders, grant.block, grant.epoch));
    open_again(&mut cut);
    lose(1);
    ambiguous(cut.raise_floor(&orders, Floor::OverLostGrants, now()));
    open_again(&mut cut);
    lose(1);
    unavailable(cut.list(&orders));
    // INFO, and CONFIG GET twice.
    lose(3);
    unavailable(cut.check(&orders, now()));
    assert_eq!(proxy.lost(), 5);

    open_again(&mut cut);
    assert!(cut.list(&unborn).is_ok());
}

#[test]
fn a_connection_that_fails_early_leaves_nothing_open() {
    let redis = started!(Lent::<Redis>::start());
    let proxy = Proxy::to(redis.port());
    let space = space("cut");
    let mut cut = store(&through(&proxy));
    init(&mut cut, &space);
    let before = cut.list(&space).unwrap();

    proxy.set(Fault::Cut);
    unavailable(acquire(&mut cut, &space));
    proxy.set(Fault::None);
    // Closed while idle: found out by the PING, and opened again.
    acquire(&mut cut, &space).unwrap();
    proxy.set(Fault::Cut);
    proxy.set(Fault::None);
    acquire(&mut cut, &space).unwrap();

    // Lost in each step of connecting.
    for requests in 0..3 {
        proxy.set(Fault::Cut);
        proxy.set(Fault::LoseReplies {
            after: After::Requests(requests),
            then: Then::Close,
        });
        unavailable(acquire(&mut cut, &space));
    }
    let after = store(&redis.url()).list(&space).unwrap();
    assert_eq!(after.blocks.len(), before.blocks.len() + 2);
}

#[test]
fn a_server_that_hangs_takes_no_longer_than_the_time_out() {
    let redis = started!(Redis::start());
    let space = space("hang");
    init(&mut store(&redis.url()), &space);
    let timeout = Duration::from_millis(300);
    let patience = OpenOptions::new().timeout(timeout);
    let mut connected = RedisStore::from_url(&redis.url(), &patience).unwrap();
    connected.list(&space).unwrap();
    let mut new = RedisStore::from_url(&redis.url(), &patience).unwrap();

    redis.signal(libc::SIGSTOP);
    for store in [&mut connected, &mut new] {
        let start = Instant::now();
        unavailable(acquire(store, &space));
        let took = start.elapsed();
        assert!(took >= timeout, "{took:?}");
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
    redis.signal(libc::SIGCONT);
    assert!(connected.list(&space).unwrap().blocks.is_empty());
}

// Restarts

#[test]
fn what_was_confirmed_survives_a_restart_and_the_floor_rises() {
    let mut redis = started!(Redis::start());
    let mut store = store(&redis.url());
    for (name, end) in [
        ("crash", Redis::kill as fn(&mut Redis)),
        ("stop", Redis::stop),
    ] {
        let space = space(name);
        init(&mut store, &space);
        let holder = Holder::new("host", "instance");
        let ask = Acquire::new(3, 60, now()).held_by(holder);
        let grants = store.acquire(&space, &ask).unwrap();
        let before = store.list(&space).unwrap();

        end(&mut redis);
        unavailable(acquire(&mut store, &space));
        redis.restart();
        assert_eq!(store.list(&space).unwrap(), before);
        assert!(store.check(&space, now()).unwrap().history_lost());

        let renew = Renew::new(&grants[0], grants[0].ticks.end + 5, now());
        assert_eq!(fenced(store.renew(&space, &renew)), Fence::Incarnation);
        let floor = floor_ahead(acquire(&mut store, &space));
        // Once, not at every attempt.
        assert_eq!(floor_ahead(acquire(&mut store, &space)), floor);
        assert!(!store.check(&space, now()).unwrap().history_lost());
        let fence = fenced(store.renew(&space, &renew));
        assert!(matches!(fence, Fence::Floor { .. }), "{fence}");
    }
}

#[test]
fn a_server_whose_clock_is_off_grants_nothing_and_loses_nothing() {
    let redis = started!(Redis::start_with_clock(Clock::new()));
    let space = space("clock");
    let mut store = store(&redis.url());
    init(&mut store, &space);
    let grant = acquire(&mut store, &space).unwrap();
    let before = store.list(&space).unwrap();
    let hour = 3_600_000;
    for ahead_ms in [hour, -hour, 10 * 366 * 24 * hour] {
        redis.clock().run_ahead(ahead_ms);
        let report = store.check(&space, now()).unwrap();
        let skew = report.skew_ms().unwrap();
        assert!(skew.abs_diff(ahead_ms.unsigned_abs()) < 10_000, "{skew}");
        clock_skew(acquire(&mut store, &space));
        assert_eq!(store.list(&space).unwrap(), before);
    }
    redis.clock().run_ahead(0);
    let renew = Renew::new(&grant, grant.ticks.end + 5, now());
    let end = store.renew(&space, &renew).unwrap();
    assert_eq!(end, grant.ticks.end + 5);
}

#[test]
fn the_scripts_are_loaded_again_where_they_were_flushed() {
    let redis = started!(Redis::start());
    let space = space("flush");
    let mut store = store(&redis.url());
    init(&mut store, &space);
    acquire(&mut store, &space).unwrap();
    redis.command(&["SCRIPT", "FLUSH"]);
    acquire(&mut store, &space).unwrap();
}

// Durability

#[test]
fn a_server_that_can_lose_what_it_confirmed_is_refused() {
    let space = space("weak");
    for (arguments, told) in [
        (&["--appendonly", "no"][..], "appendonly is no"),
        (&["--appendfsync", "everysec"], "appendfsync is everysec"),
        (&["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync"),
        (
            &["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
            "allkeys-lru",
        ),
    ] {
        let redis = started!(Redis::start_with(arguments));
        let mut strict = store(&redis.url());
        match strict.list(&space).unwrap_err() {
            StoreError::NotDurable { reason, store } => {
                assert!(reason.contains(told), "{reason}");
                assert!(store.contains(&redis.port().to_string()), "{store}");
            }
            other => panic!("{other}"),
        }
        let init = Init::new(History::New, now());
        not_durable(strict.init(&space, &init));

        let options = options().accept_best_effort(true);
        let mut lenient = RedisStore::from_url(&redis.url(), &options).unwrap();
        lenient.init(&space, &init).unwrap();
        match lenient.check(&space, now()).unwrap().durability {
            Durability::BestEffort { reason } => assert!(reason.contains(told), "{reason}"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_setting_that_changes_is_noticed_by_check() {
    let redis = started!(Redis::start());
    let space = space("changed");
    let mut store = store(&redis.url());
    init(&mut store, &space);
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.durability, Durability::Durable);
    assert!(report.store.contains("redis 7"), "{}", report.store);

    redis.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    not_durable(store.check(&space, now()));
    not_durable(acquire(&mut store, &space));
}

#[test]
fn a_best_effort_store_says_so_at_each_connection() {
    let redis = started!(Redis::start_with(&["--appendfsync", "no"]));
    let space = space("told");
    let options = options().accept_best_effort(true);
    let mut store = RedisStore::from_url(&redis.url(), &options).unwrap();
    let lines = said(|| {
        init(&mut store, &space);
        store.list(&space).unwrap();
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN "), "{lines:?}");
    assert!(lines[0].contains("appendfsync is no"), "{lines:?}");

    let lines = said(|| drop(store.check(&space, now()).unwrap()));
    assert_eq!(lines.len(), 1, "{lines:?}");
}

// Who may

#[test]
fn credentials_log_in_and_are_never_shown() {
    let word = "hunter2";
    let redis = started!(Redis::start_with(&["--requirepass", word]));
    let port = redis.port();
    redis.command(&["ACL", "SETUSER", "me", "on", ">hunter2me", "~*", "+@all"]);
    let orders = space("orders");
    let mut good = store(&format!("redis://:{word}@127.0.0.1:{port}"));
    init(&mut good, &orders);
    let mut user = store(&format!("redis://me:hunter2me@127.0.0.1:{port}"));
    acquire(&mut user, &orders).unwrap();

    let text = denied(store(&redis.url()).list(&orders));
    assert!(text.contains("NOAUTH"), "{text}");
    for login in [":hunter2wrong", "me:hunter2wrong", "nobody:hunter2wrong"] {
        let mut wrong = store(&format!("redis://{login}@127.0.0.1:{port}"));
        let text = denied(wrong.list(&orders)) + &format!("{wrong:?}");
        assert!(text.contains("WRONGPASS"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    for store in [good, user] {
        let text = format!("{store:?}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// Such a server repeats the arguments of what it does not know.
#[test]
fn a_server_without_auth_does_not_make_the_password_public() {
    let redis = started!(Redis::start_with(&["--rename-command", "AUTH", ""]));
    let url = format!("redis://me:hunter2@127.0.0.1:{}", redis.port());
    let text = denied(store(&url).list(&space("orders")));
    assert!(text.contains("ERR"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn the_rights_that_are_documented_are_enough() {
    let redis = started!(Redis::start());
    let rights = "+evalsha +script|load +time +info +config|get +ping +wait +select +exists \
                  +hset +hget +hmget +hdel +hgetall +zadd +zrem +zcard +zcount +zrange +zscore \
                  +zmscore ~ringflake:*";
    let mut words = vec!["ACL", "SETUSER", "me", "on", ">word"];
    words.extend(rights.split_whitespace());
    redis.command(&words);
    let url = format!("redis://me:word@127.0.0.1:{}/2", redis.port());
    let connect = || open(&url, &options()).unwrap();
    Suite::new(&connect, &now).run();

    // Without this one, what the server would do is hidden.
    redis.command(&["ACL", "SETUSER", "me", "-config|get"]);
    match store(&url).list(&space("orders")).unwrap_err() {
        StoreError::NotDurable { reason, .. } => {
            assert!(reason.contains("CONFIG GET is not permitted"), "{reason}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn it_conforms_over_tls_and_trusts_nobody_else() {
    let [ca, cert, key] = ["ca.pem", "server.pem", "server.key"].map(ringflake_kit::tls::file);
    let port = ringflake_kit::server::free_port().to_string();
    let arguments = [
        ["--tls-port", &port],
        ["--tls-ca-cert-file", &ca],
        ["--tls-cert-file", &cert],
        ["--tls-key-file", &key],
    ];
    let redis = started!(Redis::start_with(&arguments.concat()));
    let identity = ringflake_kit::tls::Identity::new();
    let own = identity.parameters("cert", "key");
    let url = format!("rediss://localhost:{port}?ca={ca}&{own}");
    let connect = || open(&url, &options()).unwrap();
    Suite::new(&connect, &now).run();

    let orders = space("orders");
    init(&mut store(&url), &orders);
    for (what, url) in [
        (
            "another authority",
            format!("rediss://localhost:{port}?{own}"),
        ),
        ("another name", url.replace("localhost", "127.0.0.2")),
        (
            "no certificate",
            format!("rediss://localhost:{port}?ca={ca}"),
        ),
        (
            "no TLS",
            format!("rediss://localhost:{}?ca={ca}", redis.port()),
        ),
    ] {
        let patience = OpenOptions::new().timeout(Duration::from_secs(2));
        let mut store = RedisStore::from_url(&url, &patience).unwrap();
        assert!(store.list(&orders).is_err(), "{what}");
    }
}

// What is kept

const FIRST: &str = "0000000000000000";

/// For each damage a namespace of one block, whose mark has passed, with this done to one
/// of its keys.
fn damaged<'a>(redis: &Redis, damages: &[&'a [&'a str]]) -> Vec<(&'a [&'a str], Namespace, Grant)> {
    let mut store = store(&redis.url());
    let one_block = |(index, damage): (usize, &&'a [&'a str])| {
        let space = space(&format!("damaged-{index}"));
        let space = space.with_block_bits(17).unwrap();
        init(&mut store, &space);
        let grants = store.acquire(&space, &Acquire::new(1, 1, now())).unwrap();
        (*damage, space, grants[0].clone())
    };
    let all: Vec<_> = damages.iter().enumerate().map(one_block).collect();
    ringflake_kit::eventually("the marks have passed", || {
        let last = all.iter().map(|(.., grant)| grant.ticks.end).max();
        Layout::RANDFLAKE.tick_at(now()) >= last
    });
    for (damage, space, _) in &all {
        let key = format!("ringflake:{{{}}}:{}", space.name(), damage[1]);
        redis.command(&[&[damage[0], &key], &damage[2..]].concat());
    }
    all
}

fn dump(redis: &Redis, space: &Namespace) -> [::redis::Value; 4] {
    ["record", "hwm_end", "epoch", "released"].map(|kind| {
        let key = format!("ringflake:{{{}}}:{kind}", space.name());
        redis.command(&["DUMP", &key])
    })
}

#[test]
fn what_nobody_wrote_is_corrupt_and_left_alone() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = store(&redis.url());
    let damages = [
        &["HSET", "record", "floor", "abc"][..],
        &["HSET", "record", "floor", "-1"],
        &["HSET", "record", "floor", "1e3"],
        &["HSET", "record", "skew_ms", "99999999999999999999"],
        &["HSET", "record", "name", "another"],
        &["HDEL", "record", "incarnation"],
        &["SET", "epoch", "x"],
        &["SET", "hwm_end", "x"],
        &["SET", "record", "x"],
    ];
    for (damage, space, grant) in damaged(&redis, &damages) {
        let before = dump(&redis, &space);
        corrupt(acquire(&mut store, &space));
        corrupt(store.list(&space));
        corrupt(store.repair(&space, grant.block, now()));
        assert_eq!(dump(&redis, &space), before, "{damage:?}");
    }
}

#[test]
fn keys_of_one_block_that_nobody_wrote_quarantine_it() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = store(&redis.url());
    let damages = [
        &["ZADD", "hwm_end", "1.5", FIRST][..],
        &["ZADD", "hwm_end", "-1", FIRST],
        &["ZADD", "hwm_end", "inf", FIRST],
        &["ZADD", "released", "5", FIRST],
        &["HDEL", "epoch", FIRST],
        &["HSET", "epoch", FIRST, "many"],
        &["HSET", "epoch", FIRST, "9007199254740992"],
        &["DEL", "hwm_end"],
        &["DEL", "epoch"],
    ];
    for (damage, space, grant) in damaged(&redis, &damages) {
        let before = dump(&redis, &space);
        match acquire(&mut store, &space) {
            Err(StoreError::Exhausted { .. }) => {}
            other => panic!("{damage:?}: {other:?}"),
        }
        let fence = fenced(store.release(&space, grant.block, grant.epoch));
        assert!(matches!(fence, Fence::Quarantined { .. }), "{fence}");
        let listing = store.list(&space).unwrap();
        let blocks: Vec<_> = listing.quarantined.iter().map(|it| it.block).collect();
        assert_eq!(blocks, [Some(grant.block)], "{damage:?}");
        let report = store.check(&space, now()).unwrap();
        assert_eq!(report.quarantined, listing.quarantined, "{damage:?}");
        assert_eq!(dump(&redis, &space), before, "{damage:?}");

        let repaired = store.repair(&space, grant.block, now()).unwrap();
        let listing = store.list(&space).unwrap();
        assert!(listing.quarantined.is_empty(), "{damage:?}");
        assert_eq!(listing.blocks, [repaired], "{damage:?}");
    }
}

#[test]
fn a_member_of_no_block_takes_no_block_away() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = store(&redis.url());
    for (index, member) in ["x", "0000000000000001", "\u{e9}"].into_iter().enumerate() {
        let space = space(&format!("stray-{index}"))
            .with_block_bits(17)
            .unwrap();
        init(&mut store, &space);
        let key = format!("ringflake:{{{}}}:hwm_end", space.name());
        redis.command(&["ZADD", &key, "1", member]);
        let grant = acquire(&mut store, &space).unwrap();
        assert_eq!(grant.block, Block::new(0));
        let listing = store.list(&space).unwrap();
        assert_eq!((listing.blocks.len(), listing.quarantined.len()), (1, 1));
        assert_eq!(listing.quarantined[0].block, None);
        let report = store.check(&space, now()).unwrap();
        assert_eq!(report.quarantined, listing.quarantined);
    }
}

#[test]
fn a_layout_beyond_what_doubles_hold_is_refused() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = store(&redis.url());
    let with = |builder: LayoutBuilder| {
        let layout = builder.tick(Duration::from_millis(1)).build().unwrap();
        let print = ringflake::lease::Fingerprint::PLAIN;
        ringflake::lease::Namespace::new("wide", &layout, print).unwrap()
    };
    let layout = Layout::builder().bits(52, 6, 6);
    let space = with(layout.epoch_unix_ms(1));
    let init = Init::new(History::New, now()).with_limits(limits());
    match store.init(&space, &init).unwrap_err() {
        StoreError::Invalid { value, max, .. } => {
            assert_eq!((value, max), ((1 << 52) + 1, 1 << 52));
        }
        other => panic!("{other}"),
    }
    let space = with(layout.epoch_unix_ms(0));
    store.init(&space, &init).unwrap();
    let grant = acquire(&mut store, &space).unwrap();
    assert_eq!(grant.ticks.end - grant.ticks.start, 60);
}
