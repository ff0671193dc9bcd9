//! Runs that share a data directory, at once and one after another.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use ringflake::Layout;

use crate::home::{
    Home, OTHER, Printing, distinct, numbers, object, signal, stderr, succeed, unix_ms,
    whole_numbers,
};
use ringflake_kit::{assert_says, eventually, short_or_long};

/// Runs whose IDs go to files, started one right after the other.
struct Fleet<'a> {
    home: &'a Home,
    running: Vec<(Child, File)>,
}

impl Fleet<'_> {
    fn start(&mut self, runs: usize, count: usize) {
        for _ in 0..runs {
            let file = tempfile::tempfile_in(self.home.file("")).unwrap();
            let line = format!("generate --format u64le -n {count}");
            let mut command = self.home.command(line);
            command.stdout(file.try_clone().unwrap());
            let child = command.stderr(Stdio::piped()).spawn().unwrap();
            self.running.push((child, file));
        }
    }

    /// Kills the run that was started first, at some moment after it has printed
    /// something if it is `at_work`, and at any other else; its IDs.
    fn kill_one(&mut self, at_work: bool) -> Vec<u64> {
        let (mut child, file) = self.running.remove(0);
        if at_work {
            eventually("it prints", || file.metadata().unwrap().len() > 0);
        }
        pause(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        read(file)
    }

    /// The IDs of those that are running, all of which must succeed.
    fn finish(&mut self) -> Vec<u64> {
        let runs = self.running.drain(..).flat_map(|(child, file)| {
            succeed(child.wait_with_output().unwrap());
            read(file)
        });
        runs.collect()
    }
}

/// The whole IDs in this file.
fn read(mut file: File) -> Vec<u64> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    whole_numbers(&bytes)
}

/// Ends anything from nothing to `most` from now.
fn pause(most: Duration) {
    let share = RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
    thread::sleep(most.mul_f64(share));
}

#[test]
fn runs_at_once_share_no_id_also_after_half_were_killed() {
    let home = Home::new();
    let mut fleet = Fleet {
        home: &home,
        running: Vec::new(),
    };
    // How many are killed, and how many are not.
    let half = short_or_long(4, 10);
    let each = short_or_long(20_000, 100_000);
    fleet.start(2 * half, each);
    let ids = fleet.finish();
    assert_eq!(ids.len(), 2 * half * each);
    let mut seen: HashSet<_> = ids.into_iter().collect();
    assert_eq!(seen.len(), 2 * half * each);

    // Those to be killed have more to do, so that death finds them at work.
    fleet.start(half, 10_000_000);
    fleet.start(half, each);
    let killed: Vec<_> = (0..half)
        .flat_map(|number| fleet.kill_one(number % 3 != 0))
        .collect();
    let finished = fleet.finish();
    assert_eq!(finished.len(), half * each);
    fleet.start(2 * half, each);
    let after = fleet.finish();
    assert_eq!(after.len(), 2 * half * each);
    for id in [killed, finished, after].concat() {
        assert!(seen.insert(id), "{id} came twice");
    }
    assert!(seen.len() > 5 * half * each, "none was killed at work");
}

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
fn a_run_that_was_killed_shares_no_id_with_the_next() {
    let options = "--layout twitter --nodes 3..4 -n 300000";
    // A run reports that it waits if the store still refuses it after a second; it asks after
    // 1.75 s. On a slow machine the lease can have ended by then, and another attempt counts.
    let reports_its_wait = (0..5).any(|_| {
        let home = Home::new();
        let first = format!("{options} --lease-duration 3s");
        let killed: HashSet<_> = Printing::start(&home, &first).kill().into_iter().collect();
        let list = home.print("store ls --all --format json --plain --layout twitter");
        let end = object(&list)["end"]["tick"].as_u64().unwrap();

        // It waits until the lease has passed, which nobody released.
        let line = format!("generate --plain --format u64le --wait 3min {options}");
        let output = succeed(home.run(line));
        let next = numbers(&output.stdout);
        assert_eq!(next.len(), 300_000);
        assert!(next.iter().all(|id| !killed.contains(id)));
        let tick = |id: &u64| Layout::TWITTER.unpack(*id).unwrap().tick;
        assert!(next.iter().all(|id| tick(id) >= end), "{list}");
        stderr(&output).contains("waiting")
    });
    assert!(reports_its_wait, "no run reported that it waits");
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
    let options = "--layout twitter --nodes 3..4 -n 100000";
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
