//! The machine's calendar clock is set while a server runs.

use std::time::{Duration, Instant};

use ringflake_kit::home::Home;
use ringflake_kit::server::Clock;
use ringflake_kit::{eventually, unix_ms};

use crate::load::Load;
use crate::marks::Marks;
use crate::process::Serve;

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

/// The IDs meanwhile have the wrong hour. Once the clock is right, blocks are leased whose grants
/// begin now.
#[test]
fn a_clock_that_is_set_ahead_and_right_again_makes_no_duplicate() {
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    let load = Load::start(&server);
    load.wait_for(BETWEEN);
    for ahead in [HOUR_MS, 0, HOUR_MS, 0] {
        server.clock().run_ahead(ahead);
        load.wait_for(BETWEEN);
    }
    for taken in load.end() {
        // The lease from the wrong hour first borrows no further, and then is given back.
        if let Some(refused) = &taken.refused {
            let reasons = ["no lease is in force", "ahead of the clock"];
            let is_one = reasons.iter().any(|reason| refused.contains(reason));
            assert!(is_one, "{refused}");
        }
        marks.add(taken.ids);
    }
    let end = unix_ms() + HOUR_MS.unsigned_abs() + 121_000;
    marks.check_within(unix_ms() - 300_000..=end);
    server.stop();
}

/// As a virtual machine that was paused, or a laptop that slept: longer than any lease.
#[test]
fn after_a_pause_ids_are_issued_at_once() {
    const PAUSE_MS: i64 = 600_000;
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    server.signal(libc::SIGSTOP);
    let due_ms = unix_ms() + PAUSE_MS.unsigned_abs();
    server.clock().run_ahead(PAUSE_MS);
    server.signal(libc::SIGCONT);
    let woke = Instant::now();
    // The first ones may have been made before.
    eventually("IDs have the new time", || {
        Load::start(&server).take_into(BETWEEN, &mut marks);
        marks.latest_ms() >= due_ms
    });
    let took = woke.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    marks.check_within(unix_ms() - 300_000..=due_ms + 300_000);
    server.stop();
}

#[test]
fn a_first_use_with_a_clock_that_is_ahead_costs_nothing_once_it_is_right() {
    let home = Home::new();
    let server = Serve::new(&home, "serve", "[namespaces.orders]\n");
    let mut server = server.with_clock(Clock::new());
    server.clock().run_ahead(8 * HOUR_MS);
    server.start(&home);
    let mut marks = Marks::local(&home);
    Load::start(&server).take_into(BETWEEN, &mut marks);
    server.stop();
    server.clock().run_ahead(0);
    server.start(&home);
    Load::start(&server).take_into(BETWEEN, &mut marks);
    let ahead = 8 * HOUR_MS.unsigned_abs();
    marks.check_within(unix_ms() - 300_000..=unix_ms() + ahead + 121_000);
    server.stop();
}

#[test]
fn a_server_that_starts_while_its_clock_is_wrong_makes_no_duplicate() {
    let home = Home::new();
    let mut server = start(&home);
    let mut marks = Marks::local(&home);
    for ahead in [-HOUR_MS, 0, HOUR_MS, 0] {
        let load = Load::start(&server);
        load.wait_for(BETWEEN);
        // Kill first: a take during the clock change could have either time.
        server.kill();
        server.clock().run_ahead(ahead);
        load.join()
            .into_iter()
            .for_each(|taken| marks.add(taken.ids));
        server.start(&home);
    }
    Load::start(&server).take_into(BETWEEN, &mut marks);
    let hour = HOUR_MS.unsigned_abs();
    marks.check_within(unix_ms() - hour - 300_000..=unix_ms() + hour + 121_000);
    server.stop();
}
