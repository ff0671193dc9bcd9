//! A MariaDB server of a test's own, which can be stopped and killed.

use std::path::{Path, PathBuf};
use std::process::Command;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::clock::Clock;
use super::template;
use crate::server::{
    Instance, PASSWORD, TestServer, as_user, damaged, data_directory, directory, find,
};
use crate::{eventually, printed};

const PACKAGE: &str = "mariadb-server";
/// The user that runs the server if the test is root.
const USER: &str = "mysql";

/// A server in a directory of its own. It listens on 127.0.0.1 and keeps port
/// and data through [`restart`](Self::restart). Gone when dropped.
///
/// A user `app` with the password [`PASSWORD`] may do what it likes in
/// the database `app`, and nothing outside.
#[derive(Debug)]
pub struct MariaDb {
    program: PathBuf,
    settings: Vec<String>,
    instance: Instance,
}

impl MariaDb {
    /// A new server; none where MariaDB is not installed, after saying that the test is
    /// skipped for it.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    pub fn start_with(settings: &[&str]) -> Option<Self> {
        Self::install(settings, None)
    }

    fn install(settings: &[&str], clock: Option<Clock>) -> Option<Self> {
        let program = find("mariadbd", PACKAGE)?;
        let installer = find("mariadb-install-db", PACKAGE)?;
        // In memory it maps its log, and no limit of a process stops what it writes:
        // the disk of a test that sets clocks must be able to be full.
        let directory = match clock {
            None => data_directory(),
            Some(_) => directory(),
        };
        let mut mariadb = Self {
            program,
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
            instance: Instance::new(directory, clock),
        };
        let data = mariadb.data();
        template::fill("mariadb", &installer, &data, || mariadb.prepare(&installer));
        mariadb.restart();
        let mut admin = mariadb.admin();
        for statement in [
            "CREATE DATABASE app",
            &format!("CREATE USER app@'%' IDENTIFIED BY '{PASSWORD}'"),
            "GRANT ALL ON app.* TO app@'%'",
        ] {
            admin.query_drop(statement).unwrap();
        }
        Some(mariadb)
    }

    fn prepare(&self, installer: &Path) {
        let mut install = Command::new(installer);
        install.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
            "--innodb-log-file-size=8M",
        ]);
        install.arg(self.temporary());
        install.arg(format!("--datadir={}", self.data().display()));
        install.current_dir(self.directory());
        as_user(&mut install, USER);
        printed(&mut install);
    }

    /// A connection as the superuser; to the database `app`, once that is there.
    pub fn admin(&self) -> Conn {
        let mut admin = connect(self.port()).unwrap();
        // Whatever the server's defaults are in this test.
        for setting in ["autocommit = 1", "sql_mode = ''", "TRANSACTION READ WRITE"] {
            admin.query_drop(format!("SET SESSION {setting}")).unwrap();
        }
        let _ = admin.select_db("app");
        admin
    }

    /// What a server needs on its command line to be followed by others. The number
    /// must be its own.
    pub fn binary_log(number: u32) -> [String; 3] {
        let number = format!("--server-id={number}");
        ["--log-bin", "--sync-binlog=1", &number].map(str::to_owned)
    }

    /// Takes over from now on what `primary` writes. Both must have the same now.
    pub fn follow(&self, primary: &Self) {
        let (file, position) = primary.log_position();
        let mut admin = self.admin();
        for statement in [
            format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, \
                 MASTER_USER = 'root', MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}, \
                 MASTER_CONNECT_RETRY = 1",
                primary.port()
            ),
            "START SLAVE".to_owned(),
        ] {
            admin.query_drop(statement).unwrap();
        }
    }

    /// Waits until it has all that `primary` has written by now.
    pub fn catch_up(&self, primary: &Self) {
        let (file, position) = primary.log_position();
        let wait = format!("SELECT MASTER_POS_WAIT('{file}', {position}, 60)");
        let events: Option<Option<i64>> = self.admin().query_first(wait).unwrap();
        assert!(events.flatten() >= Some(0), "{events:?}");
    }

    pub fn follow_nobody(&self) {
        let mut admin = self.admin();
        admin.query_drop("STOP SLAVE").unwrap();
        admin.query_drop("RESET SLAVE ALL").unwrap();
    }

    pub fn forbid_writing(&self) {
        let mut admin = self.admin();
        admin.query_drop("SET GLOBAL read_only = 1").unwrap();
    }

    fn log_position(&self) -> (String, u64) {
        let status = self.admin().query_first("SHOW MASTER STATUS").unwrap();
        let (file, position, _, _): (String, u64, String, String) = status.unwrap();
        (file, position)
    }

    /// Other settings on the command line, from the next start on.
    pub fn configure(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|s| (*s).to_owned()).collect();
    }

    fn directory(&self) -> &Path {
        self.instance.directory.path()
    }

    pub fn data(&self) -> PathBuf {
        self.directory().join("data")
    }

    pub fn socket(&self) -> PathBuf {
        self.directory().join("socket")
    }

    /// Servers that share a place for temporary tables remove each other's.
    fn temporary(&self) -> String {
        format!("--tmpdir={}", self.directory().display())
    }
}

fn connect(port: u16) -> mysql::Result<Conn> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false);
    Conn::new(options)
}

impl TestServer for MariaDb {
    fn url_through(&self, port: u16) -> String {
        format!("mysql://app:{PASSWORD}@127.0.0.1:{port}/app")
    }

    fn start_by(clock: Option<Clock>) -> Option<Self> {
        Self::install(&[], clock)
    }

    fn clear(&self) {
        let mut admin = connect(self.port()).unwrap();
        admin.query_drop("KILL USER app").unwrap();
        eventually("the connections are gone", || {
            let all = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
            admin.query_first::<u64, _>(all).unwrap() == Some(0)
        });
        admin.query_drop("DROP DATABASE app").unwrap();
        admin.query_drop("CREATE DATABASE app").unwrap();
    }

    fn damage(&self, namespace: &str, block: u64) {
        let value = damaged(block);
        let update = format!(
            "UPDATE ringflake SET value = '{value}' WHERE `key` = '{namespace}/block/{block:020}'"
        );
        self.admin().query_drop(update).unwrap();
    }

    fn restart(&mut self) {
        let (directory, port) = (self.directory(), self.port());
        let mut command = Command::new(&self.program);
        command.args([
            "--no-defaults",
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
            "--key-buffer-size=1M",
            "--performance-schema=OFF",
            "--skip-name-resolve",
        ]);
        command.arg(self.temporary());
        command.arg(format!("--port={port}"));
        command.arg(format!("--datadir={}", self.data().display()));
        command.arg(format!("--socket={}", directory.join("socket").display()));
        command.arg(format!("--pid-file={}", directory.join("pid").display()));
        command.args(&self.settings).current_dir(directory);
        as_user(&mut command, USER);
        self.instance.launch(command, || connect(port).is_ok());
    }

    fn instance(&self) -> &Instance {
        &self.instance
    }

    fn instance_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }
}
