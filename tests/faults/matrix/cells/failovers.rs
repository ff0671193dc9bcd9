//! Stores that others take over.

use std::thread;
use std::time::Duration;

use crate::matrix::case::Case;
use crate::matrix::crew::Terms;
use crate::matrix::proxy::Proxy;
use crate::matrix::{Outcome, etcd, redis, space};

/// A replica that lacks the last writes becomes the primary, while the old one
/// goes on for a third of what a failover may take.
pub(super) fn replica(case: &mut Case<'_>) -> Outcome<()> {
    let test = "faults on Redis";
    let Some(mut primary) = redis::Redis::start(test) else {
        return Err("Redis was there a moment ago".to_owned());
    };
    let proxy = Proxy::to(primary.port());
    // The replies are taken at their word, whatever the replica has.
    let url = |port: u16| format!("redis://127.0.0.1:{port}?wait=0");
    let terms = Terms {
        best_effort: true,
        ..Terms::default()
    };
    let mut crew = case.crew_at(&url(primary.port()), &url(proxy.port()), terms)?;
    for round in 0..case.scale.pick(1, 3) {
        let replica = redis::Redis::start_replica(test, &primary).unwrap();
        replica.promote();
        // From here on all writes are missing: renewals, and these grants.
        for number in 0..4 {
            crew.kill(number);
            crew.spawn(number, None);
        }
        crew.all_serve(&format!("on the old primary, round {round}"))?;
        proxy.redirect(replica.port());
        // Connections that are open still reach the old one.
        thread::sleep(space::FAILOVER / 3);
        primary.kill();
        crew.faults += 1;
        crew.all_serve("on what was the replica")?;
        primary = replica;
    }
    crew.finish()
}

/// Of three members the leader is killed, and comes back.
pub(super) fn leader(case: &mut Case<'_>) -> Outcome<()> {
    let Some(mut cluster) = etcd::Etcd::start_with("faults on etcd", 3, &[]) else {
        return Err("etcd was there a moment ago".to_owned());
    };
    let url = cluster.url();
    let mut crew = case.crew_at(&url, &url, Terms::default())?;
    for _ in 0..case.scale.pick(2, 10) {
        let leader = cluster.leader();
        cluster.kill(leader);
        crew.faults += 1;
        crew.all_serve("under another leader")?;
        cluster.restart(leader);
        thread::sleep(Duration::from_millis(500));
    }
    crew.finish()
}
