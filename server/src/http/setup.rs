//! The parts that an HTTP server is made from.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::cross_origin::Hosts;
use crate::access::Access;
use crate::drain::Drain;
use crate::front::FrontCounters;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::Namespaces;
use crate::sublease::Subleases;
use crate::tls::Tls;

/// The TLS settings of new connections: certificates change while the server runs.
pub(crate) type TlsConfig = Arc<ArcSwap<rustls::ServerConfig>>;

/// For how long a draining server still answers new requests: clients learn from their next
/// answer that they have to connect elsewhere.
pub(crate) const DRAIN_TIME: Duration = Duration::from_millis(500);

pub(crate) struct Setup {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) subleases: Arc<Subleases>,
    pub(crate) rights: Arc<Access>,
    /// For all TCP listeners; those of Unix sockets have none.
    pub(crate) tls: Option<TlsConfig>,
    /// The certificate, for its expiry in `/metrics`.
    pub(crate) certificate: Option<Arc<Tls>>,
    pub(crate) proxy_protocol: bool,
    /// The server's names, in lower case, beside addresses and those of this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) limits: Limits,
    /// Threads; 0 for one on each core.
    pub(crate) workers: usize,
    pub(crate) drain: Drain,
    /// For how long new requests are answered while it drains.
    pub(crate) drain_time: Duration,
    /// The counters of other protocols, by their names, for `/metrics`.
    pub(crate) others: Vec<(&'static str, Vec<Arc<FrontCounters>>)>,
}

impl Setup {
    /// The names of the server, for TCP connections.
    pub(super) fn known_hosts(&self) -> Hosts {
        match self.tls {
            Some(_) => Hosts::All,
            None => Hosts::Known(self.hosts.clone().into()),
        }
    }
}
