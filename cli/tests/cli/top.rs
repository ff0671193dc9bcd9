//! `ringflake top` on a terminal.

use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::ptr;

use crate::home::{Home, signal};

/// The side of the user, and that of the program.
fn terminal() -> (File, OwnedFd) {
    let (mut user, mut program) = (0, 0);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the places are there, and null stands for what is not wanted.
    let opened = unsafe {
        libc::openpty(
            &raw mut user,
            &raw mut program,
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw const size).cast_mut(),
        )
    };
    assert_eq!(opened, 0);
    // SAFETY: it was just opened, and nobody else has it.
    let user = unsafe { File::from_raw_fd(user) };
    // SAFETY: so was this one.
    let program = unsafe { OwnedFd::from_raw_fd(program) };
    (user, program)
}

/// Whether the terminal waits for whole lines and shows what is typed.
fn is_cooked(terminal: &OwnedFd) -> bool {
    let mut mode = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the place is there.
    let found = unsafe { libc::tcgetattr(terminal.as_raw_fd(), mode.as_mut_ptr()) };
    assert_eq!(found, 0);
    // SAFETY: it was filled.
    let mode = unsafe { mode.assume_init() };
    let wanted = libc::ICANON | libc::ECHO;
    mode.c_lflag & wanted == wanted
}

#[test]
fn a_signal_ends_top_and_the_terminal_is_as_before() {
    let home = Home::new();
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let (mut user, program) = terminal();
        let end = || Stdio::from(program.try_clone().unwrap());
        let mut command = home.command("top unix:nothing");
        command.stdin(end()).stdout(end()).stderr(end());
        let mut child = command.spawn().unwrap();
        drop(command);
        let (mut shown, mut part) = (Vec::new(), [0; 4096]);
        let has = |shown: &[u8], text: &str| String::from_utf8_lossy(shown).contains(text);
        while !has(&shown, "q: end") {
            let read = user.read(&mut part).unwrap();
            shown.extend_from_slice(&part[..read]);
        }
        assert!(has(&shown, "\u{1b}[?1049h"));
        assert!(!is_cooked(&program));
        signal(&child, number);
        assert!(child.wait().unwrap().success(), "{number}");
        assert!(is_cooked(&program), "{number}");
        drop(program);
        // Its end is an error where the other side is closed.
        let _ = user.read_to_end(&mut shown);
        assert!(has(&shown, "\u{1b}[?1049l"), "{number}");
    }
}
