//! A server behind a proxy, with a calendar clock of its own.

use super::{Ground, Kind, PutBack, damage, rows};
use crate::matrix::Outcome;
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::Clock;
use ringflake_kit::server::{mariadb, postgres, redis};

pub(super) struct Served<S> {
    server: S,
    proxy: Proxy,
}

impl<S: Server> Served<S> {
    pub(super) fn start(test: &str) -> Option<Self> {
        let server = S::start(test, Clock::new())?;
        let proxy = Proxy::to(server.port());
        Some(Self { server, proxy })
    }
}

impl<S: Server> Ground for Served<S> {
    fn kind(&self) -> Kind {
        S::KIND
    }

    fn direct_url(&self) -> String {
        self.server.url_through(self.server.port())
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

/// What the servers that tests share can all do.
pub(super) trait Server: Sized {
    const KIND: Kind;
    fn start(test: &str, clock: Clock) -> Option<Self>;
    fn port(&self) -> u16;
    fn url_through(&self, port: u16) -> String;
    fn stop(&mut self);
    fn kill(&mut self);
    fn restart(&mut self);
    fn revive(&mut self);
    fn clock(&self) -> &Clock;
    fn processes(&self) -> Vec<i32>;
    fn keep_rows(&self, namespace: &str) -> PutBack;
    fn damage(&self, namespace: &str, block: u64) -> Outcome<()>;
}

macro_rules! servers {
    ($($server:ty: $kind:expr, $rows:expr, $damage:expr;)*) => {$(
        impl Server for $server {
            const KIND: Kind = $kind;

            fn start(test: &str, clock: Clock) -> Option<Self> {
                Self::start_with_clock(test, clock)
            }

            fn port(&self) -> u16 {
                self.port()
            }

            fn url_through(&self, port: u16) -> String {
                self.url_through(port)
            }

            fn stop(&mut self) {
                self.stop();
            }

            fn kill(&mut self) {
                self.kill();
            }

            fn restart(&mut self) {
                self.restart();
            }

            fn revive(&mut self) {
                self.revive();
            }

            fn clock(&self) -> &Clock {
                self.clock()
            }

            fn processes(&self) -> Vec<i32> {
                self.processes()
            }

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
    mariadb::MariaDb: Kind::MariaDb, |server, _: &str| rows::of_mariadb(server),
        damage::in_mariadb;
    postgres::Postgres: Kind::Postgres, |server, _: &str| rows::of_postgres(server),
        damage::in_postgres;
    redis::Redis: Kind::Redis, |server: &redis::Redis, name: &str| rows::of_redis(&server.url(), name),
        damage::in_redis;
}
