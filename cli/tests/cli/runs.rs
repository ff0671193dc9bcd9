//! Runs that share a data directory, at once and one after another.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::Layout;

use crate::home::{
    Home, Parts, distinct, fail, numbers, signal, spawn, stderr, stdout, succeed, unix_ms,
};
use ringflake_kit::{eventually, short_or_long, words};

#[test]
fn runs_at_once_share_one_secret_and_no_id() {
    let home = Home::new();
    let children: Vec<_> = (0..8)
        .map(|_| spawn(&mut home.command(&["generate", "-n", "20000"])))
        .collect();
    let outputs: Vec<_> = children
        .into_iter()
        .map(|child| succeed(child.wait_with_output().unwrap()))
        .collect();
    let makers = outputs.iter().filter(|output| !output.stderr.is_empty());
    assert_eq!(makers.count(), 1);

    let ids: String = outputs.iter().map(stdout).collect();
    let parts = home.inspect(&[], &ids);
    assert_eq!(parts.len(), 160_000);
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 160_000);
    for parts in parts {
        assert!(parts.unix_ms.abs_diff(unix_ms()) < 60_000, "{parts:?}");
    }
    let names: BTreeSet<_> = fs::read_dir(home.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let expected = ["leases.db", "leases.db-journal", "leases.db.lock", "secret"];
    let expected = expected.map(|name| OsStr::new(name).to_owned());
    assert_eq!(names, BTreeSet::from(expected));
}

/// Runs whose IDs go to files, started one right after the other.
struct Fleet<'a> {
    home: &'a Home,
    running: Vec<(Child, PathBuf)>,
    /// Files that were begun so far.
    files: usize,
}

impl<'a> Fleet<'a> {
    fn new(home: &'a Home) -> Self {
        Self {
            home,
            running: Vec::new(),
            files: 0,
        }
    }

    fn start(&mut self, runs: usize, count: &str) {
        for _ in 0..runs {
            self.files += 1;
            let path = self.home.file(&format!("ids-{}", self.files));
            let mut command = self
                .home
                .command(&["generate", "--format", "u64le", "-n", count]);
            command
                .stdout(File::create(&path).unwrap())
                .stderr(Stdio::piped());
            self.running.push((command.spawn().unwrap(), path));
        }
    }

    /// Kills the run that was started first, at some moment after it has printed
    /// something if it is `at_work`, and at any other else.
    fn kill_one(&mut self, at_work: bool) -> PathBuf {
        let (mut child, path) = self.running.remove(0);
        if at_work {
            eventually("it prints", || fs::metadata(&path).unwrap().len() > 0);
        }
        pause(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        path
    }

    /// Waits for those that are running, which must succeed.
    fn finish(&mut self) -> Vec<PathBuf> {
        let running = self.running.drain(..);
        running
            .map(|(child, path)| {
                succeed(child.wait_with_output().unwrap());
                path
            })
            .collect()
    }
}

/// The whole IDs in these files.
fn read(files: &[PathBuf]) -> Vec<u64> {
    let read = |path| {
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(bytes.len() / 8 * 8);
        numbers(&bytes)
    };
    files.iter().flat_map(read).collect()
}

/// Ends anything from nothing to `most` from now.
fn pause(most: Duration) {
    let share = RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
    thread::sleep(most.mul_f64(share));
}

#[test]
fn runs_at_once_share_no_id_also_after_half_were_killed() {
    let home = Home::new();
    let mut fleet = Fleet::new(&home);
    // How many are killed, and how many are not.
    let half = short_or_long(4, 10);
    let each = short_or_long(20_000, 100_000);
    let count = each.to_string();
    fleet.start(2 * half, &count);
    let ids = read(&fleet.finish());
    assert_eq!(ids.len(), 2 * half * each);
    let mut seen: HashSet<_> = ids.into_iter().collect();
    assert_eq!(seen.len(), 2 * half * each);

    // Those to be killed have more to do, so that death finds them at work.
    fleet.start(half, "10000000");
    fleet.start(half, &count);
    let killed: Vec<_> = (0..half)
        .map(|number| fleet.kill_one(number % 3 != 0))
        .collect();
    let finished = read(&fleet.finish());
    assert_eq!(finished.len(), half * each);
    fleet.start(2 * half, &count);
    let after = read(&fleet.finish());
    assert_eq!(after.len(), 2 * half * each);
    for id in [read(&killed), finished, after].concat() {
        assert!(seen.insert(id), "{id} came twice");
    }
    assert!(seen.len() > 5 * half * each, "none was killed at work");
}

#[test]
fn runs_one_after_another_share_no_id_and_keep_the_time() {
    let home = Home::new();
    let mut seen = HashSet::new();
    for layout in ["randflake", "twitter", "sonyflake-sized"] {
        seen.clear();
        for _ in 0..short_or_long(8, 20) {
            let args = [
                "generate", "--plain", "--layout", layout, "--format", "u64le",
            ];
            let ids = numbers(&succeed(home.run(&args)).stdout);
            let layout: Layout = layout.parse().unwrap();
            for id in ids {
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
    let layout = "44/2/8@2024-01-01T00:00:00Z/100ms";
    let args = [
        "generate", "--plain", "--layout", layout, "--format", "u64le",
    ];
    let mut seen = HashSet::new();
    let runs = short_or_long(40, 100);
    for _ in 0..runs {
        for id in numbers(&succeed(home.run(&args)).stdout) {
            assert!(seen.insert(id), "{id} came twice");
        }
    }
    assert_eq!(seen.len(), 10 * runs);
}

#[test]
fn runs_with_other_layouts_and_keys_have_leases_of_their_own() {
    let home = Home::new();
    let kept = home.print(&["generate"]);
    home.print(&["generate", "--plain"]);
    home.print(&["generate", "--plain", "--layout", "twitter"]);
    let other = home.keep_secret("other", "00112233445566778899aabbccddeeff");
    home.print(&["generate", "--secret-file", &other]);
    // Two layouts of one secret would make the same numbers.
    for secret in [&[][..], &["--secret-file", &other]] {
        let message = fail(home.run(&[&["generate", "--layout", "twitter"], secret].concat()));
        for way_out in ["--namespace", "--secret-file", "keygen"] {
            assert!(message.contains(way_out), "{message}");
        }
    }
    let own = ["generate", "--layout", "twitter", "--namespace", "orders"];
    let output = succeed(home.run(&own));
    assert!(
        !stderr(&output).contains("no record"),
        "{}",
        stderr(&output)
    );
    let held = home.print(&["store", "ls", "--all", "--plain", "--format", "json"]);
    assert_eq!(held.lines().count(), 1, "{held}");
    assert_eq!(kept.lines().count(), 10);
}

#[test]
fn a_run_that_was_killed_shares_no_id_with_the_next() {
    let home = Home::new();
    let args = words("generate --plain --layout twitter --nodes 3..4 --format u64le -n 300000");
    let started = Instant::now();
    let mut child = spawn(&mut home.command(&args));
    let mut bytes = vec![0; 8 * 1000];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut bytes).unwrap();
    child.kill().unwrap();
    stdout.read_to_end(&mut bytes).unwrap();
    child.wait().unwrap();
    bytes.truncate(bytes.len() / 8 * 8);
    let killed: HashSet<_> = numbers(&bytes).into_iter().collect();

    // It waits until the lease has passed, which nobody released.
    let is_soon = started.elapsed() < Duration::from_secs(1);
    let output = succeed(home.run(&args));
    let next = numbers(&output.stdout);
    assert_eq!(next.len(), 300_000);
    assert!(next.iter().all(|id| !killed.contains(id)));
    let errors = stderr(&output);
    assert!(!is_soon || errors.contains("waiting"), "{errors}");
}

#[test]
fn a_run_that_its_reader_holds_up_goes_on() {
    let home = Home::new();
    let args = [
        "generate", "--plain", "--layout", "twitter", "--format", "u64le", "-n", "200000",
    ];
    let mut child = spawn(&mut home.command(&args));
    let mut stdout = child.stdout.take().unwrap();
    let mut bytes = vec![0; 8 * 1000];
    stdout.read_exact(&mut bytes).unwrap();
    // A first lease ends after two seconds. Nothing depends on the pause, except
    // whether renewals are needed.
    thread::sleep(Duration::from_millis(2500));
    stdout.read_to_end(&mut bytes).unwrap();
    succeed(child.wait_with_output().unwrap());

    let ids = numbers(&bytes);
    assert_eq!(distinct(ids.iter().copied()), 200_000);
    let ms = |id: &u64| Layout::TWITTER.unpack(*id).unwrap().unix_ms;
    assert!(ids.is_sorted_by_key(ms));
    assert!(ms(&ids[199_999]) - ms(&ids[0]) > 2000);
}

#[test]
fn a_run_that_was_stopped_past_its_lease_shares_no_id() {
    let home = Home::new();
    let args = words("generate --plain --layout twitter --nodes 3..4 --format u64le -n 100000");
    let mut stopped = spawn(&mut home.command(&args));
    let mut bytes = vec![0; 8 * 1000];
    let mut stdout = stopped.stdout.take().unwrap();
    stdout.read_exact(&mut bytes).unwrap();
    // Who is stopped within a transaction locks out all others.
    let leases = rusqlite::Connection::open(home.data_dir().join("leases.db")).unwrap();
    leases.busy_timeout(Duration::from_secs(20)).unwrap();
    leases.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal(&stopped, libc::SIGSTOP);
    leases.execute_batch("ROLLBACK").unwrap();
    let other = numbers(&succeed(home.run(&args)).stdout);
    signal(&stopped, libc::SIGCONT);
    stdout.read_to_end(&mut bytes).unwrap();
    succeed(stopped.wait_with_output().unwrap());
    let all = [numbers(&bytes), other].concat();
    assert_eq!(all.len(), 200_000);
    assert_eq!(distinct(all), 200_000);
}

#[test]
fn a_store_that_is_damaged_is_not_taken_for_none() {
    let home = Home::new();
    home.print(&["generate"]);
    let file = home.data_dir().join("leases.db");
    let whole = fs::read(&file).unwrap();
    for damage in [
        &b"no database at all, whatever it may look like"[..],
        &whole[..5000],
    ] {
        fs::write(&file, damage).unwrap();
        fail(home.run(&["generate"]));
    }
    // Put back, though in place, it is what it was.
    fs::write(&file, &whole).unwrap();
    home.print(&["generate"]);
}

#[test]
fn the_data_directory_can_be_given_before_and_after_the_command() {
    let home = Home::new();
    let (one, two) = (home.file("one"), home.file("two"));
    succeed(home.run(&["--data-dir", one.to_str().unwrap(), "keygen"]));
    succeed(home.run(&["keygen", "--data-dir", two.to_str().unwrap()]));
    assert!(one.join("secret").exists() && two.join("secret").exists());
    assert!(!home.data_dir().exists());
}
