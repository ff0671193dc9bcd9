//! One layer of settings: a file, the environment, or a command line. What it leaves out
//! comes from the layer below.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringflake::lease::History;
use ringflake::{IdWidth, Layout};
use serde::Deserialize;

use super::error::ConfigError;
use super::log::{LogFormat, LogLevel};
use super::read;
use super::store_url::StoreUrl;

/// Settings that lie over others.
trait Layer: Sized {
    /// This one, and `lower` where it says nothing.
    fn over(self, lower: Self) -> Self;
}

impl<T> Layer for Option<T> {
    fn over(self, lower: Self) -> Self {
        self.or(lower)
    }
}

impl<T: Layer> Layer for BTreeMap<String, T> {
    fn over(self, mut lower: Self) -> Self {
        for (name, upper) in self {
            let whole = match lower.remove(&name) {
                Some(lower) => upper.over(lower),
                None => upper,
            };
            lower.insert(name, whole);
        }
        lower
    }
}

/// A section whose every field is a layer.
macro_rules! layers {
    ($(
        $(#[$of_section:meta])*
        pub struct $section:ident { $(
            $(#[doc = $doc:literal])*
            $(#[serde($($serde:tt)*)])?
            pub $field:ident: $type:ty,
        )* }
    )*) => { $(
        $(#[$of_section])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(
            rename_all = "kebab-case",
            deny_unknown_fields,
            default,
            expecting = "a table of settings"
        )]
        #[non_exhaustive]
        pub struct $section { $(
            $(#[doc = $doc])*
            $(#[serde($($serde)*)])?
            pub $field: $type,
        )* }

        #[cfg(test)]
        impl $section {
            /// Each field: its name, its type and its documentation.
            pub(super) const FIELDS: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($field), stringify!($type), concat!($($doc),*)),)*];
        }

        impl Layer for $section {
            fn over(self, lower: Self) -> Self {
                Self { $($field: self.$field.over(lower.$field),)* }
            }
        }
    )* };
}

layers! {
    /// What one layer says; nothing by default.
    ///
    /// ```toml
    /// data-dir = "/var/lib/ringflake"
    /// resp.listen = ["127.0.0.1:6379"]  # or "off"
    /// http.unix = "/run/ringflake/http.sock"
    /// limits.connections = 1000
    ///
    /// [namespaces.orders]               # local, as nothing says otherwise
    ///
    /// [namespaces.invoices]
    /// store-url-file = "store.url"      # or store = "postgres://ids@db/ids"
    /// secret-file = "invoices.secret"
    /// ```
    ///
    /// Paths of a file are relative to its directory, also those of a store that is a file.
    pub struct Settings {
        /// The directory with the leases and secrets of local namespaces. By default `ringflake` in
        /// the data directory of this user (`XDG_DATA_HOME`).
        #[serde(deserialize_with = "read::path")]
        pub data_dir: Option<PathBuf>,
        /// Whether clients may begin namespaces. By default they may if the file names none.
        pub on_demand: Option<bool>,
        /// Names that clients may begin if `on-demand` is true: exact names, or prefixes such as
        /// `app-*`. By default every name.
        pub on_demand_names: Option<Vec<String>>,
        /// Whether to accept a data directory or store that can lose confirmed writes, such as one
        /// in memory. If it loses any, IDs repeat. Default: false.
        pub best_effort: Option<bool>,
        /// How long requests that have begun may take once the server stops, and then the release
        /// of its leases. 0 to 1 h, default 10 s.
        #[serde(deserialize_with = "read::time")]
        pub drain: Option<Duration>,
        /// Whether to listen on addresses other than loopback without tokens and TLS. Default:
        /// false.
        pub open_to_the_network_without_tokens_or_tls: Option<bool>,
        /// The Redis protocol.
        pub resp: ProtocolSettings,
        /// HTTP.
        pub http: ProtocolSettings,
        /// TLS, of every TCP socket.
        pub tls: TlsSettings,
        /// Files of tokens, by role.
        pub tokens: TokenSettings,
        /// Limits of both protocols.
        pub limits: LimitSettings,
        /// The format and the level of the log.
        pub log: LogSettings,
        /// Namespaces that are served from the start, by name.
        pub namespaces: BTreeMap<String, NamespaceSettings>,
    }

    /// Where a protocol listens.
    pub struct ProtocolSettings {
        /// Addresses with ports, or `"off"`. `[::]` also accepts IPv4, unless an IPv4 address with
        /// the same port is in the list. Default: the loopback addresses, port 6379 for the Redis
        /// protocol and 7464 for HTTP, unless `unix` is set.
        #[serde(deserialize_with = "read::addresses")]
        pub listen: Option<Vec<SocketAddr>>,
        /// The path of a Unix socket. Default: none.
        #[serde(deserialize_with = "read::path")]
        pub unix: Option<PathBuf>,
        /// The mode of the Unix socket. Default: 0660.
        #[serde(deserialize_with = "read::mode")]
        pub unix_mode: Option<u32>,
        /// Threads, 1 to 256. Default: one per core.
        pub workers: Option<usize>,
        /// Whether each TCP connection begins with a header of the PROXY protocol, version 1 or 2.
        /// Its address counts as the client's, and no client counts as local. Default: false.
        pub proxy_protocol: Option<bool>,
        /// Redis protocol only: the address, as `ids.example.com:6379`, that the server announces
        /// to clients in cluster or Sentinel mode, so that they can connect. Sentinel clients find
        /// it as `mymaster`. Default: none.
        pub announce: Option<String>,
        /// Redis protocol only: what is cut off from the beginning of keys, such as the prefix that
        /// a client puts in front of all its keys. Default: none.
        pub key_prefix: Option<String>,
        /// Redis protocol only: `.`, `-` or `_`, which takes the place of each `:` in keys. With
        /// `.`, the key `app:orders` is the namespace `app.orders`. Default: none; such keys are
        /// refused, since names of namespaces have no colon.
        pub replace_colons: Option<String>,
        /// HTTP only: names of this server that contain a dot and that requests without a token
        /// may use over TCP without TLS. Addresses, names without a dot and `localhost` are
        /// always allowed.
        pub hosts: Option<Vec<String>>,
    }

    /// Files in PEM.
    pub struct TlsSettings {
        /// The certificate chain in PEM, the server's certificate first. Replaced files are read
        /// within seconds.
        #[serde(deserialize_with = "read::path")]
        pub certificate: Option<PathBuf>,
        /// Its private key in PEM, readable by the server's user only.
        #[serde(deserialize_with = "read::path")]
        pub key: Option<PathBuf>,
        /// Certificate authorities of clients in PEM. If given, only clients with a certificate of
        /// one of them are served.
        #[serde(deserialize_with = "read::path")]
        pub client_ca: Option<PathBuf>,
    }

    /// Files with a token on each line.
    pub struct TokenSettings {
        /// Tokens that may take IDs.
        #[serde(deserialize_with = "read::path")]
        pub take: Option<PathBuf>,
        /// Tokens that may decode IDs.
        #[serde(deserialize_with = "read::path")]
        pub inspect: Option<PathBuf>,
        /// Tokens that may read the metrics and the status of all namespaces.
        #[serde(deserialize_with = "read::path")]
        pub admin: Option<PathBuf>,
    }

    /// Limits on connections and requests, for both protocols.
    pub struct LimitSettings {
        /// Open connections of each protocol, 1 to 1,048,576. Default: 10,000.
        pub connections: Option<usize>,
        /// Open connections of one client: an IPv4 address, an IPv6 /64 network or a local user.
        /// Default: `connections`.
        pub connections_per_client: Option<usize>,
        /// IDs of one request, 1 to 65,536. Default: 65,536.
        pub count: Option<usize>,
        /// Redis protocol only: bytes of one request, 1,024 to 16,777,216. Default: 65,536.
        pub request_bytes: Option<usize>,
        /// Time for one request, from its first byte to its last, and for its response. 10 ms to
        /// 24 h, default 10 s.
        #[serde(deserialize_with = "read::time")]
        pub request_time: Option<Duration>,
        /// Time that a connection may be idle between requests. 10 ms to 24 h, default 300 s.
        #[serde(deserialize_with = "read::time")]
        pub idle_time: Option<Duration>,
        /// Namespaces that clients may begin, 1 to 4,096. Default: 64.
        pub namespaces: Option<usize>,
    }

    /// The format and the level of the log.
    pub struct LogSettings {
        /// One line of text or one JSON object per event. Default: `"text"`.
        #[serde(deserialize_with = "read::log_format")]
        pub format: Option<LogFormat>,
        /// The least severe level that is logged. Default: `"info"`.
        #[serde(deserialize_with = "read::log_level")]
        pub level: Option<LogLevel>,
    }

    /// A namespace that is served from the start. Without a store it is that of the data
    /// directory, which keeps its leases and its secret.
    pub struct NamespaceSettings {
        /// How the bits are divided: the name of a preset layout, or the numbers of another one.
        /// Default: `randflake`.
        #[serde(deserialize_with = "read::layout")]
        pub layout: Option<Layout>,
        /// Whether IDs are not encrypted. Default: false.
        pub plain: Option<bool>,
        /// How many bits IDs have. Default: `"full"`; that of the layout, if it is named after a
        /// width.
        #[serde(deserialize_with = "read::id_width")]
        pub id_width: Option<IdWidth>,
        /// The URL of the store that grants leases. Default: the data directory.
        #[serde(deserialize_with = "read::url")]
        pub store: Option<StoreUrl>,
        /// A file with that URL, readable by the server's user only.
        #[serde(deserialize_with = "read::path")]
        pub store_url_file: Option<PathBuf>,
        /// Whether a file in the data directory keeps leases of that store in reserve. Default:
        /// false.
        pub tier: Option<bool>,
        /// The file with the secret. Required with a store, unless IDs are plain.
        #[serde(deserialize_with = "read::path")]
        pub secret_file: Option<PathBuf>,
        /// The binary logarithm of the number of nodes in a block of the store.
        pub block_bits: Option<u32>,
        /// If the store has no namespace of this name, initialises it with this history.
        #[serde(deserialize_with = "read::history")]
        pub init_if_new: Option<History>,
        /// Blocks of nodes to lease. Default: 1.
        pub blocks: Option<u32>,
        /// Blocks to lease at most while IDs are borrowed from the future.
        pub widen_to: Option<u32>,
        /// How far ahead of the clock leases are kept.
        #[serde(deserialize_with = "read::time")]
        pub lease_duration: Option<Duration>,
        /// How long the start waits for the first lease before the server starts without it.
        /// At most 30 s, default 5 s.
        #[serde(deserialize_with = "read::time")]
        pub wait: Option<Duration>,
        /// Slots of all rings together, a power of two. Default: 65,536.
        pub capacity: Option<usize>,
        /// Rings, a power of two. Default: one per core.
        pub stripes: Option<usize>,
        /// Threads that fill the rings.
        pub producers: Option<usize>,
        /// How far ahead of the clock IDs may lie.
        #[serde(deserialize_with = "read::time")]
        pub borrow_limit: Option<Duration>,
    }
}

impl TokenSettings {
    /// By role, in the order of `Role::ALL`.
    pub(crate) fn files(&self) -> [&Option<PathBuf>; 3] {
        [&self.take, &self.inspect, &self.admin]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files().iter().all(|file| file.is_none())
    }
}

impl Settings {
    /// The settings of the TOML file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], [`ConfigError::Syntax`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| ConfigError::unreadable(path, source))?;
        Self::from_toml(&text, path)
    }

    /// Like [`from_file`](Self::from_file), for a file that was read before.
    ///
    /// # Errors
    /// Also [`ConfigError::Content`] if it is not a regular file, such as a pipe, which would be
    /// empty, or block.
    pub fn from_file_again(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        check_rereadable(path.as_ref())?;
        Self::from_file(path)
    }

    /// The settings of this text, which stands in the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut settings: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().iter().take(start);
            ConfigError::Syntax {
                path: path.to_owned(),
                line: 1 + before.filter(|&&byte| byte == b'\n').count(),
                reason: shown(error.message()),
            }
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        for path in settings.paths() {
            *path = directory.join(&path);
        }
        let namespaces = settings.namespaces.values_mut();
        for url in namespaces.filter_map(|namespace| namespace.store.as_mut()) {
            *url = url.in_directory(directory);
        }
        Ok(settings)
    }

    /// These settings, and those of `lower` where these say nothing.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Layer::over(self, lower)
    }

    /// Every path that a file names, to be put in its place.
    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let Self {
            data_dir,
            resp,
            http,
            tls,
            tokens,
            namespaces,
            ..
        } = self;
        let of_namespaces = namespaces
            .values_mut()
            .flat_map(|namespace| [&mut namespace.store_url_file, &mut namespace.secret_file]);
        [
            data_dir,
            &mut resp.unix,
            &mut http.unix,
            &mut tls.certificate,
            &mut tls.key,
            &mut tls.client_ca,
            &mut tokens.take,
            &mut tokens.inspect,
            &mut tokens.admin,
        ]
        .into_iter()
        .chain(of_namespaces)
        .flatten()
    }
}

/// Refuses what is not a regular file, such as a pipe, which can be read only once.
pub(crate) fn check_rereadable(path: &Path) -> Result<(), ConfigError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(ConfigError::content(
            path,
            "not a regular file, so it is read at the start only: restart the server, or replace \
             it with a regular file",
        )),
        _ => Ok(()),
    }
}

/// The message, unless it repeats a URL, which may hold a password.
fn shown(message: &str) -> String {
    match message.contains("://") {
        true => "a URL stands where something else is expected".to_owned(),
        false => ["usize", "u32"]
            .iter()
            .fold(message.replace('\n', " "), |text, number| {
                text.replace(
                    &format!("expected {number}"),
                    "expected a whole number from 0 on",
                )
            }),
    }
}
