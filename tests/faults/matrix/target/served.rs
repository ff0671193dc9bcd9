//! A server behind a proxy, with a calendar clock of its own.

use super::{PutBack, Target};
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::{Clock, TestServer};

/// What the matrix does with a server besides.
pub(super) trait Server: TestServer + Sized {
    fn keep_rows(&self, namespace: &str) -> PutBack;
    fn damage(&self, namespace: &str, block: u64);

    /// Sets its calendar clock ahead of the machine's by so many seconds.
    fn set_clock(&self, _: &Proxy, ahead: i64) {
        self.clock().run_ahead(ahead * 1000);
    }
}

pub(super) struct Served<S> {
    server: S,
    proxy: Proxy,
}

impl<S: Server> Served<S> {
    pub(super) fn start() -> Option<Self> {
        let server = S::start_by(Some(Clock::new()))?;
        let proxy = Proxy::to(server.port());
        Some(Self { server, proxy })
    }
}

impl<S: Server> Target for Served<S> {
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
        self.server.set_clock(&self.proxy, ahead);
    }

    fn keep_rows(&self, namespace: &str) -> PutBack {
        self.server.keep_rows(namespace)
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
