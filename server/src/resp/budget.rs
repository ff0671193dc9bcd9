//! Memory of all connections together, for what their turns leave over: input that is not
//! answered yet, replies that are not sent yet, and queued transactions.
//!
//! A connection that has nothing left over uses none, and touches no counter that others write.

use std::sync::atomic::{AtomicUsize, Ordering};

/// TLS connections that are not authenticated yet. Each may take 45 KiB, most of which are
/// buffers of TLS.
pub(super) const UNAUTHENTICATED_TLS: usize = 4096;

/// Maximum bytes of one request before authentication, enough for `HELLO 3 AUTH` with the
/// longest token.
pub(super) const UNAUTHENTICATED_BYTES: usize = 1 << 10;

/// Bytes that are left over by all connections.
#[derive(Debug)]
pub(super) struct Budget {
    all: Account,
    unauthenticated: Account,
}

#[derive(Debug)]
struct Account {
    used: AtomicUsize,
    max: usize,
}

impl Account {
    const fn new(max: usize) -> Self {
        let used = AtomicUsize::new(0);
        Self { used, max }
    }

    /// Returns whether the account has not too much then.
    fn add(&self, bytes: usize) -> bool {
        // A count of bytes, which orders nothing.
        self.used.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(64 << 20, 8 << 20)
    }
}

impl Budget {
    /// Uses all but these bytes of unauthenticated connections.
    #[cfg(all(test, unix))]
    pub(super) fn leave_unauthenticated(&self, bytes: usize) {
        self.unauthenticated.add(self.unauthenticated.max - bytes);
    }

    const fn new(all: usize, unauthenticated: usize) -> Self {
        Self {
            all: Account::new(all),
            unauthenticated: Account::new(unauthenticated),
        }
    }
}

/// What one connection uses of a [`Budget`].
#[derive(Debug)]
pub(super) struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
    is_authenticated: bool,
}

impl<'a> Share<'a> {
    pub(super) const fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            bytes: 0,
            is_authenticated: false,
        }
    }

    /// Sets what the connection uses. Returns `false` if it wants more than there is; then the
    /// connection is to be closed.
    pub(super) fn set(&mut self, bytes: usize, is_authenticated: bool) -> bool {
        if (bytes, is_authenticated) == (self.bytes, self.is_authenticated) {
            return true;
        }
        let grows = bytes > self.bytes;
        self.release();
        (self.bytes, self.is_authenticated) = (bytes, is_authenticated);
        if bytes == 0 {
            return true;
        }
        let mut fits = self.budget.all.add(bytes);
        if !is_authenticated {
            fits &= self.budget.unauthenticated.add(bytes);
        }
        fits || !grows
    }

    fn release(&mut self) {
        if self.bytes > 0 {
            self.budget.all.remove(self.bytes);
            if !self.is_authenticated {
                self.budget.unauthenticated.remove(self.bytes);
            }
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthenticated_connections_have_a_budget_of_their_own() {
        let budget = Budget::new(100, 40);
        let (mut stranger, mut other) = (Share::new(&budget), Share::new(&budget));
        assert!(stranger.set(40, false));
        assert!(!other.set(1, false));
        // A client that shrinks is not closed for what others use.
        assert!(stranger.set(39, false));
        let mut user = Share::new(&budget);
        assert!(user.set(60, true));
        assert!(!user.set(61, true));
        drop((stranger, other));
        assert!(user.set(100, true));
        drop(user);
        assert_eq!(budget.all.used.into_inner(), 0);
        assert_eq!(budget.unauthenticated.used.into_inner(), 0);
    }

    #[test]
    fn a_share_moves_when_its_client_authenticates() {
        let budget = Budget::new(100, 40);
        let mut first = Share::new(&budget);
        assert!(first.set(40, false));
        assert!(first.set(40, true));
        assert!(Share::new(&budget).set(40, false));
    }
}
