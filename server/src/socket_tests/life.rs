//! What a start that fails leaves behind, what a reload changes, and what an end gives back.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use redis_protocol::resp2::types::OwnedFrame;
use ringflake::Shutdown;
use ringflake_kit::tls::{certificate, file, only_for_us};
use ringflake_kit::{assert_says, eventually};
use tempfile::TempDir;

use super::served::{TLS, serve};
use super::wire::{PATIENCE, TlsWire, incr};
use crate::config::Protocol::{self, Http, Resp};
use crate::config::{Config, Settings};
use crate::listener::Address;
use crate::server::{Server, StartError};

#[test]
fn a_certificate_is_changed_while_connections_go_on() {
    let mut served = serve(TLS);
    let connect = |protocol: Protocol| {
        let mut wire = served.connect(protocol).with_tls();
        wire.take(protocol);
        wire
    };
    let name_of = |wire: &TlsWire| {
        let shown = &wire.stream.conn.peer_certificates().unwrap()[0];
        let names = ["server.pem", "client.pem"].into_iter();
        names
            .filter(|name| certificate(name) == *shown)
            .collect::<String>()
    };
    let replace = |name: &str, by: &str| {
        fs::copy(file(by), served.path(name)).unwrap();
        only_for_us(&served.path(name));
    };
    let (mut before, mut watcher) = (connect(Resp), connect(Http));
    assert_eq!(name_of(&before), "server.pem");
    // It ends with the test, too.
    let (over, is_over) = mpsc::channel::<()>();
    let load = thread::spawn(move || {
        while is_over.try_recv() == Err(TryRecvError::Empty) {
            before.take(Resp);
        }
        // Once more after all that came meanwhile.
        before.take(Resp);
    });
    let goes_on = || {
        let count = || served.count(Resp, |it| &it.ids);
        let taken = count();
        eventually("the load goes on", || count() > taken + 1);
    };
    goes_on();
    replace("server.pem", "client.pem");
    replace("server.key", "client.key");
    eventually("the change is noticed", || {
        served.server().have_files_changed()
    });
    served.server().reload().unwrap();
    for protocol in Protocol::ALL {
        assert_eq!(name_of(&connect(protocol)), "client.pem");
    }
    goes_on();
    // Its end is that of the certificate in use.
    for (name, seconds) in [
        ("expired.pem", 1_609_459_200),
        ("client.pem", 4_731_436_800_u64),
    ] {
        replace("server.pem", name);
        served.server().reload().unwrap();
        let metrics = watcher.get("/metrics").text();
        let line = format!("\nringflake_server_certificate_expiry_timestamp_seconds {seconds}\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    // A pair that does not match changes nothing.
    replace("server.pem", "server.pem");
    let error = served.server().reload().unwrap_err().to_string();
    assert!(error.contains("can't be used with the key"), "{error}");
    assert_eq!(name_of(&connect(Resp)), "client.pem");
    // Nor does what is not a regular file, such as a pipe, which might keep the server waiting.
    fs::remove_file(served.path("server.key")).unwrap();
    std::os::unix::fs::symlink("/dev/null", served.path("server.key")).unwrap();
    let error = served.server().reload().unwrap_err().to_string();
    assert!(error.contains("server.key: not a regular file"), "{error}");
    let metrics = connect(Http).get("/metrics").text();
    assert_says(&metrics, &["\nringflake_server_reload_failed 1\n"]);
    goes_on();
    drop(over);
    load.join().unwrap();
    let stopped = served.stop(PATIENCE);
    assert_eq!(stopped.leases, [("orders".to_owned(), Shutdown::Released)]);
}

/// It takes no slot, so it can't keep others from theirs.
#[test]
fn a_name_that_clients_may_not_begin_is_refused_before_the_table_is_looked_at() {
    let served = serve("limits.namespaces = 1\non-demand-names = ['orders', 'app-*']");
    let mut wire = served.connect(Resp);
    wire.take(Resp);
    for (name, why) in [
        ("others", "unknown namespace"),
        ("app-plain", "ends in -plain"),
        ("app-1", "the limit of 1 namespaces"),
    ] {
        let replies = wire.ask(&incr(name), 1);
        let is_why = matches!(&replies[0], OwnedFrame::Error(error) if error.contains(why));
        assert!(is_why, "{name}: {replies:?}");
    }
}

fn start(home: &TempDir, text: &str) -> Result<Server, StartError> {
    let text = format!("data-dir = 'data'\nbest-effort = true\n{text}");
    let settings = Settings::from_toml(&text, &home.path().join("serve.toml"))?;
    Server::start(Config::new(settings)?)
}

/// A restart retires a name that a client began.
#[test]
fn a_name_that_a_client_began_has_no_place_after_a_restart() {
    let home = TempDir::new().unwrap();
    let settings = "resp.listen = '127.0.0.1:0'\nhttp.listen = 'off'\nlimits.namespaces = 1";
    for name in ["ordres", "orders"] {
        let server = start(&home, settings).unwrap();
        server.namespaces.open(name).unwrap();
        assert_eq!(server.namespaces.count(), (1, 1));
        assert!(server.stop(PATIENCE).is_clean());
    }
}

#[test]
fn a_server_on_the_ipv6_wildcard_is_reached_over_ipv4() {
    let bound = TcpListener::bind("[::1]:0");
    if !ringflake_kit::has(bound.is_ok(), "this machine has no IPv6") {
        return;
    }
    let home = TempDir::new().unwrap();
    let server = start(&home, "resp.listen = '[::]:0'\nhttp.listen = 'off'\nopen-to-the-network-without-tokens-or-tls = true").unwrap();
    let Address::Tcp(address) = &server.addresses()[0].1 else {
        panic!("it is no Unix socket")
    };
    TcpStream::connect(("127.0.0.1", address.port())).unwrap();
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let home = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let free = ringflake_kit::server::free_port();
    let settings = format!(
        "resp.listen = '127.0.0.1:{free}'\nresp.unix = 'resp.sock'\nhttp.listen = '{taken}'"
    );
    let error = start(&home, &settings).unwrap_err();
    let StartError::Bind {
        protocol, address, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*protocol, address), (Http, &Address::Tcp(taken)));
    let names = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(names, 0, "neither a socket nor a data directory");
    TcpListener::bind(("127.0.0.1", free)).unwrap();
}

#[test]
fn a_namespace_that_is_refused_keeps_the_server_from_starting() {
    let home = TempDir::new().unwrap();
    let secret = home.path().join("secret");
    fs::write(&secret, "00112233445566778899aabbccddeeff").unwrap();
    only_for_us(&secret);
    let settings = "
        resp.listen = '127.0.0.1:0'
        http.listen = 'off'
        [namespaces.local]
        [namespaces.orders]
        store = 'sqlite:leases.db'
        secret-file = 'secret'
        tier = true
        wait = '30s'
        ";
    let error = start(&home, settings).unwrap_err();
    let StartError::Namespace { name, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(name, "orders");

    let server = start(&home, &format!("{settings}init-if-new = 'new'")).unwrap();
    assert!(server.is_ready());
    assert!(home.path().join("data/orders.tier.db").exists());
    let stopped = server.stop(PATIENCE);
    let released = |name: &str| (name.to_owned(), Shutdown::Released);
    assert_eq!(stopped.leases, [released("local"), released("orders")]);
}
