//! The machine's calendar clock is set while a server runs.

use ringflake_kit::assert_says;
use ringflake_kit::server::Clock;

use crate::load::Load;
use crate::marks::Marks;
use crate::process::{Home, Serve, unix_ms};

const HOUR_MS: i64 = 3_600_000;

/// IDs that clients get between two changes.
const BETWEEN: usize = 5000;

fn start(home: &Home) -> Serve {
    let server = Serve::new(home, "serve", "[namespaces.orders]\n");
    let mut server = server.with_clock(Clock::new());
    server.start(home);
    server
}

#[test]
fn a_clock_that_is_set_back_costs_nothing() {
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    let load = Load::start(&server);
    for ahead in [-HOUR_MS, 0, -24 * HOUR_MS, 0] {
        load.wait_for(BETWEEN);
        server.clock().run_ahead(ahead);
        load.wait_for(BETWEEN);
    }
    load.end_unrefused(&mut marks);
    // Time goes on from where it was, so that none is of the wrong hour.
    marks.check();
    server.stop();
}

#[test]
fn a_clock_that_is_set_ahead_is_refused_until_it_is_right() {
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    let load = Load::start(&server);
    load.wait_for(BETWEEN);

    server.clock().run_ahead(HOUR_MS);
    server.wait_until_ready(false);
    server.assert_can_not_issue();
    server.wait_for_times("the machine's clock shows", 1);

    server.clock().run_ahead(0);
    server.wait_until_ready(true);
    load.wait_for(BETWEEN);
    for taken in load.end() {
        if let Some(refused) = &taken.refused {
            assert_says(refused, &["no lease is in force"]);
        }
        marks.add(taken.ids);
    }
    // A take at the moment of the change may be of either time.
    let end = unix_ms() + HOUR_MS.unsigned_abs() + 121_000;
    marks.check_within(unix_ms() - 300_000..=end);
    server.stop();
}

#[test]
fn a_server_does_not_start_while_its_clock_is_wrong() {
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    for ahead in [-HOUR_MS, HOUR_MS] {
        let load = Load::start(&server);
        load.wait_for(BETWEEN);
        // Kill first: a take during the clock change could have either time.
        server.kill();
        server.clock().run_ahead(ahead);
        load.join()
            .into_iter()
            .for_each(|taken| marks.add(taken.ids));
        let log = server.refuse_to_start(&home);
        let refused = "error: namespace \"orders\" can't be opened: the machine's clock shows";
        assert!(log.lines().any(|line| line.starts_with(refused)), "{log}");
        server.clock().run_ahead(0);
        server.start(&home);
    }
    let load = Load::start(&server);
    load.wait_for(BETWEEN);
    load.end_into(&mut marks);
    marks.check();
    server.stop();
}
