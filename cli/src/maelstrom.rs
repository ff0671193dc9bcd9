//! `ringflake maelstrom`: a node of Maelstrom's `unique-ids` workload.
//!
//! [Maelstrom](https://github.com/jepsen-io/maelstrom) starts one process for each node,
//! carries messages between them and its clients over their standard input and output, one
//! JSON object a line, loses, delays and partitions them, and checks that no two requests
//! were answered with one ID. Its document `doc/protocol.md` is where the messages and the
//! codes of errors here come from.
//!
//! ```text
//! init      --> init_ok                      once; the name of this node
//! generate  --> generate_ok {id}             after init
//!           --> error 11                     no ID at the moment; none was issued
//! any other --> error 10                     not supported
//! not one   --> error 12, or stderr alone    where nobody is named who sent it
//! ```
//!
//! Nodes send nothing to each other: what makes their IDs unique are the leases of the data
//! directory or the store that they share. So no partition between nodes makes any of them
//! wait.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::args::SupplyArgs;
use crate::data_dir::DataDir;
use crate::leases::{DemandEstimate, Supply};
use crate::report::{forgive_closed_pipe, say};

/// Few: a node is asked by some clients, each of which waits for its answer.
const CAPACITY: usize = 1 << 10;

/// Answer as a node of Maelstrom's unique-ids workload
///
/// Reads one JSON message a line from standard input and writes the answers to standard
/// output, as Maelstrom (github.com/jepsen-io/maelstrom) has it. The nodes of a run share
/// the data directory, or a --store, and nothing else. IDs are decimal numbers in strings.
#[derive(Debug, Args)]
pub(crate) struct MaelstromArgs {
    #[command(flatten)]
    supply: SupplyArgs,
}

pub(crate) fn run(args: &MaelstromArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let demand = DemandEstimate {
        ids: 1 << 20,
        span: Duration::MAX,
    };
    let supply = Supply::new(&args.supply, data_dir, demand, |builder| {
        builder.capacity(CAPACITY)
    })?;
    let take = || supply.generator.take().map(ringflake::Id::to_i64);
    let mut node = Node { name: None, take };
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    forgive_closed_pipe(node.serve(input, &mut output))?;
    Ok(ExitCode::SUCCESS)
}

/// A node, which takes its IDs by `take`.
#[derive(Debug)]
struct Node<T> {
    /// Once it knows it.
    name: Option<String>,
    take: T,
}

/// A message, with a body of this kind.
#[derive(Debug, Serialize, Deserialize)]
struct Message<B> {
    src: String,
    dest: String,
    body: B,
}

/// What is read of any body.
#[derive(Debug, Default, Deserialize)]
struct Numbered {
    /// Sent back as it came.
    msg_id: Option<Box<RawValue>>,
}

/// What is read of a request before its type is known.
#[derive(Debug, Deserialize)]
struct Request {
    #[serde(rename = "type")]
    kind: String,
    /// In `init`.
    node_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    payload: Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Payload {
    InitOk,
    GenerateOk { id: String },
    Error { code: u8, text: String },
}

/// The codes of errors, all of which say for certain that nothing was done.
const NOT_SUPPORTED: u8 = 10;
const TEMPORARILY_UNAVAILABLE: u8 = 11;
const MALFORMED_REQUEST: u8 = 12;
const PRECONDITION_FAILED: u8 = 22;

impl<T: FnMut() -> Result<i64, E>, E: std::fmt::Display> Node<T> {
    /// Answers line after line, until there are no more.
    fn serve(&mut self, input: impl BufRead, output: &mut impl Write) -> Result<()> {
        for line in input.split(b'\n') {
            let line = line.context("standard input")?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(mut answer) = self.answer(&line) {
                answer.push(b'\n');
                output.write_all(&answer)?;
                // Somebody waits for it.
                output.flush()?;
            }
        }
        Ok(())
    }

    /// The answer to a line; none where it does not say whom to answer.
    fn answer(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let message: Message<Box<RawValue>> = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                say(format_args!(
                    "a line of standard input is no message of Maelstrom's: {error}"
                ));
                return None;
            }
        };
        let body = message.body.get();
        // By itself: who waits is answered, whatever is wrong with the rest.
        let Numbered { msg_id } = serde_json::from_str(body).unwrap_or_default();
        let payload = match serde_json::from_str(body) {
            Ok(request) => self.decide(&request),
            Err(error) => malformed(error),
        };
        let answer = Message {
            // Before `init` it has whichever name it is called by.
            src: self.name.clone().unwrap_or(message.dest),
            dest: message.src,
            body: Answer {
                payload,
                in_reply_to: msg_id.as_deref(),
            },
        };
        Some(serde_json::to_vec(&answer).expect("strings and numbers"))
    }

    fn decide(&mut self, request: &Request) -> Payload {
        match (request.kind.as_str(), &request.node_id, &self.name) {
            ("init", Some(name), None) => {
                self.name = Some(name.clone());
                Payload::InitOk
            }
            ("init", Some(name), Some(known)) if name == known => Payload::InitOk,
            ("init", Some(_), Some(known)) => Payload::Error {
                code: PRECONDITION_FAILED,
                text: format!("this node is {known} since its first init"),
            },
            ("init", None, _) => malformed("init has no node_id"),
            ("generate", _, None) => Payload::Error {
                code: PRECONDITION_FAILED,
                text: "init comes first".to_owned(),
            },
            ("generate", _, Some(_)) => match (self.take)() {
                Ok(id) => Payload::GenerateOk { id: id.to_string() },
                Err(error) => Payload::Error {
                    code: TEMPORARILY_UNAVAILABLE,
                    text: error.to_string(),
                },
            },
            (other, ..) => Payload::Error {
                code: NOT_SUPPORTED,
                text: format!("there is no {other:?} here: send init or generate"),
            },
        }
    }
}

fn malformed(why: impl std::fmt::Display) -> Payload {
    Payload::Error {
        code: MALFORMED_REQUEST,
        text: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What a node answers to these lines; its second take fails.
    fn answers(lines: &[&str]) -> Vec<Value> {
        let mut ids = [Ok(i64::MIN), Err("no lease"), Ok(7)].into_iter();
        let mut node = Node {
            name: None,
            take: || ids.next().unwrap(),
        };
        let mut output = Vec::new();
        node.serve(lines.join("\n").as_bytes(), &mut output)
            .unwrap();
        let lines = str::from_utf8(&output).unwrap().lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    const INIT: &str = r#"{"id":0,"src":"c0","dest":"n3","body":
        {"type":"init","msg_id":1,"node_id":"n3","node_ids":["n1","n2","n3"]}}"#;

    fn from_client(body: &str) -> String {
        format!(r#"{{"src":"c1","dest":"n3","body":{body}}}"#)
    }

    fn to_client(body: Value) -> Value {
        json!({"src": "n3", "dest": "c1", "body": body})
    }

    #[test]
    fn a_node_answers_each_request_to_whom_it_came_from() {
        let generate = |id| from_client(&format!(r#"{{"type":"generate","msg_id":{id}}}"#));
        let init = INIT.replace('\n', " ");
        let lines = [&*init, &generate(5), "", &generate(6), &generate(7)];
        let expected = [
            json!({"src": "n3", "dest": "c0", "body": {"type": "init_ok", "in_reply_to": 1}}),
            to_client(json!({
                "type": "generate_ok", "id": i64::MIN.to_string(), "in_reply_to": 5
            })),
            to_client(json!({
                "type": "error", "code": 11, "text": "no lease", "in_reply_to": 6
            })),
            to_client(json!({"type": "generate_ok", "id": "7", "in_reply_to": 7})),
        ];
        assert_eq!(answers(&lines), expected);
    }

    #[test]
    fn what_is_no_request_of_the_workload_takes_no_id() {
        let init = INIT.replace('\n', " ");
        let renamed = init.replace(r#""node_id":"n3""#, r#""node_id":"n1""#);
        let nameless = init.replace("node_id", "node");
        let generate = from_client(r#"{"type":"generate","msg_id":5}"#);
        let echo = from_client(r#"{"type":"echo","msg_id":5}"#);
        let typeless = from_client(r#"{"msg_id":5}"#);
        let misnamed = from_client(r#"{"type":"generate","msg_id":9,"node_id":7}"#);
        let bodyless = from_client("3");
        let lines = [
            "no JSON", "[]", &generate, &nameless, &init, &init, &renamed, &echo, &typeless,
            &generate, &misnamed, &bodyless,
        ];
        let answers = answers(&lines);
        let codes: Vec<_> = answers
            .iter()
            .map(|it| it["body"]["code"].as_u64())
            .collect();
        let expected = [
            Some(22),
            Some(12),
            None,
            None,
            Some(22),
            Some(10),
            Some(12),
            None,
            Some(12),
            Some(12),
        ];
        assert_eq!(codes, expected, "{answers:?}");
        let numbers: Vec<_> = answers
            .iter()
            .map(|it| it["body"]["in_reply_to"].as_u64())
            .collect();
        let expected = [5, 1, 1, 1, 1, 5, 5, 5, 9].map(Some).into_iter();
        assert_eq!(numbers, expected.chain([None]).collect::<Vec<_>>());
        assert_eq!(answers[7]["body"]["id"], i64::MIN.to_string());
    }
}
