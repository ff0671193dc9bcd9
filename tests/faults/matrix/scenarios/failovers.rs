//! Stores that others take over.

use std::thread;
use std::time::{Duration, Instant};

use ringflake::{Clock as _, SystemClock};

use super::Scenario;
use super::rows::other_blocks;
use crate::matrix::case::Case;
use crate::matrix::worker_pool::{Reports, TWICE_AS_MANY, Terms, WORKERS, WorkerPool};
use crate::matrix::{Outcome, space};
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::{Etcd, MariaDb, Postgres, Redis, TestServer};

/// A replica that lacks the last writes becomes the primary, while the old one
/// goes on for a third of what a failover may take.
pub(super) fn replica(case: &mut Case<'_>) -> Outcome<()> {
    let Some(mut primary) = Redis::start() else {
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
        let replica = Redis::start_replica(&primary).unwrap();
        replica.promote();
        // From here on all writes are missing: renewals, and these grants.
        pool.kill_and_spawn(0..4);
        pool.all_serve(&format!("on the old primary, round {round}"))?;
        let began = Instant::now();
        proxy.redirect(replica.port());
        // Connections that are open still reach the old one.
        thread::sleep(space::FAILOVER / 3);
        primary.kill();
        excuse_if_late(case, &mut pool, began);
        pool.faults += 1;
        pool.all_serve("on what was the replica")?;
        primary = replica;
    }
    pool.finish()
}

/// Two servers may grant for as long as a failover may take. A busy machine can kill the first
/// later; then nothing is promised until the last grants of both have ended.
fn excuse_if_late(case: &Case<'_>, pool: &mut WorkerPool, began: Instant) {
    let took = began.elapsed();
    if took > space::FAILOVER {
        let end_ms = SystemClock.unix_ms() + space::HORIZON.as_millis() as u64;
        pool.promised_from = pool.space.layout().tick_at(end_ms).unwrap();
        case.findings().remark =
            format!("the first server was killed after {took:.1?}, later than is promised for");
    }
}

/// Of three members the leader is killed, and comes back.
pub(super) fn leader(case: &mut Case<'_>) -> Outcome<()> {
    let Some(mut cluster) = Etcd::start_with(3, &[]) else {
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
pub(super) fn of<S: Followed + 'static>() -> Vec<Scenario> {
    let scenario = |name, way| Scenario::new(name, move |case| take_over::<S>(case, way));
    vec![
        scenario("follower takes over", Way::Planned).long(),
        scenario("follower without the writes", Way::WithLoss),
        scenario("two primaries at once", Way::TwoAtOnce).long(),
    ]
}

/// A server that another follows, which has what the first has written a little later.
pub(super) trait Followed: TestServer + Sized {
    /// The first and the other; none where they are not installed.
    fn pair() -> Option<(Self, Self)>;
    /// Ends the first in order, with all that it had in the other.
    fn hand_over(&mut self, other: &Self);
    /// From here on what the first writes is missing in the other.
    fn part(&self, other: &Self);
    /// Makes the other a server that can be written.
    fn lead(other: &Self);
}

impl Followed for Postgres {
    fn pair() -> Option<(Self, Self)> {
        let first = Self::start()?;
        let standby = first.standby();
        Some((first, standby))
    }

    /// It waits for those that follow it.
    fn hand_over(&mut self, _: &Self) {
        self.stop();
    }

    fn part(&self, other: &Self) {
        other.configure("primary_conninfo = ''");
        other.reload("primary_conninfo", "");
    }

    fn lead(other: &Self) {
        other.promote();
    }
}

impl Followed for MariaDb {
    fn pair() -> Option<(Self, Self)> {
        let start = |number| {
            let settings = Self::binary_log(number);
            Self::start_with(&settings.each_ref().map(String::as_str))
        };
        let (first, replica) = (start(1)?, start(2)?);
        replica.follow(&first);
        Some((first, replica))
    }

    fn hand_over(&mut self, other: &Self) {
        self.forbid_writing();
        other.catch_up(self);
        self.stop();
    }

    fn part(&self, other: &Self) {
        other.catch_up(self);
        other.follow_nobody();
    }

    fn lead(other: &Self) {
        other.follow_nobody();
    }
}

/// The other server raises the floor above all that the first may have granted and go on
/// granting until it ends, within the time that a failover may take.
fn take_over<S: Followed>(case: &mut Case<'_>, way: Way) -> Outcome<()> {
    let Some((mut first, other)) = S::pair() else {
        return Err("the server was there a moment ago".to_owned());
    };
    let proxy = Proxy::to(first.port());
    let url = first.url_through(proxy.port());
    let mut pool = case.pool_at(&first.url(), &url, Terms::of(TWICE_AS_MANY))?;
    if way == Way::Planned {
        first.hand_over(&other);
    } else {
        first.part(&other);
        other_blocks(&mut pool)?;
    }
    if way == Way::WithLoss {
        first.kill();
    }
    let began = Instant::now();
    S::lead(&other);
    proxy.redirect(other.port());
    if way == Way::TwoAtOnce {
        // Connections that are open still reach the first; these don't.
        pool.kill_and_spawn(0..4);
        let of_first: Vec<_> = (4..WORKERS).map(|it| pool.member(it).run).collect();
        let confirmed = |reports: &Reports| -> u64 {
            of_first
                .iter()
                .map(|&run| reports.runs[run].confirmed)
                .sum()
        };
        let before = confirmed(&pool.reports());
        thread::sleep(space::FAILOVER / 3);
        pool.wait("the first server grants beside the other", |reports| {
            confirmed(reports) > before
        })?;
        let confirmed = confirmed(&pool.reports()) - before;
        first.kill();
        case.findings().remark =
            format!("the first confirmed {confirmed} requests beside the other");
        excuse_if_late(case, &mut pool, began);
    }
    pool.faults += 1;
    pool.all_serve("on the other server")?;
    pool.await_what_was_ahead();
    pool.finish()
}
