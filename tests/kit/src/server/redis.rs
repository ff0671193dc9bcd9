//! Redis servers of a test.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::clock::Clock;
use crate::eventually;
use crate::server::{self, Instance, TestServer};

/// A server on a port of its own, with its data in a directory of its own, that
/// keeps what it confirms: `appendfsync always`, no eviction.
#[derive(Debug)]
pub struct Redis {
    program: PathBuf,
    arguments: Vec<String>,
    password: Option<String>,
    instance: Instance,
}

impl Redis {
    /// Starts one, or none where none is installed, after saying that the
    /// test is skipped for it.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts one with more arguments, such as `["--maxmemory", "10mb"]`. They
    /// come last and so replace those that make it durable.
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        Self::prepare(arguments).map(Self::started)
    }

    /// Starts one that replicates `primary`, and waits until it has all.
    pub fn start_replica(primary: &Self) -> Option<Self> {
        let port = primary.port().to_string();
        let replica = Self::start_with(&["--replicaof", "127.0.0.1", &port])?;
        eventually("the replica is online", || primary.online_replicas() > 0);
        primary.replicate();
        Some(replica)
    }

    /// Writes something, and waits until every replica has it and all before.
    pub fn replicate(&self) {
        let replicas = self.online_replicas();
        // `WAIT` counts the replicas that have what its own connection wrote.
        let confirmed: usize = uninterrupted(|| {
            let mut connection = self.connect()?;
            redis::cmd("SET")
                .arg("replicated")
                .arg("1")
                .exec(&mut connection)?;
            redis::cmd("WAIT")
                .arg(replicas)
                .arg(60_000)
                .query(&mut connection)
        })
        .unwrap();
        assert!(confirmed >= replicas, "{confirmed} of {replicas}");
    }

    fn prepare(arguments: &[&str]) -> Option<Self> {
        let program = server::find("redis-server", "redis-server")?;
        let password = arguments.iter().position(|a| *a == "--requirepass");
        Some(Self {
            program,
            arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
            password: password.map(|at| arguments[at + 1].to_owned()),
            instance: Instance::new(server::data_directory(), None),
        })
    }

    fn started(mut self) -> Self {
        self.restart();
        self
    }

    pub fn promote(&self) {
        self.command(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Makes it a replica of `primary`, which takes everything from there.
    pub fn follow(&self, primary: &Self) {
        self.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
        eventually("the link is up", || {
            self.info("replication").contains("master_link_status:up")
        });
    }

    pub fn online_replicas(&self) -> usize {
        self.info("replication").matches("state=online").count()
    }

    pub fn info(&self, section: &str) -> String {
        match self.command(&["INFO", section]) {
            redis::Value::BulkString(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn command(&self, words: &[&str]) -> redis::Value {
        let reply = self.try_command(words);
        reply.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn try_command(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        try_command(&self.url(), self.password.as_deref(), words)
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        connect(&self.url(), self.password.as_deref())
    }
}

fn try_command(
    url: &str,
    password: Option<&str>,
    words: &[&str],
) -> redis::RedisResult<redis::Value> {
    let (name, arguments) = words.split_first().expect("a command has a name");
    uninterrupted(|| {
        let mut connection = connect(url, password)?;
        redis::cmd(name).arg(arguments).query(&mut connection)
    })
}

fn connect(url: &str, password: Option<&str>) -> redis::RedisResult<redis::Connection> {
    // Turns a hang into a failure.
    let patience = Duration::from_secs(90);
    let client = redis::Client::open(url)?;
    let mut connection = client.get_connection_with_timeout(patience)?;
    connection.set_read_timeout(Some(patience))?;
    if let Some(password) = password {
        redis::cmd("AUTH").arg(password).exec(&mut connection)?;
    }
    Ok(connection)
}

/// Sends again what an interruption ended: a read with a time limit is not restarted
/// by the kernel when the process was stopped and goes on, or the machine was (signal(7)).
/// All that tests send may be done twice.
fn uninterrupted<T>(mut send: impl FnMut() -> redis::RedisResult<T>) -> redis::RedisResult<T> {
    let interrupted = io::Error::from_raw_os_error(libc::EINTR).to_string();
    loop {
        match send() {
            Err(error) if error.is_io_error() && error.to_string() == interrupted => {}
            done => return done,
        }
    }
}

impl TestServer for Redis {
    fn url_through(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }

    fn start_by(clock: Option<Clock>) -> Option<Self> {
        let mut redis = Self::prepare(&[])?;
        redis.instance.clock = clock;
        Some(redis.started())
    }

    fn clear(&self) {
        self.command(&["FLUSHALL"]);
        self.command(&["SCRIPT", "FLUSH"]);
    }

    fn damage(&self, namespace: &str, block: u64) {
        // No value of a block, or no UTF-8.
        let value: &[u8] = match block % 2 {
            0 => b"{",
            _ => b"{\xff}",
        };
        let mut set = redis::cmd("HSET");
        set.arg(format!("ringflake:{{{namespace}}}"));
        set.arg(format!("block/{block:020}")).arg(value);
        uninterrupted(|| set.exec(&mut self.connect()?)).unwrap();
    }

    fn restart(&mut self) {
        let mut command = Command::new(&self.program);
        command
            .args(["--bind", "127.0.0.1", "--port", &self.port().to_string()])
            .arg("--dir")
            .arg(self.instance.directory.path())
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--save", "", "--maxmemory-policy", "noeviction"])
            // A replica need not wait for others before it is served.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(&self.arguments);
        let (url, password) = (self.url(), self.password.clone());
        let answers = || try_command(&url, password.as_deref(), &["PING"]).is_ok();
        self.instance.launch(command, answers);
    }

    fn instance(&self) -> &Instance {
        &self.instance
    }

    fn instance_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }
}
