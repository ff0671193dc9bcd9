//! Servers as processes, with their settings, their data and their logs.

use std::fs;
use std::path::PathBuf;

use ringflake_kit::home::Home;
use ringflake_kit::server::{Clock, free_port};
use ringflake_kit::{Logged, assert_says, eventually};

use crate::load::{Failure, Way, http, resp, take_by_http};

const NO_LEASE: &str = "no lease is in force";

/// A server that can be started, ended and started again, on ports and with settings of its
/// own.
pub(crate) struct Serve {
    config: PathBuf,
    pub(crate) resp: u16,
    pub(crate) http: u16,
    /// The clients' token; empty for none.
    pub(crate) token: &'static str,
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
            token: "",
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

    #[track_caller]
    pub(crate) fn spawn(&mut self, home: &Home) {
        assert!(self.running.is_none(), "it runs");
        let (resp, http) = (self.resp, self.http);
        // More time to drain than the default, for a clean end on a busy machine.
        let mut command = home.command(
            env!("CARGO_BIN_EXE_ringflake"),
            &format!("serve --resp 127.0.0.1:{resp} --http 127.0.0.1:{http} --drain 60s"),
        );
        command.arg("--config").arg(&self.config);
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        self.running = Some(Logged::spawn(&mut command));
    }

    fn running(&self) -> &Logged {
        self.running.as_ref().expect("it runs")
    }

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

    #[track_caller]
    pub(crate) fn stop(&mut self) -> String {
        self.signal(libc::SIGTERM);
        self.wait()
    }

    /// Its whole log, once a signal has ended it.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> String {
        self.running.take().expect("it runs").wait(0)
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
            let mut connection = resp(self.resp, self.token).unwrap();
            let reply = redis::cmd("INCR")
                .arg("orders")
                .query::<i64>(&mut connection);
            reply.is_err_and(|error| {
                error.code() == Some("TRYAGAIN") && error.to_string().contains(NO_LEASE)
            })
        });
        let Err(Failure::Refused(answer)) =
            take_by_http(&http(), self.http, self.token, Way::Json(3))
        else {
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

    /// How much more it is than before. Each processor adds what it has counted when that is
    /// enough, so even the largest size so far may go down a little.
    pub(crate) fn growth(&self, name: &str, before: u64) -> u64 {
        self.kib(name).saturating_sub(before)
    }
}
