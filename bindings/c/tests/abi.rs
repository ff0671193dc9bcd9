//! The C functions, called as C calls them. `fork.rs` has those in forked children.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "these tests call one unsafe function after another"
)]

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::ringflake_status::*;
use ringflake::*;

/// A generator that is closed at the end of a test.
struct Generator(*mut ringflake_generator);

// SAFETY: the contract lets any number of threads use a generator.
unsafe impl Send for Generator {}
// SAFETY: as above.
unsafe impl Sync for Generator {}

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, and closed once.
        unsafe { ringflake_close(self.0) };
    }
}

fn open(config: &str) -> Result<Generator, ringflake_status> {
    let config = CString::new(config).unwrap();
    let mut generator = ptr::null_mut();
    // SAFETY: a text and room for a pointer.
    match unsafe { ringflake_open(config.as_ptr(), &mut generator) } {
        RINGFLAKE_OK => Ok(Generator(generator)),
        status => {
            assert!(generator.is_null(), "{status:?}");
            assert_eq!(ringflake_last_status(), status);
            Err(status)
        }
    }
}

fn message() -> String {
    // SAFETY: the library's text, before the next call of this thread.
    unsafe { CStr::from_ptr(ringflake_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

impl Generator {
    fn take(&self) -> Result<u64, ringflake_status> {
        let mut id = 0;
        // SAFETY: an open generator, and room for a number.
        match unsafe { ringflake_take(self.0, &mut id) } {
            RINGFLAKE_OK => Ok(id),
            status => Err(status),
        }
    }

    fn take_batch(&self, ids: &mut [u64]) -> Result<usize, ringflake_status> {
        let mut taken = usize::MAX;
        let (room, count) = (ids.as_mut_ptr(), ids.len());
        // SAFETY: an open generator, and the room that is counted.
        match unsafe { ringflake_take_batch(self.0, room, count, &mut taken) } {
            RINGFLAKE_OK => Ok(taken),
            status => {
                assert_eq!(taken, 0);
                Err(status)
            }
        }
    }

    fn stats(&self) -> ringflake_stats {
        let mut stats = ringflake_stats::default();
        // SAFETY: an open generator, and room for the figures.
        let status = unsafe { ringflake_read_stats(self.0, &mut stats, size_of_val(&stats)) };
        assert_eq!(status, RINGFLAKE_OK, "{}", message());
        stats
    }

    fn wait_ready(&self, timeout_ms: u64) -> ringflake_status {
        // SAFETY: an open generator.
        unsafe { ringflake_wait_ready(self.0, timeout_ms) }
    }

    fn shutdown(self, timeout_ms: u64) -> ringflake_status {
        let generator = std::mem::ManuallyDrop::new(self);
        // SAFETY: an open generator, which is not used any more.
        unsafe { ringflake_shutdown(generator.0, timeout_ms) }
    }
}

/// A local ID space in `directory`, on any file system.
fn local(directory: &Path, more: &str) -> String {
    format!(
        "local = orders\ndata-dir = {}\nbest-effort = true\n{more}",
        directory.display()
    )
}

/// A store in `directory` and plain IDs.
fn plain_store(directory: &Path, more: &str) -> String {
    format!(
        "store = sqlite:{}/leases.db\nnamespace = orders\nplain = true\nbest-effort = true\n{more}",
        directory.display()
    )
}

#[test]
fn parts_and_figures_are_those_of_the_generator() {
    let directory = tempfile::tempdir().unwrap();
    let ids = open(&local(directory.path(), "capacity = 4096\nblocks = 2")).unwrap();
    let id = ids.take().unwrap();
    let mut parts = ringflake_parts::default();
    // SAFETY: an open generator, and room for the parts.
    let status = unsafe { ringflake_inspect(ids.0, id, &mut parts) };
    assert_eq!(status, RINGFLAKE_OK);
    let stats = ids.stats();
    assert!(
        parts.unix_ms.abs_diff(stats.now_unix_ms) < 60_000,
        "{parts:?}"
    );
    assert_eq!(parts.unix_ms, 1_730_000_000_000 + parts.tick * 1000);
    assert!(
        parts.node < 1 << 17 && parts.sequence < 1 << 17,
        "{parts:?}"
    );
    assert_eq!((stats.capacity, stats.issued, stats.failed), (4096, 1, 0));
    assert!(stats.level > 0 && stats.borrow_limit_ms > 0, "{stats:?}");
    assert!(stats.lease_end_unix_ms > stats.now_unix_ms, "{stats:?}");

    // An older program has room for fewer fields, and a newer one for more.
    let mut old = [7_u64; 4];
    let mut new = [7_u64; 12];
    assert_eq!(
        // SAFETY: room for the first two figures.
        unsafe { ringflake_read_stats(ids.0, old.as_mut_ptr().cast(), 16) },
        RINGFLAKE_OK
    );
    assert_eq!(
        // SAFETY: room for more than all figures.
        unsafe { ringflake_read_stats(ids.0, new.as_mut_ptr().cast(), 96) },
        RINGFLAKE_OK
    );
    assert_eq!((old[1], old[2..].to_vec()), (4096, vec![7, 7]));
    assert_eq!((new[1], new[10..].to_vec()), (4096, vec![0, 0]));
    for size in [0, 12] {
        // SAFETY: nothing is written with such a size.
        let status = unsafe { ringflake_read_stats(ids.0, old.as_mut_ptr().cast(), size) };
        assert_eq!(status, RINGFLAKE_INVALID);
        assert!(
            message().contains(&format!("`size` is {size}")),
            "{}",
            message()
        );
    }
}

#[test]
fn text_is_written_and_read() {
    let mut text = [1; RINGFLAKE_TEXT_SIZE];
    let mut write = |id, size| {
        // SAFETY: `size` is at most the size of `text`.
        let status = unsafe { ringflake_to_text(id, text.as_mut_ptr(), size) };
        (status, text)
    };
    for (id, expected) in [(0, "0"), (12_037_510_499_902_272_547, "ae3ek0mnbbd13")] {
        let (status, text) = write(id, RINGFLAKE_TEXT_SIZE);
        assert_eq!(status, RINGFLAKE_OK);
        assert_eq!(
            // SAFETY: the library has written a NUL.
            unsafe { CStr::from_ptr(text.as_ptr()) }.to_str(),
            Ok(expected)
        );
        let mut read = 1;
        assert_eq!(
            // SAFETY: the same text, and room for a number.
            unsafe { ringflake_from_text(text.as_ptr(), &mut read) },
            RINGFLAKE_OK
        );
        assert_eq!(read, id);
    }
    assert_eq!(
        write(u64::MAX, RINGFLAKE_TEXT_SIZE - 1).0,
        RINGFLAKE_TOO_SMALL
    );
    assert!(
        message().contains("13 bytes") && message().contains("needs 14"),
        "{}",
        message()
    );
    assert_eq!(write(0, 2).0, RINGFLAKE_OK);
    for wrong in [c"", c"01", c"w", c"AE3EK0MNBBD13", c"ae3ek0mnbbd13 "] {
        let mut read = 5;
        // SAFETY: a text, and room for a number.
        let status = unsafe { ringflake_from_text(wrong.as_ptr(), &mut read) };
        assert_eq!((status, read), (RINGFLAKE_BAD_TEXT, 5), "{wrong:?}");
    }
}

#[test]
fn wrong_configurations_say_what_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    for case in include_str!("wrong_configurations.txt").split("\n\n") {
        let (config, says) = case.rsplit_once("=> ").unwrap();
        // Somewhere else than the user's own directory.
        let config = match config.contains("local = ") {
            true => format!("{config}\ndata-dir = {}/new", directory.path().display()),
            false => config.to_owned(),
        };
        assert_eq!(
            open(&config).err(),
            Some(RINGFLAKE_CONFIG),
            "{config}: {}",
            message()
        );
        let message = message();
        for part in says.trim_end().split(" | ") {
            assert!(message.contains(part), "{config}: {message}");
        }
        assert!(!message.contains("hunter2"), "{message}");
        assert_eq!(ringflake_retry_after_ms(), -1);
    }
    assert!(!directory.path().join("new").exists());
}

#[test]
fn a_namespace_keeps_its_width() {
    let directory = tempfile::tempdir().unwrap();
    let config = |width| {
        let more = format!("layout = positive\nid-width = {width}\ncapacity = 4096");
        local(directory.path(), &more)
    };
    drop(open(&config("positive")).unwrap());
    assert_eq!(open(&config("full")).err(), Some(RINGFLAKE_CONFIG));
    for part in ["(positive)", "(full)", "`id-width`"] {
        assert!(message().contains(part), "{}", message());
    }
}

#[test]
fn every_key_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "000102030405060708090a0b0c0d0e0f").unwrap();
    let common = "layout = positive\nid-width=positive\nplain = false\nbest-effort = true\n\
                  blocks = 2\nlease-duration = 2min\nborrow-limit = 100s\ncapacity = 4096\n\
                  threshold = 75%\nproducers = 2\n";
    for config in [
        format!("  # of this machine\n\nlocal = a\r\ndata-dir = {path}\nwait = 20s\n{common}"),
        format!(
            "store = sqlite:{path}/s.db\nnamespace = a\nsecret-file = {}\nblock-bits = 4\n\
             init-if-new = new\ntimeout = 4s\ndetached = true\non-empty = 10s\n{common}",
            secret.display()
        ),
    ] {
        let ids = open(&config).unwrap_or_else(|status| panic!("{status:?}: {}", message()));
        assert_eq!(ids.wait_ready(60_000), RINGFLAKE_OK, "{}", message());
        let id = loop {
            // A ring is filled a moment after the lease has come.
            match ids.take() {
                Ok(id) => break id,
                Err(status) => assert_eq!(status, RINGFLAKE_NO_LEASE, "{}", message()),
            }
        };
        assert_eq!(id >> 63, 0);
        let stats = ids.stats();
        assert_eq!((stats.capacity, stats.borrow_limit_ms), (4096, 100_000));

        // Encrypted IDs of 63 bits have a highest bit of 0.
        let mut parts = ringflake_parts::default();
        // SAFETY: an open generator, and room for the parts.
        let status = unsafe { ringflake_inspect(ids.0, id | 1 << 63, &mut parts) };
        assert_eq!(status, RINGFLAKE_FOREIGN_ID);
        assert_eq!(ids.shutdown(60_000), RINGFLAKE_OK);
    }
}

#[test]
fn null_is_refused_by_every_function() {
    let directory = tempfile::tempdir().unwrap();
    let ids = open(&local(directory.path(), "capacity = 4096")).unwrap();
    let (mut id, mut taken, mut generator) = (0, 0, ptr::null_mut());
    let (none, mut parts) = (ptr::null_mut(), ringflake_parts::default());
    // SAFETY: NULL is refused, and every other pointer is valid.
    let outcomes = unsafe {
        [
            ("config", ringflake_open(ptr::null(), &mut generator)),
            (
                "generator",
                ringflake_open(c"local = a".as_ptr(), ptr::null_mut()),
            ),
            ("name", ringflake_open_local(ptr::null(), &mut generator)),
            (
                "generator",
                ringflake_open_local(c"a".as_ptr(), ptr::null_mut()),
            ),
            ("generator", ringflake_reopen(none, &mut generator)),
            ("reopened", ringflake_reopen(ids.0, ptr::null_mut())),
            ("generator", ringflake_take(none, &mut id)),
            ("id", ringflake_take(ids.0, ptr::null_mut())),
            (
                "generator",
                ringflake_take_batch(none, &mut id, 1, &mut taken),
            ),
            (
                "ids",
                ringflake_take_batch(ids.0, ptr::null_mut(), 1, &mut taken),
            ),
            (
                "taken",
                ringflake_take_batch(ids.0, &mut id, 1, ptr::null_mut()),
            ),
            ("text", ringflake_to_text(1, ptr::null_mut(), 14)),
            ("text", ringflake_from_text(ptr::null(), &mut id)),
            ("id", ringflake_from_text(c"1".as_ptr(), ptr::null_mut())),
            ("generator", ringflake_inspect(none, 1, &mut parts)),
            ("parts", ringflake_inspect(ids.0, 1, ptr::null_mut())),
            (
                "generator",
                ringflake_read_stats(none, &mut ringflake_stats::default(), 80),
            ),
            ("stats", ringflake_read_stats(ids.0, ptr::null_mut(), 80)),
            ("generator", ringflake_wait_ready(none, 0)),
            ("generator", ringflake_invalidate(none)),
            ("generator", ringflake_shutdown(none, 0)),
        ]
    };
    for (index, (name, status)) in outcomes.into_iter().enumerate() {
        assert_eq!(status, RINGFLAKE_INVALID, "{index}: {name}");
    }
    assert_eq!(message(), "`generator` is NULL");
    // SAFETY: nothing to close, nothing to write, and texts that are not UTF-8.
    unsafe {
        ringflake_close(none);
        assert_eq!(
            ringflake_take_batch(ids.0, ptr::null_mut(), 0, &mut taken),
            RINGFLAKE_OK
        );
        let too_many = ringflake_take_batch(ids.0, &mut id, usize::MAX, &mut taken);
        assert_eq!(too_many, RINGFLAKE_INVALID);
        assert_eq!(
            ringflake_open_local(c"\xff".as_ptr(), &mut generator),
            RINGFLAKE_INVALID
        );
    }
    assert_eq!(message(), "`name` is not UTF-8");
}

#[test]
fn the_last_error_is_the_threads_own() {
    assert_eq!(
        (ringflake_last_status(), message()),
        (RINGFLAKE_OK, String::new())
    );
    assert_eq!(ringflake_retry_after_ms(), -1);
    assert_eq!(open("").err(), Some(RINGFLAKE_CONFIG));
    let kept = message();
    thread::spawn(|| {
        assert_eq!(
            (ringflake_last_status(), message()),
            (RINGFLAKE_OK, String::new())
        );
        assert_eq!(open("local").err(), Some(RINGFLAKE_CONFIG));
    })
    .join()
    .unwrap();
    let mut text = [0; RINGFLAKE_TEXT_SIZE];
    // SAFETY: room for a text.
    let status = unsafe { ringflake_to_text(1, text.as_mut_ptr(), text.len()) };
    // A success leaves it as it is.
    assert_eq!((status, message()), (RINGFLAKE_OK, kept));
}

#[test]
fn secrets_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let secret = directory.path().join("secret");
    let config = format!(
        "store = sqlite:{path}/leases.db\nnamespace = a\nsecret-file = {}\nbest-effort = true",
        secret.display()
    );
    assert_eq!(open(&config).err(), Some(RINGFLAKE_SECRET));
    assert!(
        message().contains("secret") && message().contains("No such file"),
        "{}",
        message()
    );
    std::fs::write(&secret, "hunter2").unwrap();
    assert_eq!(open(&config).err(), Some(RINGFLAKE_SECRET));
    assert!(!message().contains("hunter2"), "{}", message());
    assert!(!directory.path().join("leases.db").exists());

    // A namespace that was made with another secret.
    std::fs::write(&secret, "000102030405060708090a0b0c0d0e0f").unwrap();
    drop(open(&format!("{config}\ninit-if-new = new")).unwrap());
    std::fs::write(&secret, "100102030405060708090a0b0c0d0e0f").unwrap();
    assert_eq!(open(&config).err(), Some(RINGFLAKE_SECRET), "{}", message());
}

#[test]
fn a_store_without_the_namespace_is_refused_or_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let config = plain_store(directory.path(), "");
    assert_eq!(open(&config).err(), Some(RINGFLAKE_STORE), "{}", message());
    let advice = "else, once the clock is right, to `unknown`";
    assert!(message().contains(advice), "{}", message());

    let ids = open(&format!("{config}\ndetached = true")).unwrap();
    assert_eq!(ids.wait_ready(0), RINGFLAKE_TIMED_OUT);
    assert_eq!(ids.take(), Err(RINGFLAKE_NO_LEASE));
    assert!(ringflake_retry_after_ms() > 0);
    assert_eq!(ids.stats().failed, 1);

    // Somebody initialises it.
    let other = open(&format!("{config}\ninit-if-new = new")).unwrap();
    assert_eq!(ids.wait_ready(60_000), RINGFLAKE_OK, "{}", message());
    assert_ne!(other.take(), Ok(0));
}

#[test]
fn stores_for_several_machines_come_with_their_features() {
    for (url, is_built) in [
        (
            "postgres://nobody@127.0.0.1:1/ids",
            cfg!(feature = "postgres"),
        ),
        ("mysql://nobody@127.0.0.1:1/ids", cfg!(feature = "mysql")),
        ("redis://127.0.0.1:1", cfg!(feature = "redis")),
        ("etcd://127.0.0.1:1", cfg!(feature = "etcd")),
    ] {
        let config = format!("store = {url}\nnamespace = orders\nplain = true");
        if is_built {
            // Nothing listens there, and something may one day.
            let ids = open(&format!("{config}\ndetached = true"));
            assert_eq!(ids.unwrap().take(), Err(RINGFLAKE_NO_LEASE), "{url}");
        } else {
            assert_eq!(open(&config).err(), Some(RINGFLAKE_CONFIG), "{url}");
            assert!(message().contains("without the"), "{}", message());
        }
    }
}

#[test]
fn a_store_whose_nodes_are_all_leased_is_no_lease() {
    let directory = tempfile::tempdir().unwrap();
    // One block has every node.
    let config = plain_store(
        directory.path(),
        "layout = 44/6/10@2024-01-01T00:00:00Z/1ms\nblock-bits = 6\ninit-if-new = new\nwait = 0s",
    );
    let ids = open(&config).unwrap_or_else(|status| panic!("{status:?}: {}", message()));
    assert_eq!(open(&config).err(), Some(RINGFLAKE_NO_LEASE));
    assert!(message().contains("longer `wait`"), "{}", message());
    assert!(ringflake_retry_after_ms() > 0);
    // Once it is released, another can have it.
    assert_eq!(ids.shutdown(60_000), RINGFLAKE_OK);
    assert!(open(&config).is_ok(), "{}", message());
}

#[test]
fn takes_that_come_too_fast_fail_as_configured() {
    let directory = tempfile::tempdir().unwrap();
    let until = |more: &str, expected: ringflake_status| {
        let slow = "layout = 44/6/10@2024-01-01T00:00:00Z/1ms\nblock-bits = 0\ninit-if-new = new\n";
        let config = plain_store(directory.path(), &format!("{slow}{more}"));
        let ids = open(&config).unwrap_or_else(|status| panic!("{status:?}: {}", message()));
        let mut batch = vec![0; 4096];
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match ids.take_batch(&mut batch).err() {
                Some(status) if status == expected => break,
                // The same reason shows in two ways.
                Some(RINGFLAKE_BORROW_LIMIT) | None => {}
                Some(status) => panic!("{status:?}: {}", message()),
            }
            assert!(Instant::now() < deadline, "{expected:?} does not come");
        }
        (message(), ringflake_retry_after_ms())
    };
    let (message, retry) = until("borrow-limit = 100ms", RINGFLAKE_BORROW_LIMIT);
    assert!(
        message.contains("100ms") && (1..=100).contains(&retry),
        "{message} {retry}"
    );
    let (message, retry) = until("on-empty = error", RINGFLAKE_EMPTY);
    assert!(
        message.contains("`capacity`") && retry > 0,
        "{message} {retry}"
    );
}

#[test]
fn a_shutdown_that_may_not_wait_does_not_see_the_release() {
    let directory = tempfile::tempdir().unwrap();
    // On a busy machine the release may be faster than this thread.
    let is_unreleased = (0..20).any(|_| {
        let ids = open(&local(directory.path(), "capacity = 4096")).unwrap();
        ids.shutdown(0) == RINGFLAKE_UNRELEASED
    });
    assert!(is_unreleased);
    assert!(message().contains("within 0 ms"), "{}", message());
}

#[test]
fn invalidated_ids_are_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let ids = open(&local(directory.path(), "capacity = 4096")).unwrap();
    let before = ids.stats();
    // SAFETY: an open generator.
    assert_eq!(unsafe { ringflake_invalidate(ids.0) }, RINGFLAKE_OK);
    assert_eq!(ids.wait_ready(60_000), RINGFLAKE_OK, "{}", message());
    assert!(ids.stats().retired > before.retired);
}

#[test]
fn names_and_versions_are_static_texts() {
    // SAFETY: the library's own texts.
    let text = |text| unsafe { CStr::from_ptr(text) }.to_str().unwrap();
    assert_eq!(
        text(ringflake_status_name(RINGFLAKE_FORKED as i32)),
        "RINGFLAKE_FORKED"
    );
    assert_eq!(
        text(ringflake_status_name(RINGFLAKE_OK as i32)),
        "RINGFLAKE_OK"
    );
    assert_eq!(text(ringflake_status_name(99)), "unknown status");
    assert_eq!(text(ringflake_version()), env!("CARGO_PKG_VERSION"));
}
