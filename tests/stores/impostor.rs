//! Impostor servers that ask for the password.
//!
//! A URL that leads to `0.0.0.0` stands for one that leads to another machine: the stores do not
//! take it for an address of this machine, but the system connects to this machine.

mod credentials;
mod mysql;
mod postgres;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringflake::lease::{LeaseStore, OpenError, OpenOptions, open};
use ringflake_kit::eventually;
use ringflake_kit::tls::file;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::kit::{all_of, serve, space};

/// In every URL, and in nothing else.
const PASSWORD: &str = "hunter2";

/// One connection, and all that was received on any.
struct Client {
    plain: TcpStream,
    stream: Box<dyn Stream>,
    received: Arc<Mutex<Vec<u8>>>,
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

impl Client {
    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// The next bytes, at most `most`; none at the end.
    fn listen(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let count = self.stream.read(&mut bytes)?;
        bytes.truncate(count);
        self.received.lock().unwrap().extend(&bytes);
        Ok(bytes)
    }

    fn listen_to_the_end(&mut self) -> io::Result<()> {
        while !self.listen(4096)?.is_empty() {}
        Ok(())
    }

    /// Sends nothing more, so that the client does not wait for its time-out, and receives
    /// until the client closes the connection.
    fn hang_up(&mut self) -> io::Result<()> {
        self.plain.shutdown(Shutdown::Write)?;
        self.listen_to_the_end()
    }

    /// Goes on with TLS, with a certificate for `localhost` by an authority that
    /// only the tests know.
    fn encrypt(&mut self) -> io::Result<()> {
        self.encrypt_for(WebPkiClientVerifier::no_client_auth())
    }

    /// The same for clients that show a certificate by that authority.
    fn encrypt_for_the_known(&mut self) -> io::Result<()> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(file("ca.pem")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        self.encrypt_for(verifier.build().unwrap())
    }

    fn encrypt_for(&mut self, clients: Arc<dyn ClientCertVerifier>) -> io::Result<()> {
        let certificates = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(certificates.map(Result::unwrap).collect(), key)
            .unwrap();
        let server = ServerConnection::new(Arc::new(config)).unwrap();
        self.stream = Box::new(StreamOwned::new(server, self.plain.try_clone()?));
        Ok(())
    }
}

struct Impostor {
    port: u16,
    received: Arc<Mutex<Vec<u8>>>,
    /// The number of clients that are connected.
    clients: Arc<AtomicUsize>,
}

impl Impostor {
    /// Does `script` to everybody who connects.
    fn new(script: impl Fn(&mut Client) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        let clients = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&clients);
        let port = serve(move |plain| {
            count.fetch_add(1, SeqCst);
            let mut client = Client {
                stream: Box::new(plain.try_clone().unwrap()),
                plain,
                received: Arc::clone(&sink),
            };
            // An error means that the client hung up.
            let _ = script(&mut client);
            count.fetch_sub(1, SeqCst);
        });
        Self {
            port,
            received,
            clients,
        }
    }

    /// One that says this to everything, with TLS or without.
    fn that_answers(tls: bool, answer: &'static [u8]) -> Self {
        Self::new(move |client| {
            if tls {
                client.encrypt()?;
            }
            while !client.listen(4096)?.is_empty() {
                client.say(answer)?;
            }
            Ok(())
        })
    }

    /// The same URL with this server's port in place of `PORT`.
    fn url(&self, url: &str) -> String {
        url.replace("PORT", &self.port.to_string())
    }

    fn open(&self, url: &str) -> Box<dyn LeaseStore> {
        try_open(&self.url(url)).unwrap()
    }

    fn meet(&self, url: &str) -> String {
        match try_open(&self.url(url)) {
            Ok(mut store) => ask(&mut store),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until it has the password: a client may give up before its last write is read here.
    #[track_caller]
    fn learns(&self, what: &str) {
        eventually(what, || self.knows());
    }

    /// Whether it got the password since it was asked last. Waits until no client is connected,
    /// since one may return before what it has sent is read here.
    fn knows(&self) -> bool {
        eventually("all clients have closed their connections", || {
            self.clients.load(SeqCst) == 0
        });
        let received = std::mem::take(&mut *self.received.lock().unwrap());
        String::from_utf8_lossy(&received).contains(PASSWORD)
    }

    /// The store must not send the password, and say why.
    #[track_caller]
    fn fails(&self, url: &str, why: &str) {
        let text = self.meet(url);
        assert!(!self.knows(), "{url}");
        assert!(text.contains(why), "{url}: {text}");
    }

    /// The store sends the password, which shows that this server would detect a leak elsewhere.
    #[track_caller]
    fn succeeds(&self, url: &str) {
        let text = self.meet(url);
        self.learns(&format!("{url}: {text}"));
    }
}

/// For each store a server with a certificate for `localhost`, and a URL that leads to it.
fn impostors() -> [(Impostor, &'static str); 4] {
    [
        (etcd(true), "etcd://me:hunter2@localhost:PORT?ca=CA"),
        (
            mysql::impostor(true),
            "mysql://me:hunter2@localhost:PORT/app?ca=CA",
        ),
        (
            postgres::impostor(b'S'),
            "postgres://me:hunter2@localhost:PORT/app?ca=CA",
        ),
        (redis(true), "redis://:hunter2@localhost:PORT?ca=CA"),
    ]
}

fn etcd(tls: bool) -> Impostor {
    Impostor::that_answers(tls, b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
}

fn redis(tls: bool) -> Impostor {
    Impostor::that_answers(tls, b"+OK\r\n")
}

#[test]
fn no_password_is_sent_elsewhere_without_tls() {
    type Case = (
        fn(bool) -> Impostor,
        &'static str,
        &'static str,
        &'static str,
    );
    let cases: [Case; 2] = [
        (etcd, "etcd", "me:hunter2", "0.0.0.0"),
        // The driver refuses `0.0.0.0`, so that another way to write 127.0.0.1 stands for it.
        (redis, "redis", ":hunter2", "[::ffff:127.0.0.1]"),
    ];
    for (impostor, scheme, login, place) in cases {
        let open = format!("{scheme}://{login}@{place}:PORT");
        let plain = impostor(false);
        plain.fails(&open, &format!("write {scheme}s://"));
        plain.fails(&format!("{open}?tls=required"), "");
        plain.succeeds(&format!("{open}?tls=off"));
        is_not_believed_elsewhere(&impostor(true), |host, query| {
            let host = host.replace("0.0.0.0", place);
            format!("{scheme}s://{login}@{host}:PORT{query}")
        });
    }
    etcd(false).fails(
        "etcd://me:hunter2@localhost:PORT,0.0.0.0:PORT",
        "write etcds://",
    );
}

/// A server with a certificate for `localhost` gets the password there, and nowhere else; `url`
/// is that of a host and a query.
fn is_not_believed_elsewhere(impostor: &Impostor, url: impl Fn(&str, &str) -> String) {
    let ca = file("ca.pem");
    impostor.fails(&url("0.0.0.0", ""), "invalid peer certificate");
    let trusted = format!("?ca={ca}");
    impostor.fails(&url("0.0.0.0", &trusted), "not valid for name");
    // The holder of the certificate is the server.
    impostor.succeeds(&url("localhost", &trusted));
}

/// Meets all of them at once, each on a thread that says at which URL it fails.
fn all_at_once(meet: impl Fn(Impostor, &'static str) + Sync) {
    thread::scope(|scope| {
        for (impostor, url) in impostors() {
            let meet = &meet;
            scope.spawn(move || meet(impostor, url));
        }
    });
}

fn try_open(url: &str) -> Result<Box<dyn LeaseStore>, OpenError> {
    // Turns a hang into a failure: each server hangs up when the client has sent all it will send.
    open(url, &OpenOptions::new().timeout(Duration::from_secs(30)))
}

/// Asks the store for something, and answers what went wrong.
fn ask(store: &mut dyn LeaseStore) -> String {
    let text = all_of(&store.list(&space("orders")).unwrap_err());
    assert!(!text.contains(PASSWORD), "{text}");
    text
}
