//! Transactions: requests that are queued after `MULTI` and run by `EXEC`.
//!
//! No ID is taken before `EXEC`, and none if `EXEC` is refused. `EXEC` opens all namespaces
//! first, and may be repeated for that. Then it runs the queue in one turn, so no request of
//! the same connection comes between.
//!
//! The queue is bounded: in bytes of requests by `request-bytes`, and in replies by `count`,
//! where a take of `n` IDs counts as `n`; requests that are not takes are at most 1,024. A request
//! over a bound, or a take with wrong arguments, gets an error, and `EXEC` is refused.

#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// All requests, one behind the other.
    pub(super) bytes: Vec<u8>,
    pub(super) queue: Vec<Queued>,
    /// Replies of all requests, an ID counted as one.
    pub(super) replies: usize,
    /// Requests that are not takes.
    pub(super) commands: usize,
    pub(super) is_aborted: bool,
}

/// A request, and how often it follows itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    length: usize,
    pub(super) count: usize,
}

impl Transaction {
    /// Memory of the queue.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.queue.capacity() * size_of::<Queued>()
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut rest = &self.bytes[..];
        self.queue.iter().map(move |queued| {
            let (request, behind) = rest.split_at(queued.length);
            rest = behind;
            (request, queued.count)
        })
    }

    pub(super) fn push(&mut self, request: &[u8]) {
        if let Some(last) = self.queue.last_mut()
            && self.bytes[self.bytes.len() - last.length..] == *request
        {
            last.count += 1;
            return;
        }
        self.bytes.extend_from_slice(request);
        self.queue.push(Queued {
            length: request.len(),
            count: 1,
        });
    }
}
