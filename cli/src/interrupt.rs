//! Ctrl-C ends the measuring; what is known by then is still printed.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit status of a process that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// Whether the run was asked to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first signal is noted, and a second one ends the process
    /// at once.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag still down.
            flag::register_conditional_shutdown(
                signal,
                INTERRUPTED.into(),
                Arc::clone(&interrupt.0),
            )?;
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    pub(crate) fn came(&self) -> bool {
        // Relaxed: nothing is read that was written before the signal.
        self.0.load(Relaxed)
    }

    /// The exit status of a run that did its work, or was interrupted at it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.came() {
            true => ExitCode::from(INTERRUPTED),
            false => ExitCode::SUCCESS,
        }
    }

    /// What the signal sets.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
