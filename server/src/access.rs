//! What a client may do.

use std::fmt;

/// What a token is for. Each is a right of its own: none contains another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Takes IDs.
    Take,
    /// Reads what an ID consists of.
    Inspect,
    /// Is given leases of its own.
    Lease,
    /// Reads figures of all namespaces, and settings.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Take, Self::Inspect, Self::Lease, Self::Admin];

    /// As it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Inspect => "inspect",
            Self::Lease => "lease",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who may do what.
pub(crate) trait Rights: Send + Sync {
    /// Whether `token` has that right, or everybody where it is `None`. Takes as long for
    /// every token of one length.
    fn allows(&self, role: Role, token: Option<&[u8]>) -> bool;
}
