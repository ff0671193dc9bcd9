//! The parts of answers about stores.

use ringflake::Layout;
use ringflake::lease::{Block, Epoch, Namespace, StoreRecord};
use serde::Serialize;
use serde_json::json;

use crate::output::Answer;
use crate::timestamp::exact;
use crate::units::millis;

/// A tick and when it begins, as JSON shows them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    pub(super) tick: u64,
    pub(super) unix_ms: u64,
    /// RFC 3339; null after the year 9999.
    pub(super) time: Option<String>,
}

impl Moment {
    pub(super) fn new(layout: &Layout, tick: u64) -> Self {
        let unix_ms = layout.tick_start_unix_ms(tick);
        Self {
            tick,
            unix_ms,
            time: exact(unix_ms),
        }
    }

    pub(super) fn add_to(&self, answer: &mut Answer, title: &str, name: &str) {
        let tick = self.tick;
        match &self.time {
            Some(time) => answer.row(title, format!("{time} (tick {tick})")),
            None => answer.row(title, format!("tick {tick}")),
        }
        answer.field(name, json!(self));
    }
}

/// An answer that begins with a block and its last epoch.
pub(super) fn of_block(namespace: &Namespace, block: Block, epoch: Epoch) -> Answer {
    let mut answer = Answer::default();
    answer.text("namespace", namespace.name());
    for (name, number) in [("block", block.index()), ("epoch", epoch.get())] {
        answer.row(name, number);
        answer.field(name, number);
    }
    answer
}

/// Adds the record of a namespace, with the use of its blocks in words.
pub(super) fn add_record(answer: &mut Answer, record: &StoreRecord, use_of_blocks: &str) {
    let StoreRecord {
        namespace, limits, ..
    } = record;
    let (blocks, nodes) = (namespace.blocks(), namespace.block_nodes());
    answer.text("namespace", namespace.name());
    answer.text("layout", namespace.layout());
    answer.row(
        "blocks",
        format!("{blocks} of {nodes} nodes{use_of_blocks}"),
    );
    answer.field("blocks", blocks);
    answer.field("block_nodes", nodes);
    let times = [limits.horizon(), limits.failover(), limits.skew()];
    let [horizon, failover, skew] = times.map(humantime::format_duration);
    answer.row(
        "limits",
        format!("horizon {horizon}, failover {failover}, skew {skew}"),
    );
    let names = ["horizon_ms", "failover_ms", "skew_limit_ms"];
    for (name, time) in names.into_iter().zip(times) {
        answer.field(name, millis(time));
    }
}
