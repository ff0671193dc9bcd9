//! Reloads and termination by a service manager while clients are at work.

use std::fs;
use std::io::ErrorKind;

use ringflake_kit::{assert_says, eventually, short_or_long};

use crate::load::{Load, Way};
use crate::marks::Marks;
use crate::process::{Home, Serve};
use crate::wire::{Http, Resp};

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

    // An unreadable file is refused in one line, and the former settings stay.
    let broken = [
        "[resp\n",
        "limits.count = -1\n",
        "tokens.take = 'none'\n",
        "port = 5\n",
    ];
    for (number, text) in broken.into_iter().enumerate() {
        let before = server.log().lines().count();
        fs::write(server.config(), text).unwrap();
        server.signal(libc::SIGHUP);
        server.wait_for_times(
            "not reloaded: the previous configuration stays in use",
            number + 1,
        );
        load.wait_for(BETWEEN);
        assert_eq!(server.log().lines().count(), before + 1, "{}", server.log());
        assert_eq!(auth(&server, TOKEN), "+OK");
        assert!(auth(&server, OTHER_TOKEN).starts_with("-WRONGPASS"));
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

#[test]
fn an_end_waits_for_what_was_begun_and_begins_no_more() {
    const BODY: &str = "{\"namespace\":\"orders\"}";
    let home = Home::new();
    let mut server = Serve::local(&home);
    let mut begun = Http::connect(server.http);
    begun.begin(BODY.len()).unwrap();
    server.signal(libc::SIGTERM);
    eventually("nobody comes in any more", || {
        let mut client = Http::try_connect(server.http);
        let ready = client.as_mut().map(|client| client.get("/readyz"));
        !matches!(ready, Ok(Ok(answer)) if answer.status == 200)
    });
    let answer = begun.finish(BODY).unwrap();
    assert_eq!(
        (answer.status, answer.is_whole),
        (200, true),
        "{}",
        answer.head
    );
    assert_eq!(answer.ids(true).unwrap().len(), 1);
    assert_says(&server.wait(), &["answered_all=true", "clean=true"]);
}
