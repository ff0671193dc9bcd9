//! Replies that are lost: what was sent may have been done, and the store says
//! so exactly when that is possible.

use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Acquire, Block, Floor, Grant, History, Init, LeaseStore, Listing, Namespace, OpenOptions,
    Renew, StoreError, StoreFailureKind, open,
};

use crate::kit::exhausted;

use super::{Database, SLACK, all_of, made, mark, now, patient, take, tick};
use ringflake_kit::eventually;
use ringflake_kit::proxy::{After, Fault, Proxy, Then};

/// An operation that changes something, on a namespace that exists.
type Change = dyn Fn(&mut dyn LeaseStore, &Namespace) -> Result<(), StoreError>;

/// What became of a change when each reply was lost in turn.
#[derive(Debug, Default)]
struct Losses {
    /// How often it was refused. Then nothing was done.
    refused: u32,
    /// How often it was in doubt.
    doubtful: u32,
    /// How often it was in doubt, and done.
    done: u32,
}

/// Tries `change` on one connection after the other, each of which loses another
/// reply, until one has none left to lose.
fn lose_each_reply(
    server: &dyn Database,
    space: &Namespace,
    then: Then,
    options: &OpenOptions,
    change: &Change,
) -> Losses {
    let proxy = Proxy::to(server.port());
    let url = server.url_through(proxy.port());
    let mut direct = server.store();
    let mut state = || -> Option<Listing> { direct.list(space).ok() };
    let mut losses = Losses::default();
    for replies in 0..60 {
        let before = state();
        proxy.set(Fault::LoseReplies {
            after: After::Requests(replies),
            then,
        });
        let mut store = open(&url, options).unwrap();
        let began = Instant::now();
        let outcome = change(&mut *store, space);
        let took = began.elapsed();
        assert!(
            took < options.operation_timeout() + SLACK,
            "{took:?} after {replies} replies"
        );
        // What the server does not know yet it may still do.
        drop(store);
        eventually("nobody is left but who looks", || server.sessions() == 1);
        let done = state() != before;
        match outcome {
            Ok(()) => return losses,
            Err(StoreError::Unavailable { .. }) => {
                assert!(!done, "done, after {replies} replies");
                losses.refused += 1;
            }
            Err(StoreError::Ambiguous { .. }) => {
                losses.doubtful += 1;
                losses.done += u32::from(done);
            }
            Err(other) => panic!("{replies}: {}", all_of(&other)),
        }
    }
    panic!("it never came to an end");
}

/// Whether the reply to a statement that decides was lost, or to one before.
pub(crate) fn each_reply_lost_is_told_right(server: &dyn Database) {
    let options = patient();
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grant = take(&mut *store, &space, 5);
    let acquire: Box<Change> =
        Box::new(|store, space| store.acquire(space, &Acquire::new(2, 5, now())).map(drop));
    let renew: Box<Change> = Box::new({
        let grant = grant.clone();
        move |store, space| {
            let [renew] = longer(store, space, [&grant])?;
            store.renew(space, &renew).map(drop)
        }
    });
    let other = take(&mut *store, &space, 5);
    let renew_all: Box<Change> = Box::new(move |store, space| {
        let wanted = longer(store, space, [&grant, &other])?;
        let wanted = wanted.each_ref().map(|renew| (space, renew));
        let mut answers = store.renew_all(&wanted);
        // All of them have one fate.
        let kinds: Vec<_> = answers.iter().map(told).collect();
        assert_eq!(kinds[0], kinds[1], "{answers:?}");
        answers.remove(0).map(drop)
    });
    let released = take(&mut *store, &space, 5);
    drop(store);
    let release: Box<Change> =
        Box::new(move |store, space| store.release(space, released.block, released.epoch));
    let raise: Box<Change> = Box::new(|store, space| {
        let floor = store.list(space)?.record.floor;
        store
            .raise_floor(space, Floor::Tick(floor + 1), now())
            .map(drop)
    });
    for (name, change) in [
        ("acquire", acquire),
        ("renew", renew),
        ("renew_all", renew_all),
        ("release", release),
        ("raise_floor", raise),
    ] {
        let losses = lose_each_reply(server, &space, Then::Close, &options, &change);
        // The last reply is to what decides, and those before are not.
        let right = losses.refused >= 3 && losses.doubtful == 1;
        assert!(right, "{name}: {losses:?}");
    }

    // The record, which is not there before.
    let init: Box<Change> = Box::new(|store, space| {
        match store.init(space, &Init::new(History::New, now())) {
            // It was in doubt before this, and done.
            Err(StoreError::AlreadyInitialised { .. }) => Ok(()),
            other => other.map(drop),
        }
    });
    let other = super::space("other", 10);
    let losses = lose_each_reply(server, &other, Then::Close, &options, &init);
    let right = losses.refused >= 3 && losses.doubtful == 1;
    assert!(right, "init: {losses:?}");
}

/// A tick more for each of these grants, from where they end by now.
fn longer<const N: usize>(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grants: [&Grant; N],
) -> Result<[Renew; N], StoreError> {
    let blocks = store.list(space)?.blocks;
    Ok(grants.map(|grant| {
        let known = blocks.iter().find(|known| known.block == grant.block);
        let ticks = grant.ticks.start..known.unwrap().hwm_end;
        let grant = Grant::new(grant.block, grant.epoch, ticks);
        Renew::new(&grant, grant.ticks.end + 1, now())
    }))
}

fn told(answer: &Result<u64, StoreError>) -> Result<(), StoreFailureKind> {
    answer.as_ref().map(drop).map_err(StoreFailureKind::of)
}

/// The same with replies that never come, on connections that stay open.
pub(crate) fn no_answer_is_waited_for_in_vain(server: &dyn Database) {
    let options = OpenOptions::new().timeout(Duration::from_millis(300));
    let space = made(&mut *server.store(), "orders", 5);
    let sweep = || {
        lose_each_reply(server, &space, Then::Hang, &options, &|store, space| {
            store.acquire(space, &Acquire::new(2, 5, now())).map(drop)
        })
    };
    // On a machine that is busy, the time can be up before the commit is sent.
    let found = (0..20).any(|_| {
        let losses = sweep();
        assert!(losses.refused >= 3, "{losses:?}");
        losses.done > 0
    });
    assert!(
        found,
        "the reply to the commit was never the one that was lost"
    );
}

/// The server dies when it has committed and before it is heard.
pub(crate) fn a_kill_before_the_reply_leaves_the_mark_moved(server: &mut dyn Database) {
    let space = made(&mut *server.store(), "orders", 16);
    let block = Block::new(0);
    let options = patient();
    let ask = |url: &str| {
        let mut store = open(url, &options).unwrap();
        store.acquire(&space, &Acquire::new(1, 60, now()))
    };
    // How many replies come before the one that counts.
    let replies = {
        let trial = made(&mut *server.store(), "trial", 5);
        let proxy = Proxy::to(server.port());
        let url = server.url_through(proxy.port());
        (0..60)
            .find(|replies| {
                proxy.set(Fault::LoseReplies {
                    after: After::Requests(*replies),
                    then: Then::Close,
                });
                let mut store = open(&url, &options).unwrap();
                let asked = store.acquire(&trial, &Acquire::new(1, 60, now()));
                matches!(asked, Err(StoreError::Ambiguous { .. }))
            })
            .unwrap()
    };

    let proxy = Proxy::to(server.port());
    proxy.set(Fault::LoseReplies {
        after: After::Requests(replies),
        then: Then::Hang,
    });
    let url = server.url_through(proxy.port());
    let before = tick(&space);
    let mut witness = server.store();
    let error = thread::scope(|scope| {
        let worker = scope.spawn(|| ask(&url));
        eventually("the server has answered", || proxy.lost() == 1);
        eventually("and committed", || {
            mark(&mut *witness, &space, block).is_some()
        });
        server.kill();
        worker.join().unwrap().unwrap_err()
    });
    assert!(
        matches!(error, StoreError::Ambiguous { .. }),
        "{}",
        all_of(&error)
    );

    server.restart();
    let mut store = server.store();
    let moved = mark(&mut *store, &space, block).expect("the grant was committed");
    assert!(
        (before + 60..=tick(&space) + 60).contains(&moved),
        "{moved}"
    );
    // Nobody has it, and nobody gets it before the mark.
    let next = take(&mut *store, &space, 60);
    assert_eq!(next.block, Block::new(1));
    exhausted(store.acquire(&space, &Acquire::new(1, 60, now())));
}
