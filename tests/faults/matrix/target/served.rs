//! A server behind a proxy, with a calendar clock of its own.

use super::{Kind, PutBack, Target, damage, rows};
use crate::matrix::Outcome;
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::{Clock, MariaDb, Postgres, Reachable as _, Redis, TestServer};

pub(super) struct Served<S> {
    server: S,
    proxy: Proxy,
}

impl<S: Server> Served<S> {
    pub(super) fn start() -> Option<Self> {
        let server = S::start_with_clock(Clock::new())?;
        let proxy = Proxy::to(server.port());
        Some(Self { server, proxy })
    }
}

impl<S: Server> Target for Served<S> {
    fn kind(&self) -> Kind {
        S::KIND
    }

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
        self.server.clock().run_ahead(ahead * 1000);
    }

    fn keep_rows(&self, namespace: &str) -> PutBack {
        self.server.keep_rows(namespace)
    }

    fn damage(&self, namespace: &str, block: u64) -> Outcome<()> {
        self.server.damage(namespace, block)
    }

    fn writers(&self, _: &[i32]) -> Vec<i32> {
        self.server.processes()
    }

    fn revive(&mut self) {
        self.server.revive();
    }
}

/// What the matrix does with a server besides.
pub(super) trait Server: TestServer + Sized {
    const KIND: Kind;
    fn keep_rows(&self, namespace: &str) -> PutBack;
    fn damage(&self, namespace: &str, block: u64) -> Outcome<()>;
}

macro_rules! servers {
    ($($server:ty: $kind:expr, $rows:expr, $damage:expr;)*) => {$(
        impl Server for $server {
            const KIND: Kind = $kind;

            fn keep_rows(&self, namespace: &str) -> PutBack {
                $rows(self, namespace)
            }

            fn damage(&self, namespace: &str, block: u64) -> Outcome<()> {
                $damage(self, namespace, block)
            }
        }
    )*};
}

servers! {
    MariaDb: Kind::MariaDb, |server, _: &str| rows::of_mariadb(server), damage::in_mariadb;
    Postgres: Kind::Postgres, |server, _: &str| rows::of_postgres(server), damage::in_postgres;
    Redis: Kind::Redis, |server: &Redis, name: &str| rows::of_redis(&server.url(), name),
        damage::in_redis;
}
