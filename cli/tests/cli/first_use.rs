//! The record that a data directory keeps of its IDs.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use crate::home::{Home, assert_new, distinct, fail, object, row, stderr, stdout, succeed};
use ringflake_kit::tls::allow;
use ringflake_kit::{assert_says, cp, server};
use rusqlite::Connection;

#[test]
fn keygen_begins_the_record() {
    let home = Home::new();
    succeed(home.run("keygen"));
    assert_eq!(fs::read(home.data_dir().join("leases.db")).unwrap(), b"");
    let output = succeed(home.run("generate"));
    assert_eq!(stderr(&output), "");
    assert_new(&home.inspect("", &stdout(&output)));
}

#[test]
fn what_is_declared_by_hand_holds_for_one_namespace() {
    let home = Home::new();
    home.print("generate --plain --layout twitter");
    succeed(home.run("keygen"));
    fs::remove_file(home.data_dir().join("leases.db")).unwrap();
    home.print("store init --history new");
    let output = succeed(home.run("generate"));
    assert_eq!(stderr(&output), "");
    assert_new(&home.inspect("", &stdout(&output)));
    let output = succeed(home.run("generate --plain --layout twitter"));
    assert_says(&stderr(&output), &["no record"]);
}

#[test]
fn advice_for_a_secret_from_elsewhere_can_be_followed() {
    let home = Home::new();
    let file = home.path("ringflake.key");
    home.run(format!("keygen --out {file}"));
    // As the container beside this one, or the next.
    let other = home.path("other");
    let generate = format!("generate --data-dir {other} --secret-file {file}");
    let message = home.refuse(&generate);
    assert_says(&message, &[&file, &other]);
    follow(&home, &message);
    // IDs begin above those of a store with the default limits.
    let message = home.refuse(format!("{generate} --wait 0s"));
    assert_says(&message, &["no grant is possible for the next 1m"]);
}

#[test]
fn a_secret_makes_ids_from_leases_db_or_a_store_and_not_both() {
    let home = Home::new();
    let shared = format!(
        "--store sqlite:{} --namespace orders",
        home.path("shared.db")
    );
    let init = format!("store init --history new {shared}");
    let keygen = |name: &str| {
        let path = home.path(name);
        home.run(format!("keygen --out {path}"));
        format!("--secret-file {path}")
    };

    let here = keygen("here.key");
    home.print(format!("generate {here}"));
    let message = home.refuse(format!("{init} {here}"));
    assert_says(&message, &["keygen --out"]);
    assert!(!home.file("shared.db").exists());

    let there = keygen("there.key");
    home.print(format!("{init} {there}"));
    home.print(format!("generate {shared} {there}"));
    let message = home.refuse(format!("generate {there}"));
    assert_says(&message, &["if programs elsewhere use"]);
    // One that the store has refused was not given to it.
    let kept = keygen("kept.key");
    home.refuse(format!("generate {shared} {kept}"));
    home.print(format!("generate {kept}"));

    // A store that is leases.db is no other one.
    let check = object(&home.print(format!("store check --format json {here}")));
    let name = check["namespace"].as_str().unwrap();
    let leases = format!("sqlite:{}", home.path("data/leases.db"));
    home.print(format!(
        "generate --store {leases} --block-bits 0 --namespace {name} {here}"
    ));
}

/// As the runbook says under "Moving".
#[test]
fn a_data_directory_can_be_left_for_a_store() {
    let home = Home::new();
    let mut ids = home.generate("-n 100");
    let other = "generate -n 100 --namespace other";
    let first = stdout(&succeed(home.run(other)));
    let store = format!(
        "--store sqlite:{} --namespace orders",
        home.path("shared.db")
    );
    let limits = "--history unknown --horizon 2min --failover 2s --skew 1s";
    let refused = home.refuse(format!("store init {store} {limits}"));
    let moved = "set RINGFLAKE_DATA_DIR to the moved directory for their programs";
    assert_says(&refused, &["move the directory away", moved]);
    fs::rename(home.data_dir(), home.file("old")).unwrap();
    let more = succeed(home.run_with(other, "RINGFLAKE_DATA_DIR", &home.path("old")));
    // No secret was made.
    assert_eq!(stderr(&more), "");
    assert_eq!(distinct((first + &stdout(&more)).lines()), 200);
    let secret = format!("--secret-file {}", home.path("old/secret"));
    home.print(format!("store init {store} {limits} {secret}"));
    ids.extend(home.generate(&format!("-n 100 {store} --wait 2min {secret}")));
    assert_eq!(distinct(ids), 200);
}

/// Runs the command that a message names between quotes, as a shell would.
fn follow(home: &Home, message: &str) {
    let command = message
        .split('\'')
        .find_map(|part| part.strip_prefix("ringflake "));
    home.print(command.unwrap_or_else(|| panic!("no command in {message}")));
}

#[test]
fn a_directory_put_back_with_its_attributes_is_noticed_and_makes_no_duplicate() {
    let home = Home::new();
    let [data, backup] = ["data", "backup"].map(|name| home.path(name));
    let mut ids = home.generate("-n 100");
    cp("-a", &data, &backup);
    ids.extend(home.generate("-n 100"));
    cp("-a", format!("{backup}/."), &data);
    let check = || stdout(&home.run("store check"));
    let noticed = check();
    assert_ne!(row(&noticed, "incarnation"), row(&noticed, "on record"));
    ids.extend(home.generate("-n 100"));
    assert_eq!(distinct(ids), 300);
    assert!(!check().contains("on record"));
}

#[test]
fn advice_for_a_floor_far_ahead_can_be_followed() {
    let home = Home::new();
    let mut ids = home.generate("-n 100");
    home.print("store raise-floor --to-tick 1000000000 --force");
    let message = home.refuse("generate");
    fs::rename(home.data_dir(), home.file("old")).unwrap();
    fs::create_dir(home.data_dir()).unwrap();
    fs::copy(home.file("old/secret"), home.file("data/secret")).unwrap();
    follow(&home, &message);
    ids.extend(home.generate("-n 100 --wait 2min"));
    assert_eq!(distinct(ids), 200);
}

#[test]
fn a_locked_directory_is_waited_for_as_long_as_asked() {
    let home = Home::new();
    let refused = |options| {
        let began = Instant::now();
        let output = home.run(format!("generate --wait 5s {options}"));
        let (took, said) = (began.elapsed(), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{said}");
        let bound = Duration::from_secs(25);
        assert!(took < bound, "{took:?}, the default is 30 s");
        said
    };
    fs::create_dir(home.data_dir()).unwrap();
    let lock = File::create(home.file("data/leases.db.lock")).unwrap();
    lock.lock().unwrap();
    // With a secret to make, and without.
    for options in ["", "--plain"] {
        let expected = [
            "waiting: ",
            "another process has kept",
            "let that process go on",
        ];
        assert_says(&refused(options), &expected);
    }
    lock.unlock().unwrap();
    home.print("generate");
    let store = Connection::open(home.file("data/leases.db")).unwrap();
    store.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_says(&refused(""), &["database is locked"]);
}

#[test]
#[cfg(target_os = "linux")]
fn root_makes_nothing_in_a_directory_of_another_user() {
    const NOBODY: u32 = 65_534;
    let home = Home::new();
    let data = home.path("data");
    fs::create_dir(&data).unwrap();
    let is_root = chown(&data, Some(NOBODY), Some(NOBODY)).is_ok();
    if !server::has(is_root, "only root can give a directory away") {
        return;
    }
    let upstream = format!("sqlite:{}", home.path("upstream.db"));
    let init = "store init --history new --plain --namespace orders";
    home.print(format!("{init} --store {upstream}"));
    let tier = format!("tier:{data}/tier.db?upstream={upstream}");
    for line in [
        "generate",
        "generate --plain",
        "generate --namespace orders",
        &format!("generate --data-dir {data}/a/b"),
        "keygen",
        &format!("keygen --out {data}/a.key"),
        init,
        &format!("{init} --store sqlite:{data}/a.db"),
        &format!("generate --wait 0s --plain --namespace orders --store {tier}"),
    ] {
        let said = home.refuse(line);
        assert!(said.contains("-u '#65534'"), "{line}: {said}");
        let made: Vec<_> = fs::read_dir(&data).unwrap().collect();
        assert!(made.is_empty(), "{line}: {made:?}");
    }
    allow(&home.file("."), 0o755);
    let mut command = home.command("generate");
    succeed(command.uid(NOBODY).gid(NOBODY).output().unwrap());
    // In use by that user now.
    for line in ["generate", "inspect 7", "generate --namespace orders"] {
        let said = home.refuse(line);
        assert!(said.contains("-u '#65534'"), "{line}: {said}");
        for file in fs::read_dir(&data).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().uid(), NOBODY, "{line}: {file:?}");
        }
    }
}

#[test]
fn nothing_is_made_in_a_directory_that_others_can_write() {
    let home = Home::new();
    let data = home.file("data");
    fs::create_dir(&data).unwrap();
    allow(&data, 0o777);
    for line in ["generate", "generate --namespace orders", "keygen"] {
        assert_says(&home.refuse(line), &["can be written by everybody"]);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "{line}");
    }
}

#[test]
fn advice_for_a_copied_directory_can_be_followed() {
    let home = Home::new();
    home.print("generate");
    let copied = home.path("copied");
    cp("-r", home.path("data"), &copied);

    let check = home.run(format!("store check --data-dir {copied}"));
    assert_eq!(check.status.code(), Some(1));
    assert_says(&stderr(&check), &["copied"]);
    let generate = format!("generate --data-dir {copied}");
    let message = home.refuse(&generate);
    // Another namespace is not on record, and might be in use in both.
    let other = format!("{generate} --plain --layout twitter");
    follow(&home, &home.refuse(&other));
    home.print(&generate);
    // Nothing else has to be done for the rest.
    follow(&home, &message);
    home.print(&other);
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_in_memory_is_refused_unless_that_is_accepted() {
    let memory = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let data_dir = memory.path().join("data");
    let home = Home::new();
    let generate = |accept: Option<&str>, options: &str| {
        let line = format!("generate --data-dir {} {options}", data_dir.display());
        let mut command = home.command(line);
        command.env_remove("RINGFLAKE_BEST_EFFORT");
        command.envs(accept.map(|value| ("RINGFLAKE_BEST_EFFORT", value)));
        command.output().unwrap()
    };
    for refused in [None, Some(""), Some("0")] {
        for options in ["--plain", ""] {
            let message = fail(generate(refused, options));
            assert_says(&message, &["tmpfs", "--best-effort"]);
        }
    }
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 0);
    succeed(generate(Some("1"), "--plain"));
    succeed(generate(None, "--plain --best-effort"));
    let unclear = generate(Some("yes"), "--plain");
    assert_eq!(unclear.status.code(), Some(2));
    assert_says(&stderr(&unclear), &["RINGFLAKE_BEST_EFFORT"]);
}
