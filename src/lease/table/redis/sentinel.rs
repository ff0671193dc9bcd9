//! Finds the primary through sentinels.
//!
//! A sentinel may be stale and name a former primary. So the server's `ROLE` is checked, and
//! the next sentinel is asked if the server is no primary.

use redis::{RedisResult, Value};

use super::config::{Config, Endpoint, Sentinel};
use super::connection::{Connection, refused};
use super::verdict::unavailable;
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::url::Host;
use crate::lease::table::TableError;

/// Asks the sentinel at `endpoint` for the primary.
///
/// # Errors
/// [`TableError::Unavailable`], also if it knows no primary, or one that needs TLS;
/// [`TableError::Denied`].
pub(super) fn ask(
    config: &Config,
    sentinel: &Sentinel,
    endpoint: &Endpoint,
    deadline: &Deadline,
) -> Result<Endpoint, TableError> {
    let mut connection = Connection::to(config, endpoint, deadline)?;
    if let Some(password) = &sentinel.password {
        let password = password.get().map_err(unavailable)?;
        if let Some(password) = password {
            connection.log_in(None, &password, deadline)?;
        }
    }
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(&sentinel.name);
    let answer: RedisResult<Option<(String, u16)>> = connection.ask(&question, deadline);
    match answer.map_err(refused)? {
        Some((name, port)) => config.found(Host { name, port }).map_err(unavailable),
        None => Err(unavailable(format!(
            "the sentinel at {endpoint} knows no primary of the name {:?}",
            sentinel.name
        ))),
    }
}

/// Verifies that this is a primary.
///
/// # Errors
/// [`TableError::Unavailable`] if not.
pub(super) fn verify(connection: &mut Connection, deadline: &Deadline) -> Result<(), TableError> {
    let answer = connection.ask(&redis::cmd("ROLE"), deadline);
    let role = match answer.map_err(refused)? {
        Value::Array(parts) => parts.into_iter().next(),
        _ => None,
    };
    match role {
        Some(Value::BulkString(role)) if role == b"master" => Ok(()),
        _ => Err(unavailable(format!(
            "{} is no primary, though a sentinel says so",
            connection.gate.store()
        ))),
    }
}
