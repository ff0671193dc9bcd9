//! Replies of servers without SQL that are lost, and many clients of one.

use std::time::{Duration, Instant};

use ringflake::lease::{LeaseStore, OpenOptions, open};
use ringflake_kit::proxy::{After, Fault, Proxy, Then};
use ringflake_kit::server::Reachable;

use crate::kit::{acquire, ambiguous, herd, init, space};

fn store(url: &str) -> Box<dyn LeaseStore> {
    open(url, &OpenOptions::new().timeout(Duration::from_secs(20))).unwrap()
}

pub(crate) fn many_at_once_are_given_disjoint_rectangles(server: &dyn Reachable) {
    // Fewer blocks than are asked for, so that they come back.
    let space = space("herd").with_block_bits(10).unwrap();
    init(&mut *store(&server.url()), &space);
    herd(&space, 20, 10, &|| store(&server.url()));
}

pub(crate) fn a_grant_whose_reply_is_lost_is_ambiguous_and_nobodys(server: &dyn Reachable) {
    let proxy = Proxy::to(server.port());
    let url = server.url_through(proxy.port());
    let space = space("lost");
    let mut direct = store(&server.url());
    init(&mut *direct, &space);
    for then in [Then::Close, Then::Hang] {
        let patience = OpenOptions::new().timeout(Duration::from_secs(1));
        let mut cut = open(&url, &patience).unwrap();
        acquire(&mut *cut, &space).unwrap();
        let before = direct.list(&space).unwrap();

        // The reply to what comes before the write passes.
        let after = After::Requests(1);
        proxy.set(Fault::LoseReplies { after, then });
        let (start, lost) = (Instant::now(), proxy.lost());
        let text = ambiguous(acquire(&mut *cut, &space));
        assert!(text.contains("acquire"), "{text}");
        assert!(start.elapsed() < Duration::from_secs(15));
        assert!(proxy.lost() > lost, "no reply was lost");

        // Done it was, once, and it stays so.
        let after = direct.list(&space).unwrap();
        assert_eq!(after.blocks.len(), before.blocks.len() + 1);
        let known = |block| before.blocks.contains(block);
        let lost = after.blocks.iter().find(|block| !known(block)).unwrap();
        proxy.set(Fault::None);
        let next = acquire(&mut *cut, &space).unwrap();
        assert_ne!(next.block, lost.block);
        assert!(direct.list(&space).unwrap().blocks.contains(lost));
    }
}
