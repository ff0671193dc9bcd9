//! Clients that keep what they have read, however an answer ends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ringflake::Id;

/// A hang becomes a failure after this.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(port: u16) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// A client of the Redis protocol.
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn try_connect(port: u16) -> io::Result<Self> {
        connect(port).map(Self)
    }

    #[track_caller]
    pub(crate) fn connect(port: u16) -> Self {
        Self::try_connect(port).unwrap()
    }

    /// The command whose words have no spaces, as often as that.
    pub(crate) fn send(&mut self, command: &str, times: usize) -> io::Result<()> {
        let words: Vec<_> = command.split_whitespace().collect();
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(request.repeat(times).as_bytes())
    }

    /// A line without its end; an error if the connection ends before.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Err(broken("half a line")),
        }
    }

    /// Reads one reply that consists of IDs, and adds each as soon as it is whole. The inner
    /// error is the reply, if it is one.
    pub(crate) fn ids(
        &mut self,
        form: fn(&str) -> io::Result<u64>,
        into: &mut Vec<u64>,
    ) -> io::Result<Result<(), String>> {
        let line = self.line()?;
        match line.split_at_checked(1) {
            Some((":", digits)) => into.push(form(digits)?),
            Some(("$", _)) => {
                let line = self.line()?;
                into.push(form(&line)?);
            }
            Some(("*", count)) => {
                for _ in 0..count.parse().map_err(|_| broken(count))? {
                    if let Err(within) = self.ids(form, into)? {
                        return Err(broken(within));
                    }
                }
            }
            Some(("-", _)) => return Ok(Err(line)),
            _ => return Err(broken(line)),
        }
        Ok(Ok(()))
    }

    /// The first line of the answer to a command.
    pub(crate) fn try_ask(&mut self, command: &str) -> io::Result<String> {
        self.send(command, 1)?;
        self.line()
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }
}

/// An ID as a number, which has a sign here.
pub(crate) fn decimal(text: &str) -> io::Result<u64> {
    let number = text.parse().map(i64::cast_unsigned);
    number.map_err(|_| broken(text))
}

/// An ID as it is displayed, which may be nothing but digits.
pub(crate) fn base32(text: &str) -> io::Result<u64> {
    text.parse().map(Id::to_u64).map_err(|_| broken(text))
}

/// A client of HTTP/1.1 on one connection.
pub(crate) struct Http(BufReader<TcpStream>);

/// An answer, maybe without its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) is_whole: bool,
}

impl Answer {
    /// The IDs of a body of this type that have come as a whole.
    pub(crate) fn ids(&self, is_json: bool) -> io::Result<Vec<u64>> {
        if !is_json {
            let (whole, rest) = self.body.as_chunks();
            if self.is_whole && !rest.is_empty() {
                return Err(broken("half an ID"));
            }
            return Ok(whole.iter().map(|&id| u64::from_le_bytes(id)).collect());
        }
        let text = String::from_utf8_lossy(&self.body);
        let Some((_, list)) = text.split_once('[') else {
            return Ok(Vec::new());
        };
        // Between every other pair of quotes, and what has no second one is not whole.
        let parts: Vec<_> = list.split('"').collect();
        let whole = parts[..parts.len() - 1].chunks(2);
        whole
            .filter_map(|pair| pair.get(1))
            .map(|text| decimal(text))
            .collect()
    }
}

impl Http {
    pub(crate) fn try_connect(port: u16) -> io::Result<Self> {
        connect(port).map(Self)
    }

    #[track_caller]
    pub(crate) fn connect(port: u16) -> Self {
        Self::try_connect(port).unwrap()
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, "")
    }

    /// Asks for IDs; `headers` each with its end of line.
    pub(crate) fn take(&mut self, count: usize, headers: &str) -> io::Result<Answer> {
        let path = format!("/v1/ids?namespace=orders&count={count}");
        self.ask("POST", &path, &format!("content-length: 0\r\n{headers}"))
    }

    fn ask(&mut self, method: &str, path: &str, headers: &str) -> io::Result<Answer> {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        self.0.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    /// Reads an answer whose length is given. An error if there is no whole head.
    pub(crate) fn read(&mut self) -> io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        head.make_ascii_lowercase();
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken(&*head))?;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| broken(&*head))?;
        let mut body = Vec::new();
        // One that breaks off is an end, too.
        let _ = (&mut self.0).take(length as u64).read_to_end(&mut body);
        let is_whole = body.len() == length;
        Ok(Answer {
            status,
            head,
            body,
            is_whole,
        })
    }
}
