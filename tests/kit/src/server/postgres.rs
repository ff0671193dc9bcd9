//! A PostgreSQL server of a test's own, which can be stopped, killed, copied and
//! promoted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::clock::Clock;
use super::template;
use crate::server::{Instance, PASSWORD, TestServer, as_user, damaged, data_directory, find};
use crate::{eventually, printed};

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
    binaries: PathBuf,
    instance: Instance,
}

impl Postgres {
    /// A new server; none where PostgreSQL is not installed, after saying that
    /// the test is skipped for it.
    pub fn start() -> Option<Self> {
        Self::start_by(None)
    }

    fn prepare(&mut self) {
        let secret = self.directory().join("password");
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

    pub fn data(&self) -> PathBuf {
        self.directory().join("data")
    }

    fn directory(&self) -> &Path {
        self.instance.directory.path()
    }

    pub fn sockets(&self) -> PathBuf {
        self.directory().to_owned()
    }

    pub fn admin(&self) -> Session {
        let app = Session::try_open(self.port(), USER, "app");
        app.unwrap_or_else(|_| Session::open(self.port(), USER, USER))
    }

    pub fn owner(&self) -> Session {
        Session::open(self.port(), "app", "app")
    }

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

    pub fn standby(&self) -> Self {
        let mut standby = Self {
            binaries: self.binaries.clone(),
            instance: Instance::new(data_directory(), None),
        };
        let from = format!(
            "host=127.0.0.1 port={} user={USER} password={PASSWORD}",
            self.port()
        );
        standby.run(
            "pg_basebackup",
            &["--write-recovery-conf", "--checkpoint=fast", "--no-sync"],
            &[
                ("--dbname", Path::new(&from)),
                ("--pgdata", &standby.data()),
            ],
        );
        standby.restart();
        standby
    }

    pub fn promote(&self) {
        self.admin().execute("SELECT pg_promote()");
    }

    pub fn run(&self, program: &str, flags: &[&str], options: &[(&str, &Path)]) -> String {
        let mut command = Command::new(self.binaries.join(program));
        command.current_dir(self.directory()).args(flags);
        for (name, value) in options {
            command.arg(name).arg(value);
        }
        command.env("PGPASSWORD", PASSWORD);
        as_user(&mut command, USER);
        printed(&mut command)
    }
}

impl TestServer for Postgres {
    fn url_through(&self, port: u16) -> String {
        format!("postgres://app:{PASSWORD}@127.0.0.1:{port}/app")
    }

    fn start_by(clock: Option<Clock>) -> Option<Self> {
        // Where it really is, its companions are.
        let initdb = fs::canonicalize(find("initdb", PACKAGE)?).unwrap();
        let binaries = initdb.parent().unwrap().to_owned();
        let mut postgres = Self {
            binaries,
            instance: Instance::new(data_directory(), clock),
        };
        let data = postgres.data();
        template::fill("postgres", &initdb, &data, || postgres.prepare());
        postgres.restart();
        Some(postgres)
    }

    fn stop(&mut self) {
        let server = self.instance.take();
        // Fast: the polite way waits for clients to leave.
        server.signal(libc::SIGINT);
        server.stop();
    }

    fn kill(&mut self) {
        // Stopped, it starts no process that the list lacks. One that outlived it would keep
        // the shared memory, and the server could not start again.
        self.process().signal(libc::SIGSTOP);
        let children = self.processes().split_off(1);
        self.instance.take().kill();
        for child in &children {
            // SAFETY: no memory is involved; the process was the server's child
            // just now.
            unsafe { libc::kill(*child, libc::SIGKILL) };
        }
        eventually("no process of the server is left", || {
            !children.iter().any(|child| is_alive(*child))
        });
    }

    fn clear(&self) {
        let admin = Session::open(self.port(), USER, USER);
        admin.execute("DROP DATABASE app WITH (FORCE)");
        admin.execute("CREATE DATABASE app OWNER app");
    }

    fn damage(&self, namespace: &str, block: u64) {
        let value = damaged(block);
        self.admin().execute(&format!(
            "UPDATE ringflake SET value = '{value}' WHERE key = '{namespace}/block/{block:020}'"
        ));
    }

    fn restart(&mut self) {
        let (directory, port) = (self.directory(), self.port());
        let mut command = Command::new(self.binaries.join("postgres"));
        command.arg("-D").arg(self.data());
        for setting in [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", directory.display()),
            "shared_buffers=4MB".to_owned(),
            "max_connections=250".to_owned(),
            // Its transactions would be taken for those of a store.
            "autovacuum=off".to_owned(),
        ] {
            command.args(["-c", &setting]);
        }
        command.current_dir(directory);
        as_user(&mut command, USER);
        let is_ready = || Session::try_open(port, USER, USER).is_ok();
        self.instance.launch(command, is_ready);
    }

    fn instance(&self) -> &Instance {
        &self.instance
    }

    fn instance_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn processes(&self) -> Vec<i32> {
        let leader = self.process().id() as i32;
        let children = format!("/proc/{leader}/task/{leader}/children");
        let children = fs::read_to_string(children).unwrap();
        let children = children.split_whitespace();
        let children = children.map(|id| id.parse().unwrap());
        [leader].into_iter().chain(children).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = self.instance.server.take() {
            // Killed, it would leave its shared memory behind.
            server.end(libc::SIGQUIT);
        }
    }
}

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
