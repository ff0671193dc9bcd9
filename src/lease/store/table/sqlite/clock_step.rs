//! Detects steps of the machine's clock.
//!
//! Store and caller read one clock, so comparing the two is useless. If that clock were years ahead
//! for a moment, it would push the marks of the blocks granted meanwhile years ahead, and out of
//! use until then. But the machine's uptime is a second witness, which can't be set. Within one
//! boot the difference between the two stays as it is, unless somebody sets the clock.
//!
//! # States
//! The file keeps the boot and the difference when the clock was last
//! accepted, and, while there is one, a doubt: another difference, and the
//! uptime at which it was first seen.
//!
//! | recorded | found | |
//! |---|---|---|
//! | nothing, or another boot | anything | accepted and recorded |
//! | a difference | it, within the limit | accepted and recorded; a doubt is dropped |
//! | a difference | something else | doubted, from now on |
//! | a difference and a doubt | the doubt, within the limit, for less than [`SETTLE`] | doubted still |
//! | a difference and a doubt | the doubt, within the limit, for [`SETTLE`] | accepted and recorded |
//!
//! # What follows
//! A step to and fro within [`SETTLE`] moves no mark. One process whose clock is
//! wrong by itself is kept out for as long as others come by in between. No
//! machine is locked out: one that was off for a year has booted since, and a
//! clock that was set right, or a virtual machine that was stopped for an hour,
//! is accepted after a minute. That minute is the price. A time namespace that
//! shifts the uptime looks like a clock that was set. Uniqueness has no part in
//! this: marks and floor see to it, whatever the clock says.

use std::sync::Arc;
use std::time::Duration;

use super::system;
use crate::clock::Clock;
use crate::lease::store::table::ClockError;

/// For how long a clock that was set must keep its new time before it counts.
pub(crate) const SETTLE: Duration = Duration::from_secs(60);

/// A step up to this long is none. It puts blocks out of use for as long at most.
pub(crate) const LIMIT: Duration = Duration::from_secs(20 * 60);

/// How long this boot of the machine has lasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease) struct Uptime {
    /// Names the boot.
    pub(in crate::lease) boot: String,
    pub(in crate::lease) ms: u64,
}

impl Uptime {
    /// None where the system does not show it: then every time is accepted.
    pub(super) fn read() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Self {
            boot: boot.trim().to_owned(),
            ms: system::uptime_ms()?,
        })
    }
}

/// The machine's clock, and its uptime beside it.
#[derive(Clone, Debug)]
pub(super) struct MachineClock {
    clock: Arc<dyn Clock>,
    /// None for a clock that has nothing to do with the machine's uptime.
    uptime: Option<fn() -> Option<Uptime>>,
}

impl MachineClock {
    pub(super) fn new(clock: Arc<dyn Clock>, uptime: Option<fn() -> Option<Uptime>>) -> Self {
        Self { clock, uptime }
    }

    /// In milliseconds since 1970.
    pub(super) fn unix_ms(&self) -> u64 {
        self.clock.unix_ms()
    }

    pub(super) fn uptime(&self) -> Option<Uptime> {
        self.uptime.and_then(|read| read())
    }
}

/// The clock when it was last accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockOffset {
    pub(super) boot: String,
    /// Clock minus uptime, in milliseconds.
    pub(super) offset_ms: i64,
    pub(super) doubt: Option<Doubt>,
}

/// Another way in which the clock was seen to stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Clock minus uptime, in milliseconds.
    pub(super) offset_ms: i64,
    /// The uptime when it was first seen, in milliseconds.
    pub(super) since_ms: u64,
}

/// The verdict on a time, and the new record.
#[derive(Debug)]
pub(super) enum Judgement {
    Believed(ClockOffset),
    /// With the error that has the expected time.
    Doubted(ClockOffset, ClockError),
}

/// Judges the clock's time, in milliseconds since 1970, by the uptime and what
/// is recorded.
pub(super) fn judge(recorded: Option<&ClockOffset>, uptime: &Uptime, unix_ms: u64) -> Judgement {
    let offset_ms = clamped(unix_ms) - clamped(uptime.ms);
    let near = |other: i64| u128::from(offset_ms.abs_diff(other)) <= LIMIT.as_millis();
    let believed = || {
        Judgement::Believed(ClockOffset {
            boot: uptime.boot.clone(),
            offset_ms,
            doubt: None,
        })
    };

    let Some(recorded) = recorded.filter(|recorded| recorded.boot == uptime.boot) else {
        return believed();
    };
    if near(recorded.offset_ms) {
        return believed();
    }
    let doubt = match &recorded.doubt {
        Some(doubt) if near(doubt.offset_ms) => doubt.clone(),
        _ => Doubt {
            offset_ms,
            since_ms: uptime.ms,
        },
    };
    let settled = Duration::from_millis(uptime.ms.saturating_sub(doubt.since_ms));
    if settled >= SETTLE {
        return believed();
    }
    let expected = recorded.offset_ms.saturating_add(clamped(uptime.ms));
    let expected_unix_ms = u64::try_from(expected).unwrap_or(0);
    let error = ClockError::Stepped {
        expected_unix_ms,
        shown_unix_ms: unix_ms,
        limit: LIMIT,
        retry_after: SETTLE - settled,
    };
    let clock = ClockOffset {
        doubt: Some(doubt),
        ..recorded.clone()
    };
    Judgement::Doubted(clock, error)
}

/// Half the range at most, so that the difference of two is in range.
fn clamped(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const TEN_YEARS: u64 = 10 * 365 * 24 * HOUR;
    /// The machine booted at this time.
    const BOOT: u64 = 1_760_000_000_000;
    const SETTLE_MS: u64 = SETTLE.as_millis() as u64;

    /// A record, fed with what the clock shows at an uptime.
    #[derive(Default)]
    struct Watch(Option<ClockOffset>);

    impl Watch {
        fn sees(&mut self, boot: &str, uptime_ms: u64, unix_ms: u64) -> Option<Duration> {
            let uptime = Uptime {
                boot: boot.into(),
                ms: uptime_ms,
            };
            match judge(self.0.as_ref(), &uptime, unix_ms) {
                Judgement::Believed(clock) => {
                    self.0 = Some(clock);
                    None
                }
                Judgement::Doubted(
                    clock,
                    ClockError::Stepped {
                        expected_unix_ms,
                        shown_unix_ms,
                        retry_after,
                        ..
                    },
                ) => {
                    assert_eq!(shown_unix_ms, unix_ms);
                    assert!(expected_unix_ms.abs_diff(unix_ms) > LIMIT.as_millis() as u64);
                    self.0 = Some(clock);
                    Some(retry_after)
                }
                Judgement::Doubted(_, error) => panic!("{error:?}"),
            }
        }
    }

    fn at(uptime_ms: u64) -> u64 {
        BOOT + uptime_ms
    }

    #[test]
    fn time_may_pass_and_the_clock_be_trimmed() {
        let mut watch = Watch::default();
        let mut trim = 0;
        for hour in 0..100 {
            trim += LIMIT.as_millis() as u64;
            let uptime = hour * HOUR;
            assert_eq!(watch.sees("a", uptime, at(uptime) + trim), None, "{hour}");
        }
    }

    #[test]
    fn a_step_either_way_counts_only_once_it_has_settled() {
        for stepped in [at(HOUR) + TEN_YEARS, at(HOUR) - TEN_YEARS] {
            let mut watch = Watch::default();
            assert_eq!(watch.sees("a", HOUR, at(HOUR)), None);
            assert_eq!(watch.sees("a", HOUR, stepped), Some(SETTLE));
            let almost = SETTLE_MS - 1;
            assert_eq!(
                watch.sees("a", HOUR + almost, stepped + almost),
                Some(Duration::from_millis(1))
            );
            assert_eq!(watch.sees("a", HOUR + SETTLE_MS, stepped + SETTLE_MS), None);
            assert_eq!(watch.sees("a", HOUR + SETTLE_MS, stepped), None);
        }
    }

    #[test]
    fn a_step_to_and_fro_leaves_nothing() {
        let mut watch = Watch::default();
        assert_eq!(watch.sees("a", HOUR, at(HOUR)), None);
        assert!(watch.sees("a", HOUR, at(HOUR) + TEN_YEARS).is_some());
        assert_eq!(watch.sees("a", HOUR + 1, at(HOUR + 1)), None);
        // A minute later it would have settled, had nobody seen the right time.
        let later = HOUR + SETTLE_MS;
        assert_eq!(watch.sees("a", later, at(later) + TEN_YEARS), Some(SETTLE));
        // As does a clock that is set again and again.
        let again = later + SETTLE_MS;
        assert_eq!(
            watch.sees("a", again, at(again) + 2 * TEN_YEARS),
            Some(SETTLE)
        );
    }

    #[test]
    fn a_machine_that_was_off_is_not_locked_out() {
        let mut watch = Watch::default();
        assert_eq!(watch.sees("a", 9 * HOUR, at(9 * HOUR)), None);
        assert_eq!(watch.sees("b", 10, at(9 * HOUR) + TEN_YEARS), None);
        // A new boot has no doubts left over from the one before.
        assert!(watch.sees("b", 20, at(0)).is_some());
        assert_eq!(watch.sees("c", 0, at(0)), None);
    }

    #[test]
    fn numbers_out_of_range_are_no_more_than_wrong() {
        for (uptime, time) in [(0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
            let mut watch = Watch::default();
            assert_eq!(watch.sees("a", HOUR, at(HOUR)), None);
            assert!(watch.sees("a", uptime, time).is_some());
        }
    }
}
