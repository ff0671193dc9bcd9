//! What could be wrong around a tier, each of which must be caught.

/// A bad habit of the place where a ledger is kept, or of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A ledger doesn't tell that it was copied, or put back.
    CopiesAreNotNoticed,
    /// Ledgers lose their last steps when the upstream store answers.
    WritesAreLost,
    /// A renewal whose reply was lost counts as done.
    LostRenewalsAreAdopted,
    /// A renewal reaches further than the upstream store has said.
    RenewalsAreRoundedUp,
    /// A renewal that was fenced counts as done.
    FencesAreIgnored,
    /// An upstream grant counts from a little before it begins.
    GrantsBeginEarly,
}

impl Flaw {
    pub(super) const ALL: [Self; 6] = [
        Self::CopiesAreNotNoticed,
        Self::WritesAreLost,
        Self::LostRenewalsAreAdopted,
        Self::RenewalsAreRoundedUp,
        Self::FencesAreIgnored,
        Self::GrantsBeginEarly,
    ];
}
