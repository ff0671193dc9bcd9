//! `POST /v1/ids`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use http_body_util::BodyExt as _;
use ringflake::{CachedGenerator, Id, TakeError};

use super::app::{App, Context};
use super::auth;
use super::buffer_permit::guarded;
use super::format::{ResponseFormat, Writer};
use super::problem::Problem;
use super::take_request::TakeRequest;
use crate::access::Role;
use crate::counters::add_shared;

const BATCH: usize = 1024;

/// Bytes after which other requests of the thread get their turn.
const YIELD_BYTES: usize = 64 << 10;

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

pub(super) async fn take(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let context = Context::of(&request)?;
    let (head, body) = request.into_parts();
    auth::require(&app.setup.rights, &head, Role::Take)?;
    let media = ResponseFormat::accepted(&head.headers);
    if !is_empty(body, &context).await {
        return Err(Problem::invalid(
            "a take has no body: give namespace, count and format in the query, as in \
             ?namespace=orders&count=2",
        ));
    }
    let request = TakeRequest::read(head.uri.query(), app.setup.limits.count)?;
    auth::spend(
        &app.setup.rights,
        &head,
        Role::Take,
        &request.namespace,
        request.count,
    )?;
    answer(&app, &context, &request, media).await
}

/// Whether the body has no byte. If its length is unknown, its end has to come in time.
async fn is_empty(mut body: Body, context: &Context) -> bool {
    if body.size_hint().lower() > 0 {
        return false;
    }
    let first = tokio::time::timeout_at(context.until.into(), body.frame()).await;
    let is_empty = matches!(first, Ok(None));
    context.deadlines.set_body(!is_empty);
    is_empty
}

async fn answer(
    app: &App,
    context: &Context,
    request: &TakeRequest,
    media: ResponseFormat,
) -> Result<Response, Problem> {
    let namespace = app.namespace(&request.namespace, context).await?;
    let writer = Writer {
        media,
        format: request.format,
    };
    let bytes = writer.most_bytes(&namespace.name, request.count);
    let permit = context
        .reserve(&context.buffers.budgets.answers, bytes)
        .await?;
    let mut out = Vec::with_capacity(bytes);
    writer.head(&namespace.name, &mut out);
    let generator = &namespace.generator;
    write_ids(generator, request.count, writer, context.until, &mut out).await?;
    out.extend_from_slice(writer.tail());
    add_shared(&app.counters.ids, request.count as u64);

    let body = match permit {
        Some(permit) => guarded(out, permit),
        None => Bytes::from(out),
    };
    let mut response = Response::new(Body::from(body));
    let content_type = HeaderValue::from_static(media.content_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// Takes `count` IDs, at least one, and writes them. After an error the IDs that were taken are
/// lost, so an error that passes in time is waited for once some have been taken.
async fn write_ids(
    generator: &CachedGenerator,
    count: usize,
    writer: Writer,
    until: Instant,
    out: &mut Vec<u8>,
) -> Result<(), TakeError> {
    let mut left = count;
    let mut batch = vec![Id::default(); count.min(BATCH)];
    let mut yield_at = out.len() + YIELD_BYTES;
    while left > 0 {
        let wanted = &mut batch[..BATCH.min(left)];
        let taking = generator.take_batch_async(wanted);
        let taken = match tokio::time::timeout_at(until.into(), taking).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(error)) => {
                let wait = error.retry_after().filter(|_| left < count);
                let wait = wait.map(|wait| wait.max(SHORTEST_PAUSE));
                let again = wait.and_then(|wait| Instant::now().checked_add(wait));
                let Some(again) = again.filter(|again| *again < until) else {
                    return Err(error);
                };
                tokio::time::sleep_until(again.into()).await;
                continue;
            }
            Err(_) => return Err(TakeError::Empty),
        };
        writer.ids(&batch[..taken], left == count, out);
        left -= taken;
        if out.len() >= yield_at {
            yield_at = out.len() + YIELD_BYTES;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
