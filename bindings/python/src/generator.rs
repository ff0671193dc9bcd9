//! The class `Generator`: an engine's generator for each process that uses the object.
//!
//! # States
//! Of one object, in one process. The GIL protects the state; nothing else locks it.
//!
//! | state | left by | to |
//! |---|---|---|
//! | `Unopened`: from `pickle`, or not open yet | first use: opens | `Own` |
//! | `Own`: `State::Open` with a generator of this process | `shutdown` | `Closed` |
//! | `Inherited`: `State::Open` with a generator of the parent | first use: opens another | `Own` |
//! | `Closed` | nothing | |
//!
//! A fork copies the state into the child, where `Own` reads as `Inherited`: no code runs for
//! that. The engine's generator shows which it is: its marks read as zero in a child.
//! Every use but `inspect` and `shutdown` of an inherited one opens another with the same
//! configuration.
//!
//! # What is promised
//! P1. No ID of the parent is issued in a child.
//! P2. No child waits for a thread or a lock that only its parent has.
//! P3. At most one thread of a process opens for an object at a time.
//! P4. A generator of the parent is never dropped in a child.
//!
//! # Why
//! * P1: an inherited generator fails each take (the engine's promise, see its `fork.rs`), and
//!   `Own` starts with leases of its own. One gap is left: IDs that were taken, but not yet
//!   returned. A fork inside a call is possible only where Python code runs: in
//!   `check_signals`, and in what a garbage collection calls. [`Generator::fill`] and
//!   `take_many` compare the [`Process`] afterwards, and drop what was taken before.
//! * P2: a child starts with its forking thread alone, which had the GIL. So none of the state
//!   was being changed. Of what another thread was doing, only `opening` is left. It names its
//!   process, and one of another process counts for nothing. A thread that waits for another
//!   one to open polls: a condition variable could be left locked by the fork. A thread that
//!   opens waits for a helper on a channel; after each run of Python code it compares the
//!   process, and leaves a channel whose helper is the parent's ([`Ended::Forked`]).
//! * P3: `opening` is set and cleared with the GIL held, and nobody opens while it names this
//!   process.
//! * P4: each place that replaces or drops a generator asks it first, and leaks an inherited one:
//!   its locks may be held for ever. Its memory is shared with the parent until written.
//!
//! A take never releases the GIL, so the generator that it reads stays. What releases the GIL has
//! a clone of the `Arc`; `shutdown` waits for the clones.
//!
//! A fork waits until no thread is inside SQLite: the engine's promise, see its
//! `table/sqlite/process.rs`.

use std::cell::UnsafeCell;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use engine::{CachedGenerator, Id, Refused, Shutdown, TakeError};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::buffer::Buffer;
use crate::config::Config;
use crate::error::{Failure, Kind, Outcome, with_causes};
use crate::fork::Process;
use crate::text;

/// How long a thread waits without a look at signals.
const SLICE: Duration = Duration::from_millis(50);
/// Between two looks at what another thread does.
const PAUSE: Duration = Duration::from_millis(1);
/// IDs that are taken without a look at signals.
const CHUNK: usize = 1 << 16;
/// IDs that are taken without releasing the GIL: some 20 us.
const FEW: usize = 1024;

/// A source of unique IDs, shared by any number of threads.
#[pyclass(frozen, module = "ringflake", weakref)]
pub(crate) struct Generator {
    state: Locked<State>,
    /// The process in which a thread opens, if one does.
    opening: Locked<Option<Process>>,
    config: Config,
    /// The keyword arguments, for `pickle`.
    options: Py<PyDict>,
}

enum State {
    Unopened,
    Open(Arc<CachedGenerator>),
    Closed,
}

/// A value that the GIL protects.
struct Locked<T>(UnsafeCell<T>);

// SAFETY: every access has the GIL, by its `Python`. The module declares that it needs the GIL.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Reads the value. `read` must not run Python code, release the GIL, or use this value.
    #[inline]
    fn with<R>(&self, _: Python<'_>, read: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the GIL is held until `read` returns, so nobody writes.
        read(unsafe { &*self.0.get() })
    }

    fn replace(&self, _: Python<'_>, value: T) -> T {
        // SAFETY: the GIL is held, and no reference outlives `with`.
        mem::replace(unsafe { &mut *self.0.get() }, value)
    }
}

impl Generator {
    pub(crate) fn unopened(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self {
            state: Locked::new(State::Unopened),
            opening: Locked::new(None),
            config: Config::read(options)?,
            options: options.clone().unbind(),
        })
    }

    /// This process's generator, which is opened if there is none.
    pub(crate) fn open(&self, py: Python<'_>) -> PyResult<Arc<CachedGenerator>> {
        loop {
            let open = self.state.with(py, |state| match state {
                State::Open(ids) if !is_inherited(ids) => Ok(Some(Arc::clone(ids))),
                State::Open(_) | State::Unopened => Ok(None),
                State::Closed => Err(Failure::closed()),
            })?;
            if let Some(ids) = open {
                return Ok(ids);
            }
            let process = Process::current();
            if self.opening.with(py, |opening| *opening == Some(process)) {
                py.detach(|| thread::sleep(PAUSE));
                py.check_signals()?;
                continue;
            }
            self.opening.replace(py, Some(process));
            let config = self.config.clone();
            let ended = run(py, move || config.open());
            if !matches!(ended, Ended::Forked) {
                self.opening.replace(py, None);
            }
            let ids = match ended {
                Ended::Done(ids) => Arc::new(ids?),
                Ended::Failed(error) => return Err(error),
                Ended::Forked => continue,
            };
            // Another thread may have closed the object meanwhile.
            let next = self.state.with(py, |state| match state {
                State::Closed => State::Closed,
                _ => State::Open(Arc::clone(&ids)),
            });
            let is_closed = matches!(next, State::Closed);
            if let State::Open(parents) = self.state.replace(py, next) {
                mem::forget(parents);
            }
            if is_closed {
                self.release(py, ids);
                return Err(Failure::closed().into());
            }
            return Ok(ids);
        }
    }

    /// Drops a generator of this process, and waits for a second at most until its leases are
    /// released.
    fn release(&self, py: Python<'_>, ids: Arc<CachedGenerator>) {
        py.detach(|| drop(ids));
    }

    /// Calls `take` on this process's generator, with the GIL held or not.
    fn try_take<T: Send>(
        &self,
        py: Python<'_>,
        detached: bool,
        mut take: impl FnMut(&CachedGenerator) -> Result<T, TakeError> + Send,
    ) -> PyResult<T> {
        loop {
            let ids = self.open(py)?;
            let taken = match detached {
                true => py.detach(|| take(&ids)),
                false => take(&ids),
            };
            match taken {
                Ok(taken) => return Ok(taken),
                // Forked since it was looked at: by another library, without the GIL.
                Err(TakeError::Refused(Refused::Forked)) => {}
                Err(error) => return Err(Box::<Failure>::from(error).into()),
            }
        }
    }

    #[inline]
    fn take_id(&self, py: Python<'_>) -> PyResult<Id> {
        let taken = self.state.with(py, |state| match state {
            State::Open(ids) => ids.take().ok(),
            _ => None,
        });
        match taken {
            Some(id) => Ok(id),
            None => self.take_slowly(py),
        }
    }

    #[cold]
    fn take_slowly(&self, py: Python<'_>) -> PyResult<Id> {
        self.try_take(py, false, CachedGenerator::take)
    }

    /// Takes `count` IDs, and passes them to `write` with the place of the first one. After a
    /// fork it starts from the front.
    fn fill(
        &self,
        py: Python<'_>,
        count: usize,
        mut write: impl FnMut(usize, &[Id]),
    ) -> PyResult<()> {
        let mut chunk = vec![Id::default(); count.min(CHUNK)];
        'start: loop {
            let process = Process::current();
            let mut done = 0;
            while done < count {
                let wanted = chunk.len().min(count - done);
                let room = &mut chunk[..wanted];
                let taken = self.try_take(py, wanted > FEW, |ids| ids.take_batch(room))?;
                // A helper or a signal handler may have forked in `try_take`.
                if Process::current() != process {
                    continue 'start;
                }
                write(done, &chunk[..taken]);
                done += taken;
                if done < count {
                    py.check_signals()?;
                    if Process::current() != process {
                        continue 'start;
                    }
                }
            }
            return Ok(());
        }
    }
}

#[pymethods]
impl Generator {
    /// Takes one ID.
    fn take(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.take_id(py)?.to_u64())
    }

    /// Takes `count` IDs, which cost less each than one by one.
    #[pyo3(signature = (count, /))]
    fn take_many<'py>(&self, py: Python<'py>, count: isize) -> PyResult<Bound<'py, PyList>> {
        let Ok(count) = usize::try_from(count) else {
            return Err(PyValueError::new_err("`count` is negative: give 0 or more"));
        };
        loop {
            let process = Process::current();
            let mut ids = Vec::new();
            if ids.try_reserve_exact(count).is_err() {
                return Err(PyMemoryError::new_err(()));
            }
            self.fill(py, count, |at, taken| {
                ids.truncate(at);
                ids.extend(taken.iter().map(|id| id.to_u64()));
            })?;
            let list = PyList::new(py, ids)?;
            if Process::current() == process {
                return Ok(list);
            }
        }
    }

    /// Fills a writable, contiguous buffer of 64-bit integers with IDs: an `array('Q')`, a NumPy
    /// array of `uint64`, a `memoryview`. Signed integers are accepted if all IDs are below 2**63.
    ///
    /// On failure a part of the buffer may be overwritten.
    #[pyo3(signature = (buffer, /))]
    fn take_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = Buffer::of(buffer, self.config.fits_signed())?;
        self.fill(py, buffer.length(), |at, ids| buffer.write(at, ids))
    }

    /// Takes one ID as text: `3ip9iuvinajdb`, or `order_3ip9iuvinajdb` with the prefix `order`.
    #[pyo3(signature = (prefix=None, /))]
    fn take_text(&self, py: Python<'_>, prefix: Option<&str>) -> PyResult<String> {
        Ok(text::write(self.take_id(py)?, prefix)?)
    }

    /// Returns time, node and sequence of an ID of this generator's layout and secret.
    ///
    /// This authenticates nothing: most numbers that were never issued have parts as well.
    #[pyo3(signature = (an_id, /))]
    fn inspect<'py>(
        &self,
        py: Python<'py>,
        an_id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = to_id(an_id)?;
        // An inherited generator can inspect.
        let here = self.state.with(py, |state| match state {
            State::Open(ids) => Some(ids.inspect(id)),
            _ => None,
        });
        let parts = match here {
            Some(parts) => parts,
            None => self.open(py)?.inspect(id),
        };
        let parts = parts.map_err(Box::<Failure>::from)?;
        let types = py.import("ringflake._types")?;
        types.call_method1("make_parts", (parts.unix_ms, parts.node, parts.sequence))
    }

    /// Waits until a lease is in force, for `timeout` seconds at most, or for ever. Raises
    /// `WaitTimeoutError` with the store's last error.
    #[pyo3(signature = (timeout=None))]
    fn wait_ready(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = timeout.map(seconds).transpose()?;
        let start = Instant::now();
        loop {
            let ids = self.open(py)?;
            let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            if py.detach(|| ids.wait_ready(slice)) {
                return Ok(());
            }
            if left.is_some_and(|left| left <= slice) {
                let cause = ids.lease_status().and_then(|status| {
                    let error = status.health.last_error?;
                    Some(with_causes(&error))
                });
                let cause = cause.as_deref().unwrap_or("the store was not asked yet");
                let timeout = timeout.unwrap_or_default().as_secs_f64();
                return Err(Failure::new(
                    Kind::WaitTimeout,
                    format!("no lease was granted within {timeout} s: {cause}"),
                )
                .into());
            }
            drop(ids);
            py.check_signals()?;
        }
    }

    /// Whether a lease is in force.
    #[getter]
    fn ready(&self, py: Python<'_>) -> PyResult<bool> {
        let is_closed = self.state.with(py, |state| matches!(state, State::Closed));
        Ok(!is_closed && self.open(py)?.is_ready())
    }

    /// Reads the figures of this process's generator.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.open(py)?.stats();
        let (failed, refused) = (stats.failed, stats.failed.refused);
        let failed = failed.empty
            + failed.timed_out
            + refused.borrow_limit
            + refused.lease_ended
            + refused.no_lease
            + refused.invalidated;
        let figures = (
            stats.level,
            stats.capacity,
            stats.threshold,
            stats.issued,
            stats.empties,
            failed,
            stats.retired,
            stats.borrowed.as_secs_f64(),
            stats.borrow_limit.as_secs_f64(),
            stats.lease_end_unix_ms,
        );
        let types = py.import("ringflake._types")?;
        types.call_method1("make_stats", figures)
    }

    /// Gives up all leases, and all IDs that were made ahead. Call it when a virtual machine was
    /// resumed from a snapshot, before the first take.
    fn invalidate(&self, py: Python<'_>) -> PyResult<()> {
        let ids = self.open(py)?;
        py.detach(|| ids.invalidate());
        Ok(())
    }

    /// Closes the generator, and waits for `timeout` seconds at most until its leases are
    /// released. Returns whether they are; if not, their nodes are free when the leases end.
    ///
    /// Every later take raises `ClosedError`. In a forked child, the parent's generator stays as
    /// it is.
    #[pyo3(signature = (timeout=1.0))]
    fn shutdown(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = seconds(timeout)?;
        let start = Instant::now();
        let State::Open(mut ids) = self.state.replace(py, State::Closed) else {
            return Ok(true);
        };
        if is_inherited(&ids) {
            mem::forget(ids);
            return Ok(true);
        }
        let process = Process::current();
        let last = loop {
            match Arc::try_unwrap(ids) {
                Ok(last) => break last,
                Err(shared) => ids = shared,
            }
            // A call in another thread goes on with its clone, and the last one to drop it
            // releases the leases.
            if start.elapsed() >= timeout {
                self.release(py, ids);
                return Ok(false);
            }
            py.detach(|| thread::sleep(PAUSE));
            let checked = py.check_signals();
            if Process::current() != process {
                mem::forget(ids);
                return checked.map(|()| true);
            }
            if let Err(error) = checked {
                self.release(py, ids);
                return Err(error);
            }
        };
        let left = timeout.saturating_sub(start.elapsed());
        let close = move || Ok(last.shutdown(left));
        match run(py, close) {
            Ended::Done(shutdown) => Ok(shutdown? == Shutdown::Released),
            Ended::Failed(error) => Err(error),
            Ended::Forked => Ok(true),
        }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<u64> {
        self.take(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.shutdown(py, 1.0)?;
        Ok(())
    }

    /// As its configuration: the copy is opened by its first use, with leases of its own.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.state.with(py, |state| matches!(state, State::Closed)) {
            return Err(Failure::closed().into());
        }
        let open_later = py.import("ringflake._ringflake")?.getattr("open_later")?;
        (open_later, (self.options.bind(py),)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        // No other option: a URL may hold a password.
        let state = self.state.with(py, |state| match state {
            State::Closed => ", closed",
            _ => "",
        });
        format!("<ringflake.Generator {:?}{state}>", self.config.name())
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let State::Open(ids) = mem::replace(self.state.0.get_mut(), State::Closed) else {
            return;
        };
        if is_inherited(&ids) {
            mem::forget(ids);
            return;
        }
        // `None` after the end of the interpreter, which drops it as well.
        let _ = Python::try_attach(|py| self.release(py, ids));
    }
}

/// Whether the generator belongs to the process that this one was forked from. Every generator
/// here has a store, and only an inherited one has no status.
fn is_inherited(ids: &CachedGenerator) -> bool {
    ids.lease_status().is_none()
}

/// An ID from Python: an `int`, or what has `__index__`.
pub(crate) fn to_id(number: &Bound<'_, PyAny>) -> PyResult<Id> {
    match number.extract() {
        Ok(number) => Ok(Id::from_u64(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Err(Failure::new(
            Kind::ForeignId,
            "the number is no ID: IDs are 0 or more, and below 2**64",
        )
        .into()),
        Err(error) => Err(error),
    }
}

fn seconds(timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout).map_err(|_| {
        let message = format!("`timeout={timeout}` is wrong: give seconds, 0 or more");
        Failure::new(Kind::Config, message).into()
    })
}

/// How a call of [`run`] ended.
enum Ended<T> {
    Done(Outcome<T>),
    /// By a signal handler's exception. The helper finishes, and drops its result.
    Failed(PyErr),
    /// A signal handler has forked, and this is the child, which has no helper.
    Forked,
}

/// Runs `work` in a helper thread, so that signal handlers run meanwhile.
fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Ended<T> {
    let process = Process::current();
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let helper = move || {
        // Nobody receives it if the caller was interrupted.
        let _ = sender.send(work());
    };
    let spawned = thread::Builder::new()
        .name("ringflake-open".into())
        .spawn(helper);
    if let Err(error) = spawned {
        return Ended::Done(Err(Failure::no_thread(&error)));
    }
    loop {
        let received = py.detach(|| {
            let receiver = &mut receiver;
            receiver.recv_timeout(SLICE)
        });
        match received {
            Ok(outcome) => return Ended::Done(outcome),
            Err(RecvTimeoutError::Disconnected) => {
                return Ended::Done(Err(Failure::new(Kind::Internal, "the library panicked")));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let checked = py.check_signals();
        let is_child = Process::current() != process;
        if is_child {
            mem::forget(receiver);
            return checked.map_or_else(Ended::Failed, |()| Ended::Forked);
        }
        if let Err(error) = checked {
            return Ended::Failed(error);
        }
    }
}
