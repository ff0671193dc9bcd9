//! A server behind a proxy, with a calendar clock of its own.

use super::{PutBack, Target};
use ringflake_kit::proxy::{Fault, Proxy};
use ringflake_kit::server::{Clock, TestServer};

pub(super) struct Served<S> {
    server: S,
    proxy: Proxy,
    keep_rows: fn(&S, &str) -> PutBack,
    set_clock: fn(&S, &Proxy, i64),
}

impl<S: TestServer> Served<S> {
    pub(super) fn start(keep_rows: fn(&S, &str) -> PutBack) -> Option<Self> {
        let server = S::start_by(Some(Clock::new()))?;
        let proxy = Proxy::to(server.port());
        Some(Self {
            server,
            proxy,
            keep_rows,
            set_clock: |server, _, ahead| server.clock().run_ahead(ahead * 1000),
        })
    }

    /// For one whose runtime asks the kernel for the time. What counts is the date of its
    /// replies, and that is set on the way.
    pub(super) fn with_dates(mut self) -> Self {
        self.set_clock = |_, proxy, ahead| {
            proxy.set(match ahead {
                0 => Fault::None,
                ahead => Fault::Dates { ahead },
            });
        };
        self
    }
}

impl<S: TestServer> Target for Served<S> {
    fn direct_url(&self) -> String {
        self.server.url()
    }

    fn url(&self) -> String {
        self.server.url_through(self.proxy.port())
    }

    fn proxy(&self) -> Option<&Proxy> {
        Some(&self.proxy)
    }

    fn stop(&mut self) {
        self.server.stop();
    }

    fn kill(&mut self) {
        self.server.kill();
    }

    fn start(&mut self) {
        self.server.restart();
    }

    fn set_clock(&self, ahead: i64) {
        (self.set_clock)(&self.server, &self.proxy, ahead);
    }

    fn keep_rows(&self, namespace: &str) -> PutBack {
        (self.keep_rows)(&self.server, namespace)
    }

    fn damage(&self, namespace: &str, block: u64) {
        self.server.damage(namespace, block);
    }

    fn writers(&self, _: &[i32]) -> Vec<i32> {
        self.server.processes()
    }

    fn revive(&mut self) {
        self.server.revive();
    }
}
