//! Stores that others take over.

use std::thread;
use std::time::Duration;

use super::Scenario;
use super::rows::other_blocks;
use crate::matrix::case::Case;
use crate::matrix::worker_pool::{TWICE_AS_MANY, Terms};
use crate::matrix::{Outcome, space};
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::Postgres;
use ringflake_kit::server::{MariaDb, Reachable as _, TestServer};
use ringflake_kit::server::{etcd, redis};

const NOTICED: &str = "the server that takes over is known for another one, and raises the floor \
                       above all that the first may have granted and go on granting until it \
                       ends, within the time that a failover may take; nothing at all comes twice";

/// A replica that lacks the last writes becomes the primary, while the old one
/// goes on for a third of what a failover may take.
pub(super) fn replica(case: &mut Case<'_>) -> Outcome<()> {
    let Some(mut primary) = redis::Redis::start() else {
        return Err("Redis was there a moment ago".to_owned());
    };
    let proxy = Proxy::to(primary.port());
    // The replies are taken at their word, whatever the replica has.
    let url = |port: u16| format!("redis://127.0.0.1:{port}?wait=0");
    let terms = Terms {
        best_effort: true,
        ..Terms::default()
    };
    let mut pool = case.pool_at(&url(primary.port()), &url(proxy.port()), terms)?;
    for round in 0..case.scale.pick(1, 3) {
        let replica = redis::Redis::start_replica(&primary).unwrap();
        replica.promote();
        // From here on all writes are missing: renewals, and these grants.
        pool.kill_and_spawn(0..4);
        pool.all_serve(&format!("on the old primary, round {round}"))?;
        proxy.redirect(replica.port());
        // Connections that are open still reach the old one.
        thread::sleep(space::FAILOVER / 3);
        primary.kill();
        pool.faults += 1;
        pool.all_serve("on what was the replica")?;
        primary = replica;
    }
    pool.finish()
}

/// Of three members the leader is killed, and comes back.
pub(super) fn leader(case: &mut Case<'_>) -> Outcome<()> {
    let Some(mut cluster) = etcd::Etcd::start_with(3, &[]) else {
        return Err("etcd was there a moment ago".to_owned());
    };
    let url = cluster.url();
    let mut pool = case.pool_at(&url, &url, Terms::default())?;
    for _ in 0..case.scale.pick(2, 10) {
        let leader = cluster.leader();
        cluster.kill(leader);
        pool.faults += 1;
        pool.all_serve("under another leader")?;
        cluster.restart(leader);
        thread::sleep(Duration::from_millis(500));
    }
    pool.finish()
}

/// How a server that follows another comes in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The first has ended in order, and the other has all that it had.
    Planned,
    /// The first is killed, and what it wrote last is nowhere else.
    WithLoss,
    /// The same, but the first goes on for a while, and grants.
    TwoAtOnce,
}

/// The scenarios of a server and another that follows it.
pub(super) fn of<P: Pair + 'static>() -> Vec<Scenario> {
    let scenario =
        |name, way| Scenario::new(name, move |case| take_over::<P>(case, way)).promising(NOTICED);
    vec![
        scenario("follower takes over", Way::Planned).long(),
        scenario("follower without the writes", Way::WithLoss),
        scenario("two primaries at once", Way::TwoAtOnce).long(),
    ]
}

/// A server, and another that has what the first has written, a little later.
pub(super) trait Pair: Sized {
    type Server: TestServer;
    /// None where it is not installed.
    fn start() -> Option<Self>;
    fn first(&self) -> &Self::Server;
    fn first_mut(&mut self) -> &mut Self::Server;
    fn other(&self) -> &Self::Server;
    /// Ends the first in order, with all that it had in the other.
    fn end_first(&mut self);
    /// From here on what the first writes is missing in the other.
    fn part(&self);
    /// Makes the other a server that can be written.
    fn promote(&self);
}

fn take_over<P: Pair>(case: &mut Case<'_>, way: Way) -> Outcome<()> {
    let Some(mut pair) = P::start() else {
        return Err("the server was there a moment ago".to_owned());
    };
    let (first, other) = (pair.first().port(), pair.other().port());
    let proxy = Proxy::to(first);
    let url = |port| pair.first().url_through(port);
    let terms = Terms::of(TWICE_AS_MANY);
    let mut pool = case.pool_at(&url(first), &url(proxy.port()), terms)?;
    if way == Way::Planned {
        pair.end_first();
    } else {
        pair.part();
        other_blocks(&mut pool)?;
    }
    if way == Way::WithLoss {
        pair.first_mut().kill();
    }
    pair.promote();
    proxy.redirect(other);
    if way == Way::TwoAtOnce {
        // Connections that are open still reach the first; these don't.
        pool.kill_and_spawn(0..4);
        let before = pool.reports().confirmed;
        thread::sleep(space::FAILOVER / 3);
        let confirmed = pool.reports().confirmed - before;
        pair.first_mut().kill();
        if confirmed == 0 {
            return Err("the first server has granted nothing any more".to_owned());
        }
        case.findings().remark =
            format!("the first confirmed {confirmed} requests beside the other");
    }
    pool.faults += 1;
    pool.all_serve("on the other server")?;
    pool.await_what_was_ahead();
    pool.finish()
}

/// The first of these is the one that the other follows.
macro_rules! pair {
    ($pair:ident of $server:ty { $($rest:item)* }) => {
        pub(super) struct $pair($server, $server);

        impl Pair for $pair {
            type Server = $server;

            fn first(&self) -> &$server {
                &self.0
            }

            fn first_mut(&mut self) -> &mut $server {
                &mut self.0
            }

            fn other(&self) -> &$server {
                &self.1
            }

            $($rest)*
        }
    };
}

pair! { PostgresPair of Postgres {
    fn start() -> Option<Self> {
        let first = Postgres::start()?;
        let standby = first.standby();
        Some(Self(first, standby))
    }

    /// It waits for those that follow it.
    fn end_first(&mut self) {
        self.0.stop();
    }

    fn part(&self) {
        self.1.configure("primary_conninfo = ''");
        self.1.reload("primary_conninfo", "");
    }

    fn promote(&self) {
        self.1.promote();
    }
} }

pair! { MariaDbPair of MariaDb {
    fn start() -> Option<Self> {
        let start = |number| {
            let settings = MariaDb::binary_log(number);
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            MariaDb::start_with(&settings)
        };
        let (first, replica) = (start(1)?, start(2)?);
        replica.follow(&first);
        Some(Self(first, replica))
    }

    fn end_first(&mut self) {
        self.0.forbid_writing();
        self.1.catch_up(&self.0);
        self.0.stop();
    }

    fn part(&self) {
        self.1.catch_up(&self.0);
        self.1.follow_nobody();
    }

    fn promote(&self) {
        self.1.follow_nobody();
    }
} }
