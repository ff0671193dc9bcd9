//! Servers as processes, with their settings, their data and their logs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use ringflake_kit::server::{Clock, data_directory, free_port};
use ringflake_kit::tls::{allow, only_for_us};
use ringflake_kit::{Logged, assert_says, eventually};
use tempfile::TempDir;

use crate::load::{Failure, Way, http, resp, take_by_http};

pub(crate) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_millis() as u64
}

/// The reason of a server that can't issue.
const NO_LEASE: &str = "no lease is in force";

/// Where servers keep what they have, which goes with the test.
pub(crate) struct Home {
    directory: TempDir,
    /// When it was made, which is before any server of it began.
    pub(crate) began_ms: u64,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = data_directory();
        // A secret must lie where nobody else could put one.
        allow(directory.path(), 0o700);
        Self {
            directory,
            began_ms: unix_ms(),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file that nobody else may read.
    pub(crate) fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, contents).unwrap();
        only_for_us(&path);
        path
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.file("data")
    }

    /// The command of every server here.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringflake"));
        command
            .args(words)
            .env_remove("RINGFLAKE_SECRET_FILE")
            .env_remove("RINGFLAKE_BACKEND")
            .env_remove("RINGFLAKE_STORE")
            .env_remove("NOTIFY_SOCKET")
            // It may lie in memory.
            .env("RINGFLAKE_BEST_EFFORT", "1")
            .env("RINGFLAKE_DATA_DIR", self.data_dir())
            .stdin(Stdio::null());
        command
    }
}

/// A server that can be started, ended and started again, on ports and with settings of its
/// own.
pub(crate) struct Serve {
    config: PathBuf,
    pub(crate) resp: u16,
    pub(crate) http: u16,
    running: Option<Logged>,
    clock: Option<Clock>,
}

impl Serve {
    /// One with these settings, which does not run yet.
    pub(crate) fn new(home: &Home, name: &str, settings: &str) -> Self {
        let config = home.write(&format!("{name}.toml"), settings);
        let (resp, http) = (free_port(), free_port());
        Self {
            config,
            resp,
            http,
            running: None,
            clock: None,
        }
    }

    /// The one that most tests need: a namespace of the data directory, ready to serve.
    pub(crate) fn local(home: &Home) -> Self {
        let mut serve = Self::new(home, "serve", "[namespaces.orders]\n");
        serve.start(home);
        serve
    }

    /// With a calendar clock that the test sets.
    pub(crate) fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("it has one")
    }

    /// Starts it, and waits until it serves every namespace.
    #[track_caller]
    pub(crate) fn start(&mut self, home: &Home) {
        self.start_unready(home);
        self.wait_for_times("ready", 1);
    }

    /// Starts it, and waits until it listens.
    #[track_caller]
    pub(crate) fn start_unready(&mut self, home: &Home) {
        self.spawn(home);
        self.wait_for_times("serving", 1);
    }

    /// Starts it.
    #[track_caller]
    pub(crate) fn spawn(&mut self, home: &Home) {
        assert!(self.running.is_none(), "it runs");
        let mut command = home.command(&["serve"]);
        command
            .arg("--config")
            .arg(&self.config)
            .args(["--resp", &format!("127.0.0.1:{}", self.resp)])
            .args(["--http", &format!("127.0.0.1:{}", self.http)])
            // More than the default, for a clean end on a busy machine.
            .args(["--drain", "60s"]);
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        self.running = Some(Logged::spawn(&mut command));
    }

    fn running(&self) -> &Logged {
        self.running.as_ref().expect("it runs")
    }

    /// Waits until so many lines have said this.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, said: &str, times: usize) {
        self.running().wait_for_times(said, times);
    }

    pub(crate) fn signal(&self, number: i32) {
        self.running().signal(number);
    }

    /// As a machine that fails: it ends at once, and writes nothing down.
    pub(crate) fn kill(&mut self) {
        drop(self.running.take().expect("it runs"));
    }

    /// Ends it as a service manager does.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> String {
        self.running.take().expect("it runs").stop()
    }

    /// The answer of `GET /readyz`: the status, and how long IDs can be issued.
    pub(crate) fn readiness(&self) -> (u16, Option<u64>) {
        let (status, body) = self.get("/readyz");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        (status, body["seconds"].as_u64())
    }

    fn get(&self, path: &str) -> (u16, String) {
        let url = format!("http://127.0.0.1:{}{path}", self.http);
        let mut answer = http().get(url).call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), body)
    }

    #[track_caller]
    pub(crate) fn wait_until_ready(&self, ready: bool) {
        let status = if ready { 200 } else { 503 };
        let what = format!("readiness answers with {status}");
        eventually(&what, || self.readiness().0 == status);
    }

    /// Asserts that both protocols refuse takes with a reason and a time to retry.
    #[track_caller]
    pub(crate) fn assert_can_not_issue(&self) {
        // Its view of the clock may be older than the answer to a probe.
        eventually("takes are refused", || {
            let mut connection = resp(self.resp).unwrap();
            let reply = redis::cmd("INCR")
                .arg("orders")
                .query::<i64>(&mut connection);
            reply.is_err_and(|error| {
                error.code() == Some("TRYAGAIN") && error.to_string().contains(NO_LEASE)
            })
        });
        let Err(Failure::Refused(answer)) = take_by_http(&http(), self.http, Way::Json(3)) else {
            panic!("it is not refused");
        };
        assert!(answer.starts_with("503 "), "{answer}");
        let cause = "urn:ringflake:problem:cannot-issue";
        assert_says(&answer, &["with Retry-After", cause, NO_LEASE]);
        // Only its death would be a reason to start it again.
        assert_eq!(self.get("/livez").0, 200);
    }

    /// A figure of `/proc/PID/status` in KiB, such as `VmRSS`.
    pub(crate) fn kib(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.running().id());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let figure = line.unwrap().trim_matches(|c: char| !c.is_ascii_digit());
        figure.parse().unwrap()
    }
}
