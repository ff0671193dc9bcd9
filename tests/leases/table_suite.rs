//! The suite for tables: for each check there is a table with one flaw that fails it.

mod flawed;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ringflake::SystemClock;
use ringflake::lease::conformance::TableSuite;
use ringflake::lease::table::MemoryTable;

use self::flawed::{FlawedTable, NO_NOT_BEFORE};

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
    let passes = |flaw, check| {
        let server = FlawedTable::new(flaw);
        let run = || TableSuite::new(&|| Box::new(server.clone())).run_check(check);
        catch_unwind(AssertUnwindSafe(run)).is_ok()
    };
    let missed: Vec<_> = thread::scope(|scope| {
        let flaws = TableSuite::checks().map(|check| (check, check));
        let flaws = flaws.chain([(NO_NOT_BEFORE, "a_commit_is_bounded_in_time")]);
        let flaws = flaws.map(|(flaw, check)| (flaw, scope.spawn(move || passes(flaw, check))));
        let flaws: Vec<_> = flaws.collect();
        let missed = flaws
            .into_iter()
            .filter_map(|(flaw, passes)| passes.join().unwrap().then_some(flaw));
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
