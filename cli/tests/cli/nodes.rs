//! Which nodes a run has, and what it does while others have them.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::Child;

use crate::home::{Home, Parts, distinct, fail, numbers, spawn, stderr, stdout, succeed};
use ringflake_kit::{assert_says, short_or_long};

#[test]
fn only_the_nodes_that_were_given_are_used() {
    let home = Home::new();
    // From the middle, from the end, and from a part of what was there before.
    let layout = ["--layout", "twitter"];
    let count = short_or_long(20_000, 200_000);
    let printed = count.to_string();
    for nodes in [5..8, 1022..1024, 6..7, 0..9] {
        let range = format!("{}..{}", nodes.start, nodes.end);
        let args = ["generate", "-n", &printed, "--nodes", &range];
        let ids = home.print(&[&args[..], &layout].concat());
        let parts = home.inspect(&layout, &ids);
        let used: BTreeSet<_> = parts.iter().map(|parts| parts.node).collect();
        assert!(used.iter().all(|node| nodes.contains(node)), "{used:?}");
        assert_eq!(distinct(parts.iter().map(Parts::cell)), count);
    }
    // Without, any will do.
    let ids = home.print(&[&["generate"], &layout[..]].concat());
    let parts = home.inspect(&layout, &ids);
    assert_eq!(parts.len(), 10);
}

/// A run on node 3 that holds it until its output is read.
fn holder(home: &Home) -> Child {
    let args = [
        "generate", "--plain", "--nodes", "3..4", "--format", "u64le", "-n", "300000",
    ];
    let mut child = spawn(&mut home.command(&args));
    let mut first = [0; 8];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    child
}

#[test]
fn a_run_waits_for_nodes_that_another_holds_and_then_gives_up() {
    let home = Home::new();
    let mut holder = holder(&home);
    let args = [
        "generate", "--plain", "--nodes", "3..4", "--format", "u64le",
    ];
    let message = fail(home.run(&[&args[..], &["--wait", "100ms"]].concat()));
    assert_says(&message, &["another run", "--wait"]);
    // Beside it there is room.
    home.print(&["generate", "--plain", "--nodes", "4..5"]);
    home.print(&["generate", "--plain"]);

    let mut waiting = spawn(&mut home.command(&args));
    let mut said = [0; 64];
    let count = waiting.stderr.as_mut().unwrap().read(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said[..count]);
    assert!(said.starts_with("ringflake: waiting: "), "{said}");
    let mut bytes = Vec::new();
    let mut stdout = holder.stdout.take().unwrap();
    stdout.read_to_end(&mut bytes).unwrap();
    succeed(holder.wait_with_output().unwrap());
    assert_eq!(bytes.len(), 8 * 299_999);
    let waited = numbers(&succeed(waiting.wait_with_output().unwrap()).stdout);
    assert_eq!(waited.len(), 10);
    let held = numbers(&bytes);
    assert!(waited.iter().all(|id| !held.contains(id)));
}

#[test]
fn a_run_that_is_not_to_wait_takes_what_is_free_or_gives_up() {
    let home = Home::new();
    let at_once = ["generate", "--plain", "--wait", "0s"];
    let nodes = |nodes| home.run(&[&at_once[..], &["--nodes", nodes]].concat());
    // The first run of all, too.
    assert_eq!(stdout(&succeed(nodes("3..4"))).lines().count(), 10);
    let mut holder = holder(&home);
    let message = fail(nodes("3..4"));
    for part in ["another run", "--wait"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    assert!(!message.contains("waiting"), "{message}");
    assert_eq!(stdout(&succeed(nodes("4..5"))).lines().count(), 10);
    // It ends where nobody reads what it says.
    drop(holder.stdout.take());
    holder.wait().unwrap();
}

#[test]
fn a_run_on_too_few_nodes_takes_its_time() {
    let home = Home::new();
    // 4,096 IDs a second and node, and a horizon that is a few seconds away.
    let space = ["--plain", "--layout", "js-safe"];
    let init = ["store", "init", "--history", "new", "--horizon", "12s"];
    home.print(&[&init[..], &space].concat());
    let args = [
        "generate", "--nodes", "7..8", "--format", "u64le", "-n", "64k",
    ];
    let output = succeed(home.run(&[&args[..], &space].concat()));
    let ids = numbers(&output.stdout);
    assert_eq!(distinct(ids.iter().copied()), 64_000);
    let said = stderr(&output);
    assert!(said.contains("4096 IDs every 1000 ms"), "{said}");
}
