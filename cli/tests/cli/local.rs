//! Several secrets and namespaces in one data directory, which programs share.

use std::collections::HashSet;
use std::fs;
use std::thread;

use ringflake::lease::{
    Acquire, Fingerprint, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore,
};
use ringflake::local::DataDir;
use ringflake::{CachedGenerator, Clock, Layout, Local, Secret, SystemClock};
use serde_json::Value;

use crate::home::{
    Home, Parts, distinct, fail, lie_above_all, mode, stderr, stdout, succeed, unix_ms,
};
use ringflake_kit::assert_says;

const LAYOUT: Layout = Layout::RANDFLAKE;

/// What the namespace of the layout is called.
const NAMELESS: &str = "30-17-17_2024-10-27t03.33.20z-1s";

const ONE: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "ffeeddccbbaa99887766554433221100";

fn program(home: &Home) -> CachedGenerator {
    let local = Local::new("orders").in_directory(home.data_dir());
    CachedGenerator::builder(LAYOUT)
        .local(local.accept_best_effort(true))
        .capacity(64)
        .build()
        .unwrap()
}

/// The namespace that these arguments lead to.
fn namespace(home: &Home, args: &[&str]) -> String {
    let args = [&["store", "check", "--format", "json"], args].concat();
    // After a loss the status is that of an alarm.
    let said = stdout(&home.run(&args));
    let object: Value = serde_json::from_str(&said).unwrap();
    object["namespace"].as_str().unwrap().to_owned()
}

fn is_new(parts: &[Parts]) -> bool {
    parts.iter().all(|parts| parts.unix_ms <= unix_ms())
}

#[test]
fn a_program_and_the_command_line_share_a_namespace() {
    let home = Home::new();
    let orders = ["--namespace", "orders"];
    let generate = [&["generate", "-n", "100"], &orders[..]].concat();
    let first = succeed(home.run(&generate));
    let secret = home.data_dir().join("orders.secret");
    let said = stderr(&first);
    assert!(said.contains(secret.to_str().unwrap()), "{said}");
    assert_eq!(mode(&secret), 0o600);

    let ids = program(&home);
    let own: Vec<_> = (0..100).map(|_| ids.take().unwrap()).collect();
    let mut lines: Vec<_> = own.iter().map(ToString::to_string).collect();
    for output in [first, succeed(home.run(&generate))] {
        lines.extend(stdout(&output).lines().map(str::to_owned));
    }
    let inspect = [&["--input", "base32hex"], &orders[..]].concat();
    let parts = home.inspect(&inspect, &lines.join("\n"));
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 300);
    assert!(is_new(&parts));
    for (id, parts) in own.iter().zip(&parts) {
        let known = ids.inspect(*id).unwrap();
        assert_eq!(parts.cell(), (known.unix_ms, known.node, known.sequence));
    }
    let held = home.print(&[&["store", "ls", "--all", "--format", "json"], &orders[..]].concat());
    assert_eq!(held.lines().count(), 3, "{held}");
    assert_eq!(namespace(&home, &orders), "orders");
    home.print(&[&["verify", "-n", "1000"], &orders[..]].concat());
    // Plain ones are in a namespace of their own.
    let plain = [&orders[..], &["--plain"]].concat();
    home.print(&[&["generate"], &plain[..]].concat());
    assert_eq!(namespace(&home, &plain), "orders-plain");
    assert!(!home.data_dir().join("secret").exists());
}

#[test]
fn a_namespace_that_was_never_used_is_named_and_not_made() {
    let home = Home::new();
    for command in [&["inspect", "5"][..], &["store", "ls"], &["store", "check"]] {
        let message = fail(home.run(&[command, &["--namespace", "orders"]].concat()));
        assert_says(&message, &["orders.secret", "ringflake generate"]);
    }
    assert!(!home.data_dir().exists());
    // By hand, as generate would.
    let init = ["store", "init", "--history", "new", "--namespace", "orders"];
    succeed(home.run(&init));
    assert!(fail(home.run(&init)).contains("already"));
    let ids = program(&home);
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    assert!(parts.unix_ms <= unix_ms(), "{parts:?}");
}

#[test]
fn another_secret_for_a_namespace_is_refused_by_both_names() {
    let home = Home::new();
    let other = home.write_secret("other.key", OTHER);
    let orders = ["--namespace", "orders", "--secret-file", &other];
    let kept = home.data_dir().join("orders.secret");
    let refuse = |command: &[&str]| {
        let message = fail(home.run(&[command, &orders].concat()));
        assert!(
            message.contains(&other) && message.contains(kept.to_str().unwrap()),
            "{message}"
        );
    };
    refuse(&["generate"]);
    assert!(!home.data_dir().exists());
    home.print(&["generate", "--namespace", "orders"]);
    for command in [
        &["generate"][..],
        &["inspect", "5"],
        &["store", "ls"],
        &["store", "check"],
        &["store", "init", "--history", "new"],
    ] {
        refuse(command);
    }
    let mut command = home.command(&["generate", "--namespace", "orders"]);
    let by_variable = command
        .env("RINGFLAKE_SECRET_FILE", &other)
        .output()
        .unwrap();
    assert!(fail(by_variable).contains("RINGFLAKE_SECRET_FILE"));
    // Its own, under whatever name, is none.
    let copy = home.write_secret("copy", fs::read(&kept).unwrap());
    home.print(&["generate", "--namespace", "orders", "--secret-file", &copy]);

    // In a store that is shared, the one that was meant is named if it is known.
    let url = format!("sqlite:{}", home.file("shared.db").display());
    let place = ["--store", &url, "--namespace", "orders"];
    let with = |command: &[&str], file: &str| {
        let args = [command, &place, &["--secret-file", file]].concat();
        home.run(&args)
    };
    succeed(home.run(&["keygen"]));
    let meant = home.data_dir().join("secret");
    let meant = meant.to_str().unwrap();
    succeed(with(&["store", "init", "--history", "new"], meant));
    let message = fail(with(&["generate"], &other));
    assert_says(&message, &[&other, meant]);
}

#[test]
fn secrets_in_one_directory_are_told_apart_for_good() {
    let home = Home::new();
    let files = [("one", ONE), ("other", OTHER)].map(|(name, hex)| home.keep_secret(name, hex));
    let kept = home.print(&["generate"]);
    assert_eq!(namespace(&home, &[]), NAMELESS);
    let mut known = vec![NAMELESS.to_owned()];
    for file in &files {
        let secret = ["--secret-file", file];
        let generate = [&["generate", "-n", "100"], &secret[..]].concat();
        let first = home.print(&generate);
        let name = namespace(&home, &secret);
        assert!(name.starts_with(&format!("{NAMELESS}-")), "{name}");
        let second = home.print(&generate);
        assert_eq!(namespace(&home, &secret), name);
        let inspect = [&["--input", "base32hex"], &secret[..]].concat();
        let parts = home.inspect(&inspect, &[first, second].concat());
        assert_eq!(distinct(parts.iter().map(Parts::cell)), 200);
        assert!(is_new(&parts));
        known.push(name);
    }
    assert_eq!(distinct(&known), 3);

    // Put in the place of the one that was kept, a secret stays where it was.
    fs::copy(&files[0], home.data_dir().join("secret")).unwrap();
    assert_eq!(namespace(&home, &[]), known[1]);
    let more = home.print(&["generate"]);
    assert_eq!(distinct(kept.lines().chain(more.lines())), 20);
    // And so does one that is given under the name of another namespace.
    program(&home);
    let orders = home.data_dir().join("orders.secret");
    let given = ["--secret-file", orders.to_str().unwrap()];
    home.print(&[&["generate"], &given[..]].concat());
    assert_eq!(namespace(&home, &given), "orders");
}

/// A directory as it was before secrets were told apart: the layout's namespace
/// belongs to whichever secret was there first.
#[test]
fn a_directory_from_before_goes_on_where_it_was() {
    let home = Home::new();
    let old = home.write_secret("old", ONE);
    let directory = DataDir::new(home.data_dir());
    directory.keep_secret().unwrap();
    let secret = Secret::from_hex(ONE).unwrap();
    let space = Namespace::new(NAMELESS, &LAYOUT, Fingerprint::of(&secret)).unwrap();
    let space = space.with_block_bits(0).unwrap();
    let options = OpenOptions::new().accept_best_effort(true);
    let mut store = SqliteStore::new(directory.leases(), &options).unwrap();
    let now = SystemClock.unix_ms();
    let limits = Local::limits(&LAYOUT);
    store
        .init(&space, &Init::new(History::New, now).with_limits(limits))
        .unwrap();
    // Somebody has issued all of these, and is still there.
    let grants = store.acquire(&space, &Acquire::new(100, 120, now)).unwrap();
    let issued: HashSet<_> = grants.iter().map(|grant| grant.block.index()).collect();

    assert_eq!(namespace(&home, &["--secret-file", &old]), NAMELESS);
    for _ in 0..3 {
        let ids = home.print(&["generate", "--secret-file", &old]);
        let inspect = ["--input", "base32hex", "--secret-file", &old];
        for parts in home.inspect(&inspect, &ids) {
            assert!(!issued.contains(&parts.node), "{parts:?}");
        }
    }
    // The secret that is kept there was refused, and has its own now.
    home.print(&["generate"]);
    assert_ne!(namespace(&home, &[]), NAMELESS);
    assert_eq!(namespace(&home, &["--secret-file", &old]), NAMELESS);
}

#[test]
fn a_loss_is_one_of_every_secret() {
    // With extended attributes, as build directories have and memory may not.
    let disk = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = Home::new();
    let play = |emptied: bool| {
        let data_dir = disk.path().join(format!("emptied-{emptied}"));
        let at = ["--data-dir", data_dir.to_str().unwrap()];
        let other = home.write_secret("other.key", OTHER);
        let others = ["--secret-file", &other];
        let drawn = Secret::from_hex(OTHER).unwrap();
        DataDir::new(&data_dir).note_new_secret(&drawn).unwrap();
        home.print(&[&["generate"], &at[..]].concat());
        home.print(&[&["generate"], &at[..], &others].concat());
        let leases = data_dir.join("leases.db");
        if emptied {
            fs::write(&leases, "").unwrap();
        } else {
            fs::remove_file(&leases).unwrap();
        }
        // The other one is first now, and has the name that the first one had.
        for secret in [&others[..], &[]] {
            let asked_ms = unix_ms();
            let output = succeed(home.run(&[&["generate"], &at[..], secret].concat()));
            let said = stderr(&output);
            assert!(said.contains("no record"), "{emptied}: {said}");
            let inspect = [&["--input", "base32hex"], &at[..], secret].concat();
            let parts = home.inspect(&inspect, &stdout(&output));
            assert!(lie_above_all(&parts, asked_ms), "{parts:?}");
        }
        let name = namespace(&home, &[&at[..], &others].concat());
        assert_eq!(name, NAMELESS);
    };
    // Each waits for seconds, until what may have been granted before has passed.
    thread::scope(|scope| {
        scope.spawn(|| play(false));
        play(true);
    });
}
