//! A node: one JSON message a line on stdin, one answer a line on stdout, as Maelstrom's
//! `doc/protocol.md` describes them.
//!
//! ```text
//! init      --> init_ok                      the name of this node
//! generate  --> generate_ok {id}             after init
//!           --> error 11                     no ID at the moment; none was issued
//! any other --> error 10, 12 or 22           not supported, malformed, too early
//! ```
//!
//! Nodes send nothing to each other: the data directory, which they share, leases each its part
//! of the ID space.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use ringflake::{CachedGenerator, Layout, Local};
use serde_json::{Value, json};

/// Answers until stdin ends.
pub(crate) fn run(directory: &str) -> ExitCode {
    let local = Local::new("maelstrom")
        .in_directory(directory)
        .accept_best_effort(true);
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .local(local)
        .capacity(1 << 10)
        .build()
        .expect("the data directory gives leases");
    let mut output = io::stdout().lock();
    let mut name = None;
    for line in io::stdin().lock().lines() {
        let line = line.expect("stdin");
        let answer = match serde_json::from_str(&line) {
            Ok(message) => answer(&message, &mut name, &ids),
            Err(error) => {
                eprintln!("not a message: {error}: {line}");
                continue;
            }
        };
        // Maelstrom may be gone.
        if writeln!(output, "{answer}")
            .and_then(|()| output.flush())
            .is_err()
        {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn answer(message: &Value, name: &mut Option<String>, ids: &CachedGenerator) -> Value {
    let request = &message["body"];
    let mut body = match (request["type"].as_str(), request["node_id"].as_str()) {
        (Some("init"), Some(node)) => {
            *name = Some(node.to_owned());
            json!({"type": "init_ok"})
        }
        (Some("generate"), _) if name.is_none() => error(22, "send init first"),
        (Some("generate"), _) => match ids.take() {
            Ok(id) => json!({"type": "generate_ok", "id": id.to_i64().to_string()}),
            Err(reason) => error(11, reason),
        },
        (Some("init"), None) | (None, _) => error(12, "no type, or an init without node_id"),
        (Some(other), _) => error(10, format!("no {other} here")),
    };
    body["in_reply_to"] = request["msg_id"].clone();
    // Before init, the name by which it was addressed.
    let source = name.as_deref().or(message["dest"].as_str());
    json!({"src": source, "dest": message["src"], "body": body})
}

fn error(code: u8, text: impl ToString) -> Value {
    json!({"type": "error", "code": code, "text": text.to_string()})
}
