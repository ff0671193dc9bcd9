//! Notifies a service manager such as systemd, if there is one.

use std::time::Duration;

use sd_notify::NotifyState;

/// The manager that started this process; often none.
#[derive(Debug)]
pub(super) struct ServiceManager {
    /// How long it waits for a sign of life.
    watchdog: Option<Duration>,
    /// Whether it knows that the start is over.
    has_started: bool,
}

impl Default for ServiceManager {
    fn default() -> Self {
        Self {
            watchdog: sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()),
            has_started: false,
        }
    }
}

impl ServiceManager {
    pub(super) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub(super) fn ready(&mut self) {
        self.has_started = true;
        notify_ready();
    }

    /// Some namespace can't issue IDs. Ignored until the start is over.
    pub(super) fn not_ready(&self, reason: &str) {
        if self.has_started {
            notify(&[NotifyState::Status(&format!("not ready: {reason}"))]);
        }
    }

    /// A reload begins. During the start it is a part of that.
    pub(super) fn reloading(&self) {
        if !self.has_started {
            return;
        }
        match NotifyState::monotonic_usec_now() {
            Ok(now) => notify(&[NotifyState::Reloading, now]),
            Err(_) => notify(&[NotifyState::Reloading]),
        }
    }

    pub(super) fn ready_again(&self, is_ready: bool) {
        match (self.has_started, is_ready) {
            // The word would end the start, and others begin who need the server.
            (false, _) => {}
            (true, true) => notify_ready(),
            // It waits for this word.
            (true, false) => notify(&[NotifyState::Ready, NotifyState::Status("not ready")]),
        }
    }

    pub(super) fn stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }

    pub(super) fn is_alive(&self) {
        if self.watchdog.is_some() {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

fn notify_ready() {
    notify(&[NotifyState::Ready, NotifyState::Status("ready")]);
}

/// Does nothing where no manager listens.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager can't be notified");
    }
}
