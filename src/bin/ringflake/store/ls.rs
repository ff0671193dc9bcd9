//! `ringflake store ls`: the blocks of a namespace.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::lease::{BlockState, Holder, Namespace};
use serde::Serialize;

use super::output::{self, Moment};
use super::{CommonArgs, Desk, Format, answer};
use crate::data_dir::DataDir;

/// List the blocks that were leased at least once
///
/// The state is held, released (its holder is done, and the next lease begins
/// where this one ends) or passed (the end lies behind the clock). A table says
/// how long ago a block was leased, JSON says when.
///
/// JSON, a line for each block: block, first_node, end_node (not included), epoch,
/// end with tick, unix_ms and time (RFC 3339), state, host and instance of the
/// holder, granted_unix_ms, granted (RFC 3339); null where nothing is known
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Object<'a> {
    block: u64,
    first_node: u64,
    end_node: u64,
    epoch: u64,
    end: Moment,
    state: &'a str,
    host: Option<&'a str>,
    instance: Option<&'a str>,
    granted_unix_ms: Option<u64>,
    granted: Option<String>,
}

pub(super) fn run(args: &LsArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut desk = Desk::open(&args.common, data_dir)?;
    let listing = desk.store.list(&desk.place.namespace);
    let listing = desk.explained(listing)?;
    let namespace = &listing.record.namespace;
    let objects = listing
        .blocks
        .iter()
        .map(|block| Object::new(namespace, block, desk.now_unix_ms));
    answer(|out| match args.common.format {
        Format::Json => objects
            .into_iter()
            .try_for_each(|object| output::json(out, &object)),
        Format::Table => {
            let rows: Vec<_> = objects.map(|object| object.row(desk.now_unix_ms)).collect();
            let titles = [
                "block", "nodes", "epoch", "end", "state", "leased", "holder",
            ];
            output::columns(out, titles, &rows)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

impl<'a> Object<'a> {
    fn new(namespace: &Namespace, block: &'a BlockState, now_unix_ms: u64) -> Self {
        let nodes = namespace.nodes_of(block.block);
        let end = Moment::new(namespace.layout(), block.hwm_end);
        let state = if end.unix_ms <= now_unix_ms {
            "passed"
        } else if block.released {
            "released"
        } else {
            "held"
        };
        Self {
            block: block.block.index(),
            first_node: nodes.start,
            end_node: nodes.end,
            epoch: block.epoch.get(),
            end,
            state,
            host: block.holder.as_ref().map(Holder::host),
            instance: block.holder.as_ref().map(Holder::instance),
            granted_unix_ms: block.granted_unix_ms,
            granted: block.granted_unix_ms.and_then(output::time),
        }
    }

    fn row(&self, now_unix_ms: u64) -> [String; 7] {
        let end = match &self.end.time {
            Some(time) => time.clone(),
            None => format!("tick {}", self.end.tick),
        };
        let nodes = if self.end_node - self.first_node == 1 {
            self.first_node.to_string()
        } else {
            format!("{}..{}", self.first_node, self.end_node)
        };
        let age = |at: u64| age(now_unix_ms.saturating_sub(at));
        [
            self.block.to_string(),
            nodes,
            self.epoch.to_string(),
            end,
            self.state.to_owned(),
            self.granted_unix_ms.map_or_else(String::new, age),
            match (self.host, self.instance) {
                (Some(host), Some(instance)) => format!("{host}/{instance}"),
                _ => String::new(),
            },
        ]
    }
}

/// How long ago, in the unit that suits it.
fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    let (number, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "min"),
        7200..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{number} {unit} ago")
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;
    use ringflake::lease::{Block, Epoch, Fingerprint};

    use super::*;

    #[test]
    fn a_block_is_held_released_or_passed() {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let now_ms = 1_760_000_000_000;
        let now = layout.tick_at(now_ms).unwrap();
        for (end, released, state) in [
            (now + 1, false, "held"),
            (now + 1, true, "released"),
            (now, false, "passed"),
            (now, true, "passed"),
        ] {
            let mut block = BlockState::new(Block::new(1), Epoch::FIRST, end);
            block.released = released;
            assert_eq!(Object::new(&space, &block, now_ms).state, state);
        }
    }

    #[test]
    fn an_age_has_the_unit_that_suits_it() {
        for (seconds, text) in [
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7200, "2 h ago"),
            (172_800, "2 d ago"),
        ] {
            assert_eq!(age(seconds * 1000), text);
        }
    }

    #[test]
    fn a_row_fits_80_columns() {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let end = layout.tick_at(1_760_000_000_000).unwrap();
        let mut block = BlockState::new(Block::new(4095), Epoch::new(12_345), end);
        block.released = true;
        block.granted_unix_ms = Some(1_759_999_000_000);
        block.holder = Some(Holder::new("db-1", "4194304"));
        let row = Object::new(&space, &block, 1_759_999_900_000).row(1_759_999_900_000);
        let mut out = Vec::new();
        output::columns(&mut out, [""; 7], &[row]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "4095  131040..131072  12345  2025-10-09T08:53:20Z  released  15 min ago  db-1/4194304"
        );
    }
}
