//! Clients of every kind that take IDs for as long as they can.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringflake_kit::eventually;

use crate::marks::Marks;
use crate::process::Serve;
use crate::wire::{Http, Resp, base32, decimal};

/// How a client asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// So many requests for one ID before the first reply is read.
    Incr(usize),
    /// Lists of so many.
    Pop(usize),
    /// The same as text.
    Text(usize),
    /// HTTP, as JSON.
    Json(usize),
    /// HTTP, in binary.
    Binary(usize),
}

impl Way {
    pub(crate) const ALL: [Self; 6] = [
        Self::Incr(1),
        Self::Incr(64),
        Self::Pop(100),
        Self::Text(50),
        Self::Json(20),
        Self::Binary(1100),
    ];
}

/// The replies of a client.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) ids: Vec<u64>,
    /// Answers that were errors, each of them once.
    pub(crate) refused: Vec<String>,
    /// Requests that were answered with IDs.
    pub(crate) answers: usize,
    /// Why the connection ended, unless the client itself has ended it.
    pub(crate) end: Option<io::Error>,
    /// An answer was whole when it ended, or had not begun.
    pub(crate) ended_between: bool,
}

impl Taken {
    fn refuse(&mut self, answer: String) {
        // Numbers differ: a kind counts once.
        let kind = |text: &str| text.split(' ').next().map(str::to_owned);
        if !self
            .refused
            .iter()
            .any(|known| kind(known) == kind(&answer))
        {
            self.refused.push(answer);
        }
    }
}

/// The clients of one server.
pub(crate) struct Load {
    clients: Vec<JoinHandle<Taken>>,
    /// Of each client.
    progress: Vec<Arc<Progress>>,
    ends: Arc<AtomicBool>,
}

/// The responses of one client so far.
#[derive(Debug, Default)]
struct Progress {
    ids: AtomicUsize,
    /// Responses that were errors.
    refusals: AtomicUsize,
}

impl Progress {
    fn has_begun(&self) -> bool {
        self.ids.load(Relaxed) + self.refusals.load(Relaxed) > 0
    }
}

impl Load {
    /// Clients of all ways.
    #[track_caller]
    pub(crate) fn start(serve: &Serve) -> Self {
        Self::with(serve, &Way::ALL, "")
    }

    /// Clients of these ways, with a token unless it is empty. Returns once each of them has
    /// had a response, so that whatever follows meets all of them at work.
    #[track_caller]
    pub(crate) fn with(serve: &Serve, ways: &[Way], token: &'static str) -> Self {
        let ends = Arc::default();
        let progress: Vec<Arc<Progress>> = ways.iter().map(|_| Arc::default()).collect();
        let (resp, http) = (serve.resp, serve.http);
        let clients = ways.iter().zip(&progress).map(|(&way, progress)| {
            let (progress, ends) = (Arc::clone(progress), Arc::clone(&ends));
            thread::spawn(move || {
                let mut client = Client {
                    taken: Taken::default(),
                    progress,
                    ends,
                };
                client.taken.end = match way {
                    Way::Incr(_) | Way::Pop(_) | Way::Text(_) => client.resp(resp, way, token),
                    Way::Json(_) | Way::Binary(_) => client.http(http, way, token),
                }
                .err();
                client.taken
            })
        });
        let load = Self {
            clients: clients.collect(),
            progress,
            ends,
        };
        load.wait_for_each("each client has a response", |client, progress| {
            let has_begun = progress.has_begun();
            assert!(has_begun || !client.is_finished(), "a client has ended");
            has_begun
        });
        load
    }

    /// Waits until this holds of each client.
    #[track_caller]
    fn wait_for_each(&self, what: &str, holds: impl Fn(&JoinHandle<Taken>, &Progress) -> bool) {
        eventually(what, || {
            let mut all = self.clients.iter().zip(&self.progress);
            all.all(|(client, progress)| holds(client, progress))
        });
    }

    /// Waits until all have got so many more.
    #[track_caller]
    pub(crate) fn wait_for(&self, more: usize) {
        let count = || -> usize { self.progress.iter().map(|it| it.ids.load(Relaxed)).sum() };
        let until = count() + more;
        eventually("clients take IDs", || {
            let all_ended = self.clients.iter().all(JoinHandle::is_finished);
            let count = count();
            assert!(count >= until || !all_ended, "no client is left");
            count >= until
        });
    }

    /// Waits until each client has been refused by now.
    #[track_caller]
    pub(crate) fn wait_for_refusals(&self) {
        self.wait_for_each("each client is refused", |_, progress| {
            progress.refusals.load(Relaxed) > 0
        });
    }

    /// The replies of each client, after the server has closed its connection.
    pub(crate) fn join(self) -> Vec<Taken> {
        let clients = self.clients.into_iter();
        clients.map(|client| client.join().unwrap()).collect()
    }

    /// The replies of each client so far; no connection may have ended before.
    #[track_caller]
    pub(crate) fn end(self) -> Vec<Taken> {
        self.ends.store(true, Relaxed);
        let all = self.join();
        for taken in &all {
            assert!(taken.end.is_none(), "{:?}", taken.end);
        }
        all
    }

    /// As [`end`](Self::end), with all IDs added to `marks`.
    #[track_caller]
    pub(crate) fn end_into(self, marks: &mut Marks) {
        self.end()
            .into_iter()
            .for_each(|taken| marks.add(taken.ids));
    }

    /// The same; nobody was refused any.
    #[track_caller]
    pub(crate) fn end_unrefused(self, marks: &mut Marks) {
        for taken in self.end() {
            assert!(taken.refused.is_empty(), "{:?}", taken.refused);
            marks.add(taken.ids);
        }
    }
}

struct Client {
    taken: Taken,
    progress: Arc<Progress>,
    ends: Arc<AtomicBool>,
}

impl Client {
    fn has_to_go_on(&self) -> bool {
        !self.ends.load(Relaxed)
    }

    /// So that what a test keeps does not grow with its time: others have the processor.
    fn pause(&self) {
        thread::sleep(Duration::from_millis(4));
    }

    /// After an answer.
    fn note(&mut self, before: usize) {
        self.taken.answers += 1;
        let more = self.taken.ids.len() - before;
        self.progress.ids.fetch_add(more, Relaxed);
    }

    fn refuse(&mut self, answer: String) {
        self.taken.refuse(answer);
        self.progress.refusals.fetch_add(1, Relaxed);
    }

    fn resp(&mut self, port: u16, way: Way, token: &str) -> io::Result<()> {
        let form = match way {
            Way::Text(_) => base32,
            _ => decimal,
        };
        let (command, depth, each) = match way {
            Way::Pop(count) => (format!("LPOP orders {count}"), 1, count),
            Way::Text(count) => {
                let command = format!("RINGFLAKE.TAKE orders {count} FORMAT text");
                (command, 1, count)
            }
            Way::Incr(depth) => ("INCR orders".to_owned(), depth, 1),
            other => unreachable!("{other:?}"),
        };
        let mut client = Resp::try_connect(port)?;
        if !token.is_empty() {
            assert_eq!(client.try_ask(&format!("AUTH {token}"))?, "+OK");
        }
        while self.has_to_go_on() {
            self.pause();
            client.send(&command, depth)?;
            for _ in 0..depth {
                let before = self.taken.ids.len();
                let reply = client.ids(form, &mut self.taken.ids);
                let got = self.taken.ids.len() - before;
                self.taken.ended_between = got == 0;
                match reply? {
                    Ok(()) => {
                        // A list may be shorter where there is no more, and has something.
                        assert!((1..=each).contains(&got), "{got} IDs of {each}");
                        self.note(before);
                    }
                    Err(refused) => self.refuse(refused),
                }
            }
        }
        Ok(())
    }

    fn http(&mut self, port: u16, way: Way, token: &str) -> io::Result<()> {
        let (count, is_json) = match way {
            Way::Json(count) => (count, true),
            Way::Binary(count) => (count, false),
            other => unreachable!("{other:?}"),
        };
        let mut headers = String::new();
        if !token.is_empty() {
            headers += &format!("authorization: Bearer {token}\r\n");
        }
        if !is_json {
            headers += "accept: application/octet-stream\r\n";
        }
        let mut client = Http::try_connect(port)?;
        while self.has_to_go_on() {
            self.pause();
            self.taken.ended_between = true;
            let answer = client.take(count, &headers)?;
            if answer.status != 200 {
                let body = String::from_utf8_lossy(&answer.body);
                let wait = match answer.head.contains("\r\nretry-after: ") {
                    true => "with Retry-After",
                    false => "without Retry-After",
                };
                self.refuse(format!("{} {wait}: {body}", answer.status));
            } else {
                let before = self.taken.ids.len();
                self.taken.ids.extend(answer.ids(is_json)?);
                if answer.is_whole {
                    assert_eq!(self.taken.ids.len() - before, count, "{:?}", answer.head);
                    self.note(before);
                }
            }
            if !answer.is_whole {
                self.taken.ended_between = false;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if answer.head.contains("\r\nconnection: close") {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }
}
