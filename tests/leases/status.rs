//! What can be asked about leases.

use ringflake::lease::{GrantState, Holder};

use crate::rig::{LEASE_DURATION, Rig, SECOND, START};
use ringflake_kit::assert_says;

#[test]
fn the_status_names_each_grant_with_its_confirmed_end() {
    let rig = Rig::new();
    let ids = rig.cached().blocks(2).widen_to(2).build().unwrap();
    let status = ids.lease_status().unwrap();
    assert_eq!(status.target, 2);
    assert_eq!(status.reach, 600 * SECOND);
    assert_eq!(status.expired_since_unix_ms, None);
    assert_eq!(status.health.failing_since_unix_ms, None);
    assert!(status.health.last_error.is_none());
    let granted = rig.store.granted();
    let grants: Vec<_> = status
        .grants
        .iter()
        .map(|held| held.grant.clone())
        .collect();
    assert_eq!(grants, granted);
    for (held, nodes) in status.grants.iter().zip([0..8, 8..16]) {
        assert_eq!(held.state, GrantState::Held);
        assert_eq!(held.grant.ticks, START..START + LEASE_DURATION);
        assert_eq!(rig.space.nodes_of(held.grant.block), nodes);
    }
    let leases = ids.leases();
    assert_eq!(leases.len(), 2);
    for grant in grants {
        let lease = grant.to_lease(&rig.space).unwrap();
        assert!(leases.contains(&lease), "{leases:?}");
    }

    rig.let_them_renew(|| vec![ids.lease_status()]);
    let ends = |leases: Vec<ringflake::Lease>| -> Vec<u64> {
        leases.iter().map(|lease| lease.ticks().end).collect()
    };
    let status = ids.lease_status().unwrap();
    let confirmed = status.grants.iter().map(|held| held.grant.ticks.end);
    assert_eq!(ends(ids.leases()), confirmed.collect::<Vec<_>>());
}

#[test]
fn the_store_lists_who_holds_a_block() {
    let rig = Rig::new();
    let named = rig.cached().holder(Holder::new("db-7", "orders:8080"));
    let _named = named.build().unwrap();
    let _unnamed = rig.direct().build().unwrap();
    let holders: Vec<_> = rig.blocks().into_iter().map(|block| block.holder).collect();
    assert_eq!(holders[0], Some(Holder::new("db-7", "orders:8080")));
    let unnamed = holders[1].as_ref().unwrap();
    assert_eq!(unnamed.instance(), std::process::id().to_string());
    if cfg!(target_os = "linux") {
        assert!(!unnamed.host().is_empty());
    }
}

#[test]
fn debug_shows_leases_and_no_secret() {
    let rig = Rig::new();
    let (cached, direct) = (rig.cached(), rig.direct());
    let builders = format!("{cached:?} {direct:?}");
    assert_says(&builders, &["MemoryTable"]);
    let (cached, direct) = (cached.build().unwrap(), direct.build().unwrap());
    let handle = cached.handle().unwrap();
    let status = cached.lease_status().unwrap();
    let shown = format!("{cached:?} {direct:?} {handle:?} {status:?}");
    let parts = ["nodes: 0..8", "nodes: 8..16", "ticks: 1000..1601", "Held"];
    assert_says(&shown, &parts);
    for leak in ["secrets for test", "736563", "115, 101, 99"] {
        assert!(!builders.contains(leak), "{builders}");
        assert!(!shown.contains(leak), "{shown}");
    }
}
