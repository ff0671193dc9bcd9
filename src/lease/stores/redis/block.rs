//! The state of blocks, as the keys hold it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use redis::Value;

use super::script::{self, Answer};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Quarantined;
use crate::lease::quarantine::{self, Judged};
use crate::lease::row::corrupt;

/// The name of the block in the sets and hashes; as `name_of` in the scripts.
pub(super) fn name_of(block: Block) -> String {
    format!("{:016}", block.index())
}

/// The texts in an array, of which some may be bytes that are no text.
type Texts<'a> = Vec<Cow<'a, str>>;

/// # Errors
/// [`StoreError::Corrupt`] if there is no array of texts at this place.
fn texts(answer: &Answer, place: usize) -> Result<Texts<'_>, StoreError> {
    let Some(Value::Array(values)) = answer.rest.get(place) else {
        return Err(script::unexpected("no array of texts"));
    };
    let shown = values.iter().map(|value| match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(bytes)),
        other => script::text(other).map(Cow::from),
    });
    shown.collect()
}

/// The values of the keys that decide: `look_at` in the scripts.
#[derive(Clone, Copy, Debug)]
struct Stored<'a> {
    name: &'a str,
    mark: Option<&'a str>,
    epoch: Option<&'a str>,
    /// The mark at which it was released.
    released: Option<&'a str>,
}

impl Stored<'_> {
    /// The block as these keys have it, or why that can't be.
    fn judge(self, namespace: &Namespace) -> Judged {
        let named = self.name.parse().ok().map(Block::new);
        let named = named.filter(|block| block.index() < namespace.blocks());
        let Some(block) = named.filter(|block| name_of(*block) == self.name) else {
            let reason = format!("{:?} is the name of no block", self.name);
            return Err(Quarantined::of_no_block(reason));
        };
        let number = |what: &str, text: Option<&str>| {
            let text =
                text.ok_or_else(|| Quarantined::new(block, format!("its {what} is missing")))?;
            script::parse(text)
                .map_err(|_| Quarantined::new(block, format!("its {what} is {text:?}")))
        };
        let mark = number("mark (hwm_end)", self.mark)?;
        let epoch = number("epoch", self.epoch)?;
        if epoch == 0 {
            return Err(Quarantined::new(block, "its epoch is 0"));
        }
        let mut state = BlockState::new(block, Epoch::new(epoch), mark);
        if let Some(released) = self.released {
            state.released = true;
            if self.mark != Some(released) {
                let reason = format!("it was released at tick {released}, and its mark is {mark}");
                return Err(Quarantined::new(block, reason));
            }
        }
        quarantine::judge(namespace, state)
    }
}

/// Those that a script has found to be quarantined.
///
/// # Errors
/// [`StoreError::Corrupt`] where the rules say that one is sound.
pub(super) fn quarantined(
    answer: &Answer,
    place: usize,
    namespace: &Namespace,
) -> Result<Vec<Quarantined>, StoreError> {
    fn given(text: &str) -> Option<&str> {
        Some(text).filter(|text| !text.is_empty())
    }
    let texts = texts(answer, place)?;
    let judged = texts.chunks(4).map(|block| match block {
        [name, mark, epoch, released] => Ok(Stored {
            name,
            mark: given(mark),
            epoch: given(epoch),
            released: given(released),
        }
        .judge(namespace)),
        _ => Err(script::unexpected("a part of what stands in the keys")),
    });
    let judged = judged.collect::<Result<Vec<_>, _>>()?;
    match quarantine::sort(namespace, judged) {
        (sound, found) if sound.is_empty() => Ok(found),
        (sound, _) => Err(corrupt(format!(
            "block {} is quarantined by the script, and sound by the rules",
            sound[0].block
        ))),
    }
}

/// The blocks out of the answer of `list.lua`.
pub(super) fn listed(answer: &Answer, namespace: &Namespace) -> Result<Vec<Judged>, StoreError> {
    type Table<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;
    let table = |place: usize| -> Result<Table<'_>, StoreError> {
        let mut texts = texts(answer, place)?.into_iter();
        let pairs = std::iter::from_fn(|| Some((texts.next()?, texts.next()?)));
        Ok(pairs.collect())
    };
    let (marks, released, epochs) = (table(0)?, table(1)?, table(2)?);
    let (times, hosts, instances) = (table(3)?, table(4)?, table(5)?);
    let mut names: Vec<_> = marks
        .keys()
        .chain(released.keys())
        .chain(epochs.keys())
        .collect();
    names.sort_unstable();
    names.dedup();
    let judged = names.into_iter().map(|name| {
        let text_of = |table: &Table<'_>| table.get(name).map(|text| text.clone().into_owned());
        let stored = Stored {
            name,
            mark: marks.get(name).map(|text| &**text),
            epoch: epochs.get(name).map(|text| &**text),
            released: released.get(name).map(|text| &**text),
        };
        let mut block = stored.judge(namespace)?;
        // Those are for people: what can't be read of them is left out.
        block.granted_unix_ms = times.get(name).and_then(|ms| script::parse(ms).ok());
        block.holder = text_of(&hosts)
            .zip(text_of(&instances))
            .map(|(host, instance)| Holder::new(host, instance));
        Ok(block)
    });
    Ok(judged.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::fingerprint::Fingerprint;

    #[test]
    fn keys_that_disagree_are_quarantined_with_what_they_say() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let good = Stored {
            name: "0000000000000007",
            mark: Some("50"),
            epoch: Some("3"),
            released: Some("50"),
        };
        assert!(good.judge(&space).unwrap().released);
        type Damage = fn(&mut Stored<'_>);
        let damages: [(Damage, &str); 8] = [
            (|it| it.mark = None, "mark (hwm_end) is missing"),
            (|it| it.epoch = None, "epoch is missing"),
            (|it| it.mark = Some("1.5"), "\"1.5\""),
            (|it| it.epoch = Some("x"), "\"x\""),
            (|it| it.epoch = Some("0"), "epoch is 0"),
            (|it| it.epoch = Some("51"), "above its mark 50"),
            (|it| it.released = Some("49"), "released at tick 49"),
            (
                |it| (it.mark, it.released) = (Some("1073741825"), None),
                "1073741825",
            ),
        ];
        for (damage, said) in damages {
            let mut stored = good;
            damage(&mut stored);
            let found = stored.judge(&space).unwrap_err();
            assert_eq!(found.block, Some(Block::new(7)));
            assert!(found.reason.contains(said), "{found}");
        }
        for name in ["7", "0000000000004096", "x", ""] {
            let found = Stored { name, ..good }.judge(&space).unwrap_err();
            assert_eq!(found.block, None, "{name}");
        }
    }
}
