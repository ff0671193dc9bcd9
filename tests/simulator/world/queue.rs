//! What happens, and when.

use std::collections::BTreeMap;

use ringflake::lease::protocol::Answer;

use crate::scenario::Fault;
use crate::service::Message;

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

/// Events in the order of their times; those of one moment, as they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at_ms: u64, event: Event) {
        self.count += 1;
        self.events.insert((at_ms, self.count), event);
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        let ((at_ms, _), event) = self.events.pop_first()?;
        Some((at_ms, event))
    }
}
