//! Replies that are lost: what was sent may have been done, and the store says
//! so exactly when that is possible.

use std::time::{Duration, Instant};

use ringflake::lease::{
    Floor, Grant, LeaseStore, Listing, Namespace, Renew, StoreError, StoreFailureKind,
};

use super::{SLACK, Served, hasty};
use crate::kit::{all_of, ask, begin, longer, made, now, sized, take};
use ringflake_kit::eventually;
use ringflake_kit::proxy::{Fault, Proxy, Then};

type Operation<'a> = dyn Fn(&mut dyn LeaseStore, &Namespace) -> Result<(), StoreError> + 'a;

#[derive(Debug, Default)]
struct Losses {
    /// How often it was refused. Then nothing was done.
    refused: u32,
    doubtful: u32,
    done: u32,
}

/// How long a store waits for a reply that never comes.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Tries `operation` on one connection after the other, each of which loses another reply, until
/// one has none left to lose.
fn lose_each_reply(
    server: &dyn Served,
    space: &Namespace,
    then: Then,
    (name, operation): (&str, &Operation<'_>),
) -> Losses {
    /// No operation waits for so many replies.
    const MANY: u64 = 60;

    let proxy = Proxy::to(server.port());
    let mut direct = server.store();
    let mut state = || -> Option<Listing> { direct.list(space).ok() };
    let mut losses = Losses::default();
    let mut after = 0;
    for _ in 0..MANY {
        let (before, lost) = (state(), proxy.lost());
        proxy.set(Fault::LoseReplies { after, then });
        let mut store = match then {
            Then::Close => server.store_through(&proxy),
            Then::Hang => hasty(&server.url_through(proxy.port()), TIMEOUT),
        };
        let outcome = operation(&mut store, space);
        // What the server does not know yet it may still do.
        drop(store);
        eventually("all that was sent has reached the server", || {
            proxy.connections() == 0
        });
        eventually("nobody is left but who looks", || server.is_done());
        let done = state() != before;
        // No reply was lost: a busy server took longer than the time-out.
        let is_unknown = |error: &StoreError| {
            matches!(
                error,
                StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }
            )
        };
        if outcome.as_ref().is_err_and(is_unknown) && proxy.lost() == lost {
            continue;
        }
        after += 1;
        match outcome {
            Ok(()) => return losses,
            Err(StoreError::Unavailable { .. }) => {
                assert!(!done, "{name}: done, with reply {after} lost");
                losses.refused += 1;
            }
            Err(StoreError::Ambiguous { operation, .. }) => {
                // Several renewals are still renewals.
                assert!(
                    name.starts_with(operation),
                    "{name}: {operation} is in doubt"
                );
                losses.doubtful += 1;
                losses.done += u32::from(done);
            }
            Err(other) => panic!("{name}: reply {after}: {}", all_of(&other)),
        }
    }
    panic!("{name}: it never came to an end");
}

/// Whether the reply to a request that decides was lost, or to one before.
pub(crate) fn each_reply_lost_is_told_right(server: &dyn Served) {
    let (mut store, space) = server.with("orders", 5);
    // So long that no acquisition below takes them over, on however slow a machine.
    let [grant, released, warming] = [(); 3].map(|()| take(&mut store, &space, 600));
    let second = made(&mut store, "second", 5);
    let other = take(&mut store, &second, 600);
    // So that the server has seen each operation, and the first is like the next.
    store.release(&space, warming.block, warming.epoch).unwrap();
    store.raise_floor(&space, Floor::Tick(0), now()).unwrap();
    store.renew(&space, &longer(&grant)).unwrap();
    store.check(&space, now()).unwrap();
    drop(store);

    let operations: [(&str, u32, &Operation<'_>); 7] = [
        ("acquire", 1, &|store, space| {
            store.acquire(space, &ask(2, 5)).map(drop)
        }),
        ("renew", 1, &|store, space| {
            let renew = longer_by_now(store, space, &grant)?;
            store.renew(space, &renew).map(drop)
        }),
        ("renew_all", 1, &|store, space| {
            let one = longer_by_now(store, space, &grant)?;
            let two = longer_by_now(store, &second, &other)?;
            let mut answers = store.renew_all(&[(space, &one), (&second, &two)]);
            if server.has_transactions() {
                let [one, two] = [0, 1].map(|at| kind_of(&answers[at]));
                assert_eq!(one, two, "{answers:?}");
            }
            answers.remove(0).map(drop)
        }),
        ("release", 1, &|store, space| {
            store.release(space, released.block, released.epoch)
        }),
        ("raise_floor", 1, &|store, space| {
            let floor = Floor::Tick(store.list(space)?.record.floor + 1);
            store.raise_floor(space, floor, now()).map(drop)
        }),
        ("list", 0, &|store, space| store.list(space).map(drop)),
        ("check", 0, &|store, space| {
            store.check(space, now()).map(drop)
        }),
    ];
    let lose = |name, doubtful, space: &Namespace, operation: &Operation<'_>| {
        let losses = lose_each_reply(server, space, Then::Close, (name, operation));
        // The last reply is to what decides, if anything does, and those before are not.
        let is_done = losses.done == doubtful || server.has_transactions();
        let right = losses.refused >= 1 && losses.doubtful == doubtful && is_done;
        assert!(right, "{name}: {losses:?}");
    };
    for (name, doubtful, operation) in operations {
        lose(name, doubtful, &space, operation);
    }
    // Of the record, which is not there before.
    lose("init", 1, &sized("other", 10), &|store, space| {
        match store.init(space, &begin()) {
            // It was in doubt before this, and done.
            Err(StoreError::AlreadyInitialised { .. }) => Ok(()),
            other => other.map(drop),
        }
    });
}

/// A renewal whose reply never comes ends with its time-out.
pub(crate) fn a_reply_that_never_comes_ends_in_doubt(server: &dyn Served) {
    let (mut store, space) = server.with("silent", 5);
    let grant = take(&mut store, &space, 600);
    let renewed: &Operation<'_> = &|store, space| {
        // Not by way of the proxy: each reply that is lost takes seconds.
        let renew = longer_by_now(&mut *server.store(), space, &grant)?;
        let begun = Instant::now();
        let outcome = store.renew(space, &renew);
        let took = begun.elapsed();
        assert!(took < TIMEOUT + SLACK, "{took:?}");
        outcome.map(drop)
    };
    drop(store);
    let losses = lose_each_reply(server, &space, Then::Hang, ("renew", renewed));
    assert!(losses.doubtful > 0, "{losses:?}");
    assert_eq!(losses.done, losses.doubtful, "{losses:?}");
}

/// A tick more for this grant, from where it ends by now.
fn longer_by_now(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grant: &Grant,
) -> Result<Renew, StoreError> {
    let blocks = store.list(space)?.blocks;
    let known = blocks.iter().find(|known| known.block == grant.block);
    let ticks = grant.ticks.start..known.unwrap().hwm_end;
    Ok(longer(&Grant::new(grant.block, grant.epoch, ticks)))
}

fn kind_of(answer: &Result<u64, StoreError>) -> Result<(), StoreFailureKind> {
    answer.as_ref().map(drop).map_err(StoreFailureKind::of)
}
