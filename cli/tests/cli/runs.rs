//! Runs that share a data directory, at once and one after another.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Duration;

use ringflake::Layout;

use crate::home::{Home, OTHER, Printing, distinct, signal, stderr, succeed};
use ringflake_kit::{assert_says, short_or_long, unix_ms};

#[test]
fn runs_one_after_another_share_no_id_and_keep_the_time() {
    let home = Home::new();
    for name in ["randflake", "twitter", "sonyflake-sized"] {
        let mut seen = HashSet::new();
        let layout: Layout = name.parse().unwrap();
        for _ in 0..short_or_long(8, 20) {
            for id in home.generate(&format!("--plain --layout {name}")) {
                assert!(seen.insert(id), "{id} came twice");
                let ahead = layout.unpack(id).unwrap().unix_ms.saturating_sub(unix_ms());
                assert_eq!(ahead, 0);
            }
        }
    }
}

#[test]
fn many_short_runs_do_not_use_up_a_few_nodes() {
    let home = Home::new();
    let runs = short_or_long(40, 100);
    let ids =
        (0..runs).flat_map(|_| home.generate("--plain --layout 44/2/8@2024-01-01T00:00:00Z/100ms"));
    assert_eq!(distinct(ids), 10 * runs);
}

#[test]
fn runs_with_other_layouts_and_keys_have_leases_of_their_own() {
    let home = Home::new();
    let kept = home.print("generate");
    home.print("generate --plain");
    home.print("generate --plain --layout twitter");
    let other = home.keep_secret("other", OTHER);
    let other = format!("--secret-file {other}");
    home.print(format!("generate {other}"));
    // Two layouts of one secret would make the same numbers.
    for secret in ["", &other] {
        let message = home.refuse(format!("generate --layout twitter {secret}"));
        assert_says(&message, &["--namespace", "--secret-file", "keygen"]);
    }
    let output = succeed(home.run("generate --layout twitter --namespace orders"));
    let said = stderr(&output);
    assert!(!said.contains("no record"), "{said}");
    let held = home.print("store ls --all --plain --format json");
    assert_eq!(held.lines().count(), 1, "{held}");
    assert_eq!(kept.lines().count(), 10);
}

#[test]
fn a_run_that_its_reader_holds_up_goes_on() {
    let home = Home::new();
    let run = Printing::start(&home, "--layout twitter -n 200000");
    // A first lease ends after two seconds: a shorter pause would need no renewal, and show less.
    thread::sleep(Duration::from_millis(2500));
    let ids = run.finish();
    assert_eq!(distinct(&ids), 200_000);
    let ms = |id: &u64| Layout::TWITTER.unpack(*id).unwrap().unix_ms;
    assert!(ids.is_sorted_by_key(ms));
    assert!(ms(&ids[199_999]) - ms(&ids[0]) > 2000);
}

#[test]
fn a_run_that_was_stopped_past_its_lease_shares_no_id() {
    let home = Home::new();
    let options = "--layout 41/1/12@2010-11-04T01:42:54.657Z/1ms --blocks 2 -n 100000";
    let stopped = Printing::start(&home, options);
    // A process that is stopped within a transaction locks out all others.
    let leases = rusqlite::Connection::open(home.data_dir().join("leases.db")).unwrap();
    leases.busy_timeout(Duration::from_secs(60)).unwrap();
    leases.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal(&stopped.child, libc::SIGSTOP);
    leases.execute_batch("ROLLBACK").unwrap();
    // Its lease lasts a minute if a busy machine has let it renew it.
    let mut all = home.generate(&format!("--plain --wait 3min {options}"));
    signal(&stopped.child, libc::SIGCONT);
    all.extend(stopped.finish());
    assert_eq!((all.len(), distinct(all)), (200_000, 200_000));
}

#[test]
fn a_run_that_was_killed_shares_no_id_with_the_next() {
    let home = Home::new();
    // Within a second only the lease keeps them apart.
    let options = "--layout 31/1/17@2024-10-27T03:33:20Z/1s --blocks 2 -n 100000";
    let mut all = Printing::start(&home, options).kill();
    let killed = all.len();
    all.extend(home.generate(&format!("--plain --wait 3min {options}")));
    assert_eq!(distinct(&all), killed + 100_000);
}

#[test]
fn a_store_that_is_damaged_is_not_taken_for_none() {
    let home = Home::new();
    home.print("generate");
    let file = home.data_dir().join("leases.db");
    let whole = fs::read(&file).unwrap();
    let other = b"no database at all, whatever it may look like";
    for damage in [&other[..], &whole[..5000]] {
        fs::write(&file, damage).unwrap();
        home.refuse("generate");
    }
    // Put back, though in place, it is what it was.
    fs::write(&file, &whole).unwrap();
    home.print("generate");

    fs::write(&file, other).unwrap();
    let message = home.refuse("generate");
    assert_says(
        &message,
        &[
            "move leases.db and leases.db-journal",
            "keep leases.db.lock",
        ],
    );
    // A store elsewhere is refused for it, too.
    let (key, shared) = (home.path("a.key"), home.path("shared.db"));
    home.run(format!("keygen --out {key}"));
    let init = "store init --history new --namespace orders --store";
    let message = home.refuse(format!("{init} sqlite:{shared} --secret-file {key}"));
    assert_says(
        &message,
        &["the data directory", "can't be searched", "move leases.db"],
    );
    // The advice makes no ID twice.
    for name in ["leases.db", "leases.db-journal"] {
        fs::rename(home.data_dir().join(name), home.file(name)).unwrap();
    }
    let asked_ms = unix_ms();
    let parts = home.inspect("", &home.print("generate"));
    assert!(
        parts.iter().all(|it| it.unix_ms > asked_ms + 120_000),
        "{parts:?}"
    );
}

#[test]
fn the_data_directory_can_be_given_before_and_after_the_command() {
    let home = Home::new();
    let (one, two) = (home.path("one"), home.path("two"));
    succeed(home.run(format!("--data-dir {one} keygen")));
    succeed(home.run(format!("keygen --data-dir {two}")));
    assert!(home.file("one/secret").exists() && home.file("two/secret").exists());
    assert!(!home.data_dir().exists());
}
