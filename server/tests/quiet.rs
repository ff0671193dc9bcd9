//! Nothing that a server is given or gives goes into its log. A process of its own, since it reads
//! the log of all threads.

#![cfg(unix)]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringflake::Id;
use ringflake_kit::events::{Fields, OnEvent};
use ringflake_server::{Address, Config, Protocol, Server, Settings};

/// A hang becomes a failure after this.
const PATIENCE: Duration = Duration::from_secs(60);

const SECRET: &str = "5d1e77aa90c34b6f8e2213f4b7a6c9d0";
/// The same as base64.
const SECRET_BASE64: &str = "XR53qpDDS2+OIhP0t6bJ0A";
const TAKE: &str = "take-token-that-nobody-logs";
const INSPECT: &str = "inspect-token-that-nobody-logs";
const LATER: &str = "later-token-that-nobody-logs";
const WRONG: &str = "wrong-token-that-nobody-logs";

/// All that any library says, in lower case.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    /// Of the whole process, as a server has threads of its own.
    fn of_all() -> Self {
        let log = Self::default();
        let lines = log.clone();
        let subscriber = OnEvent(move |event: &tracing::Event<'_>| {
            let line = format!("{} {}\n", event.metadata().target(), Fields::of(event));
            lines.0.lock().unwrap().push_str(&line.to_lowercase());
        });
        tracing::subscriber::set_global_default(subscriber).expect("the only one of these tests");
        log
    }

    #[track_caller]
    fn assert_without(&self, secret: &str) {
        let (log, secret) = (self.0.lock().unwrap(), secret.to_lowercase());
        // All at once, as there are many to look for.
        let lines = if log.contains(&secret) { &**log } else { "" };
        let found = lines.lines().find(|line| line.contains(&secret));
        assert_eq!(found, None, "{secret}");
    }
}

fn connect(server: &Server, protocol: Protocol) -> TcpStream {
    let addresses = server.addresses().iter();
    let mut addresses = addresses.filter_map(|(of, address)| match address {
        Address::Tcp(address) if *of == protocol => Some(*address),
        _ => None,
    });
    let stream = TcpStream::connect(addresses.next().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn redis(server: &Server, requests: &str) -> Vec<String> {
    let mut stream = connect(server, Protocol::Resp);
    stream.write_all(requests.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let replies = BufReader::new(stream).lines().map(Result::unwrap);
    replies.collect()
}

/// The body of an answer of HTTP/1.1, or its status where that is not 200.
fn http(server: &Server, target: &str, token: &str, accept: &str) -> Result<Vec<u8>, u16> {
    let mut stream = connect(server, Protocol::Http);
    let request = format!(
        "{target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         accept: {accept}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let end = reply.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let status = str::from_utf8(&reply[9..12]).unwrap().parse().unwrap();
    match status {
        200 => Ok(reply.split_off(end + 4)),
        _ => Err(status),
    }
}

/// As a log could write it.
fn forms(id: Id) -> [String; 5] {
    let number = id.to_u64();
    [
        number.to_string(),
        id.to_i64().to_string(),
        format!("{number:016x}"),
        id.to_string(),
        id.to_fixed_text().as_str().to_owned(),
    ]
}

#[test]
fn no_secret_no_token_and_no_id_is_logged() {
    let log = Log::of_all();
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        ringflake_kit::tls::only_for_us(&path);
    };
    write("secret", SECRET);
    write("take.tokens", &format!("{TAKE} namespaces=orders,local"));
    write("inspect.tokens", &format!("{INSPECT} namespaces=orders"));
    let text = "
        best-effort = true
        data-dir = 'data'
        resp.listen = '127.0.0.1:0'
        http.listen = '127.0.0.1:0'
        tokens.take = 'take.tokens'
        tokens.inspect = 'inspect.tokens'
        [namespaces.orders]
        store = 'sqlite:leases.db'
        secret-file = 'secret'
        init-if-new = 'new'
        [namespaces.local]
        ";
    let settings = Settings::from_toml(text, &home.path().join("serve.toml")).unwrap();
    let server = Server::start(Config::new(settings).unwrap()).unwrap();

    let mut ids = HashSet::new();
    let auth = format!("AUTH {TAKE}\r\n");
    // By each form, as both protocols name it.
    let read = |form: &str, given: &str| match form {
        "text" => given.parse().unwrap(),
        "fixed" => Id::from_fixed_text(given).unwrap(),
        "unsigned" => Id::from_u64(given.parse().unwrap()),
        _ => Id::from_i64(given.parse().unwrap()),
    };
    for form in ["decimal", "unsigned", "text", "integer"] {
        let take = format!("RINGFLAKE.TAKE orders 20 FORMAT {form}\r\n");
        let mut replies = redis(&server, &(auth.clone() + &take));
        replies.retain(|line| !line.starts_with(['+', '$', '*']));
        assert_eq!(replies.len(), 20, "{form}");
        let given = replies.iter().map(|line| line.trim_start_matches(':'));
        ids.extend(given.map(|given| read(form, given)));
    }
    for form in ["decimal", "unsigned", "text", "fixed"] {
        let target = format!("POST /v1/ids?namespace=orders&count=20&format={form}");
        let body = http(&server, &target, TAKE, "text/plain").unwrap();
        for given in String::from_utf8(body).unwrap().lines() {
            let path = format!("GET /v1/ids/{given}?namespace=orders&format={form}");
            http(&server, &path, INSPECT, "*/*").unwrap();
            ids.insert(read(form, given));
        }
    }
    assert_eq!(ids.len(), 160);
    let target = "POST /v1/ids?namespace=local&count=2000";
    let bytes = http(&server, target, TAKE, "application/octet-stream").unwrap();
    ids.extend(bytes.as_chunks().0.iter().map(|id| Id::from_le_bytes(*id)));

    let id = *ids.iter().next().unwrap();
    let inspect = format!(
        "AUTH {INSPECT}\r\nRINGFLAKE.INSPECT orders {}\r\n",
        id.to_i64()
    );
    redis(&server, &inspect);
    // Refused by the limits of a token, with the namespace in the log.
    let others = "POST /v1/ids?namespace=others";
    assert_eq!(http(&server, others, TAKE, "*/*"), Err(403));
    let others = format!("AUTH {INSPECT}\r\nRINGFLAKE.INSPECT others 1\r\n");
    redis(&server, &others);
    // Wrong, malformed, and cut off.
    assert_eq!(http(&server, target, WRONG, "*/*"), Err(401));
    redis(&server, &format!("AUTH {WRONG}\r\nINCR orders\r\n"));
    redis(&server, &format!("*2\r\n$x\r\n{WRONG}\r\n"));
    let none = format!("{auth}RINGFLAKE.INSPECT none {id}\r\nNONE {id}\r\n");
    redis(&server, &none);
    let path = format!("GET /v1/ids/{id}x?namespace=orders&format=text");
    assert_eq!(http(&server, &path, INSPECT, "*/*"), Err(404));
    let mut cut = connect(&server, Protocol::Http);
    write!(
        cut,
        "GET /v1/ids/{id} HTTP/1.1\r\nauthorization: Bearer {TAKE}"
    )
    .unwrap();
    drop(cut);
    let mut malformed = connect(&server, Protocol::Http);
    write!(malformed, "{WRONG}\r\nx-field: {WRONG}\r\n\r\n").unwrap();
    // A reset is an end, too.
    let _ = malformed.read_to_end(&mut Vec::new());

    write("take.tokens", &format!("{LATER}\nshort"));
    server.reload().unwrap_err();
    write("take.tokens", LATER);
    server.reload().unwrap();
    assert_eq!(http(&server, target, TAKE, "*/*"), Err(401));
    http(&server, target, LATER, "*/*").unwrap();
    assert!(server.stop(PATIENCE).is_clean());

    for said in ["listening", "generator started"] {
        let is_logged = log.0.lock().unwrap().contains(said);
        assert!(is_logged, "{said}: that this shows something");
    }
    for role in ["take", "inspect"] {
        let (log, role) = (
            log.0.lock().unwrap(),
            format!("request refused; peer: 127.0.0.1; role: {role};"),
        );
        let is_refusal = |line: &str| line.contains(&role) && line.contains("namespace: others");
        assert!(log.lines().any(is_refusal), "{role}\n{log}");
    }
    for secret in [SECRET, SECRET_BASE64, "that-nobody-logs"] {
        log.assert_without(secret);
    }
    assert_eq!(ids.len(), 2_160);
    for id in ids {
        for form in forms(id).iter().filter(|form| form.len() >= 10) {
            log.assert_without(form);
        }
    }
}
