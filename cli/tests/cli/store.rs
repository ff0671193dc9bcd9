//! The subcommands of `store`, and runs on stores that are named.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Acquire, Block, Confirmed, Epoch, Fingerprint, Namespace, OpenOptions, StoreError, open,
};
use ringflake::{Layout, Secret};
use serde_json::Value;

use crate::home::{Home, Parts, distinct, fail, stderr, stdout, succeed, unix_ms};
use ringflake_kit::{assert_says, eventually, short_or_long, words};

/// A store beside the data directory, with a namespace of 32 nodes a block.
struct Shared {
    home: Home,
    url: String,
    secret: String,
}

impl Shared {
    fn new() -> Self {
        let home = Home::new();
        let url = format!("sqlite:{}", home.file("shared.db").display());
        let secret = home.write_secret("shared", "00112233445566778899aabbccddeeff");
        Self { home, url, secret }
    }

    fn args<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let place = [
            "--store",
            &self.url,
            "--namespace",
            "orders",
            "--secret-file",
            &self.secret,
        ];
        [command, &place].concat()
    }

    fn print(&self, command: &[&str]) -> String {
        self.home.print(&self.args(command))
    }

    fn refuse(&self, command: &[&str]) -> String {
        fail(self.home.run(&self.args(command)))
    }

    fn json(&self, command: &[&str]) -> Vec<Object> {
        let args = [command, &["--format", "json"]].concat();
        objects(&self.print(&args))
    }
}

type Object = BTreeMap<String, Value>;

fn objects(lines: &str) -> Vec<Object> {
    let parse = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(parse).collect()
}

fn keys(object: &Object) -> Vec<&str> {
    object.keys().map(String::as_str).collect()
}

/// The value in the row with this title.
fn row<'a>(table: &'a str, title: &str) -> &'a str {
    let find = |line: &'a str| line.strip_prefix(title)?.strip_prefix("  ");
    let found = table.lines().find_map(find);
    found
        .unwrap_or_else(|| panic!("no {title} in {table}"))
        .trim()
}

#[test]
fn init_makes_a_namespace_once_and_asks_for_its_history() {
    let shared = Shared::new();
    for history in ["new", "unknown"] {
        let name = format!("by-{history}");
        let args = [
            "store",
            "init",
            "--history",
            history,
            "--store",
            &shared.url,
            "--namespace",
            &name,
            "--plain",
            "--horizon",
            "5min",
            "--skew",
            "2s",
            "--format",
            "json",
        ];
        let object = objects(&shared.home.print(&args)).remove(0);
        assert_eq!(
            keys(&object),
            words(
                "block_nodes blocks failover_ms floor history horizon_ms layout namespace \
                 skew_limit_ms",
            )
        );
        assert_eq!(object["namespace"], name.as_str());
        assert_eq!(object["history"], history);
        assert_eq!(
            (&object["blocks"], &object["block_nodes"]),
            (&4096.into(), &32.into())
        );
        assert_eq!(object["horizon_ms"], 300_000);
        assert_eq!(object["failover_ms"], 60_000);
        assert_eq!(object["skew_limit_ms"], 2000);
        let ahead = object["floor"]["unix_ms"]
            .as_u64()
            .unwrap()
            .saturating_sub(unix_ms());
        let expected = if history == "new" {
            0..1
        } else {
            355_000..362_000
        };
        assert!(expected.contains(&ahead), "{ahead}");
        assert!(fail(shared.home.run(&args)).contains("already"));
    }
    let table = shared.print(&["store", "init", "--history", "new", "--block-bits", "3"]);
    assert_eq!(row(&table, "blocks"), "16384 of 8 nodes");
    assert_eq!(row(&table, "limits"), "horizon 11m, failover 1m, skew 5s");
    assert!(row(&table, "floor").contains("Z (tick "), "{table}");
    // What is out of range is refused with the range.
    let message = shared.refuse(&["store", "init", "--history", "new", "--skew", "0s"]);
    assert!(
        message.contains("already") || message.contains("give 1"),
        "{message}"
    );
}

#[test]
fn runs_on_a_named_store_share_its_namespace() {
    let shared = Shared::new();
    let message = shared.refuse(&["generate"]);
    assert_says(
        &message,
        &["'ringflake store init --history new --store URL --namespace orders"],
    );
    shared.print(&["store", "init", "--history", "new"]);
    let count = short_or_long(20_000, 100_000);
    let options = format!("generate -n {count} --blocks 3 --lease-duration 2min");
    let ids = [
        shared.print(&["generate", "-n", &count.to_string()]),
        shared.print(&words(&options)),
    ]
    .concat();
    assert_eq!(distinct(ids.lines()), 2 * count);
    let parts = shared
        .home
        .inspect(&["--secret-file", &shared.secret], &ids);
    let held = shared.json(&["store", "ls", "--all"]);
    assert_eq!(held.len(), 4);
    let nodes = |object: &Object| {
        let [first, end] = ["first_node", "end_node"].map(|key| object[key].as_u64().unwrap());
        assert_eq!(end - first, 32);
        first..end
    };
    for Parts { node, .. } in parts {
        assert!(
            held.iter().any(|object| nodes(object).contains(&node)),
            "{node}"
        );
    }
    let table = shared.print(&["verify", "-n", "100000", "--threads", "2"]);
    assert_says(&table, &["duplicates", " 0\n"]);

    // By the environment, and without a data directory.
    let mut command = shared.home.command(&[
        "generate",
        "--namespace",
        "orders",
        "--secret-file",
        &shared.secret,
    ]);
    let output = command
        .env("RINGFLAKE_STORE", &shared.url)
        .output()
        .unwrap();
    assert_eq!(stdout(&succeed(output)).lines().count(), 10);
    assert!(!shared.home.data_dir().exists());
}

#[test]
fn a_namespace_refuses_another_secret_layout_or_block_size() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    let other = shared
        .home
        .write_secret("other", "ffeeddccbbaa99887766554433221100");
    let place = ["--store", &shared.url, "--namespace", "orders"];
    for command in [
        &["generate"][..],
        &["verify"],
        &["store", "check"],
        &["store", "ls"],
    ] {
        let args = [command, &place, &["--secret-file", &other]].concat();
        let message = fail(shared.home.run(&args));
        assert!(message.contains("another secret"), "{message}");
        let message = fail(shared.home.run(&[command, &place, &["--plain"]].concat()));
        assert!(message.contains("another secret"), "{message}");
        for wrong in [["--layout", "twitter"], ["--block-bits", "4"]] {
            let message = shared.refuse(&[command, &wrong].concat());
            assert_says(&message, &["--layout and --block-bits", "30/17/17"]);
        }
    }
    // There the secret is not one to be made.
    let message = fail(shared.home.run(&[&["generate"][..], &place].concat()));
    assert!(message.contains("--secret-file"), "{message}");
    assert!(!shared.home.data_dir().exists());
}

#[test]
fn check_tells_how_a_store_stands() {
    let shared = Shared::new();
    let message = shared.refuse(&["store", "check"]);
    assert!(message.contains("store init"), "{message}");
    shared.print(&["store", "init", "--history", "new"]);
    shared.print(&["generate"]);
    let object = shared.json(&["store", "check"]).remove(0);
    assert_eq!(
        keys(&object),
        words(
            "alarms block_nodes blocks durability durability_reason failover_ms floor \
             floor_ahead_ms granted_blocks grants held_blocks history_lost horizon_ms \
             incarnation layout namespace quarantined recorded_incarnation refusals \
             skew_limit_ms skew_ms store",
        )
    );
    assert_eq!(object["store"], shared.url.as_str());
    assert_eq!(
        (&object["granted_blocks"], &object["held_blocks"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&object["grants"], &object["history_lost"]),
        (&true.into(), &false.into())
    );
    assert_eq!(object["refusals"], Value::Array(Vec::new()));
    assert_eq!(object["alarms"], Value::Array(Vec::new()));
    assert_eq!(object["floor_ahead_ms"], 0);
    assert_eq!(object["incarnation"], object["recorded_incarnation"]);
    assert!(object["skew_ms"].as_u64().unwrap() < 1000);
    let table = shared.print(&["store", "check"]);
    assert_eq!(row(&table, "store"), shared.url);
    assert_eq!(
        row(&table, "blocks"),
        "4096 of 32 nodes, 1 granted so far, 0 held"
    );
    assert_eq!(row(&table, "leases"), "granted");

    // What refuses leases fails the check.
    let floor = object["floor"]["tick"].as_u64().unwrap() + 100_000;
    shared.print(&[
        "store",
        "raise-floor",
        "--to-tick",
        &floor.to_string(),
        "--force",
    ]);
    let check = shared.home.run(&shared.args(&["store", "check"]));
    assert_eq!(check.status.code(), Some(1));
    assert!(
        stderr(&check).contains("beyond the horizon"),
        "{}",
        stderr(&check)
    );
    assert_eq!(row(&stdout(&check), "leases"), "refused");
    let message = shared.refuse(&["generate", "--wait", "1s"]);
    assert!(message.contains("leases begin in 27.6 h"), "{message}");
}

#[test]
fn a_lost_history_is_an_alarm_even_when_leases_are_given_again() {
    let shared = Shared::new();
    // Nothing is given for two seconds then, and for half a minute from ticks to come.
    let limits = ["--horizon", "30s", "--failover", "2s", "--skew", "1s"];
    let init = ["store", "init", "--history", "new"];
    shared.print(&[&init[..], &limits].concat());
    shared.print(&["store", "check"]);

    // A process that was told of a grant that the store knows nothing of.
    let secret = Secret::from_bytes(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes());
    let layout = Layout::RANDFLAKE;
    let space = Namespace::new("orders", &layout, Fingerprint::of(&secret)).unwrap();
    let mut store = open(&shared.url, &OpenOptions::new().accept_best_effort(true)).unwrap();
    let now = unix_ms();
    let end = layout.tick_at(now).unwrap() + 20;
    let confirmed = Confirmed::new(Block::new(7), Epoch::FIRST, end);
    let ask = Acquire::new(1, 2, now).with_evidence(vec![confirmed]);
    let lost = store.acquire(&space, &ask);
    assert!(
        matches!(lost, Err(StoreError::HistoryLost { .. })),
        "{lost:?}"
    );

    let check = || {
        let args = shared.args(&["store", "check", "--format", "json"]);
        let output = shared.home.run(&args);
        let object = objects(&stdout(&output)).remove(0);
        assert_eq!(object["history_lost"], false, "the server is the same");
        let alarms = object["alarms"].as_array().unwrap().len();
        let is_well = alarms == 0 && object["grants"] == true;
        assert_eq!(output.status.code(), Some(i32::from(!is_well)));
        (object, alarms, stderr(&output))
    };
    let (object, alarms, _) = check();
    assert_eq!((&object["grants"], alarms), (&false.into(), 1));
    assert!(object["floor_ahead_ms"].as_u64().unwrap() > 30_000);
    let table = stdout(&shared.home.run(&shared.args(&["store", "check"])));
    assert!(row(&table, "alarm").contains("lost what it had confirmed"));

    eventually("leases are given again", || check().0["grants"] == true);
    let (object, alarms, told) = check();
    assert_eq!((&object["grants"], alarms), (&true.into(), 1), "{told}");
    assert!(told.contains("alarm: the floor lies"), "{told}");
}

#[test]
fn a_run_whose_store_is_gone_ends_with_its_leases() {
    let shared = Shared::new();
    // Leases reach no further than three seconds.
    shared.print(&words(
        "store init --history new --horizon 3s --failover 2s --skew 1s",
    ));
    let file = shared.url.strip_prefix("sqlite:").unwrap();
    for command in [
        &["generate", "-n", "1000000000000"][..],
        &["verify", "--seconds", "600"],
    ] {
        let args = shared.args(&[command, &["--wait", "1s"]].concat());
        let mut run = shared.home.command(&args);
        run.stdout(Stdio::null()).stderr(Stdio::piped());
        let run = run.spawn().unwrap();
        // It is at work when it has a block.
        let instance = run.id().to_string();
        let is_its = |object: &Object| object["instance"] == instance.as_str();
        eventually("it has a block", || {
            shared.json(&["store", "ls"]).iter().any(is_its)
        });
        let started = Instant::now();
        let aside = format!("{file}-aside");
        fs::rename(file, &aside).unwrap();
        let message = fail(run.wait_with_output().unwrap());
        assert!(message.contains("no lease has come for"), "{message}");
        assert!(message.contains("has no namespace orders"), "{message}");
        // Three seconds of leases, one of waiting, and time for a busy machine.
        assert!(started.elapsed() < Duration::from_secs(40));
        fs::rename(&aside, file).unwrap();
    }
}

#[test]
fn ls_shows_each_block_with_its_state_and_holder() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    assert_eq!(shared.json(&["store", "ls", "--all"]).len(), 0);
    let before = unix_ms();
    shared.print(&["generate"]);
    let object = shared.json(&["store", "ls", "--all"]).remove(0);
    assert_eq!(
        keys(&object),
        words(
            "block end end_node epoch first_node granted granted_unix_ms host instance \
             reason state",
        )
    );
    assert_eq!((&object["block"], &object["epoch"]), (&0.into(), &1.into()));
    assert_eq!(object["state"], "released");
    assert!((before..=unix_ms()).contains(&object["granted_unix_ms"].as_u64().unwrap()));
    assert!(object["instance"].as_str().unwrap().parse::<u32>().is_ok());
    // Without --all there is nothing to list, and that is said.
    let output = succeed(shared.home.run(&shared.args(&["store", "ls"])));
    assert_eq!(stdout(&output).lines().count(), 1);
    let said = stderr(&output);
    assert_says(&said, &["no block is held; --all lists the 1 that were"]);
    let table = shared.print(&["store", "ls", "--all"]);
    let lines: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines[0],
        [
            "block", "nodes", "epoch", "end", "state", "leased", "holder"
        ]
    );
    let end = object["end"]["time"].as_str().unwrap();
    assert_eq!(lines[1][..5], ["0", "0..32", "1", end, "released"]);
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn raise_floor_tells_the_old_and_the_new_and_never_goes_back() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    let bump = |to: &[&str]| {
        let object = shared
            .json(&[&["store", "raise-floor"], to].concat())
            .remove(0);
        assert_eq!(keys(&object), ["namespace", "new_floor", "old_floor"]);
        ["old_floor", "new_floor"].map(|key| object[key]["tick"].as_u64().unwrap())
    };
    let [new, _] = bump(&["--to-tick", "5"]);
    assert_eq!(
        bump(&["--to-tick", &(new + 10).to_string()]),
        [new, new + 10]
    );
    assert_eq!(bump(&["--to-tick", "5"]), [new + 10, new + 10]);
    let [old, over] = bump(&["--over-lost-grants"]);
    assert_eq!(old, new + 10);
    // Horizon and failover of a shared store, in seconds.
    assert!((new + 721..new + 760).contains(&over), "{over} {new}");
    let table = shared.print(&["store", "raise-floor", "--to-tick", "5"]);
    assert_eq!(row(&table, "old floor"), row(&table, "new floor"));
    assert!(row(&table, "new floor").ends_with(&format!("(tick {over})")));
    let message = shared.refuse(&["store", "raise-floor", "--to-tick", "1073741824"]);
    assert!(message.contains("1073741823"), "{message}");
}

#[test]
fn a_floor_far_ahead_must_be_forced() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    let before = shared.json(&["store", "check"]).remove(0);
    // A day, of seconds.
    let far = before["floor"]["tick"].as_u64().unwrap() + 86_400;
    let tick = far.to_string();
    let message = shared.refuse(&["store", "raise-floor", "--to-tick", &tick]);
    for part in [&*tick, "--force", "nothing would be granted for 85", "Z"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    assert_eq!(
        shared.json(&["store", "check"])[0]["floor"],
        before["floor"]
    );

    for args in [
        &["--over-lost-grants", "--force"][..],
        &["--force"],
        &["--to-tick", "5", "--over-lost-grants"],
    ] {
        let args = [&["store", "raise-floor"], args].concat();
        let output = shared.home.run(&shared.args(&args));
        assert_eq!(output.status.code(), Some(2));
    }
    let bumped = shared.json(&["store", "raise-floor", "--to-tick", &tick, "--force"]);
    assert_eq!(bumped[0]["new_floor"]["tick"], far);
    let message = shared.refuse(&["generate", "-n", "1"]);
    assert!(message.contains("leases begin in 23.8 h"), "{message}");
}

#[test]
fn release_frees_a_block_and_leaves_its_mark() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    shared.print(&["generate", "-n", "10"]);
    let end = |objects: &[Object]| objects[0]["end"]["tick"].as_u64().unwrap();
    let before = shared.json(&["store", "ls", "--all"]);
    let object = shared
        .json(&["store", "release", "--block", "0", "--epoch", "1"])
        .remove(0);
    assert_eq!(keys(&object), ["block", "epoch", "namespace", "released"]);
    assert_eq!(object["released"], true);
    assert_eq!(end(&shared.json(&["store", "ls", "--all"])), end(&before));
    let table = shared.print(&["store", "release", "--block", "0", "--epoch", "1"]);
    assert_eq!(row(&table, "state"), "released");
    for (block, epoch) in [("0", "2"), ("7", "1")] {
        let args = ["store", "release", "--block", block, "--epoch", epoch];
        let message = shared.refuse(&args);
        assert!(message.contains(&format!("block {block}")), "{message}");
    }
    for (block, why) in [
        ("7", "never leased block 7"),
        ("4096", "the blocks 0 to 4095"),
    ] {
        let args = ["store", "release", "--block", block, "--epoch", "1"];
        let message = shared.refuse(&args);
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_damaged_block_is_listed_and_repaired() {
    let shared = Shared::new();
    shared.print(&["store", "init", "--history", "new"]);
    shared.print(&["generate", "-n", "10"]);
    let raw = rusqlite::Connection::open(shared.home.file("shared.db")).unwrap();
    let sql = "UPDATE ringflake_block SET hwm_end = 9000000000000000000";
    assert_eq!(raw.execute(sql, []).unwrap(), 1);
    drop(raw);

    let reason = "its mark (hwm_end) is tick 9000000000000000000, where the layout has 1073741824";
    let check = shared.json(&["store", "check"]).remove(0);
    assert_eq!(check["quarantined"][0]["block"], 0);
    assert_eq!(check["quarantined"][0]["reason"], reason);
    assert_eq!(check["grants"], true);
    let table = shared.print(&["store", "check"]);
    assert_eq!(row(&table, "quarantined"), format!("block 0: {reason}"));
    let listed = shared.json(&["store", "ls"]).remove(0);
    assert_eq!(
        (&listed["block"], &listed["end_node"]),
        (&0.into(), &32.into())
    );
    assert_eq!(
        (&listed["state"], &listed["reason"]),
        (&"quarantined".into(), &reason.into())
    );
    assert!(listed["end"].is_null() && listed["epoch"].is_null());
    let table = shared.print(&["store", "ls"]);
    assert_says(&table, &["quarantined", reason]);
    // Other runs go on.
    shared.print(&["generate", "-n", "10"]);

    let repair = ["store", "repair", "--block", "0"];
    let object = shared.json(&repair).remove(0);
    assert_eq!(keys(&object), ["block", "end", "epoch", "namespace"]);
    let now = check["floor"]["tick"].as_u64().unwrap();
    let end = object["end"]["tick"].as_u64().unwrap();
    assert!((now + 721..now + 760).contains(&end), "{end} {now}");
    assert_eq!(object["epoch"], end);
    assert_eq!(
        shared.json(&["store", "check"])[0]["quarantined"],
        Value::Array(vec![])
    );
    let listed = shared.json(&["store", "ls", "--all"]).remove(0);
    assert_eq!(
        (&listed["end"], &listed["state"]),
        (&object["end"], &"released".into())
    );
    let message = shared.refuse(&repair);
    assert!(message.contains("block 0 is not quarantined"), "{message}");
}

#[test]
fn the_store_in_the_data_directory_can_be_looked_after() {
    let home = Home::new();
    for command in [
        &["check"][..],
        &["ls"],
        &["raise-floor", "--over-lost-grants"],
    ] {
        let message = fail(home.run(&[&["store"], command].concat()));
        assert!(message.contains("no secret"), "{message}");
        let message = fail(home.run(&[&["store"], command, &["--plain"]].concat()));
        assert_says(&message, &["store init --history new --data-dir"]);
    }
    assert!(!home.data_dir().exists());

    let ids = home.print(&["generate", "-n", "300000"]);
    assert_eq!(distinct(ids.lines()), 300_000);
    let table = home.print(&["store", "check"]);
    assert_eq!(row(&table, "limits"), "horizon 2m, failover 2s, skew 1s");
    assert!(
        row(&table, "blocks").starts_with("131072 of 1 nodes, "),
        "{table}"
    );
    assert!(row(&table, "blocks").ends_with(" 0 held"), "{table}");
    let listing = home.print(&["store", "ls", "--all"]);
    assert!(listing.lines().count() > 2, "{listing}");
    assert!(listing.lines().all(|line| line.len() <= 80), "{listing}");

    // One that was declared by hand begins where it is told.
    let args = words("store init --history unknown --plain --layout twitter");
    let asked_ms = unix_ms();
    home.print(&args);
    let message = fail(home.run(&args));
    assert!(message.contains("already"), "{message}");
    let ids = home.print(&[
        "generate", "--plain", "--layout", "twitter", "--format", "u64",
    ]);
    let parts = home.inspect(&["--plain", "--layout", "twitter", "--input", "u64"], &ids);
    // The limits of `store init`, whose horizon is longer.
    let ahead = |parts: &Parts| parts.unix_ms > asked_ms + 120_000;
    assert!(parts.iter().all(ahead), "{parts:?}");
}

#[test]
fn init_warns_of_limits_that_leave_a_gap() {
    let init = |horizon| {
        let shared = Shared::new();
        let args = ["store", "init", "--history", "new", "--horizon", horizon];
        stderr(&succeed(shared.home.run(&shared.args(&args))))
    };
    let said = init("20min");
    let told = "have no IDs for up to 8m 52s: give them a borrow limit of 13m 2s;";
    assert!(said.contains(told), "{said}");
    assert_eq!(init("11min"), "");
}

#[test]
fn no_password_is_ever_told() {
    let home = Home::new();
    for url in words(
        "postgres://me:hunter2@127.0.0.1:1/db mysql://me:hunter2@127.0.0.1:1/db \
         redis://:hunter2@127.0.0.1:1/0 etcd://me:hunter2@127.0.0.1:1 \
         zookeeper://me:hunter2@127.0.0.1:1 hunter2 sqlite://hunter2/x",
    ) {
        for command in [
            &["generate", "--wait", "0s"][..],
            &["verify", "--wait", "0s"],
            &["store", "check"],
            &["store", "init", "--history", "new"],
        ] {
            let place = ["--store", url, "--namespace", "orders", "--plain"];
            let output = home.run(&[command, &place].concat());
            assert!(!output.status.success());
            let said = stderr(&output);
            assert!(!said.is_empty() && !said.contains("hunter2"), "{said}");
            // As an argument in the wrong place, too.
            let output = home.run(&[command, &[url]].concat());
            assert_eq!(output.status.code(), Some(2));
            let said = stderr(&output);
            assert!(!url.contains('@') || !said.contains("hunter2"), "{said}");
            let mut command = home.command(command);
            let output = command.env("RINGFLAKE_STORE", url).output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            let said = stderr(&output);
            assert!(
                said.contains("--namespace") && !said.contains("hunter2"),
                "{said}"
            );
        }
    }
    assert!(!home.data_dir().exists());
}

#[cfg(feature = "redis")]
#[test]
fn a_password_on_the_command_line_is_warned_of_once() {
    let home = Home::new();
    let url = "redis://:hunter2@127.0.0.1:1";
    let check = ["store", "check", "--namespace", "orders", "--plain"];
    let warning = "others see the password";
    let said = stderr(&home.run(&[&check[..], &["--store", url]].concat()));
    assert_eq!(said.matches(warning).count(), 1, "{said}");

    let without = fail(home.run(&[&check[..], &["--store", "redis://127.0.0.1:1"]].concat()));
    let mut command = home.command(&check);
    let hidden = fail(command.env("RINGFLAKE_STORE", url).output().unwrap());
    for said in [without, hidden] {
        assert!(!said.contains(warning), "{said}");
    }
}

#[test]
fn help_documents_the_json() {
    let shared = Shared::new();
    for command in ["init", "check", "ls", "raise-floor", "release", "repair"] {
        let help = shared.home.print(&["store", command, "--help"]);
        assert!(help.contains("JSON"), "{help}");
    }
    shared.print(&["store", "init", "--history", "new"]);
    let help = shared.home.print(&["store", "check", "--help"]);
    for key in keys(&shared.json(&["store", "check"])[0]) {
        assert!(help.contains(key), "{key} is not in: {help}");
    }
    let help = shared.home.print(&["store", "init", "--help"]);
    assert!(help.contains("If in doubt it is unknown"), "{help}");
    fs::remove_file(&shared.secret).unwrap();
}
