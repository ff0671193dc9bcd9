//! Servers that are none, and ask for the password.
//!
//! A URL that leads to `0.0.0.0` stands for one that leads to another machine: to
//! the stores it is no address of this one, but the system takes it there.

mod certificates;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "mysql")]
mod mysql;
mod passwords;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringflake::Layout;
use ringflake::lease::{Fingerprint, LeaseStore, Namespace, OpenError, OpenOptions, open};
use ringflake_kit::tls::file;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// In every URL, and in nothing else.
const PASSWORD: &str = "hunter2";

/// One connection, and all that was heard on any.
struct Victim {
    stream: Stream,
    heard: Arc<Mutex<Vec<u8>>>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
    Gone,
}

impl Victim {
    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Stream::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// What comes next, at most so many bytes; nothing at the end.
    fn listen(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let count = match &mut self.stream {
            Stream::Plain(stream) => stream.read(&mut bytes)?,
            Stream::Tls(stream) => stream.read(&mut bytes)?,
            Stream::Gone => 0,
        };
        bytes.truncate(count);
        self.heard.lock().unwrap().extend(&bytes);
        Ok(bytes)
    }

    fn listen_to_the_end(&mut self) -> io::Result<()> {
        while !self.listen(4096)?.is_empty() {}
        Ok(())
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
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Gone) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
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
        self.stream = Stream::Tls(Box::new(StreamOwned::new(server, stream)));
        Ok(())
    }
}

/// Listens until the test is over.
struct Thief {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Thief {
    /// Does `script` to everybody who connects.
    fn new(script: impl Fn(&mut Victim) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (ears, script) = (Arc::clone(&heard), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut victim = Victim {
                    stream: Stream::Plain(stream.unwrap()),
                    heard: Arc::clone(&ears),
                };
                let script = Arc::clone(&script);
                // Its errors are the victim's escape.
                thread::spawn(move || drop(script(&mut victim)));
            }
        });
        Self { port, heard }
    }

    /// Opens the store of this URL, in which `PORT` is the thief's.
    fn try_open(&self, url: &str) -> Result<Box<dyn LeaseStore>, OpenError> {
        try_open(&url.replace("PORT", &self.port.to_string()))
    }

    fn open(&self, url: &str) -> Box<dyn LeaseStore> {
        self.try_open(url).unwrap()
    }

    /// Asks the store for something, and answers what went wrong.
    fn ask(&self, store: &mut dyn LeaseStore) -> String {
        ask(store)
    }

    /// Both.
    fn meet(&self, url: &str) -> String {
        meet(self.try_open(url))
    }

    /// Opens the store of this URL in a process with other variables, asks it for
    /// something there, and answers what went wrong.
    fn meet_elsewhere(&self, url: &str, prepare: impl FnOnce(&mut Command)) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "thief::the_store_of_a_url_is_asked_here"])
            .args(["--ignored", "--nocapture"])
            .env(URL, url.replace("PORT", &self.port.to_string()));
        prepare(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(ANSWER), "{text}");
        assert!(!text.contains(PASSWORD), "{text}");
        text
    }

    /// Whether it was told the password since it was asked last.
    fn knows(&self) -> bool {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        String::from_utf8_lossy(&heard).contains(PASSWORD)
    }

    /// The store must not tell, and say why.
    #[track_caller]
    fn fails(&self, url: &str, why: &str) {
        let text = self.meet(url);
        assert!(!self.knows(), "{url}");
        assert!(text.contains(why), "{url}: {text}");
    }

    /// The store tells: so this thief would know if it did elsewhere.
    #[track_caller]
    fn succeeds(&self, url: &str) {
        let text = self.meet(url);
        assert!(self.knows(), "{url}: {text}");
    }
}

/// Meets all of them at once, each on a thread that says at which URL it fails: most of
/// a meeting is waiting.
fn all_at_once<T: Send>(thieves: Vec<T>, meet: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        for thief in thieves {
            scope.spawn(|| meet(thief));
        }
    });
}

fn try_open(url: &str) -> Result<Box<dyn LeaseStore>, OpenError> {
    open(url, &OpenOptions::new().timeout(Duration::from_secs(2)))
}

fn ask(store: &mut dyn LeaseStore) -> String {
    let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    let text = all_of(&store.list(&orders).unwrap_err());
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

fn meet(opened: Result<Box<dyn LeaseStore>, OpenError>) -> String {
    match opened {
        Ok(mut store) => ask(&mut *store),
        Err(error) => error.to_string(),
    }
}

/// The URL for the test below, and what precedes its answer.
const URL: &str = "RINGFLAKE_TEST_URL";
const ANSWER: &str = "the store's answer: ";

#[test]
#[ignore = "other tests run it, in a process with variables of its own"]
fn the_store_of_a_url_is_asked_here() {
    let url = std::env::var(URL).expect("other tests run this one");
    let answer = meet(try_open(&url));
    assert!(!answer.is_empty());
    println!("{ANSWER}{answer}");
}

/// The error and what is behind it.
fn all_of(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        text += &format!("{error}; ");
        next = error.source();
    }
    text
}
