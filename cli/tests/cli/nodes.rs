//! What a run does while others have the nodes.

use std::io::Read;

use crate::home::{Home, Printing, distinct, numbers, spawn, succeed};
use ringflake_kit::assert_says;

/// Both nodes of a layout that has two.
const ALL_NODES: &str = "--layout 31/1/17@2024-10-27T03:33:20Z/1s --blocks 2";

/// A run that holds them. A busy machine may let a lease of the default 2 s run out before it is
/// renewed.
fn hold(home: &Home) -> Printing {
    Printing::start(home, &format!("{ALL_NODES} -n 300000 --lease-duration 20s"))
}

#[test]
fn a_run_waits_for_nodes_that_another_holds_and_then_gives_up() {
    let home = Home::new();
    let holder = hold(&home);
    let same = format!("generate --plain {ALL_NODES} --format u64le");
    let message = home.refuse(format!("{same} --wait 100ms"));
    assert_says(&message, &["other runs", "--wait"]);

    let mut waiting = spawn(&mut home.command(same));
    let mut said = [0; 64];
    let count = waiting.stderr.as_mut().unwrap().read(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said[..count]);
    assert!(said.starts_with("ringflake: waiting: "), "{said}");
    let mut ids = holder.finish();
    ids.extend(numbers(
        &succeed(waiting.wait_with_output().unwrap()).stdout,
    ));
    assert_eq!((ids.len(), distinct(ids)), (300_010, 300_010));
}

#[test]
fn a_run_that_is_not_to_wait_takes_what_is_free_or_gives_up() {
    let home = Home::new();
    let at_once = format!("generate --plain --wait 0s {ALL_NODES}");
    // The first run of all, too.
    assert_eq!(home.print(&at_once).lines().count(), 10);
    let mut holder = hold(&home);
    let message = home.refuse(&at_once);
    assert_says(&message, &["other runs", "--wait"]);
    assert!(!message.contains("waiting"), "{message}");
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
}
