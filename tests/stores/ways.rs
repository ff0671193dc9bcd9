//! The ways to a server: Unix sockets, several hosts, sentinels.

#[cfg(feature = "mysql")]
mod mysql {
    use std::time::Duration;

    use ringflake::lease::{OpenOptions, open};

    use crate::kit::{acquire, init, now, space, unavailable};
    use ringflake_kit::server::free_port;
    use ringflake_kit::server::{Lent, MariaDb, PASSWORD, Reachable as _, TestServer as _};

    #[test]
    fn a_socket_leads_to_it() {
        let server = started!(Lent::<MariaDb>::start());
        let socket = server.socket();
        let word = PASSWORD;
        // The host is of no account.
        let url = format!(
            "mysql://app:{word}@db.example/app?socket={}",
            socket.display()
        );
        let mut store = open(&url, &OpenOptions::new()).unwrap();
        let orders = space("orders");
        init(&mut *store, &orders);
        let report = store.check(&orders, now()).unwrap();
        assert!(
            report.store.contains(socket.to_str().unwrap()),
            "{report:?}"
        );
    }

    #[test]
    fn hosts_that_are_gone_or_replicas_are_passed_over() {
        let mut replica = started!(MariaDb::start_with(&["--read-only"]));
        let mut primary = MariaDb::start().unwrap();
        let word = PASSWORD;
        let url = |ports: &[u16]| {
            let hosts: Vec<_> = ports
                .iter()
                .map(|port| format!("127.0.0.1:{port}"))
                .collect();
            format!("mysql://app:{word}@{}/app", hosts.join(","))
        };
        let options = OpenOptions::new().timeout(Duration::from_secs(20));
        let (nobody, one, other) = (free_port(), replica.port(), primary.port());
        let orders = space("orders");
        let mut store = open(&url(&[nobody, one, other]), &options).unwrap();
        init(&mut *store, &orders);
        acquire(&mut *store, &orders).unwrap();
        let place = format!("127.0.0.1:{other}");
        let report = store.check(&orders, now()).unwrap();
        assert!(report.store.contains(&place), "{report:?}");

        let mut without = open(&url(&[nobody, one]), &options).unwrap();
        let text = unavailable(without.list(&orders));
        assert!(text.contains("read-only"), "{text}");

        // The one takes over from the other.
        primary.stop();
        replica.stop();
        replica.configure(&[]);
        replica.restart();
        let moved = space("moved");
        ringflake_kit::eventually("the other one serves", || {
            let init = ringflake::lease::Init::new(ringflake::lease::History::New, now());
            store.init(&moved, &init).is_ok()
        });
        acquire(&mut *store, &moved).unwrap();
        let report = store.check(&moved, now()).unwrap();
        assert!(
            report.store.contains(&format!("127.0.0.1:{one}")),
            "{report:?}"
        );
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use ringflake::lease::{OpenOptions, open};

    use crate::kit::{acquire, init, space};
    use ringflake_kit::server::free_port;
    use ringflake_kit::server::{Lent, PASSWORD, Postgres, Reachable as _};

    #[test]
    fn a_socket_leads_to_it_also_after_a_host_that_is_gone() {
        let server = started!(Lent::<Postgres>::start());
        let word = PASSWORD;
        let (port, nobody) = (server.port(), free_port());
        let directory = server.sockets().display().to_string().replace('/', "%2F");
        let orders = space("orders");
        for (at, url) in [
            format!("postgres://app:{word}@{directory}:{port}/app"),
            format!("postgres://app:{word}@/app?host={directory}&port={port}"),
            format!("postgres://app:{word}@127.0.0.1:{nobody},{directory}:{port}/app"),
        ]
        .iter()
        .enumerate()
        {
            let mut store = open(url, &OpenOptions::new()).unwrap();
            if at == 0 {
                init(&mut *store, &orders);
            }
            acquire(&mut *store, &orders).unwrap();
        }
    }
}

#[cfg(feature = "redis")]
mod redis {
    use std::fs;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::Command;
    use std::thread;

    use ringflake::lease::{LeaseStore, OpenOptions, RedisStore};
    use tempfile::TempDir;

    use crate::kit::{acquire, init, space, unavailable};
    use ringflake_kit::server::{Reachable as _, Redis, TestServer as _};
    use ringflake_kit::server::{Server, directory, find, free_port};

    fn store(url: &str) -> RedisStore {
        RedisStore::from_url(url, &OpenOptions::new()).unwrap()
    }

    #[test]
    fn a_socket_leads_to_it() {
        let directory = TempDir::new().unwrap();
        let socket = directory.path().join("redis.sock");
        let path = socket.to_str().unwrap();
        let arguments = ["--unixsocket", path, "--requirepass", "hunter2"];
        let _redis = started!(Redis::start_with(&arguments));
        let mut store = store(&format!("redis://:hunter2@redis.example/1?socket={path}"));
        let orders = space("orders");
        init(&mut store, &orders);
        acquire(&mut store, &orders).unwrap();
    }

    #[test]
    fn hosts_that_are_gone_or_replicas_are_passed_over() {
        let mut primary = started!(Redis::start());
        let replica = Redis::start_replica(&primary).unwrap();
        let (nobody, one, other) = (free_port(), replica.port(), primary.port());
        let orders = space("orders");
        let hosts = format!("127.0.0.1:{nobody},127.0.0.1:{one}");
        let mut both = store(&format!("redis://{hosts},127.0.0.1:{other}"));
        init(&mut both, &orders);
        let text = unavailable(store(&format!("redis://{hosts}")).list(&orders));
        assert!(text.contains("is a replica"), "{text}");

        primary.replicate();
        primary.kill();
        replica.promote();
        ringflake_kit::eventually("the other one serves", || both.list(&orders).is_ok());
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
        command
            .arg(&file)
            .arg("--sentinel")
            .arg("--dir")
            .arg(directory.path());
        let ready = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        Watch {
            port,
            _server: Server::start(command, &directory.path().join("log"), ready),
            _directory: directory,
        }
    }

    /// A sentinel that has not heard of the failover, and says `port` to everything.
    fn late_sentinel(port: u16) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let digits = port.to_string();
        let answer = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{digits}\r\n", digits.len());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 1024];
                while let Ok(1..) = stream.read(&mut buffer) {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        own
    }

    #[test]
    fn sentinels_lead_to_the_primary() {
        let primary = started!(Redis::start_with(&["--requirepass", "hunter2"]));
        let watch = sentinel(primary.port(), "requirepass watchword");
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("word");
        fs::write(&file, "watchword\n").unwrap();
        ringflake_kit::tls::only_for_us(&file);
        let (nobody, port, word) = (free_port(), watch.port, file.display());
        let hosts = format!("127.0.0.1:{nobody},127.0.0.1:{port}");
        let url = |name: &str| format!("redis://:hunter2@{hosts}/1?sentinel={name}");
        let known = |name: &str| format!("{}&sentinel_password_file={word}", url(name));

        let orders = space("orders");
        let mut good = store(&known("orders"));
        init(&mut good, &orders);
        acquire(&mut good, &orders).unwrap();

        let text = unavailable(store(&known("others")).list(&orders));
        assert!(text.contains("knows no primary"), "{text}");
        let text = crate::kit::denied(store(&url("orders")).list(&orders));
        assert!(text.contains("NOAUTH"), "{text}");
    }

    #[test]
    fn a_sentinel_that_is_behind_is_not_believed() {
        let primary = started!(Redis::start());
        let replica = Redis::start_replica(&primary).unwrap();
        let late = late_sentinel(replica.port());
        let watch = sentinel(primary.port(), "");
        let orders = space("orders");
        let hosts = format!("127.0.0.1:{late},127.0.0.1:{}", watch.port);
        let mut good = store(&format!("redis://{hosts}?sentinel=orders"));
        init(&mut good, &orders);
        acquire(&mut good, &orders).unwrap();

        let alone = format!("redis://127.0.0.1:{late}?sentinel=orders");
        let text = unavailable(store(&alone).list(&orders));
        assert!(
            text.contains("no primary, though a sentinel says so"),
            "{text}"
        );
    }
}
