//! Accept loops: one task for each listener, on the first worker.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::{Arc, mpsc};

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::budget::Share;
use super::connection;
use super::context::Shared;
use super::session::Session;
use crate::clients;
use crate::config::Protocol;
use crate::listener::{Acceptor, Listener, Stream};
use crate::tls::Tls;

/// Response to a client that is turned away.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// `RespServer::join` waits until the last one is dropped.
type Admission = clients::Admission<mpsc::Sender<Infallible>>;

/// Accepts from `listener` until the drain begins, and spawns connections on the workers in
/// turn.
///
/// # Errors
/// The listener can't be registered with the current runtime.
pub(super) fn accept_from(
    listener: Listener,
    tls: Option<Arc<Tls>>,
    shared: Arc<Shared>,
    workers: Arc<[Handle]>,
    mut draining: watch::Receiver<bool>,
    task: mpsc::Sender<Infallible>,
) -> io::Result<impl Future<Output = ()> + Send> {
    let acceptor = Acceptor::new(listener, "resp")?;
    Ok(async move {
        let drain = draining.clone();
        let mut begun = pin!(async move { drop(draining.wait_for(|begun| *begun).await) });
        while let Some((stream, client, peer)) = acceptor.next(begun.as_mut()).await {
            let counters = shared.accept_counters();
            let is_proxied = shared.proxy_protocol && matches!(stream, Stream::Tcp(_));
            let known = (!is_proxied).then_some(client);
            match Admission::new(known, &shared.clients, counters, task.clone()) {
                Some(admission) => {
                    let peer = peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string());
                    let session = Session::new(shared.next_session(), peer, client, &shared);
                    let drain = drain.clone();
                    let worker = &workers[session.number as usize % workers.len()];
                    spawn(
                        stream,
                        tls.as_deref(),
                        session,
                        admission,
                        &shared,
                        worker,
                        drain,
                    );
                }
                None => stream.turn_away(tls.is_some(), FULL),
            }
        }
    })
}

fn spawn(
    stream: Stream,
    tls: Option<&Tls>,
    mut session: Session,
    mut admission: Admission,
    shared: &Arc<Shared>,
    worker: &Handle,
    mut draining: watch::Receiver<bool>,
) {
    let shared = Arc::clone(shared);
    match stream {
        Stream::Tcp(socket) => {
            let Ok(socket) = socket.into_std() else {
                return;
            };
            let config = tls.map(|tls| tls.of(Protocol::Resp));
            drop(worker.spawn(async move {
                let Ok(mut stream) = TcpStream::from_std(socket) else {
                    return;
                };
                let share = identify(
                    &mut stream,
                    &mut session,
                    &mut admission,
                    &shared,
                    &mut draining,
                );
                let Some(mut share) = share.await else {
                    return;
                };
                let Some(config) = config else {
                    return connection::serve(stream, session, share, &shared, draining).await;
                };
                let budget = shared.budget.tls(session.client);
                let counters = shared.accept_counters();
                let handshakes = &shared.handshakes;
                let handshake = handshakes.accept_tls(config, stream, &budget, counters);
                // These are large, and a connection without TLS has no room for them.
                let handshake = Box::pin(begin(handshake, &shared, &mut draining));
                if let Some((stream, permit)) = handshake.await {
                    share.add_tls(permit);
                    Box::pin(connection::serve(stream, session, share, &shared, draining)).await;
                }
            }));
        }
        Stream::Unix(socket) => {
            let Ok(socket) = socket.into_std() else {
                return;
            };
            drop(worker.spawn(async move {
                // Held until the end.
                let _admission = admission;
                if let Ok(stream) = UnixStream::from_std(socket) {
                    let share = shared.budget.share(session.client);
                    connection::serve(stream, session, share, &shared, draining).await;
                }
            }));
        }
    }
}

/// The beginning of a connection. `None` if it takes longer than a request may, or if the
/// drain begins first.
async fn begin<T>(
    beginning: impl Future<Output = Option<T>>,
    shared: &Shared,
    draining: &mut watch::Receiver<bool>,
) -> Option<T> {
    tokio::select! {
        biased;
        begun = timeout(shared.limits.request_time, beginning) => begun.ok().flatten(),
        _ = draining.wait_for(|begun| *begun) => None,
    }
}

/// Reads the header of a proxy, where the settings say that there is one, and counts the
/// connection for the client that it names. Returns that client's share of the memory of all
/// connections; `None` if the connection ends.
async fn identify(
    stream: &mut TcpStream,
    session: &mut Session,
    admission: &mut Admission,
    shared: &Shared,
    draining: &mut watch::Receiver<bool>,
) -> Option<Share> {
    if shared.proxy_protocol {
        let header = shared.handshakes.read_header(stream, session.client);
        let header = async { header.await.ok() };
        // No address is a health check of the proxy itself.
        if let Some(address) = Box::pin(begin(header, shared, draining)).await? {
            session.peer = address.to_string();
            session.client = address.ip().into();
        }
        if !admission.identify(session.client) {
            if !shared.has_tls {
                // Best effort, as for any other client.
                let _ = stream.try_write(FULL);
            }
            return None;
        }
    }
    Some(shared.budget.share(session.client))
}
