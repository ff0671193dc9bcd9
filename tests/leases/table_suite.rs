//! The suite for tables: tables with one flaw each fail the check that is for it.

mod flawed;
mod flaws;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ringflake::SystemClock;
use ringflake::lease::conformance::TableSuite;
use ringflake::lease::table::MemoryTable;

use self::flawed::FlawedServer;
use self::flaws::{FLAWS, Flaw};

#[test]
fn the_memory_table_conforms() {
    let server = MemoryTable::new(Arc::new(SystemClock));
    TableSuite::new(&|| Box::new(server.clone())).run();
}

/// So what catches a flaw is not the wrapper.
#[test]
fn a_wrapper_without_a_flaw_conforms() {
    let server = FlawedServer::new(None);
    TableSuite::new(&|| Box::new(server.connect())).run();
}

/// Whether a table with this flaw fails this check.
fn is_caught(flaw: Flaw, check: &str) -> bool {
    let server = FlawedServer::new(Some(flaw));
    let run = || TableSuite::new(&|| Box::new(server.connect())).run_check(check);
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn every_flaw_is_caught_by_its_check() {
    let caught = thread::scope(|scope| {
        let checked = FLAWS.iter().map(|&(flaw, check)| {
            let is_caught = scope.spawn(move || is_caught(flaw, check));
            (flaw, check, is_caught)
        });
        let checked: Vec<_> = checked.collect();
        let joined = checked.into_iter().map(|(flaw, check, is_caught)| {
            let is_caught = is_caught.join().expect("panics were caught");
            (flaw, check, is_caught)
        });
        joined.collect::<Vec<_>>()
    });
    let missed: Vec<_> = caught.iter().filter(|(.., is_caught)| !is_caught).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn every_check_catches_a_flaw() {
    let checks: BTreeSet<_> = TableSuite::checks().collect();
    let with_a_flaw: BTreeSet<_> = FLAWS.iter().map(|(_, check)| *check).collect();
    assert_eq!(checks, with_a_flaw);
}

#[test]
#[should_panic(expected = "the suite has no check \"none\"")]
fn an_unknown_check_is_an_error() {
    let server = FlawedServer::new(None);
    TableSuite::new(&|| Box::new(server.connect())).run_check("none");
}
