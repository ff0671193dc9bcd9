//! Redis servers of a test.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::clock::Clock;
use super::port;
use crate::eventually;
use crate::server::{self, Reachable, Reusable, Server, TestServer};

/// A server on a port of its own, with its data in a directory of its own, that
/// keeps what it confirms: `appendfsync always`, no eviction.
#[derive(Debug)]
pub struct Redis {
    program: PathBuf,
    directory: TempDir,
    port: u16,
    arguments: Vec<String>,
    clock: Option<Clock>,
    password: Option<String>,
    server: Option<Server>,
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

    /// Starts a node of a cluster.
    pub fn start_node() -> Option<Self> {
        let mut node = Self::prepare(&["--cluster-enabled", "yes"])?;
        node.port = port::free_port_of_a_node();
        Some(node.started())
    }

    /// Starts one that replicates `primary`, and waits until it has all.
    pub fn start_replica(primary: &Self) -> Option<Self> {
        let port = primary.port.to_string();
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
            directory: server::data_directory(),
            port: server::free_port(),
            arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
            clock: None,
            password: password.map(|at| arguments[at + 1].to_owned()),
            server: None,
        })
    }

    fn started(mut self) -> Self {
        self.restart();
        self
    }

    /// The running process, for signals.
    pub fn process(&self) -> &Server {
        self.server.as_ref().expect("it is running")
    }

    /// Makes a replica a primary.
    pub fn promote(&self) {
        self.command(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Makes it a replica of `primary`, which takes everything from there.
    pub fn follow(&self, primary: &Self) {
        self.command(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
        eventually("the link is up", || {
            self.info("replication").contains("master_link_status:up")
        });
    }

    /// How many replicas have all that there is and said so lately.
    pub fn online_replicas(&self) -> usize {
        self.info("replication").matches("state=online").count()
    }

    pub fn info(&self, section: &str) -> String {
        match self.command(&["INFO", section]) {
            redis::Value::BulkString(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a command, on a connection of its own.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> redis::Value {
        let reply = self.try_command(words);
        reply.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sets a field of a hash to bytes, which may be no text.
    pub fn set_field(&self, hash: &str, field: &str, value: &[u8]) {
        let set: redis::RedisResult<()> = uninterrupted(|| {
            let mut connection = self.connect()?;
            let mut command = redis::cmd("HSET");
            command.arg(hash).arg(field).arg(value);
            command.query(&mut connection)
        });
        set.unwrap_or_else(|error| panic!("HSET {hash} {field}: {error}"));
    }

    fn try_command(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let (name, arguments) = words.split_first().expect("a command has a name");
        uninterrupted(|| {
            let mut connection = self.connect()?;
            redis::cmd(name).arg(arguments).query(&mut connection)
        })
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        // Turns a hang into a failure.
        let patience = Duration::from_secs(90);
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_connection_with_timeout(patience)?;
        connection.set_read_timeout(Some(patience))?;
        if let Some(password) = &self.password {
            redis::cmd("AUTH").arg(password).exec(&mut connection)?;
        }
        Ok(connection)
    }
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

impl Reusable for Redis {
    fn start() -> Option<Self> {
        Self::start()
    }

    fn clear(&self) {
        self.command(&["FLUSHALL"]);
        self.command(&["SCRIPT", "FLUSH"]);
    }
}

impl Reachable for Redis {
    fn port(&self) -> u16 {
        self.port
    }

    fn url_through(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }
}

impl TestServer for Redis {
    fn start_with_clock(clock: Clock) -> Option<Self> {
        let mut redis = Self::prepare(&[])?;
        redis.clock = Some(clock);
        Some(redis.started())
    }

    fn restart(&mut self) {
        assert!(self.server.is_none(), "it is running");
        let mut command = Command::new(&self.program);
        let directory = self.directory.path();
        command
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .arg("--dir")
            .arg(directory)
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--save", "", "--maxmemory-policy", "noeviction"])
            // A replica need not wait for others before it is served.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(&self.arguments);
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        let log = directory.join("log");
        let answers = || self.try_command(&["PING"]).is_ok();
        self.server = Some(Server::start(command, &log, answers));
    }

    fn running(&mut self) -> &mut Option<Server> {
        &mut self.server
    }

    fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("it has the machine's clock")
    }

    fn processes(&self) -> Vec<i32> {
        vec![self.process().id() as i32]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
    use std::thread;

    use super::*;

    static INTERRUPTIONS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: libc::c_int) {
        INTERRUPTIONS.fetch_add(1, SeqCst);
    }

    /// A handler without `SA_RESTART`, so that each signal ends the read that waits.
    fn count_signals() {
        // SAFETY: all zeros are a `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = count as *const () as usize;
        // SAFETY: the handler only counts.
        let set =
            unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    }

    #[test]
    fn a_command_that_a_signal_interrupts_is_sent_again() {
        let Some(redis) = Redis::start() else { return };
        count_signals();
        // SAFETY: it has no precondition.
        let waiting = unsafe { libc::pthread_self() };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Two, since the first may come before the read. No more: each one ends the
                // command, which then starts again.
                while INTERRUPTIONS.load(SeqCst) < 2 && !done.load(SeqCst) {
                    thread::sleep(Duration::from_millis(50));
                    // SAFETY: the thread waits for this scope's end.
                    unsafe { libc::pthread_kill(waiting, libc::SIGUSR2) };
                }
            });
            let mut replies = Vec::new();
            // A minute at most.
            while INTERRUPTIONS.load(SeqCst) < 2 && replies.len() < 200 {
                replies.push(redis.try_command(&["BLPOP", "nothing", "0.3"]));
            }
            done.store(true, SeqCst);
            for reply in replies {
                assert_eq!(reply, Ok(redis::Value::Nil));
            }
        });
        assert!(INTERRUPTIONS.load(SeqCst) >= 2, "no signal came");
    }
}
