//! Opens connections to a primary with durable settings.

use super::config::{Config, Endpoint};
use super::connection::{Connection, refused};
use super::sentinel;
use super::verdict::unavailable;
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::options::OpenOptions;
use crate::lease::table::TableError;

/// Tries one endpoint after another until one leads to a primary. Logs in and checks its
/// settings.
///
/// # Errors
/// [`TableError::Unavailable`], [`TableError::Denied`], [`TableError::NotDurable`].
pub(super) fn open(
    config: &Config,
    options: &OpenOptions,
    deadline: &Deadline,
) -> Result<Connection, TableError> {
    let mut last = None;
    for (index, endpoint) in config.endpoints.iter().enumerate() {
        let left = match deadline.left() {
            Ok(left) => left,
            Err(over) => return Err(last.unwrap_or_else(|| unavailable(over))),
        };
        // An endpoint that hangs leaves time for the others.
        let others = u32::try_from(config.endpoints.len() - index).unwrap_or(u32::MAX);
        match at(config, endpoint, options, &Deadline::after(left / others)) {
            Err(error @ (TableError::Unavailable(_) | TableError::Denied(_))) => {
                last = Some(error);
            }
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| unavailable("there is no host to connect to")))
}

/// The server at `endpoint`, or the primary that the sentinel there names.
fn at(
    config: &Config,
    endpoint: &Endpoint,
    options: &OpenOptions,
    deadline: &Deadline,
) -> Result<Connection, TableError> {
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
        return Err(unavailable(
            "the server is a node of a Redis Cluster, where namespaces can't share a key: use a \
             Redis of its own",
        ));
    }
    if settings.is_replica() {
        return Err(unavailable(format!(
            "the server at {endpoint} is a replica"
        )));
    }
    let name = format!(
        "redis {} at {endpoint}, database {}, {} replicas connected",
        settings.version(),
        config.database,
        settings.replicas()
    );
    connection.gate = DurabilityGate::new(name, options.accepts_best_effort());
    match connection
        .gate
        .refusal(settings.weakness(config.wait).as_slice())
    {
        None => Ok(connection),
        Some(reason) => Err(TableError::NotDurable {
            store: connection.gate.store().to_owned(),
            reason,
        }),
    }
}
