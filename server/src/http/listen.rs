//! Accepting connections.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, watch};

use super::app::App;
use super::buffer_permit::{Budgets, ClientBudgets};
use super::connection::{Shared, http1, serve};
use super::cross_origin::Hosts;
use super::deadlines::Tap;
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::routes;
use crate::clients::{self, Client, Clients};
use crate::config::Protocol;
use crate::handshake::Handshakes;
use crate::listener::{Acceptor, Listener, Stream};
use crate::tls::Tls;

/// Held by every connection until its end.
type Admission = clients::Admission<mpsc::Sender<Infallible>>;

impl Shared {
    pub(super) fn new(
        app: Arc<App>,
        draining: watch::Receiver<bool>,
        task: mpsc::Sender<Infallible>,
    ) -> Self {
        let hosts = match app.setup.tls {
            Some(_) => Hosts::All,
            None => Hosts::Known(app.setup.config.hosts.clone().into()),
        };
        Self {
            clients: Arc::new(Clients::new(&app.setup.limits)),
            budgets: Arc::new(Budgets::new()),
            handshakes: Arc::new(Handshakes::new(Protocol::Http)),
            router: routes::router(Arc::clone(&app)),
            http1: http1(),
            app,
            draining,
            hosts,
            task,
        }
    }

    fn tls(&self) -> Option<&Tls> {
        self.app.setup.tls.as_deref()
    }

    /// Accepts from this listener until the server has drained, and closes it then. Clients that
    /// connect until then get an answer, and no reset.
    ///
    /// # Errors
    ///
    /// When it can't be used without blocking.
    pub(super) fn accept_from(
        self,
        listener: Listener,
    ) -> io::Result<impl Future<Output = ()> + Send> {
        let acceptor = Acceptor::new(listener, "http")?;
        Ok(async move {
            let counters = &self.app.counters;
            let drain_time = self.app.drain_time;
            let mut draining = self.draining.clone();
            let mut drained = pin!(drained(&mut draining, drain_time));
            while let Some((stream, client, _)) = acceptor.next(drained.as_mut()).await {
                let is_proxied = self.is_proxied() && matches!(stream, Stream::Tcp(_));
                let known = (!is_proxied).then_some(client);
                match Admission::new(known, &self.clients, counters, self.task.clone()) {
                    Some(admission) => self.clone().spawn(stream, client, admission),
                    None => stream.turn_away(self.tls().is_some(), &full()),
                }
            }
        })
    }

    /// Whether connections on TCP begin with the header of a proxy.
    fn is_proxied(&self) -> bool {
        self.app.setup.config.proxy_protocol
    }

    fn spawn(self, stream: Stream, client: Client, admission: Admission) {
        match stream {
            Stream::Tcp(stream) if self.is_proxied() => {
                drop(tokio::spawn(proxied(self, stream, client, admission)));
            }
            Stream::Tcp(stream) => drop(tokio::spawn(tcp(self, stream, client, admission))),
            Stream::Unix(stream) => drop(tokio::spawn(unix(self, stream, client, admission))),
        }
    }
}

/// Waits until the server has drained for its `drain_time`.
async fn drained(draining: &mut watch::Receiver<bool>, time: Duration) {
    let _ = draining.wait_for(|draining| *draining).await;
    tokio::time::sleep(time).await;
}

/// A connection of a proxy, for the client that it names.
async fn proxied(shared: Shared, mut stream: TcpStream, proxy: Client, mut admission: Admission) {
    let app = &shared.app;
    let mut draining = shared.draining.clone();
    let header = shared.handshakes.read_header(&mut stream, proxy);
    let header = tokio::select! {
        header = tokio::time::timeout(app.setup.limits.request_time, header) => header,
        () = drained(&mut draining, app.drain_time) => return,
    };
    // A peer that sends no header is not a proxy, and would not understand a response.
    let Ok(Ok(address)) = header else { return };
    // No address is a health check of the proxy itself.
    let client = address.map_or(proxy, |address| address.ip().into());
    if admission.identify(client) {
        tcp(shared, stream, client, admission).await;
    } else {
        Stream::Tcp(stream).turn_away(shared.tls().is_some(), &full());
    }
}

/// `_admission` is held until the end.
async fn tcp(shared: Shared, stream: TcpStream, client: Client, _admission: Admission) {
    let budgets = shared.budgets.client(client);
    let Some(tls) = shared.tls() else {
        return serve(stream, Tap::default(), None, budgets, shared).await;
    };
    let config = tls.of(Protocol::Http);
    // It is larger by far, and a connection without TLS has no room for it.
    Box::pin(with_tls(shared, config, stream, budgets)).await;
}

async fn with_tls(
    shared: Shared,
    config: Arc<ServerConfig>,
    stream: TcpStream,
    budgets: ClientBudgets,
) {
    let most = shared.app.setup.limits.request_time;
    let tap = Tap::default();
    let stream = tap.inspect(stream);
    let mut draining = shared.draining.clone();
    let counters = &shared.app.counters;
    // Waiting for a permit counts as part of the handshake.
    let handshake = shared
        .handshakes
        .accept_tls(config, stream, &budgets.strangers, counters);
    let handshake = tokio::select! {
        done = tokio::time::timeout(most, handshake) => done,
        // No request has begun.
        () = drained(&mut draining, shared.app.drain_time) => return,
    };
    // A handshake that fails or takes too long makes no connection.
    if let Ok(Some((stream, permit))) = handshake {
        Box::pin(serve(stream, tap, Some(permit), budgets, shared)).await;
    }
}

/// `_admission` is held until the end.
async fn unix(shared: Shared, stream: UnixStream, client: Client, _admission: Admission) {
    let budgets = shared.budgets.client(client);
    let shared = Shared {
        // No web page can connect to a Unix socket.
        hosts: Hosts::All,
        ..shared
    };
    serve(stream, Tap::default(), None, budgets, shared).await;
}

/// The response to a client that is turned away.
fn full() -> Vec<u8> {
    let detail = "there are as many connections as there may be, of all clients or of this one: \
                  close some, or try again";
    let body = Problem::new(Kind::BUSY, detail)
        .retry_after(Duration::from_secs(1))
        .to_json();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n\
         retry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    answer
}
