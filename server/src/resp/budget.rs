//! Memory of all connections together, for what their turns leave over: input that is not
//! answered yet, replies that are not sent yet, and queued transactions; and for the buffers of
//! TLS until a client is authenticated.
//!
//! One client may hold half of each budget, and a sixteenth of that for TLS. A connection that has
//! nothing left over uses none, and touches no counter that others write.

use crate::buffer_budget::{BufferBudget, BufferPermit, ClientBudget};
use crate::clients::Client;

/// The budget of TLS connections that are not authenticated yet.
const TLS_BYTES: usize = 45 << 20;

/// Maximum bytes of one request before authentication, enough for `HELLO 3 AUTH` with the
/// longest token.
pub(super) const UNAUTHENTICATED_BYTES: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct Budget {
    all: BufferBudget,
    unauthenticated: BufferBudget,
    tls: BufferBudget,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(64 << 20, 8 << 20)
    }
}

impl Budget {
    fn new(all: usize, unauthenticated: usize) -> Self {
        Self {
            all: BufferBudget::new(all),
            unauthenticated: BufferBudget::new(unauthenticated),
            tls: BufferBudget::for_strangers(TLS_BYTES),
        }
    }

    /// For a connection of this client, which uses nothing yet.
    pub(super) fn share(&self, client: Client) -> Share {
        Share {
            all: self.all.client(client),
            unauthenticated: self.unauthenticated.client(client),
            used: None,
            used_unauthenticated: None,
            last: (0, false),
            tls: None,
        }
    }

    /// For this client's connections with TLS that are not authenticated yet.
    pub(super) fn tls(&self, client: Client) -> ClientBudget {
        self.tls.client(client)
    }
}

/// What one connection uses of a [`Budget`].
#[derive(Debug)]
pub(super) struct Share {
    all: ClientBudget,
    unauthenticated: ClientBudget,
    used: Option<BufferPermit>,
    used_unauthenticated: Option<BufferPermit>,
    /// Bytes, and whether the client was authenticated.
    last: (usize, bool),
    tls: Option<BufferPermit>,
}

impl Share {
    /// Adds the memory of TLS, until the client is authenticated.
    pub(super) fn add_tls(&mut self, permit: BufferPermit) {
        self.tls = Some(permit);
    }

    /// Sets what the connection uses. Returns `false` if it wants more than there is; then the
    /// connection is to be closed.
    pub(super) fn set(&mut self, bytes: usize, is_authenticated: bool) -> bool {
        if is_authenticated {
            self.tls = None;
        }
        if self.last == (bytes, is_authenticated) {
            return true;
        }
        self.last = (bytes, is_authenticated);
        let unauthenticated = if is_authenticated { 0 } else { bytes };
        self.all.try_resize(&mut self.used, bytes)
            && self
                .unauthenticated
                .try_resize(&mut self.used_unauthenticated, unauthenticated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Client = Client::V4([192, 0, 2, 1]);
    const KIB: usize = 1 << 10;

    #[test]
    fn a_share_moves_when_its_client_authenticates() {
        let budget = Budget::new(100 * KIB, 40 * KIB);
        let mut first = budget.share(A);
        assert!(first.set(20 * KIB, false));
        assert!(first.set(20 * KIB, true));
        let mut second = budget.share(A);
        assert!(second.set(20 * KIB, false));
        drop(second);
        // And back when it resets.
        assert!(first.set(20 * KIB, false));
        assert!(!budget.share(A).set(1, false));
        drop(first);
        assert_eq!(budget.all.free(), 100 * KIB);
        assert_eq!(budget.unauthenticated.free(), 40 * KIB);
    }
}
