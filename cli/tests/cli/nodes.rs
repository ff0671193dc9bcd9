//! Which nodes a run has, and what it does while others have them.

use std::collections::BTreeSet;
use std::io::Read;

use crate::home::{Home, Parts, Printing, distinct, numbers, spawn, succeed};
use ringflake_kit::{assert_says, short_or_long};

/// A run that holds node 3. A busy machine may let a lease of the default 2 s run out before it
/// is renewed.
const HOLDER: &str = "--nodes 3..4 -n 300000 --lease-duration 20s";

#[test]
fn only_the_nodes_that_were_given_are_used() {
    let home = Home::new();
    let layout = "--layout twitter";
    let count = short_or_long(20_000, 200_000);
    // From the middle, from the end, and from a part of what was there before.
    for nodes in [5..8, 1022..1024, 6..7, 0..9] {
        let ids = home.print(format!("generate -n {count} --nodes {nodes:?} {layout}"));
        let parts = home.inspect(layout, &ids);
        let used: BTreeSet<_> = parts.iter().map(|parts| parts.node).collect();
        assert!(used.iter().all(|node| nodes.contains(node)), "{used:?}");
        assert_eq!(distinct(parts.iter().map(Parts::cell)), count);
    }
    // Without, any will do.
    let ids = home.print(format!("generate {layout}"));
    assert_eq!(home.inspect(layout, &ids).len(), 10);
}

#[test]
fn a_run_waits_for_nodes_that_another_holds_and_then_gives_up() {
    let home = Home::new();
    let holder = Printing::start(&home, HOLDER);
    let same = "generate --plain --nodes 3..4 --format u64le";
    let message = home.refuse(format!("{same} --wait 100ms"));
    assert_says(&message, &["other runs", "--wait"]);
    // Beside it there is room.
    home.print("generate --plain --nodes 4..5");
    home.print("generate --plain");

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
    let at_once = "generate --plain --wait 0s --nodes";
    // The first run of all, too.
    assert_eq!(home.print(format!("{at_once} 3..4")).lines().count(), 10);
    let mut holder = Printing::start(&home, HOLDER);
    let message = home.refuse(format!("{at_once} 3..4"));
    assert_says(&message, &["other runs", "--wait"]);
    assert!(!message.contains("waiting"), "{message}");
    assert_eq!(home.print(format!("{at_once} 4..5")).lines().count(), 10);
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
}
