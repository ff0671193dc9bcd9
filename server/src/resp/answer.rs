//! A reply of more IDs than a turn may write.
//!
//! Its IDs are taken step by step, a step a turn, and then written so: their number stands in
//! front of them. No request behind it is looked at before.
//!
//! IDs that are taken or still to be taken are set aside, of what a worker keeps for slow
//! clients. The IDs of a step are freed and given back as soon as they are written, so a client
//! that has all but the end of a long reply keeps no room but the end's:
//!
//! ```text
//! held = IDs still to be taken + IDs taken and not yet written
//! ```

use std::collections::VecDeque;

use ringflake::{Id, TakeError};

use super::desk::{Desk, Met, STEP};
use super::reply::{Form, Replies};
use crate::clients::Client;

/// An ID in a reply, with its length and the ends of its lines, has no more bytes.
const ID_BYTES: usize = 27;

/// A reply of many IDs.
#[derive(Debug)]
pub(super) struct Answer {
    namespace: Met,
    form: Form,
    /// How many were asked for.
    count: usize,
    /// Those that are not written, as they were taken: a step each, and none without IDs.
    steps: VecDeque<Box<[Id]>>,
    /// How many were taken.
    taken: usize,
    /// How many are still to be taken.
    left: usize,
    has_header: bool,
    /// Whose it is, and what is still set aside by [`Desk::may_hold`].
    client: Client,
    held: usize,
    /// When it has to be with the client as a whole, in the worker's ticks.
    due: Option<u32>,
}

impl Answer {
    /// `count` IDs are set aside for this client.
    pub(super) fn new(client: Client, namespace: Met, form: Form, count: usize) -> Box<Self> {
        Box::new(Self {
            namespace,
            form,
            count,
            steps: VecDeque::with_capacity(count.div_ceil(STEP)),
            taken: 0,
            left: count,
            has_header: false,
            client,
            held: count,
            due: None,
        })
    }

    /// When it has to be with the client as a whole: as `at` says of its bytes when it is
    /// asked for the first time.
    pub(super) fn due(&mut self, at: impl FnOnce(usize) -> u32) -> u32 {
        let bytes = self.count * ID_BYTES;
        *self.due.get_or_insert_with(|| at(bytes))
    }

    /// Takes some of its IDs or writes some, and says whether that was all.
    pub(super) fn step(&mut self, replies: &mut Replies<'_>, desk: &mut Desk) -> bool {
        if self.left > 0 {
            let (ids, error) = desk.take(self.namespace, self.left.min(STEP));
            self.taken += ids.len();
            self.left -= ids.len();
            if !ids.is_empty() {
                self.steps.push_back(ids.into());
            }
            match error {
                None => return false,
                // Those that there are will be the answer.
                Some(_) if self.taken > 0 => {
                    let left = std::mem::take(&mut self.left);
                    self.give_back(left, desk);
                }
                Some(error) => {
                    refuse_take(replies, error);
                    return true;
                }
            }
        }
        if !self.has_header {
            self.has_header = true;
            replies.array(self.taken);
        }
        if let Some(ids) = self.steps.pop_front() {
            for &id in &ids {
                replies.id(id, self.form);
            }
            self.give_back(ids.len(), desk);
        }
        self.steps.is_empty()
    }

    /// Gives back all that is still set aside.
    pub(super) fn end(&mut self, desk: &mut Desk) {
        self.give_back(self.held, desk);
    }

    fn give_back(&mut self, count: usize, desk: &mut Desk) {
        self.held -= count;
        desk.release(self.client, count);
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
