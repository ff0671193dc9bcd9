//! Counts the situations that schedules met, so that none is silently missing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use ringflake::lease::protocol::Answer;
use ringflake::lease::{Fence, StoreError};

/// How often each thing was met, under the name that the report has for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(BTreeMap<Cow<'static, str>, u64>);

impl Tally {
    pub(crate) fn meet(&mut self, what: impl Into<Cow<'static, str>>) {
        self.count(what, 1);
    }

    pub(crate) fn count(&mut self, what: impl Into<Cow<'static, str>>, times: u64) {
        *self.0.entry(what.into()).or_default() += times;
    }

    pub(crate) fn times(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.count(what.clone(), *times);
        }
    }

    pub(crate) fn assert_met<T: AsRef<str>>(&self, all: impl IntoIterator<Item = T>) {
        for what in all {
            let what = what.as_ref();
            assert!(self.times(what) > 0, "no schedule has met: {what}");
        }
    }

    pub(crate) fn answer(&mut self, answer: &Answer, wanted: usize) {
        match answer {
            Answer::Acquired(Ok(grants)) if grants.len() < wanted => {
                self.meet("fewer blocks than wanted");
            }
            Answer::Acquired(Ok(_)) => self.meet("acquired"),
            Answer::Renewed(Ok(_)) => self.meet("renewed"),
            Answer::Released(Ok(())) => self.meet("released"),
            Answer::Checked(Ok(_)) => self.meet("checked"),
            refused => self.refusal(refused.error().expect("all others are errors")),
        }
    }

    pub(crate) fn refusal(&mut self, error: &StoreError) {
        self.meet(match error {
            StoreError::Fenced { fence, .. } => match fence {
                Fence::Epoch { .. } => "fenced by epoch",
                Fence::End { .. } => "fenced by end",
                Fence::Floor { .. } => "fenced by floor",
                Fence::Incarnation => "fenced by incarnation",
                Fence::Quarantined { .. } => "fenced: quarantined",
                Fence::NeverGranted => "fenced: never granted",
                Fence::Upstream => "fenced: the machine lost the block",
                other => unreachable!("no simulated store says: {other:?}"),
            },
            StoreError::Exhausted { .. } => "exhausted",
            StoreError::FloorAhead { .. } => "floor ahead",
            StoreError::BeforeFloor { .. } => "past below the floor",
            StoreError::NotPast { .. } => "past that is not over",
            StoreError::PastExhausted { .. } => "past without a block",
            StoreError::HistoryLost { .. } => "history lost, and noticed",
            StoreError::ClockSkew { .. } => "clocks apart",
            StoreError::BeforeEpoch { .. } => "server before the epoch",
            StoreError::Unavailable { .. } => "store unavailable",
            StoreError::Ambiguous { .. } => "outcome unknown",
            other => unreachable!("no simulated store says: {other}"),
        });
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in &self.0 {
            writeln!(f, "{times:>12} {what}")?;
        }
        Ok(())
    }
}
