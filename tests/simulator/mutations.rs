//! The rules, each of which can be removed.

/// A promise that the oracle watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Promise {
    /// Grants of one block are disjoint, and each starts at or after the mark.
    S1,
    /// Cells are issued from what a positive reply confirmed.
    S2,
    /// The cursor of a grant goes forward only.
    S3,
    /// One copy of a process uses a grant: no cell is issued twice, but for those
    /// that a clone had in common.
    S4,
    /// Another secret gets nothing.
    S5,
    /// No end lies past the store's time plus the horizon.
    S7,
    /// What the store advises comes true, one bad clock moves no mark out of
    /// reach, and once all is well everybody has a grant in force.
    Live,
}

/// A rule that is removed, or a bad habit that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutation {
    // The store's side.
    ReleaseLowersMark,
    RenewalKeepsMark,
    RenewalCutsMark,
    AcquireIgnoresMark,
    AcquireIgnoresFloor,
    RenewalIgnoresFloor,
    RenewalIgnoresEpoch,
    RenewalIgnoresEnd,
    RenewalIgnoresEpochAndEnd,
    AcquireIgnoresIncarnation,
    RenewalIgnoresIncarnation,
    AcquireIgnoresHorizon,
    RenewalIgnoresHorizon,
    FloorIgnoresFailover,
    FloorIgnoresHorizon,
    FloorNotKept,
    TimeToLive,
    Tokens,
    SkewIgnored,
    FingerprintIgnored,
    LazyCommit,
    UnknownBlockIsNoLoss,
    LowerEndIsNoLoss,
    SettledLossIsOne,
    LossIgnoresHorizon,
    LossIsNotKept,
    QuarantineIgnored,
    RepairIgnoresHorizon,
    // The client's side.
    BringsNoEvidence,
    AdoptsAmbiguousAcquire,
    AdoptsAmbiguousRenewal,
    ResendsAmbiguous,
    IgnoresFence,
    TakesLateReplies,
    TakesVoidReplies,
    KeepsGrantsAtResume,
    // The generator's side.
    CursorRestarts,
    CursorFollowsClockBack,
    IssuesPastTheEnd,
    ForkedChildIssues,
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) mutation: Mutation,
    pub(crate) what: &'static str,
    /// What may break first.
    pub(crate) breaks: &'static [Promise],
    /// Whether it leads to an ID that is issued twice.
    pub(crate) duplicates: bool,
}

const fn row(mutation: Mutation, what: &'static str, breaks: &'static [Promise]) -> Row {
    Row {
        mutation,
        what,
        breaks,
        duplicates: true,
    }
}

/// A row whose mutation costs service, or another promise, but makes no
/// duplicate here.
const fn harmless(mutation: Mutation, what: &'static str, breaks: &'static [Promise]) -> Row {
    Row {
        duplicates: false,
        ..row(mutation, what, breaks)
    }
}

/// Every rule that must be caught when it is removed.
pub(crate) const TABLE: &[Row] = {
    use Mutation::*;
    use Promise::*;
    &[
        row(ReleaseLowersMark, "a release lowers the mark", &[S1]),
        row(RenewalKeepsMark, "a renewal does not raise the mark", &[S1]),
        row(
            RenewalCutsMark,
            "a renewal lowers the mark when the server's clock went back",
            &[S1],
        ),
        row(AcquireIgnoresMark, "acquire ignores the mark", &[S1]),
        row(AcquireIgnoresFloor, "acquire ignores the floor", &[S1]),
        row(RenewalIgnoresFloor, "renewal ignores the floor", &[S1]),
        row(
            RenewalIgnoresEnd,
            "renewal without comparing the end",
            &[S1],
        ),
        row(
            RenewalIgnoresEpochAndEnd,
            "renewal without comparing epoch and end",
            &[S1],
        ),
        row(
            AcquireIgnoresIncarnation,
            "no incarnation check at acquire",
            &[S1],
        ),
        row(
            RenewalIgnoresIncarnation,
            "no incarnation check at renewal",
            &[S1],
        ),
        row(AcquireIgnoresHorizon, "no horizon at acquire", &[S7]),
        row(RenewalIgnoresHorizon, "no horizon at renewal", &[S7]),
        row(
            FloorIgnoresFailover,
            "floor without D: a superseded primary still grants",
            &[S1],
        ),
        row(FloorIgnoresHorizon, "floor without H", &[S1]),
        harmless(FloorNotKept, "a raised floor is not kept", &[Live]),
        row(
            TimeToLive,
            "TTLs in place of marks: free when its time has passed",
            &[S1],
        ),
        row(
            Tokens,
            "idempotency tokens: a repeated request gets the same reply",
            &[S1, S2, S4],
        ),
        harmless(SkewIgnored, "no comparison of the clocks", &[Live]),
        harmless(FingerprintIgnored, "no comparison of the secret", &[S5]),
        row(LazyCommit, "the store answers before it has written", &[S1]),
        row(
            UnknownBlockIsNoLoss,
            "a block that was forgotten whole is no loss",
            &[S1],
        ),
        row(
            LowerEndIsNoLoss,
            "an end below the one confirmed is no loss",
            &[S1],
        ),
        harmless(
            SettledLossIsOne,
            "a loss below the floor counts as one again",
            &[Live],
        ),
        row(LossIgnoresHorizon, "after a loss, floor without H", &[S1]),
        row(LossIsNotKept, "after a loss, the floor is not kept", &[S1]),
        row(
            QuarantineIgnored,
            "a block without a sound record is granted as a new one",
            &[S1],
        ),
        row(RepairIgnoresHorizon, "a repair without H", &[S1]),
        row(
            BringsNoEvidence,
            "an acquisition without what was confirmed",
            &[S1],
        ),
        row(
            AdoptsAmbiguousAcquire,
            "an ambiguous acquire is looked up and adopted",
            &[S2],
        ),
        row(
            AdoptsAmbiguousRenewal,
            "an ambiguous renewal is believed",
            &[S2],
        ),
        row(
            ResendsAmbiguous,
            "an ambiguous renewal is sent again, its fence believed",
            &[S2],
        ),
        row(IgnoresFence, "a fence is ignored", &[S1, S2]),
        row(
            TakesLateReplies,
            "a late reply is taken for the one awaited",
            &[S2],
        ),
        row(
            TakesVoidReplies,
            "after invalidate, the reply under way is taken",
            &[S2],
        ),
        row(
            KeepsGrantsAtResume,
            "grants are kept when a snapshot is resumed",
            &[S4],
        ),
        row(CursorRestarts, "a generator restarts its cursor", &[S3]),
        row(
            CursorFollowsClockBack,
            "the cursor follows a clock that is set back",
            &[S3],
        ),
        row(IssuesPastTheEnd, "cells past the end are issued", &[S2]),
        row(ForkedChildIssues, "a forked child goes on issuing", &[S4]),
    ]
};
