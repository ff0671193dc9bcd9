//! Which cores a thread runs on.

/// Runs `work` in a thread that stays on the core on which it begins.
///
/// # Panics
/// As `work` does.
pub fn on_one_core<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            #[cfg(target_os = "linux")]
            bind_to(here());
            work()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The core that this thread runs on.
#[cfg(target_os = "linux")]
pub fn here() -> usize {
    // SAFETY: has no arguments.
    let core = unsafe { libc::sched_getcpu() };
    usize::try_from(core).expect("the system says it")
}

/// The cores that this thread may run on.
#[cfg(target_os = "linux")]
pub fn allowed() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero bytes are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours, and as large as it is said to be.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    let cores = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: no core is beyond the set.
    cores
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Has this thread run on `core` alone, from now on.
#[cfg(target_os = "linux")]
pub fn bind_to(core: usize) {
    // SAFETY: a set of bits, for which zero bytes are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core is one that the system has named.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is ours, and as large as it is said to be.
    let failed = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
}
