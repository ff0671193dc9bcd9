//! Accepting connections.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};

use super::app::App;
use super::buffer_permit::{Budgets, ClientBudgets};
use super::connection::{Shared, http1, serve};
use super::cross_origin::Hosts;
use super::deadlines::Tap;
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::routes;
use crate::clients::Client;
use crate::config::Protocol;
use crate::handshake::{Admission, Handshakes, Tasks};
use crate::listener::{Acceptor, Listener, Stream};

impl Shared {
    pub(super) fn new(app: App) -> (Self, Tasks) {
        let app = Arc::new(app);
        let setup = &app.setup;
        let hosts = match setup.tls {
            Some(_) => Hosts::All,
            None => Hosts::Known(setup.config.hosts.clone().into()),
        };
        let (handshakes, tasks) = Handshakes::new(Protocol::Http, setup, app.drain_time, full());
        let shared = Self {
            router: routes::router(Arc::clone(&app)),
            http1: http1(),
            draining: setup.drain.subscribe(),
            hosts,
            budgets: Arc::new(Budgets::new()),
            handshakes,
            app,
        };
        (shared, tasks)
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
            let mut drained = pin!(self.handshakes.drained());
            while let Some((stream, client, _)) = acceptor.next(drained.as_mut()).await {
                match self.handshakes.admit(stream, client) {
                    Some((Stream::Tcp(stream), admission)) => {
                        drop(tokio::spawn(tcp(self.clone(), stream, client, admission)));
                    }
                    Some((Stream::Unix(stream), admission)) => {
                        drop(tokio::spawn(unix(self.clone(), stream, client, admission)));
                    }
                    None => {}
                }
            }
        })
    }
}

/// `admission` is held until the end.
async fn tcp(shared: Shared, stream: TcpStream, client: Client, mut admission: Admission) {
    let identified = admission.identify(stream, client).await;
    let Some((stream, address)) = identified else {
        return;
    };
    let client = address.map_or(client, |address| address.ip().into());
    let budgets = shared.budgets.client(client);
    if !shared.handshakes.has_tls() {
        return serve(stream, Tap::default(), None, budgets, shared).await;
    }
    // It is larger by far, and a connection without TLS has no room for it.
    Box::pin(with_tls(shared, stream, budgets)).await;
}

async fn with_tls(shared: Shared, stream: TcpStream, budgets: ClientBudgets) {
    let tap = Tap::default();
    let stream = tap.inspect(stream);
    let handshake = shared.handshakes.accept_tls(stream, &budgets.strangers);
    // A handshake that fails or takes too long makes no connection.
    if let Some((stream, permit)) = handshake.await {
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
