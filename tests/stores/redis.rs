//! Redis.

mod failover;

use ringflake::lease::conformance::{GrantedTicks, Suite};
use ringflake::lease::table::Table;
use ringflake::lease::{Durability, Fence, Holder, LeaseStore as _, RedisStore, open};

use crate::kit::{
    acquire, ask, begin, corrupt, denied, exhausted, fenced, floor_ahead, history_unknown, init,
    made, not_durable, now, renew, space, take, tests_on, unavailable,
};
use crate::served::{self, Served, patient, store, tests_of_servers};
use ringflake_kit::assert_says;
use ringflake_kit::server::{Lent, Redis, TestServer as _, free_port};

impl Served for Redis {
    fn table(&self) -> Box<dyn Table> {
        let store = RedisStore::from_url(&self.url(), &patient()).unwrap();
        Box::new(store.into_table())
    }

    fn lose(&self, name: &str) {
        self.command(&["HDEL", &hash_of(name), "record"]);
    }
}

tests_of_servers!(Redis);
tests_on! { Redis; served: a_connection_that_was_closed_is_opened_again; }

fn hash_of(name: &str) -> String {
    format!("ringflake:{{{name}}}")
}

#[test]
fn it_conforms_with_a_replica_that_confirms() {
    let redis = started!(Redis::start());
    let _replica = started!(Redis::start_replica(&redis));
    let url = format!("{}/1?wait=1", redis.url());
    Suite::new(&|| store(&url), &now).run();
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let bus = free_port().to_string();
    let node = ["--cluster-enabled", "yes", "--cluster-port", &bus];
    let redis = started!(Redis::start_with(&node));
    unavailable(redis.store().list(&space("orders"))).says("Redis Cluster");
}

#[test]
fn what_was_confirmed_survives_a_restart_and_the_floor_rises() {
    let mut redis = started!(Redis::start());
    let mut store = redis.store();
    for (name, end) in [
        ("crash", Redis::kill as fn(&mut Redis)),
        ("stop", Redis::stop),
    ] {
        let space = made(&mut store, name, 5);
        let ask = ask(3, 60).held_by(Holder::new("host", "instance"));
        let grants = store.acquire(&space, &ask).unwrap();
        let before = store.list(&space).unwrap();

        end(&mut redis);
        unavailable(acquire(&mut store, &space));
        redis.restart();
        assert_eq!(store.list(&space).unwrap(), before);
        assert!(store.check(&space, now()).unwrap().history_lost());

        let fence = fenced(renew(&mut store, &space, &grants[0]));
        assert_eq!(fence, Fence::Incarnation);
        let floor = floor_ahead(acquire(&mut store, &space));
        // Once, not at every attempt.
        assert_eq!(floor_ahead(acquire(&mut store, &space)), floor);
        assert!(!store.check(&space, now()).unwrap().history_lost());
        let fence = fenced(renew(&mut store, &space, &grants[0]));
        assert!(matches!(fence, Fence::Floor { .. }), "{fence}");
    }
}

#[test]
fn the_scripts_are_loaded_again_where_they_were_flushed() {
    let redis = started!(Redis::start());
    let (mut store, space) = redis.with("flush", 5);
    take(&mut store, &space, 60);
    redis.command(&["SCRIPT", "FLUSH"]);
    take(&mut store, &space, 60);
}

#[test]
fn a_server_that_can_lose_what_it_confirmed_is_refused() {
    let space = space("weak");
    for (arguments, expected) in [
        (&["--appendonly", "no"][..], "appendonly is no"),
        (&["--appendfsync", "everysec"], "appendfsync is everysec"),
        (&["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync"),
        (
            &["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
            "allkeys-lru",
        ),
    ] {
        let redis = started!(Redis::start_with(arguments));
        let mut strict = redis.store();
        let port = redis.port().to_string();
        not_durable(strict.list(&space)).says(expected).says(&port);
        not_durable(strict.init(&space, &begin()));

        let options = patient().accept_best_effort(true);
        let mut lenient = open(&redis.url(), &options).unwrap();
        for _ in 0..2 {
            // Of which nothing is left behind.
            history_unknown(lenient.init_if_new(&space, &begin())).says(expected);
        }
        init(&mut lenient, &space);
        match lenient.check(&space, now()).unwrap().durability {
            Durability::BestEffort { reason } => assert_says(&reason, &[expected]),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_setting_that_changes_is_noticed_by_check() {
    let redis = started!(Redis::start());
    let (mut store, space) = redis.with("changed", 5);
    let report = store.check(&space, now()).unwrap();
    assert_eq!(report.durability, Durability::Durable);
    assert_says(&report.store, &["redis 7"]);

    redis.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    not_durable(store.check(&space, now()));
    not_durable(acquire(&mut store, &space));
}

#[test]
fn credentials_log_in_and_are_never_shown() {
    let word = "hunter2";
    let redis = started!(Redis::start_with(&["--requirepass", word]));
    let port = redis.port();
    redis.command(&["ACL", "SETUSER", "me", "on", ">hunter2me", "~*", "+@all"]);
    let mut good = store(&format!("redis://:{word}@127.0.0.1:{port}"));
    let orders = made(&mut good, "orders", 5);
    let mut user = store(&format!("redis://me:hunter2me@127.0.0.1:{port}"));
    take(&mut user, &orders, 60);

    denied(redis.store().list(&orders)).says("NOAUTH");
    let mut shown = format!("{good:?} {user:?}");
    for login in [":hunter2wrong", "me:hunter2wrong", "nobody:hunter2wrong"] {
        let mut wrong = store(&format!("redis://{login}@127.0.0.1:{port}"));
        let answer = denied(wrong.list(&orders));
        answer.says("WRONGPASS").hides("hunter2");
        shown += &format!("{wrong:?}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// Such a server repeats the arguments of what it does not know.
#[test]
fn a_server_without_auth_does_not_make_the_password_public() {
    let redis = started!(Redis::start_with(&["--rename-command", "AUTH", ""]));
    let url = format!("redis://me:hunter2@127.0.0.1:{}", redis.port());
    let answer = denied(store(&url).list(&space("orders")));
    answer.says("ERR").hides("hunter2");
}

#[test]
fn it_conforms_over_tls_and_trusts_nobody_else() {
    let [ca, cert, key] = ["ca.pem", "server.pem", "server.key"].map(ringflake_kit::tls::file);
    let port = free_port();
    let arguments = [
        ["--tls-port", &port.to_string()],
        ["--tls-ca-cert-file", &ca],
        ["--tls-cert-file", &cert],
        ["--tls-key-file", &key],
    ];
    let redis = started!(Redis::start_with(&arguments.concat()));
    let no_tls = format!("rediss://localhost:{}?ca={ca}", redis.port());
    let url = format!("rediss://localhost:{port}");
    served::conforms_over_tls_and_trusts_nobody_else(&url, &no_tls);
}

/// A key of another type stops each script before it writes.
#[test]
fn what_nobody_wrote_is_corrupt_and_left_alone() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = redis.store();
    for (index, (is_hash, is_ranks)) in [(true, false), (false, true), (false, false)]
        .into_iter()
        .enumerate()
    {
        let space = made(&mut store, &format!("corrupt-{index}"), 5);
        let grant = take(&mut store, &space, 60);
        let hash = hash_of(space.name());
        let ranks = format!("{hash}:rank");
        if is_hash {
            redis.command(&["SET", &hash, "x"]);
        } else if is_ranks {
            redis.command(&["SET", &ranks, "x"]);
        } else {
            redis.command(&["HSET", &hash, "record", "{"]);
        }
        let dump = || [&hash, &ranks].map(|key| redis.command(&["DUMP", key]));
        let before = dump();
        corrupt(acquire(&mut store, &space));
        if is_ranks {
            // From the values that it has written, and from those that it reads.
            corrupt(renew(&mut store, &space, &grant));
            corrupt(renew(&mut redis.store(), &space, &grant));
        } else {
            corrupt(store.list(&space));
            corrupt(store.repair(&space, grant.block, now()));
        }
        assert_eq!(dump(), before, "{index}");
    }
}

#[test]
fn a_lost_index_causes_no_overlap() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = redis.store();
    // 32 blocks.
    let space = made(&mut store, "lost", 12);
    let mut given = GrantedTicks::default();
    let mut take_all = |blocks| {
        let grants = redis.store().acquire(&space, &ask(blocks, 60)).unwrap();
        assert_eq!(grants.len(), blocks as usize);
        grants.iter().for_each(|grant| given.add(grant));
        grants
    };
    let first = take_all(20);
    let ranks = format!("{}:rank", hash_of("lost"));
    redis.command(&["DEL", &ranks]);
    take_all(8);
    // Ranks that are wrong, and one of a block that was never granted.
    for grant in &first[..10] {
        let field = format!("block/{:020}", grant.block.index());
        redis.command(&["ZADD", &ranks, "1", &field]);
    }
    redis.command(&["ZADD", &ranks, "0", "block/00000000000000004000"]);
    take_all(4);
    exhausted(acquire(&mut store, &space));

    redis.command(&["DEL", &ranks]);
    redis.lose("lost");
    history_unknown(store.init_if_new(&space, &begin())).says("there are blocks");
}

#[test]
fn a_server_that_refuses_writes_is_still_read() {
    let redis = started!(Redis::start());
    let (mut store, space) = redis.with("full", 5);
    let grant = take(&mut store, &space, 60);
    let before = store.list(&space).unwrap();
    for (setting, bad, good, said) in [
        ("maxmemory", "1", "0", "OOM"),
        // Of which there is none.
        ("min-replicas-to-write", "1", "0", "NOREPLICAS"),
    ] {
        redis.command(&["CONFIG", "SET", setting, bad]);
        unavailable(acquire(&mut store, &space)).says(said);
        unavailable(renew(&mut store, &space, &grant)).says(said);
        unavailable(store.write_test(&space, now())).says(said);
        assert_eq!(store.list(&space).unwrap(), before);
        redis.command(&["CONFIG", "SET", setting, good]);
    }

    redis.command(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    assert_eq!(store.list(&space).unwrap(), before);
    redis.command(&["CLIENT", "UNPAUSE"]);
    renew(&mut store, &space, &grant).unwrap();
}
