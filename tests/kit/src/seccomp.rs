//! Answers to system calls in the kernel's place, for one thread and its children.

use std::io;

use libc::sock_filter;

/// Where `struct seccomp_data` has the number of the call.
pub const NUMBER: u32 = 0;

const fn op(code: u32, k: u32, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    }
}

pub const fn load(offset: u32) -> sock_filter {
    op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0)
}

/// Skips this many instructions unless the last `load` gave this value.
pub const fn skip(unless: u32, instructions: u8) -> sock_filter {
    let test = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    op(test, unless, instructions)
}

pub const fn end(answer: u32) -> sock_filter {
    op(libc::BPF_RET | libc::BPF_K, answer, 0)
}

/// A call whose argument of this index is `value` does nothing and ends with `error`; 0 is success.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub value: libc::c_int,
    pub error: libc::c_int,
}

/// Installs a filter for this thread, for ever. Other values of the argument reach the kernel.
pub fn answer(call: libc::c_long, argument: u32, answers: &[Answer]) {
    // The offset of its lower half in `struct seccomp_data`.
    let argument = 16 + argument * 8 + if cfg!(target_endian = "big") { 4 } else { 0 };
    let mut program = vec![
        load(NUMBER),
        skip(call as u32, 1 + 2 * answers.len() as u8),
        load(argument),
    ];
    for &Answer { value, error } in answers {
        program.push(skip(value as u32, 1));
        program.push(end(libc::SECCOMP_RET_ERRNO | error as u32));
    }
    program.push(end(libc::SECCOMP_RET_ALLOW));
    install(&mut program);
}

/// Installs a filter for this thread, for ever.
pub fn install(program: &mut [sock_filter]) {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: gives up privileges of this thread that a test has no use for.
    let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(given_up, 0, "{}", io::Error::last_os_error());
    // SAFETY: the program outlives the call, which copies it.
    let installed = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(installed, 0, "{}", io::Error::last_os_error());
}
