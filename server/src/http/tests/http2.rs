//! HTTP/2, by prior knowledge and by ALPN, with another implementation's client.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ringflake_kit::eventually;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::super::buffer_permit::{BYTES_PER_HTTP2_STRANGER, LARGE_PER_CONNECTION, STRANGER_BYTES};
use super::limits::connect_from;
use super::served::{Served, serve};
use super::wire::Wire;
use crate::buffer_budget::STRANGER_PARTS;
use crate::tls;

const ALPN: [&str; 2] = ["h2", "http/1.1"];

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// A client on this stream, and its connection, which ends when the server says so.
async fn client(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> (SendRequest<Body>, JoinHandle<hyper::Result<()>>) {
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    (client, tokio::spawn(connection))
}

async fn connect(served: &Served) -> (SendRequest<Body>, JoinHandle<hyper::Result<()>>) {
    client(TcpStream::connect(served.at).await.unwrap()).await
}

fn post(served: &Served, query: &str) -> Request<Body> {
    post_at(&served.at.to_string(), query)
}

fn post_at(authority: &str, query: &str) -> Request<Body> {
    let uri = format!("http://{authority}/v1/ids?{query}");
    let request = Request::post(uri).header("accept", "application/octet-stream");
    request.body(Body::empty()).unwrap()
}

/// The bytes of the answer, which is of HTTP/2.
async fn bytes(
    client: &mut SendRequest<Body>,
    request: Request<Body>,
) -> Result<Vec<u8>, axum::Error> {
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.status(), 200);
    let bytes = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX).await?;
    Ok(bytes.to_vec())
}

#[test]
fn many_requests_share_a_connection() {
    let served = serve(|_| {});
    let mut ids: Vec<[u8; 8]> = runtime().block_on(async {
        let (client, _connection) = connect(&served).await;
        let answers: Vec<_> = (0..100)
            .map(|number| {
                let (mut client, count) =
                    (client.clone(), if number % 10 == 0 { 20_000 } else { 3 });
                let request = post(&served, &format!("namespace=orders&count={count}"));
                tokio::spawn(async move { bytes(&mut client, request).await.unwrap() })
            })
            .collect();
        let mut ids = Vec::new();
        for answer in answers {
            ids.extend_from_slice(answer.await.unwrap().as_chunks().0);
        }
        ids
    });
    let count = ids.len();
    assert_eq!(count, 10 * 20_000 + 90 * 3);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an ID came twice");
    assert_eq!(served.counters().accepted.load(Ordering::Relaxed), 1);
}

#[test]
fn the_authority_is_a_name_that_leads_here_alone() {
    let served = serve(|_| {});
    runtime().block_on(async {
        let (mut client, _connection) = connect(&served).await;
        for (authority, status) in [
            ("evil.example:7464", 421),
            ("localhost:7464", 200),
            ("[::1]", 200),
        ] {
            let request = post_at(authority, "namespace=orders");
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.status(), status, "{authority}");
        }
    });
}

/// A setting: windows of no bytes.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// A connection with these settings, of which each frame is the test's.
pub(super) fn begin_raw(served: &Served, settings: &[u8]) -> Wire {
    let mut wire = served.connect();
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    wire.send(frame(4, 0, 0, settings));
    wire
}

#[test]
fn what_a_connection_may_is_said_at_its_start() {
    let served = serve(|_| {});
    let mut wire = begin_raw(&served, &[]);
    let (kind, _, _, settings) = wire.whole_frame();
    assert_eq!(kind, 4, "SETTINGS");
    let (settings, _) = settings.as_chunks::<6>();
    let value = |wanted: u16| {
        let named = settings.iter().find(|it| it[..2] == wanted.to_be_bytes());
        named.map(|&[_, _, value @ ..]| u32::from_be_bytes(value))
    };
    // As RFC 9113 numbers them: streams at once, and bytes of the fields of a head.
    assert_eq!(value(3), Some(100));
    assert_eq!(value(6), Some(32 << 10));
}

/// A frame, by its kind and its flags.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// POST, http, and a path and an authority that are spelled out (RFC 7541).
pub(super) fn fields(path: &str) -> Vec<u8> {
    let (path, host) = (path.as_bytes(), &b"localhost"[..]);
    let spelled = |text: &[u8]| [&[u8::try_from(text.len()).unwrap()], text].concat();
    [
        &[0x83, 0x86, 0x04],
        &*spelled(path),
        &[0x01],
        &*spelled(host),
    ]
    .concat()
}

#[test]
fn as_many_requests_as_clients_send_at_first_are_begun() {
    const COUNT: u32 = 100;

    let served = serve(|_| {});
    let mut wire = begin_raw(&served, &[]);
    let mut sent = Vec::new();
    let fields = fields("/v1/ids");
    let streams = || (0..COUNT).map(|number| 2 * number + 1);
    for stream in streams() {
        // Its body is to come, so that it stays open.
        sent.extend(frame(1, 4, stream, &fields));
    }
    // Answered after all of them were read.
    sent.extend(frame(6, 0, 0, &[7; 8]));
    wire.send(sent);
    let mut refused = 0;
    loop {
        match wire.frame() {
            (6, 1, _) => break,
            (3, _, _) => refused += 1,
            _ => {}
        }
    }
    assert_eq!(refused, 0, "of {COUNT}");
}

/// The windows of the client let less of it come.
#[test]
fn an_answer_that_nobody_reads_ends() {
    assert_ends_unread("namespace=orders&count=65536", 1 << 10);
    assert_ends_unread("namespace=orders", 1);
}

#[track_caller]
fn assert_ends_unread(query: &str, window: u32) {
    // The response must begin within the request timeout. A busy machine may miss that, and
    // then the next attempt counts.
    const ATTEMPTS: u64 = 30;

    let served = serve(|setup| setup.limits.request_time = Duration::from_secs(2));
    served.namespaces.open("orders").unwrap();
    let has_ended = runtime().block_on(async {
        for attempt in 1..=ATTEMPTS {
            let stream = TcpStream::connect(served.at).await.unwrap();
            // The client is kept, so that only the server can end the connection.
            let begun = begin(stream, post(&served, query), window).await;
            served.until(attempt, attempt);
            if begun.is_some() {
                return true;
            }
        }
        false
    });
    assert!(has_ended, "no response has begun");
}

/// A client whose response has begun.
async fn begin(
    stream: TcpStream,
    request: Request<Body>,
    window: u32,
) -> Option<(SendRequest<Body>, Response<Incoming>)> {
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (mut client, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
    let _connection = tokio::spawn(connection);
    let response = client.send_request(request).await.ok()?;
    (response.status() == 200).then_some((client, response))
}

#[test]
fn answers_that_a_client_has_no_room_for_have_a_bound() {
    /// Of each kind, more than fits.
    const COUNT: u64 = 50;
    const LARGE: u64 = 1024;
    const SMALL: u64 = 64;

    let served = serve(|_| {});
    served.namespaces.open("orders").unwrap();
    let mut wire = begin_raw(&served, &NO_WINDOW);
    let mut sent = Vec::new();
    for number in 0..2 * COUNT {
        let count = if number < COUNT { LARGE } else { SMALL };
        let fields = fields(&format!("/v1/ids?namespace=orders&count={count}"));
        sent.extend(frame(1, 5, 2 * number as u32 + 1, &fields));
    }
    wire.send(sent);
    let ids = || served.counters().ids.load(Ordering::Relaxed);
    let begun = COUNT * SMALL + LARGE_PER_CONNECTION as u64 * LARGE;
    let mut answered = 0;
    while answered < COUNT + LARGE_PER_CONNECTION as u64 {
        // The head of an answer.
        answered += u64::from(wire.frame().0 == 1);
    }
    // Those that wait came before the last of these.
    assert_eq!(ids(), begun);

    // With windows for all of it, all of it comes.
    let mut sent = frame(4, 0, 0, &[0, 4, 0, 0xf, 0xff, 0xff]);
    sent.extend(frame(8, 0, 0, &0x0fff_ffff_u32.to_be_bytes()));
    wire.send(sent);
    let mut ended = 0;
    while ended < 2 * COUNT {
        let (kind, flags, stream) = wire.frame();
        ended += u64::from(kind == 0 && flags & 1 == 1 && stream > 0);
    }
    assert_eq!(ids(), COUNT * (SMALL + LARGE));
}

#[test]
fn figures_that_a_client_has_no_room_for_have_a_bound() {
    let served = serve(|_| {});
    let mut wire = begin_raw(&served, &NO_WINDOW);
    let mut sent = Vec::new();
    for number in 0..100 {
        let mut fields = fields(["/metrics", "/readyz", "/v1/status"][number % 3]);
        // GET.
        fields[0] = 0x82;
        sent.extend(frame(1, 5, 2 * number as u32 + 1, &fields));
    }
    wire.send(sent);
    let mut answered = 0;
    while answered < LARGE_PER_CONNECTION {
        answered += usize::from(wire.frame().0 == 1);
    }
    // By the second answer to this all of them could have been made.
    for _ in 0..2 {
        wire.send(frame(6, 0, 0, &[7; 8]));
        loop {
            match wire.frame() {
                (6, 1, _) => break,
                (kind, _, _) => answered += usize::from(kind == 1),
            }
        }
    }
    assert_eq!(answered, LARGE_PER_CONNECTION);
}

#[test]
fn a_peer_that_says_nothing_does_not_hold_the_end_up() {
    let served = serve(|_| {});
    let mut wire = begin_raw(&served, &[]);
    wire.send(frame(1, 5, 1, &fields("/v1/ids?namespace=orders")));
    while wire.frame().0 != 0 {}
    // It will not say that it has seen the end come. If the server waited for that, the idle
    // timeout of 300 s would end the connection.
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn the_end_is_said_by_goaway() {
    let served = serve(|_| {});
    let runtime = runtime();
    let (_client, connection) = runtime.block_on(async {
        let (mut client, connection) = connect(&served).await;
        bytes(&mut client, post(&served, "namespace=orders"))
            .await
            .unwrap();
        // The client itself stays open.
        (client, connection)
    });
    assert!(served.end(Duration::from_secs(60)));
    eventually("the client has seen it", || connection.is_finished());
    runtime
        .block_on(connection)
        .unwrap()
        .expect("it is no error");
}

#[test]
fn tls_agrees_on_http2() {
    let served = serve(|setup| setup.tls = Some(tls::testing::server(&ALPN)));
    runtime().block_on(async {
        let stream = TcpStream::connect(served.at).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(tls::testing::client(&ALPN));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut client, _connection) = client(stream).await;
        let ids = bytes(&mut client, post(&served, "namespace=orders&count=20000"))
            .await
            .unwrap();
        assert_eq!(ids.len(), 160_000);
        // A browser would not have gone on: the certificate is not for this name.
        let request = post_at("evil.example", "namespace=orders");
        bytes(&mut client, request).await.unwrap();
    });
}

#[test]
fn connections_without_an_authorized_request_have_a_budget_of_their_own() {
    let served = serve(|_| {});
    let most = STRANGER_BYTES / STRANGER_PARTS / BYTES_PER_HTTP2_STRANGER;
    // Each of these leaves it.
    let users = runtime();
    let _users: Vec<_> = (0..=most)
        .map(|_| {
            users.block_on(async {
                let (mut client, connection) = connect(&served).await;
                bytes(&mut client, post(&served, "namespace=orders"))
                    .await
                    .unwrap();
                (client, connection)
            })
        })
        .collect();
    let serves = |wire: &mut Wire| assert_eq!(wire.whole_frame().0, 4, "SETTINGS");
    let mut strangers: Vec<_> = (0..most).map(|_| begin_raw(&served, &[])).collect();
    strangers.iter_mut().for_each(serves);
    let mut late = begin_raw(&served, &[]);
    let mut other = connect_from([127, 0, 0, 2], served.at);
    other.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    other.send(frame(4, 0, 0, &[]));
    serves(&mut other);
    late.stream.set_nonblocking(true).unwrap();
    let early = late.stream.peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock));
    late.stream.set_nonblocking(false).unwrap();
    strangers.pop();
    serves(&mut late);
}

/// Nor does it hold up the end of the server.
#[test]
fn a_handshake_that_never_ends_is_closed() {
    for (request_time, ends_first) in [(300, false), (3_600_000, true)] {
        let served = serve(|setup| {
            setup.tls = Some(tls::testing::server(&ALPN));
            setup.limits.request_time = Duration::from_millis(request_time);
        });
        let mut wire = served.connect();
        wire.send([22]);
        if ends_first {
            served.until(1, 0);
            assert!(served.end(Duration::from_secs(60)));
        }
        wire.assert_closed();
    }
}
