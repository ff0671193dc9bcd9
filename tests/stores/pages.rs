//! The users that a page of the guide makes have the rights that they need: its own commands are
//! run on a real server, then each user does what the page has it do.

use ringflake::lease::{LeaseStore, Namespace};

use crate::kit::{begin, now, renew, sized, take};

/// The blocks of code of `page` in `language`, each in lines without those that go on.
fn blocks(page: &str, language: &str) -> Vec<Vec<String>> {
    page.split(&format!("```{language}\n"))
        .skip(1)
        .map(|block| {
            let (code, _) = block.split_once("\n```").unwrap();
            let whole = code.replace("\\\n", " ");
            whole.lines().map(str::to_owned).collect()
        })
        .collect()
}

/// The block that has `line`.
fn block_with(page: &str, language: &str, line: &str) -> Vec<String> {
    let has = |block: &Vec<String>| block.iter().any(|it| it.contains(line));
    let found = blocks(page, language).into_iter().find(has);
    found.unwrap_or_else(|| panic!("no {language} with {line}"))
}

/// What the owner of a page does, and the namespace that it made.
fn owner_begins(mut owner: Box<dyn LeaseStore>) -> Namespace {
    let space = sized("orders", 5);
    owner.init(&space, &begin()).unwrap();
    space
}

/// Everything that a service and its operator do.
fn a_service_is_served(mut service: Box<dyn LeaseStore>, space: &Namespace) {
    let grant = take(&mut *service, space, 60);
    renew(&mut *service, space, &grant).unwrap();
    service.release(space, grant.block, grant.epoch).unwrap();
    service.write_test(space, now()).unwrap();
    service.check(space, now()).unwrap();
    assert_eq!(service.list(space).unwrap().blocks.len(), 1);
}
#[test]
fn the_users_of_the_page_on_etcd() {
    use ringflake_kit::server::{Etcd, Reachable as _};

    let page = include_str!("../../src/lease/guide/runbook_etcd.md");
    let etcd = started!(Etcd::start_with(1, &["--bcrypt-cost", "4"]));
    for line in block_with(page, "sh", "etcdctl auth enable") {
        if let Some(arguments) = line.strip_prefix("etcdctl ") {
            etcd.ctl(0, &ringflake_kit::words(arguments));
        }
    }
    let store =
        |user: &str| crate::served::store(&format!("etcd://{user}@127.0.0.1:{}", etcd.port()));
    let space = owner_begins(store("owner:owner-secret"));
    a_service_is_served(store("orders:app-secret"), &space);
    let shown = block_with(page, "sh", "get --prefix ringflake/orders/").remove(0);
    let arguments = shown.strip_prefix("etcdctl ").unwrap();
    let entries = etcd.ctl(0, &ringflake_kit::words(arguments));
    assert!(entries.contains("ringflake/orders/record"), "{entries}");
}
