//! The bytes of a connection, searched for the request of a password in the clear.
//!
//! The driver sends the password as it is to any peer that asks for it in the clear.
//! Where the peer is not known to be the server, that request must not reach it.
//!
//! A server sends a row of messages: a letter, a length of four bytes that
//! counts itself, and the rest. `R` is about the login, and begins with a number of
//! four bytes: 0 ends it, 3 asks for the password in the clear. Until the end of the
//! login each message is looked at as its bytes come; the driver sees none of the
//! bytes of a read that holds a 3, so it never answers one.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// A connection over TCP.
pub(super) struct Guard {
    stream: Stream,
    /// None over TLS, where the server has shown who it is, and after the login.
    watch: Option<Watch>,
}

enum Stream {
    Plain(Socket),
    Tls(Box<Encrypted>),
}

impl Guard {
    pub(super) fn plain(stream: Socket) -> Self {
        Self {
            stream: Stream::Plain(stream),
            watch: Some(Watch::default()),
        }
    }

    pub(super) fn tls(stream: Encrypted) -> Self {
        Self {
            stream: Stream::Tls(Box::new(stream)),
            watch: None,
        }
    }
}

/// Bytes in both directions.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Stream {
    fn pin(&mut self) -> Pin<&mut dyn Duplex> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

impl TlsStream for Guard {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.stream {
            Stream::Plain(_) => ChannelBinding::none(),
            Stream::Tls(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for Guard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.pin().poll_read(cx, buffer);
        let (Poll::Ready(Ok(())), Some(watch)) = (&read, &mut self.watch) else {
            return read;
        };
        match watch.see(&buffer.filled()[before..]) {
            Seen::Login => {}
            Seen::End => self.watch = None,
            Seen::AskedInTheClear => {
                buffer.set_filled(before);
                return Poll::Ready(Err(asked_in_the_clear()));
            }
        }
        read
    }
}

impl AsyncWrite for Guard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.pin().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.pin().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.pin().poll_shutdown(cx)
    }
}

fn asked_in_the_clear() -> io::Error {
    io::Error::new(
        ErrorKind::PermissionDenied,
        "the server asks for the password in the clear, and has not shown by a certificate who \
         it is: let pg_hba.conf say scram-sha-256, or the URL tls=required",
    )
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// The login goes on.
    Login,
    End,
    AskedInTheClear,
}

/// Where in the row of messages the bytes so far end.
#[derive(Debug, Default)]
struct Watch {
    /// Letter, length, and of an `R` the number.
    head: Vec<u8>,
    /// Bytes of the message that are still to come.
    rest: u64,
}

impl Watch {
    fn see(&mut self, mut bytes: &[u8]) -> Seen {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let skipped = bytes
                    .len()
                    .min(usize::try_from(self.rest).unwrap_or(usize::MAX));
                bytes = &bytes[skipped..];
                self.rest -= skipped as u64;
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(0, |number, byte| number << 8 | u64::from(*byte))
            };
            match *self.head {
                [b'R', _, _, _, _, ref code @ ..] if code.len() < 4 => continue,
                [b'R', _, _, _, _, ref code @ ..] => match number(code) {
                    0 => return Seen::End,
                    3 => return Seen::AskedInTheClear,
                    _ => self.rest = number(&self.head[1..5]).saturating_sub(8),
                },
                [_, ref length @ ..] if length.len() < 4 => continue,
                _ => self.rest = number(&self.head[1..]).saturating_sub(4),
            }
            self.head.clear();
        }
        Seen::Login
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, rest: &[u8]) -> Vec<u8> {
        let length = 4 + rest.len() as u32;
        [&[letter][..], &length.to_be_bytes(), rest].concat()
    }

    fn login(number: u32, rest: &[u8]) -> Vec<u8> {
        message(b'R', &[&number.to_be_bytes(), rest].concat())
    }

    #[test]
    fn the_request_is_seen_wherever_it_stands_and_however_it_is_cut() {
        let notice = message(b'N', b"R\0\0\0\x08\0\0\0\x03");
        let scram = login(10, b"SCRAM-SHA-256\0\0");
        let asked = [notice.clone(), scram.clone(), login(3, b"")].concat();
        for cut in 0..asked.len() {
            let mut watch = Watch::default();
            assert_eq!(watch.see(&asked[..cut]), Seen::Login, "{cut}");
            assert_eq!(watch.see(&asked[cut..]), Seen::AskedInTheClear, "{cut}");
        }
        let mut watch = Watch::default();
        let last = asked.len() - 1;
        for byte in &asked[..last] {
            assert_eq!(watch.see(&[*byte]), Seen::Login);
        }
        assert_eq!(watch.see(&asked[last..]), Seen::AskedInTheClear);

        let mut watch = Watch::default();
        let row = message(b'D', b"R\0\0\0\x08\0\0\0\x03");
        let granted = [notice, scram, login(0, b""), row].concat();
        assert_eq!(watch.see(&granted), Seen::End);
    }
}
