//! `POST /v1/leases`, `/v1/leases/renew` and `/v1/leases/release`: nodes and ticks for
//! generators of other languages.
//!
//! Each request is one call of a store, on a thread that may block. A call that takes longer
//! than its request may goes on by itself. Leases that it then acquires are released: nobody has
//! their texts.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request;
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use ringflake::lease::StoreError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::app::{self, App, Context};
use super::problem::{Kind, Problem};
use super::take_request::check_name;
use super::{auth, body};
use crate::access::Role;
use crate::causes::Causes;
use crate::sublease::{
    AcquireRequest, DEFAULT_DURATION, Granted, MOST_DURATION, Refusal, Size, Sublease, Subleases,
};

/// The most characters of a holder's name.
pub(super) const HOLDER: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Acquiring {
    namespace: String,
    #[serde(default, deserialize_with = "body::whole")]
    nodes: Option<u64>,
    #[serde(default, deserialize_with = "body::whole")]
    blocks: Option<u64>,
    #[serde(default, deserialize_with = "body::whole")]
    duration_s: Option<u64>,
    #[serde(default, deserialize_with = "body::given")]
    holder: Option<String>,
    #[serde(default)]
    had: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Renewing {
    lease: String,
    #[serde(default, deserialize_with = "body::whole")]
    duration_s: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Releasing {
    lease: String,
}

pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (context, head, body) = admit(&app, request).await?;
    let Acquiring {
        namespace: name,
        nodes,
        blocks,
        duration_s,
        holder,
        had,
    } = body::object(
        &head.headers,
        &body,
        "namespace (a text), nodes or blocks (whole numbers), duration_s (a whole number), holder \
         (a text) and had (a list of texts)",
        "{\"namespace\":\"orders\",\"nodes\":32}",
    )?;
    check_name(&name)?;
    auth::spend(&app.setup.rights, &head, Role::Lease, &name, 1)?;
    let size = match (nodes, blocks) {
        (None, None) => Size::Blocks(1),
        (None, Some(blocks)) => Size::Blocks(blocks),
        (Some(nodes), None) => Size::Nodes(nodes),
        (Some(_), Some(_)) => {
            let detail = "nodes and blocks are both there: give one of them";
            return Err(Problem::invalid(detail));
        }
    };
    let is_name = |name: &String| {
        let is_printable = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_printable && (1..=HOLDER).contains(&name.len())
    };
    if holder.as_ref().is_some_and(|name| !is_name(name)) {
        return Err(Problem::invalid(format!(
            "holder must be 1 to {HOLDER} printable ASCII characters"
        )));
    }
    let wanted = AcquireRequest {
        size,
        duration: duration(duration_s)?,
        holder,
        had,
    };
    // Makes it if need be, and says why it can't be made.
    app.namespace(&name, &context).await?;
    let work = move |subleases: &Subleases| subleases.acquire(&name, &wanted);
    let given = ask(&app, &context, work, Subleases::give_back).await?;
    Ok(written(&given))
}

pub(super) async fn renew(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (context, head, body) = admit(&app, request).await?;
    let Renewing { lease, duration_s } = body::object(
        &head.headers,
        &body,
        "lease (a text) and duration_s (a whole number)",
        "{\"lease\":\"...\"}",
    )?;
    let duration = duration(duration_s)?;
    spend(&app, &head, &lease)?;
    let work = move |subleases: &Subleases| subleases.renew(&lease, duration);
    let given = ask(&app, &context, work, |_, _| {}).await?;
    Ok(written(&given))
}

pub(super) async fn release(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (context, head, body) = admit(&app, request).await?;
    let members = "lease (a text)";
    let example = "{\"lease\":\"...\"}";
    let Releasing { lease } = body::object(&head.headers, &body, members, example)?;
    spend(&app, &head, &lease)?;
    let work = move |subleases: &Subleases| subleases.release(&lease);
    let given = ask(&app, &context, work, |_, _| {}).await?;
    let ended = |lease| json!({ "nodes": nodes(lease), "ticks": ticks(lease) });
    let ended: Vec<Value> = given.leases.iter().map(ended).collect();
    let namespace = &given.parameters.namespace;
    Ok(answer(
        &json!({ "namespace": namespace, "released": ended }),
    ))
}

/// What each of these requests needs: the right, no query, and a body.
async fn admit(
    app: &App,
    request: Request<Body>,
) -> Result<(Context, request::Parts, Bytes), Problem> {
    let context = Context::of(&request)?;
    let (head, body) = request.into_parts();
    auth::require(&app.setup.rights, &head, Role::Lease)?;
    if head.uri.query().is_some_and(|query| !query.is_empty()) {
        let detail = "there is a query, and none is read here: put all into the JSON body";
        return Err(Problem::invalid(detail));
    }
    let body = body::read(body, app.setup.limits.request_bytes, &context).await?;
    Ok((context, head, body))
}

/// Counts a request about this lease against the limits of the token. A text that is no lease
/// belongs to no namespace: a token for all of them gets the error of its use.
fn spend(app: &App, head: &request::Parts, lease: &str) -> Result<(), Problem> {
    let namespace = Subleases::namespace_of(lease);
    let namespace = namespace.unwrap_or_else(|| "the namespace of this lease".to_owned());
    auth::spend(&app.setup.rights, head, Role::Lease, &namespace, 1)
}

fn duration(seconds: Option<u64>) -> Result<Duration, Problem> {
    let Some(seconds) = seconds else {
        return Ok(DEFAULT_DURATION);
    };
    let most = MOST_DURATION.as_secs();
    match (1..=most).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(Problem::invalid(format!("duration_s must be 1 to {most}"))),
    }
}

/// Does `work` on a thread that may block, and `undo` if its result comes after the request has
/// ended.
async fn ask(
    app: &App,
    context: &Context,
    work: impl FnOnce(&Subleases) -> Result<Granted, Refusal> + Send + 'static,
    undo: fn(&Subleases, &Granted),
) -> Result<Granted, Problem> {
    let subleases = Arc::clone(&app.setup.subleases);
    let (sender, receiver) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        if let Err(Ok(given)) = sender.send(work(&subleases)) {
            undo(&subleases, &given);
        }
    });
    let outcome = tokio::time::timeout_at(context.until.into(), receiver).await;
    let outcome = outcome.map_err(|_| {
        let slow = "the store is slower than the time limit of a lease request";
        warn(app, slow, None);
        store_away("the store is slow to respond")
    })?;
    let outcome = outcome.map_err(|_| store_away("the store failed"))?;
    outcome.map_err(|refusal| problem(app, &refusal))
}

fn store_away(why: &str) -> Problem {
    let detail = format!(
        "{why}; the outcome is unknown: issue IDs only within known leases, and try again; the \
         server's log has the cause"
    );
    Problem::new(Kind::NO_LEASE, detail).retry_after(app::SOON)
}

fn problem(app: &App, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Invalid(reason) => Problem::invalid(reason.as_str()),
        Refusal::Open(error) => app::refused(error),
        Refusal::Store(error) => of_store(app, error),
        Refusal::Busy => {
            let detail = "too many requests wait for the store: try again";
            Problem::new(Kind::BUSY, detail).retry_after(app::SOON)
        }
        Refusal::OverBudget(wait) => {
            let detail = "the limit of new leases in a minute is reached: keep and renew the leases at \
                          hand, or raise limits.leases-per-minute in the server's configuration";
            Problem::new(Kind::TOO_MANY_LEASES, detail).retry_after(*wait)
        }
        Refusal::Unknown => Problem::new(
            Kind::LEASE_LOST,
            "unknown lease: issue no IDs from it, and request another one at /v1/leases",
        ),
        Refusal::Lost(fence) => {
            let detail = format!(
                "the lease is no longer yours: {fence}. Issue no more IDs from it, and request \
                 another one at /v1/leases, with this one in had"
            );
            Problem::new(Kind::LEASE_LOST, detail)
        }
    }
}

fn of_store(app: &App, error: &StoreError) -> Problem {
    let problem = Problem::new(Kind::NO_LEASE, error.to_string());
    match error {
        StoreError::Exhausted { retry_after, .. }
        | StoreError::FloorAhead { retry_after, .. }
        | StoreError::ClockStepped { retry_after, .. } => problem.retry_after(*retry_after),
        StoreError::HistoryLost { .. } => problem.retry_after(app::SOON),
        StoreError::LayoutEnded { .. } => problem,
        StoreError::Ambiguous { .. } => {
            warn(
                app,
                "the outcome of a lease request is unknown",
                Some(error),
            );
            store_away("the store did not reply in time, or the connection to it broke")
        }
        error => {
            // It names servers and files, which are not the client's business.
            warn(app, "the store rejected a lease request", Some(error));
            let detail = "the store rejected the request or can't be reached; nothing was changed: \
                          issue IDs only within known leases, and try again; the server's log has \
                          the cause";
            Problem::new(Kind::NO_LEASE, detail).retry_after(app::SOON)
        }
    }
}

/// Clients can cause these lines as often as they like.
fn warn(app: &App, message: &'static str, error: Option<&StoreError>) {
    if let Some(suppressed) = app.store_failures.permit(message) {
        let error = error.map(|error| Causes(error).to_string());
        tracing::warn!(error, suppressed, "{message}");
    }
}

/// The parameters of a generator.
fn written(given: &Granted) -> Response {
    let parameters = &given.parameters;
    let layout = &parameters.layout;
    let leases: Vec<Value> = given
        .leases
        .iter()
        .map(|lease| {
            let until_unix_ms = layout.tick_start_unix_ms(lease.ticks.end);
            json!({
                "lease": lease.text,
                "nodes": nodes(lease),
                "ticks": ticks(lease),
                "from_unix_ms": layout.tick_start_unix_ms(lease.ticks.start),
                "until_unix_ms": until_unix_ms,
                // Half of what is left: the other half is for a store that is away.
                "renew_after_s": until_unix_ms.saturating_sub(given.unix_ms) / 2000,
            })
        })
        .collect();
    answer(&json!({
        "namespace": parameters.namespace,
        "layout": {
            "epoch_unix_ms": layout.epoch_unix_ms(),
            "tick_ms": layout.tick_ms(),
            "time_bits": layout.time_bits(),
            "node_bits": layout.node_bits(),
            "sequence_bits": layout.sequence_bits(),
        },
        "id_bits": parameters.id_width.bits(),
        "encrypted": parameters.is_encrypted,
        "leases": leases,
    }))
}

fn nodes(lease: &Sublease) -> Value {
    json!({ "start": lease.nodes.start, "end": lease.nodes.end })
}

fn ticks(lease: &Sublease) -> Value {
    json!({ "from": lease.ticks.start, "until": lease.ticks.end })
}

fn answer(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
