//! The subcommands of `store`, and runs on stores that are named.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::home::{
    Home, ONE, OTHER, Parts, assert_flawless, distinct, fail, object, objects, row, stderr, stdout,
    succeed,
};
use ringflake_kit::tls::allow;
use ringflake_kit::{assert_says, eventually, short_or_long, unix_ms, words};

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

    #[track_caller]
    fn print(&self, command: &str) -> String {
        self.home.print(self.line(command))
    }

    #[track_caller]
    fn refuse(&self, command: &str) -> String {
        self.home.refuse(self.line(command))
    }

    #[track_caller]
    fn list(&self, command: &str) -> Vec<Value> {
        objects(&self.print(&format!("{command} --format json")))
    }

    #[track_caller]
    fn object(&self, command: &str) -> Value {
        object(&self.print(&format!("{command} --format json")))
    }
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_namespace_starts_where_its_history_allows() {
    let shared = Shared::new();
    // Milliseconds ahead of the command; at the epoch if no ID was ever issued.
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
        let floor = &object(&shared.home.print(&init))["floor"];
        let after = unix_ms();
        assert_eq!(number(&floor["tick"]) == 0, history == "unused", "{floor}");
        // Ahead of the moment of the command, which lies between these two.
        let ahead_of = |moment| number(&floor["unix_ms"]).saturating_sub(moment);
        let (least, most) = (ahead_of(after), ahead_of(before));
        assert!(
            expected.start <= most && least < expected.end,
            "{least} to {most}"
        );
    }
}

#[test]
fn a_floor_is_raised_over_all_that_may_be_lost() {
    let raised = Shared::initialised().object("store raise-floor --over-lost-grants");
    let [old, new] = ["old_floor", "new_floor"].map(|key| number(&raised[key]["tick"]));
    // Horizon and failover of a shared store, in seconds.
    assert!((old + 721..old + 760).contains(&new), "{new} {old}");
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
fn advice_keeps_the_options_of_the_command() {
    let home = Home::new();
    let other = format!("--data-dir {}", home.path("other"));
    home.print(format!("generate {other}"));
    let url = format!("sqlite:{}", home.path("shared.db"));
    let check = format!("store check {other} --store {url} --namespace orders --best-effort");
    let data = home.data_dir();
    let options = format!("orders {other} --best-effort'");
    assert_says(
        &home.refuse(check),
        &["--history new --store URL", &options],
    );

    let form = "--namespace orders --layout positive --id-width positive";
    let message = home.refuse(format!("inspect 5 {form}"));
    let command = format!("'ringflake generate --data-dir {} {form}'", data.display());
    assert_says(&message, &[&*command]);
}

#[test]
fn a_copy_behind_a_tier_is_adopted_by_its_own_url() {
    let shared = Shared::initialised();
    let home = &shared.home;
    fs::copy(home.file("shared.db"), home.file("copy.db")).unwrap();
    let upstream = format!("sqlite:{}", home.path("copy.db"));
    let tier = format!("tier:{}?upstream={upstream}", home.path("tier.db"));
    let words = format!(
        "--namespace orders --secret-file {} --wait 1s",
        shared.secret
    );
    let adopt = "'ringflake store raise-floor --over-lost-grants --all";
    let message = home.refuse(format!("generate --store {tier} {words}"));
    assert_says(
        &message,
        &[&format!(
            "{adopt} --store URL', with the URL after ?upstream="
        )],
    );
    let output = home.run_with(&format!("generate {words}"), "RINGFLAKE_STORE", &tier);
    let named = format!("{adopt}', with RINGFLAKE_STORE set to the URL after ?upstream=");
    assert_says(&fail(output), &[&*named]);

    home.print(format!(
        "store raise-floor --over-lost-grants --all --store {upstream}"
    ));
    let message = home.refuse(format!("generate --store {tier} {words}"));
    assert_says(&message, &["the floor was raised over grants"]);
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
fn the_directory_of_another_user_is_left_to_its_owner() {
    let home = Home::new();
    let data = home.data_dir();
    fs::create_dir(&data).unwrap();
    allow(data.parent().unwrap(), 0o755);
    allow(&data, 0o755);
    let mut generate = home.command("generate --plain");
    ringflake_kit::server::as_user(&mut generate, "nobody");
    let output = generate.output().unwrap();
    if output.status.success() {
        // Tests of other users than root have no other user.
        return;
    }
    let command = format!(
        "with sudo -E -u '#0' in front of it, and with --data-dir {}",
        data.display()
    );
    let said = fail(output);
    assert_says(&said, &["can't be created, written or locked", &command]);
}

/// `store check` detects it for any user.
#[test]
fn a_store_that_can_only_be_read_is_said_to_grant_nothing() {
    let shared = Shared::new();
    let plain = format!("--store {} --namespace orders --plain", shared.url);
    let Shared { home, .. } = &shared;
    home.print(format!("store init --history new {plain}"));
    let file = home.file("shared.db");
    allow(&file, 0o444);
    allow(file.parent().unwrap(), 0o755);
    let mut check = home.command(format!("store check {plain}"));
    ringflake_kit::server::as_user(&mut check, "nobody");
    let output = check.output().unwrap();
    let table = stdout(&output);
    assert_eq!(
        [row(&table, "writes"), row(&table, "leases")],
        ["failed", "refused"]
    );
    let said = fail(output);
    assert_says(&said, &["a test write failed", "may not write"]);
    assert_says(&said, &["permission to write"]);
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
