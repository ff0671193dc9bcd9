//! Data directories that were prepared once, and are copied for each server.

use std::env;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::cp;

/// Makes `directory` what `prepare` makes of it by this program, in this version, and
/// stops. That is kept beside what cargo has built, and done by one thread for all.
pub(super) fn fill(name: &str, program: &Path, directory: &Path, prepare: impl FnOnce()) {
    static ONLY: Mutex<()> = Mutex::new(());
    let _only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
    let built = fs::metadata(program).unwrap().modified().unwrap();
    let built = built.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let tests = env::current_exe().unwrap();
    let kept = tests.with_file_name(format!("ringflake-{name}-{}", built.as_secs()));
    if kept.is_dir() {
        return cp("-a", &kept, directory);
    }
    prepare();
    // Another process may do the same now.
    let fresh = kept.with_extension(process::id().to_string());
    cp("-a", directory, &fresh);
    if fs::rename(&fresh, &kept).is_err() {
        fs::remove_dir_all(fresh).unwrap();
    }
}
