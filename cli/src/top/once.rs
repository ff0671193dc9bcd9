//! How it stands, as text: for scripts, and for probes.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;

use super::figures::{Figures, Snapshot};
use crate::report::forgive_closed_pipe;
use crate::units;

/// Prints a line for each namespace. The status is 0 if all of them can issue IDs.
pub(super) fn print(snapshot: &Snapshot) -> Result<ExitCode> {
    forgive_closed_pipe(io::stdout().lock().write_all(text(snapshot).as_bytes()))?;
    Ok(match snapshot.is_ready() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn text(snapshot: &Snapshot) -> String {
    if snapshot.namespaces.is_empty() {
        return "no namespace yet\n".to_owned();
    }
    let line = |(name, it): (&String, &Figures)| {
        let state = match it.is_ready() {
            true => format!("ready for {}", units::time(it.lease_remaining())),
            false if it.has_lease() => "not ready: its next ID lies too far ahead".to_owned(),
            false => "not ready: no lease is in force".to_owned(),
        };
        let name = if name.is_empty() { "-" } else { name };
        format!(
            "{name}: {state}; {} issued, {} of {} in the ring, {} borrowed of {}\n",
            units::short(it.issued()),
            units::short(it.level()),
            units::short(it.capacity()),
            units::time(it.borrowed()),
            units::time(it.borrow_limit())
        )
    };
    snapshot.namespaces.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::exposition::samples;
    use super::*;

    #[test]
    fn each_namespace_has_its_line() {
        let snapshot = |lines: &str| Snapshot::new(Instant::now(), samples(lines));
        assert_eq!(text(&snapshot("")), "no namespace yet\n");
        let found = snapshot(
            "ringflake_lease_remaining_seconds{namespace=\"a\"} 90\n\
             ringflake_ids_issued_total{namespace=\"a\"} 1500\n\
             ringflake_level{namespace=\"b\"} 10\n\
             ringflake_lease_remaining_seconds{namespace=\"c\"} 90\n\
             ringflake_server_ready{namespace=\"c\"} 0\n",
        );
        assert_eq!(
            text(&found),
            "a: ready for 90 s; 1.5 k issued, 0 of 0 in the ring, 0 ns borrowed of 0 ns\n\
             b: not ready: no lease is in force; 0 issued, 10 of 0 in the ring, \
             0 ns borrowed of 0 ns\n\
             c: not ready: its next ID lies too far ahead; 0 issued, 0 of 0 in the ring, \
             0 ns borrowed of 0 ns\n"
        );
    }
}
