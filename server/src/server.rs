//! A server from its start to its end.
//!
//! ```text
//! start: files read --> sockets bound --> generators made --> protocols accept
//! stop:  drain: nothing is accepted, what was begun is answered --> protocols gone
//!        --> generators shut down, leases released --> socket files removed
//! ```
//! Each step that fails undoes those before it. So a port that is taken costs no lease, and
//! a server that is asked too early keeps its clients waiting in place of refusing them.

mod error;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use ringflake::Shutdown;

pub use self::error::StartError;
use crate::access::Access;
use crate::config::{Config, ConfigError, Protocol, ProtocolConfig, check_rereadable, is_local};
use crate::counters::NamedCounters;
use crate::descriptors;
use crate::drain::Drain;
use crate::factory::GeneratorFactory;
use crate::http;
use crate::listener::{Address, Listener, SocketFile};
use crate::namespaces::{Namespaces, OpenError};
use crate::readiness::Obstacle;
use crate::resp;
use crate::setup::Setup;
use crate::tls::{Loaded, Tls};
use crate::watched_files::WatchedFiles;

/// A socket that was bound by somebody else, such as a service manager.
#[derive(Debug)]
pub struct Inherited {
    protocol: Protocol,
    listener: Listener,
}

impl Inherited {
    /// A TCP socket that listens.
    pub fn tcp(protocol: Protocol, listener: TcpListener) -> Self {
        let listener = Listener::Tcp(listener);
        Self { protocol, listener }
    }

    /// A Unix socket that listens.
    pub fn unix(protocol: Protocol, listener: UnixListener) -> Self {
        let listener = Listener::Unix(listener);
        Self { protocol, listener }
    }
}

/// A server that runs.
///
/// It ends by [`stop`](Self::stop). Dropped without that it ends in the same way, but waits
/// for nobody. It handles no signals and writes no log; its events go to
/// [`tracing`](https://docs.rs/tracing).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake_server::{Config, Server, Settings};
///
/// let directory = tempfile::tempdir()?;
/// let mut settings = Settings::default();
/// settings.data_dir = Some(directory.path().to_owned());
/// // The examples run on any file system. Leave this out.
/// settings.best_effort = Some(true);
/// settings.resp.listen = Some(vec!["127.0.0.1:0".parse()?]);
/// settings.http.listen = Some(vec!["127.0.0.1:0".parse()?]);
///
/// let server = Server::start(Config::new(settings)?)?;
/// for (protocol, address) in server.addresses() {
///     println!("{protocol} on {address}");
/// }
/// assert!(server.is_ready());
/// server.stop(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    config: Arc<Config>,
    is_local: bool,
    addresses: Vec<(Protocol, Address)>,
    pub(crate) access: Arc<Access>,
    tls: Option<Arc<Tls>>,
    /// Those of tokens and TLS.
    files: WatchedFiles,
    factory: Arc<GeneratorFactory>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) drain: Drain,
    /// For how long HTTP answers new requests while it drains.
    pub(crate) drain_time: Duration,
    pub(crate) counters: Vec<NamedCounters>,
    resp: Option<resp::RespServer>,
    http: Option<http::HttpServer>,
    socket_files: Vec<SocketFile>,
}

/// Whether an address stands for all of this machine: `[::]` does, unless `all` names one of IPv4
/// with the same port.
fn is_dual_stack(address: SocketAddr, all: &[SocketAddr]) -> bool {
    let same_port = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
    address.ip().is_unspecified() && !all.iter().any(same_port)
}

/// Sockets that listen, by protocol.
type Bound = Vec<(Protocol, Vec<Listener>)>;

impl Server {
    /// Starts a server: binds its sockets, and makes the generators of all namespaces that
    /// the configuration names. Blocks for as long as their stores do, up to the `wait` of
    /// each.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::start_on(config, Vec::new())
    }

    /// As [`start`](Self::start), also on these sockets. They take the place of a
    /// protocol's default address, and come beside what the configuration names.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then.
    pub fn start_on(config: Config, inherited: Vec<Inherited>) -> Result<Self, StartError> {
        let started = Self::start_changed(config, inherited, |_| {}, || false)?;
        Ok(started.expect("nothing cancels the start"))
    }

    /// Like [`start_on`](Self::start_on), but can be cancelled while it waits for stores:
    /// `is_cancelled` is called twenty times a second. Once it returns true, the leases granted so
    /// far are released, and the result is `None`.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then.
    pub fn start_unless(
        config: Config,
        inherited: Vec<Inherited>,
        is_cancelled: impl FnMut() -> bool,
    ) -> Result<Option<Self>, StartError> {
        Self::start_changed(config, inherited, |_| {}, is_cancelled)
    }

    /// As [`start_unless`](Self::start_unless), with this changed before anything is opened.
    pub(crate) fn start_changed(
        config: Config,
        inherited: Vec<Inherited>,
        change: impl FnOnce(&mut Self),
        is_cancelled: impl FnMut() -> bool,
    ) -> Result<Option<Self>, StartError> {
        let config = Arc::new(config);
        // Before they are read: a change meanwhile is one to come.
        let files = WatchedFiles::new(config.reloadable_files());
        let tls = config.tls.as_ref().map(Loaded::from_files).transpose()?;
        let tls = tls.map(Tls::new).map(Arc::new);
        let factory = Arc::new(GeneratorFactory::new(Arc::clone(&config)));

        let rights = Access::read(&config.tokens, true, config.open)?;
        let mut server = Self {
            access: Arc::new(Access::new(rights)),
            is_local: true,
            addresses: Vec::new(),
            files,
            tls,
            namespaces: Arc::new(namespaces(&factory, &config)),
            factory,
            drain: Drain::default(),
            drain_time: http::DRAIN_TIME,
            counters: Vec::new(),
            resp: None,
            http: None,
            socket_files: Vec::new(),
            config,
        };
        change(&mut server);
        let bound = server.bind(inherited)?;
        if !server.is_local {
            let tokens = &server.config.tokens;
            let rights = Access::read(tokens, false, server.config.open)?;
            server.access.replace(rights);
        }
        if !server.open_namespaces(is_cancelled)? {
            server.end(server.config.drain);
            return Ok(None);
        }
        server.accept(bound)?;
        Ok(Some(server))
    }

    fn bind(&mut self, inherited: Vec<Inherited>) -> Result<Bound, StartError> {
        let config = Arc::clone(&self.config);
        let is_resp = |given: &Inherited| given.protocol == Protocol::Resp;
        let (resp, http) = inherited.into_iter().partition(is_resp);
        let mut bound = Bound::new();
        for (protocol, given) in [(Protocol::Resp, resp), (Protocol::Http, http)] {
            let listeners = self.bind_protocol(protocol, config.protocol(protocol), given)?;
            if !listeners.is_empty() {
                bound.push((protocol, listeners));
            }
        }
        match bound.is_empty() {
            true => Err(ConfigError::NoSocket.into()),
            false => Ok(bound),
        }
    }

    fn bind_protocol(
        &mut self,
        protocol: Protocol,
        config: &ProtocolConfig,
        inherited: Vec<Inherited>,
    ) -> Result<Vec<Listener>, StartError> {
        let mut listeners = Vec::new();
        let refused = |address: Address| {
            move |source| StartError::Bind {
                protocol,
                address,
                source,
            }
        };
        let replaced = config.is_default && !inherited.is_empty();
        for Inherited { listener, .. } in inherited {
            let unknown = Address::Unix(Default::default());
            let address = listener.address().map_err(refused(unknown))?;
            let listens = listener.check_listens();
            listens.map_err(refused(address.clone()))?;
            if let Address::Tcp(address) = address {
                self.config.check_exposure(address)?;
            }
            self.listens(protocol, address);
            listeners.push(listener);
        }
        let own = match replaced {
            true => &[][..],
            false => &config.listen,
        };
        for &address in own {
            let named = Address::Tcp(address);
            let listener = match Listener::bind(address, is_dual_stack(address, own)) {
                // A machine without IPv6 has no ::1.
                Err(error)
                    if config.is_default
                        && address.is_ipv6()
                        && error.kind() != ErrorKind::AddrInUse =>
                {
                    continue;
                }
                bound => bound.map_err(refused(named.clone()))?,
            };
            let address = listener.address().map_err(refused(named))?;
            self.listens(protocol, address);
            listeners.push(listener);
        }
        if let Some(path) = &config.unix {
            let address = Address::Unix(path.clone());
            let bound = Listener::bind_unix(path, config.unix_mode);
            let (listener, file) = bound.map_err(refused(address.clone()))?;
            self.socket_files.push(file);
            self.listens(protocol, address);
            listeners.push(listener);
        }
        Ok(listeners)
    }

    fn listens(&mut self, protocol: Protocol, address: Address) {
        if let Address::Tcp(address) = address {
            let is_proxied = self.config.protocol(protocol).proxy_protocol;
            self.is_local &= is_local(address) && !is_proxied;
        }
        tracing::info!(protocol = protocol.name(), %address, "listening");
        self.addresses.push((protocol, address));
    }

    /// Makes the generators that the configuration names, side by side. Returns false if it was
    /// cancelled. Threads may then still wait for stores, up to each `wait`; leases granted to them
    /// are released.
    fn open_namespaces(&self, mut is_cancelled: impl FnMut() -> bool) -> Result<bool, StartError> {
        const PAUSE: Duration = Duration::from_millis(50);
        /// Until the log says what is waited for.
        const LONG: Duration = Duration::from_secs(1);

        let mut settings = self.config.namespaces.values();
        // A tier has its file there.
        if self.config.on_demand || settings.any(|settings| settings.tier == Some(true)) {
            let made = self.factory.all_local().make_directory();
            made.map_err(StartError::DataDir)?;
        }
        let (sender, receiver) = mpsc::channel();
        // A panic of one is a failure of that one.
        let stopping = |name: &String| (name.clone(), Err(OpenError::Stopping));
        let mut outcomes: BTreeMap<_, _> = self.config.namespaces.keys().map(stopping).collect();
        for name in outcomes.keys().cloned() {
            let (sender, namespaces) = (sender.clone(), Arc::clone(&self.namespaces));
            std::thread::spawn(move || {
                let outcome = namespaces.open(&name).map(drop);
                // Nobody waits for it any more if the start was cancelled.
                let _ = sender.send((name, outcome));
            });
        }
        drop(sender);
        let began = Instant::now();
        let mut is_logged = false;
        loop {
            match receiver.recv_timeout(PAUSE) {
                Ok((name, outcome)) => {
                    outcomes.insert(name, outcome);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if is_cancelled() => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {
                    if !is_logged && began.elapsed() >= LONG {
                        is_logged = true;
                        tracing::info!("waiting for stores of leases");
                    }
                }
            }
        }
        for (name, outcome) in outcomes {
            outcome.map_err(|source| StartError::Namespace { name, source })?;
        }
        Ok(true)
    }

    fn accept(&mut self, bound: Bound) -> Result<(), StartError> {
        let namespaces = self.config.namespaces.len();
        let limits = descriptors::limited(&self.config.limits, bound.len(), namespaces);
        for (protocol, listeners) in bound {
            let refused = |source| StartError::Workers { protocol, source };
            let config = self.config.protocol(protocol).clone();
            let workers = match protocol {
                Protocol::Resp => config.workers,
                Protocol::Http => 0,
            };
            let counters: Vec<_> = (0..=workers).map(|_| Arc::default()).collect();
            self.counters.push((protocol.name(), counters.clone()));
            let setup = Setup {
                listeners,
                config,
                namespaces: Arc::clone(&self.namespaces),
                rights: Arc::clone(&self.access),
                tls: self.tls.clone(),
                limits: limits.clone(),
                drain: self.drain.clone(),
                counters,
            };
            match protocol {
                Protocol::Resp => {
                    self.resp = Some(resp::RespServer::start(setup).map_err(refused)?);
                }
                Protocol::Http => {
                    let all = self.counters.clone();
                    let started = http::HttpServer::start(setup, self.drain_time, all);
                    self.http = Some(started.map_err(refused)?);
                }
            }
        }
        Ok(())
    }

    /// Where it listens. A port that was 0 is the one that the system has chosen.
    pub fn addresses(&self) -> &[(Protocol, Address)] {
        &self.addresses
    }

    /// Whether it can issue IDs: every namespace can, clients can begin others where they may,
    /// and it does not stop. Blocks for a second at most, where a disk hangs.
    pub fn is_ready(&self) -> bool {
        !self.drain.has_begun() && self.unready().is_empty()
    }

    /// The namespaces that can issue no ID at present, by name, and why; such as one whose
    /// lease begins later than may be borrowed, as it does where the past has to be waited out.
    /// `*` stands for all that clients may begin, if the data directory can't be used.
    pub fn unready(&self) -> Vec<(String, Obstacle)> {
        self.namespaces.unready()
    }

    /// Reads the files of tokens and certificates again. All of them count from now on, or, after
    /// an error, none. Connections that are open go on as they began, but one of the Redis
    /// protocol is closed if its token is no longer known.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn reload(&self) -> Result<(), ConfigError> {
        // Before they are read: a change meanwhile is one to come.
        self.files.mark_read();
        let reloaded = self.read_again();
        self.access.set_stale(reloaded.is_err());
        reloaded
    }

    fn read_again(&self) -> Result<(), ConfigError> {
        let config = &self.config;
        for path in config.reloadable_files() {
            check_rereadable(&path)?;
        }
        let rights = Access::read(&config.tokens, self.is_local, config.open)?;
        let loaded = config.tls.as_ref().map(Loaded::from_files).transpose()?;
        self.access.replace(rights);
        self.drain.rights_changed();
        if let (Some(tls), Some(loaded)) = (&self.tls, loaded) {
            tls.replace(loaded);
        }
        Ok(())
    }

    /// Whether a file of tokens or of TLS was replaced since it was read, and is not being
    /// written any more: it was the same at the call before. Reports each change once; then
    /// [`reload`](Self::reload). Costs a `stat` for each file; call it every second or so.
    pub fn have_files_changed(&self) -> bool {
        self.files.have_changed()
    }

    /// Stops: answers what was begun and accepts nothing more, for up to `patience`, and
    /// then gives the leases back, for up to `patience` as well.
    pub fn stop(mut self, patience: Duration) -> Stopped {
        self.end(patience)
    }

    fn end(&mut self, patience: Duration) -> Stopped {
        self.drain.begin();
        let deadline = Instant::now() + patience;
        let resp = self.resp.take().map(|server| server.join(deadline));
        let http = self.http.take().map(|server| server.join(deadline));
        let has_answered_all = resp.unwrap_or(true) && http.unwrap_or(true);
        let leases = self.namespaces.shutdown(patience);
        self.socket_files.clear();
        Stopped {
            has_answered_all,
            leases,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.drain.has_begun() {
            self.end(Duration::ZERO);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .field("namespaces", &self.namespaces)
            .field("drain", &self.drain)
            .finish_non_exhaustive()
    }
}

/// The outcome of stopping a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Whether every request that was begun was answered in time.
    pub has_answered_all: bool,
    /// The outcome for the leases of each namespace, by name.
    pub leases: Vec<(String, Shutdown)>,
}

impl Stopped {
    /// Whether nothing was cut short and nothing is left.
    pub fn is_clean(&self) -> bool {
        let mut leases = self.leases.iter();
        self.has_answered_all && leases.all(|(_, end)| *end == Shutdown::Released)
    }
}

fn namespaces(factory: &Arc<GeneratorFactory>, config: &Config) -> Namespaces {
    let factory = Arc::clone(factory);
    // Those of the configuration are not counted as begun by clients.
    let most = config.limits.namespaces + config.namespaces.len();
    let data_dir = config.on_demand.then(|| factory.all_local());
    let admits = Arc::clone(&factory);
    let namespaces = Namespaces::new(Box::new(move |name| factory.build(name)), most)
        .admit(Box::new(move |name| admits.admit(name)));
    match data_dir {
        Some(local) => namespaces.on_demand(local),
        None => namespaces,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_wildcard_is_dual_stack_unless_ipv4_has_an_address_of_its_own() {
        let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
        let wildcard = parse("[::]:6379");
        assert!(is_dual_stack(wildcard, &[wildcard]));
        assert!(is_dual_stack(wildcard, &[wildcard, parse("0.0.0.0:6380")]));
        for other in ["0.0.0.0:6379", "127.0.0.1:6379"] {
            assert!(
                !is_dual_stack(wildcard, &[parse(other), wildcard]),
                "{other}"
            );
        }
        let alone = parse("[::1]:6379");
        assert!(!is_dual_stack(alone, &[alone]));
    }
}
