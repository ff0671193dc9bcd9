//! etcd clusters of a test.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::server::{self, Clock, Instance, Server, TestServer, damaged};
use crate::{cp, eventually};

/// A cluster of one or more members, each on ports of its own, with its data in
/// a directory of its own.
#[derive(Debug)]
pub struct Etcd {
    program: PathBuf,
    members: Vec<Member>,
    token: String,
    arguments: Vec<String>,
}

#[derive(Debug)]
struct Member {
    name: String,
    instance: Instance,
    /// Counts the data directories that it has had.
    generation: u32,
    peer_port: u16,
}

impl Etcd {
    /// Starts a cluster of one. If etcd is not installed, says that the test is skipped, and
    /// returns none.
    pub fn start() -> Option<Self> {
        Self::start_with(1, &[])
    }

    pub fn start_with(members: usize, arguments: &[&str]) -> Option<Self> {
        let program = server::find("etcd", "etcd-server")?;
        let member = |number: usize| Member {
            name: format!("m{number}"),
            instance: Instance::new(server::data_directory(), None),
            generation: 0,
            peer_port: server::free_port(),
        };
        let mut etcd = Self {
            program,
            members: (0..members).map(member).collect(),
            token: "test".into(),
            arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
        };
        // All are spawned before any is waited for: one alone never gets ready.
        etcd.start_members(&(0..members).collect::<Vec<_>>());
        Some(etcd)
    }

    /// Starts a member again, on the same ports and data, after
    /// [`stop`](Self::stop) or [`kill`](Self::kill).
    pub fn restart(&mut self, member: usize) {
        self.start_members(&[member]);
    }

    fn start_members(&mut self, members: &[usize]) {
        for &number in members {
            let command = self.command(number);
            self.members[number].instance.launch(command, || true);
        }
        for &number in members {
            eventually("the member is ready", || self.is_healthy(number));
        }
    }

    fn command(&self, number: usize) -> Command {
        let member = &self.members[number];
        let url = |port| format!("http://127.0.0.1:{port}");
        // A test may have members speak TLS to clients.
        let scheme = if self.arguments.iter().any(|a| a == "--cert-file") {
            "https"
        } else {
            "http"
        };
        let client = format!("{scheme}://127.0.0.1:{}", member.instance.port);
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .args(["--name", &member.name])
            .arg("--data-dir")
            .arg(self.data_directory(number))
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &url(member.peer_port)])
            .args(["--initial-advertise-peer-urls", &url(member.peer_port)])
            .args(["--initial-cluster", &self.initial_cluster()])
            .args(["--initial-cluster-token", &self.token])
            .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
            .args(&self.arguments);
        command
    }

    fn initial_cluster(&self) -> String {
        let member = |m: &Member| format!("{}=http://127.0.0.1:{}", m.name, m.peer_port);
        self.members
            .iter()
            .map(member)
            .collect::<Vec<_>>()
            .join(",")
    }

    fn data_directory(&self, number: usize) -> PathBuf {
        let member = &self.members[number];
        let name = format!("data-{}", member.generation);
        member.instance.directory.path().join(name)
    }

    pub fn stop(&mut self, member: usize) {
        self.members[member].instance.take().stop();
    }

    pub fn kill(&mut self, member: usize) {
        self.members[member].instance.take().kill();
    }

    pub fn process(&self, member: usize) -> &Server {
        self.members[member].instance.process()
    }

    pub fn leader(&self) -> usize {
        let status = |member: usize| -> Value {
            let json = self.ctl(member, &["endpoint", "status", "-w", "json"]);
            serde_json::from_str::<Value>(&json).unwrap()[0]["Status"].take()
        };
        let running = |member: &usize| self.members[*member].instance.server.is_some();
        let leads = |member: &usize| {
            let status = status(*member);
            status["leader"] == status["header"]["member_id"]
        };
        let mut leader = None;
        eventually("there is a leader", || {
            leader = (0..self.members.len()).filter(running).find(leads);
            leader.is_some()
        });
        leader.unwrap()
    }

    pub fn snapshot(&self, name: &str) -> PathBuf {
        let path = self.members[0].instance.directory.path().join(name);
        self.ctl(0, &["snapshot", "save", path.to_str().unwrap()]);
        path
    }

    /// Stops all, and starts them from a snapshot, in a cluster of this token. The
    /// cluster's ID is computed from that and the peer URLs, which stay.
    pub fn restore(&mut self, snapshot: &Path, token: &str) {
        token.clone_into(&mut self.token);
        for number in 0..self.members.len() {
            if self.members[number].instance.server.is_some() {
                self.stop(number);
            }
            self.members[number].generation += 1;
            let directory = self.data_directory(number);
            let member = &self.members[number];
            let peer = format!("http://127.0.0.1:{}", member.peer_port);
            let restored = etcdctl(&[
                "snapshot",
                "restore",
                snapshot.to_str().unwrap(),
                &format!("--name={}", member.name),
                &format!("--data-dir={}", directory.display()),
                &format!("--initial-cluster={}", self.initial_cluster()),
                &format!("--initial-cluster-token={token}"),
                &format!("--initial-advertise-peer-urls={peer}"),
            ]);
            restored.unwrap();
        }
        self.start_members(&(0..self.members.len()).collect::<Vec<_>>());
    }

    /// Stops the only member, and starts it with the files of its data directory
    /// as they were when they were copied.
    pub fn put_back(&mut self, files: &Path) {
        self.stop(0);
        self.members[0].generation += 1;
        cp("-a", files, self.data_directory(0));
        self.restart(0);
    }

    /// Stops the only member, copies the files of its data directory, and starts
    /// it again.
    pub fn copy_files(&mut self, name: &str) -> PathBuf {
        self.stop(0);
        let files = self.members[0].instance.directory.path().join(name);
        cp("-a", self.data_directory(0), &files);
        self.restart(0);
        files
    }

    pub fn ctl(&self, member: usize, arguments: &[&str]) -> String {
        // Only turns a hang into a failure.
        let patience = ["--command-timeout=60s", "--dial-timeout=60s"];
        self.try_ctl(member, &[&patience[..], arguments].concat())
            .unwrap_or_else(|error| panic!("etcdctl {arguments:?}: {error}"))
    }

    fn is_healthy(&self, member: usize) -> bool {
        if self.arguments.iter().any(|a| a == "--cert-file") {
            // etcdctl would need the certificates; a listening port must do.
            return std::net::TcpStream::connect(("127.0.0.1", self.members[member].instance.port))
                .is_ok();
        }
        // Asked again and again, and so not for long each time.
        let asks = |arguments: &[&str]| {
            let command = [&["--command-timeout=5s"][..], arguments].concat();
            self.try_ctl(member, &command).is_ok()
        };
        asks(&["endpoint", "status"]) && asks(&["get", "ready"])
    }

    fn try_ctl(&self, member: usize, arguments: &[&str]) -> Result<String, String> {
        let port = self.members[member].instance.port;
        let endpoint = format!("--endpoints=http://127.0.0.1:{port}");
        etcdctl(&[&[&*endpoint][..], arguments].concat())
    }
}

fn etcdctl(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("etcdctl");
    let output = command.env("ETCDCTL_API", "3").args(arguments).output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// Starts, stops and damages the first member.
impl TestServer for Etcd {
    /// Of all members.
    fn url(&self) -> String {
        let hosts = self.members.iter();
        let hosts = hosts.map(|member| format!("127.0.0.1:{}", member.instance.port));
        format!("etcd://{}", hosts.collect::<Vec<_>>().join(","))
    }

    fn url_through(&self, port: u16) -> String {
        format!("etcd://127.0.0.1:{port}")
    }

    /// Its runtime asks the kernel for the time, whatever the clock shows.
    fn start_by(_: Option<Clock>) -> Option<Self> {
        Self::start()
    }

    fn clear(&self) {
        self.ctl(0, &["del", "--prefix", ""]);
    }

    fn damage(&self, namespace: &str, block: u64) {
        let key = format!("ringflake/{namespace}/block/{block:020}");
        self.ctl(0, &["put", &key, damaged(block)]);
    }

    fn restart(&mut self) {
        self.restart(0);
    }

    fn instance(&self) -> &Instance {
        &self.members[0].instance
    }

    fn instance_mut(&mut self) -> &mut Instance {
        &mut self.members[0].instance
    }
}
