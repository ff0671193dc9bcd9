//! The subcommands of `store`, and runs on stores that are named.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::home::{
    Home, ONE, OTHER, Parts, assert_flawless, distinct, fail, object, objects, row, stderr, stdout,
    succeed, unix_ms,
};
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
        let url = format!("sqlite:{}", home.path("shared.db"));
        let secret = home.write_secret("shared", ONE);
        Self { home, url, secret }
    }

    /// With a namespace that has no history.
    fn initialised() -> Self {
        let shared = Self::new();
        shared.print("store init --history new");
        shared
    }

    /// The line for this command on that namespace.
    fn line(&self, command: &str) -> String {
        let Self { url, secret, .. } = self;
        format!("{command} --store {url} --namespace orders --secret-file {secret}")
    }

    fn run(&self, command: &str) -> Output {
        self.home.run(self.line(command))
    }

    #[track_caller]
    fn print(&self, command: &str) -> String {
        self.home.print(self.line(command))
    }

    #[track_caller]
    fn refuse(&self, command: &str) -> String {
        self.home.refuse(self.line(command))
    }

    /// The objects that it prints, one a line.
    #[track_caller]
    fn list(&self, command: &str) -> Vec<Value> {
        objects(&self.print(&format!("{command} --format json")))
    }

    /// The only object that it prints.
    #[track_caller]
    fn object(&self, command: &str) -> Value {
        object(&self.print(&format!("{command} --format json")))
    }
}

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(|key| &**key)
        .collect()
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn init_makes_a_namespace_once_and_asks_for_its_history() {
    let shared = Shared::new();
    for (history, expected) in [
        ("new", 0..1),
        ("unused", 0..1),
        ("unknown", 355_000..362_000),
    ] {
        let url = &shared.url;
        let before = unix_ms();
        let init = format!(
            "store init --history {history} --store {url} --namespace by-{history} --plain \
             --horizon 5min --skew 2s --format json"
        );
        let mut object = object(&shared.home.print(&init));
        let after = unix_ms();
        let floor = object["floor"].take();
        assert_eq!(number(&floor["tick"]) == 0, history == "unused", "{floor}");
        // Ahead of the moment of the command, which lies between these two.
        let ahead_of = |moment| number(&floor["unix_ms"]).saturating_sub(moment);
        let (least, most) = (ahead_of(after), ahead_of(before));
        assert!(
            expected.start <= most && least < expected.end,
            "{least} to {most}"
        );
        assert_eq!(
            object,
            json!({
                "namespace": format!("by-{history}"),
                "history": history,
                "layout": "30/17/17@2024-10-27T03:33:20Z/1s",
                "blocks": 4096,
                "block_nodes": 32,
                "floor": null,
                "horizon_ms": 300_000,
                "failover_ms": 60_000,
                "skew_limit_ms": 2000,
            })
        );
        assert_says(&shared.home.refuse(&init), &["already"]);
    }
    let message = shared.refuse("store init --history new --skew 0s");
    assert_says(&message, &["must be 1"]);
    let table = shared.print("store init --history new --block-bits 3");
    assert_eq!(row(&table, "blocks"), "16384 of 8 nodes");
    assert_eq!(row(&table, "limits"), "horizon 11m, failover 1m, skew 5s");
    assert!(row(&table, "floor").contains("Z (tick "), "{table}");
}

#[test]
fn runs_on_a_named_store_share_its_namespace() {
    let shared = Shared::new();
    let message = shared.refuse("generate");
    assert_says(
        &message,
        &["'ringflake store init --history new --store URL --namespace orders"],
    );
    shared.print("store init --history new");
    let count = short_or_long(20_000, 100_000);
    let ids = ["", "--blocks 3 --lease-duration 2min"]
        .map(|options| shared.print(&format!("generate -n {count} {options}")))
        .concat();
    assert_eq!(distinct(ids.lines()), 2 * count);
    let held = shared.list("store ls --all");
    assert_eq!(held.len(), 4);
    let nodes = held.iter().map(|object| {
        let [first, end] = ["first_node", "end_node"].map(|key| number(&object[key]));
        assert_eq!(end - first, 32);
        first..end
    });
    let nodes: Vec<_> = nodes.collect();
    let secret = format!("--secret-file {}", shared.secret);
    for Parts { node, .. } in shared.home.inspect(&secret, &ids) {
        assert!(nodes.iter().any(|held| held.contains(&node)), "{node}");
    }
    assert_flawless(&shared.print("verify -n 100000 --threads 2"));

    // By the environment, and without a data directory.
    let line = format!("generate --namespace orders {secret}");
    let output = shared.home.run_with(&line, "RINGFLAKE_STORE", &shared.url);
    assert_eq!(stdout(&succeed(output)).lines().count(), 10);
    assert!(!shared.home.data_dir().exists());
}

#[test]
fn a_namespace_refuses_another_secret_layout_or_block_size() {
    let shared = Shared::initialised();
    let home = &shared.home;
    let other = home.write_secret("other", OTHER);
    let place = format!("--store {} --namespace orders", shared.url);
    for command in ["generate", "verify", "store check", "store ls"] {
        for secret in [&*format!("--secret-file {other}"), "--plain"] {
            let message = home.refuse(format!("{command} {place} {secret}"));
            assert_says(&message, &["the secret and ID width with fingerprint"]);
        }
        for wrong in ["--layout twitter", "--block-bits 4"] {
            let message = shared.refuse(&format!("{command} {wrong}"));
            assert_says(&message, &["--layout and --block-bits", "30/17/17"]);
        }
    }
    // There the secret is not one to be made.
    let message = home.refuse(format!("generate {place}"));
    assert_says(&message, &["--secret-file"]);
    assert!(!home.data_dir().exists());
}

#[test]
fn check_tells_how_a_store_stands() {
    let shared = Shared::new();
    assert_says(&shared.refuse("store check"), &["store init"]);
    shared.print("store init --history new");
    shared.print("generate");
    let object = shared.object("store check");
    assert_eq!(
        keys(&object),
        words(
            "alarms block_nodes blocks durability durability_reason failover_ms floor \
             floor_ahead_ms granted_blocks grants held_blocks history_lost horizon_ms \
             incarnation layout namespace quarantined recorded_incarnation refusals \
             skew_limit_ms skew_ms store writes",
        )
    );
    let help = shared.home.print("store check --help");
    assert_says(&help, &keys(&object));
    for (key, expected) in [
        ("store", json!(shared.url)),
        ("granted_blocks", json!(1)),
        ("held_blocks", json!(0)),
        ("writes", json!("accepted")),
        ("grants", json!(true)),
        ("history_lost", json!(false)),
        ("refusals", json!([])),
        ("alarms", json!([])),
        ("floor_ahead_ms", json!(0)),
        ("incarnation", object["recorded_incarnation"].clone()),
    ] {
        assert_eq!(object[key], expected, "{key}");
    }
    // A busy machine may stop the command between the two clocks that it compares.
    eventually("the clocks agree", || {
        number(&shared.object("store check")["skew_ms"]) < 1000
    });
    let table = shared.print("store check");
    assert_eq!(row(&table, "store"), shared.url);
    assert_eq!(
        row(&table, "blocks"),
        "4096 of 32 nodes, 1 granted so far, 0 held"
    );
    assert_eq!(row(&table, "writes"), "accepted");
    assert_eq!(row(&table, "leases"), "granted");

    // What refuses leases fails the check.
    let floor = number(&object["floor"]["tick"]) + 100_000;
    shared.print(&format!("store raise-floor --to-tick {floor} --force"));
    let check = shared.run("store check");
    assert_eq!(check.status.code(), Some(1));
    assert_says(&stderr(&check), &["raised over grants"]);
    assert_eq!(row(&stdout(&check), "leases"), "refused");
    let message = shared.refuse("generate --wait 1s");
    assert_says(&message, &["no grant is possible for the next 1 day 3h"]);
}

#[test]
fn a_run_whose_store_is_gone_ends_with_its_leases() {
    let shared = Shared::new();
    // Leases reach no further than three seconds.
    shared.print("store init --history new --horizon 3s --failover 2s --skew 1s");
    let file = shared.home.file("shared.db");
    // Both at once, as both wait: for long enough that a lease which comes late on a busy
    // machine does not end them before.
    let commands = ["generate -n 1000000000000", "verify --seconds 600"];
    let runs = commands.map(|command| {
        let line = shared.line(&format!("{command} --wait 10s"));
        let mut run = shared.home.command(line);
        run.stdout(Stdio::null()).stderr(Stdio::piped());
        run.spawn().unwrap()
    });
    for run in &runs {
        // It is at work when it has a block.
        let instance = run.id().to_string();
        let is_its = |object: &Value| object["instance"] == *instance;
        eventually("it has a block", || {
            shared.list("store ls").iter().any(is_its)
        });
    }
    fs::rename(&file, shared.home.file("aside")).unwrap();
    for run in runs {
        let message = fail(run.wait_with_output().unwrap());
        assert_says(
            &message,
            &["no lease was granted for", "has no namespace \"orders\""],
        );
    }
}

#[test]
fn ls_shows_each_block_with_its_state_and_holder() {
    let shared = Shared::initialised();
    assert_eq!(shared.list("store ls --all").len(), 0);
    let before = unix_ms();
    shared.print("generate");
    let object = shared.object("store ls --all");
    assert_eq!(
        keys(&object),
        words(
            "block end end_node epoch first_node granted granted_unix_ms host instance \
             reason state",
        )
    );
    assert_eq!((&object["block"], &object["epoch"]), (&0.into(), &1.into()));
    assert_eq!(object["state"], "released");
    assert!((before..=unix_ms()).contains(&number(&object["granted_unix_ms"])));
    assert!(object["instance"].as_str().unwrap().parse::<u32>().is_ok());
    // Without --all there is nothing to list, and that is said.
    let output = succeed(shared.run("store ls"));
    assert_eq!(stdout(&output).lines().count(), 1);
    let said = stderr(&output);
    assert_says(&said, &["no block is held; --all lists the 1 that were"]);
    let table = shared.print("store ls --all");
    let lines: Vec<_> = table.lines().map(words).collect();
    let titles = "block nodes epoch end state leased holder";
    assert_eq!(lines[0], words(titles));
    let end = object["end"]["time"].as_str().unwrap();
    assert_eq!(lines[1][..5], ["0", "0..32", "1", end, "released"]);
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn raise_floor_tells_the_old_and_the_new_and_never_goes_back() {
    let shared = Shared::initialised();
    let raise = |to: &str| {
        let object = shared.object(&format!("store raise-floor {to}"));
        assert_eq!(keys(&object), ["namespace", "new_floor", "old_floor"]);
        ["old_floor", "new_floor"].map(|key| number(&object[key]["tick"]))
    };
    let [new, _] = raise("--to-tick 5");
    let further = new + 10;
    assert_eq!(raise(&format!("--to-tick {further}")), [new, further]);
    assert_eq!(raise("--to-tick 5"), [further, further]);
    let [old, over] = raise("--over-lost-grants");
    assert_eq!(old, further);
    // Horizon and failover of a shared store, in seconds.
    assert!((new + 721..new + 760).contains(&over), "{over} {new}");
    let table = shared.print("store raise-floor --to-tick 5");
    assert_eq!(row(&table, "old floor"), row(&table, "new floor"));
    assert!(row(&table, "new floor").ends_with(&format!("(tick {over})")));
    let message = shared.refuse("store raise-floor --to-tick 1073741824");
    assert_says(&message, &["1073741823"]);
}

#[test]
fn a_floor_far_ahead_must_be_forced() {
    let shared = Shared::initialised();
    let before = shared.object("store check")["floor"].take();
    // A day, of seconds.
    let far = number(&before["tick"]) + 86_400;
    let raise = format!("store raise-floor --to-tick {far}");
    let message = shared.refuse(&raise);
    assert_says(
        &message,
        &[&far.to_string(), "--force", "stop all grants for 23h", "Z"],
    );
    assert_eq!(shared.object("store check")["floor"], before);

    let raised = shared.object(&format!("{raise} --force"));
    assert_eq!(raised["new_floor"]["tick"], far);
    let message = shared.refuse("generate -n 1");
    assert_says(&message, &["no grant is possible for the next 23h "]);
}

#[test]
fn release_frees_a_block_and_leaves_its_mark() {
    let shared = Shared::initialised();
    shared.print("generate");
    let end = || shared.object("store ls --all")["end"].take();
    let before = end();
    assert_eq!(
        shared.object("store release --block 0 --epoch 1"),
        json!({ "namespace": "orders", "block": 0, "epoch": 1, "released": true })
    );
    assert_eq!(end(), before);
    let table = shared.print("store release --block 0 --epoch 1");
    assert_eq!(row(&table, "state"), "released");
    for (block, epoch, why) in [
        (0, 2, "its last grant has epoch 1, not 2"),
        (7, 1, "the store records no grant of it"),
        (4096, 1, "block must be 0 to 4095"),
    ] {
        let release = format!("store release --block {block} --epoch {epoch}");
        assert_says(&shared.refuse(&release), &[why]);
    }
}

#[test]
fn a_damaged_block_is_listed_and_repaired() {
    let shared = Shared::initialised();
    shared.print("generate");
    let raw = rusqlite::Connection::open(shared.home.file("shared.db")).unwrap();
    let sql = "UPDATE ringflake SET value = json_set(value, '$.hwm_end', '09000000000000000000') \
               WHERE rank IS NOT NULL";
    assert_eq!(raw.execute(sql, []).unwrap(), 1);
    drop(raw);

    let reason = "its mark is tick 9000000000000000000, and the layout has 1073741824 ticks";
    let check = shared.object("store check");
    let quarantined = json!([{ "block": 0, "reason": reason }]);
    assert_eq!(check["quarantined"], quarantined);
    assert_eq!(check["grants"], true);
    let table = shared.print("store check");
    assert_eq!(row(&table, "quarantined"), format!("block 0: {reason}"));
    let listed = shared.object("store ls");
    for (key, expected) in [
        ("block", json!(0)),
        ("end_node", json!(32)),
        ("state", json!("quarantined")),
        ("reason", json!(reason)),
        ("end", json!(null)),
        ("epoch", json!(null)),
    ] {
        assert_eq!(listed[key], expected, "{key}");
    }
    let table = shared.print("store ls");
    assert_says(&table, &["quarantined", reason]);
    // Other runs go on.
    shared.print("generate");

    let repair = "store repair --block 0";
    let object = shared.object(repair);
    assert_eq!(keys(&object), ["block", "end", "epoch", "namespace"]);
    let now = number(&check["floor"]["tick"]);
    let end = number(&object["end"]["tick"]);
    assert!((now + 721..now + 760).contains(&end), "{end} {now}");
    assert_eq!(object["epoch"], end);
    assert_eq!(shared.object("store check")["quarantined"], json!([]));
    let listed = shared.list("store ls --all").remove(0);
    assert_eq!(
        (&listed["end"], &listed["state"]),
        (&object["end"], &"released".into())
    );
    let message = shared.refuse(repair);
    assert_says(&message, &["block 0 is not quarantined"]);
}

#[test]
fn the_store_in_the_data_directory_can_be_looked_after() {
    let home = Home::new();
    for command in ["check", "ls", "raise-floor --over-lost-grants"] {
        let message = home.refuse(format!("store {command}"));
        assert_says(&message, &["no secret"]);
        let message = home.refuse(format!("store {command} --plain"));
        assert_says(&message, &["store init --history new --data-dir"]);
    }
    assert!(!home.data_dir().exists());

    assert_eq!(distinct(home.generate("-n 300000")), 300_000);
    let table = home.print("store check");
    assert_eq!(row(&table, "limits"), "horizon 2m, failover 2s, skew 1s");
    let blocks = row(&table, "blocks");
    assert!(blocks.starts_with("131072 of 1 nodes, "), "{table}");
    assert!(blocks.ends_with(" 0 held"), "{table}");
    let listing = home.print("store ls --all");
    assert!(listing.lines().count() > 2, "{listing}");
    assert!(listing.lines().all(|line| line.len() <= 80), "{listing}");

    // One that was declared by hand begins where the command says.
    let twitter = "--plain --layout twitter";
    let init = format!("store init --history unknown {twitter}");
    let asked_ms = unix_ms();
    home.print(&init);
    assert_says(&home.refuse(&init), &["already"]);
    let ids = home.print(format!("generate --format u64 {twitter}"));
    let parts = home.inspect(format!("--input u64 {twitter}"), &ids);
    // The limits of `store init`, whose horizon is longer.
    let ahead = |parts: &Parts| parts.unix_ms > asked_ms + 120_000;
    assert!(parts.iter().all(ahead), "{parts:?}");
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
            "generate --wait 0s",
            "verify --wait 0s",
            "store check",
            "store init --history new",
        ] {
            let output = home.run(format!(
                "{command} --store {url} --namespace orders --plain"
            ));
            assert!(!output.status.success());
            let said = stderr(&output);
            assert!(!said.is_empty() && !said.contains("hunter2"), "{said}");
            // As an argument in the wrong place, too.
            let output = home.run(format!("{command} {url}"));
            assert_eq!(output.status.code(), Some(2));
            let said = stderr(&output);
            assert!(!url.contains('@') || !said.contains("hunter2"), "{said}");
            let output = home.run_with(command, "RINGFLAKE_STORE", url);
            assert_eq!(output.status.code(), Some(2));
            let said = stderr(&output);
            assert_says(&said, &["--namespace"]);
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    assert!(!home.data_dir().exists());
}

#[cfg(feature = "redis")]
#[test]
fn a_password_on_the_command_line_is_warned_of_once() {
    let home = Home::new();
    let url = "redis://:hunter2@127.0.0.1:1";
    let check = "store check --namespace orders --plain";
    let warning = "other users can see the password";
    let said = stderr(&home.run(format!("{check} --store {url}")));
    assert_eq!(said.matches(warning).count(), 1, "{said}");

    let without = home.refuse(format!("{check} --store redis://127.0.0.1:1"));
    let hidden = fail(home.run_with(check, "RINGFLAKE_STORE", url));
    for said in [without, hidden] {
        assert!(!said.contains(warning), "{said}");
    }
}
