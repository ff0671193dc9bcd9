//! A member of etcd behind a proxy. Its clock can't be set, since its runtime asks
//! the kernel by itself; what counts is the date of its replies, and that is set on
//! the way.

use super::{Kind, PutBack, Target, damage, rows};
use crate::matrix::Outcome;
use ringflake_kit::proxy::{Fault, Proxy};
use ringflake_kit::server::{Reachable as _, etcd};

pub(super) struct Etcd {
    server: etcd::Etcd,
    proxy: Proxy,
}

impl Etcd {
    pub(super) fn start() -> Option<Self> {
        let server = etcd::Etcd::start()?;
        let proxy = Proxy::to(server.port());
        Some(Self { server, proxy })
    }
}

impl Target for Etcd {
    fn kind(&self) -> Kind {
        Kind::Etcd
    }

    fn direct_url(&self) -> String {
        self.server.url()
    }

    fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.proxy.port())
    }

    fn proxy(&self) -> Option<&Proxy> {
        Some(&self.proxy)
    }

    fn stop(&mut self) {
        self.server.stop(0);
    }

    fn kill(&mut self) {
        self.server.kill(0);
    }

    fn start(&mut self) {
        self.server.restart(0);
    }

    fn set_clock(&self, ahead: i64) {
        self.proxy.set(match ahead {
            0 => Fault::None,
            ahead => Fault::Dates { ahead },
        });
    }

    fn keep_rows(&self, namespace: &str) -> PutBack {
        rows::of_etcd(self.server.port(), namespace)
    }

    fn damage(&self, namespace: &str, block: u64) -> Outcome<()> {
        damage::in_etcd(self.server.port(), namespace, block)
    }

    fn writers(&self, _: &[i32]) -> Vec<i32> {
        vec![self.server.process(0).id() as i32]
    }

    fn revive(&mut self) {
        self.server.revive(0);
    }
}
