//! Lost messages: requests, and replies to requests that took effect.

use crate::matrix::Outcome;
use crate::matrix::case::Case;
use crate::matrix::worker_pool::{Terms, WORKERS};
use ringflake_kit::proxy::{Fault, Then};

/// One after the other: the connection ends, or stays open and silent.
pub(super) fn lost(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    let proxy = case.target.proxy().expect("there is something between");
    for round in 0..case.scale.pick(20, 100) {
        let before = proxy.lost();
        proxy.set(Fault::LoseReplies {
            after: round % 7,
            then: [Then::Close, Then::Hang][round as usize % 2],
        });
        pool.wait("a reply is lost", |_| proxy.lost() > before)?;
        proxy.set(Fault::None);
        pool.faults += proxy.lost() - before;
    }
    pool.all_serve("with all replies")?;
    pool.finish()
}

/// A middlebox forgets the flows that there are, without notice to either side.
pub(super) fn forgotten(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    let proxy = case.target.proxy().expect("there is something between");
    while proxy.forgotten() < u64::from(case.scale.pick(1, 5) * WORKERS) {
        proxy.forget();
        pool.all_serve("on new connections")?;
    }
    pool.faults += proxy.forgotten();
    pool.finish()
}
