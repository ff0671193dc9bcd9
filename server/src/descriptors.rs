//! The files that the process may have open, which connections share with stores.
//!
//! A client that opens connections until there is no file left would keep a store from being
//! asked, and then nobody has IDs any more. So connections have a part of the files, and the
//! rest is kept for stores.

use crate::config::Limits;

/// For event loops, sockets that listen, the log and the data directory.
const OF_A_PROCESS: u64 = 64;
/// For the store of a namespace that is not local, and its tier.
const OF_A_NAMESPACE: u64 = 8;

/// These limits, with as many connections as there are files for. Says so if those are fewer.
pub(crate) fn limited(limits: &Limits, protocols: usize, namespaces: usize) -> Limits {
    let mut limits = limits.clone();
    let Some(files) = most() else {
        return limits;
    };
    let kept = OF_A_PROCESS + OF_A_NAMESPACE * namespaces as u64;
    let (each, wanted) = (connections(files, kept, protocols), limits.connections);
    if each >= wanted {
        return limits;
    }
    limits.connections = each;
    limits.connections_per_client = limits.connections_per_client.min(each);
    let enough = (wanted as u64).saturating_mul(protocols as u64);
    let text = format!(
        "there are {each} connections of each protocol, not limits.connections = {wanted}: this \
         process may have {files} files open, and stores need some; raise LimitNOFILE or ulimit -n \
         to {}, or lower limits.connections",
        enough.saturating_add(kept),
    );
    // Nobody has asked for the default.
    match wanted == Limits::default().connections {
        true => tracing::info!("{text}"),
        false => tracing::warn!("{text}"),
    }
    limits
}

/// How many files the process may have open; none where there is no limit, or none is known.
fn most() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(target_os = "linux"))]
    None
}

/// The connections of each protocol where so many files are kept. A quarter of the files where there
/// are hardly any: nothing works well then.
fn connections(files: u64, kept: u64, protocols: usize) -> usize {
    let left = files.saturating_sub(kept).max(files / 4);
    let each = left / protocols.max(1) as u64;
    usize::try_from(each).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_stores() {
        for (files, kept, protocols, each) in [
            (2064, 64, 2, 1000),
            (2063, 64, 2, 999),
            (1024, 144, 2, 440),
            (1024, 144, 1, 880),
            // A quarter at least, and one.
            (80, 64, 2, 10),
            (3, 64, 2, 1),
        ] {
            assert_eq!(connections(files, kept, protocols), each, "{files}");
        }
    }
}
