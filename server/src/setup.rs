//! The parts that the server of a protocol is made from.

use std::sync::Arc;

use crate::access::Access;
use crate::config::{Limits, ProtocolConfig};
use crate::counters::Counters;
use crate::drain::Drain;
use crate::listener::Listener;
use crate::namespaces::Namespaces;
use crate::tls::Tls;

pub(crate) struct Setup {
    /// Taken when the server starts.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) config: ProtocolConfig,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) rights: Arc<Access>,
    /// For all TCP listeners, which accept no plain text then; those of Unix sockets have none.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) limits: Limits,
    pub(crate) drain: Drain,
    /// Those of the accept loops first, which several threads write; then those of each worker of
    /// the Redis protocol.
    pub(crate) counters: Vec<Arc<Counters>>,
}

#[cfg(test)]
impl Setup {
    /// For two workers, without listeners.
    pub(crate) fn of(rights: Arc<Access>, namespaces: Namespaces) -> Self {
        Self {
            listeners: Vec::new(),
            config: ProtocolConfig {
                workers: 2,
                ..ProtocolConfig::default()
            },
            namespaces: Arc::new(namespaces),
            rights,
            tls: None,
            limits: Limits::default(),
            drain: Drain::default(),
            counters: (0..=2).map(|_| Arc::default()).collect(),
        }
    }
}
