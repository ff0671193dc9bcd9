//! One generator to a lease.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Marks a lease as in use. The clones of a lease share it, so that two
/// generators in one process can't both be built on it.
///
/// It is no part of what a lease is: two leases are equal without it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim(Arc<AtomicBool>);

impl Claim {
    /// Takes the lease, unless it is taken.
    pub(crate) fn take(&self) -> Option<Claimed> {
        // Relaxed: the swap alone decides.
        let taken = self.0.swap(true, Relaxed);
        (!taken).then(|| Claimed(self.clone()))
    }
}

/// A lease that was taken; dropping this lets it go again.
#[derive(Debug)]
pub(crate) struct Claimed(Claim);

impl Claimed {
    /// Never lets the lease go: IDs may have been issued from it, and who
    /// begins it anew would issue them again.
    pub(crate) fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.0.0.store(false, Relaxed);
    }
}

impl PartialEq for Claim {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Claim {}

impl Hash for Claim {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_once_at_a_time() {
        let claim = Claim::default();
        let claimed = claim.take().unwrap();
        assert!(claim.clone().take().is_none());
        assert!(Claim::default().take().is_some(), "another lease");
        drop(claimed);
        claim.take().unwrap().for_good();
        assert!(claim.take().is_none());
    }
}
