//! One connection to a Redis.

use std::fmt;
use std::time::Duration;

use redis::{FromRedisValue, RedisError, RedisResult};

use super::config::{Config, Endpoint};
use super::durability::Settings;
use super::script::{self, Answer, Script};
use super::verdict::{Verdict, verdict};
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::options::Hidden;

/// A connection that is logged in, with the name and durability of its server.
pub(super) struct Connection {
    driver: redis::Connection,
    pub(super) gate: DurabilityGate,
}

impl Connection {
    /// A connection on which nothing was said.
    pub(super) fn to(
        config: &Config,
        endpoint: &Endpoint,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        if config.is_tls() {
            install_tls_provider();
        }
        let client = config.client(endpoint).map_err(unavailable)?;
        let left = deadline.left().map_err(unavailable)?;
        let driver = client
            .get_connection_with_timeout(left)
            .map_err(unavailable)?;
        Ok(Self {
            driver,
            // Until its settings are known.
            gate: DurabilityGate::new(format!("redis at {endpoint}"), false),
        })
    }

    /// Sends a command that is no script.
    pub(super) fn ask<T: FromRedisValue>(
        &mut self,
        command: &redis::Cmd,
        deadline: &Deadline,
    ) -> RedisResult<T> {
        self.limit(deadline)?;
        command.query(&mut self.driver)
    }

    pub(super) fn log_in(
        &mut self,
        user: Option<&str>,
        password: &Hidden,
        deadline: &Deadline,
    ) -> Result<(), StoreError> {
        let mut login = redis::cmd("AUTH");
        if let Some(user) = user {
            login.arg(user);
        }
        login.arg(password.expose());
        self.ask(&login, deadline).map_err(login_failure)
    }

    /// Whether the server still answers. It may have closed a connection that
    /// nobody used for a while; finding that out here costs nothing, where the
    /// script's request would be lost and its fate unknown.
    pub(super) fn is_alive(&mut self, deadline: &Deadline) -> bool {
        let ping = |connection: &mut Self| -> RedisResult<()> {
            connection.limit(deadline)?;
            redis::cmd("PING").exec(&mut connection.driver)
        };
        ping(self).is_ok()
    }

    /// Runs a script, and waits until replicas have its writes.
    ///
    /// `wait` is how many of them, or none for all that are online.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Ambiguous`],
    /// [`StoreError::Corrupt`]. The connection must not be used after one.
    pub(super) fn run(
        &mut self,
        script: Script,
        namespace: &Namespace,
        arguments: &[String],
        wait: Option<u64>,
        deadline: &Deadline,
    ) -> Result<Answer, StoreError> {
        self.limit(deadline).map_err(unavailable)?;
        let code = redis::Script::new(script.source());
        let mut call = code.prepare_invoke();
        for key in script::keys(script, namespace) {
            call.key(key);
        }
        let required = if script.writes() { wait } else { None };
        for argument in script::arguments(namespace, required.unwrap_or(0)) {
            call.arg(argument);
        }
        for argument in arguments {
            call.arg(argument);
        }
        let reply = call
            .invoke(&mut self.driver)
            .map_err(|error| failure(script, error))?;
        let answer = Answer::parse(reply)?;
        if answer.has_written() {
            let replicas = wait.unwrap_or(answer.online);
            self.wait_for(replicas, script, deadline)?;
        }
        Ok(answer)
    }

    /// Waits until so many replicas have all that this connection wrote.
    fn wait_for(
        &mut self,
        replicas: u64,
        script: Script,
        deadline: &Deadline,
    ) -> Result<(), StoreError> {
        if replicas == 0 {
            return Ok(());
        }
        let mut wait = || -> RedisResult<u64> {
            self.limit(deadline)?;
            // Less than what the socket waits, so that there is an answer; and
            // not 0, which means for ever.
            let patience = deadline.left()?.mul_f32(0.9).as_millis().max(1);
            redis::cmd("WAIT")
                .arg(replicas)
                .arg(patience.to_string())
                .query(&mut self.driver)
        };
        let ambiguous = |source| StoreError::Ambiguous {
            operation: script.name(),
            source,
        };
        let confirmed = wait().map_err(|error| ambiguous(Box::new(error)))?;
        if confirmed < replicas {
            let text = format!("{confirmed} of {replicas} replicas confirmed the write");
            return Err(ambiguous(text.into()));
        }
        Ok(())
    }

    pub(super) fn settings(&mut self, deadline: &Deadline) -> RedisResult<Settings> {
        self.limit(deadline)?;
        let info: String = redis::cmd("INFO").query(&mut self.driver)?;
        let mut settings = Settings::from_info(&info);
        for name in ["appendfsync", "no-appendfsync-on-rewrite"] {
            self.limit(deadline)?;
            let reply: RedisResult<Vec<String>> = redis::cmd("CONFIG")
                .arg("GET")
                .arg(name)
                .query(&mut self.driver);
            match reply {
                Ok(pair) => {
                    if let [_, value] = &pair[..] {
                        settings.add_config(name, value.clone());
                    }
                }
                Err(error) if error.is_io_error() => return Err(error),
                // Not permitted, or renamed: it stays hidden.
                Err(_) => {}
            }
        }
        Ok(settings)
    }

    /// Lets every read and write on the socket end with the operation. A server
    /// that sends a reply in pieces can take longer, each piece within the limit.
    fn limit(&self, deadline: &Deadline) -> RedisResult<()> {
        let left: Option<Duration> = Some(deadline.left()?);
        self.driver.set_read_timeout(left)?;
        self.driver.set_write_timeout(left)
    }
}

impl Answer {
    fn has_written(&self) -> bool {
        matches!(
            &*self.tag,
            "made" | "granted" | "renewed" | "released" | "raised" | "repaired" | "forgotten"
        )
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

pub(super) fn unavailable(error: impl Into<RedisError>) -> StoreError {
    StoreError::Unavailable {
        source: Box::new(error.into()),
    }
}

/// A failure of a command before any script.
pub(super) fn refused(error: RedisError) -> StoreError {
    match error.code() {
        Some("NOAUTH") => StoreError::Denied {
            source: Box::new(error),
        },
        _ => unavailable(error),
    }
}

/// A failure after the script was sent.
fn failure(script: Script, error: RedisError) -> StoreError {
    match verdict(&error) {
        Verdict::Corrupt => StoreError::Corrupt {
            detail: "a key of the namespace is of another kind".into(),
            source: Some(Box::new(error)),
        },
        Verdict::Unknown if script.writes() => StoreError::Ambiguous {
            operation: script.name(),
            source: Box::new(error),
        },
        Verdict::Refused | Verdict::Unknown => unavailable(error),
    }
}

/// A server on which AUTH has another name repeats the arguments in its error, so
/// that error goes no further than its code.
fn login_failure(error: RedisError) -> StoreError {
    if error.is_io_error() {
        return unavailable(error);
    }
    let code = error.code().unwrap_or("an error").to_owned();
    StoreError::Denied {
        source: format!("the server refused the login with {code}").into(),
    }
}

/// Installs a TLS provider unless the process has one. The driver takes the
/// process's, and panics where there is none and the build has several.
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may be first; then there is one, and that is enough.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
