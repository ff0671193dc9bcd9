//! Reloads and termination by a service manager while clients are at work.

use std::fs;
use std::io::ErrorKind;

use ringflake_kit::{assert_says, short_or_long};

use crate::load::{Load, Way};
use crate::marks::Marks;
use crate::process::{Home, Serve};
use crate::wire::Resp;

const TOKEN: &str = "take-0123456789abcdef";
const OTHER_TOKEN: &str = "take-fedcba9876543210";

/// IDs that clients get between two signals.
const BETWEEN: usize = 2000;

#[test]
fn reloads_under_load_are_noticed_by_nobody() {
    let home = Home::new();
    let tokens = home.write("tokens", TOKEN);
    let settings = |limit: usize| {
        let tokens = tokens.display();
        format!("tokens.take = '{tokens}'\nlimits.count = {limit}\n[namespaces.orders]\n")
    };
    let mut server = Serve::new(&home, "serve", &settings(5000));
    server.start(&home);
    let mut marks = Marks::local(&home);
    let load = Load::with(&server, &Way::ALL, TOKEN);
    let auth = |server: &Serve, token| Resp::connect(server.resp).ask(&format!("AUTH {token}"));

    let rounds = short_or_long(20, 200);
    for round in 1..=rounds {
        load.wait_for(BETWEEN);
        // One comes and goes; the one that is in use stays.
        let comes = round % 2 == 1;
        let list = if comes {
            format!("{TOKEN}\n{OTHER_TOKEN}\n")
        } else {
            TOKEN.to_owned()
        };
        home.write("tokens", &list);
        fs::write(server.config(), settings(5000 + round)).unwrap();
        server.signal(libc::SIGHUP);
        server.wait_for_times("serve: reloaded needs_restart=\"limits\"", round);
        let expected = if comes { "+OK" } else { "-WRONGPASS" };
        let answer = auth(&server, OTHER_TOKEN);
        assert!(answer.starts_with(expected), "{answer}");
    }

    for taken in load.end() {
        assert!(taken.refused.is_empty(), "{:?}", taken.refused);
        assert_ne!(taken.answers, 0);
        marks.add(taken.ids);
    }
    marks.check();
    let log = server.stop();
    assert_eq!(log.matches("serve: reloaded").count(), rounds);
}

#[test]
fn an_end_under_load_leaves_no_answer_half_written() {
    let home = Home::new();
    let mut server = Serve::local(&home);
    let mut marks = Marks::local(&home);
    for _ in 0..short_or_long(5, 50) {
        let load = Load::start(&server);
        load.wait_for(BETWEEN);
        let log = server.stop();
        assert_says(&log, &["answered_all=true", "clean=true"]);
        for taken in load.join() {
            let end = taken.end.as_ref().expect("the server has ended").kind();
            let is_clean = matches!(
                end,
                ErrorKind::UnexpectedEof
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
            );
            assert!(is_clean && taken.ended_between, "{end:?} {taken:?}");
            assert!(taken.refused.is_empty(), "{:?}", taken.refused);
            marks.add(taken.ids);
        }
        server.start(&home);
    }
    marks.check();
}
