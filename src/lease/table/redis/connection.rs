//! One connection to a Redis.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use redis::{FromRedisValue, RedisError, RedisResult, Value};

use super::config::{Config, Endpoint};
use super::durability::Settings;
use super::script::Call;
use super::verdict::unavailable;
use crate::lease::connect::deadline::Deadline;
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::options::Hidden;
use crate::lease::table::TableError;

/// A connection that is logged in, with the name and durability of its server.
pub(super) struct Connection {
    driver: redis::Connection,
    /// When a script replied last.
    answered: Option<Instant>,
    pub(super) gate: DurabilityGate,
}

impl Connection {
    /// Connects, without a login.
    pub(super) fn to(
        config: &Config,
        endpoint: &Endpoint,
        deadline: &Deadline,
    ) -> Result<Self, TableError> {
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
            answered: None,
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
    ) -> Result<(), TableError> {
        let mut login = redis::cmd("AUTH");
        if let Some(user) = user {
            login.arg(user);
        }
        login.arg(password.expose());
        self.ask(&login, deadline).map_err(login_failure)
    }

    /// Whether the server answers. It may have closed an idle connection. A commit that is
    /// sent on a closed connection has an unknown outcome; a `PING` costs nothing.
    pub(super) fn is_alive(&mut self, deadline: &Deadline) -> bool {
        self.ask::<()>(&redis::cmd("PING"), deadline).is_ok()
    }

    /// Whether it has answered within this time.
    pub(super) fn answered_within(&self, time: Duration) -> bool {
        self.answered.is_some_and(|at| at.elapsed() < time)
    }

    /// Runs a script within [`limit`](Self::limit).
    pub(super) fn run(&mut self, script: &redis::Script, call: &Call) -> RedisResult<Value> {
        let reply = call.invocation(script).invoke(&mut self.driver)?;
        self.answered = Some(Instant::now());
        Ok(reply)
    }

    /// Waits until so many replicas have all that this connection wrote.
    ///
    /// # Errors
    /// If they don't, or can't be asked.
    pub(super) fn wait_for(
        &mut self,
        replicas: u64,
        deadline: &Deadline,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if replicas == 0 {
            return Ok(());
        }
        // Shorter than the socket's time-out, so that the reply arrives; and not 0, which means
        // for ever.
        let patience = deadline.left()?.mul_f32(0.9).as_millis().max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas).arg(patience.to_string());
        let confirmed: u64 = self.ask(&wait, deadline)?;
        if confirmed < replicas {
            return Err(format!("{confirmed} of {replicas} replicas confirmed the write").into());
        }
        Ok(())
    }

    pub(super) fn settings(&mut self, deadline: &Deadline) -> RedisResult<Settings> {
        let info: String = self.ask(&redis::cmd("INFO"), deadline)?;
        let mut settings = Settings::from_info(&info);
        let mut config = redis::cmd("CONFIG");
        config.arg("GET").arg("appendfsync");
        config.arg("no-appendfsync-on-rewrite");
        match self.ask::<Vec<(String, String)>>(&config, deadline) {
            Ok(values) => {
                for (name, value) in values {
                    settings.add_config(&name, value);
                }
                Ok(settings)
            }
            Err(error) if error.is_io_error() => Err(error),
            // Not permitted, or renamed: they stay hidden.
            Err(_) => Ok(settings),
        }
    }

    /// Lets every read and write on the socket end with the operation. A server
    /// that sends a reply in pieces can take longer, each piece within the limit.
    pub(super) fn limit(&self, deadline: &Deadline) -> RedisResult<()> {
        let left: Option<Duration> = Some(deadline.left()?);
        self.driver.set_read_timeout(left)?;
        self.driver.set_write_timeout(left)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

/// The error for a command that failed before any script.
pub(super) fn refused(error: RedisError) -> TableError {
    match error.code() {
        Some("NOAUTH") => TableError::Denied(Box::new(error)),
        _ => unavailable(error),
    }
}

/// The error for a failed login. It has only the code of the server's error: a server that
/// does not know `AUTH` repeats the arguments, and so the password.
fn login_failure(error: RedisError) -> TableError {
    if error.is_io_error() {
        return unavailable(error);
    }
    let code = error.code().unwrap_or("an error").to_owned();
    TableError::Denied(format!("the server refused the login with {code}").into())
}

/// Installs a TLS provider unless the process has one. The driver takes the
/// process's, and panics where there is none and the build has several.
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster, and then there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
