//! The files that the process may have open.

/// Raises how many there may be to as many as the process may ask for: shells leave 1,024 by
/// default, of which connections would take those of stores.
pub(super) fn raise() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files can't be raised");
        }
    }
}
