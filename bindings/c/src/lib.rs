//! The C library of ringflake. `include/ringflake.h` is generated from this crate.
//!
//! # The contract
//!
//! **Ownership.** `ringflake_open`, `ringflake_open_local` and `ringflake_reopen` make a
//! generator. `ringflake_close` or `ringflake_shutdown` frees it, once. All other memory is the
//! caller's: the library keeps no pointer to a text or a buffer after the call. A call that fails
//! leaves its out-parameters unwritten, unless its description says otherwise.
//!
//! **Threads.** Every function may be called from any thread, and any number of threads may use
//! one generator at once. Only closing is exclusive: no other call may be using the generator
//! then, or later.
//!
//! **Fork.** In a forked child a generator of the parent makes no IDs: every call with it returns
//! `RINGFLAKE_FORKED`, but for `ringflake_inspect` and `ringflake_reopen`, which makes a
//! generator for the child, with leases of its own. The child may close the parent's generator,
//! which leaves the parent's leases alone; what the parent's threads held stays allocated. A child
//! of `vfork` must not call the library before `exec`. `fork` waits until no thread of the library
//! uses SQLite, which takes milliseconds. After two seconds, because another process holds the
//! file's lock, or by a raw system call, the fork goes ahead: in the child, `ringflake_reopen`
//! returns `RINGFLAKE_NO_LEASE` for good. Exit, and fork again.
//!
//! **Errors.** None is reported in `errno`, which any call may change. No panic leaves a function:
//! each is caught, and returned as `RINGFLAKE_PANIC`. A small allocation that fails ends the
//! process. A failure is kept for its thread, until another call of this thread fails.
//! A success does not touch it.
//!
//! **Loading.** Threads of the library go on for a moment after a generator is closed. On Linux,
//! Android and FreeBSD the shared library stays loaded after `dlclose`; elsewhere, and with the
//! static library in a plugin, don't unload it. The threads have the signal mask of the thread
//! that opens a generator.
//!
//! **Environment.** Opening and reopening read environment variables and files, relative to the
//! current directory. A program that changes either, and then reopens, gives `data-dir` and
//! absolute paths; no thread may change the environment meanwhile.
//!
//! **Pointers.** NULL is refused with `RINGFLAKE_INVALID` wherever a pointer is required. Every
//! other pointer must be what its type says: aligned, alive during the call, and valid for as
//! many items as the size beside it counts. A generator must come from this library, and must
//! not be closed.
//!
//! # Stability
//!
//! The soname changes when a program that was linked before would break. Without that, later
//! versions only add: functions, status codes, keys, and fields at the end of
//! `ringflake_stats`, whose size the caller gives. `ringflake_parts` never changes.

#![warn(clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::missing_safety_doc,
    reason = "what callers must do is the same for all functions, and is said above"
)]

mod config;
mod status;

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

use engine::{CachedGenerator, Id, Shutdown};

use self::config::Config;
pub use self::status::ringflake_status;
use self::status::ringflake_status::*;
use self::status::{Failure, Outcome, forked, keep, panicked, required, with_causes};

/// Room for the text of an ID: up to 13 characters, and a NUL.
pub const RINGFLAKE_TEXT_SIZE: usize = 14;

/// A source of unique IDs, shared by any number of threads.
#[allow(non_camel_case_types)]
pub struct ringflake_generator {
    ids: CachedGenerator,
    config: Config,
}

impl fmt::Debug for ringflake_generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration may hold a password.
        f.debug_struct("ringflake_generator")
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}

/// The parts of an ID.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ringflake_parts {
    /// Start of the tick in Unix milliseconds. An ID may have been taken some seconds before
    /// it or after it.
    pub unix_ms: u64,
    /// Ticks since the epoch of the layout.
    pub tick: u64,
    /// The node.
    pub node: u64,
    /// The number within tick and node.
    pub sequence: u64,
}

/// Figures of a generator. Counts are since it was opened.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ringflake_stats {
    /// IDs that are ready in the rings.
    pub level: u64,
    /// Slots in the rings.
    pub capacity: u64,
    /// IDs handed out.
    pub issued: u64,
    /// Takes that found all rings empty.
    pub empties: u64,
    /// Takes and batches that gave no ID.
    pub failed: u64,
    /// IDs dropped unissued, such as those given up by `ringflake_invalidate`.
    pub retired: u64,
    /// How far the last ID that was made lies ahead of the clock, in milliseconds.
    pub borrowed_ms: u64,
    /// How far ahead IDs may lie, in milliseconds.
    pub borrow_limit_ms: u64,
    /// When the leases end, in Unix milliseconds; 0 without a lease.
    pub lease_end_unix_ms: u64,
    /// The clock, in Unix milliseconds.
    pub now_unix_ms: u64,
}

/// Opens a generator.
///
/// `config` is UTF-8 text with a `key = value` on each line, without quotes. Lines that are
/// empty or start with `#` are skipped. `local` or `store` is required:
///
///     local           name of an ID space on this machine; leases and secret are kept there
///     data-dir        its directory; the platform's, or RINGFLAKE_DATA_DIR, by default
///
///     store           URL of a store that grants leases, such as sqlite:PATH or postgres://...
///     namespace       required with store: the name that the store was initialised with
///     secret-file     required with store, unless plain: a file with the secret
///     block-bits      binary logarithm of the nodes in a block: 5
///     init-if-new     initialise a missing namespace with this history: new or unknown
///     timeout         longest time for one request to the store, at least 1ms: 5s
///
///     layout          name of a layout, or its widths: randflake
///     id-width        full, positive or js-safe: full
///     plain           true: IDs are not encrypted
///     best-effort     true: accept a store that can lose what it confirmed
///     blocks          blocks of nodes to lease, 1 to 256: 1
///     lease-duration  how far ahead of the clock leases are kept
///     wait            how long to wait here for the first lease: 10s
///     detached        true: do not wait; see ringflake_wait_ready
///     borrow-limit    how far ahead of the clock IDs may lie
///     capacity        slots of all rings, a power of two: 65536
///     threshold       level of a ring below which it is filled, in percent: 50
///     producers       threads that fill the rings: 1
///     on-empty        generate, error, or how long a take waits, such as 5ms: generate
///
/// The whole text is checked before anything is created. This call asks the store, and so it may
/// block for as long as `wait` and `timeout`. All programs that share a namespace need the same
/// `layout`, `id-width` and secret.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_open(
    config: *const c_char,
    generator: *mut *mut ringflake_generator,
) -> ringflake_status {
    guard(|| {
        let out = required(generator, "generator")?;
        // SAFETY: a text of the caller's, during this call.
        let config = unsafe { text(config, "config") }?;
        // SAFETY: the caller's room for a pointer.
        unsafe { open(Config::parse(config)?, out) }
    })
}

/// Opens a generator on the ID space `name` of this user on this machine: `ringflake_open` with
/// `local = name`. The first call makes its directory, leases and secret.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_open_local(
    name: *const c_char,
    generator: *mut *mut ringflake_generator,
) -> ringflake_status {
    guard(|| {
        let out = required(generator, "generator")?;
        // SAFETY: a text of the caller's, during this call.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: the caller's room for a pointer.
        unsafe { open(Config::local(name)?, out) }
    })
}

/// Opens another generator with the configuration of `generator`, which stays as it is. Use it
/// in a forked child, where `generator` belongs to the parent. Files are read anew, and leases
/// are its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_reopen(
    generator: *const ringflake_generator,
    reopened: *mut *mut ringflake_generator,
) -> ringflake_status {
    guard(|| {
        let out = required(reopened, "reopened")?;
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        // SAFETY: the caller's room for a pointer.
        unsafe { open(generator.config.clone(), out) }
    })
}

/// Takes one ID. Costs some nanoseconds, and blocks only with `on-empty = 5ms` or the like.
///
/// On failure `ringflake_retry_after_ms` says when another take may succeed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_take(
    generator: *const ringflake_generator,
    id: *mut u64,
) -> ringflake_status {
    guard(|| {
        let out = required(id, "id")?;
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        let id = generator.ids.take()?;
        // SAFETY: the caller's room for a number.
        unsafe { out.write(id.to_u64()) };
        Ok(())
    })
}

/// Takes up to `count` IDs, which cost less each than one by one. Writes them to the front of
/// `ids`, and their number to `taken`.
///
/// Fewer than `count`, but at least one, if the rings ran empty on the way. On failure `taken`
/// is 0. The rest of `ids` has no meaning. A `count` of 0 takes nothing, and always succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_take_batch(
    generator: *const ringflake_generator,
    ids: *mut u64,
    count: usize,
    taken: *mut usize,
) -> ringflake_status {
    guard(|| {
        let out = required(taken, "taken")?;
        // SAFETY: the caller's room for a number.
        unsafe { out.write(0) };
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        if count == 0 {
            return Ok(());
        }
        let ids = required(ids, "ids")?;
        if count > isize::MAX as usize / size_of::<Id>() {
            return Err(Failure::new(
                RINGFLAKE_INVALID,
                format!("`count` is {count}: no memory has as many IDs"),
            ));
        }
        // The caller's memory may be uninitialised, and a slice must not be.
        // SAFETY: the caller's room for `count` numbers.
        unsafe { ids.write_bytes(0, count) };
        // SAFETY: the same room; an `Id` is a transparent `u64`.
        let ids = unsafe { slice::from_raw_parts_mut(ids.as_ptr().cast::<Id>(), count) };
        let count = generator.ids.take_batch(ids)?;
        // SAFETY: as above.
        unsafe { out.write(count) };
        Ok(())
    })
}

/// Writes the text of an ID: 1 to 13 of the characters 0-9 and a-v, and a NUL. `size` is the
/// size of `text`; `RINGFLAKE_TEXT_SIZE` is always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_to_text(
    id: u64,
    text: *mut c_char,
    size: usize,
) -> ringflake_status {
    guard(|| {
        let out = required(text, "text")?;
        let text = Id::from_u64(id).to_string();
        if text.len() >= size {
            return Err(Failure::new(
                RINGFLAKE_TOO_SMALL,
                format!(
                    "the buffer has {size} bytes, and this ID needs {}: give one of \
                     RINGFLAKE_TEXT_SIZE, which is {RINGFLAKE_TEXT_SIZE}",
                    text.len() + 1
                ),
            ));
        }
        let out = out.as_ptr().cast::<u8>();
        // SAFETY: the caller's room for `size` bytes, which is more than the text has.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), out, text.len()) };
        // SAFETY: in the same room.
        let end = unsafe { out.add(text.len()) };
        // SAFETY: in the same room.
        unsafe { end.write(0) };
        Ok(())
    })
}

/// Reads the text of an ID. Accepts what `ringflake_to_text` writes, and nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_from_text(
    text: *const c_char,
    id: *mut u64,
) -> ringflake_status {
    guard(|| {
        let out = required(id, "id")?;
        // SAFETY: a text of the caller's, during this call.
        let id: Id = unsafe { self::text(text, "text") }?.parse()?;
        // SAFETY: the caller's room for a number.
        unsafe { out.write(id.to_u64()) };
        Ok(())
    })
}

/// Takes an ID of this generator's layout and secret apart. Works in a forked child, too.
///
/// This authenticates nothing: most numbers that were never issued have parts as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_inspect(
    generator: *const ringflake_generator,
    id: u64,
    parts: *mut ringflake_parts,
) -> ringflake_status {
    guard(|| {
        let out = required(parts, "parts")?;
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        let parts = generator.ids.inspect(Id::from_u64(id))?;
        // SAFETY: the caller's room for the parts.
        unsafe {
            out.write(ringflake_parts {
                unix_ms: parts.unix_ms,
                tick: parts.tick,
                node: parts.node,
                sequence: parts.sequence,
            });
        }
        Ok(())
    })
}

/// Reads the figures of a generator. `size` is `sizeof(ringflake_stats)`.
///
/// A library that knows more fields than the program fills those that fit. One that knows fewer
/// sets the rest to zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_read_stats(
    generator: *const ringflake_generator,
    stats: *mut ringflake_stats,
    size: usize,
) -> ringflake_status {
    guard(|| {
        let out = required(stats, "stats")?.as_ptr().cast::<u8>();
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        if size == 0 || !size.is_multiple_of(size_of::<u64>()) {
            return Err(Failure::new(
                RINGFLAKE_INVALID,
                format!("`size` is {size}: give sizeof(ringflake_stats)"),
            ));
        }
        let figures = generator.figures()?;
        let known = size.min(size_of::<ringflake_stats>());
        // SAFETY: no more than is in `figures`, and than the caller has room for.
        unsafe { ptr::copy_nonoverlapping(ptr::from_ref(&figures).cast(), out, known) };
        // SAFETY: in the caller's room.
        let rest = unsafe { out.add(known) };
        // SAFETY: in the caller's room.
        unsafe { rest.write_bytes(0, size - known) };
        Ok(())
    })
}

/// Waits until a lease is in force, for `timeout_ms` at most; 0 only looks. For a generator that
/// was opened with `detached = true`, and for a health check.
///
/// Returns `RINGFLAKE_TIMED_OUT` if there is no lease by then, and the message has the store's
/// last error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_wait_ready(
    generator: *const ringflake_generator,
    timeout_ms: u64,
) -> ringflake_status {
    guard(|| {
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        if generator.ids.wait_ready(Duration::from_millis(timeout_ms)) {
            return Ok(());
        }
        let Some(status) = generator.ids.lease_status() else {
            return Err(forked());
        };
        let cause = match &status.health.last_error {
            Some(error) => with_causes(error),
            None => "the store was not asked yet".to_owned(),
        };
        Err(Failure::new(
            RINGFLAKE_TIMED_OUT,
            format!("no lease was granted within {timeout_ms} ms: {cause}"),
        ))
    })
}

/// Gives up all leases, and all IDs in the rings. Call it when a virtual machine was resumed
/// from a snapshot, before the first take: a copy of it may have the same leases.
///
/// Takes fail with `RINGFLAKE_NO_LEASE` until new leases come; see `ringflake_wait_ready`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_invalidate(
    generator: *const ringflake_generator,
) -> ringflake_status {
    guard(|| {
        // SAFETY: an open generator.
        let generator = unsafe { required(generator, "generator")?.as_ref() };
        generator.check_not_forked()?;
        generator.ids.invalidate();
        Ok(())
    })
}

/// Closes a generator and waits for `timeout_ms` at most until its leases are released, so that
/// others can have its nodes at once. Whatever this returns, but for `RINGFLAKE_INVALID`, the
/// generator is gone.
///
/// No other call may be using the generator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_shutdown(
    generator: *mut ringflake_generator,
    timeout_ms: u64,
) -> ringflake_status {
    guard(|| {
        let generator = required(generator, "generator")?;
        // SAFETY: from `open`, and the caller gives it up.
        let generator = unsafe { Box::from_raw(generator.as_ptr()) };
        // In a child, dropping it leaves the parent's leases alone.
        generator.check_not_forked()?;
        match generator.ids.shutdown(Duration::from_millis(timeout_ms)) {
            Shutdown::Released => Ok(()),
            _ => Err(Failure::new(
                RINGFLAKE_UNRELEASED,
                format!(
                    "the store did not confirm within {timeout_ms} ms that the leases are \
                     released: their nodes are free when the leases end"
                ),
            )),
        }
    })
}

/// Closes a generator, as `ringflake_shutdown` does with a second of time. Does nothing with
/// NULL.
///
/// No other call may be using the generator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringflake_close(generator: *mut ringflake_generator) {
    guard(|| {
        if !generator.is_null() {
            // SAFETY: from `open`, and the caller gives it up.
            drop(unsafe { Box::from_raw(generator) });
        }
        Ok(())
    });
}

/// The status of the last call of this thread that failed; `RINGFLAKE_OK` if none did.
#[unsafe(no_mangle)]
pub extern "C" fn ringflake_last_status() -> ringflake_status {
    status::last_status()
}

/// The message of the last call of this thread that failed, in UTF-8; empty if none did. It holds
/// no secret and no password. Valid until the next call of this thread that fails, and at most
/// until the thread ends.
///
/// A runtime that moves tasks between threads, such as Go's, must make both calls on one thread.
#[unsafe(no_mangle)]
pub extern "C" fn ringflake_last_error() -> *const c_char {
    status::last_message()
}

/// About how many milliseconds to wait before the last failed call of this thread may succeed;
/// -1 if waiting does not help, or if the time is unknown.
#[unsafe(no_mangle)]
pub extern "C" fn ringflake_retry_after_ms() -> i64 {
    status::last_retry_after_ms()
}

/// The name of a status, such as "RINGFLAKE_FORKED". Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ringflake_status_name(status: c_int) -> *const c_char {
    ringflake_status::name(status).as_ptr()
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn ringflake_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Calls `f`, catches its panic, and keeps its failure for the thread.
#[inline]
fn guard(f: impl FnOnce() -> Outcome<()>) -> ringflake_status {
    // What a panic interrupts is behind locks and atomics of the engine, which catches its own.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => RINGFLAKE_OK,
        Ok(Err(failure)) => keep(*failure),
        Err(payload) => keep(*panicked(payload)),
    }
}

/// The text that a pointer leads to.
///
/// # Safety
///
/// NULL, or a text that ends with a NUL and outlives `'a`.
unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Outcome<&'a str> {
    let pointer = required(pointer, name)?;
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(pointer.as_ptr()) };
    text.to_str()
        .map_err(|_| Failure::new(RINGFLAKE_INVALID, format!("`{name}` is not UTF-8")))
}

/// Opens a generator, and writes a pointer to it.
///
/// # Safety
///
/// `out` is valid for writing.
unsafe fn open(config: Config, out: NonNull<*mut ringflake_generator>) -> Outcome<()> {
    let ids = config.open()?;
    let generator = Box::into_raw(Box::new(ringflake_generator { ids, config }));
    // SAFETY: the caller's.
    unsafe { out.write(generator) };
    Ok(())
}

impl ringflake_generator {
    /// Every generator here has a store, and only one of a parent's has no status.
    fn check_not_forked(&self) -> Outcome<()> {
        match self.ids.lease_status() {
            Some(_) => Ok(()),
            None => Err(forked()),
        }
    }

    fn figures(&self) -> Outcome<ringflake_stats> {
        self.check_not_forked()?;
        let stats = self.ids.stats();
        let (failed, refused) = (stats.failed, stats.failed.refused);
        let refused =
            refused.borrow_limit + refused.lease_ended + refused.no_lease + refused.invalidated;
        let in_ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(ringflake_stats {
            level: stats.level as u64,
            capacity: stats.capacity as u64,
            issued: stats.issued,
            empties: stats.empties,
            failed: failed.empty + failed.timed_out + refused,
            retired: stats.retired,
            borrowed_ms: in_ms(stats.borrowed),
            borrow_limit_ms: in_ms(stats.borrow_limit),
            lease_end_unix_ms: stats.lease_end_unix_ms,
            now_unix_ms: stats.now_unix_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let status = guard(|| panic!("no {}", "way"));
        let payload = guard(|| std::panic::panic_any(7));
        std::panic::set_hook(hook);
        assert_eq!((status, payload), (RINGFLAKE_PANIC, RINGFLAKE_PANIC));
        let status = guard(|| std::panic::resume_unwind(Box::new("no way")));
        assert_eq!(status, RINGFLAKE_PANIC);
        // SAFETY: the library's own text.
        let message = unsafe { CStr::from_ptr(ringflake_last_error()) };
        assert_eq!(message.to_str(), Ok("the library panicked: no way"));
        assert_eq!(ringflake_last_status(), RINGFLAKE_PANIC);
    }
}
