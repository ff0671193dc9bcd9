//! How to run leases: what is promised, how to size them, and what to do when
//! something is wrong. This module holds only text.
//!
//! | you | read |
//! |---|---|
//! | decide whether to rely on it | [`promises`] |
//! | choose blocks, lease duration, horizon and the other numbers | [`lease_sizing`] |
//! | want processes to start while the store is away | [`tier`] |
//! | are on call | [`runbook`], then the page of the store |
//! | set a store up, back it up, move it | [`runbook_sqlite`], [`runbook_postgres`], [`runbook_mysql`], [`runbook_redis`], [`runbook_etcd`] |
//!
//! The rules themselves, S1 to S9, stand at the head of [`lease`](crate::lease); how a
//! generator is built on a store, at
//! [`lease_store`](crate::CachedGeneratorBuilder::lease_store).

// Each page can be read in the repository, too: the links at its end lead to other
// files there. Of two definitions of a link the first one counts, and here that is
// the one of `links.md`.
#![cfg_attr(
    not(all(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "sqlite"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the pages speak of all stores, which are features"
    )
)]

macro_rules! pages {
    ($($page:ident $text:literal,)*) => {$(
        #[doc = include_str!("guide/links.md")]
        #[doc = include_str!($text)]
        pub mod $page {}
    )*};
}

pages! {
    promises "guide/promises.md",
    lease_sizing "guide/lease_sizing.md",
    runbook "guide/runbook.md",
    runbook_sqlite "guide/runbook_sqlite.md",
    runbook_postgres "guide/runbook_postgres.md",
    runbook_mysql "guide/runbook_mysql.md",
    runbook_redis "guide/runbook_redis.md",
    runbook_etcd "guide/runbook_etcd.md",
    tier "guide/tier.md",
}
