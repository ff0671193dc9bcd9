//! What the front is made of.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::sites::Hosts;
use crate::access::Rights;
use crate::drain::Drain;
use crate::front::FrontCounters;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::Namespaces;
use crate::sublease::Subleases;

/// The settings of TLS of new connections: certificates change while the server runs.
pub(crate) type TlsConfig = Arc<ArcSwap<rustls::ServerConfig>>;

/// What the front needs.
pub(crate) struct Setup {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) subleases: Arc<Subleases>,
    pub(crate) rights: Arc<dyn Rights>,
    /// For all TCP listeners; those of Unix sockets have none.
    pub(crate) tls: Option<TlsConfig>,
    /// The server's names, in lower case, beside addresses and those of this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) limits: Limits,
    /// Threads; 0 for one on each core.
    pub(crate) workers: usize,
    pub(crate) drain: Drain,
    /// The counters of the other fronts, by the front's name, for `/metrics`.
    pub(crate) others: Vec<(&'static str, Vec<Arc<FrontCounters>>)>,
}

impl Setup {
    /// Of connections of TCP.
    pub(super) fn known_hosts(&self) -> Hosts {
        match self.tls {
            Some(_) => Hosts::All,
            None => Hosts::Known(self.hosts.clone().into()),
        }
    }
}
