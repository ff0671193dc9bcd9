//! Several renewals in one call: the part that all stores share.
//!
//! Each renewal succeeds or fails alone. But a store that can't answer one can't answer the
//! next, and each of them would wait for its time-out. So nothing is sent after the first
//! renewal that could not be sent, or whose outcome is unknown.

use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::request::Renew;

/// The renewals of a call, each with its namespace.
pub(in crate::lease) type Renewals<'a> = [(&'a Namespace, &'a Renew)];

/// The answers, in the same order.
pub(in crate::lease) type Answers = Vec<Result<u64, StoreError>>;

/// Sends one renewal after the other, by `renew`.
pub(in crate::lease) fn one_by_one(
    renewals: &Renewals<'_>,
    mut renew: impl FnMut(&Namespace, &Renew) -> Result<u64, StoreError>,
) -> Answers {
    let mut asking = Asking::default();
    let ask = |&(namespace, wanted): &(_, _)| asking.ask(|| renew(namespace, wanted));
    renewals.iter().map(ask).collect()
}

/// Whether a store is still asked.
#[derive(Debug, Default)]
pub(in crate::lease) struct Asking {
    /// Why not.
    ended: Option<String>,
}

impl Asking {
    /// The answer of `renew`, or that it was not asked any more.
    pub(in crate::lease) fn ask(
        &mut self,
        renew: impl FnOnce() -> Result<u64, StoreError>,
    ) -> Result<u64, StoreError> {
        if let Some(why) = &self.ended {
            let text = format!("not sent, because an earlier renewal failed: {why}");
            return Err(StoreError::unavailable(text));
        }
        let answer = renew();
        if let Err(error) = &answer {
            self.heed(error);
        }
        answer
    }

    /// Whether nothing more is asked.
    pub(in crate::lease) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Notes an error. Returns whether it ends the call: the store could not be reached,
    /// or left the outcome unknown.
    pub(in crate::lease) fn heed(&mut self, error: &StoreError) -> bool {
        let ends = error.is_away();
        if ends {
            self.ended = Some(error.cause());
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::{Block, Epoch, Fence, Fingerprint, Grant};

    /// How often the store was asked, and its answers, if the second answer is this.
    fn asked(second: fn() -> StoreError) -> (u32, Answers) {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let renew = |block| {
            let grant = Grant::new(Block::new(block), Epoch::FIRST, 10..20);
            Renew::new(&grant, 30, 0)
        };
        let wanted = [0, 1, 2, 3].map(renew);
        let wanted = wanted.each_ref().map(|wanted| (&space, wanted));
        let mut asked = 0;
        let answers = one_by_one(&wanted, |_, renew| {
            asked += 1;
            match renew.block.index() {
                1 => Err(second()),
                index => Ok(100 + index),
            }
        });
        (asked, answers)
    }

    #[test]
    fn a_store_that_does_not_answer_is_asked_once() {
        for silence in [
            || StoreError::unavailable("gone"),
            || StoreError::Ambiguous {
                operation: "renew",
                source: "gone".into(),
            },
        ] {
            let (asked, answers) = asked(silence);
            assert_eq!(asked, 2);
            assert!(matches!(answers[0], Ok(100)), "{answers:?}");
            for answer in &answers[2..] {
                let Err(StoreError::Unavailable { source }) = answer else {
                    panic!("{answer:?}");
                };
                let said = source.to_string();
                assert!(
                    said.starts_with("not sent") && said.ends_with("gone"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn a_renewal_that_is_refused_costs_no_other() {
        let (asked, answers) = asked(|| StoreError::Fenced {
            block: Block::new(1),
            fence: Fence::NeverGranted,
        });
        assert_eq!(asked, 4);
        let is_right = matches!(answers[..], [Ok(100), Err(_), Ok(102), Ok(103)]);
        assert!(is_right, "{answers:?}");
    }
}
