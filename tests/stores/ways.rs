//! The ways to a server: Unix sockets, several hosts, sentinels.

use crate::kit::made;
use crate::served::store;
use ringflake_kit::server::{TestServer as _, free_port};

/// Hosts of this machine, for a URL.
fn hosts(ports: &[u16]) -> String {
    let hosts = ports.iter().map(|port| format!("127.0.0.1:{port}"));
    hosts.collect::<Vec<_>>().join(",")
}
mod mysql {
    use super::*;
    use crate::kit::{begin, now, space, unavailable};
    use ringflake::lease::LeaseStore as _;
    use ringflake_kit::server::{Lent, MariaDb, PASSWORD};
    use ringflake_kit::{assert_says, eventually};

    #[test]
    fn a_socket_leads_to_it() {
        let server = started!(Lent::<MariaDb>::start());
        let socket = server.socket().display().to_string();
        // The host is of no account.
        let mut store = store(&format!(
            "mysql://app:{PASSWORD}@db.example/app?socket={socket}"
        ));
        let orders = made(&mut store, "orders", 5);
        let report = store.check(&orders, now()).unwrap();
        assert_says(&report.store, &[&socket]);
    }

    #[test]
    fn hosts_that_are_gone_or_replicas_are_passed_over() {
        let mut replica = started!(MariaDb::start_with(&["--read-only"]));
        let mut primary = MariaDb::start().unwrap();
        let open = |ports: &[u16]| {
            let url = format!("mysql://app:{PASSWORD}@{}/app", hosts(ports));
            store(&url)
        };
        let (nobody, one, other) = (free_port(), replica.port(), primary.port());
        let mut store = open(&[nobody, one, other]);
        let orders = made(&mut store, "orders", 5);
        let report = store.check(&orders, now()).unwrap();
        assert_says(&report.store, &[&hosts(&[other])]);
        unavailable(open(&[nobody, one]).list(&orders)).says("read-only");

        // The one takes over from the other.
        primary.stop();
        replica.stop();
        replica.configure(&[]);
        replica.restart();
        let moved = space("moved");
        eventually("the other one serves", || {
            store.init(&moved, &begin()).is_ok()
        });
        let report = store.check(&moved, now()).unwrap();
        assert_says(&report.store, &[&hosts(&[one])]);
    }
}
mod postgres {
    use super::*;
    use crate::served::Served as _;
    use ringflake_kit::server::{Lent, PASSWORD, Postgres};

    #[test]
    fn a_socket_leads_to_it_also_after_a_host_that_is_gone() {
        let server = started!(Lent::<Postgres>::start());
        let (port, nobody) = (server.port(), free_port());
        let directory = server.sockets().display().to_string().replace('/', "%2F");
        let orders = made(&mut server.store(), "orders", 5);
        for place in [
            format!("{directory}:{port}/app"),
            format!("/app?host={directory}&port={port}"),
            format!("127.0.0.1:{nobody},{directory}:{port}/app"),
        ] {
            let url = format!("postgres://app:{PASSWORD}@{place}");
            crate::kit::take(&mut store(&url), &orders, 60);
        }
    }
}
mod redis {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::process::Command;

    use super::*;
    use crate::kit::{denied, serve, unavailable};
    use ringflake::lease::LeaseStore as _;
    use ringflake_kit::eventually;
    use ringflake_kit::server::{Redis, Server, directory, find};
    use tempfile::TempDir;

    #[test]
    fn a_socket_leads_to_it() {
        let directory = TempDir::new().unwrap();
        let socket = directory.path().join("redis.sock");
        let path = socket.to_str().unwrap();
        let arguments = ["--unixsocket", path, "--requirepass", "hunter2"];
        let _redis = started!(Redis::start_with(&arguments));
        let mut store = store(&format!("redis://:hunter2@redis.example/1?socket={path}"));
        made(&mut store, "orders", 5);
    }

    #[test]
    fn hosts_that_are_gone_or_replicas_are_passed_over() {
        let mut primary = started!(Redis::start());
        let replica = Redis::start_replica(&primary).unwrap();
        let open = |ports: &[u16]| store(&format!("redis://{}", hosts(ports)));
        let (nobody, one, other) = (free_port(), replica.port(), primary.port());
        let mut both = open(&[nobody, one, other]);
        let orders = made(&mut both, "orders", 5);
        unavailable(open(&[nobody, one]).list(&orders)).says("is a replica");

        primary.replicate();
        primary.kill();
        replica.promote();
        eventually("the other one serves", || both.list(&orders).is_ok());
    }

    /// A sentinel that watches the server at `port` by the name `orders`.
    struct Watch {
        port: u16,
        _server: Server,
        _directory: TempDir,
    }

    fn sentinel(watched: u16, lines: &str) -> Watch {
        let (port, directory) = (free_port(), directory());
        let file = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\n{lines}\nsentinel monitor orders 127.0.0.1 {watched} 1\n"
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new(find("redis-server", "redis-server").unwrap());
        command.arg(&file).arg("--sentinel");
        command.arg("--dir").arg(directory.path());
        let ready = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        Watch {
            port,
            _server: Server::start(command, &directory.path().join("log"), ready),
            _directory: directory,
        }
    }

    /// A sentinel that has not heard of the failover, and says `port` to everything.
    fn late_sentinel(port: u16) -> u16 {
        let digits = port.to_string();
        let answer = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{digits}\r\n", digits.len());
        serve(move |mut stream| {
            while let Ok(1..) = stream.read(&mut [0; 1024]) {
                if stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        })
    }

    #[test]
    fn sentinels_lead_to_the_primary() {
        let primary = started!(Redis::start_with(&["--requirepass", "hunter2"]));
        let watch = sentinel(primary.port(), "requirepass watchword");
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("word");
        fs::write(&file, "watchword\n").unwrap();
        ringflake_kit::tls::only_for_us(&file);
        let (hosts, word) = (hosts(&[free_port(), watch.port]), file.display());
        let url = |name: &str| format!("redis://:hunter2@{hosts}/1?sentinel={name}");
        let known = |name: &str| format!("{}&sentinel_password_file={word}", url(name));

        let mut good = store(&known("orders"));
        let orders = made(&mut good, "orders", 5);
        unavailable(store(&known("others")).list(&orders)).says("knows no primary");
        denied(store(&url("orders")).list(&orders)).says("NOAUTH");
    }

    #[test]
    fn a_sentinel_that_is_behind_is_not_believed() {
        let primary = started!(Redis::start());
        let replica = Redis::start_replica(&primary).unwrap();
        let late = late_sentinel(replica.port());
        let watch = sentinel(primary.port(), "");
        let open = |ports: &[u16]| store(&format!("redis://{}?sentinel=orders", hosts(ports)));
        let orders = made(&mut open(&[late, watch.port]), "orders", 5);
        let alone = unavailable(open(&[late]).list(&orders));
        alone.says("no primary, though a sentinel says so");
    }
}
