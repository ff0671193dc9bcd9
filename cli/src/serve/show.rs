//! What a server would do, for people or for programs.

use std::time::Duration;

use anyhow::Result;
use ringflake_server::Plan;

use crate::format::Format;
use crate::output::{answer, print};

pub(super) fn show(plan: &Plan, format: Format) -> Result<()> {
    answer(|out| print(out, format, plan, rows(plan)))
}

fn rows(plan: &Plan) -> Vec<(&str, String)> {
    let mut rows = Vec::new();
    for socket in &plan.sockets {
        let mode = socket.mode.as_ref();
        let mode = mode.map_or_else(String::new, |mode| format!(", mode {mode}"));
        let tls = if socket.tls { ", TLS" } else { "" };
        rows.push((socket.protocol, format!("{}{mode}{tls}", socket.address)));
    }
    for host in &plan.hosts {
        rows.push(("host", host.clone()));
    }
    for (role, who) in &plan.rights {
        rows.push((role, who.clone()));
    }
    if let Some(path) = &plan.data_dir {
        rows.push(("data", path.display().to_string()));
    }
    let begun = match plan.on_demand {
        true => format!("up to {}", plan.limits["namespaces"]),
        false => "none".to_owned(),
    };
    rows.push(("on demand", begun));
    for namespace in &plan.namespaces {
        let text = format!(
            "{}: {}, {} bits{}, {}, {} slots in {}",
            namespace.name,
            namespace.layout,
            namespace.id_bits,
            if namespace.encrypted { "" } else { ", plain" },
            namespace.store,
            namespace.capacity,
            namespace.stripes,
        );
        rows.push(("namespace", text));
    }
    for (key, limit) in &plan.limits {
        rows.push(("limit", format!("{limit} {key}")));
    }
    let drain = Duration::from_millis(plan.drain_ms);
    rows.push(("drain", format!("{drain:?}")));
    for (key, value) in &plan.settings {
        rows.push(("setting", format!("{key} = {value}")));
    }
    for warning in &plan.warnings {
        rows.push(("warning", warning.clone()));
    }
    rows
}
