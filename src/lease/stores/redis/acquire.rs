//! An acquisition: the arguments of its script, and the grants out of the answer.

use redis::Value;

use super::answers::{block_at, disagreement};
use super::block::{self, name_of};
use super::script::{self, Answer};
use crate::lease::block::{Block, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::record::LowestMarks;
use crate::lease::request::Acquire;

/// The arguments of `acquire.lua` after those that every script has.
pub(super) fn arguments(namespace: &Namespace, acquire: &Acquire) -> Vec<String> {
    let (host, instance) = match &acquire.holder {
        Some(holder) => (holder.host(), holder.instance()),
        None => ("", ""),
    };
    // Beyond the layout's ticks all lengths are the same.
    let length = acquire.length.min(namespace.layout().ticks());
    // Nor are later ticks told apart: they are refused.
    let beyond = namespace.layout().ticks().saturating_add(1);
    let tick = |tick: u64| tick.min(beyond).to_string();
    let past = acquire.past.as_ref();
    let past = past.map(|past| (tick(past.start), tick(past.end)));
    let past = past.unwrap_or_default();
    let mut arguments = [
        &*acquire.blocks.to_string(),
        &*length.to_string(),
        &*acquire.now_unix_ms.to_string(),
        if acquire.holder.is_some() { "1" } else { "0" },
        host,
        instance,
        &*past.0,
        &*past.1,
    ]
    .map(str::to_owned)
    .to_vec();
    for Confirmed {
        block, epoch, end, ..
    } in &acquire.evidence
    {
        arguments.extend([name_of(*block), epoch.get().to_string(), end.to_string()]);
    }
    arguments
}

/// The grants that `acquire.lua` answers, or why there are none.
pub(super) fn grants(
    answer: &Answer,
    namespace: &Namespace,
    acquire: &Acquire,
) -> Result<Vec<Grant>, StoreError> {
    let record = answer.record()?;
    let now = record.tick_at(answer.unix_ms)?;
    match &*answer.tag {
        "granted" => {
            block::quarantined(answer, 0, namespace)?;
            answer
                .rest
                .get(1..)
                .unwrap_or_default()
                .chunks(4)
                .map(grant)
                .collect()
        }
        "skew" => {
            record.check_skew(answer.unix_ms, acquire.now_unix_ms)?;
            Err(disagreement())
        }
        "forgotten" => {
            let name = answer.text(0)?;
            let mut evidence = acquire.evidence.iter();
            let confirmed = evidence.find(|it| name_of(it.block) == name);
            let confirmed = *confirmed.ok_or_else(disagreement)?;
            let known = block_at(answer, 1, confirmed.block)?;
            Err(StoreError::HistoryLost {
                confirmed,
                recorded: known.map(|known| (known.epoch, known.hwm_end)),
            })
        }
        "refused" => {
            block::quarantined(answer, 0, namespace)?;
            let lowest = LowestMarks {
                held: answer.number(1)?,
                released: answer.number(2)?,
            };
            Err(record.refusal(answer.unix_ms, now, acquire, lowest))
        }
        _ => Err(disagreement()),
    }
}

/// One of the grants that `acquire.lua` answers.
fn grant(texts: &[Value]) -> Result<Grant, StoreError> {
    let numbers: Vec<u64> = texts.iter().map(script::number).collect::<Result<_, _>>()?;
    let [block, epoch, start, end] = numbers[..] else {
        return Err(disagreement());
    };
    Ok(Grant::new(Block::new(block), Epoch::new(epoch), start..end))
}
