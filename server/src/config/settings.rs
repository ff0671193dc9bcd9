//! One layer of settings: a file, the environment, or a command line. What it leaves out
//! comes from the layer below.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ringflake::lease::History;
use ringflake::{IdWidth, Layout};
use serde::Deserialize;

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
        pub struct $section:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty,)* }
    )*) => { $(
        $(#[$of_section])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        #[non_exhaustive]
        pub struct $section { $($(#[$of_field])* pub $field: $type,)* }

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
    /// data-dir = "/var/lib/ringflake"   # leases and secrets of local namespaces
    /// on-demand = false                 # whether clients may begin namespaces
    /// best-effort = false               # accept a data directory that can lose writes
    /// drain = "10s"                     # how long requests have to end after SIGTERM
    ///
    /// [resp]                            # the Redis protocol; [http] has the same keys
    /// listen = ["127.0.0.1:6379"]       # or "off"
    /// unix = "/run/ringflake/resp.sock"
    /// unix-mode = "0660"
    /// workers = 2
    /// # hosts = ["ids.example.com"]   # only of [http]: names that requests may use
    ///
    /// [tls]                             # on every TCP socket
    /// certificate = "server.pem"
    /// key = "server.key"
    /// client-ca = "clients.pem"         # only clients with a certificate by these
    ///
    /// [tokens]                          # files with a token on each line
    /// take = "take.tokens"              # also inspect, lease and admin
    ///
    /// [limits]
    /// connections = 20000
    ///
    /// [log]
    /// format = "json"                   # or text
    /// level = "info"
    ///
    /// [namespaces.orders]               # local, as nothing says otherwise
    ///
    /// [namespaces.invoices]
    /// store-url-file = "store.url"      # or store = "postgres://ids@db/ids"
    /// secret-file = "invoices.secret"
    /// tier = true                       # leases go on while the store is away
    /// ```
    ///
    /// Paths of a file are relative to its directory, also those of a store that is a file.
    pub struct Settings {
        /// The directory with the leases and secrets of local namespaces.
        pub data_dir: Option<PathBuf>,
        /// Whether clients may begin namespaces. By default they may where none is named.
        pub on_demand: Option<bool>,
        /// Whether a data directory or a store is accepted that can lose writes.
        pub best_effort: Option<bool>,
        /// How long requests that have begun may take to end when the server stops.
        #[serde(deserialize_with = "read::time")]
        pub drain: Option<Duration>,
        /// Whether addresses that are not loopback are served without tokens or TLS.
        pub open_to_the_network_without_tokens_or_tls: Option<bool>,
        /// The Redis protocol.
        pub resp: FrontSettings,
        /// HTTP.
        pub http: FrontSettings,
        /// TLS, of every TCP socket.
        pub tls: TlsSettings,
        /// Files of tokens, by role.
        pub tokens: TokenSettings,
        /// Limits of every front.
        pub limits: LimitSettings,
        /// What is logged.
        pub log: LogSettings,
        /// Namespaces that are served from the start, by name.
        pub namespaces: BTreeMap<String, NamespaceSettings>,
    }

    /// Where a front listens.
    pub struct FrontSettings {
        /// Addresses with ports; none for no TCP socket. `[::]` also accepts IPv4, unless an
        /// IPv4 address with the same port is in the list.
        #[serde(deserialize_with = "read::addresses")]
        pub listen: Option<Vec<SocketAddr>>,
        /// A Unix socket.
        pub unix: Option<PathBuf>,
        /// Its mode, 0660 by default.
        #[serde(deserialize_with = "read::mode")]
        pub unix_mode: Option<u32>,
        /// Threads, by default one for each core.
        pub workers: Option<usize>,
        /// Of HTTP: names of the server with a dot, which requests without a token may use on
        /// TCP without TLS. Addresses, names without a dot and those of localhost always
        /// may; a page of the internet can't have one of them.
        pub hosts: Option<Vec<String>>,
    }

    /// Files in PEM.
    pub struct TlsSettings {
        /// The certificate, and those between it and its authority.
        pub certificate: Option<PathBuf>,
        /// Its private key.
        pub key: Option<PathBuf>,
        /// Authorities of clients: only clients with a certificate are served.
        pub client_ca: Option<PathBuf>,
    }

    /// Files with a token on each line.
    pub struct TokenSettings {
        /// Of those who take IDs.
        pub take: Option<PathBuf>,
        /// Of those who read what an ID consists of.
        pub inspect: Option<PathBuf>,
        /// Of those who are given leases of their own.
        pub lease: Option<PathBuf>,
        /// Of those who read figures and settings.
        pub admin: Option<PathBuf>,
    }

    /// [`Limits`](crate::Limits), each by its name there.
    pub struct LimitSettings {
        /// Open connections, of each front.
        pub connections: Option<usize>,
        /// Those of one client.
        pub connections_per_client: Option<usize>,
        /// IDs that one request may ask for.
        pub count: Option<usize>,
        /// Bytes of one request.
        pub request_bytes: Option<usize>,
        /// The time for one request.
        #[serde(deserialize_with = "read::time")]
        pub request_time: Option<Duration>,
        /// The time between two requests.
        #[serde(deserialize_with = "read::time")]
        pub idle_time: Option<Duration>,
        /// Namespaces that clients may begin.
        pub namespaces: Option<usize>,
        /// Leases that one request may ask for.
        pub leases: Option<usize>,
        /// Leases that are given out in a minute.
        pub leases_per_minute: Option<usize>,
    }

    /// What is logged, and how.
    pub struct LogSettings {
        /// Text unless given.
        #[serde(deserialize_with = "read::log_format")]
        pub format: Option<LogFormat>,
        /// Info unless given.
        #[serde(deserialize_with = "read::log_level")]
        pub level: Option<LogLevel>,
    }

    /// A namespace that is served from the start. Without a store it is that of the data
    /// directory, which keeps its leases and its secret.
    pub struct NamespaceSettings {
        /// How the 64 bits are divided: randflake unless given.
        #[serde(deserialize_with = "read::layout")]
        pub layout: Option<Layout>,
        /// Whether IDs are not encrypted.
        pub plain: Option<bool>,
        /// How many bits IDs have: full unless given.
        #[serde(deserialize_with = "read::id_width")]
        pub id_width: Option<IdWidth>,
        /// The store that leases come from, as [`ringflake::lease::open`] takes it.
        #[serde(deserialize_with = "read::url")]
        pub store: Option<StoreUrl>,
        /// A file with that URL, which nobody else may read.
        pub store_url_file: Option<PathBuf>,
        /// Whether a file in the data directory keeps leases of that store in reserve.
        pub tier: Option<bool>,
        /// The secret, where leases come from a store.
        pub secret_file: Option<PathBuf>,
        /// The binary logarithm of the nodes in a block of the store.
        pub block_bits: Option<u32>,
        /// Initialises the namespace with this history if the store has none of this name.
        #[serde(deserialize_with = "read::history")]
        pub init_if_new: Option<History>,
        /// How many blocks are held.
        pub blocks: Option<u32>,
        /// How many are held at most when IDs are borrowed.
        pub widen_to: Option<u32>,
        /// How far ahead of the clock leases are kept.
        #[serde(deserialize_with = "read::time")]
        pub lease_duration: Option<Duration>,
        /// How long the start waits for the first lease; the server then starts without.
        #[serde(deserialize_with = "read::time")]
        pub wait: Option<Duration>,
        /// Slots of the rings, a power of two.
        pub capacity: Option<usize>,
        /// The number of rings.
        pub stripes: Option<usize>,
        /// Threads that fill them.
        pub producers: Option<usize>,
        /// How far ahead of the clock IDs may lie.
        #[serde(deserialize_with = "read::time")]
        pub borrow_limit: Option<Duration>,
    }
}

impl Settings {
    /// These settings, and those of `lower` where these say nothing.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Layer::over(self, lower)
    }

    /// Every path that a file names, to be put in its place.
    pub(super) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
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
            &mut tokens.lease,
            &mut tokens.admin,
        ]
        .into_iter()
        .chain(of_namespaces)
        .flatten()
    }

    /// Every store that a file names itself, to be put in its place.
    pub(super) fn store_urls(&mut self) -> impl Iterator<Item = &mut StoreUrl> {
        let namespaces = self.namespaces.values_mut();
        namespaces.filter_map(|namespace| namespace.store.as_mut())
    }
}
