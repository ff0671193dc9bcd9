//! Which server is the primary, as the sentinels say.
//!
//! A sentinel may be behind: it answers with the primary that it knows. So the server
//! found there is asked for its role, and if it is no primary the next sentinel is
//! asked.

use redis::{RedisResult, Value};

use super::config::{Config, Endpoint, Sentinel};
use super::connection::{Connection, refused, unavailable};
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::url::Host;
use crate::lease::error::StoreError;

/// Asks the sentinel at `endpoint` for the primary.
///
/// # Errors
/// [`StoreError::Unavailable`], also when it knows none, or one that may not be
/// spoken to in plain; [`StoreError::Denied`].
pub(super) fn ask(
    config: &Config,
    sentinel: &Sentinel,
    endpoint: &Endpoint,
    deadline: &Deadline,
) -> Result<Endpoint, StoreError> {
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
        Some((name, port)) => config.found(Host { name, port }).map_err(unavailable_since),
        None => Err(unavailable_since(format!(
            "the sentinel at {endpoint} knows no primary of the name {:?}",
            sentinel.name
        ))),
    }
}

/// Makes sure that this is a primary.
///
/// # Errors
/// [`StoreError::Unavailable`] if not.
pub(super) fn verify(connection: &mut Connection, deadline: &Deadline) -> Result<(), StoreError> {
    let answer = connection.ask(&redis::cmd("ROLE"), deadline);
    let role = match answer.map_err(refused)? {
        Value::Array(parts) => parts.into_iter().next(),
        _ => None,
    };
    match role {
        Some(Value::BulkString(role)) if role == b"master" => Ok(()),
        _ => Err(unavailable_since(format!(
            "{} is no primary, though a sentinel says so",
            connection.gate.store()
        ))),
    }
}

fn unavailable_since(text: String) -> StoreError {
    StoreError::Unavailable {
        source: text.into(),
    }
}
