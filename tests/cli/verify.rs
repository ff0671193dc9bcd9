//! What `verify` finds.

use crate::home::{Home, stderr, stdout, succeed};

/// The figure in the row with this title.
fn figure<'a>(table: &'a str, title: &str) -> &'a str {
    let row = table.lines().find_map(|line| line.strip_prefix(title));
    row.unwrap_or_else(|| panic!("no {title} in {table}"))
        .trim()
}

#[test]
fn verify_finds_no_duplicate() {
    let home = Home::new();
    home.run(&["keygen"]);
    let output = succeed(home.run(&["verify", "-n", "2000000", "--threads", "2"]));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert_eq!(figure(&table, "IDs  "), "2000000");
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the leases"), "0");
    assert!(figure(&table, "IDs/s").parse::<u64>().unwrap() > 0);
    for title in ["empties", "waits at a limit", "seconds borrowed", "level"] {
        assert!(!figure(&table, title).is_empty());
    }
}

#[test]
fn verify_goes_on_through_refusals_and_stops_in_time() {
    let home = Home::new();
    // 4,096 IDs a second: the minute that may be borrowed is used up at once.
    let table = home.print(&[
        "verify",
        "--plain",
        "--layout",
        "js-safe",
        "--nodes",
        "9..10",
        "--seconds",
        "2",
        "--capacity",
        "1024",
        "--producers",
        "2",
        "--threads",
        "2",
    ]);
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the leases"), "0");
    let ids: u64 = figure(&table, "IDs  ").parse().unwrap();
    assert!((4096 * 60..4096 * 70).contains(&ids), "{table}");
    let waits: u64 = figure(&table, "waits at a limit").parse().unwrap();
    assert!(waits > 0, "{table}");
}
