//! A reply of more IDs than a turn may write.
//!
//! Its IDs are taken step by step, a step a turn, and then written so. No request behind it
//! is looked at before.

use ringflake::{Id, TakeError};

use super::desk::{Desk, Met, STEP};
use super::reply::{Form, Replies};

/// An ID in a reply, with its length and the ends of its lines, has no more bytes.
const ID_BYTES: usize = 27;

/// A reply of many IDs.
#[derive(Debug)]
pub(super) struct Answer {
    namespace: Met,
    form: Form,
    ids: Vec<Id>,
    /// How many are still to be taken.
    left: usize,
    /// How many were written; `None` before the header.
    written: Option<usize>,
    /// What was set aside by [`Desk::may_hold`].
    pub(super) held: usize,
    /// When it has to be with the client as a whole, in the worker's ticks.
    due: Option<u32>,
}

impl Answer {
    pub(super) fn new(namespace: Met, form: Form, count: usize) -> Box<Self> {
        Box::new(Self {
            namespace,
            form,
            ids: Vec::with_capacity(count),
            left: count,
            written: None,
            held: count,
            due: None,
        })
    }

    /// When it has to be with the client as a whole: as `at` says of its bytes when it is
    /// asked for the first time.
    pub(super) fn due(&mut self, at: impl FnOnce(usize) -> u32) -> u32 {
        let bytes = self.held * ID_BYTES;
        *self.due.get_or_insert_with(|| at(bytes))
    }

    /// Takes some of its IDs or writes some, and says whether that was all.
    pub(super) fn step(&mut self, replies: &mut Replies<'_>, desk: &mut Desk) -> bool {
        if self.left > 0 {
            let (ids, error) = desk.take(self.namespace, self.left.min(STEP));
            self.ids.extend_from_slice(ids);
            self.left -= ids.len();
            match error {
                None => return false,
                // Those that there are will be the answer.
                Some(_) if !self.ids.is_empty() => self.left = 0,
                Some(error) => {
                    refuse_take(replies, error);
                    return true;
                }
            }
        }
        let written = *self.written.get_or_insert_with(|| {
            replies.array(self.ids.len());
            0
        });
        let to = self.ids.len().min(written + STEP);
        for &id in &self.ids[written..to] {
            replies.id(id, self.form);
        }
        self.written = Some(to);
        to == self.ids.len()
    }
}

/// The reply to a take that gave nothing.
pub(super) fn refuse_take(replies: &mut Replies<'_>, error: TakeError) {
    match error.retry_after() {
        Some(after) => replies.error(
            "TRYAGAIN",
            format_args!("{error} (retry in {} ms)", after.as_millis().max(1)),
        ),
        None => replies.error("ERR", error),
    }
}
