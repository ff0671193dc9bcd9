//! A connection to a primary. Each operation is one script.
//!
//! The primary may be found through sentinels. A sentinel may be stale and name a former
//! primary. So the server's `ROLE` is checked, and the next sentinel is asked if the server is
//! no primary.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use redis::{FromRedisValue, RedisError, RedisResult, Value};

use super::config::{Config, Sentinel};
use super::durability::Settings;
use super::script::{self, Call, Entries, Reply};
use super::verdict::{failure, refused};
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::connect::durability::DurabilityGate;
use crate::lease::store::connect::tls;
use crate::lease::store::connect::url::{Endpoint, Host};
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::failure::{Cause, Failure};
use crate::lease::store::table::session::{Applied, Session, one_of};
use crate::lease::store::table::{Key, Query, Snapshot, StoreTime, Txn};

/// A connection that is logged in, with the name and durability of its server.
#[allow(
    missing_debug_implementations,
    reason = "as of the driver's connection"
)]
pub struct RedisSession {
    driver: redis::Connection,
    endpoint: Endpoint,
    database: u32,
    wait: Option<u64>,
    gate: DurabilityGate,
    deadline: Deadline,
    /// Values of the last snapshot that are not UTF-8.
    raw: HashMap<Key, Vec<u8>>,
}

impl RedisSession {
    /// Connects, without a login.
    fn to(config: &Config, endpoint: &Endpoint, deadline: Deadline) -> Result<Self, Failure> {
        if config.is_tls() {
            tls::install_provider();
        }
        let client = config.client(endpoint).map_err(Failure::not_done)?;
        let left = deadline.left().map_err(Failure::not_done)?;
        let driver = client.get_connection_with_timeout(left);
        Ok(Self {
            driver: driver.map_err(Failure::not_done)?,
            endpoint: endpoint.clone(),
            database: config.database,
            wait: config.wait,
            // Until its settings are known.
            gate: DurabilityGate::new(String::new(), config.accepts_best_effort),
            deadline,
            raw: HashMap::new(),
        })
    }

    /// The server at `endpoint`, or the primary that the sentinel there names.
    fn at(config: &Config, endpoint: &Endpoint, deadline: Deadline) -> Result<Self, Failure> {
        let named = match &config.sentinel {
            None => None,
            Some(sentinel) => Some(Self::ask_sentinel(config, sentinel, endpoint, deadline)?),
        };
        let mut session = Self::to(config, named.as_ref().unwrap_or(endpoint), deadline)?;
        if let Some(password) = config.password.get().map_err(Failure::not_done)? {
            session.log_in(config.user.as_deref(), &password)?;
        }
        if named.is_some() {
            session.verify_role()?;
        }
        if config.database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(config.database);
            session.ask::<()>(&select).map_err(refused)?;
        }
        session.inspect()?;
        Ok(session)
    }

    /// Asks the sentinel at `endpoint` for the primary.
    ///
    /// # Errors
    /// Also if it knows no primary, or one that needs TLS.
    fn ask_sentinel(
        config: &Config,
        sentinel: &Sentinel,
        endpoint: &Endpoint,
        deadline: Deadline,
    ) -> Result<Endpoint, Failure> {
        let mut session = Self::to(config, endpoint, deadline)?;
        if let Some(password) = &sentinel.password
            && let Some(password) = password.get().map_err(Failure::not_done)?
        {
            session.log_in(None, &password)?;
        }
        let mut question = redis::cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&sentinel.name);
        let answer: Option<(String, u16)> = session.ask(&question).map_err(refused)?;
        let Some((name, port)) = answer else {
            return Err(Failure::not_done(format!(
                "the sentinel at {endpoint} knows no primary of the name {:?}",
                sentinel.name
            )));
        };
        config.found(Host { name, port }).map_err(Failure::not_done)
    }

    /// Verifies that this is a primary.
    fn verify_role(&mut self) -> Result<(), Failure> {
        let role = match self.ask(&redis::cmd("ROLE")).map_err(refused)? {
            Value::Array(parts) => parts.into_iter().next(),
            _ => None,
        };
        match role {
            Some(Value::BulkString(role)) if role == b"master" => Ok(()),
            _ => Err(Failure::not_done(format!(
                "redis at {} is no primary, though a sentinel says so",
                self.endpoint
            ))),
        }
    }

    /// Sends a command that is no script.
    fn ask<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> RedisResult<T> {
        self.limit()?;
        command.query(&mut self.driver)
    }

    fn log_in(&mut self, user: Option<&str>, password: &Hidden) -> Result<(), Failure> {
        let mut login = redis::cmd("AUTH");
        if let Some(user) = user {
            login.arg(user);
        }
        login.arg(password.expose());
        self.ask(&login).map_err(login_failure)
    }

    /// Waits until so many replicas have all that this connection wrote.
    fn wait_for(&mut self, replicas: u64) -> Result<(), Cause> {
        if replicas == 0 {
            return Ok(());
        }
        // Shorter than the socket's time-out, so that the reply arrives; and not 0, which means
        // for ever.
        let patience = self.deadline.left()?.mul_f32(0.9).as_millis().max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas).arg(patience.to_string());
        let confirmed: u64 = self.ask(&wait)?;
        if confirmed < replicas {
            return Err(format!("{confirmed} of {replicas} replicas confirmed the write").into());
        }
        Ok(())
    }

    fn settings(&mut self) -> RedisResult<Settings> {
        let info: String = self.ask(&redis::cmd("INFO"))?;
        let mut settings = Settings::from_info(&info);
        let mut config = redis::cmd("CONFIG");
        config.arg("GET").arg("appendfsync");
        config.arg("no-appendfsync-on-rewrite");
        match self.ask::<Vec<(String, String)>>(&config) {
            Ok(values) => {
                settings.add_config(values);
                Ok(settings)
            }
            Err(error) if error.is_io_error() => Err(error),
            // Not permitted, or renamed: they stay hidden.
            Err(_) => Ok(settings),
        }
    }

    /// Lets every read and write on the socket end with the operation. A server
    /// that sends a reply in pieces can take longer, each piece within the limit.
    fn limit(&self) -> RedisResult<()> {
        let left: Option<Duration> = Some(self.deadline.left()?);
        self.driver.set_read_timeout(left)?;
        self.driver.set_write_timeout(left)
    }

    fn snapshot(&mut self, entries: Entries) -> Snapshot {
        self.raw.clear();
        let mut texts = BTreeMap::new();
        for (key, value) in entries.values {
            let text = String::from_utf8(value).unwrap_or_else(|error| {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.raw.insert(key.clone(), error.into_bytes());
                text
            });
            texts.insert(key, text);
        }
        Snapshot {
            entries: texts,
            complete: entries.is_complete,
            time: Ok(StoreTime::exactly(entries.unix_ms)),
            incarnation: Incarnation::new(entries.incarnation),
        }
    }

    /// The bytes of a value that was read as this text.
    fn bytes_of<'a>(&'a self, key: &Key, text: &'a str) -> &'a [u8] {
        let raw = self.raw.get(key);
        let raw = raw.filter(|raw| String::from_utf8_lossy(raw) == text);
        raw.map_or(text.as_bytes(), Vec::as_slice)
    }

    /// The error for a reply that is not the expected one. Nothing was written.
    fn refusal(&self, reply: &Reply) -> Failure {
        Failure::not_done(match reply {
            Reply::TooFew(online) => format!(
                "{online} replicas are online, where wait is {}",
                self.wait.unwrap_or(0)
            ),
            Reply::Replica => "the server is a replica".to_owned(),
            Reply::Anonymous => "INFO shows no run_id or no master_replid".to_owned(),
            Reply::Done(_) | Reply::Snapshot(_) => "the script returned another reply".to_owned(),
        })
    }
}

impl Session for RedisSession {
    type Server = Config;

    /// A commit that is sent on a closed connection is in doubt; a `PING` costs nothing.
    const TRUSTED: [Duration; 2] = [Duration::ZERO, Duration::from_millis(100)];

    const IS_COSTLY: bool = false;

    fn server(url: &str, options: &OpenOptions) -> Result<Config, OpenError> {
        Config::from_url(url, options)
    }

    fn connect(config: &Config, deadline: Deadline) -> Result<Self, Failure> {
        one_of(&config.endpoints, deadline, |endpoint, deadline| {
            Self::at(config, endpoint, deadline)
        })
    }

    fn start(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    fn ping(&mut self, patience: Duration) -> Result<(), Failure> {
        self.deadline = Deadline::after(patience);
        self.ask(&redis::cmd("PING")).map_err(Failure::not_done)
    }

    fn inspect(&mut self) -> Result<(), Failure> {
        let settings = self.settings().map_err(refused)?;
        let endpoint = &self.endpoint;
        if settings.is_cluster() {
            return Err(Failure::not_done(
                "the server is a node of a Redis Cluster, where namespaces can't share a key: \
                 use a Redis of its own",
            ));
        }
        if settings.is_replica() {
            let text = format!("the server at {endpoint} is a replica");
            return Err(Failure::not_done(text));
        }
        let name = format!(
            "redis {} at {endpoint}, database {}, {} replicas connected",
            settings.version(),
            self.database,
            settings.replicas()
        );
        self.gate = DurabilityGate::new(name, self.gate.accepts_best_effort());
        Failure::admit(&mut self.gate, &settings.weaknesses(self.wait))
    }

    fn gate(&self) -> &DurabilityGate {
        &self.gate
    }

    fn read(&mut self, query: &Query) -> Result<Snapshot, Failure> {
        let call = Call::read(query);
        self.limit().map_err(Failure::not_done)?;
        let reply = call.run(&script::READ, &mut self.driver);
        match call.parse(reply.map_err(failure)?) {
            Ok(Reply::Snapshot(entries)) => Ok(self.snapshot(entries)),
            Ok(other) => Err(self.refusal(&other)),
            Err(error) => Err(Failure::corrupt(
                "the reply is not one of ringflake's script",
                Some(error.into()),
            )),
        }
    }

    fn apply(&mut self, txn: &Txn, instead: &Query) -> Result<Applied, Failure> {
        let bytes_of = |key: &Key, text| self.bytes_of(key, text);
        let call = Call::commit(txn, bytes_of, self.wait.unwrap_or(0), instead);
        self.limit().map_err(Failure::not_done)?;
        let reply = call.run(&script::COMMIT, &mut self.driver);
        match call.parse(reply.map_err(failure)?) {
            Ok(Reply::Done(online)) => {
                let replicas = self.wait.unwrap_or(online);
                self.wait_for(replicas).map_err(Failure::Unknown)?;
                Ok(Applied::Done)
            }
            Ok(Reply::Snapshot(entries)) => Ok(Applied::Conflict(self.snapshot(entries))),
            Ok(other) => Err(self.refusal(&other)),
            Err(error) => Err(Failure::Unknown(error.into())),
        }
    }
}

/// The error for a failed login. It has only the code of the server's error: a server that
/// does not know `AUTH` repeats the arguments, and so the password.
fn login_failure(error: RedisError) -> Failure {
    if error.is_io_error() {
        return Failure::not_done(error);
    }
    let code = error.code().unwrap_or("an error").to_owned();
    Failure::Denied(format!("the server refused the login with {code}").into())
}
