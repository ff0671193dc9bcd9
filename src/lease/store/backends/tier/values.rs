//! The values of a grant log's own entries, as flat JSON.
//!
//! | key | value |
//! |---|---|
//! | `NAMESPACE/record`, `NAMESPACE/block/INDEX` | those of every [table](crate::lease::store::table), of the sub-grants |
//! | `NAMESPACE/upstream/INDEX` | `epoch`, `start`, `end`, `standing`, `used_by` |
//! | `NAMESPACE/tier` | `first_epoch`, `reach`, `began_unix_ms`, `failing_since_unix_ms`, `failed_last_unix_ms`, `failures`, `failure` |

use super::grant_log::{GrantLog, Standing, UpstreamGrant};
use super::requests::{Failing, UpstreamState};
use crate::lease::block::{Block, Epoch};
use crate::lease::error::StoreError;
use crate::lease::store::format::Fields;
use crate::lease::store::format::json::Object;
use crate::lease::store::table::Key;

/// The key of what is neither a block nor the record.
pub(super) fn tier_key(namespace: &str) -> Key {
    Key::from(format!("{namespace}/tier"))
}

/// The key of an upstream grant.
pub(super) fn upstream_key(namespace: &str, block: Block) -> Key {
    Key::from(format!("{namespace}/upstream/{:020}", block.index()))
}

/// The block whose upstream grant this is the key of, if it is one.
pub(super) fn upstream_block(namespace: &str, key: &Key) -> Option<Block> {
    let digits = key.as_str().strip_prefix(namespace)?;
    let index = digits.strip_prefix("/upstream/")?.parse().ok()?;
    Some(Block::new(index))
}

pub(super) fn encode_upstream(upstream: &UpstreamGrant) -> String {
    let mut object = Object::default();
    object.add_number("epoch", upstream.epoch.get());
    object.add_number("start", upstream.ticks.start);
    object.add_number("end", upstream.ticks.end);
    object.add_text("standing", standing(upstream.standing));
    if let Some(user) = &upstream.used_by {
        object.add_text("used_by", user);
    }
    object.to_string()
}

pub(super) fn decode_upstream(key: &Key, value: &str) -> Result<UpstreamGrant, StoreError> {
    let fields = Fields::parse(format!("the value of {key}"), value)?;
    let (start, end) = (fields.number("start")?, fields.number("end")?);
    if start >= end {
        return Err(fields.wrong("an empty interval"));
    }
    Ok(UpstreamGrant {
        epoch: Epoch::new(fields.number("epoch")?),
        ticks: start..end,
        used_by: fields.text("used_by").ok().map(str::to_owned),
        standing: match fields.text("standing")? {
            "held" => Standing::Held,
            "draining" => Standing::Draining,
            "closed" => Standing::Closed,
            other => return Err(fields.wrong(&format!("the standing {other:?}"))),
        },
    })
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Held => "held",
        Standing::Draining => "draining",
        Standing::Closed => "closed",
    }
}

pub(super) fn encode_tier(log: &GrantLog) -> String {
    let mut object = Object::default();
    object.add_number("first_epoch", log.first_epoch.get());
    object.add_number("reach", log.reach);
    if let Some(began) = log.upstream_state.began_unix_ms {
        object.add_number("began_unix_ms", began);
    }
    if let Some(failing) = &log.upstream_state.failing {
        object.add_number("failing_since_unix_ms", failing.since_unix_ms);
        object.add_number("failed_last_unix_ms", failing.last_unix_ms);
        object.add_number("failures", u64::from(failing.failures));
        object.add_text("failure", &failing.message);
    }
    object.to_string()
}

/// First epoch, reach, and the state of the requests.
pub(super) fn decode_tier(
    key: &Key,
    value: &str,
) -> Result<(Epoch, u64, UpstreamState), StoreError> {
    let fields = Fields::parse(format!("the value of {key}"), value)?;
    let failing = match fields.text("failure") {
        Err(_) => None,
        Ok(message) => Some(Failing {
            since_unix_ms: fields.number("failing_since_unix_ms")?,
            last_unix_ms: fields.number("failed_last_unix_ms")?,
            failures: u32::try_from(fields.number("failures")?).unwrap_or(u32::MAX),
            message: message.to_owned(),
        }),
    };
    let state = UpstreamState {
        began_unix_ms: fields.number("began_unix_ms").ok(),
        failing,
    };
    let first_epoch = Epoch::new(fields.number("first_epoch")?);
    Ok((first_epoch, fields.number("reach")?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let key = upstream_key("orders", Block::new(7));
        assert_eq!(upstream_block("orders", &key), Some(Block::new(7)));
        assert_eq!(upstream_block("order", &key), None);
        assert_eq!(upstream_block("orders", &tier_key("orders")), None);
        let mut upstream = UpstreamGrant {
            epoch: Epoch::new(3),
            ticks: 5..9,
            used_by: None,
            standing: Standing::Held,
        };
        for standing in [Standing::Held, Standing::Draining, Standing::Closed] {
            upstream.standing = standing;
            upstream.used_by = upstream.used_by.xor(Some("1-\"2\"".to_owned()));
            let value = encode_upstream(&upstream);
            assert_eq!(decode_upstream(&key, &value).unwrap(), upstream);
        }
    }

    #[test]
    fn what_nobody_writes_is_corrupt() {
        let key = tier_key("orders");
        let upstream = r#"{"epoch":3,"start":5,"end":9,"standing":"held"}"#;
        decode_upstream(&key, upstream).unwrap();
        for bad in [
            "",
            &upstream.replace("9", "5"),
            &upstream.replace("3", "-3"),
            &upstream.replace("held", "lost"),
        ] {
            let error = decode_upstream(&key, bad).unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{bad}: {error}"
            );
        }
        let tier = r#"{"first_epoch":1,"reach":7}"#;
        decode_tier(&key, tier).unwrap();
        for bad in [
            "[]",
            &tier.replace("7", "-7"),
            &tier.replace("}", r#","failure":"away"}"#),
        ] {
            let error = decode_tier(&key, bad).unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{bad}: {error}"
            );
        }
    }
}
