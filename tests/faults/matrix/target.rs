//! The servers of the matrix, and what can be done to each.

mod rows;
mod served;
pub(crate) mod sqlite;

use std::process::Command;

use self::served::Served;
use super::Outcome;
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    MariaDb,
    Redis,
    Etcd,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Sqlite,
        Self::Postgres,
        Self::MariaDb,
        Self::Redis,
        Self::Etcd,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
        }
    }

    /// A store of this kind, or none where its server is not installed, after
    /// saying so.
    pub(crate) fn prepare(self) -> Option<Box<dyn Target>> {
        Some(match self {
            Self::Sqlite => Box::new(sqlite::Sqlite::new()),
            Self::Postgres => Box::new(Served::start(rows::postgres)?),
            Self::MariaDb => Box::new(Served::start(rows::mariadb)?),
            Self::Redis => Box::new(Served::start(rows::redis)?),
            Self::Etcd => Box::new(Served::start(rows::etcd)?.with_dates()),
        })
    }
}

pub(crate) fn versions() -> Vec<String> {
    let version = |program: &str| {
        let program = server::locate(program)?;
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Without the path by which it was called.
        let line = text.lines().next()?.trim();
        Some(line.rsplit('/').next().unwrap_or(line).to_owned())
    };
    let sqlite = format!("SQLite {}", rusqlite::version());
    let servers = ["postgres", "mariadbd", "redis-server", "etcd"];
    let served = servers.into_iter().filter_map(version);
    std::iter::once(sqlite).chain(served).collect()
}

/// Puts back what was kept. A server that this is done to shows nothing of it: it is the
/// same one, with the same clock and the same history of its own.
pub(crate) type PutBack = Box<dyn Fn() -> Outcome<()>>;

pub(crate) trait Target {
    /// Where the overseer reaches the store, whatever is done to the workers.
    fn direct_url(&self) -> String;

    /// Where the workers reach it.
    fn url(&self) -> String {
        self.direct_url()
    }

    fn proxy(&self) -> Option<&Proxy> {
        None
    }

    /// Lets nobody reach the store any more, as when it is shut down in order.
    fn stop(&mut self);

    /// Ends the server at once, where there is one.
    fn kill(&mut self) {
        self.stop();
    }

    /// After [`stop`](Self::stop) or [`kill`](Self::kill).
    fn start(&mut self);

    /// Sets the server's calendar clock ahead of the machine's by so many
    /// seconds; negative: back. A file has no clock but those of who opens it.
    fn set_clock(&self, _ahead: i64) {}

    /// Keeps what the store has on record of a namespace now, to be put back later
    /// while everything goes on.
    fn keep_rows(&self, namespace: &str) -> PutBack;

    /// Leaves what no store writes in the record of this block, by a client of the
    /// server's own.
    fn damage(&self, namespace: &str, block: u64);

    /// The processes that write what the store keeps; the workers' own, where
    /// there is no server.
    fn writers(&self, workers: &[i32]) -> Vec<i32>;

    fn revive(&mut self) {}

    /// Stops processes where they are, each at a moment at which it does not have
    /// the store to itself. They stand still when this returns.
    fn stop_between_operations(&self, processes: &[i32]) {
        stop(processes);
    }
}

fn stop(processes: &[i32]) {
    signal(processes, libc::SIGSTOP);
}

pub(crate) fn go_on(processes: &[i32]) {
    signal(processes, libc::SIGCONT);
}

fn signal(processes: &[i32], signal: i32) {
    for &process in processes {
        server::signal_child(process, signal);
    }
}
