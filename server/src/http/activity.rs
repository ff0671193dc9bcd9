//! The deadlines of a connection.
//!
//! ```text
//! silent --first byte--> head --request is read--> requests (several in HTTP/2)
//!    ^                                                |
//!    +----------------- the last has been answered ---+
//! ```
//!
//! When the server drains, a silent client, and one whose head is on its way, has half a second
//! more: to close, or to send what it has begun. A request that has come is answered in its own
//! time.
//!
//! The connection's task looks at all deadlines at once, at the earliest of them, but at
//! least once in the shorter of both times: a deadline that is set meanwhile is at least that
//! far away. So setting one needs no timer and wakes nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::LEAST_BYTES_PER_SECOND;

/// How long a client without a request may take to close when the server drains.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What goes on in a connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    request_time: Duration,
    idle_time: Duration,
}

#[derive(Debug)]
struct State {
    /// The requests that have no whole answer yet.
    requests: Vec<Unanswered>,
    next: u64,
    /// Since when a request's head is on its way.
    head_since: Option<Instant>,
    /// Since when there is no request.
    silent_since: Instant,
    preface: Preface,
    /// Since when the server drains.
    draining_since: Option<Instant>,
    /// Since when the client reads nothing of what is sent.
    blocked_since: Option<Instant>,
}

/// The first bytes of a connection, which are no request's in HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preface {
    /// So many of them were as in HTTP/2.
    Begun(usize),
    Http1,
    Http2,
}

/// As no method of HTTP/1 begins.
const PREFACE: &[u8] = b"PRI ";

impl Preface {
    /// After these bytes, however they were cut.
    fn after(self, bytes: &[u8]) -> Self {
        let Self::Begun(count) = self else {
            return self;
        };
        let expected = &PREFACE[count..];
        match bytes.get(..expected.len()) {
            Some(bytes) if bytes == expected => Self::Http2,
            None if expected.starts_with(bytes) => Self::Begun(count + bytes.len()),
            _ => Self::Http1,
        }
    }
}

#[derive(Debug)]
struct Unanswered {
    number: u64,
    deadline: Instant,
    /// Since when a part of the answer is there for the client, who has not asked for more.
    offered: Option<Instant>,
}

impl Unanswered {
    fn deadline(&self, request_time: Duration) -> Instant {
        let offered = self.offered.map(|since| since + request_time);
        offered.map_or(self.deadline, |until| until.min(self.deadline))
    }
}

/// The result of a look at the deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All is well. Look again then.
    Again(Instant),
    /// It was silent for too long.
    Idle,
    /// The client is too slow.
    Overdue,
}

impl Activity {
    pub(super) fn new(request_time: Duration, idle_time: Duration, now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                requests: Vec::new(),
                next: 0,
                // Who connects has a request.
                head_since: Some(now),
                silent_since: now,
                preface: Preface::Begun(0),
                draining_since: None,
                blocked_since: None,
            }),
            request_time,
            idle_time,
        }
    }

    /// Bytes have come.
    pub(super) fn received(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if let Preface::Begun(_) = state.preface {
            state.preface = state.preface.after(bytes);
            if state.preface == Preface::Http2 {
                // Silent since it began.
                state.head_since = None;
            }
        }
        let is_http2 = state.preface == Preface::Http2;
        if state.requests.is_empty() && state.head_since.is_none() && !is_http2 {
            state.head_since = Some(Instant::now());
        }
    }

    /// Bytes wait for the client, or do so no longer.
    pub(super) fn blocked(&self, since: Option<Instant>) {
        self.lock().blocked_since = since;
    }

    /// The server drains, and the client is asked to close. Returns when to look again.
    pub(super) fn drain(&self, now: Instant) -> Instant {
        self.lock().draining_since.get_or_insert(now);
        now + LAST_WORDS
    }

    /// A request's head has been read.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> InFlight {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.head_since = None;
        // To read it, and to answer it.
        state.requests.push(Unanswered {
            number,
            deadline: now + 2 * self.request_time,
            offered: None,
        });
        InFlight {
            activity: Arc::clone(self),
            number,
            reading_until: now + self.request_time,
        }
    }

    pub(super) fn look(&self, now: Instant) -> Look {
        let state = self.lock();
        let blocked_until = state.blocked_since.map(|since| since + self.request_time);
        if blocked_until.is_some_and(|until| until <= now) {
            return Look::Overdue;
        }
        let requests = state.requests.iter();
        let deadlines = requests.map(|request| request.deadline(self.request_time));
        let next = match deadlines.min() {
            Some(deadline) if deadline <= now => return Look::Overdue,
            Some(deadline) => deadline,
            None if state.draining_since.is_some() && state.blocked_since.is_none() => {
                let since = state.draining_since.max(Some(state.silent_since));
                let until = since.map_or(now, |since| since + LAST_WORDS);
                if until <= now {
                    return Look::Idle;
                }
                until
            }
            None => match state.head_since {
                Some(since) if since + self.request_time <= now => return Look::Overdue,
                Some(since) => since + self.request_time,
                None if state.silent_since + self.idle_time <= now => return Look::Idle,
                None => state.silent_since + self.idle_time,
            },
        };
        let next = blocked_until.map_or(next, |until| next.min(until));
        let next = match state.draining_since {
            Some(_) => next.min(now + LAST_WORDS),
            None => next,
        };
        Look::Again(next.min(self.next_look(now)))
    }

    /// No deadline that is set from now on comes before this, unless the server drains.
    pub(super) fn next_look(&self, now: Instant) -> Instant {
        now + self.request_time.min(self.idle_time)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that has no whole answer yet.
#[derive(Debug)]
pub(super) struct InFlight {
    activity: Arc<Activity>,
    number: u64,
    reading_until: Instant,
}

impl InFlight {
    /// When the whole request must have come.
    pub(super) fn reading_until(&self) -> Instant {
        self.reading_until
    }

    /// The answer begins, and has so many bytes; returns its deadline.
    pub(super) fn answer_begins(&self, bytes: u64, now: Instant) -> Instant {
        let more = Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND);
        let deadline = now + self.activity.request_time + more;
        self.change(|own| own.deadline = deadline);
        deadline
    }

    /// A part of the answer is there since then, or the next one is being made: only the
    /// former waits for the client. In HTTP/2 a client that grants no room for more blocks
    /// no socket, so that this alone shows.
    pub(super) fn offered(&self, since: Option<Instant>) {
        self.change(|own| own.offered = since);
    }

    fn change(&self, change: impl FnOnce(&mut Unanswered)) {
        let mut state = self.activity.lock();
        let number = self.number;
        if let Some(own) = state.requests.iter_mut().find(|own| own.number == number) {
            change(own);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.requests.retain(|own| own.number != self.number);
        if state.requests.is_empty() {
            state.silent_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(300);

    fn activity(now: Instant) -> Arc<Activity> {
        Arc::new(Activity::new(REQUEST, IDLE, now))
    }

    #[test]
    fn a_client_that_sends_no_head_is_overdue() {
        let now = Instant::now();
        let activity = activity(now);
        assert_eq!(activity.look(now), Look::Again(now + REQUEST));
        // Neither do single bytes move the deadline.
        activity.received(b"P");
        activity.received(b"O");
        assert_eq!(activity.look(now + REQUEST), Look::Overdue);
    }

    #[test]
    fn a_head_after_silence_has_its_own_deadline() {
        let now = Instant::now();
        let activity = activity(now);
        drop(activity.begin(now));
        let later = Instant::now();
        assert_eq!(activity.look(later), Look::Again(later + REQUEST));
        assert_eq!(
            activity.look(later + REQUEST),
            Look::Again(later + 2 * REQUEST)
        );
        assert_eq!(activity.look(later + IDLE), Look::Idle);
        activity.received(b"G");
        assert_eq!(activity.look(later + IDLE), Look::Overdue);
    }

    #[test]
    fn the_preface_of_http2_is_no_head() {
        let now = Instant::now();
        let activity = activity(now);
        activity.received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        activity.received(b"a ping");
        assert_eq!(activity.look(now + IDLE - REQUEST), Look::Again(now + IDLE));
        assert_eq!(activity.look(now + IDLE), Look::Idle);
    }

    #[test]
    fn a_client_without_a_request_does_not_hold_the_end_up() {
        let now = Instant::now();
        let activity = activity(now);
        let request = activity.begin(now);
        assert_eq!(activity.drain(now), now + LAST_WORDS);
        let at = now + REQUEST;
        assert_eq!(activity.look(at), Look::Again(at + LAST_WORDS));
        drop(request);
        // The answer is made, and its client has yet to read it.
        let since = Instant::now();
        activity.blocked(Some(since));
        let at = since + 2 * LAST_WORDS;
        assert_eq!(activity.look(at), Look::Again(at + LAST_WORDS));
        activity.blocked(None);
        assert_eq!(activity.look(at), Look::Idle);
        assert!(matches!(activity.look(now), Look::Again(_)));
    }

    #[test]
    fn silence_begins_with_the_end_of_an_answer() {
        let begun = Instant::now();
        let activity = activity(begun);
        let request = activity.begin(begun);
        while Instant::now() == begun {
            std::hint::spin_loop();
        }
        drop(request);
        assert!(matches!(activity.look(begun + IDLE), Look::Again(_)));
    }

    #[test]
    fn a_client_that_never_asked_has_time_for_its_last_words() {
        let now = Instant::now();
        let activity = activity(now);
        let end = activity.drain(now);
        assert_eq!(activity.look(now), Look::Again(end));
        assert_eq!(activity.look(end), Look::Idle);
    }

    #[test]
    fn the_preface_of_http2_may_come_in_pieces() {
        let now = Instant::now();
        for at in 1..8 {
            let activity = activity(now);
            let (first, second) = b"PRI * HTTP/2.0".split_at(at);
            activity.received(first);
            activity.received(second);
            drop(activity.begin(now));
            let later = Instant::now();
            // In HTTP/1 this would be a head.
            activity.received(b"a ping");
            assert_eq!(activity.look(later + IDLE), Look::Idle, "{at}");
        }
        for other in [
            &["P", "OST "][..],
            &["PR", "OP"],
            &["OPRI "],
            &["PRI", "X", "PRI "],
            &["X", "RI "],
        ] {
            let activity = activity(now);
            for bytes in other {
                activity.received(bytes.as_bytes());
            }
            assert_eq!(activity.look(now + REQUEST), Look::Overdue, "{other:?}");
        }
    }

    #[test]
    fn no_deadline_comes_before_the_next_look() {
        let now = Instant::now();
        let short = Duration::from_secs(1);
        for (request_time, idle_time) in [(short, IDLE), (REQUEST, short)] {
            let activity = Arc::new(Activity::new(request_time, idle_time, now));
            assert_eq!(activity.look(now), Look::Again(now + short));
            assert_eq!(activity.next_look(now), now + short);
        }
    }

    #[test]
    fn a_client_that_reads_nothing_is_overdue() {
        let now = Instant::now();
        let activity = activity(now);
        let request = activity.begin(now);
        request.answer_begins(100 << 20, now);
        activity.blocked(Some(now));
        assert_eq!(activity.look(now), Look::Again(now + REQUEST));
        assert_eq!(activity.look(now + REQUEST), Look::Overdue);
        activity.blocked(None);
        assert_ne!(activity.look(now + REQUEST), Look::Overdue);
    }

    #[test]
    fn a_part_that_nobody_takes_is_overdue() {
        let now = Instant::now();
        let activity = activity(now);
        let request = activity.begin(now);
        request.answer_begins(100 << 20, now);
        let later = now + 2 * REQUEST;
        request.offered(Some(later));
        assert_eq!(activity.look(later), Look::Again(later + REQUEST));
        assert_eq!(activity.look(later + REQUEST), Look::Overdue);
        // The next one takes time to be made, which is not the client's fault.
        request.offered(None);
        assert_ne!(activity.look(later + REQUEST), Look::Overdue);
    }

    #[test]
    fn the_slowest_request_counts() {
        let now = Instant::now();
        let activity = activity(now);
        let (slow, quick) = (activity.begin(now), activity.begin(now));
        assert_eq!(quick.reading_until(), now + REQUEST);
        let deadline = quick.answer_begins(100 << 20, now);
        assert_eq!(deadline, now + REQUEST + Duration::from_secs(100));
        let at = now + 2 * REQUEST;
        assert_eq!(activity.look(at), Look::Overdue, "the slow one");
        drop(slow);
        assert_eq!(activity.look(at), Look::Again(at + REQUEST));
        assert_eq!(activity.look(deadline), Look::Overdue, "the quick one");
        drop(quick);
        assert_ne!(activity.look(deadline), Look::Overdue);
    }
}
