//! What all requests share. It knows none of their handlers.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Request;

use super::buffer_permit::{ClientBudgets, SMALL_BYTES, StrangerPermits};
use super::deadlines::{Deadlines, Times};
use super::namespace_metrics::NamespaceMetrics;
use super::problem::{Kind, Problem};
use crate::buffer_budget::{BufferPermit, ClientBudget};
use crate::counters::{Counters, NamedCounters};
use crate::namespaces::{Namespace, OpenError};
use crate::readiness::Obstacle;
use crate::setup::Setup;

/// For how long a draining server still answers new requests: clients learn from their next
/// answer that they have to connect elsewhere.
pub(crate) const DRAIN_TIME: Duration = Duration::from_millis(500);

pub(super) struct App {
    pub(super) setup: Setup,
    /// For how long new requests are answered while it drains.
    pub(super) drain_time: Duration,
    pub(super) counters: Arc<Counters>,
    pub(super) protocols: Vec<NamedCounters>,
    pub(super) metrics: NamespaceMetrics,
    pub(super) started: Instant,
}

impl App {
    /// # Errors
    ///
    /// When the recorder of the metrics can't be made.
    pub(super) fn new(
        setup: Setup,
        drain_time: Duration,
        protocols: Vec<NamedCounters>,
    ) -> io::Result<Self> {
        Ok(Self {
            counters: Arc::clone(&setup.counters[0]),
            setup,
            drain_time,
            protocols,
            metrics: NamespaceMetrics::new().map_err(io::Error::other)?,
            started: Instant::now(),
        })
    }

    pub(super) fn times(&self) -> Times {
        Times {
            request: self.setup.limits.request_time,
            idle: self.setup.limits.idle_time,
            drain: self.drain_time,
        }
    }

    /// What keeps clients from beginning namespaces.
    pub(super) async fn data_dir_obstacle(&self) -> Option<Obstacle> {
        let namespaces = Arc::clone(&self.setup.namespaces);
        // It writes to a disk.
        let checked = tokio::task::spawn_blocking(move || namespaces.data_dir_obstacle());
        checked.await.ok().flatten()
    }

    /// The namespace of this name, opened if that is allowed.
    pub(super) async fn namespace(
        &self,
        name: &str,
        context: &Context,
    ) -> Result<Arc<Namespace>, Problem> {
        if let Some(namespace) = self.setup.namespaces.get(name) {
            return Ok(namespace);
        }
        let opening = tokio::task::spawn_blocking({
            let namespaces = Arc::clone(&self.setup.namespaces);
            let name = name.to_owned();
            move || namespaces.open(&name)
        });
        match tokio::time::timeout_at(context.until.into(), opening).await {
            Ok(Ok(Ok(namespace))) => Ok(namespace),
            Ok(Ok(Err(error))) => Err(refused(&error)),
            // It goes on, and the next request may find it.
            Err(_) => Err(cannot_open("it is still being opened")),
            Ok(Err(_)) => Err(cannot_open("it failed")),
        }
    }
}

/// When a store may answer again.
pub(super) const SOON: Duration = Duration::from_secs(1);

fn cannot_open(why: &str) -> Problem {
    let detail = format!(
        "the namespace can't be opened: {why}. Try again; if it lasts, the log of the server \
         has more"
    );
    Problem::new(Kind::CANNOT_OPEN, detail).retry_after(SOON)
}

/// The response for a namespace that can't be opened.
fn refused(error: &OpenError) -> Problem {
    match error {
        OpenError::Unknown => Problem::new(Kind::UNKNOWN_NAMESPACE, error.to_string()),
        OpenError::Name(_) | OpenError::LocalName(_) => Problem::invalid(error.to_string()),
        OpenError::TooMany { .. } => Problem::new(Kind::TOO_MANY_NAMESPACES, error.to_string()),
        OpenError::Stopping => Problem::new(Kind::BUSY, error.to_string()).retry_after(SOON),
        // The rest names files and servers, which are not the client's business. It is logged.
        _ => cannot_open("it was rejected"),
    }
}

/// The budgets of a connection and its permits as a stranger.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) budgets: ClientBudgets,
    pub(super) stranger: StrangerPermits,
}

/// What a request knows of its connection.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// When the request must have arrived and its answer must have been built.
    pub(super) until: Instant,
    pub(super) buffers: Arc<Buffers>,
    pub(super) deadlines: Arc<Deadlines>,
}

impl Context {
    /// The context that `call` has put into this request.
    pub(super) fn of<B>(request: &Request<B>) -> Result<Self, Problem> {
        let context = request.extensions().get().cloned();
        context.ok_or_else(|| Problem::new(Kind::BUSY, "the connection is closing: try again"))
    }

    /// The request is authorized: its connection is no stranger's any more.
    pub(super) fn authorize(&self) {
        if self.buffers.stranger.authorize() {
            self.deadlines.authorize();
        }
    }

    /// Waits for memory for an answer of so many bytes.
    /// A small answer needs none.
    pub(super) async fn reserve(
        &self,
        budget: &ClientBudget,
        bytes: usize,
    ) -> Result<Option<BufferPermit>, Problem> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let permit = budget.acquire(bytes);
        match tokio::time::timeout_at(self.until.into(), permit).await {
            Ok(Some(permit)) => Ok(Some(permit)),
            _ => Err(self.busy()),
        }
    }

    /// All memory for answers is in use.
    pub(super) fn busy(&self) -> Problem {
        let detail = "all memory for answers is in use, of the server or of this client: read the \
                      answers that have come, and try again";
        Problem::new(Kind::BUSY, detail).retry_after(SOON)
    }
}
