//! Whether a generator can issue IDs at this moment, and for how long; and whether a server
//! can begin namespaces in its data directory.
//!
//! ```text
//! no lease, or none that lasts ----------------------------------------> Obstacle::NoLease
//! one begins within the borrow limit, and the last ID lies within it --> ready, until its end
//! else, with IDs in the ring -------------------------------------------> ready, for those
//! else -----------------------------------------------------------------> Obstacle::Ahead
//! ```
//!
//! A lease can be in force and of no use yet: where a store has to grant above all that may
//! have been granted before, it begins up to a horizon ahead of the clock, and no ID of it is
//! made until the borrow limit reaches its first tick. The same holds of what lies ahead of a
//! clock that was set back. Who takes more than the leases sustain stands at the limit, not
//! beyond it: there the next tick brings more, so that is ready.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::StoreError;
use ringflake::{CachedGenerator, Local, LocalError, SecretError, Stats};

use crate::lock::lock;
use crate::wording::{Causes, help_of_local};

/// Why a namespace can issue no ID at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// No lease is in force.
    NoLease,
    /// The next ID lies further ahead of the clock than may be borrowed: the lease begins
    /// later, or the clock was set back.
    Ahead {
        /// About how long until it can be issued.
        retry_after: Duration,
    },
    /// Clients may begin namespaces, and no file can be written to the data directory.
    DataDir {
        /// The operating system's answer.
        kind: io::ErrorKind,
    },
    /// Clients may begin namespaces, and the data directory can't be used for new ones.
    Refused {
        /// Without paths, since everybody may read it.
        reason: &'static str,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLease => f.write_str("no lease is in force"),
            Self::Ahead { retry_after } => write!(
                f,
                "the next ID is further ahead of the clock than the borrow limit allows: retry in \
                 {}s",
                whole_seconds(*retry_after)
            ),
            Self::DataDir { kind } => write!(
                f,
                "the data directory can't be written, so no namespace can be created: {kind}"
            ),
            Self::Refused { reason } => write!(
                f,
                "the data directory can't be used, so no namespace can be created: {reason}"
            ),
        }
    }
}

/// As many seconds as it takes at most.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl From<LocalError> for Obstacle {
    /// Of the data directory.
    fn from(error: LocalError) -> Self {
        let reason = match error {
            LocalError::Directory { source, .. } => {
                let kind = source.kind();
                return Self::DataDir { kind };
            }
            LocalError::Copied { .. } | LocalError::Store(StoreError::Copied { .. }) => {
                "it is a copy of another one"
            }
            LocalError::Secret(SecretError::FileNotTrusted { .. }) => {
                "other users can replace its secrets"
            }
            LocalError::Secret(_) => "its secrets can't be read",
            LocalError::Store(StoreError::Corrupt { .. }) => "leases.db is damaged",
            _ => "leases.db can't be written",
        };
        Self::Refused { reason }
    }
}

/// Checks that the data directory can be used for namespaces, at most once a second.
#[derive(Debug)]
pub(crate) struct DataDirCheck(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// All of its namespaces, whatever their names.
    local: Local,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug)]
struct State {
    result: Result<(), Obstacle>,
    /// When the last check began.
    begun: Option<Instant>,
    is_running: bool,
}

impl DataDirCheck {
    /// How long a result is used, and how long a check may take.
    const PERIOD: Duration = Duration::from_secs(1);

    pub(crate) fn new(local: Local) -> Self {
        Self(Arc::new(Inner {
            local,
            state: Mutex::new(State {
                result: Ok(()),
                begun: None,
                is_running: false,
            }),
            done: Condvar::new(),
        }))
    }

    /// Why it can't be used. Blocks for a second at most: a disk that hangs holds up a
    /// thread of its own.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        let mut state = lock(&self.0.state);
        let is_fresh = |begun: Instant| begun.elapsed() < Self::PERIOD;
        if !state.is_running && !state.begun.is_some_and(is_fresh) {
            state.begun = Some(Instant::now());
            state.is_running = true;
            let inner = Arc::clone(&self.0);
            let checking = thread::Builder::new().spawn(move || {
                let result = inner.check();
                let mut state = lock(&inner.state);
                let result = result.map_err(|error| {
                    let (help, error_text) =
                        (help_of_local(&error, None), Causes(&error).to_string());
                    let obstacle = Obstacle::from(error);
                    // Once for each, and not at every look.
                    if state.result != Err(obstacle) {
                        let error = error_text;
                        tracing::warn!(error, help, "the data directory can't be used");
                    }
                    obstacle
                });
                (state.result, state.is_running) = (result, false);
                inner.done.notify_all();
            });
            if let Err(error) = checking {
                let kind = error.kind();
                (state.result, state.is_running) = (Err(Obstacle::DataDir { kind }), false);
            }
        }
        let left = state.begun.map_or(Duration::ZERO, |begun| {
            Self::PERIOD.saturating_sub(begun.elapsed())
        });
        let done = &self.0.done;
        let waited = done.wait_timeout_while(state, left, |state| state.is_running);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.is_running {
            true => Some(Obstacle::DataDir {
                kind: io::ErrorKind::TimedOut,
            }),
            false => state.result.err(),
        }
    }
}

impl Inner {
    fn check(&self) -> Result<(), LocalError> {
        let directory = self.local.check_directory()?;
        write(directory.path()).map_err(|source| LocalError::Directory {
            path: directory.path().to_owned(),
            source,
        })
    }
}

/// Writes a file, which is removed again, and never one that is there.
fn write(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".writable-{}", process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut opened = options.open(&path);
    if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
        // Of a process that was killed, or of another container.
        remove(&path)?;
        opened = options.open(&path);
    }
    // A full disk has room for an empty file.
    let written = opened?.write_all(&[0; 4096]);
    remove(&path).and(written)
}

/// Removes the file, unless another server has.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// For how long the generator can issue IDs from now on though no store answers; zero if it
/// has some in its ring and can make none at present. Or why it can issue none.
///
/// Reads counters and the clock, and takes a lock that is held for microseconds.
pub(crate) fn of(generator: &CachedGenerator) -> Result<Duration, Obstacle> {
    if !generator.is_ready() {
        return Err(Obstacle::NoLease);
    }
    let layout = generator.layout();
    // A lease without an end ends with its layout.
    let start = |tick: u64| layout.tick_start_unix_ms(tick.min(layout.ticks()));
    let leases = generator.leases();
    let ticks = leases.iter().map(|lease| lease.ticks());
    let spans = ticks.map(|ticks| start(ticks.start)..start(ticks.end));
    judge(&generator.stats(), spans.collect())
}

/// The same of leases that last from when to when, in Unix milliseconds.
fn judge(stats: &Stats, mut leases: Vec<Range<u64>>) -> Result<Duration, Obstacle> {
    let now = stats.now_unix_ms;
    // Whole ticks, so the limit reaches the first tick of a lease at this very millisecond.
    let limit_ms = u64::try_from(stats.borrow_limit.as_millis()).unwrap_or(u64::MAX);
    let within_reach = |lease: &Range<u64>| lease.start.saturating_sub(limit_ms);
    leases.retain(|lease| lease.end > now);
    leases.sort_unstable_by_key(|lease| lease.start);
    let Some(first) = leases.first() else {
        return Err(Obstacle::NoLease);
    };
    let until_begin = Duration::from_millis(within_reach(first).saturating_sub(now));
    let until_last = stats.borrowed.saturating_sub(stats.borrow_limit);
    let retry_after = until_begin.max(until_last);
    if !retry_after.is_zero() {
        return match stats.level {
            0 => Err(Obstacle::Ahead { retry_after }),
            _ => Ok(Duration::ZERO),
        };
    }
    // One that comes within reach only after the others have ended is for later.
    let end = leases.iter().fold(now, |end, lease| {
        if within_reach(lease) <= end {
            end.max(lease.end)
        } else {
            end
        }
    });
    Ok(Duration::from_millis(end - now))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use ringflake::Layout;

    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const LIMIT: u64 = 10_000;

    fn stats(level: usize, borrowed_ms: u64) -> Stats {
        let mut stats = Stats::default();
        stats.now_unix_ms = NOW;
        stats.borrow_limit = Duration::from_millis(LIMIT);
        (stats.level, stats.borrowed) = (level, Duration::from_millis(borrowed_ms));
        stats
    }

    /// Of leases whose times are counted from now.
    fn judged(stats: &Stats, leases: &[(i64, i64)]) -> Result<Duration, Obstacle> {
        let at = |ms: i64| NOW.checked_add_signed(ms).unwrap();
        let spans = leases.iter().map(|&(from, to)| at(from)..at(to));
        judge(stats, spans.collect())
    }

    fn ahead(ms: u64) -> Result<Duration, Obstacle> {
        let retry_after = Duration::from_millis(ms);
        Err(Obstacle::Ahead { retry_after })
    }

    #[test]
    fn a_lease_counts_from_where_the_borrow_limit_reaches_it_to_its_end() {
        let for_ms = |ms| Ok(Duration::from_millis(ms));
        let none = Err(Obstacle::NoLease);
        #[rustfmt::skip]
        let table = [
            (stats(7, 0), &[][..], none),
            (stats(7, 0), &[(-9, 0)], none),
            (stats(0, 0), &[(-5, 700)], for_ms(700)),
            (stats(0, 0), &[(10_000, 70_000)], for_ms(70_000)),
            (stats(0, 0), &[(10_001, 70_000)], ahead(1)),
            (stats(0, 0), &[(90_000, 95_000), (30_000, 70_000)], ahead(20_000)),
            // What waits in the ring can be taken.
            (stats(1, 0), &[(30_000, 70_000)], for_ms(0)),
            // The last ID may lie at the limit and not beyond it.
            (stats(0, LIMIT), &[(-5, 70_000)], for_ms(70_000)),
            (stats(0, LIMIT + 3), &[(-5, 70_000)], ahead(3)),
            (stats(1, LIMIT + 3), &[(-5, 70_000)], for_ms(0)),
            // It goes on over leases that follow each other.
            (stats(0, 0), &[(15_000, 40_000), (-5, 5_000)], for_ms(40_000)),
            (stats(0, 0), &[(15_001, 40_000), (-5, 5_000)], for_ms(5_000)),
        ];
        for (stats, leases, expected) in table {
            assert_eq!(judged(&stats, leases), expected, "{leases:?}");
        }
    }

    #[test]
    fn a_data_directory_is_written_at_most_once_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::create_dir(&path).unwrap();
        // A symbolic link there must not cause another file to be overwritten.
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, path.join(format!(".writable-{}", process::id()))).unwrap();
        let check = DataDirCheck::new(local(&path));
        assert_eq!(check.obstacle(), None);
        assert_eq!(fs::metadata(&victim).unwrap().len(), 8);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "nothing is left");
        fs::remove_dir(&path).unwrap();
        let begun = || lock(&check.0.state).begun.unwrap();
        let first = begun();
        ringflake_kit::eventually("it is checked again", || check.obstacle().is_some());
        assert!(begun() - first >= DataDirCheck::PERIOD);
        let kind = io::ErrorKind::NotFound;
        assert_eq!(check.obstacle(), Some(Obstacle::DataDir { kind }));
        fs::create_dir(&path).unwrap();
        ringflake_kit::eventually("it recovers", || check.obstacle().is_none());
    }

    #[test]
    fn a_data_directory_that_can_serve_no_new_namespace_is_an_obstacle() {
        let refused = |reason| Obstacle::Refused { reason };
        let timed_out = Obstacle::DataDir {
            kind: io::ErrorKind::TimedOut,
        };
        let copy = refused("it is a copy of another one");
        let lock = |path: &Path| {
            let file = fs::File::open(path.join("leases.db.lock")).unwrap();
            file.lock().unwrap();
            Some(file)
        };
        let damage = |path: &Path| {
            fs::write(path.join("leases.db"), [7; 4096]).unwrap();
            None
        };
        let open = |path: &Path| {
            ringflake_kit::tls::allow(path, 0o777);
            None
        };
        type Spoil = fn(&Path) -> Option<fs::File>;
        let table: [(Spoil, Obstacle); 5] = [
            (|path| replace(path, "leases.db"), copy),
            (|path| replace(path, "leases.db.lock"), copy),
            (damage, refused("leases.db is damaged")),
            (open, refused("other users can replace its secrets")),
            (lock, timed_out),
        ];
        for (spoil, expected) in table {
            let directory = tempfile::tempdir().unwrap();
            local(directory.path()).make(&Layout::RANDFLAKE).unwrap();
            let check = DataDirCheck::new(local(directory.path()));
            ringflake_kit::eventually("it is fine", || check.obstacle().is_none());
            let _locked = spoil(directory.path());
            ringflake_kit::eventually(&format!("{expected:?}"), || {
                check.obstacle() == Some(expected)
            });
        }
    }

    fn local(directory: &Path) -> Local {
        let local = Local::new("orders").in_directory(directory);
        local.accept_best_effort(true)
    }

    /// Puts a copy in the place of this file.
    fn replace(directory: &Path, name: &str) -> Option<fs::File> {
        let copy = directory.join("copy");
        fs::copy(directory.join(name), &copy).unwrap();
        fs::rename(&copy, directory.join(name)).unwrap();
        None
    }
}
