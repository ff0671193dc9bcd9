//! Copies of the file, and files that were put back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Fence, Fingerprint, Floor, Grant, History, Init, LeaseStore, Namespace, Renew,
    SqliteStore, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};

use super::{Place, acquire, now, options, space, store};

const HORIZON: u64 = 100;
const FAILOVER: u64 = 14;

/// A store on a clock of its own, of one block, and its copy.
struct Pair {
    place: Place,
    clock: ManualClock,
}

impl Pair {
    fn new() -> Self {
        let place = Place::new();
        let clock = ManualClock::new(Layout::RANDFLAKE.tick_start_unix_ms(1_000_000));
        let limits = StoreLimits::default()
            .with_horizon(Duration::from_secs(HORIZON))
            .with_failover(Duration::from_secs(FAILOVER));
        let init = Init::new(History::New, clock.unix_ms()).with_limits(limits);
        let mut store = place.store_at(&clock);
        store.init(&one_block("test"), &init).unwrap();
        store.init(&one_block("other"), &init).unwrap();
        Self { place, clock }
    }

    fn original(&self) -> SqliteStore {
        self.place.store_at(&self.clock)
    }

    fn copy(&self) -> SqliteStore {
        let path = self.place.beside("copy.db");
        fs::copy(&self.place.path, &path).unwrap();
        store(&path).with_clock(std::sync::Arc::new(self.clock.clone()))
    }

    fn acquire(&self, store: &mut SqliteStore, length: u64) -> Result<Grant, StoreError> {
        let ask = Acquire::new(1, length, self.clock.unix_ms());
        Ok(store.acquire(&one_block("test"), &ask)?.remove(0))
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn one_block(name: &str) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(17))
        .unwrap()
}

#[track_caller]
fn copied<T: std::fmt::Debug>(result: Result<T, StoreError>, file: &Path) -> String {
    match result {
        Err(error @ StoreError::Copied { .. }) => {
            let text = error.to_string();
            assert!(text.contains(&file.display().to_string()), "{text}");
            assert!(text.contains("raise-floor"), "{text}");
            text
        }
        other => panic!("{other:?}, not a copy"),
    }
}

#[test]
fn a_copy_grants_nothing_for_as_long_as_nobody_adopts_it() {
    let pair = Pair::new();
    let space = one_block("test");
    let grant = pair.acquire(&mut pair.original(), 10).unwrap();
    let mut copy = pair.copy();
    let path = copy.path().to_owned();
    for _ in 0..2 {
        let renew = Renew::new(&grant, grant.ticks.end + 5, pair.clock.unix_ms());
        copied(pair.acquire(&mut copy, 10), &path);
        copied(copy.renew(&space, &renew), &path);
        copied(copy.release(&space, grant.block, grant.epoch), &path);
        copied(
            copy.raise_floor(&space, Floor::Tick(1_000_500), pair.clock.unix_ms()),
            &path,
        );
        // Not a question of time.
        pair.pass(2 * (HORIZON + FAILOVER));
    }
    // Looking is allowed, and shows it.
    let listing = copy.list(&space).unwrap();
    assert_eq!(listing, pair.original().list(&space).unwrap());
    let report = copy.check(&space, pair.clock.unix_ms()).unwrap();
    assert!(report.history_lost(), "{report:?}");
    assert!(!pair.original().check(&space, 0).unwrap().history_lost());
    // The original is not disturbed.
    pair.acquire(&mut pair.original(), 10).unwrap();
}

#[test]
fn an_adopted_copy_starts_above_all_that_the_original_granted() {
    let pair = Pair::new();
    let space = one_block("test");
    let mut original = pair.original();
    let mut copy = pair.copy();
    // What the copy knows nothing of: as far ahead as there can be.
    pair.pass(1);
    let lost = pair.acquire(&mut original, u64::MAX).unwrap();
    assert_eq!(lost.ticks.end, 1_000_001 + HORIZON);

    let floor = copy
        .raise_floor(&space, Floor::OverLostGrants, pair.clock.unix_ms())
        .unwrap();
    assert_eq!(floor, 1_000_001 + HORIZON + FAILOVER + 1);
    match pair.acquire(&mut copy, 10).unwrap_err() {
        StoreError::FloorAhead { floor: ahead, .. } => assert_eq!(ahead, floor),
        other => panic!("{other}"),
    }
    pair.pass(FAILOVER + 2);
    let grant = pair.acquire(&mut copy, 10).unwrap();
    assert_eq!(grant.ticks.start, floor);
    assert!(lost.ticks.end <= grant.ticks.start);
    // What the original granted before is fenced there.
    let renew = Renew::new(&lost, lost.ticks.end + 5, pair.clock.unix_ms());
    match copy.renew(&space, &renew).unwrap_err() {
        StoreError::Fenced { fence, .. } => assert!(matches!(fence, Fence::Floor { .. })),
        other => panic!("{other}"),
    }
    // Each namespace is adopted by itself.
    let other = one_block("other");
    let ask = Acquire::new(1, 10, pair.clock.unix_ms());
    let path = copy.path().to_owned();
    copied(copy.acquire(&other, &ask), &path);
    assert!(!copy.check(&space, 0).unwrap().history_lost());
    assert!(copy.check(&other, 0).unwrap().history_lost());
}

#[test]
fn a_renamed_file_goes_on() {
    let place = Place::initialised();
    let first = acquire(&mut place.store(), 10).unwrap();
    let renamed = place.beside("renamed.db");
    fs::rename(&place.path, &renamed).unwrap();
    fs::rename(place.journal(), place.beside("renamed.db-journal")).unwrap();
    let mut store = store(&renamed);
    let renew = Renew::new(&first, first.ticks.end + 5, now());
    assert_eq!(store.renew(&space(), &renew).unwrap(), first.ticks.end + 5);
    acquire(&mut store, 10).unwrap();
}

#[test]
fn a_copy_in_the_files_place_is_noticed_by_who_has_it_open() {
    let place = Place::initialised();
    let mut store = place.store();
    acquire(&mut store, 10).unwrap();
    let copy = place.beside("copy.db");
    fs::copy(&place.path, &copy).unwrap();
    acquire(&mut store, 10).unwrap();
    fs::rename(&copy, &place.path).unwrap();
    copied(acquire(&mut store, 10), &place.path);
    copied(acquire(&mut place.store(), 10), &place.path);
}

#[test]
fn another_machine_is_noticed() {
    let place = Place::initialised();
    let sql = "UPDATE ringflake_namespace \
               SET incarnation = 'machine 0000' || substr(incarnation, 13)";
    assert_eq!(place.raw().execute(sql, []).unwrap(), 1);
    let text = copied(acquire(&mut place.store(), 10), &place.path);
    assert!(text.contains("machine 0000"), "{text}");
}

/// Whether the test's files can carry extended attributes. Where they can't, an
/// overwriting in place goes unnoticed, as the documentation says.
#[cfg(target_os = "linux")]
fn attributes(place: &Place, test: &str) -> bool {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let path = CString::new(place.path.as_os_str().as_bytes()).unwrap();
    let name = c"user.ringflake-test";
    let value = [1_u8];
    // SAFETY: terminated strings, and a buffer of the length given.
    let set = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    if set != 0 {
        eprintln!("SKIPPED {test}: temporary files carry no extended attributes");
    }
    set == 0
}

#[cfg(target_os = "linux")]
#[test]
fn a_backup_written_over_the_file_is_noticed() {
    let place = Place::initialised();
    if !attributes(&place, "a_backup_written_over_the_file_is_noticed") {
        return;
    }
    let mut store = place.store();
    acquire(&mut store, 10).unwrap();
    let backup = fs::read(&place.path).unwrap();
    let lost = acquire(&mut store, 10).unwrap();
    // Same inode, same birth.
    fs::write(&place.path, &backup).unwrap();

    for _ in 0..2 {
        let text = copied(acquire(&mut store, 10), &place.path);
        assert!(text.contains("as of write 2 where write 3"), "{text}");
    }
    assert!(store.check(&space(), now()).unwrap().history_lost());
    let floor = store.raise_floor(&space(), Floor::OverLostGrants, now());
    assert!(floor.unwrap() > lost.ticks.end);
    assert!(!store.check(&space(), now()).unwrap().history_lost());
    let error = acquire(&mut store, 10).unwrap_err();
    assert!(matches!(error, StoreError::FloorAhead { .. }), "{error}");

    // And once more, to a state that was adopted since.
    let backup = fs::read(&place.path).unwrap();
    store.raise_floor(&space(), Floor::Tick(1), now()).unwrap();
    fs::write(&place.path, &backup).unwrap();
    copied(acquire(&mut store, 10), &place.path);
}

#[cfg(target_os = "linux")]
#[test]
fn an_emptied_file_is_not_taken_for_a_new_one() {
    let place = Place::initialised();
    if !attributes(&place, "an_emptied_file_is_not_taken_for_a_new_one") {
        return;
    }
    let mut store = place.store();
    let lost = acquire(&mut store, 10).unwrap();
    fs::write(&place.path, "").unwrap();
    let error = acquire(&mut store, 10).unwrap_err();
    assert!(
        matches!(error, StoreError::NotInitialised { .. }),
        "{error}"
    );
    let init = |history| Init::new(history, now());
    let text = copied(store.init(&space(), &init(History::New)), &place.path);
    assert!(text.contains("unknown history"), "{text}");
    let record = store.init(&space(), &init(History::Unknown)).unwrap();
    assert!(record.floor > lost.ticks.end);
}

#[test]
fn options_do_not_accept_a_copy() {
    let pair = Pair::new();
    assert!(options().accepts_best_effort());
    let mut copy = pair.copy();
    let path = copy.path().to_owned();
    copied(pair.acquire(&mut copy, 10), &path);
}
