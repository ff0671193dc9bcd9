//! Generators in forked children.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "these tests call one unsafe function after another"
)]

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use ringflake::ringflake_status::*;
use ringflake::*;

const IDS: usize = 20_000;

fn open(config: &str) -> *mut ringflake_generator {
    let config = CString::new(config).unwrap();
    let mut generator = ptr::null_mut();
    assert_eq!(
        // SAFETY: a text and room for a pointer.
        unsafe { ringflake_open(config.as_ptr(), &mut generator) },
        RINGFLAKE_OK
    );
    generator
}

/// IDs, one by one.
fn take(generator: *const ringflake_generator) -> Vec<u64> {
    let take = |_| {
        let mut id = 0;
        // SAFETY: an open generator, and room for a number.
        assert_eq!(unsafe { ringflake_take(generator, &mut id) }, RINGFLAKE_OK);
        id
    };
    (0..IDS).map(take).collect()
}

/// Runs `work` in a child; the other end of the pipe that it is given, and its number.
fn in_child(work: impl FnOnce(&mut File)) -> (File, libc::pid_t) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: two open descriptors of this function's own.
    let [reader, mut writer] = ends.map(|end| unsafe { File::from_raw_fd(end) });
    // SAFETY: the child runs `work` and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut writer)));
        // SAFETY: ends the child without the destructors of the parent.
        unsafe { libc::_exit(outcome.is_err().into()) };
    }
    (reader, child)
}

/// What the child writes to its parent when it succeeds.
fn outcome((mut reader, child): (File, libc::pid_t)) -> Vec<u8> {
    let mut written = Vec::new();
    reader.read_to_end(&mut written).unwrap();
    let mut status = 0;
    // SAFETY: a child of this process, and room for a number.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child has failed");
    written
}

/// One test, so that no other thread of it holds a lock of the harness at a fork.
#[test]
fn children_have_generators_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "local = orders\ndata-dir = {}\nbest-effort = true\ncapacity = 8192\nborrow-limit = 100s",
        directory.path().display()
    );
    let generator = open(&config);
    let before = take(generator);

    let child = in_child(|pipe| {
        let (mut id, mut taken, mut stats) = (0, 7, ringflake_stats::default());
        // SAFETY: a generator of the parent's, and valid pointers.
        unsafe {
            assert_eq!(ringflake_take(generator, &mut id), RINGFLAKE_FORKED);
            assert_eq!(ringflake_retry_after_ms(), -1);
            let batch = ringflake_take_batch(generator, &mut id, 1, &mut taken);
            assert_eq!((batch, taken, id), (RINGFLAKE_FORKED, 0, 0));
            let size = size_of_val(&stats);
            assert_eq!(
                ringflake_read_stats(generator, &mut stats, size),
                RINGFLAKE_FORKED
            );
            assert_eq!(ringflake_wait_ready(generator, 60_000), RINGFLAKE_FORKED);
            assert_eq!(ringflake_invalidate(generator), RINGFLAKE_FORKED);
            let mut parts = ringflake_parts::default();
            assert_eq!(
                ringflake_inspect(generator, before[0], &mut parts),
                RINGFLAKE_OK
            );
        }
        let mut own = ptr::null_mut();
        assert_eq!(
            // SAFETY: as above.
            unsafe { ringflake_reopen(generator, &mut own) },
            RINGFLAKE_OK
        );
        let ids = take(own);
        // SAFETY: the child's copy of one, and its own.
        unsafe {
            assert_eq!(ringflake_shutdown(generator, 60_000), RINGFLAKE_FORKED);
            assert_eq!(ringflake_shutdown(own, 60_000), RINGFLAKE_OK);
        }
        let bytes: Vec<u8> = ids.into_iter().flat_map(u64::to_le_bytes).collect();
        pipe.write_all(&bytes).unwrap();
    });
    let mut all = before;
    all.extend(take(generator));
    let of_child = outcome(child);
    assert_eq!(of_child.len(), IDS * 8);
    all.extend(
        of_child
            .chunks(8)
            .map(|id| u64::from_le_bytes(id.try_into().unwrap())),
    );
    // The generator that the child has closed still works in the parent.
    all.extend(take(generator));
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!((distinct.len(), all.len()), (4 * IDS, 4 * IDS));

    // Without memory for a ring.
    let child = in_child(|_| {
        let limit = libc::rlimit {
            rlim_cur: 1 << 30,
            rlim_max: 1 << 30,
        };
        // SAFETY: a limit, for this process alone.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        let config = CString::new(config.replace("8192", "268435456")).unwrap();
        let mut own = ptr::null_mut();
        // SAFETY: a text and room for a pointer.
        let status = unsafe { ringflake_open(config.as_ptr(), &mut own) };
        assert_eq!((status, own), (RINGFLAKE_SYSTEM, ptr::null_mut()));
    });
    outcome(child);
    assert_eq!(
        // SAFETY: an open generator, which is not used any more.
        unsafe { ringflake_shutdown(generator, 60_000) },
        RINGFLAKE_OK
    );
}
