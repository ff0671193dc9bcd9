//! A program that runs, and what it has written to stderr so far.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::eventually;
use crate::server::signal_child;

/// A process whose stderr is its log. It is killed when this is dropped before its end.
pub struct Logged {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    /// Taken at its end.
    reader: Option<JoinHandle<()>>,
}

impl Logged {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lines);
        let reader = thread::spawn(move || {
            for line in stderr.lines() {
                log.lock().unwrap().push(line.unwrap());
            }
        });
        Self {
            child,
            lines,
            reader: Some(reader),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        let lines = self.lines.lock();
        lines.unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    pub fn times(&self, said: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(said)).count()
    }

    #[track_caller]
    pub fn wait_for_times(&self, said: &str, times: usize) {
        eventually(said, || {
            let ended = self.reader.as_ref().is_none_or(JoinHandle::is_finished);
            let found = self.times(said);
            assert!(found >= times || !ended, "it has ended:\n{}", self.log());
            found >= times
        });
    }

    #[track_caller]
    pub fn wait_for(&self, said: &str) {
        self.wait_for_times(said, 1);
    }

    pub fn signal(&self, number: i32) {
        signal_child(self.id() as libc::pid_t, number);
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its whole log, once it has ended with this status.
    #[track_caller]
    pub fn wait(mut self, status: i32) -> String {
        eventually("its end", || self.has_ended());
        let ended = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let log = self.log();
        assert_eq!(ended.code(), Some(status), "{log}");
        log
    }

    #[track_caller]
    pub fn stop(self) -> String {
        self.signal(libc::SIGTERM);
        self.wait(0)
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        // Of a test that has failed or has no more questions, or that wants a sudden death.
        if self.reader.is_some() {
            if thread::panicking() {
                eprintln!("the log of the program:\n{}", self.log());
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
