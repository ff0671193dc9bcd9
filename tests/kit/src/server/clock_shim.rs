//! Preloaded into a server: its calendar clock shows what a file says.
//!
//! Not a module of any test. `clock.rs` compiles it by itself, to a library that
//! the dynamic linker puts before libc's functions. It allocates nothing, since
//! the server's allocator asks for the time while it starts.
//!
//! The file that `RINGFLAKE_CLOCK_FILE` names holds a number of 8 bytes in the machine's
//! order: by how many milliseconds the clock is ahead.

#![no_std]

use core::ffi::{c_char, c_int, c_long, c_void};
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

const SYS_CLOCK_GETTIME: c_long = if cfg!(target_arch = "aarch64") {
    113
} else {
    228
};
const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanos: i64,
}

#[repr(C)]
pub struct Timeval {
    seconds: i64,
    micros: i64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn mmap(
        at: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
}

/// The mapped file, once it was needed. Two threads may both map it.
static FILE: AtomicPtr<AtomicI64> = AtomicPtr::new(ptr::null_mut());

/// How far ahead the clock is, in milliseconds.
fn ahead() -> i64 {
    let mut file = FILE.load(Relaxed);
    if file.is_null() {
        // SAFETY: the name ends in a zero; a failure shows in the results.
        file = unsafe {
            let path = getenv(c"RINGFLAKE_CLOCK_FILE".as_ptr());
            if path.is_null() {
                return 0;
            }
            let descriptor = open(path, 0);
            if descriptor < 0 {
                return 0;
            }
            mmap(ptr::null_mut(), 8, PROT_READ, MAP_SHARED, descriptor, 0).cast()
        };
        if file.addr() == usize::MAX {
            return 0;
        }
        FILE.store(file, Relaxed);
    }
    // SAFETY: the mapping has 8 bytes and stays for good.
    unsafe { (*file).load(Relaxed) }
}

fn read(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the caller's pointer is valid for a write, as libc asks of it.
    let result = unsafe { syscall(SYS_CLOCK_GETTIME, c_long::from(clock), time) };
    if result == 0 && matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) {
        // SAFETY: as above, and the call has written it.
        let time = unsafe { &mut *time };
        let ahead_ms = ahead();
        let nanos = time.nanos + ahead_ms.rem_euclid(1000) * 1_000_000;
        time.seconds += ahead_ms.div_euclid(1000) + nanos / 1_000_000_000;
        time.nanos = nanos % 1_000_000_000;
    }
    result as c_int
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    read(clock, time)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Timeval, _zone: *mut c_void) -> c_int {
    let mut now = Timespec {
        seconds: 0,
        nanos: 0,
    };
    let result = read(CLOCK_REALTIME, &mut now);
    if !time.is_null() {
        // SAFETY: the caller's pointer is valid for a write.
        unsafe {
            time.write(Timeval {
                seconds: now.seconds,
                micros: now.nanos / 1000,
            });
        }
    }
    result
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(seconds: *mut i64) -> i64 {
    let mut now = Timespec {
        seconds: 0,
        nanos: 0,
    };
    read(CLOCK_REALTIME, &mut now);
    if !seconds.is_null() {
        // SAFETY: the caller's pointer is valid for a write.
        unsafe { seconds.write(now.seconds) };
    }
    now.seconds
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
