//! The files that the process may have open, which connections share with stores.
//!
//! A client that opens connections until there is no file left would keep a store from being
//! asked, and then nobody has IDs any more. So connections have a part of the files, and the
//! rest is kept for stores.

use crate::limits::Limits;

/// For event loops, sockets that listen, the log and the data directory.
const OF_A_PROCESS: u64 = 64;
/// For the store of a namespace that is not local: of its generator, of leases of clients, and
/// a file beside each.
const OF_A_NAMESPACE: u64 = 8;

/// Why there are fewer connections than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fewer {
    pub(crate) text: String,
    /// Whether the limit is the default, which nobody has asked for.
    pub(crate) is_default: bool,
}

/// These limits, with as many connections as there are files for, and why those are fewer.
pub(crate) fn limited(
    limits: &Limits,
    fronts: usize,
    namespaces: usize,
) -> (Limits, Option<Fewer>) {
    within(limits, most(), fronts, namespaces)
}

/// How many files the process may have open; none where there is no limit, or none is known.
fn most() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(target_os = "linux"))]
    None
}

fn within(
    limits: &Limits,
    files: Option<u64>,
    fronts: usize,
    namespaces: usize,
) -> (Limits, Option<Fewer>) {
    let mut limits = limits.clone();
    let Some(files) = files else {
        return (limits, None);
    };
    let kept = OF_A_PROCESS + OF_A_NAMESPACE * namespaces as u64;
    // A quarter where there are hardly any: nothing works well then.
    let left = files.saturating_sub(kept).max(files / 4);
    let each = usize::try_from(left / fronts.max(1) as u64).unwrap_or(usize::MAX);
    if each >= limits.connections {
        return (limits, None);
    }
    let wanted = limits.connections;
    limits.connections = each.max(1);
    limits.connections_per_client = limits.connections_per_client.min(limits.connections);
    let text = format!(
        "there are {} connections of each protocol, not limits.connections = {wanted}: this \
         process may have {files} files open, and stores need some; raise LimitNOFILE or ulimit -n \
         to {}, or lower limits.connections",
        limits.connections,
        (wanted as u64)
            .saturating_mul(fronts as u64)
            .saturating_add(kept),
    );
    let is_default = wanted == Limits::default().connections;
    (limits, Some(Fewer { text, is_default }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connections in all and of one client, and whether something is to be said.
    fn connections(files: Option<u64>, fronts: usize, namespaces: usize) -> (usize, usize, bool) {
        let limits = Limits {
            connections: 1000,
            connections_per_client: 600,
            ..Limits::default()
        };
        let (limits, said) = within(&limits, files, fronts, namespaces);
        (
            limits.connections,
            limits.connections_per_client,
            said.is_some(),
        )
    }

    #[test]
    fn connections_leave_files_for_stores() {
        assert_eq!(connections(None, 2, 9), (1000, 600, false));
        assert_eq!(connections(Some(2064), 2, 0), (1000, 600, false));
        assert_eq!(connections(Some(2063), 2, 0), (999, 600, true));
        assert_eq!(connections(Some(1024), 2, 10), (440, 440, true));
        assert_eq!(connections(Some(1024), 1, 10), (880, 600, true));
        // A quarter at least, and one.
        assert_eq!(connections(Some(80), 2, 0), (10, 10, true));
        assert_eq!(connections(Some(3), 2, 0), (1, 1, true));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_files_are_those_of_this_process() {
        let all = std::fs::read_to_string("/proc/self/limits").unwrap();
        let mut rows = all.lines();
        let row = rows.find_map(|row| row.strip_prefix("Max open files"));
        // No number where there is no limit.
        let files = row.unwrap().split_whitespace().next().unwrap().parse();
        assert_eq!(most(), files.ok());
    }

    #[test]
    fn what_is_said_has_the_number_that_suffices() {
        let limits = Limits::default();
        let (_, said) = within(&limits, Some(1024), 2, 1);
        let Fewer { text, is_default } = said.unwrap();
        assert!(text.contains("ulimit -n to 40072"), "{text}");
        assert!(is_default, "nobody has asked for that many");
        let enough = within(&limits, Some(40_072), 2, 1);
        assert_eq!(enough, (limits.clone(), None));
        let (_, said) = within(&limits, Some(40_071), 2, 1);
        assert!(said.is_some());
        let chosen = Limits {
            connections: 30_000,
            ..limits
        };
        let (_, said) = within(&chosen, Some(1024), 2, 1);
        assert!(!said.unwrap().is_default);
    }
}
