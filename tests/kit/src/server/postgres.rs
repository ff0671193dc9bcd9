//! A PostgreSQL server of a test's own, which can be stopped, killed, copied and
//! promoted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::clock::Clock;
use super::template;
use crate::eventually;
use crate::server::{
    PASSWORD, Reachable, Reusable, Server, TestServer, as_user, data_directory, find, free_port,
};

const PACKAGE: &str = "postgresql";
/// The user that runs the server if the test is root, and its first role.
const USER: &str = "postgres";

/// A server in a directory of its own. It listens on 127.0.0.1 and keeps port
/// and data through [`restart`](Self::restart). Gone when dropped.
///
/// A role `app` with the password [`PASSWORD`] owns the database `app`;
/// it has no other privilege.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    binaries: PathBuf,
    port: u16,
    clock: Option<Clock>,
    server: Option<Server>,
}

impl Postgres {
    /// A new server; none where PostgreSQL is not installed, after saying that
    /// the test is skipped for it.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    fn start_with(clock: Option<Clock>) -> Option<Self> {
        // Where it really is, its companions are.
        let initdb = fs::canonicalize(find("initdb", PACKAGE)?).unwrap();
        let binaries = initdb.parent().unwrap().to_owned();
        let mut postgres = Self {
            directory: data_directory(),
            binaries,
            port: free_port(),
            clock,
            server: None,
        };
        let data = postgres.data();
        template::fill("postgres", &initdb, &data, || postgres.prepare());
        Some(postgres.started())
    }

    /// Makes the data, with the role and the database for tests.
    fn prepare(&mut self) {
        let secret = self.directory.path().join("password");
        fs::write(&secret, PASSWORD).unwrap();
        self.run(
            "initdb",
            &[
                "--no-sync",
                "--no-locale",
                "--encoding=UTF8",
                "--auth=scram-sha-256",
            ],
            &[
                ("--username", Path::new(USER)),
                ("--pwfile", &secret),
                ("--pgdata", &self.data()),
            ],
        );
        self.restart();
        self.admin()
            .execute(&format!("CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'"));
        self.admin().execute("CREATE DATABASE app OWNER app");
        self.stop();
    }

    /// Where the data lie, for settings and certificates.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Where its Unix socket is.
    pub fn sockets(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// A connection to the database `app` as the superuser.
    pub fn admin(&self) -> Session {
        let app = Session::try_open(self.port, USER, "app");
        app.unwrap_or_else(|_| Session::open(self.port, USER, USER))
    }

    /// A connection to the database `app` as the role that owns it.
    pub fn owner(&self) -> Session {
        Session::open(self.port, "app", "app")
    }

    /// Adds lines to the configuration, for the next start or reload.
    pub fn configure(&self, lines: &str) {
        let path = self.data().join("postgresql.auto.conf");
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str(lines);
        text.push('\n');
        fs::write(path, text).unwrap();
    }

    /// Reads the configuration again, and waits until `setting` is `value`.
    pub fn reload(&self, setting: &str, value: &str) {
        let admin = self.admin();
        admin.execute("SELECT pg_reload_conf()");
        eventually("the setting has this value", || {
            admin.value(&format!("SHOW {setting}")) == value
        });
    }

    /// A copy that follows this server.
    pub fn standby(&self) -> Self {
        let standby = Self {
            directory: data_directory(),
            binaries: self.binaries.clone(),
            port: free_port(),
            clock: None,
            server: None,
        };
        let from = format!(
            "host=127.0.0.1 port={} user={USER} password={PASSWORD}",
            self.port
        );
        standby.run(
            "pg_basebackup",
            &["--write-recovery-conf", "--checkpoint=fast", "--no-sync"],
            &[
                ("--dbname", Path::new(&from)),
                ("--pgdata", &standby.data()),
            ],
        );
        standby.started()
    }

    /// Makes a standby a server of its own.
    pub fn promote(&self) {
        self.admin().execute("SELECT pg_promote()");
    }

    /// Runs one of the server's programs to its end.
    pub fn run(&self, program: &str, flags: &[&str], options: &[(&str, &Path)]) -> String {
        let mut command = Command::new(self.binaries.join(program));
        command.current_dir(self.directory.path()).args(flags);
        for (name, value) in options {
            command.arg(name).arg(value);
        }
        command.env("PGPASSWORD", PASSWORD);
        as_user(&mut command, USER);
        let done = command.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(done.status.success(), "{program}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    fn started(mut self) -> Self {
        self.server = Some(self.launch());
        self
    }

    fn launch(&self) -> Server {
        let mut command = Command::new(self.binaries.join("postgres"));
        command.arg("-D").arg(self.data());
        let sockets = self.directory.path().display();
        for setting in [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={sockets}"),
            "shared_buffers=4MB".to_owned(),
            "max_connections=60".to_owned(),
            // Its transactions would be taken for those of a store.
            "autovacuum=off".to_owned(),
        ] {
            command.args(["-c", &setting]);
        }
        command.current_dir(self.directory.path());
        as_user(&mut command, USER);
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        let log = self.directory.path().join("log");
        let is_ready = || Session::try_open(self.port, USER, USER).is_ok();
        Server::start(command, &log, is_ready)
    }
}

impl Reusable for Postgres {
    fn start() -> Option<Self> {
        Self::start()
    }

    fn clear(&self) {
        let admin = Session::open(self.port, USER, USER);
        admin.execute("DROP DATABASE app WITH (FORCE)");
        admin.execute("CREATE DATABASE app OWNER app");
    }
}

impl Reachable for Postgres {
    fn port(&self) -> u16 {
        self.port
    }

    fn url_through(&self, port: u16) -> String {
        format!("postgres://app:{PASSWORD}@127.0.0.1:{port}/app")
    }
}

impl TestServer for Postgres {
    fn start_with_clock(clock: Clock) -> Option<Self> {
        Self::start_with(Some(clock))
    }

    fn stop(&mut self) {
        let server = self.server.take().unwrap();
        // Fast: the polite way waits for clients to leave.
        server.signal(libc::SIGINT);
        server.stop();
    }

    fn kill(&mut self) {
        let server = self.server.as_ref().unwrap();
        // Stopped, it starts no process that the list lacks. One that outlived it would keep
        // the shared memory, and the server could not start again.
        server.signal(libc::SIGSTOP);
        let children = self.processes().split_off(1);
        self.server.take().unwrap().kill();
        for child in &children {
            // SAFETY: no memory is involved; the process was the server's child
            // just now.
            unsafe { libc::kill(*child, libc::SIGKILL) };
        }
        eventually("no process of the server is left", || {
            !children.iter().any(|child| is_alive(*child))
        });
    }

    fn restart(&mut self) {
        assert!(self.server.is_none());
        self.server = Some(self.launch());
    }

    fn running(&mut self) -> &mut Option<Server> {
        &mut self.server
    }

    fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("it has the machine's clock")
    }

    fn processes(&self) -> Vec<i32> {
        let leader = self.server.as_ref().unwrap().id() as i32;
        let children = format!("/proc/{leader}/task/{leader}/children");
        let children = fs::read_to_string(children).unwrap();
        let children = children.split_whitespace();
        let children = children.map(|id| id.parse().unwrap());
        [leader].into_iter().chain(children).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            // Killed, it would leave its shared memory behind.
            server.end(libc::SIGQUIT);
        }
    }
}

/// A connection for the test's own statements.
#[derive(Debug)]
pub struct Session {
    client: Client,
    runtime: Runtime,
}

impl Session {
    fn open(port: u16, user: &str, database: &str) -> Self {
        Self::try_open(port, user, database).unwrap()
    }

    fn try_open(port: u16, user: &str, database: &str) -> Result<Self, tokio_postgres::Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(port)
            .user(user)
            .dbname(database);
        config
            .password(PASSWORD)
            .connect_timeout(Duration::from_secs(20));
        let (client, connection) = runtime.block_on(config.connect(NoTls))?;
        runtime.spawn(connection);
        Ok(Self { client, runtime })
    }

    /// # Errors
    /// The server's.
    pub fn try_execute(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.runtime.block_on(self.client.batch_execute(sql))
    }

    #[track_caller]
    pub fn execute(&self, sql: &str) {
        if let Err(error) = self.try_execute(sql) {
            panic!("{sql}: {error:?}");
        }
    }

    /// The first column of each row, as text.
    #[track_caller]
    pub fn values(&self, sql: &str) -> Vec<String> {
        let messages = self.runtime.block_on(self.client.simple_query(sql));
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let value = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("").to_owned()),
            _ => None,
        };
        messages.into_iter().filter_map(value).collect()
    }

    /// The first column of the one row.
    #[track_caller]
    pub fn value(&self, sql: &str) -> String {
        let [value]: [String; 1] = self.values(sql).try_into().unwrap();
        value
    }
}

/// Whether a process still holds what it had: not if it only waits to be buried.
fn is_alive(id: i32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}
