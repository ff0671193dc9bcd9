//! Where the time comes from.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::sync::atomic::{AtomicU64, Ordering};

/// A source of wall-clock time.
///
/// A clock may be wrong, stop, or go backwards. That costs accuracy or
/// availability, never uniqueness: no proof in this crate rests on it.
///
/// One glitch forward is kept, though: what was claimed then lies in the future
/// for good, and later claims are refused until the clock gets near to it again
/// (with a static lease) or a new lease is had.
///
/// Implementations must be cheap, some tens of nanoseconds, and must not block:
/// the clock is read whenever ID space is claimed.
///
/// # Examples
///
/// ```
/// use ringflake::Clock;
///
/// /// Time in an event log that is being replayed.
/// #[derive(Debug)]
/// struct Replay {
///     unix_ms: u64,
/// }
///
/// impl Clock for Replay {
///     fn unix_ms(&self) -> u64 {
///         self.unix_ms
///     }
/// }
///
/// assert_eq!(Replay { unix_ms: 1_730_000_000_000 }.unix_ms(), 1_730_000_000_000);
/// ```
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
    fn unix_ms(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn unix_ms(&self) -> u64 {
        (**self).unix_ms()
    }
}

/// The operating system's wall clock.
///
/// Reading it is wait-free and makes no system call where the platform maps
/// its clock into the process, as Linux does. A time before 1970 reads as 0,
/// and one that 64 bits cannot count reads as `u64::MAX`.
///
/// # Examples
///
/// ```
/// use ringflake::{Clock, Layout, SystemClock};
///
/// assert!(Layout::RANDFLAKE.tick_at(SystemClock.unix_ms()).is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_ms(&self) -> u64 {
        unix_ms_of(SystemTime::now())
    }
}

/// The operating system's wall clock as of its last timer interrupt.
///
/// On Linux it lags [`SystemClock`] by 1 to 10 ms, as the kernel was built, and
/// takes a tenth of the time to read: some 3 ns against 30. Elsewhere it is
/// [`SystemClock`].
///
/// Source: `CLOCK_REALTIME_COARSE` in `clock_gettime(2)`.
#[derive(Debug)]
pub(crate) struct CoarseClock;

impl Clock for CoarseClock {
    #[cfg(all(target_os = "linux", not(miri)))]
    fn unix_ms(&self) -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: a valid pointer to a `timespec`, which the call fills in.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut time) };
        match (result, u64::try_from(time.tv_sec)) {
            (0, Ok(seconds)) => seconds
                .saturating_mul(1000)
                .saturating_add(time.tv_nsec as u64 / 1_000_000),
            // Before 1970, or a system without this clock.
            _ => SystemClock.unix_ms(),
        }
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn unix_ms(&self) -> u64 {
        SystemClock.unix_ms()
    }
}

/// A clock that moves only when it is set, for tests and simulations.
///
/// Clones share one time. Every method is lock-free and may be called from any
/// thread. Time stops at 0 and at `u64::MAX` instead of wrapping.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use ringflake::{Clock, ManualClock};
///
/// let clock = ManualClock::new(1_730_000_000_000);
/// let seen_by_generator = clock.clone();
///
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(seen_by_generator.unix_ms(), 1_730_000_002_000);
///
/// clock.step_back(Duration::from_secs(5));
/// assert_eq!(seen_by_generator.unix_ms(), 1_729_999_997_000);
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    /// Relaxed throughout: the number stands for itself and publishes no other
    /// memory, and a real clock promises no order between threads either.
    unix_ms: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `unix_ms` milliseconds since 1970; any `u64`.
    pub fn new(unix_ms: u64) -> Self {
        Self {
            unix_ms: Arc::new(AtomicU64::new(unix_ms)),
        }
    }

    /// Sets the time to `unix_ms` milliseconds since 1970, forwards or back.
    pub fn set(&self, unix_ms: u64) {
        self.unix_ms.store(unix_ms, Ordering::Relaxed);
    }

    /// Moves the time forward by the whole milliseconds of `by`.
    pub fn advance(&self, by: Duration) {
        let by = saturating_ms(by);
        self.update(|now| now.saturating_add(by));
    }

    /// Moves the time back by the whole milliseconds of `by`.
    pub fn step_back(&self, by: Duration) {
        let by = saturating_ms(by);
        self.update(|now| now.saturating_sub(by));
    }

    fn update(&self, step: impl Fn(u64) -> u64) {
        let updated = self
            .unix_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(step(now)));
        debug_assert!(updated.is_ok(), "a step always has a result");
    }
}

impl Clock for ManualClock {
    fn unix_ms(&self) -> u64 {
        self.unix_ms.load(Ordering::Relaxed)
    }
}

fn unix_ms_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, saturating_ms)
}

fn saturating_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn a_system_time_before_1970_reads_as_zero() {
        assert_eq!(unix_ms_of(UNIX_EPOCH - Duration::from_millis(1)), 0);
        assert_eq!(unix_ms_of(UNIX_EPOCH), 0);
        assert_eq!(unix_ms_of(UNIX_EPOCH + Duration::from_micros(1_999)), 1);
    }

    #[test]
    fn the_system_clocks_count_milliseconds() {
        for clock in [&SystemClock as &dyn Clock, &CoarseClock] {
            let before = SystemTime::now();
            let read = Duration::from_millis(clock.unix_ms());
            // A step of the machine's clock may come between; a wrong unit is
            // out by a factor of a thousand.
            let apart = before
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .abs_diff(read);
            assert!(apart < Duration::from_secs(86_400), "{apart:?} apart");
        }
    }

    #[test]
    fn a_duration_past_64_bits_of_milliseconds_saturates() {
        assert_eq!(saturating_ms(Duration::MAX), u64::MAX);
        assert_eq!(
            saturating_ms(Duration::from_millis(u64::MAX - 1)),
            u64::MAX - 1
        );
    }

    #[test]
    fn clones_of_a_manual_clock_share_one_time() {
        let clock = ManualClock::new(1_000);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        assert_eq!(shared.unix_ms(), 1_000);
        clock.set(700);
        assert_eq!(shared.unix_ms(), 700);
        clock.advance(Duration::from_micros(1_999));
        assert_eq!(shared.unix_ms(), 701);
        clock.step_back(Duration::from_millis(2));
        assert_eq!(Arc::clone(&shared).unix_ms(), 699);
    }

    #[test]
    fn a_manual_clock_stops_at_either_end() {
        let clock = ManualClock::new(5);
        clock.step_back(Duration::from_millis(6));
        assert_eq!(clock.unix_ms(), 0);
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_millis(1));
        assert_eq!(clock.unix_ms(), u64::MAX);
    }

    #[test]
    fn steps_from_several_threads_all_count() {
        let clock = ManualClock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| clock.advance(Duration::from_millis(3))));
            }
        });
        assert_eq!(clock.unix_ms(), 12_000);
    }
}
