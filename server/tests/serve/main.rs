//! A server inside of a program: what its start leaves behind when it fails, what a reload
//! changes, and what its end gives back.

#![cfg(unix)]

mod quiet;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringflake::Shutdown;
use ringflake_kit::tls::{self, file};
use ringflake_server::{Address, Config, Protocol, Server, Settings, StartError, Stopped};
use rustls::{ClientConnection, StreamOwned};
use tempfile::TempDir;

/// A hang becomes a failure after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// For a namespace that must be ready when the server has started: a busy machine may need more
/// than the default of 5 s for its lease.
const WAIT: &str = "wait = '60s'";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = ringflake_kit::server::data_directory();
        // A secret must lie where nobody else could put one.
        ringflake_kit::tls::allow(home.path(), 0o700);
        Self(home)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file that nobody else may read.
    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, contents).unwrap();
        ringflake_kit::tls::only_for_us(&path);
        path
    }

    /// On ports of the system's choice, and as the file says.
    fn config(&self, text: &str) -> Config {
        let below = "
            best-effort = true
            data-dir = 'data'
            resp.listen = '127.0.0.1:0'
            http.listen = '127.0.0.1:0'
            ";
        let read = |text| Settings::from_toml(text, &self.file("serve.toml")).unwrap();
        Config::new(read(text).over(read(below))).unwrap()
    }
}

fn port(server: &Server, protocol: Protocol) -> SocketAddr {
    let mut all = server.addresses().iter();
    let found = all.find_map(|(of, address)| match address {
        Address::Tcp(address) if *of == protocol => Some(*address),
        _ => None,
    });
    found.unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The answer to `INCR orders`, unless the connection was closed.
fn take<S: Read + Write>(stream: &mut BufReader<S>) -> Option<String> {
    ask(stream, "INCR orders")
}

fn ask<S: Read + Write>(stream: &mut BufReader<S>, request: &str) -> Option<String> {
    let request = format!("{request}\r\n");
    stream.get_mut().write_all(request.as_bytes()).ok()?;
    stream.get_mut().flush().ok()?;
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    Some(line.strip_suffix("\r\n")?.to_owned())
}

/// Puts this certificate of the tests and its key where the server reads them.
fn write_identity(home: &Home, name: &str) {
    for (of, to) in [("pem", "server.pem"), ("key", "server.key")] {
        let contents = fs::read_to_string(file(&format!("{name}.{of}"))).unwrap();
        home.write(to, &contents);
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn connect_tls(address: SocketAddr, alpn: &[&[u8]]) -> TlsStream {
    let name = "localhost".try_into().unwrap();
    let mut session = ClientConnection::new(Arc::new(tls::client(alpn)), name).unwrap();
    let mut stream = connect(address);
    session.complete_io(&mut stream).unwrap();
    StreamOwned::new(session, stream)
}

/// Asserts that the server has this certificate.
#[track_caller]
fn assert_is(stream: &TlsStream, name: &str) {
    let expected = tls::certificate(&format!("{name}.pem"));
    assert_eq!(stream.conn.peer_certificates().unwrap()[0], expected);
}

#[test]
fn a_certificate_is_changed_while_connections_go_on() {
    let home = Home::new();
    write_identity(&home, "server");
    let config = home.config("tls.certificate = 'server.pem'\ntls.key = 'server.key'");
    let server = Server::start(config).unwrap();
    let address = port(&server, Protocol::Resp);
    let connect = || connect_tls(address, &[]);

    let (over, going_on) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let stream = connect();
        assert_is(&stream, "server");
        let (going_on, is_over) = (&going_on, &over);
        let load = scope.spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut taken = 0;
            while !is_over.load(Ordering::Relaxed) {
                let answer = take(&mut stream).unwrap();
                assert!(answer.starts_with(':'), "{answer}");
                taken += 1;
                going_on.store(true, Ordering::Relaxed);
            }
            // Once more after all that came meanwhile.
            assert!(take(&mut stream).is_some());
            taken
        });
        let goes_on = || {
            going_on.store(false, Ordering::Relaxed);
            ringflake_kit::eventually("it goes on", || going_on.load(Ordering::Relaxed));
        };
        goes_on();

        write_identity(&home, "client");
        server.reload().unwrap();
        assert_is(&connect(), "client");
        goes_on();

        // A pair that does not match changes nothing.
        let other = fs::read_to_string(file("server.pem")).unwrap();
        home.write("server.pem", &other);
        let error = server.reload().unwrap_err().to_string();
        assert!(error.contains("can't be used with the key"), "{error}");
        let stream = connect();
        assert_is(&stream, "client");
        assert!(take(&mut BufReader::new(stream)).unwrap().starts_with(':'));

        // HTTP has the same certificate, and says which versions it speaks.
        let http = port(&server, Protocol::Http);
        let stream = connect_tls(http, &[b"h2", b"http/1.1"]);
        assert_is(&stream, "client");
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        goes_on();
        over.store(true, Ordering::Relaxed);
        assert!(load.join().unwrap() > 0);
    });
    let Stopped { leases, .. } = server.stop(PATIENCE);
    assert_eq!(leases, [("orders".to_owned(), Shutdown::Released)]);
}

/// It takes no slot, so it can't keep others from theirs.
#[test]
fn a_name_that_clients_may_not_begin_is_refused_before_the_table_is_looked_at() {
    let home = Home::new();
    let names = "limits.namespaces = 1\non-demand-names = ['orders', 'app-*']";
    let server = Server::start(home.config(names)).unwrap();
    let mut stream = BufReader::new(connect(port(&server, Protocol::Resp)));
    assert!(take(&mut stream).unwrap().starts_with(':'));
    for (name, why) in [
        ("others", "unknown namespace"),
        ("app-plain", "ends in -plain"),
        ("app-1", "the limit of 1 namespaces"),
    ] {
        let answer = ask(&mut stream, &format!("INCR {name}")).unwrap();
        assert!(answer.contains(why), "{answer}");
    }
    server.stop(PATIENCE);
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let free = ringflake_kit::server::free_port();
    let config = home.config(&format!(
        "resp.listen = '127.0.0.1:{free}'\nresp.unix = 'resp.sock'\nhttp.listen = '{taken}'"
    ));
    let error = Server::start(config).unwrap_err();
    let StartError::Bind {
        protocol, address, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*protocol, address), (Protocol::Http, &Address::Tcp(taken)));
    let names = fs::read_dir(home.0.path()).unwrap().count();
    assert_eq!(names, 0, "neither a socket nor a data directory");
    TcpListener::bind(("127.0.0.1", free)).unwrap();
}

#[test]
fn a_namespace_that_is_refused_keeps_the_server_from_starting() {
    let home = Home::new();
    let secret = home.write("secret", "00112233445566778899aabbccddeeff");
    let text = |more: &str| {
        format!(
            "
            [namespaces.orders]
            store = 'sqlite:{}'
            secret-file = '{}'
            {more}
            [namespaces.local]
            ",
            home.file("leases.db").display(),
            secret.display(),
        )
    };
    let error = Server::start(home.config(&text(""))).unwrap_err();
    let StartError::Namespace { name, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(name, "orders");

    // The file is at best effort, where there must be a record; so make it once.
    let url = format!("sqlite:{}", home.file("leases.db").display());
    init(&url, &secret);
    let server = Server::start(home.config(&text(WAIT))).unwrap();
    assert!(server.is_ready());
    let resp = port(&server, Protocol::Resp);
    let mut stream = BufReader::new(connect(resp));
    assert!(take(&mut stream).unwrap().starts_with(':'));
    let stopped = server.stop(PATIENCE);
    let released = |name: &str| (name.to_owned(), Shutdown::Released);
    assert_eq!(stopped.leases, [released("local"), released("orders")]);
}

/// A tier has its file in the data directory.
#[test]
fn the_directory_of_a_tier_is_made() {
    let home = Home::new();
    let secret = home.write("secret", "00112233445566778899aabbccddeeff");
    let url = format!("sqlite:{}", home.file("leases.db").display());
    init(&url, &secret);
    let settings = format!(
        "
        [namespaces.orders]
        store = '{url}'
        secret-file = 'secret'
        tier = true
        {WAIT}
        "
    );
    let server = Server::start(home.config(&settings)).unwrap();
    assert!(server.is_ready());
    assert!(home.file("data/orders.tier.db").exists());
    server.stop(PATIENCE);
}

/// Makes the record of `orders`.
fn init(url: &str, secret: &Path) {
    use ringflake::lease::{Fingerprint, History, Init, Namespace, OpenOptions, open};
    use ringflake::{Clock, Layout, Secret, SystemClock};
    let secret = Secret::from_file(secret).unwrap();
    let print = Fingerprint::of_width(&secret, Default::default());
    let orders = Namespace::new("orders", &Layout::RANDFLAKE, print).unwrap();
    let options = OpenOptions::new().accept_best_effort(true);
    let init = Init::new(History::New, SystemClock.unix_ms()).with_secret(&secret);
    open(url, &options).unwrap().init(&orders, &init).unwrap();
}
