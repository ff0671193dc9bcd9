//! MariaDB.

use std::io::Write as _;
use std::process::{Command, Stdio};

use mysql::prelude::Queryable as _;

use super::PutBack;
use super::served::Server;
use crate::matrix::text;
use ringflake_kit::server::{self, MariaDb, Reachable as _};

impl Server for MariaDb {
    /// A dump of the database, which drops and makes the tables when it is loaded.
    fn keep_rows(&self, _: &str) -> PutBack {
        let port = self.port();
        let client = move |program: &str| {
            let program = server::locate(program).expect("it comes with the server");
            let mut command = Command::new(program);
            command.args(["--no-defaults", "--host=127.0.0.1", "--user=root"]);
            command.arg(format!("--port={port}"));
            command
        };
        let dump = client("mariadb-dump")
            .args(["--single-transaction", "app"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&dump.stderr);
        assert!(dump.status.success(), "{errors}");
        Box::new(move || {
            let mut load = client("mariadb").arg("app").stdin(Stdio::piped()).spawn();
            let load = load.as_mut().map_err(text)?;
            // The pipe is closed with this.
            let mut input = load.stdin.take().expect("it is piped");
            input.write_all(&dump.stdout).map_err(text)?;
            drop(input);
            let status = load.wait().map_err(text)?;
            let done = status.success().then_some(());
            done.ok_or_else(|| format!("the dump was not loaded: {status}"))
        })
    }

    fn damage(&self, namespace: &str, block: u64) {
        let update = format!(
            "UPDATE ringflake SET value = '{{' WHERE `key` = '{namespace}/block/{block:020}'"
        );
        self.admin().query_drop(update).unwrap();
    }
}
