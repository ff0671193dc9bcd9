//! Requests and responses of HTTP, as a test writes and reads them.

use std::collections::HashMap;
use std::{fmt, io};

use crate::wire::{Stream, Wire};

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

impl<S: Stream> Wire<S> {
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
            is_whole = self.take(length, &mut body)?;
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
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// So many bytes; false if the connection ends before.
    fn take(&mut self, count: usize, out: &mut Vec<u8>) -> io::Result<bool> {
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
