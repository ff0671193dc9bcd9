//! Connecting: one endpoint after another, until there is a primary with good settings.

use std::io;

use super::config::{Config, Endpoint};
use super::connection::{Connection, refused, unavailable};
use super::sentinel;
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::error::StoreError;
use crate::lease::options::OpenOptions;

/// Connects to one endpoint after another until there is a primary, logs in and
/// looks at its settings.
///
/// # Errors
/// [`StoreError::Unavailable`], [`StoreError::Denied`], [`StoreError::NotDurable`].
pub(super) fn open(
    config: &Config,
    options: &OpenOptions,
    deadline: &Deadline,
) -> Result<Connection, StoreError> {
    let mut last = None;
    for (index, endpoint) in config.endpoints.iter().enumerate() {
        let left = match deadline.left() {
            Ok(left) => left,
            Err(over) => return Err(last.unwrap_or_else(|| unavailable(over))),
        };
        // So that one that hangs leaves time for the others.
        let others = u32::try_from(config.endpoints.len() - index).unwrap_or(u32::MAX);
        match at(config, endpoint, options, &Deadline::after(left / others)) {
            Err(error @ (StoreError::Unavailable { .. } | StoreError::Denied { .. })) => {
                last = Some(error);
            }
            other => return other,
        }
    }
    let none = || io::Error::other("there is no host to connect to");
    Err(last.unwrap_or_else(|| unavailable(none())))
}

/// The server at `endpoint`, or the primary that the sentinel there names.
fn at(
    config: &Config,
    endpoint: &Endpoint,
    options: &OpenOptions,
    deadline: &Deadline,
) -> Result<Connection, StoreError> {
    let named = match &config.sentinel {
        None => None,
        Some(sentinel) => Some(sentinel::ask(config, sentinel, endpoint, deadline)?),
    };
    let endpoint = named.as_ref().unwrap_or(endpoint);
    let mut connection = Connection::to(config, endpoint, deadline)?;
    if let Some(password) = config.password.get().map_err(unavailable)? {
        connection.log_in(config.user.as_deref(), &password, deadline)?;
    }
    if named.is_some() {
        sentinel::verify(&mut connection, deadline)?;
    }
    if config.database != 0 {
        let mut select = redis::cmd("SELECT");
        select.arg(config.database);
        connection.ask::<()>(&select, deadline).map_err(refused)?;
    }

    let settings = connection.settings(deadline).map_err(refused)?;
    if settings.is_cluster() {
        return Err(StoreError::Unavailable {
            source: "the server is a node of a Redis Cluster, where namespaces can't share a \
                     key: use a Redis of its own"
                .into(),
        });
    }
    if settings.is_replica() {
        return Err(StoreError::Unavailable {
            source: format!("the server at {endpoint} is a replica").into(),
        });
    }
    let name = format!(
        "redis {} at {endpoint}, database {}, {} replicas connected",
        settings.version(),
        config.database,
        settings.replicas()
    );
    connection.gate = DurabilityGate::new(name, options.accepts_best_effort());
    connection.gate.admit(settings.weakness(config.wait))?;
    Ok(connection)
}
