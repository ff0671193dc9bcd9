//! `POST /v1/ids`.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request, Version};
use axum::response::Response;
use ringflake::{Id, TakeError};

use super::app::{App, Context};
use super::format::Writer;
use super::negotiate::Shape;
use super::order::Order;
use super::problem::{Kind, Problem};
use super::room::ROOMLESS;
use super::stream::IdStream;
use super::{auth, body};
use crate::access::Role;
use crate::front::add_shared;
use crate::namespaces::Namespace;

/// The most IDs that are taken before the answer begins: with more of them it is long.
pub(super) const AT_ONCE: usize = 1024;

/// Answers with IDs.
pub(super) async fn take(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let context = Context::of(&request)?;
    let (head, body) = request.into_parts();
    auth::require(&*app.rights, &head, Role::Take)?;
    let shape = Shape::accepted(&head.headers)?;
    let body = body::read(body, app.limits.request_bytes, &context).await?;
    let query = head.uri.query();
    let order = Order::read(query, &head.headers, &body, shape, app.limits.count)?;
    let namespace = app.namespace(&order.namespace, &context).await?;
    let writer = Writer {
        shape,
        format: order.format,
    };

    let body = if order.count <= AT_ONCE {
        let room = if order.count <= ROOMLESS {
            None
        } else {
            Some(context.room().await?)
        };
        let body = at_once(&namespace, order.count, writer, &context).await?;
        add_shared(&app.counters.ids, order.count as u64);
        Body::from(match room {
            None => body.into(),
            Some(room) => room.hold(body),
        })
    } else {
        if head.version < Version::HTTP_11 && shape != Shape::Binary {
            // The end of such an answer is the end of its connection, whether it is whole
            // or not.
            return Err(Problem::invalid(format!(
                "an answer of HTTP/1.0 has at most {AT_ONCE} IDs as text: ask for fewer, use \
                 HTTP/1.1, or accept application/octet-stream"
            )));
        }
        let until = context.request.reading_until();
        let Some(turn) = context.turns.next_until(until).await else {
            let detail = "there are as many long answers as there may be at once: try again, or \
                          ask for fewer IDs";
            let wait = app.limits.request_time;
            return Err(Problem::new(Kind::BUSY, detail).retry_after(wait));
        };
        let most_bytes = order.count as u64 * writer.most_bytes() as u64;
        let deadline = context.request.answer_begins(most_bytes, Instant::now());
        // The first part is taken now, so that an error can still be one.
        let (turns, counters) = (Arc::clone(&context.turns), Arc::clone(&app.counters));
        let begin = IdStream::begin(
            namespace,
            order.count,
            writer,
            deadline,
            turns,
            turn,
            counters,
        );
        Body::new(begin.await?)
    };
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(shape.content_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// All of a short answer. IDs that were taken before an error are lost.
async fn at_once(
    namespace: &Namespace,
    count: usize,
    writer: Writer,
    context: &Context,
) -> Result<Vec<u8>, Problem> {
    /// IDs of one batch, which live in the task.
    const BATCH: usize = 64;

    let most_bytes = count * writer.most_bytes() + namespace.name.len() + 32;
    let mut out = Vec::with_capacity(most_bytes);
    writer.head(&namespace.name, &mut out);
    let mut batch = [Id::default(); BATCH];
    let mut left = count;
    let until = context.request.reading_until();
    while left > 0 {
        let wanted = &mut batch[..left.min(BATCH)];
        // Waits where `OnEmpty` says so, but holds no thread.
        let taking = namespace.generator.take_batch_async(wanted);
        let taken = match tokio::time::timeout_at(until.into(), taking).await {
            Ok(taken) => taken?,
            Err(_) => return Err(TakeError::Empty.into()),
        };
        writer.ids(&batch[..taken], left == count, &mut out);
        left -= taken;
    }
    out.extend_from_slice(writer.tail());
    Ok(out)
}
