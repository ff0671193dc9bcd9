//! Clients of both protocols that take IDs for as long as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::{Client, Connection, RedisError, RedisResult};
use ringflake_kit::eventually;
use serde_json::Value;
use ureq::Agent;

use crate::marks::Marks;
use crate::process::Serve;

/// A hang becomes a failure after this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// So many requests for one ID before the first reply is read.
    Incr(usize),
    /// Lists of so many.
    Pop(usize),
    /// HTTP, as JSON.
    Json(usize),
    /// HTTP, in binary.
    Binary(usize),
}

impl Way {
    pub(crate) const ALL: [Self; 5] = [
        Self::Incr(1),
        Self::Incr(64),
        Self::Pop(100),
        Self::Json(20),
        Self::Binary(1100),
    ];
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// The server sent an error.
    Refused(String),
    /// The connection ended within the body of an HTTP response.
    Cut(String),
    /// The connection ended before the body, or at any point of a RESP reply.
    Ended(String),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.code() {
            Some(_) => Self::Refused(error.to_string()),
            None => Self::Ended(error.to_string()),
        }
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Self {
        Self::Ended(error.to_string())
    }
}

/// A connection with this token, unless it is empty.
pub(crate) fn resp(port: u16, token: &str) -> RedisResult<Connection> {
    let client = Client::open(format!("redis://:{token}@127.0.0.1:{port}"))?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

fn take_by_resp(connection: &mut Connection, way: Way) -> Result<Vec<u64>, Failure> {
    let ids: Vec<i64> = match way {
        Way::Incr(depth) => {
            let mut requests = redis::pipe();
            for _ in 0..depth {
                requests.cmd("INCR").arg("orders");
            }
            requests.query(connection)?
        }
        Way::Pop(count) => {
            let mut request = redis::cmd("LPOP");
            request.arg("orders").arg(count).query(connection)?
        }
        other => unreachable!("{other:?}"),
    };
    Ok(ids.into_iter().map(i64::cast_unsigned).collect())
}

pub(crate) fn http() -> Agent {
    let config = Agent::config_builder();
    let config = config.http_status_as_error(false);
    config.timeout_global(Some(PATIENCE)).build().into()
}

pub(crate) fn take_by_http(
    agent: &Agent,
    port: u16,
    token: &str,
    way: Way,
) -> Result<Vec<u64>, Failure> {
    let (count, accept) = match way {
        Way::Json(count) => (count, "application/json"),
        Way::Binary(count) => (count, "application/octet-stream"),
        other => unreachable!("{other:?}"),
    };
    let url = format!("http://127.0.0.1:{port}/v1/ids?namespace=orders&count={count}");
    let mut request = agent.post(url).header("accept", accept);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut answer = request.send_empty()?;
    let body = answer.body_mut().read_to_vec();
    let body = body.map_err(|error| Failure::Cut(error.to_string()))?;
    if answer.status() != 200 {
        let wait = match answer.headers().contains_key("retry-after") {
            true => "with Retry-After",
            false => "without Retry-After",
        };
        let (status, body) = (answer.status(), String::from_utf8_lossy(&body));
        return Err(Failure::Refused(format!("{status} {wait}: {body}")));
    }
    let ids: Vec<u64> = match way {
        Way::Json(_) => {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let ids = body["ids"].as_array().unwrap().iter();
            let number = |id: &Value| id.as_str().unwrap().parse::<i64>().unwrap();
            ids.map(|id| number(id).cast_unsigned()).collect()
        }
        _ => {
            let (ids, rest) = body.as_chunks();
            assert!(rest.is_empty(), "half an ID");
            ids.iter().map(|id| u64::from_le_bytes(*id)).collect()
        }
    };
    assert_eq!(ids.len(), count);
    Ok(ids)
}

#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) ids: Vec<u64>,
    /// Answers that were errors, the last of which is kept.
    pub(crate) refused: Option<String>,
    /// Why the connection ended, unless the client itself has ended it.
    pub(crate) end: Option<String>,
    /// Whether it ended within the body of an HTTP response.
    pub(crate) is_cut: bool,
}

pub(crate) struct Load {
    clients: Vec<JoinHandle<Taken>>,
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

impl Load {
    #[track_caller]
    pub(crate) fn start(serve: &Serve) -> Self {
        Self::with(serve, &Way::ALL)
    }

    /// Clients of these ways. Returns once each of them has had a response, so that whatever
    /// follows meets all of them at work.
    #[track_caller]
    pub(crate) fn with(serve: &Serve, ways: &[Way]) -> Self {
        let ends = Arc::default();
        let progress: Vec<Arc<Progress>> = ways.iter().map(|_| Arc::default()).collect();
        let (resp_port, http_port, token) = (serve.resp, serve.http, serve.token);
        let clients = ways.iter().zip(&progress).map(|(&way, progress)| {
            let (progress, ends) = (Arc::clone(progress), Arc::clone(&ends));
            thread::spawn(move || match way {
                Way::Incr(_) | Way::Pop(_) => {
                    let mut connection = resp(resp_port, token).unwrap();
                    take_all(&progress, &ends, || take_by_resp(&mut connection, way))
                }
                Way::Json(_) | Way::Binary(_) => {
                    let agent = http();
                    take_all(&progress, &ends, || {
                        take_by_http(&agent, http_port, token, way)
                    })
                }
            })
        });
        let load = Self {
            clients: clients.collect(),
            progress,
            ends,
        };
        load.wait_for_each("each client has a response", |client, progress| {
            let has_begun = progress.ids.load(Relaxed) + progress.refusals.load(Relaxed) > 0;
            assert!(has_begun || !client.is_finished(), "a client has ended");
            has_begun
        });
        load
    }

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

    /// Waits until each client has IDs for a request that it sent after this call.
    #[track_caller]
    pub(crate) fn wait_for_new_requests(&self) {
        // The first response may be to a request that was under way.
        for _ in 0..2 {
            let counts = self.progress.iter().map(|it| it.ids.load(Relaxed));
            let before: Vec<_> = counts.collect();
            eventually("each client takes IDs", || {
                let has_ended = self.clients.iter().any(JoinHandle::is_finished);
                assert!(!has_ended, "a client has ended");
                let mut progress = self.progress.iter().zip(&before);
                progress.all(|(now, before)| now.ids.load(Relaxed) > *before)
            });
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_refusals(&self) {
        self.wait_for_each("each client is refused", |_, progress| {
            progress.refusals.load(Relaxed) > 0
        });
    }

    /// What each client got, after the server has closed its connection.
    pub(crate) fn join(self) -> Vec<Taken> {
        let clients = self.clients.into_iter();
        clients.map(|client| client.join().unwrap()).collect()
    }

    /// What each client got so far; no connection may have ended before.
    #[track_caller]
    pub(crate) fn end(self) -> Vec<Taken> {
        self.ends.store(true, Relaxed);
        let all = self.join();
        for taken in &all {
            assert!(taken.end.is_none(), "{:?}", taken.end);
        }
        all
    }

    /// Goes on for so many more, and ends, with all IDs added to `marks`.
    #[track_caller]
    pub(crate) fn take_into(self, more: usize, marks: &mut Marks) {
        self.wait_for(more);
        self.end()
            .into_iter()
            .for_each(|taken| marks.add(taken.ids));
    }

    /// Adds all IDs to `marks`; nobody was refused any.
    #[track_caller]
    pub(crate) fn end_unrefused(self, marks: &mut Marks) {
        for taken in self.end() {
            assert!(taken.refused.is_none(), "{:?}", taken.refused);
            marks.add(taken.ids);
        }
    }
}

fn take_all(
    progress: &Progress,
    ends: &AtomicBool,
    mut take: impl FnMut() -> Result<Vec<u64>, Failure>,
) -> Taken {
    let mut taken = Taken::default();
    while !ends.load(Relaxed) && taken.end.is_none() {
        // So that what a test keeps does not grow with its time: others have the processor.
        thread::sleep(Duration::from_millis(4));
        match take() {
            Ok(ids) => {
                progress.ids.fetch_add(ids.len(), Relaxed);
                taken.ids.extend(ids);
            }
            Err(Failure::Refused(answer)) => {
                progress.refusals.fetch_add(1, Relaxed);
                taken.refused = Some(answer);
            }
            Err(Failure::Cut(why)) => (taken.end, taken.is_cut) = (Some(why), true),
            Err(Failure::Ended(why)) => taken.end = Some(why),
        }
    }
    taken
}
