//! Whole runs beside what they print, in the files of `commands`.
//!
//! A run with another text, status or stream fails. To take over what is printed now, run
//! these tests with `TRYCMD=overwrite`, and read the difference.

use crate::home::Home;

fn run(home: &Home, file: &str) {
    run_on(home, "", file);
}

/// The same with a store that the environment names.
fn run_on(home: &Home, store: &str, file: &str) {
    let cases = trycmd::TestCases::new();
    cases
        .default_bin_path(env!("CARGO_BIN_EXE_ringflake"))
        .env("RINGFLAKE_DATA_DIR", home.data_dir().to_str().unwrap())
        .env("RINGFLAKE_BEST_EFFORT", "1")
        .env("RINGFLAKE_STORE", store)
        .env("RINGFLAKE_SECRET_FILE", "")
        .env("RINGFLAKE_BACKEND", "")
        .env("COLUMNS", "90")
        .case(format!("tests/cli/commands/{file}"));
    cases.run();
}

#[test]
fn a_wrong_command_line_is_told_what_would_be_right() {
    let home = Home::new();
    run(&home, "wrong.trycmd");
    assert!(!home.data_dir().exists());
}

#[test]
fn a_failure_is_told_with_what_to_do_about_it() {
    run(&Home::new(), "failed.trycmd");
}

#[test]
fn what_can_not_be_done_is_refused_before_anything_is_made() {
    let home = Home::new();
    run(&home, "refused.trycmd");
    assert!(!home.data_dir().exists());
}

#[cfg(feature = "serve")]
#[test]
fn help_is_what_a_newcomer_reads_first() {
    run(&Home::new(), "help.trycmd");
}

#[test]
fn a_layout_is_found_and_shown_with_its_numbers() {
    let home = Home::new();
    run(&home, "layout.trycmd");
    assert!(!home.data_dir().exists());
}

#[test]
fn ids_are_taken_apart() {
    run(&Home::new(), "inspect.trycmd");
}

#[test]
fn a_namespace_is_looked_after() {
    let home = Home::new();
    let store = format!("sqlite:{}", home.path("shared.db"));
    run_on(&home, &store, "store.trycmd");
    assert!(!home.data_dir().exists());
}

#[test]
fn a_damaged_block_is_listed_and_repaired() {
    let home = Home::new();
    let store = format!("sqlite:{}", home.path("shared.db"));
    let space = format!("--store {store} --namespace orders --plain");
    home.print(format!("store init --history unused {space}"));
    home.print(format!("generate -n 1 {space}"));
    let raw = rusqlite::Connection::open(home.file("shared.db")).unwrap();
    let sql = "UPDATE ringflake SET value = json_set(value, '$.hwm_end', '09000000000000000000') \
               WHERE rank IS NOT NULL";
    assert_eq!(raw.execute(sql, []).unwrap(), 1);
    drop(raw);
    run_on(&home, &store, "damaged.trycmd");
}

#[cfg(not(feature = "serve"))]
#[test]
fn a_command_that_was_not_built_comes_with_the_command_that_builds_it() {
    let said = "'cargo run --features serve -- serve'";
    Home::new().assert_refused("serve --check", 2, said);
}

#[cfg(feature = "serve")]
#[test]
fn a_server_is_checked_without_a_trace() {
    let home = Home::new();
    run(&home, "serve.trycmd");
    assert!(!home.data_dir().exists());
}
