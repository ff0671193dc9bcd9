//! `ringflake store ls`: the blocks of a namespace.

use anyhow::Result;
use clap::Args;
use ringflake::lease::{Block, BlockState, Holder, Namespace, Quarantined};
use serde::Serialize;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::Moment;
use crate::data_dir::DataDir;
use crate::format::Format;
use crate::output;
use crate::report::say;
use crate::timestamp::exact;
use crate::units;

const DETAILS: &str = "Examples:
  ringflake store ls                         # leases.db in the data directory
  ringflake store ls --all --store URL --namespace orders

States: held; released by its holder; passed, which ended before now; quarantined,
whose record is damaged, until 'ringflake store repair'.

JSON, a line for each block: block, first_node, end_node (not included), epoch, end
with tick, unix_ms and time (RFC 3339), state, host and instance of the holder,
granted_unix_ms, granted (RFC 3339), reason of the quarantine; null where unknown";

/// List the blocks that are held
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct LsArgs {
    /// Released blocks and passed ones, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Default, Serialize)]
struct Object<'a> {
    block: Option<u64>,
    first_node: Option<u64>,
    end_node: Option<u64>,
    epoch: Option<u64>,
    end: Option<Moment>,
    state: &'a str,
    host: Option<&'a str>,
    instance: Option<&'a str>,
    granted_unix_ms: Option<u64>,
    granted: Option<String>,
    reason: Option<&'a str>,
}

/// The state of a block whose holder may use it.
const HELD: &str = "held";

pub(super) fn run(args: &LsArgs, data_dir: &DataDir) -> Result<()> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let listing = open.ask(|store, namespace, _| store.list(namespace))?;
    let namespace = &listing.record.namespace;
    let blocks = listing.blocks.iter();
    let blocks = blocks.map(|block| Object::new(namespace, block, open.now_unix_ms));
    let (shown, others): (Vec<_>, Vec<_>) =
        blocks.partition(|block| args.all || block.state == HELD);
    let is_empty = shown.is_empty() && listing.quarantined.is_empty();
    if is_empty && !others.is_empty() {
        let count = others.len();
        say(format_args!(
            "no block is held; --all lists the {count} that were"
        ));
    }
    let quarantined = listing.quarantined.iter();
    let objects = shown
        .into_iter()
        .chain(quarantined.map(|found| Object::damaged(namespace, found)));
    output::answer(|out| match args.common.output.format {
        Format::Json => objects
            .into_iter()
            .try_for_each(|object| output::json(out, &object)),
        Format::Text => {
            let rows: Vec<_> = objects.map(|object| object.row(open.now_unix_ms)).collect();
            let titles = [
                "block", "nodes", "epoch", "end", "state", "leased", "holder",
            ];
            output::columns(out, titles, &rows)
        }
    })
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
            HELD
        };
        Self {
            block: Some(block.block.index()),
            first_node: Some(nodes.start),
            end_node: Some(nodes.end),
            epoch: Some(block.epoch.get()),
            end: Some(end),
            state,
            host: block.holder.as_ref().map(Holder::host),
            instance: block.holder.as_ref().map(Holder::instance),
            granted_unix_ms: block.granted_unix_ms,
            granted: block.granted_unix_ms.and_then(exact),
            reason: None,
        }
    }

    fn damaged(namespace: &Namespace, found: &'a Quarantined) -> Self {
        let nodes = found.block.map(|block| namespace.nodes_of(block));
        Self {
            block: found.block.map(Block::index),
            first_node: nodes.as_ref().map(|nodes| nodes.start),
            end_node: nodes.map(|nodes| nodes.end),
            state: "quarantined",
            reason: Some(&found.reason),
            ..Self::default()
        }
    }

    fn row(&self, now_unix_ms: u64) -> [String; 7] {
        let number = |number: Option<u64>| number.map_or_else(String::new, |it| it.to_string());
        let end = self.end.as_ref().map(|end| match &end.time {
            Some(time) => time.clone(),
            None => format!("tick {}", end.tick),
        });
        let nodes = match (self.first_node, self.end_node) {
            (Some(first), Some(end)) if end - first > 1 => format!("{first}..{end}"),
            (first, _) => number(first),
        };
        let age = |at: u64| age(now_unix_ms.saturating_sub(at));
        [
            number(self.block),
            nodes,
            number(self.epoch),
            end.unwrap_or_default(),
            self.state.to_owned(),
            self.granted_unix_ms.map_or_else(String::new, age),
            match (self.host, self.instance) {
                (Some(host), Some(instance)) => format!("{host}/{instance}"),
                _ => self.reason.unwrap_or_default().to_owned(),
            },
        ]
    }
}

fn age(ms: u64) -> String {
    match ms / 1000 {
        0 => "just now".to_owned(),
        seconds => format!("{} ago", units::time(seconds as f64)),
    }
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;
    use ringflake::lease::{Epoch, Fingerprint};

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
}
