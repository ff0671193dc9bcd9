//! The `unique-ids` workload of [Maelstrom](https://github.com/jepsen-io/maelstrom).
//!
//! Without arguments of its own this program runs the workload's rules as tests. Under Maelstrom
//! itself it is the node:
//!
//! ```text
//! cargo test -p ringflake-cli --test maelstrom --no-run        # prints the program's path
//! maelstrom test -w unique-ids --bin PROGRAM --node-count 3 --nemesis partition -- node DIR
//! ```

#![cfg(unix)]

mod node;
mod workload;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, directory] = &arguments[..]
        && command == "node"
    {
        return node::run(directory);
    }
    let trials = [
        (
            "the_unique_ids_workload_holds_through_kills_and_partitions",
            workload::holds_through_kills_and_partitions as fn(),
        ),
        (
            "requests_that_the_workload_does_not_have_take_no_id",
            workload::other_requests_take_no_id,
        ),
    ];
    let trials = trials.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}
