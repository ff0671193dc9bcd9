//! The users that the page on etcd makes have the rights that they need: its own commands are
//! run on a real server, then each user does what the page has it do. The command line's tests
//! follow the pages on the other servers.

use ringflake::lease::{LeaseStore, Namespace};

use crate::kit::{begin, now, renew, sized, take};
use ringflake_kit::printed;

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

fn owner_begins(mut owner: Box<dyn LeaseStore>) -> Namespace {
    let space = sized("orders", 5);
    owner.init(&space, &begin()).unwrap();
    space
}

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
    use std::process::Command;

    use ringflake_kit::home::Home;
    use ringflake_kit::server::{Etcd, TestServer as _};

    let page = include_str!("../../src/lease/guide/runbook_etcd.md");
    let etcd = started!(Etcd::start_with(1, &["--bcrypt-cost", "4"]));
    let home = Home::new();
    for user in ["root", "owner", "orders"] {
        home.write(&format!("{user}.password"), format!("{user}-secret\n"));
    }
    let endpoint = format!("http://127.0.0.1:{}", etcd.port());
    let run = |lines: Vec<String>| {
        let mut shell = Command::new("sh");
        let script = lines
            .join("\n")
            .replace("http://etcd1.example:2379", &endpoint);
        shell.args(["-ec", &script]).current_dir(home.file(""));
        shell.env("ETCDCTL_ENDPOINTS", &endpoint);
        // Only turns a hang into a failure.
        shell.envs(["ETCDCTL_COMMAND_TIMEOUT", "ETCDCTL_DIAL_TIMEOUT"].map(|it| (it, "60s")));
        printed(&mut shell)
    };
    run(block_with(page, "sh", "etcdctl auth enable"));
    let store = |user: &str| {
        let file = home.file(&format!("{user}.password"));
        let (port, file) = (etcd.port(), file.display());
        crate::served::store(&format!(
            "etcd://{user}@127.0.0.1:{port}?password_file={file}"
        ))
    };
    let space = owner_begins(store("owner"));
    a_service_is_served(store("orders"), &space);
    let entries = run(block_with(page, "sh", "get --prefix ringflake/orders/"));
    assert!(entries.contains("ringflake/orders/record"), "{entries}");
}
