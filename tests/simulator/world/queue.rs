//! What happens, and when.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ringflake::lease::protocol::{Answer, Request};

use crate::oracle::Told;
use crate::scenario::Fault;
use crate::service::Caller;

/// What happens at some moment.
#[derive(Debug)]
pub(super) enum Event {
    /// A process looks what there is to do. The number tells an alarm that was
    /// set anew since.
    Wake {
        process: usize,
        alarm: u64,
    },
    Arrive(Box<Message>),
    Reply {
        process: usize,
        number: u64,
        answer: Answer,
    },
    TimeOut {
        process: usize,
        number: u64,
    },
    Strike(Fault),
    /// A process starts with the name of one that is gone.
    Start {
        name: usize,
    },
    /// A snapshot of a process is resumed beside it.
    Copy {
        process: usize,
        hook: bool,
    },
    /// All that is broken is whole again.
    Calm,
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) process: usize,
    pub(super) number: u64,
    pub(super) server: usize,
    pub(super) caller: Caller,
    /// What the process had been told when it asked.
    pub(super) told: Vec<Told>,
    pub(super) request: Request,
}

/// Events in the order of their times; those of one moment, as they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Queued>>,
    count: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at_ms: u64, event: Event) {
        self.count += 1;
        self.heap.push(Reverse(Queued {
            place: (at_ms, self.count),
            event,
        }));
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse(queued) = self.heap.pop()?;
        Some((queued.place.0, queued.event))
    }
}

#[derive(Debug)]
struct Queued {
    place: (u64, u64),
    event: Event,
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Queued {}
