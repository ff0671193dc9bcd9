//! IDs on one machine without any set-up.

use std::collections::HashSet;
use std::env;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Acquire, Floor, History, Init, LeaseStore, OpenOptions, SqliteStore, StoreError,
};
use ringflake::local::DataDir;
use ringflake::{
    BuildError, CachedGenerator, CachedGeneratorBuilder, Cipher, Clock, Id, Inspector, Layout,
    Local, LocalError, Parts, Secret, Shutdown, StaticLease, SystemClock,
};
use tempfile::TempDir;

use crate::rig::SECOND;
use ringflake_kit::child::{passes, this_test};
use ringflake_kit::tls::mode;
use ringflake_kit::{assert_matches, assert_says, cp, eventually};

const LAYOUT: Layout = Layout::RANDFLAKE;

/// In a child: the file that its IDs go to.
const OUTPUT: &str = "RINGFLAKE_TEST_OUTPUT";

/// On a disk, which the directory for temporary files may not be.
fn directory() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn local(name: &str, directory: &Path) -> Local {
    // A target directory may be anywhere.
    let local = Local::new(name).in_directory(directory);
    local.accept_best_effort(true)
}

fn orders(directory: &Path) -> Local {
    local("orders", directory)
}

fn builder(local: Local) -> CachedGeneratorBuilder {
    let builder = CachedGenerator::builder(LAYOUT).capacity(64);
    // The file may be many processes', on a busy machine.
    builder.local(local).first_lease_within(60 * SECOND)
}

fn ids(directory: &Path) -> CachedGenerator {
    builder(orders(directory)).build().unwrap()
}

#[track_caller]
fn refused(local: Local) -> LocalError {
    match builder(local).build().unwrap_err() {
        BuildError::Local(error) => error,
        other => panic!("{other:?}"),
    }
}

fn plain(directory: &Path) -> CachedGenerator {
    builder(orders(directory).plain()).build().unwrap()
}

fn take(ids: &CachedGenerator, count: usize) -> Vec<Parts> {
    let take = |_| ids.inspect(ids.take().unwrap()).unwrap();
    (0..count).map(take).collect()
}

fn adopt(local: Local, history: History) {
    let space = local.make_secret(&LAYOUT).unwrap();
    let init = Init::new(history, SystemClock.unix_ms());
    let init = init.with_limits(Local::limits(&LAYOUT));
    space.init(&init).unwrap();
}

/// How far ahead of the clock it is, in milliseconds.
fn ahead(parts: &Parts) -> u64 {
    parts.unix_ms.saturating_sub(SystemClock.unix_ms())
}

fn is_new(parts: &[Parts]) -> bool {
    parts.iter().all(|parts| ahead(parts) == 0)
}

/// As after a past that is lost: the horizon is 120 s, of which a slow machine may have
/// seen some pass.
fn is_above_all(parts: &[Parts]) -> bool {
    let mut ahead = parts.iter().map(ahead);
    ahead.all(|ahead| (30_000..125_000).contains(&ahead))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

fn pause(most: Duration) {
    let share = RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
    thread::sleep(most.mul_f64(share));
}

fn child(directory: &Path, output: &Path) -> Command {
    let mut command = this_test();
    command
        .env(DataDir::VARIABLE, directory)
        .env(OUTPUT, output);
    command
}

/// Writes IDs of the directory in the environment, until it is killed.
fn write_for_ever(output: PathBuf) -> ! {
    let mut output = File::options().append(true).open(output).unwrap();
    let directory = DataDir::of_this_user().unwrap();
    let ids = ids(directory.path());
    let mut batch = [Id::default(); 100];
    for _ in 0..100 {
        let count = ids.take_batch(&mut batch).unwrap();
        let bytes = batch[..count]
            .iter()
            .flat_map(|id| id.to_u64().to_le_bytes());
        output.write_all(&bytes.collect::<Vec<_>>()).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    loop {
        thread::park();
    }
}

fn read(path: &Path) -> Vec<Id> {
    let bytes = fs::read(path).unwrap();
    let (whole, _) = bytes.as_chunks();
    let ids = whole.iter().map(|&bytes| u64::from_le_bytes(bytes));
    ids.map(Id::from_u64).collect()
}

#[test]
fn twenty_processes_killed_and_started_again_share_no_id() {
    if let Some(output) = env::var_os(OUTPUT) {
        write_for_ever(output.into());
    }
    let home = directory();
    // In one directory the first rounds are killed while it is made.
    for (name, hasty) in [("hasty", 2), ("calm", 0)] {
        let data = home.path().join(name);
        let mut outputs = Vec::new();
        for round in 0..hasty + 2 {
            let start = |number| {
                let output = home.path().join(format!("{name}-{round}-{number}"));
                File::create(&output).unwrap();
                let mut child = child(&data, &output);
                let child = child.stdout(Stdio::null()).spawn().unwrap();
                (child, output)
            };
            let crew: Vec<_> = (0..20).map(start).collect();
            for (mut child, output) in crew {
                if round < hasty {
                    pause(Duration::from_millis(30));
                } else {
                    eventually("it writes", || {
                        assert_eq!(child.try_wait().unwrap(), None, "it gave up");
                        fs::metadata(&output).unwrap().len() > 0
                    });
                }
                child.kill().unwrap();
                child.wait().unwrap();
                outputs.push(output);
            }
        }
        let secret = orders(&data).secret(&LAYOUT).unwrap().unwrap();
        let inspector = Inspector::new(LAYOUT, Cipher::sparx64(&secret));
        let mut seen = HashSet::new();
        for id in outputs.iter().flat_map(|output| read(output)) {
            let parts = inspector.inspect(id).unwrap();
            // Under another secret it would be anywhere.
            assert!(ahead(&parts) < 130_000, "{parts:?}");
            let cell = (parts.unix_ms, parts.node, parts.sequence);
            assert!(seen.insert(cell), "{parts:?} came twice");
        }
        assert!(seen.len() >= 40 * 100, "{}", seen.len());
    }
}

#[test]
fn the_environment_names_the_directory_of_local() {
    if let Some(output) = env::var_os(OUTPUT) {
        let ids = ringflake::local("orders").unwrap();
        fs::write(output, ids.take().unwrap().to_u64().to_le_bytes()).unwrap();
        return;
    }
    let home = directory();
    let data = home.path().join("data");
    let output = home.path().join("output");
    passes(&mut child(&data, &output));
    assert_eq!(read(&output).len(), 1);
    let expected = ["leases.db", "leases.db-journal", "leases.db.lock"];
    assert_eq!(names(&data), [&expected[..], &["orders.secret"]].concat());
    let more = ringflake::local_in(&data, "orders").unwrap();
    assert_ne!(read(&output)[0], more.take().unwrap());
}

#[test]
fn a_secret_is_its_owners_alone_and_never_overwritten() {
    let home = directory();
    let data = home.path().join("data");
    let first = ids(&data);
    let path = data.join("orders.secret");
    assert_eq!((mode(&data), mode(&path)), (0o700, 0o600));
    let text = fs::read_to_string(&path).unwrap();
    let id = first.take().unwrap();
    let second = ids(&data);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(second.inspect(id), first.inspect(id));
    assert!(is_new(&take(&first, 10)) && is_new(&take(&second, 10)));

    let other = builder(local("invoices", &data)).build().unwrap();
    let others_text = fs::read_to_string(data.join("invoices.secret")).unwrap();
    assert_ne!(others_text, text);
    assert_ne!(other.inspect(id), first.inspect(id));
    assert!(is_new(&take(&other, 10)));
}

#[test]
fn a_name_that_is_none_is_refused_before_anything_is_made() {
    let home = directory();
    let data = home.path().join("data");
    let long = "x".repeat(59);
    for (name, said) in [
        ("", "got 0"),
        ("No name", "'N' at byte 0"),
        ("../orders", "'.' at byte 0"),
        ("orders-plain", "-plain"),
        (&long, "1 to 58 bytes, got 59"),
    ] {
        let error = refused(Local::new(name).in_directory(&data)).to_string();
        assert!(error.contains(said), "{name}: {error}");
    }
    // So is every other option that is wrong.
    let secret = Secret::from_bytes([7; 16]);
    let lease = StaticLease::assume_unique(LAYOUT, 0..1);
    let small = CachedGenerator::builder("30/10/10@2024-01-01T00:00:00Z/1s".parse().unwrap());
    for (builder, expected) in [
        (builder(orders(&data)).blocks(0), "Plan(Blocks"),
        (builder(orders(&data)).secret(&secret), "Local(SecretGiven"),
        (
            builder(orders(&data)).namespace("a"),
            r#"LocalHas { option: "namespace""#,
        ),
        (builder(orders(&data)).lease(lease), "TwoLeases"),
        (small.local(orders(&data)), "EncryptionWidens"),
        (
            builder(Local::of_layout(Some(&secret)).plain().in_directory(&data)),
            "PlainAndSecret",
        ),
    ] {
        let error = format!("{:?}", builder.build().unwrap_err());
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
    assert!(!data.exists());
}

#[test]
fn a_store_that_was_removed_gives_ids_above_all_before() {
    let home = directory();
    let first = ids(home.path());
    let before = take(&first, 1000);
    let known = local("known", home.path());
    end(builder(known.clone()).build().unwrap());
    fs::remove_file(home.path().join("leases.db")).unwrap();
    let second = ids(home.path());
    let after = take(&second, 1000);
    assert!(is_new(&before), "{:?}", before[0]);
    assert!(is_above_all(&after), "{:?}", after[0]);
    assert!(is_above_all(&take(&builder(known).build().unwrap(), 10)));
    // No ID was made before with a secret that is drawn now.
    let other = builder(local("invoices", home.path())).build().unwrap();
    assert!(is_new(&take(&other, 10)));
    // Plain IDs have no secret, and may have been lost.
    let plain = builder(local("plain", home.path()).plain())
        .build()
        .unwrap();
    assert!(is_above_all(&take(&plain, 10)));
    // A process that loses the record while running uses up its leases and gets others.
    assert!(is_new(&take(&first, 10)));
}

#[test]
fn a_store_that_was_emptied_gives_ids_above_all_before() {
    let home = directory();
    end(ids(home.path()));
    fs::write(home.path().join("leases.db"), "").unwrap();
    assert!(is_above_all(&take(&ids(home.path()), 1000)));
}

/// Ends a generator whose store nobody may be writing afterwards.
fn end(ids: CachedGenerator) {
    assert_eq!(ids.shutdown(60 * SECOND), Shutdown::Released);
}

#[test]
fn a_directory_that_was_copied_is_refused() {
    let home = directory();
    let (original, copy) = (home.path().join("original"), home.path().join("copy"));
    let first = ids(&original);
    cp("-r", &original, &copy);
    let error = builder(orders(&copy)).build().unwrap_err();
    assert_matches!(error, BuildError::Store(StoreError::Copied { .. }));
    // This one is not on record, and might be used in both.
    let before = names(&copy);
    let error = refused(local("invoices", &copy));
    assert_matches!(error, LocalError::Copied { .. });
    assert!(error.to_string().contains("is a copy"), "{error}");
    assert_eq!(names(&copy), before);
    assert!(is_new(&take(&first, 10)));

    // Once somebody vouches for one of its namespaces, the directory goes on as this one.
    let options = OpenOptions::new().accept_best_effort(true);
    let mut store = SqliteStore::new(copy.join("leases.db"), &options).unwrap();
    let on_record = store.namespaces().unwrap().remove(0);
    let raised = store.raise_floor(&on_record, Floor::OverLostGrants, SystemClock.unix_ms());
    raised.unwrap();
    let adopted = builder(local("invoices", &copy)).build().unwrap();
    assert!(is_new(&take(&adopted, 10)));
}

/// How a directory is made up to some step, in which no ID was issued.
type Begin = fn(&Path);

/// The first steps, as they are when nothing goes wrong.
fn begun(data: &Path) {
    DataDir::new(data).keep_secret().unwrap();
    fs::remove_file(data.join("secret")).unwrap();
}

/// Notes the secret below as one that was drawn here.
fn drawn(data: &Path) {
    let secret = Secret::from_hex(SECRET.trim_end()).unwrap();
    DataDir::new(data).note_new_secret(&secret).unwrap();
}

const SECRET: &str = "00112233445566778899aabbccddeeff\n";

/// The state that a crash leaves, and whether IDs are new afterwards.
const CRASHES: [(&str, bool, Begin); 10] = [
    ("an empty directory", true, |_| ()),
    ("a lock file without a note", true, |data| {
        fs::write(data.join("leases.db.lock"), "").unwrap()
    }),
    ("a note, and no leases.db yet", true, drawn),
    (
        "a note that names a leases.db, a secret, and no leases.db",
        false,
        |data| {
            begun(data);
            drawn(data);
            fs::write(data.join("orders.secret"), SECRET).unwrap();
            fs::remove_file(data.join("leases.db")).unwrap();
        },
    ),
    (
        "a secret and a leases.db that is not named yet",
        false,
        |data| {
            drawn(data);
            fs::write(data.join("orders.secret"), SECRET).unwrap();
            fs::write(data.join("leases.db"), "").unwrap();
        },
    ),
    (
        "a leases.db that is not named yet, and no secret",
        true,
        |data| {
            drawn(data);
            fs::write(data.join("leases.db"), "").unwrap();
        },
    ),
    ("an empty leases.db", true, begun),
    ("a draft of the secret", true, |data| {
        begun(data);
        fs::write(data.join(".orders.secret-new"), "0011").unwrap();
    }),
    ("a secret without a record", true, |data| {
        begun(data);
        drawn(data);
        fs::write(data.join("orders.secret"), SECRET).unwrap();
    }),
    ("a record without its count", true, |data| {
        begun(data);
        drawn(data);
        fs::write(data.join("orders.secret"), SECRET).unwrap();
        let space = orders(data).find(&LAYOUT).unwrap();
        let init = Init::new(History::New, SystemClock.unix_ms());
        let mut store = space.sqlite().unwrap();
        store.init(&space.namespace, &init).unwrap();
        let lock = data.join("leases.db.lock");
        let note = fs::read_to_string(&lock).unwrap();
        let before = note.find("1 records\n").unwrap();
        // In place, so that it is the same file.
        let file = File::options().write(true).open(lock).unwrap();
        file.set_len(before as u64).unwrap();
    }),
];

#[test]
fn a_crash_between_any_two_steps_is_safe() {
    thread::scope(|scope| {
        for (state, stays_new, make) in CRASHES {
            scope.spawn(move || {
                let home = directory();
                make(home.path());
                let secret = home.path().join("orders.secret");
                let before = fs::read_to_string(&secret).ok();
                let ids = ids(home.path());
                let parts = take(&ids, 100);
                assert_eq!(is_new(&parts), stays_new, "{state}: {:?}", parts[0]);
                assert!(stays_new || is_above_all(&parts), "{state}");
                assert!(!home.path().join(".orders.secret-new").exists(), "{state}");
                // It is whole from now on.
                let text = fs::read_to_string(&secret).unwrap();
                assert_eq!(text.len(), 33, "{state}");
                assert!(before.is_none_or(|before| before == text), "{state}");
                let started = Instant::now();
                let next = self::ids(home.path());
                let wait = started.elapsed();
                assert_eq!(is_new(&take(&next, 10)), stays_new, "{state} {wait:?}");
                // The next that is not on record counts those that are.
                plain(home.path());
                let note = fs::read_to_string(home.path().join("leases.db.lock")).unwrap();
                let counts = note.lines().filter(|line| line.ends_with("records"));
                let counts: Vec<_> = counts.collect();
                assert_eq!(counts, ["1 records", "2 records"], "{state}: {note}");
            });
        }
    });
}

#[test]
fn a_secret_given_to_a_store_makes_no_ids_here() {
    let home = directory();
    let space = orders(home.path()).make(&LAYOUT).unwrap();
    let (directory, secret) = (space.directory(), space.secret.as_ref().unwrap());
    let mut running = space.store().unwrap();
    let leases = directory.leases();
    let away = home.path().join("away");
    fs::rename(&leases, &away).unwrap();
    directory.give_away(secret).unwrap();

    let now = SystemClock.unix_ms();
    let refused_here = running.acquire(&space.namespace, &Acquire::new(1, 60, now));
    assert!(refused_here.is_err(), "{refused_here:?}");
    assert!(!leases.exists());
    fs::rename(&away, &leases).unwrap();
    let error = refused(orders(home.path()));
    assert_matches!(error, LocalError::SecretBrought { .. });
}

#[test]
fn a_secret_that_was_brought_is_refused_and_nothing_is_made() {
    let home = directory();
    let path = home.path().join("orders.secret");
    for is_begun in [false, true] {
        if is_begun {
            begun(home.path());
        }
        fs::write(&path, SECRET).unwrap();
        let before = names(home.path());
        let error = refused(orders(home.path()));
        let text = error.to_string();
        assert_matches!(error, LocalError::SecretBrought { path: Some(found), .. }
            if *found == path);
        assert_says(&text, &["no history", "orders.secret"]);
        assert!(!text.contains("  "), "{text}");
        let mut made = names(home.path());
        made.retain(|name| !before.contains(name) && name != "leases.db.lock");
        assert!(made.is_empty(), "{made:?}");
        fs::remove_file(&path).unwrap();
    }
    // A word for it is enough.
    fs::write(&path, SECRET).unwrap();
    adopt(orders(home.path()), History::New);
    assert!(is_new(&take(&ids(home.path()), 10)));
}

#[test]
fn a_secret_that_is_gone_is_not_made_anew() {
    let home = directory();
    let first = ids(home.path());
    let path = home.path().join("orders.secret");
    fs::remove_file(&path).unwrap();
    let error = refused(orders(home.path()));
    assert_matches!(error, LocalError::SecretLost { .. });
    assert_says(&error.to_string(), &[path.to_str().unwrap()]);
    assert!(!path.exists());
    fs::write(&path, SECRET).unwrap();
    let error = refused(orders(home.path()));
    assert_matches!(error, LocalError::OtherSecret { .. });
    assert_says(&error.to_string(), &[path.to_str().unwrap()]);
    assert!(is_new(&take(&first, 10)));
}

#[test]
fn the_record_is_made_anew_when_it_is_lost_at_work() {
    let home = directory();
    let first = ids(home.path());
    let before = take(&first, 10);
    fs::remove_file(home.path().join("leases.db")).unwrap();
    first.invalidate();
    let mut after = Vec::new();
    eventually("it has leases again", || {
        let taken = first.take().ok();
        after.extend(taken.map(|id| first.inspect(id).unwrap()));
        !after.is_empty()
    });
    assert!(is_new(&before) && is_above_all(&after), "{after:?}");
}

/// A clock that is hours ahead at the first use is set right later: a namespace whose secret was
/// drawn then has no floor that would keep its blocks out of use.
#[test]
fn a_first_use_with_a_clock_that_is_ahead_sets_no_floor() {
    let home = directory();
    let space = orders(home.path()).make(&LAYOUT).unwrap();
    assert!(space.made_secret.is_some());
    let record = space
        .sqlite()
        .unwrap()
        .list(&space.namespace)
        .unwrap()
        .record;
    assert_eq!(record.floor, 0);
}

#[test]
fn a_directory_that_another_process_keeps_locked_is_waited_for_as_long_as_asked() {
    let home = directory();
    let lock = File::create(home.path().join("leases.db.lock")).unwrap();
    lock.lock().unwrap();
    let (tell, told) = mpsc::channel();
    let began = Instant::now();
    let built = builder(orders(home.path()))
        .first_lease_within(5 * SECOND)
        .on_lease_wait_hook(move |error| tell.send(error.to_string()).unwrap())
        .build();
    let took = began.elapsed();
    assert_matches!(
        built,
        Err(BuildError::Local(LocalError::Directory { source, .. }))
            if source.kind() == io::ErrorKind::TimedOut
    );
    assert!(took < 25 * SECOND, "{took:?}, the default is 30 s");
    assert_eq!(told.iter().count(), 1);
}
