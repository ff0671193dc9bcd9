//! The threads that open namespaces, since that blocks for as long as a store does.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::desk::OpenFailure;
use super::inbox::{Inbox, Message};
use crate::drain::Drain;
use crate::namespaces::Namespaces;

/// A namespace that a request needs.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) worker: usize,
    pub(super) slot: usize,
    pub(super) session: u64,
    pub(super) name: String,
}

/// Namespaces that are opened at once. Requests for one that takes long hold no others up until
/// they are as many.
const THREADS: usize = 4;

/// Begins the threads, which end when nobody can send them orders any more.
pub(super) fn start(
    namespaces: &Arc<Namespaces>,
    inboxes: &Arc<[Inbox]>,
    drain: &Drain,
) -> io::Result<(Sender<Order>, Vec<JoinHandle<()>>)> {
    let (sender, orders) = channel();
    let orders = Arc::new(Mutex::new(orders));
    let start = |index| {
        let (namespaces, inboxes) = (Arc::clone(namespaces), Arc::clone(inboxes));
        let (drain, orders) = (drain.clone(), Arc::clone(&orders));
        Builder::new()
            .name(format!("ringflake-open-{index}"))
            .spawn(move || open_all(&namespaces, &inboxes, &drain, &orders))
    };
    let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
    Ok((sender, threads))
}

fn open_all(
    namespaces: &Namespaces,
    inboxes: &[Inbox],
    drain: &Drain,
    orders: &Mutex<Receiver<Order>>,
) {
    loop {
        // Held while it waits: one of the threads waits there, and the others for that.
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(order) = order else { return };
        let Order {
            worker,
            slot,
            session,
            name,
        } = order;
        let failure = if drain.has_begun() {
            Some(OpenFailure::Ends)
        } else {
            namespaces.open(&name).err().as_ref().map(OpenFailure::from)
        };
        inboxes[worker].send(Message::Opened {
            slot,
            session,
            name,
            failure,
        });
    }
}
