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
    /// A store that knows less than it has confirmed gives nothing of that again.
    S8,
    /// The store's advice holds, one bad clock moves no mark out of reach, and once all is well
    /// every process has a grant in force.
    Live,
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) mutation: Mutation,
    pub(crate) what: &'static str,
    /// What may break first.
    pub(crate) breaks: &'static [Promise],
    /// Whether it leads to an ID that is issued twice. Else it costs service, or another
    /// promise.
    pub(crate) duplicates: bool,
}

macro_rules! mutations {
    ($(
        $name:ident: $what:literal breaks $($promise:ident)or+ $(, $without:literal)?;
    )*) => {
        /// A rule that is removed, or a bad habit that is added.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Mutation {
            $($name,)*
            /// The comparison of ends implies the omitted one.
            RenewalIgnoresEpoch,
        }

        /// Every rule that must be caught when it is removed.
        pub(crate) const TABLE: &[Row] = &[$(Row {
            mutation: Mutation::$name,
            what: $what,
            breaks: &[$(Promise::$promise,)+],
            duplicates: [$($without,)? ""].len() == 1,
        },)*];
    };
}

mutations! {
    // The table's side.
    CommitIgnoresRecord: "a commit does not compare the record" breaks S1;
    CommitIgnoresBlocks: "a commit does not compare the blocks" breaks S1;
    CommitIgnoresTime: "a commit does not compare the time" breaks S7, "no duplicate";
    // The store's side.
    ReleaseLowersMark: "a release lowers the mark" breaks S1;
    RenewalKeepsMark: "a renewal does not raise the mark" breaks S1;
    RenewalCutsMark: "a renewal lowers the mark when the server's clock went back" breaks S1;
    AcquireIgnoresMark: "acquire ignores the mark" breaks S1;
    AcquireIgnoresFloor: "acquire ignores the floor" breaks S1;
    RenewalIgnoresFloor: "renewal ignores the floor" breaks S1;
    RenewalIgnoresEnd: "renewal without comparing the end" breaks S1;
    RenewalIgnoresEpochAndEnd: "renewal without comparing epoch and end" breaks S1;
    AcquireIgnoresIncarnation: "no incarnation check at acquire" breaks S1;
    RenewalIgnoresIncarnation: "no incarnation check at renewal" breaks S1;
    AcquireIgnoresHorizon: "no horizon at acquire" breaks S7;
    RenewalIgnoresHorizon: "no horizon at renewal" breaks S7;
    FloorIgnoresFailover: "floor without D: a superseded primary still grants" breaks S1;
    FloorIgnoresHorizon: "floor without H" breaks S1;
    FloorNotKept: "a raised floor is not kept" breaks Live, "no duplicate";
    TimeToLive: "TTLs in place of marks: free when its time has passed" breaks S1;
    Tokens: "idempotency tokens: a repeated request gets the same reply" breaks S1 or S2 or S4;
    SkewIgnored: "no comparison of the clocks" breaks Live, "no duplicate";
    FingerprintIgnored: "no comparison of the secret" breaks S5, "no duplicate";
    LazyCommit: "the store answers before it has written" breaks S1;
    UnknownBlockIsNoLoss: "a block that was forgotten whole is no loss" breaks S1;
    LowerEndIsNoLoss: "an end below the one confirmed is no loss" breaks S1;
    SettledLossIsOne: "a loss below the floor counts as one again" breaks Live, "no duplicate";
    LossIgnoresHorizon: "after a loss, floor without H" breaks S1;
    LossIsNotKept: "after a loss, the floor is not kept" breaks S1;
    QuarantineIgnored: "a block without a sound record is granted as a new one" breaks S1;
    RepairIgnoresHorizon: "a repair without H" breaks S1;
    PastIgnoresMark: "a grant of the past ignores the mark" breaks S1;
    PastIgnoresFloor: "a grant of the past ignores the floor" breaks S1;
    PastKeepsMark: "a grant of the past does not raise the mark" breaks S1;
    // The client's side.
    BringsNoEvidence: "an acquisition without what was confirmed" breaks S1;
    AdoptsAmbiguousAcquire: "an ambiguous acquire is looked up and adopted" breaks S2;
    AdoptsAmbiguousRenewal: "an ambiguous renewal is believed" breaks S2;
    ResendsAmbiguous: "an ambiguous renewal is sent again, its fence believed" breaks S2;
    IgnoresFence: "a fence is ignored" breaks S1 or S2;
    TakesLateReplies: "a late reply is taken for the one awaited" breaks S2;
    TakesVoidReplies: "after invalidate, the reply under way is taken" breaks S2;
    KeepsGrantsAtResume: "grants are kept when a snapshot is resumed" breaks S4;
    // The generator's side.
    CursorRestarts: "a generator restarts its cursor" breaks S3;
    CursorFollowsClockBack: "the cursor follows a clock that is set back" breaks S3;
    IssuesPastTheEnd: "cells past the end are issued" breaks S2;
    ForkedChildIssues: "a forked child goes on issuing" breaks S4;
}
