//! Status codes, and the last error of each thread.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};
use std::io::ErrorKind;
use std::ptr;
use std::time::Duration;

use engine::lease::StoreError;
use engine::{BuildError, LayoutError, LocalError, ParseIdError, Refused, SecretError, TakeError};

/// What a function returns: `RINGFLAKE_OK`, or why it failed.
///
/// A later version may return codes that are not listed here, all of them below 255.
/// Treat an unknown code as an error.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ringflake_status {
    /// Success.
    RINGFLAKE_OK = 0,
    /// An argument is wrong: NULL where a pointer is required, a size of zero, or text that is
    /// not UTF-8.
    RINGFLAKE_INVALID = 1,
    /// The configuration is wrong, or does not fit the namespace. The message says what is
    /// allowed. Nothing was created.
    RINGFLAKE_CONFIG = 2,
    /// A secret can't be used: its file is missing or malformed, others could replace it, or it
    /// is not the secret that the namespace was made with.
    RINGFLAKE_SECRET = 3,
    /// The store or the data directory refuses, and waiting does not help. The message says what
    /// to do.
    RINGFLAKE_STORE = 4,
    /// No lease is in force: the store is unreachable, or all of its nodes are leased. An open
    /// generator keeps asking, so take again later. If opening failed, there is no generator: open
    /// again later.
    RINGFLAKE_NO_LEASE = 5,
    /// IDs were taken faster than the leases allow, or the clock was set back. Wait for
    /// `ringflake_retry_after_ms`.
    RINGFLAKE_BORROW_LIMIT = 6,
    /// All rings are empty, and the configuration says `on-empty = error`. Try again.
    RINGFLAKE_EMPTY = 7,
    /// The time to wait is over.
    RINGFLAKE_TIMED_OUT = 8,
    /// This process is a forked child, and the generator belongs to its parent. Call
    /// `ringflake_reopen`.
    RINGFLAKE_FORKED = 9,
    /// The text is no ID.
    RINGFLAKE_BAD_TEXT = 10,
    /// The ID was not made with this layout and secret.
    RINGFLAKE_FOREIGN_ID = 11,
    /// The buffer is too small.
    RINGFLAKE_TOO_SMALL = 12,
    /// The generator is closed, but the store did not confirm in time that its leases are
    /// released. Their nodes are free when the leases end.
    RINGFLAKE_UNRELEASED = 13,
    /// The operating system refused memory or a thread.
    RINGFLAKE_SYSTEM = 14,
    /// A bug in the library. The message is that of the panic.
    RINGFLAKE_PANIC = 255,
}

use ringflake_status::*;

impl ringflake_status {
    /// The name of a code, also of one that is not listed here.
    pub(crate) fn name(code: i32) -> &'static CStr {
        macro_rules! names {
            ($($status:ident)*) => {
                $(if code == $status as i32 {
                    const NAME: &str = concat!(stringify!($status), "\0");
                    return CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
                })*
            };
        }
        names! {
            RINGFLAKE_OK RINGFLAKE_INVALID RINGFLAKE_CONFIG RINGFLAKE_SECRET RINGFLAKE_STORE
            RINGFLAKE_NO_LEASE RINGFLAKE_BORROW_LIMIT RINGFLAKE_EMPTY RINGFLAKE_TIMED_OUT
            RINGFLAKE_FORKED RINGFLAKE_BAD_TEXT RINGFLAKE_FOREIGN_ID RINGFLAKE_TOO_SMALL
            RINGFLAKE_UNRELEASED RINGFLAKE_SYSTEM RINGFLAKE_PANIC
        }
        c"unknown status"
    }
}

/// Why a function failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: ringflake_status,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

/// Boxed, so that a take returns two registers.
pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

impl Failure {
    #[cold]
    pub(crate) fn new(status: ringflake_status, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            status,
            message: message.into(),
            retry_after: None,
        })
    }

    #[cold]
    fn of(status: ringflake_status, error: &dyn Error) -> Box<Self> {
        Self::new(status, with_causes(error))
    }
}

/// The message of the error and of its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    message
}

impl From<TakeError> for Box<Failure> {
    #[cold]
    fn from(error: TakeError) -> Self {
        let mut failure = match error {
            TakeError::Empty => Failure::new(
                RINGFLAKE_EMPTY,
                "the rings are empty: try again, raise `capacity` or `threshold`, or leave out \
                 `on-empty`",
            ),
            TakeError::TimedOut { waited } => Failure::new(
                RINGFLAKE_TIMED_OUT,
                format!(
                    "the rings stayed empty for {waited:?}: raise `capacity`, `threshold` or \
                     `producers`, or leave out `on-empty`"
                ),
            ),
            TakeError::NoPage { .. } => Failure::of(RINGFLAKE_SYSTEM, &error),
            TakeError::Refused(Refused::BorrowLimit { .. }) => {
                Failure::of(RINGFLAKE_BORROW_LIMIT, &error)
            }
            TakeError::Refused(Refused::Forked) => forked(),
            _ => Failure::of(RINGFLAKE_NO_LEASE, &error),
        };
        failure.retry_after = error.retry_after();
        failure
    }
}

/// The failure of a call in a forked child.
#[cold]
pub(crate) fn forked() -> Box<Failure> {
    Failure::new(
        RINGFLAKE_FORKED,
        "this process is a forked child, and the generator belongs to its parent: make one for \
         the child with ringflake_reopen",
    )
}

impl From<BuildError> for Box<Failure> {
    fn from(error: BuildError) -> Self {
        let (waited, error) = match error {
            BuildError::NoLeaseYet { waited, error } => (waited, error),
            error => {
                let message = with_help(with_causes(&error), help_of_build(&error));
                let mut failure = Failure::new(of_build(&error), message);
                failure.retry_after = match error {
                    BuildError::Store(error) | BuildError::Local(LocalError::Store(error)) => {
                        retry_after(&error)
                    }
                    _ => None,
                };
                return failure;
            }
        };
        let waited = waited.as_secs_f64();
        let message = format!(
            "no lease was granted within {waited:.1}s: {}; give a longer `wait`, or `detached = \
             true` to start without a lease",
            with_causes(&error)
        );
        let mut failure = Failure::new(
            RINGFLAKE_NO_LEASE,
            with_help(message, help_of_store(&error)),
        );
        failure.retry_after = retry_after(&error).or(Some(Duration::from_secs(1)));
        failure
    }
}

fn with_help(message: String, help: Option<&str>) -> String {
    match help {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

/// What to do about it, in the keys of a configuration.
fn help_of_build(error: &BuildError) -> Option<&str> {
    Some(match error {
        BuildError::Store(error) => return help_of_store(error),
        BuildError::Local(LocalError::OtherWidth { .. }) => {
            "set `id-width` as it was created; or use another name, and keep its IDs apart from \
             the old ones"
        }
        BuildError::Local(LocalError::Store(StoreError::NotDurable { .. })) => {
            "set `data-dir` to a directory on a local disk, or accept the risk with `best-effort = \
             true`"
        }
        BuildError::Local(LocalError::NoHome) => "set `data-dir` to a directory",
        BuildError::Local(LocalError::Directory { source, .. })
            if source.kind() != ErrorKind::TimedOut =>
        {
            "run as the user that it belongs to, and check that its disk is writable and has free \
             space; only if it does not exist yet, set `data-dir` to another directory, whose IDs \
             can equal those of any other"
        }
        error => return error.help(),
    })
}

/// The same of a store.
fn help_of_store(error: &StoreError) -> Option<&str> {
    Some(match error {
        StoreError::NotDurable { .. } => {
            "change that setting, or accept the risk with `best-effort = true`"
        }
        StoreError::NotInitialised { .. } | StoreError::HistoryUnknown { .. } => {
            "set `init-if-new` to `new` only if no ID with a present or future time was issued with \
             its layout and secret, else, once the clock is right, to `unknown`; if its horizon or \
             failover time was longer than the default, initialise it by hand with the old ones"
        }
        StoreError::FingerprintMismatch { .. } => {
            "use the secret and the `id-width` that it was initialised with; or another namespace \
             with another secret, and keep its IDs apart from the old ones"
        }
        error => return error.help(),
    })
}

fn retry_after(error: &StoreError) -> Option<Duration> {
    match error {
        StoreError::FloorAhead { retry_after, .. } | StoreError::Exhausted { retry_after, .. } => {
            Some(*retry_after)
        }
        _ => None,
    }
}

fn of_build(error: &BuildError) -> ringflake_status {
    match error {
        BuildError::Store(error) => of_store(error),
        BuildError::System(_) => RINGFLAKE_SYSTEM,
        BuildError::Ring(engine::RingError::Memory(_)) => RINGFLAKE_SYSTEM,
        BuildError::Local(error) => match error {
            LocalError::Store(error) => of_store(error),
            LocalError::Name(_)
            | LocalError::NameLength { .. }
            | LocalError::OtherWidth { .. }
            | LocalError::ReservedName { .. }
            | LocalError::Place(_) => RINGFLAKE_CONFIG,
            LocalError::Secret(_)
            | LocalError::SecretFile { .. }
            | LocalError::NoSecret { .. }
            | LocalError::SecretLost { .. }
            | LocalError::OtherSecret { .. }
            | LocalError::SecretBrought { .. }
            | LocalError::SecretUsed { .. } => RINGFLAKE_SECRET,
            _ => RINGFLAKE_STORE,
        },
        _ => RINGFLAKE_CONFIG,
    }
}

fn of_store(error: &StoreError) -> ringflake_status {
    match error {
        StoreError::FingerprintMismatch { .. } | StoreError::SecretInUse { .. } => RINGFLAKE_SECRET,
        StoreError::LayoutMismatch { .. } => RINGFLAKE_CONFIG,
        StoreError::Exhausted { .. } | StoreError::FloorAhead { .. } => RINGFLAKE_NO_LEASE,
        _ => RINGFLAKE_STORE,
    }
}

impl From<SecretError> for Box<Failure> {
    fn from(error: SecretError) -> Self {
        Failure::of(RINGFLAKE_SECRET, &error)
    }
}

impl From<ParseIdError> for Box<Failure> {
    fn from(error: ParseIdError) -> Self {
        Failure::of(RINGFLAKE_BAD_TEXT, &error)
    }
}

impl From<LayoutError> for Box<Failure> {
    fn from(error: LayoutError) -> Self {
        Failure::of(RINGFLAKE_FOREIGN_ID, &error)
    }
}

/// The last failure of a thread, in the form in which C reads it.
struct LastError {
    status: ringflake_status,
    message: CString,
    retry_after_ms: i64,
}

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// Keeps the failure as this thread's last one, and returns its status.
#[cold]
pub(crate) fn keep(failure: Failure) -> ringflake_status {
    let Failure {
        status,
        message,
        retry_after,
    } = failure;
    let mut bytes = message.into_bytes();
    bytes.retain(|&byte| byte != 0);
    // Rounded up: a caller that waits for as long must not come too early.
    let in_ms = |time: Duration| i64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i64::MAX);
    let last = LastError {
        status,
        message: CString::new(bytes).unwrap_or_default(),
        retry_after_ms: retry_after.map_or(-1, in_ms),
    };
    // While a thread ends, its last error may be gone already.
    let _ = LAST.try_with(|kept| kept.replace(Some(last)));
    status
}

/// The result of `read` on this thread's last failure; none if no call has failed.
fn last<T>(read: impl FnOnce(&LastError) -> T) -> Option<T> {
    LAST.try_with(|kept| kept.borrow().as_ref().map(read))
        .ok()
        .flatten()
}

pub(crate) fn last_status() -> ringflake_status {
    last(|error| error.status).unwrap_or(RINGFLAKE_OK)
}

/// Lives in the thread's storage until the next failure replaces it.
pub(crate) fn last_message() -> *const c_char {
    last(|error| error.message.as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn last_retry_after_ms() -> i64 {
    last(|error| error.retry_after_ms).unwrap_or(-1)
}

/// The message of a panic.
pub(crate) fn panicked(payload: Box<dyn std::any::Any + Send>) -> Box<Failure> {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&str>() {
            Ok(text) => (*text).to_owned(),
            Err(payload) => {
                // Its destructor could panic as well.
                std::mem::forget(payload);
                "without a message".to_owned()
            }
        },
    };
    Failure::new(RINGFLAKE_PANIC, format!("the library panicked: {text}"))
}

/// A non-null pointer to read or write through.
pub(crate) fn required<T>(pointer: *const T, name: &str) -> Outcome<ptr::NonNull<T>> {
    ptr::NonNull::new(pointer.cast_mut())
        .ok_or_else(|| Failure::new(RINGFLAKE_INVALID, format!("`{name}` is NULL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_says_when_to_open_again() {
        let retry_after = Duration::from_secs(60);
        let exhausted = || StoreError::Exhausted {
            wanted: 1,
            blocks: 1,
            retry_after,
        };
        let no_lease_yet = BuildError::NoLeaseYet {
            waited: Duration::from_secs(10),
            error: exhausted(),
        };
        for error in [BuildError::Store(exhausted()), no_lease_yet] {
            let failure = Box::<Failure>::from(error);
            assert_eq!(failure.status, RINGFLAKE_NO_LEASE);
            assert_eq!(failure.retry_after, Some(retry_after));
        }
    }
}
