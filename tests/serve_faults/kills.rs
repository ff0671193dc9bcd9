//! Servers that are killed under load, and started again at once.

use ringflake::Secret;
use ringflake_kit::home::Home;
use ringflake_kit::server::{Postgres, TestServer};
use ringflake_kit::{short_or_long, started};

use crate::load::Load;
use crate::marks::Marks;
use crate::process::Serve;

/// IDs that clients have got before each kill.
const BEFORE_A_KILL: usize = 10_000;

/// Kills the servers in turns. The others serve on, and in the end all do.
fn kill_in_turns(home: &Home, servers: &mut [Serve], rounds: usize, mut marks: Marks) {
    let mut loads: Vec<_> = servers
        .iter()
        .map(|server| Some(Load::start(server)))
        .collect();
    for round in 0..rounds {
        let killed = round % servers.len();
        let load = loads[killed].take().unwrap();
        load.wait_for(BEFORE_A_KILL);
        servers[killed].kill();
        for taken in load.join() {
            assert!(taken.end.is_some(), "it was not the end");
            marks.add(taken.ids);
        }
        servers[killed].start(home);
        loads[killed] = Some(Load::start(&servers[killed]));
    }
    for (load, server) in loads.into_iter().flatten().zip(servers) {
        load.take_into(BEFORE_A_KILL, &mut marks);
        server.stop();
    }
    assert!(marks.count() > rounds * BEFORE_A_KILL);
    marks.check();
}

#[test]
fn no_id_comes_twice_when_a_server_is_killed_under_load() {
    let home = Home::new();
    let server = Serve::local(&home);
    let marks = Marks::local(&home);
    kill_in_turns(&home, &mut [server], short_or_long(6, 60), marks);
}

#[test]
fn no_id_comes_twice_from_two_servers_on_one_directory() {
    let home = Home::new();
    let mut servers = ["one", "two"].map(|name| Serve::new(&home, name, "[namespaces.orders]\n"));
    servers.iter_mut().for_each(|server| server.start(&home));
    let marks = Marks::local(&home);
    kill_in_turns(&home, &mut servers, short_or_long(4, 40), marks);
}

#[test]
fn no_id_comes_twice_from_two_servers_on_one_store() {
    let store = started!(Postgres::start());
    let home = Home::new();
    let (settings, marks) = of_a_store(&home, &store.url());
    let mut servers = ["one", "two"].map(|name| Serve::new(&home, name, &settings));
    servers.iter_mut().for_each(|server| server.start(&home));
    kill_in_turns(&home, &mut servers, short_or_long(4, 40), marks);
}

/// Settings for `orders` in this store, and the marks of its IDs.
pub(crate) fn of_a_store(home: &Home, url: &str) -> (String, Marks) {
    const SECRET: &str = "00112233445566778899aabbccddeeff";
    let secret = home.write("secret", SECRET);
    let url = home.write("url", url);
    let settings = format!(
        "[namespaces.orders]\nstore-url-file = '{}'\nsecret-file = '{}'\n\
         init-if-new = 'new'\nlease-duration = '10s'\n",
        url.display(),
        secret.display()
    );
    let marks = Marks::new(home, &Secret::from_hex(SECRET).unwrap());
    (settings, marks)
}
