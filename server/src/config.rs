//! The configuration of a server, merged from layers of settings.
//!
//! ```text
//! file < environment < command line: each a Settings, what it leaves out comes from below
//!   --> Config: every default filled in, every number in its range
//! ```
//!
//! Nothing here binds a socket, asks a store or writes a file.

mod environment;
mod error;
mod limits;
mod log;
mod read;
#[cfg(test)]
mod reference;
mod settings;
mod store_url;
mod text;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::path::PathBuf;
use std::time::Duration;

use ringflake::lease::{Fingerprint, Namespace, NamespaceError};
use ringflake::{IdWidth, Layout};

pub use self::error::ConfigError;
pub(crate) use self::limits::{LEAST_BYTES_PER_SECOND, Limits};
pub use self::log::{LogFormat, LogLevel};
pub(crate) use self::settings::check_rereadable;
pub use self::settings::{
    LimitSettings, LogSettings, NamespaceSettings, ProtocolSettings, Settings, TlsSettings,
    TokenSettings,
};
pub use self::store_url::StoreUrl;
pub use self::text::{parse_address, parse_addresses, parse_hosts, parse_mode, parse_time};
use crate::named::named;

named! {
    /// A protocol that is served.
    #[derive(Hash)]
    #[non_exhaustive]
    pub enum Protocol {
        /// The Redis protocol.
        Resp = "resp",
        /// HTTP/1.1.
        Http = "http",
    }
}

impl Protocol {
    /// Where it listens unless the configuration says otherwise: both addresses that
    /// `localhost` may have. The second is left out on a machine without IPv6.
    pub const fn default_addresses(self) -> [SocketAddr; 2] {
        let port = match self {
            // Where clients of Redis look.
            Self::Resp => 6379,
            Self::Http => 7464,
        };
        [
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port),
        ]
    }
}

/// Everything that a server is to do. Made from [`Settings`], and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// None for that of this user.
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) on_demand: bool,
    /// Names that clients may begin, each exact or up to its `*`; empty for all.
    pub(crate) on_demand_names: Vec<String>,
    pub(crate) best_effort: bool,
    pub(crate) drain: Duration,
    pub(crate) open: bool,
    pub(crate) resp: ProtocolConfig,
    pub(crate) http: ProtocolConfig,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) tokens: TokenSettings,
    pub(crate) limits: Limits,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    pub(crate) namespaces: BTreeMap<String, NamespaceSettings>,
}

/// The settings of a protocol. The default is for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct ProtocolConfig {
    pub(crate) listen: Vec<SocketAddr>,
    /// Whether that is the default, which a socket of the service manager replaces.
    pub(crate) is_default: bool,
    pub(crate) unix: Option<PathBuf>,
    pub(crate) unix_mode: u32,
    pub(crate) workers: usize,
    pub(crate) proxy_protocol: bool,
    pub(crate) announce: Option<String>,
    pub(crate) key_prefix: String,
    /// What takes the place of colons in keys.
    pub(crate) colon: Option<char>,
    pub(crate) hosts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: Option<PathBuf>,
}

const DRAIN: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);

/// The longest that the start waits for a store.
const MAX_WAIT: Duration = Duration::from_secs(30);

const MOST_WORKERS: usize = 256;

impl Config {
    /// How long requests that have begun may take to end when the server stops, and then
    /// the stores to be given the leases back.
    pub const DEFAULT_DRAIN: Duration = Duration::from_secs(10);

    /// Fills in the defaults, and checks what doesn't need the disk.
    ///
    /// # Errors
    /// [`ConfigError`].
    ///
    /// # Examples
    /// ```
    /// use ringflake_server::{Config, Settings};
    ///
    /// let mut settings = Settings::default();
    /// settings.resp.listen = Some(vec!["127.0.0.1:6380".parse()?]);
    /// Config::new(settings.clone())?;
    ///
    /// settings.resp.listen = Some(vec!["0.0.0.0:6380".parse()?]);
    /// let refused = Config::new(settings).unwrap_err();
    /// assert!(refused.help().unwrap().contains("tokens.take"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(settings: Settings) -> Result<Self, ConfigError> {
        let Settings {
            data_dir,
            on_demand,
            on_demand_names,
            best_effort,
            drain,
            open_to_the_network_without_tokens_or_tls: open,
            resp,
            http,
            tls,
            tokens,
            limits,
            log,
            mut namespaces,
        } = settings;
        let drain = drain.unwrap_or(Self::DEFAULT_DRAIN);
        if !DRAIN.contains(&drain) {
            return Err(ConfigError::value("drain", "give a time of at most 1h"));
        }
        for (name, namespace) in &mut namespaces {
            check_namespace(name, namespace)?;
            namespace.id_width = id_width(name, namespace)?;
        }
        let config = Self {
            data_dir,
            on_demand: on_demand.unwrap_or(namespaces.is_empty()),
            on_demand_names: match on_demand_names {
                Some(names) if names.is_empty() => {
                    return Err(ConfigError::value(
                        "on-demand-names",
                        "the list is empty: give a name, or on-demand = false if clients may begin \
                         no namespace, or leave it out if they may begin any",
                    ));
                }
                names => names.unwrap_or_default(),
            },
            best_effort: best_effort.unwrap_or(false),
            drain,
            open: open.unwrap_or(false),
            resp: ProtocolConfig::new(Protocol::Resp, resp)?,
            http: ProtocolConfig::new(Protocol::Http, http)?,
            tls: TlsFiles::new(tls)?,
            tokens,
            limits: limits::read(limits)?,
            log_format: log.format.unwrap_or_default(),
            log_level: log.level.unwrap_or_default(),
            namespaces,
        };
        if !config.on_demand && config.namespaces.is_empty() {
            return Err(ConfigError::value(
                "on-demand",
                "clients may begin no namespace, and none is named: name one, as \
                 [namespaces.orders], or leave this out",
            ));
        }
        if !config.on_demand && !config.on_demand_names.is_empty() {
            return Err(ConfigError::value(
                "on-demand-names",
                "clients may begin no namespace: give on-demand = true, or leave this out",
            ));
        }
        for pattern in &config.on_demand_names {
            check_pattern(pattern)?;
        }
        let has_tokens = !config.tokens.is_empty();
        for protocol in Protocol::ALL {
            if config.protocol(protocol).proxy_protocol && !has_tokens && !config.open {
                return Err(ConfigError::value(
                    format!("{protocol}.proxy-protocol"),
                    "clients of a proxy are not local, so they need tokens: give tokens.take, or \
                     say open-to-the-network-without-tokens-or-tls = true",
                ));
            }
            for &address in &config.protocol(protocol).listen {
                config.check_exposure(address)?;
            }
        }
        config.check_sockets()?;
        Ok(config)
    }

    /// Refuses sockets that can't be bound, or not beside each other.
    fn check_sockets(&self) -> Result<(), ConfigError> {
        let (mut addresses, mut paths) = (Vec::new(), Vec::new());
        for protocol in Protocol::ALL {
            let of = self.protocol(protocol);
            // The service manager may replace the default.
            for &address in of.listen.iter().filter(|_| !of.is_default) {
                if addresses.contains(&address) && address.port() != 0 {
                    return Err(ConfigError::value(
                        format!("{protocol}.listen"),
                        format!("{address} is listed twice: give another port, or remove one"),
                    ));
                }
                addresses.push(address);
            }
            let Some(path) = &of.unix else { continue };
            let reason = if paths.contains(&path) {
                "resp and http can't share one path: give another".to_owned()
            } else if let Err(error) = UnixAddr::from_pathname(path) {
                format!("{error}: give a shorter path, of at most 107 bytes")
            } else {
                paths.push(path);
                continue;
            };
            return Err(ConfigError::value(format!("{protocol}.unix"), reason));
        }
        Ok(())
    }

    pub(crate) fn may_begin(&self, name: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        };
        let names = &self.on_demand_names;
        self.on_demand && (names.is_empty() || names.iter().any(matches))
    }

    pub(crate) fn protocol(&self, protocol: Protocol) -> &ProtocolConfig {
        match protocol {
            Protocol::Resp => &self.resp,
            Protocol::Http => &self.http,
        }
    }

    /// Refuses an address of the network that everybody could use.
    pub(crate) fn check_exposure(&self, address: SocketAddr) -> Result<(), ConfigError> {
        let (has_token, has_tls) = (self.tokens.take.is_some(), self.tls.is_some());
        if self.open || is_local(address) || has_token && has_tls {
            return Ok(());
        }
        Err(ConfigError::OpenToTheNetwork {
            address,
            has_token,
            has_tls,
        })
    }

    /// The keys of the settings that differ in `other` and need a restart: all but `log.level`.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        #[rustfmt::skip]
        let differ = [
            ("data-dir", self.data_dir != other.data_dir),
            ("on-demand", self.on_demand != other.on_demand),
            ("on-demand-names", self.on_demand_names != other.on_demand_names),
            ("best-effort", self.best_effort != other.best_effort),
            ("drain", self.drain != other.drain),
            ("open-to-the-network-without-tokens-or-tls", self.open != other.open),
            ("resp", self.resp != other.resp),
            ("http", self.http != other.http),
            ("tls", self.tls != other.tls),
            ("tokens", self.tokens != other.tokens),
            ("limits", self.limits != other.limits),
            ("log.format", self.log_format != other.log_format),
            ("namespaces", self.namespaces != other.namespaces),
        ];
        let differ = differ.into_iter().filter(|(_, differs)| *differs);
        differ.map(|(key, _)| key).collect()
    }

    pub(crate) fn reloadable_files(&self) -> Vec<PathBuf> {
        let tls = self.tls.iter();
        let tls = tls.flat_map(|tls| {
            [
                Some(&tls.certificate),
                Some(&tls.key),
                tls.client_ca.as_ref(),
            ]
        });
        let tokens = self.tokens.files().map(Option::as_ref);
        tokens.into_iter().chain(tls).flatten().cloned().collect()
    }

    /// How long a server that stops waits for its clients, and then for its stores.
    pub fn drain(&self) -> Duration {
        self.drain
    }

    /// The form of the log.
    pub fn log_format(&self) -> LogFormat {
        self.log_format
    }

    /// The least severe level that is logged.
    pub fn log_level(&self) -> LogLevel {
        self.log_level
    }
}

pub(crate) fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

impl ProtocolConfig {
    fn new(protocol: Protocol, settings: ProtocolSettings) -> Result<Self, ConfigError> {
        let ProtocolSettings {
            listen,
            unix,
            unix_mode,
            workers,
            proxy_protocol,
            announce,
            key_prefix,
            replace_colons,
            hosts,
        } = settings;
        let refuse = |key: &str, reason: String| {
            let key = format!("{protocol}.{key}");
            ConfigError::value(key, reason)
        };
        if unix_mode.is_some() && unix.is_none() {
            let reason = "there is no socket that it could be about: give";
            return Err(refuse("unix-mode", format!("{reason} {protocol}.unix")));
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = workers.unwrap_or_else(|| cores().min(MOST_WORKERS));
        if !(1..=MOST_WORKERS).contains(&workers) {
            let reason = format!("{workers} is out of range: give 1 to {MOST_WORKERS}");
            return Err(refuse("workers", reason));
        }
        let is_off = unix.is_none() && listen.as_ref().is_some_and(Vec::is_empty);
        for (key, is_given, of) in [
            ("hosts", hosts.is_some(), Protocol::Http),
            ("announce", announce.is_some(), Protocol::Resp),
            ("key-prefix", key_prefix.is_some(), Protocol::Resp),
            ("replace-colons", replace_colons.is_some(), Protocol::Resp),
        ] {
            if is_given && protocol != of {
                let reason =
                    format!("only {of} has this setting: give {of}.{key}, or leave it out");
                return Err(refuse(key, reason));
            }
            if is_given && is_off {
                let reason = format!("{protocol} has no listener: remove this setting, or give");
                return Err(refuse(key, format!("{reason} {protocol}.listen")));
            }
        }
        let is_address = |it: &str| match it.rsplit_once(':') {
            Some((host, port)) => !host.is_empty() && port.parse::<NonZeroU16>().is_ok(),
            None => false,
        };
        if announce.as_deref().is_some_and(|it| !is_address(it)) {
            let reason = "it needs a host and a port, such as ids.example.com:6379";
            return Err(refuse("announce", reason.to_owned()));
        }
        let colon = match replace_colons.as_deref() {
            None => None,
            Some("." | "-" | "_") => replace_colons.and_then(|it| it.chars().next()),
            Some(other) => {
                let reason = format!("it must be \".\", \"-\" or \"_\", got {other:?}");
                return Err(refuse("replace-colons", reason));
            }
        };
        let hosts = hosts.unwrap_or_default();
        let hosts: Result<Vec<_>, _> = hosts.iter().map(|name| text::read_host(name)).collect();
        let hosts = hosts.map_err(|reason| refuse("hosts", reason))?;
        let is_default = listen.is_none() && unix.is_none();
        let listen = match listen {
            Some(listen) => listen,
            None if is_default => protocol.default_addresses().to_vec(),
            None => Vec::new(),
        };
        Ok(Self {
            listen,
            is_default,
            unix,
            unix_mode: unix_mode.unwrap_or(0o660),
            workers,
            proxy_protocol: proxy_protocol.unwrap_or(false),
            announce,
            key_prefix: key_prefix.unwrap_or_default(),
            colon,
            hosts,
        })
    }
}

impl TlsFiles {
    fn new(settings: TlsSettings) -> Result<Option<Self>, ConfigError> {
        let client_ca = settings.client_ca;
        let missing = match (settings.certificate, settings.key) {
            (Some(certificate), Some(key)) => {
                return Ok(Some(Self {
                    certificate,
                    key,
                    client_ca,
                }));
            }
            (None, None) if client_ca.is_none() => return Ok(None),
            (Some(_), None) => "key",
            (None, _) => "certificate",
        };
        Err(ConfigError::value(
            format!("tls.{missing}"),
            "it is missing: TLS needs both tls.certificate and tls.key",
        ))
    }
}

/// Refuses a name that no namespace can have.
pub(crate) fn check_name(name: &str) -> Result<(), NamespaceError> {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).map(drop)
}

/// Refuses a pattern of `on-demand-names` that no name fits.
fn check_pattern(pattern: &str) -> Result<(), ConfigError> {
    if pattern == "*" {
        return Ok(());
    }
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    check_name(beginning).map_err(|error| {
        ConfigError::value(
            "on-demand-names",
            format!("no name fits {pattern:?}: {error}; a prefix ends in *, as \"app-*\" does"),
        )
    })
}

/// Refuses keys that have no meaning beside others.
fn check_namespace(name: &str, of: &NamespaceSettings) -> Result<(), ConfigError> {
    let refuse = |key: &str, reason: &str| {
        Err(ConfigError::value(
            format!("namespaces.{name}.{key}"),
            reason,
        ))
    };
    let has_store = match (&of.store, &of.store_url_file) {
        (Some(_), Some(_)) => return refuse("store", "give it or store-url-file, not both"),
        (None, None) => false,
        _ => true,
    };
    let is_plain = of.plain == Some(true);
    if has_store && !is_plain && of.secret_file.is_none() {
        return refuse(
            "secret-file",
            "it is missing: those who share a store share a secret; 'ringflake keygen --out FILE' \
             makes one, or choose plain = true for IDs that anybody can read",
        );
    }
    if is_plain && of.secret_file.is_some() {
        return refuse("secret-file", "plain IDs have no secret: leave out one");
    }
    let of_stores = [
        ("secret-file", of.secret_file.is_some()),
        ("block-bits", of.block_bits.is_some()),
        ("init-if-new", of.init_if_new.is_some()),
        ("tier", of.tier == Some(true)),
        ("wait", of.wait.is_some()),
    ];
    if let Some((key, _)) = of_stores.iter().find(|(_, given)| *given && !has_store) {
        return refuse(
            key,
            "it is about a store, and this namespace is that of the data directory: give store \
             or store-url-file, or leave it out",
        );
    }
    if of.wait.is_some_and(|wait| wait > MAX_WAIT) {
        return refuse(
            "wait",
            "give a time of at most 30s: after it the server starts without a lease, and goes on \
             trying",
        );
    }
    Ok(())
}

/// The width of a namespace's IDs: a layout that is named after a width has that one.
fn id_width(name: &str, of: &NamespaceSettings) -> Result<Option<IdWidth>, ConfigError> {
    let layout = of.layout.and_then(|layout| layout.name());
    let implied = match layout {
        Some("positive" | "positive-ms") => IdWidth::Positive,
        Some("js-safe") => IdWidth::JsSafe,
        _ => return Ok(of.id_width),
    };
    // Plain IDs have the bits of the layout.
    if of.plain == Some(true) || of.id_width.is_none_or(|given| given == implied) {
        return Ok(of.id_width.or(Some(implied)));
    }
    Err(ConfigError::value(
        format!("namespaces.{name}.id-width"),
        format!(
            "the layout {} is for IDs of the width {implied}: leave id-width out, or choose \
             another layout",
            layout.unwrap_or_default()
        ),
    ))
}

#[cfg(test)]
mod tests;
