//! The `unique-ids` workload of Maelstrom, with its checker's rules, on three nodes that are
//! killed and partitioned. The network between them and their clients is this test.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::home::{Home, signal, spawn, stdout};
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
    fn start(home: &Home, name: &'static str) -> Self {
        // A busy machine may let a lease of the default 2 s run out before it is renewed.
        let mut command = home.command("maelstrom --lease-duration 30s");
        let mut child = spawn(command.stdin(Stdio::piped()));
        let mut node = Self {
            name,
            requests: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 1,
        };
        node.send(json!({"type": "init", "node_id": name, "node_ids": ["n1", "n2", "n3"]}));
        assert_eq!(node.receive().unwrap()["type"], "init_ok");
        node
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

    /// What the clients have had acknowledged while this lasted, and what was issued to
    /// nobody.
    fn suffer(mut self, fault: Fault, home: &Home) -> (Self, Vec<i64>, Vec<i64>) {
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
                signal(&self.child, libc::SIGSTOP);
                self.ask();
                signal(&self.child, libc::SIGCONT);
                acknowledged = self.acknowledged(REQUESTS);
            }
            Fault::Killed => {
                self.ask();
                acknowledged = self.acknowledged(REQUESTS / 3);
                // It reads nothing from here on, so these are never answered.
                signal(&self.child, libc::SIGSTOP);
                self.ask();
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                // They were sent before it died.
                while let Some(body) = self.receive() {
                    acknowledged.push(body["id"].as_str().unwrap().parse().unwrap());
                }
                assert!((acknowledged.len() as u64) < 2 * REQUESTS, "it left some");
                self = Self::start(home, self.name);
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

#[test]
fn the_unique_ids_workload_holds_through_kills_and_partitions() {
    let home = Home::new();
    // Each pair of faults of neighbours, and each triple of which it has an even mix.
    let rounds = short_or_long(FAULTS.len(), FAULTS.len() * FAULTS.len());
    let fault_of = |node: usize, round: usize| {
        FAULTS[(round * (node + 1) + node + round / FAULTS.len()) % FAULTS.len()]
    };
    let run = |node: usize, name| {
        let mut process = Node::start(&home, name);
        let (mut acknowledged, mut lost) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let fault = fault_of(node, round);
            let (next, more, gone) = process.suffer(fault, &home);
            // Who can be reached is available.
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

#[test]
fn a_line_that_is_no_message_is_reported_and_the_next_is_answered() {
    let home = Home::new();
    let init = r#"{"src":"c1","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1"}}"#;
    let output = home.feed(
        "maelstrom --plain",
        format!("no message\n{init}\n").as_bytes(),
    );
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no message of Maelstrom's"), "{text}");
    let answer =
        "{\"src\":\"n1\",\"dest\":\"c1\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":1}}\n";
    assert_eq!(stdout(&output), answer);
}
