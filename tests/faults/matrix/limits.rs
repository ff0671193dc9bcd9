//! Disks that are full, for one process: it can write to no file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::Outcome;

/// Lets a process write to no file, or to all again, unless it has ended.
///
/// The limit is asked for as the user whose process it is: where root has lost a
/// capability, that is whom the kernel still allows it.
pub(crate) fn forbid_writing(process: i32, forbidden: bool) -> Outcome<()> {
    let Ok(owner) = fs::metadata(format!("/proc/{process}")) else {
        return Ok(());
    };
    let most = if forbidden { "0" } else { "unlimited" };
    let output = Command::new("prlimit")
        .args(["--pid", &process.to_string()])
        .arg(format!("--fsize={most}:unlimited"))
        .uid(owner.uid())
        .gid(owner.gid())
        .output()
        .map_err(|error| format!("prlimit: {error}"))?;
    let is_gone = || fs::metadata(format!("/proc/{process}")).is_err();
    if output.status.success() || is_gone() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("prlimit of process {process}: {errors}"))
}
