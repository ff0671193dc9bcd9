//! The suite for tables: for each check there is a table with one flaw that fails it.

mod flawed;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ringflake::SystemClock;
use ringflake::lease::conformance::TableSuite;
use ringflake::lease::table::MemoryTable;

use self::flawed::FlawedTable;

#[test]
fn the_memory_table_conforms() {
    let server = MemoryTable::new(Arc::new(SystemClock));
    TableSuite::new(&|| Box::new(server.clone())).run();
}

/// So what catches a flaw is not the wrapper.
#[test]
fn a_wrapper_without_a_flaw_conforms() {
    let server = FlawedTable::new("none");
    TableSuite::new(&|| Box::new(server.clone())).run();
}

#[test]
fn every_check_catches_a_flaw() {
    let passes = |check| {
        let server = FlawedTable::new(check);
        let run = || TableSuite::new(&|| Box::new(server.clone())).run_check(check);
        catch_unwind(AssertUnwindSafe(run)).is_ok()
    };
    let missed: Vec<_> = thread::scope(|scope| {
        let checks = TableSuite::checks().map(|check| (check, scope.spawn(move || passes(check))));
        let checks: Vec<_> = checks.collect();
        let missed = checks
            .into_iter()
            .filter_map(|(check, passes)| passes.join().unwrap().then_some(check));
        missed.collect()
    });
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
#[should_panic(expected = "the suite has no check \"none\"")]
fn an_unknown_check_is_an_error() {
    let server = FlawedTable::new("none");
    TableSuite::new(&|| Box::new(server.clone())).run_check("none");
}
