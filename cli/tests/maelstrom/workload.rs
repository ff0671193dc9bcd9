//! The `unique-ids` workload of Maelstrom, with its checker's rules, on three nodes that are
//! killed and partitioned. The network between them and their clients is this test.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use ringflake_kit::home::Home;
use ringflake_kit::server::signal_child;
use ringflake_kit::short_or_long;

/// What the network and the machine do to a node for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing reaches it.
    RequestsLost,
    /// Nothing of what it answers arrives.
    AnswersLost,
    /// It stands still, and what was sent meanwhile arrives late.
    Stopped,
    /// It is killed before it has answered all, and started again.
    Killed,
}

const FAULTS: [Fault; 5] = [
    Fault::None,
    Fault::RequestsLost,
    Fault::AnswersLost,
    Fault::Stopped,
    Fault::Killed,
];

/// Requests of all clients to a node while a fault lasts.
const REQUESTS: u64 = 100;

/// A process, and the network's side of its pipes.
struct Node {
    name: &'static str,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    next_id: u64,
}

impl Node {
    fn spawn(directory: &Path, name: &'static str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([Path::new("node"), directory])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            name,
            requests: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 1,
        }
    }

    fn start(directory: &Path, name: &'static str) -> Self {
        let mut node = Self::spawn(directory, name);
        node.send(json!({"type": "init", "node_id": name, "node_ids": ["n1", "n2", "n3"]}));
        assert_eq!(node.receive().unwrap()["type"], "init_ok");
        node
    }

    fn signal(&self, number: i32) {
        signal_child(self.child.id() as libc::pid_t, number);
    }

    fn send(&mut self, mut body: Value) {
        body["msg_id"] = self.next_id.into();
        self.next_id += 1;
        let message = json!({"id": 1, "src": "c7", "dest": self.name, "body": body});
        writeln!(self.requests, "{message}").unwrap();
    }

    fn ask(&mut self) {
        for _ in 0..REQUESTS {
            self.send(json!({"type": "generate"}));
        }
    }

    /// The body of the next answer; none once it is dead and all was read.
    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A line without its end was never sent.
        if self.answers.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
            return None;
        }
        let mut message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&message["src"], &message["dest"]),
            (&json!(self.name), &json!("c7"))
        );
        Some(message["body"].take())
    }

    /// The IDs of the next answers, each of which must be there.
    fn acknowledged(&mut self, answers: u64) -> Vec<i64> {
        let first = self.next_id - REQUESTS;
        let id = |at| {
            let body = self.receive().expect("it lives");
            assert_eq!(body["type"], "generate_ok", "{body}");
            assert_eq!(body["in_reply_to"], first + at, "in order");
            body["id"].as_str().unwrap().parse().unwrap()
        };
        (0..answers).map(id).collect()
    }

    /// The IDs that clients received meanwhile, and those that were issued but reached
    /// no client.
    fn suffer(mut self, fault: Fault, directory: &Path) -> (Self, Vec<i64>, Vec<i64>) {
        let (mut acknowledged, mut lost) = (Vec::new(), Vec::new());
        match fault {
            Fault::RequestsLost => {}
            Fault::None => {
                self.ask();
                acknowledged = self.acknowledged(REQUESTS);
            }
            Fault::AnswersLost => {
                self.ask();
                lost = self.acknowledged(REQUESTS);
            }
            Fault::Stopped => {
                self.signal(libc::SIGSTOP);
                self.ask();
                self.signal(libc::SIGCONT);
                acknowledged = self.acknowledged(REQUESTS);
            }
            Fault::Killed => {
                self.ask();
                acknowledged = self.acknowledged(REQUESTS / 3);
                // It reads nothing from here on, so these are never answered.
                self.signal(libc::SIGSTOP);
                self.ask();
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                // They were sent before it died.
                while let Some(body) = self.receive() {
                    acknowledged.push(body["id"].as_str().unwrap().parse().unwrap());
                }
                assert!((acknowledged.len() as u64) < 2 * REQUESTS, "it left some");
                self = Self::start(directory, self.name);
            }
        }
        (self, acknowledged, lost)
    }

    /// Its clients are gone: it ends by itself.
    fn end(self) {
        let Self {
            requests,
            mut answers,
            mut child,
            ..
        } = self;
        drop(requests);
        let mut rest = String::new();
        answers.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(child.wait().unwrap().success());
    }
}

pub(crate) fn holds_through_kills_and_partitions() {
    let home = Home::new();
    let directory = &home.data_dir();
    // Each pair of faults of neighbours, and each triple of which it has an even mix.
    let rounds = short_or_long(FAULTS.len(), FAULTS.len() * FAULTS.len());
    let fault_of = |node: usize, round: usize| {
        FAULTS[(round * (node + 1) + node + round / FAULTS.len()) % FAULTS.len()]
    };
    let run = |node: usize, name| {
        let mut process = Node::start(directory, name);
        let (mut acknowledged, mut lost) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let fault = fault_of(node, round);
            let (next, more, gone) = process.suffer(fault, directory);
            // A reachable node answers every request.
            let reached = matches!(fault, Fault::None | Fault::Stopped);
            assert!(!reached || more.len() as u64 == REQUESTS, "{fault:?}");
            process = next;
            acknowledged.extend(more);
            lost.extend(gone);
        }
        process.end();
        (acknowledged, lost)
    };
    let results = thread::scope(|scope| {
        let run = &run;
        let nodes = ["n1", "n2", "n3"];
        let nodes = std::array::from_fn::<_, 3, _>(|at| scope.spawn(move || run(at, nodes[at])));
        nodes.map(|node| node.join().unwrap())
    });
    let (mut seen, mut acknowledged) = (HashSet::new(), 0);
    for (ids, lost) in results {
        acknowledged += ids.len();
        // Those that reached nobody count as well.
        for id in ids.into_iter().chain(lost) {
            assert!(seen.insert(id), "{id} twice");
        }
    }
    // Two rounds in five at least, of each node.
    let least = rounds / FAULTS.len() * 2 * 3 * REQUESTS as usize;
    assert!(acknowledged >= least, "{acknowledged} of {least}");
}

pub(crate) fn other_requests_take_no_id() {
    let home = Home::new();
    let mut node = Node::spawn(&home.data_dir(), "n1");
    writeln!(node.requests, "no message").unwrap();
    let generate = json!({"type": "generate"});
    for (request, code) in [
        (generate.clone(), 22),
        (json!({"type": "init"}), 12),
        (json!({}), 12),
    ] {
        node.send(request);
        assert_eq!(node.receive().unwrap()["code"], code);
    }
    node.send(json!({"type": "init", "node_id": "n1"}));
    assert_eq!(node.receive().unwrap()["type"], "init_ok");
    node.send(json!({"type": "echo"}));
    let body = node.receive().unwrap();
    assert_eq!(
        (&body["code"], &body["in_reply_to"]),
        (&json!(10), &json!(5))
    );
    node.send(generate);
    assert_eq!(node.receive().unwrap()["type"], "generate_ok");
    node.end();
}
