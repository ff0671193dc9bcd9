//! A store that goes away and comes back.

use std::fs;

use ringflake_kit::home::Home;
use ringflake_kit::proxy::{Fault, Proxy, Then};
use ringflake_kit::server::{Postgres, TestServer};
use ringflake_kit::{assert_says, eventually, is_long, short_or_long, started};

use crate::kills::of_a_store;
use crate::load::{Load, Way};
use crate::process::Serve;

/// IDs that clients get between two faults.
const BETWEEN: usize = 5000;

#[test]
fn a_store_that_goes_away_and_comes_back_costs_time_alone() {
    let mut store = started!(Postgres::start());
    let proxy = Proxy::to(store.port());
    let home = Home::new();
    let (settings, mut marks) = of_a_store(&home, &store.url_through(proxy.port()));
    let mut server = Serve::new(&home, "serve", &settings);
    server.start(&home);
    // It goes on for as long as the leases do.
    let few = [
        Way::Incr(1),
        Way::Incr(8),
        Way::Pop(10),
        Way::Json(5),
        Way::Binary(20),
    ];
    let load = Load::with(&server, &few);
    for round in 0..short_or_long(2, 6) {
        load.wait_for(BETWEEN);
        // What it holds does not end with the store, and reaches ten seconds. A busy machine may
        // renew it late.
        eventually("it holds leases", || {
            let (status, seconds) = server.readiness();
            assert!(seconds <= Some(10), "{seconds:?}");
            status == 200 && seconds >= Some(1)
        });
        match round % 2 {
            0 => proxy.set(Fault::Cut),
            _ => store.stop(),
        }
        server.wait_until_ready(false);
        assert_eq!(server.readiness(), (503, Some(0)));
        server.assert_can_not_issue();
        load.wait_for_refusals();
        match round % 2 {
            0 => proxy.set(Fault::None),
            _ => store.restart(),
        }
        server.wait_until_ready(true);
    }
    load.wait_for(BETWEEN);
    // No connection has ended.
    for taken in load.end() {
        let refused = taken.refused.expect("it was refused");
        assert_says(&refused, &["no lease is in force"]);
        marks.add(taken.ids);
    }
    marks.check();
    server.stop();
}

#[test]
fn a_server_starts_without_its_store_and_serves_later() {
    let store = started!(Postgres::start());
    let initialised = Home::new();
    let (settings, _) = of_a_store(&initialised, &store.url());
    let mut server = Serve::new(&initialised, "serve", &settings);
    server.start(&initialised);
    server.stop();
    // As many answers as it gets: the store is lost at every point of the start.
    let mut without = 0;
    for after in 0.. {
        if is_long() {
            // So that the start has to make tables and namespace, too.
            store.clear();
        }
        let proxy = Proxy::to(store.port());
        let home = Home::new();
        let (settings, mut marks) = of_a_store(&home, &store.url_through(proxy.port()));
        let settings = format!("{settings}wait = '200ms'\n");
        let mut server = Serve::new(&home, "serve", &settings);
        proxy.set(Fault::LoseReplies {
            after,
            then: Then::Close,
        });
        server.start_unready(&home);
        // The start waits for 200 ms, in which a busy machine may not get as far as either.
        let mut is_whole = false;
        eventually("it is ready, or a reply is lost", || {
            let is_ready = server.readiness().0 == 200;
            let has_lost = proxy.lost() > 0;
            is_whole = is_ready && !has_lost;
            is_ready || has_lost
        });
        without += usize::from(server.readiness().0 == 503);
        proxy.set(Fault::None);
        server.wait_until_ready(true);
        Load::start(&server).take_into(500, &mut marks);
        marks.check();
        server.stop();
        if is_whole {
            break;
        }
    }
    assert_ne!(without, 0);
}

#[test]
fn a_server_says_that_another_process_keeps_its_directory_locked() {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    let lock = fs::File::create(home.file("data/leases.db.lock")).unwrap();
    lock.lock().unwrap();
    let mut server = Serve::new(&home, "serve", "[namespaces.orders]\n");
    server.spawn(&home);
    server.wait_for_times("waiting for the data directory", 1);
    lock.unlock().unwrap();
    server.wait_for_times("ready", 1);
    server.stop();
}
