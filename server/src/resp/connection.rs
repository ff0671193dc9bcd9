//! A client's connection: its socket, its session, and the bytes that one has for the other.

use std::io::{self, ErrorKind, Read, Write};

use super::desk::Desk;
use super::session::Session;
use super::stream::Stream;
use super::turn::Next;

/// Bytes that are read at once.
pub(super) const READ: usize = 64 << 10;

/// Where a connection stands; the head of `resp` has the picture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Requests are read and answered.
    Serving,
    /// The request in front waits for its namespace.
    Parked(String),
    /// Its last replies are on their way; what it sends is not looked at.
    Ending,
    /// It has all replies, and has to close on its side: if this side did while there are
    /// bytes that nobody has read, the system would drop replies that are on their way.
    Lingering,
}

/// What a connection needs next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// A turn, after all others.
    Turn,
    /// That its socket can be read.
    Read,
    /// That its socket can be written.
    Write,
    /// That its namespace is opened.
    Namespace(String),
    /// To be closed.
    Close,
}

/// Room that all connections of a worker share, for the length of a turn.
#[derive(Debug)]
pub(super) struct Scratch {
    input: Box<[u8]>,
    output: Vec<u8>,
}

impl Scratch {
    pub(super) fn new(request_bytes: usize) -> Self {
        Self {
            // The part of a request that is there already, and what is read behind it.
            input: vec![0; request_bytes + READ].into_boxed_slice(),
            output: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) session: Session,
    pub(super) phase: Phase,
    /// Bytes that were read and not answered. Has memory only while there are any.
    input: Vec<u8>,
    /// Whether all whole requests of `input` are answered.
    needs_input: bool,
    /// Replies that the socket did not take, from `written` on.
    output: Vec<u8>,
    written: usize,
    /// The socket may have bytes to read.
    pub(super) is_readable: bool,
    /// The client has closed its side, so a read comes to an end.
    pub(super) is_hung_up: bool,
    /// It has its place in the list of those whose turn it will be.
    pub(super) is_queued: bool,
    /// The event loop reports when the socket can be written.
    pub(super) reports_writable: bool,
    /// When it began to wait for what it waits for, in the worker's ticks.
    pub(super) since: u32,
    /// Something has moved since that.
    pub(super) has_moved: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, session: Session) -> Self {
        Self {
            stream,
            session,
            phase: Phase::Serving,
            input: Vec::new(),
            needs_input: true,
            output: Vec::new(),
            written: 0,
            is_readable: true,
            is_hung_up: false,
            is_queued: false,
            reports_writable: false,
            since: 0,
            has_moved: true,
        }
    }

    /// Whether it has asked nothing that is not answered.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Serving
            && self.input.is_empty()
            && self.output.is_empty()
            && !self.session.is_answering()
            && !self.stream.is_handshaking()
    }

    /// Whether there are replies that the socket did not take.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty() || self.stream.holds_output()
    }

    /// One turn: writes what waits, reads once, answers what is due in a turn, writes once.
    pub(super) fn turn(&mut self, desk: &mut Desk, scratch: &mut Scratch, drains: bool) -> Wants {
        match self.try_turn(desk, scratch, drains) {
            Ok(wants) => wants,
            Err(error) if error.kind() == ErrorKind::Interrupted => Wants::Turn,
            // A client that goes without a word is not worth one.
            Err(_) => Wants::Close,
        }
    }

    fn try_turn(
        &mut self,
        desk: &mut Desk,
        scratch: &mut Scratch,
        drains: bool,
    ) -> io::Result<Wants> {
        if !self.write_rest()? {
            return Ok(Wants::Write);
        }
        match self.phase {
            Phase::Serving => {}
            Phase::Parked(_) => return Ok(Wants::Read),
            Phase::Ending => return Ok(self.linger()),
            Phase::Lingering => return self.discard(scratch),
        }
        let mut length = self.input.len();
        scratch.input[..length].copy_from_slice(&self.input);
        if self.needs_input && !self.session.is_answering() {
            if !self.is_readable {
                return Ok(self.idle(drains));
            }
            let room = &mut scratch.input[length..];
            let most = room.len().min(READ);
            match self.stream.read(&mut room[..most]) {
                Ok(0) => return Ok(Wants::Close),
                Ok(read) => {
                    length += read;
                    self.is_readable =
                        read == most || self.is_hung_up || !self.stream.short_read_is_all();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_readable = false;
                    // A handshake has bytes of its own.
                    return Ok(if self.stream.holds_output() {
                        Wants::Write
                    } else {
                        self.idle(drains)
                    });
                }
                Err(error) => return Err(error),
            }
        }
        scratch.output.clear();
        let input = &scratch.input[..length];
        let (used, next) = self.session.turn(input, desk, &mut scratch.output);
        self.has_moved |= used > 0 || !scratch.output.is_empty();
        self.keep(&input[used..]);
        self.needs_input = next == Next::Input;
        let wants = match next {
            Next::Input if self.is_readable => Wants::Turn,
            Next::Input => self.idle(drains),
            Next::Turn => Wants::Turn,
            Next::Open(name) => {
                self.phase = Phase::Parked(name.clone());
                Wants::Namespace(name)
            }
            Next::Close => {
                self.phase = Phase::Ending;
                Wants::Turn
            }
        };
        let all = self.write(&scratch.output)?;
        Ok(match wants {
            Wants::Namespace(_) => wants,
            _ if !all => Wants::Write,
            _ => wants,
        })
    }

    /// There is nothing more to answer for now.
    fn idle(&mut self, drains: bool) -> Wants {
        if !drains {
            Wants::Read
        } else if self.has_moved {
            self.phase = Phase::Ending;
            Wants::Turn
        } else {
            Wants::Close
        }
    }

    /// The request in front can be answered now.
    pub(super) fn serve_again(&mut self) {
        self.needs_input = false;
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.clear();
            self.input.extend_from_slice(rest);
        }
    }

    /// Writes the new replies, and keeps what the socket does not take. Says whether it took
    /// all.
    fn write(&mut self, replies: &[u8]) -> io::Result<bool> {
        if replies.is_empty() && !self.stream.holds_output() {
            return Ok(true);
        }
        let written = match self.stream.write(replies) {
            Ok(written) => written,
            Err(error) if is_later(&error) => 0,
            Err(error) => return Err(error),
        };
        if written < replies.len() {
            self.output.extend_from_slice(&replies[written..]);
            return Ok(false);
        }
        Ok(!self.stream.holds_output())
    }

    /// Writes what waits. Says whether the socket took all.
    fn write_rest(&mut self) -> io::Result<bool> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if !self.output.is_empty() {
            (self.output, self.written) = (Vec::new(), 0);
            self.has_moved = true;
        }
        if self.stream.holds_output() {
            match self.stream.flush() {
                Ok(()) => {}
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(!self.stream.holds_output())
    }

    fn linger(&mut self) -> Wants {
        self.stream.end_output();
        self.keep(&[]);
        self.phase = Phase::Lingering;
        (self.has_moved, self.is_readable) = (true, true);
        Wants::Turn
    }

    fn discard(&mut self, scratch: &mut Scratch) -> io::Result<Wants> {
        match self.stream.read(&mut scratch.input[..READ]) {
            Ok(0) => Ok(Wants::Close),
            Ok(_) => Ok(Wants::Turn),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Wants::Read),
            Err(error) => Err(error),
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::super::desk::Common;
    use super::super::tests::kit::{Everything, generator};
    use super::*;
    use crate::clients::Client;
    use crate::limits::Limits;
    use crate::namespaces::Namespaces;

    #[test]
    fn replies_in_front_of_an_opening_go_on_being_sent() {
        let namespaces = Arc::new(Namespaces::new(Box::new(|_| Ok(generator())), 2));
        namespaces.open("made").unwrap();
        let common = Arc::new(Common {
            rights: Arc::new(Everything),
            limits: Limits::default(),
            started: Instant::now(),
            counters: vec![Arc::default()],
        });
        let counters = Arc::clone(&common.counters[0]);
        let mut desk = Desk::new(common, counters, namespaces);
        let mut scratch = Scratch::new(4_096);
        let (near, mut far) = mio::net::UnixStream::pair().unwrap();
        // Little room, and most of it is taken.
        let mut filled = 0;
        let mut stream = Stream::Unix(near);
        while let Ok(more) = stream.write(&[b'x'; 100]) {
            filled += more;
        }
        let session = Session::new(1, String::new(), Client::User(None), 4_096);
        let mut connection = Connection::new(stream, session);
        let mut few = [0; 100];
        far.read_exact(&mut few).unwrap();
        far.write_all(b"LPOP made 2000\r\nINCR fresh\r\n").unwrap();
        let wants = connection.turn(&mut desk, &mut scratch, false);
        assert_eq!(wants, Wants::Namespace("fresh".to_owned()));
        assert!(
            connection.has_output(),
            "so the loop reports that it can be written"
        );
        // It is written while it is parked.
        let mut read = few.len();
        let mut room = vec![0; 1 << 16];
        while connection.has_output() {
            read += far.read(&mut room).unwrap();
            connection.turn(&mut desk, &mut scratch, false);
        }
        assert_eq!(connection.phase, Phase::Parked("fresh".to_owned()));
        while let Ok(more) = far.read(&mut room) {
            read += more;
        }
        assert!(read > filled + 2_000 * 20);
    }
}
