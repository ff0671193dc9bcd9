//! The tests that every [`Table`] must pass.

mod blocks;
mod concurrency;
mod conditions;
mod connection;
mod server;
mod values;

use std::thread;

use self::connection::Connection;
use crate::describe::opaque_debug;
use crate::lease::store::table::Table;

/// A table under test.
///
/// A backend that passes this suite is a store once it is wrapped in
/// [`Leases`](crate::lease::Leases). Run [`Suite`](super::Suite) on that, too.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::SystemClock;
/// use ringflake::lease::conformance::TableSuite;
/// use ringflake::lease::table::MemoryTable;
///
/// let server = MemoryTable::new(Arc::new(SystemClock));
/// TableSuite::new(&|| Box::new(server.clone())).run();
/// ```
pub struct TableSuite<'a> {
    open: &'a dyn Fn() -> Box<dyn Table>,
}

/// A check and its name.
type Check = (&'static str, fn(&TableSuite<'_>));

macro_rules! checks {
    ($($name:ident,)*) => {
        &[$((stringify!($name), |suite| suite.$name()),)*]
    };
}

/// In the order in which they run: the first ones see a server without any entry.
const CHECKS: &[Check] = checks![
    missing_entries_read_as_empty,
    creates_makes_the_first_entries,
    values_come_back_byte_for_byte,
    a_put_replaces_the_value,
    a_commit_shows_on_every_connection,
    values_are_compared_byte_by_byte,
    a_commit_needs_every_compared_value,
    a_conflict_shows_what_instead_reads,
    a_commit_is_bounded_in_time,
    a_commit_is_bound_to_an_incarnation,
    a_commit_spans_namespaces,
    a_commit_has_up_to_127_keys,
    a_query_has_up_to_250_keys,
    the_lowest_ranks_are_found,
    a_rank_changes_with_its_entry,
    complete_tells_whether_blocks_are_left_out,
    thousands_of_blocks_are_read,
    similar_names_are_kept_apart,
    keys_may_repeat_and_overlap_blocks,
    a_read_shows_one_moment,
    no_update_is_lost,
    compared_keys_are_protected_from_writes,
    absent_keys_are_protected_from_inserts,
    the_clock_moves_on,
    the_incarnation_is_stable,
    the_server_is_described,
];

impl<'a> TableSuite<'a> {
    /// `open` makes one more connection to the same server. The suite's namespaces have names
    /// that begin with `table`, and none of them may exist there. The server's clock must be
    /// within an hour of this machine's.
    pub fn new(open: &'a dyn Fn() -> Box<dyn Table>) -> Self {
        Self { open }
    }

    /// Runs every check, each in namespaces of its own: about two thousand calls of the table,
    /// from up to eight threads.
    ///
    /// # Panics
    /// If a check fails. The check's name is printed to the standard error.
    pub fn run(&self) {
        CHECKS.iter().for_each(|check| self.run_one(check));
    }

    /// The names of all checks, in the order in which [`run`](Self::run) runs them.
    pub fn checks() -> impl Iterator<Item = &'static str> {
        CHECKS.iter().map(|(name, _)| *name)
    }

    /// Runs one check, once for each server.
    ///
    /// # Panics
    /// If it fails, or if no check has this name.
    pub fn run_check(&self, name: &str) {
        let check = CHECKS.iter().find(|(known, _)| *known == name);
        self.run_one(check.unwrap_or_else(|| panic!("the suite has no check {name:?}")));
    }

    fn run_one(&self, (name, check): &Check) {
        let running = Running(name);
        check(self);
        drop(running);
    }

    /// One more connection.
    fn connect(&self) -> Connection {
        Connection((self.open)())
    }
}

/// Prints the name of a check that panics.
struct Running(&'static str);

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the table fails the check `{}`", self.0);
        }
    }
}

opaque_debug!(TableSuite<'_>);
