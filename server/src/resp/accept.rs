//! Accept loops: one task for each listener, on the first worker.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;

use super::connection;
use super::context::Shared;
use super::session::Session;
use crate::handshake::{Admission, Handshakes};
use crate::listener::{Acceptor, Listener, Stream};

/// Response to a client that is turned away.
pub(super) const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// Accepts from `listener` until the drain begins, and spawns connections on the workers in
/// turn.
///
/// # Errors
/// The listener can't be registered with the current runtime.
pub(super) fn accept_from(
    listener: Listener,
    handshakes: Arc<Handshakes>,
    shared: Arc<Shared>,
    workers: Arc<[Handle]>,
) -> io::Result<impl Future<Output = ()> + Send> {
    let acceptor = Acceptor::new(listener, "resp")?;
    Ok(async move {
        let mut drained = pin!(handshakes.drained());
        while let Some((stream, client, peer)) = acceptor.next(drained.as_mut()).await {
            let Some((stream, admission)) = handshakes.admit(stream, client) else {
                continue;
            };
            let peer = peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string());
            let session = Session::new(shared.next_session(), peer, client, &shared);
            let worker = &workers[session.number as usize % workers.len()];
            spawn(stream, session, admission, Arc::clone(&shared), worker);
        }
    })
}

fn spawn(
    stream: Stream,
    mut session: Session,
    mut admission: Admission,
    shared: Arc<Shared>,
    worker: &Handle,
) {
    let draining = shared.setup.drain.subscribe();
    match stream {
        Stream::Tcp(socket) => {
            let Ok(socket) = socket.into_std() else {
                return;
            };
            drop(worker.spawn(async move {
                let Ok(stream) = TcpStream::from_std(socket) else {
                    return;
                };
                let identified = admission.identify(stream, session.client).await;
                let Some((stream, address)) = identified else {
                    return;
                };
                if let Some(address) = address {
                    session.peer = address.to_string();
                    session.client = address.ip().into();
                }
                let mut share = shared.budget.share(session.client);
                if !admission.handshakes.has_tls() {
                    return connection::serve(stream, session, share, &shared, draining).await;
                }
                let budget = shared.budget.tls(session.client);
                // These are large, and a connection without TLS has no room for them.
                let handshake = Box::pin(admission.handshakes.accept_tls(stream, &budget));
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
