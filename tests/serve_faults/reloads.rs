//! Servers that reload and end under load.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use redis::ErrorKind::AuthenticationFailed;
use ringflake_kit::home::Home;
use ringflake_kit::{assert_says, eventually, short_or_long};

use crate::load::{Load, PATIENCE, resp};
use crate::marks::Marks;
use crate::process::Serve;

const TOKEN: &str = "always-0123456789abcdef";
const OTHER: &str = "at-times-0123456789abcdef";

/// IDs of each list.
const COUNT: usize = 60_000;

/// Each reload adds or removes a token that the clients of the load do not use.
#[test]
fn reload_under_load_keeps_every_client() {
    let home = Home::new();
    let tokens = home.write("tokens", TOKEN);
    let settings = format!(
        "tokens.take = '{}'\n[namespaces.orders]\n",
        tokens.display()
    );
    let mut server = Serve::new(&home, "serve", &settings);
    server.token = TOKEN;
    server.start(&home);
    let load = Load::start(&server);
    for round in 1..=short_or_long(10, 100) {
        let has_other = round % 2 == 1;
        let next = [TOKEN, OTHER][..1 + usize::from(has_other)].join("\n");
        fs::rename(home.write("next", next), &tokens).unwrap();
        server.signal(libc::SIGHUP);
        eventually("the token is known, or not", || {
            let refusal = resp(server.resp, OTHER).err();
            if let Some(error) = &refusal {
                assert_eq!(error.kind(), AuthenticationFailed, "{error}");
            }
            refusal.is_none() == has_other
        });
        load.wait_for_new_requests();
    }
    let mut marks = Marks::local(&home);
    load.end_unrefused(&mut marks);
    marks.check();
    server.stop();
}

#[test]
fn shutdown_under_load_sends_whole_replies() {
    // Several times what the sockets hold.
    const LISTS: usize = 10;

    let home = Home::new();
    let mut server = Serve::local(&home);
    let mut marks = Marks::local(&home);
    for _ in 0..short_or_long(3, 30) {
        let load = Load::start(&server);
        let stream = TcpStream::connect(("127.0.0.1", server.resp)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = BufReader::new(stream);
        let requests = format!("LPOP orders {COUNT}\r\n").repeat(LISTS);
        client.get_mut().write_all(requests.as_bytes()).unwrap();
        // The server has read the requests, which are one packet.
        client.fill_buf().unwrap();
        server.signal(libc::SIGTERM);
        server.wait_for_times("stopping", 1);
        eventually("the drain has begun", || {
            TcpStream::connect(("127.0.0.1", server.resp)).is_err()
        });
        for _ in 0..LISTS {
            marks.add(read_list(&mut client));
        }
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "more than the replies");
        let log = server.wait();
        assert_says(&log, &["answered_all=true", "clean=true"]);
        for taken in load.join() {
            assert!(taken.end.is_some(), "the client outlived the server");
            assert!(!taken.is_cut, "{:?}", taken.end);
            assert_eq!(taken.refused, None);
            marks.add(taken.ids);
        }
        server.start(&home);
    }
    marks.check();
    server.stop();
}

/// The IDs of the next reply, which is whole.
#[track_caller]
fn read_list(replies: &mut impl BufRead) -> Vec<u64> {
    let mut line = || {
        let mut line = String::new();
        replies.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "a reply ends after {line:?}");
        line.trim_end().to_owned()
    };
    assert_eq!(line(), format!("*{COUNT}"));
    let ids = (0..COUNT).map(|_| {
        let (length, id) = (line(), line());
        assert_eq!(length, format!("${}", id.len()));
        id.parse::<i64>().unwrap().cast_unsigned()
    });
    ids.collect()
}
