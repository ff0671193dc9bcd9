//! What the schedules met, so that none of it is silently missing.

use std::fmt;

use ringflake::lease::protocol::Answer;
use ringflake::lease::{Fence, StoreError};

macro_rules! events {
    ($($name:ident: $what:literal,)*) => {
        /// Something that can happen in a schedule.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Coverage { $($name,)* }

        const WHAT: &[&str] = &[$($what,)*];
    };
}

events! {
    Acquired: "acquired",
    Fewer: "fewer blocks than wanted",
    Renewed: "renewed",
    Released: "released",
    Checked: "checked",
    FencedByEpoch: "fenced by epoch",
    FencedByEnd: "fenced by end",
    FencedByFloor: "fenced by floor",
    FencedByIncarnation: "fenced by incarnation",
    NeverGranted: "fenced: never granted",
    FencedByQuarantine: "fenced: quarantined",
    Exhausted: "exhausted",
    FloorAhead: "floor ahead",
    ClockSkew: "clocks apart",
    BeforeEpoch: "server before the epoch",
    Unavailable: "store unavailable",
    RequestLost: "request lost",
    ReplyLost: "reply lost",
    RequestTwice: "request delivered twice",
    ReplyTwice: "reply delivered twice",
    ReplyLate: "reply after the time-out",
    ReplyVoid: "reply after invalidate",
    ReplyToBoth: "reply to both copies",
    Ambiguous: "outcome unknown",
    PastTheEnd: "awake past the end of a lease",
    HistoryLost: "history lost, and noticed",
    GivenAgain: "given again before that was noticed",
    RollBack: "rolled back",
    FailOver: "stale failover",
    OldPrimary: "answered by a superseded primary",
    Restart: "server restarted",
    RaiseFloor: "floor raised",
    Damage: "block damaged",
    Repair: "block repaired",
    ServerClock: "server's clock set",
    ClientClock: "client's clock set",
    Partition: "partition",
    Pause: "pause",
    Crash: "crash",
    ShutDown: "shut-down",
    Clone: "clone without a hook",
    CloneWithHook: "clone with a hook",
    Fork: "fork",
    RestartGenerator: "generator restarted",
    Impostor: "another secret",
    Busy: "more demand",
}

/// How often each was met.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Vec<u64>);

impl Tally {
    pub(crate) fn new() -> Self {
        Self(vec![0; WHAT.len()])
    }

    pub(crate) fn meet(&mut self, met: Coverage) {
        self.0[met as usize] += 1;
    }

    pub(crate) fn has_met(&self, met: Coverage) -> bool {
        self.0[met as usize] > 0
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0
            .iter_mut()
            .zip(&other.0)
            .for_each(|(sum, n)| *sum += n);
    }

    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let count = self.0.iter().zip(WHAT);
        count
            .filter(|(n, _)| **n == 0)
            .map(|(_, what)| *what)
            .collect()
    }

    pub(crate) fn answer(&mut self, answer: &Answer, wanted: usize) {
        let met = match answer {
            Answer::Acquired(Ok(grants)) if grants.len() < wanted => Coverage::Fewer,
            Answer::Acquired(Ok(_)) => Coverage::Acquired,
            Answer::Renewed(Ok(_)) => Coverage::Renewed,
            Answer::Released(Ok(())) => Coverage::Released,
            Answer::Checked(Ok(())) => Coverage::Checked,
            Answer::Acquired(Err(error))
            | Answer::Renewed(Err(error))
            | Answer::Released(Err(error))
            | Answer::Checked(Err(error)) => match error {
                StoreError::Fenced { fence, .. } => match fence {
                    Fence::Epoch { .. } => Coverage::FencedByEpoch,
                    Fence::End { .. } => Coverage::FencedByEnd,
                    Fence::Floor { .. } => Coverage::FencedByFloor,
                    Fence::Incarnation => Coverage::FencedByIncarnation,
                    Fence::Quarantined { .. } => Coverage::FencedByQuarantine,
                    _ => Coverage::NeverGranted,
                },
                StoreError::Exhausted { .. } => Coverage::Exhausted,
                StoreError::FloorAhead { .. } => Coverage::FloorAhead,
                StoreError::HistoryLost { .. } => Coverage::HistoryLost,
                StoreError::ClockSkew { .. } => Coverage::ClockSkew,
                StoreError::BeforeEpoch { .. } => Coverage::BeforeEpoch,
                StoreError::Unavailable { .. } => Coverage::Unavailable,
                StoreError::Ambiguous { .. } => Coverage::Ambiguous,
                other => unreachable!("no simulated store says: {other}"),
            },
            other => unreachable!("no simulated store says: {other:?}"),
        };
        self.meet(met);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, what) in self.0.iter().zip(WHAT) {
            writeln!(f, "{n:>12} {what}")?;
        }
        Ok(())
    }
}
