//! A client of either protocol, which sends what a test wants and keeps what comes.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::tls;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

use crate::config::Protocol;

/// A hang becomes a failure after this.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Wire<S = TcpStream> {
    pub(super) stream: S,
    /// Bytes that were read and belong to what comes next.
    rest: Vec<u8>,
}

pub(super) type TlsWire = Wire<StreamOwned<ClientConnection, TcpStream>>;

impl Wire {
    pub(super) fn connect(to: SocketAddr) -> Self {
        Self::connect_by(to, |_| {})
    }

    /// From this address of the machine itself.
    pub(super) fn connect_from(from: [u8; 4], to: SocketAddr) -> Self {
        let from = SocketAddr::from((Ipv4Addr::from(from), 0));
        Self::connect_by(to, |socket| socket.bind(&from.into()).unwrap())
    }

    /// By a socket that buffers little.
    pub(super) fn connect_narrow(to: SocketAddr) -> Self {
        Self::connect_by(to, |socket| socket.set_recv_buffer_size(4096).unwrap())
    }

    fn connect_by(to: SocketAddr, prepare: impl FnOnce(&Socket)) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        prepare(&socket);
        socket.connect(&to.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::new(stream)
    }

    /// The same with TLS. The handshake begins with the first bytes that are sent. What is sent
    /// at once is a record of its own.
    pub(super) fn with_tls(self) -> TlsWire {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(tls::client(&[])), name).unwrap();
        Wire::new(StreamOwned::new(session, self.stream))
    }
}

impl Wire<UnixStream> {
    pub(super) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::new(stream)
    }
}

impl<S: Read + Write> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        let rest = Vec::new();
        Self { stream, rest }
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// The same, with an error if the server has closed the connection.
    pub(super) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())?;
        self.stream.flush()
    }

    /// Reads more; false at the end. A reset is an end, too.
    fn more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All that comes before the server closes.
    pub(super) fn read_to_end(&mut self) -> Vec<u8> {
        while self.more().unwrap() {}
        std::mem::take(&mut self.rest)
    }

    /// Asserts that the server closes the connection and sends nothing more.
    #[track_caller]
    pub(super) fn assert_closed(&mut self) {
        let rest = self.read_to_end();
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }

    /// Takes an ID of `orders`. Returns whether one came, or an error if the server closes.
    pub(super) fn try_take(&mut self, protocol: Protocol) -> io::Result<bool> {
        if protocol == Protocol::Http {
            let reply = self.try_request("POST", "/v1/ids?namespace=orders", &[], "")?;
            return Ok(reply.status == 200);
        }
        self.try_send(incr("orders"))?;
        let replies = self.try_replies(1)?;
        Ok(matches!(replies[..], [OwnedFrame::Integer(_)]))
    }

    #[track_caller]
    pub(super) fn take(&mut self, protocol: Protocol) {
        assert!(self.try_take(protocol).unwrap(), "{protocol}");
    }
}

/// The Redis protocol.
impl<S: Read + Write> Wire<S> {
    pub(super) fn replies(&mut self, count: usize) -> Vec<OwnedFrame> {
        self.try_replies(count).unwrap()
    }

    pub(super) fn ask(&mut self, requests: &[u8], replies: usize) -> Vec<OwnedFrame> {
        self.send(requests);
        self.replies(replies)
    }

    /// [`replies`](Self::replies), with an error if the server closes the connection before.
    pub(super) fn try_replies(&mut self, count: usize) -> io::Result<Vec<OwnedFrame>> {
        let mut at = 0;
        let replies = (0..count).map(|_| self.frame(&mut at)).collect();
        self.rest.drain(..at);
        replies
    }

    /// The reply that begins there in what was read.
    fn frame(&mut self, at: &mut usize) -> io::Result<OwnedFrame> {
        loop {
            let rest = &self.rest[*at..];
            // A list one by one, as a long one is not there at once.
            if rest.starts_with(b"*") {
                if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                    let length = std::str::from_utf8(&rest[1..end - 1]).unwrap();
                    let length = length.parse().unwrap();
                    *at += end + 1;
                    let items = (0..length).map(|_: usize| self.frame(at));
                    return items.collect::<io::Result<_>>().map(OwnedFrame::Array);
                }
            } else if let Some((reply, used)) = decode(rest).unwrap() {
                *at += used;
                return Ok(reply);
            }
            if !self.more()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

pub(super) fn incr(name: &str) -> Vec<u8> {
    request(&["INCR", name])
}

/// Asserts that each of these is a line of the text.
#[track_caller]
pub(super) fn assert_lines(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(text.lines().any(|own| own == *line), "{line}\n{text}");
    }
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
    /// Whether the body is as long as it should be.
    pub(super) is_whole: bool,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.body[..self.body.len().min(300)];
        let (status, is_whole) = (self.status, self.is_whole);
        write!(
            f,
            "{status} {:?} {} {is_whole}",
            self.headers,
            shown.escape_ascii()
        )
    }
}

impl Reply {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(super) fn json(&self) -> serde_json::Value {
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The kind of error, checked to be one.
    #[track_caller]
    pub(super) fn problem(&self) -> String {
        let content_type = &self.headers["content-type"];
        assert_eq!(content_type, "application/problem+json", "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        let detail = problem["detail"].as_str().unwrap();
        let is_advice = detail.contains(':') || detail.contains(" must be ");
        assert!(is_advice, "what to do next: {detail}");
        let kind = problem["type"].as_str().unwrap();
        let kind = kind.strip_prefix("urn:ringflake:problem:");
        kind.unwrap().to_owned()
    }

    /// The IDs of a binary body.
    pub(super) fn ids(&self) -> Vec<u64> {
        let (ids, rest) = self.body.as_chunks();
        assert!(rest.is_empty());
        ids.iter().map(|id| u64::from_le_bytes(*id)).collect()
    }
}

/// HTTP.
impl<S: Read + Write> Wire<S> {
    pub(super) fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, &[], "")
    }

    pub(super) fn post(&mut self, path: &str, headers: &[&str]) -> Reply {
        self.request("POST", path, headers, "")
    }

    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Reply {
        self.try_request(method, path, headers, body).unwrap()
    }

    /// The same, with an error if the server closes the connection without a response.
    pub(super) fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> io::Result<Reply> {
        let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        self.try_send(request)?;
        self.try_reply()
    }

    /// A request without a body, and with these fields alone.
    pub(super) fn exactly(&mut self, method: &str, target: &str, fields: &[&str]) {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        self.send(format!("{method} {target} HTTP/1.1\r\n{fields}\r\n"));
    }

    pub(super) fn reply(&mut self) -> Reply {
        self.try_reply().unwrap()
    }

    pub(super) fn try_reply(&mut self) -> io::Result<Reply> {
        let head = self.until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let (mut body, mut is_whole) = (Vec::new(), true);
        if let Some(length) = headers.get("content-length") {
            let length = length.parse().unwrap();
            is_whole = self.read_part(length, &mut body)?;
        }
        Ok(Reply {
            status: status.parse().unwrap(),
            headers,
            body,
            is_whole,
        })
    }

    /// The bytes up to the end of this.
    fn until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let mut ends = self.rest.windows(end.len());
            if let Some(at) = ends.position(|window| window == end) {
                return Ok(self.rest.drain(..at + end.len()).collect());
            }
            if !self.more()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// So many bytes; false if the connection ends before.
    fn read_part(&mut self, count: usize, out: &mut Vec<u8>) -> io::Result<bool> {
        while self.rest.len() < count {
            if !self.more()? {
                out.append(&mut self.rest);
                return Ok(false);
            }
        }
        let rest = self.rest.split_off(count);
        out.append(&mut std::mem::replace(&mut self.rest, rest));
        Ok(true)
    }
}
