//! The signals of a server.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The end, by the name of the signal.
    End(&'static str),
    /// To read settings anew.
    Reload,
}

#[derive(Debug)]
pub(super) struct Signals(Receiver<Signal>);

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        let (sender, receiver) = channel();
        // Ends with the process.
        thread::Builder::new()
            .name("ringflake-signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    let meant = match signal {
                        SIGHUP => Signal::Reload,
                        SIGINT => Signal::End("SIGINT"),
                        _ => Signal::End("SIGTERM"),
                    };
                    if sender.send(meant).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self(receiver))
    }

    /// The next one, if it comes within this time.
    pub(super) fn wait(&self, patience: Duration) -> Option<Signal> {
        self.0.recv_timeout(patience).ok()
    }
}
