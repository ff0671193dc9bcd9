//! `GET /v1/ids/{id}`.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::app::App;
use super::auth;
use super::format::Format;
use super::problem::{Kind, Problem};
use super::take_request::Query;
use crate::access::Role;

#[derive(Serialize)]
struct Inspected<'a> {
    namespace: &'a str,
    id: &'a str,
    /// None after the year 9999, which has no such text.
    time: Option<String>,
    unix_ms: u64,
    tick: u64,
    node: u64,
    sequence: u64,
}

pub(super) async fn inspect(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    auth::require(&app.setup.rights, &head, Role::Inspect)?;
    let query = Query::read(head.uri.query(), &["namespace", "format"])?;
    let name = query.namespace()?;
    auth::spend(&app.setup.rights, &head, Role::Inspect, name, 1)?;
    let format = query
        .get("format")
        .map_or(Ok(Format::default()), Format::named)?;
    // As it stands there: an ID has no character that is escaped.
    let text = head.uri.path().rsplit('/').next().unwrap_or_default();
    let id = format.read(text)?;
    // A look does not begin a namespace.
    let namespace = app.setup.namespaces.get(name).ok_or_else(|| {
        let detail = "no ID was taken in this namespace since the server started: take one first, \
                      or give another namespace";
        Problem::new(Kind::UNKNOWN_NAMESPACE, detail)
    })?;
    let parts = namespace.generator.inspect(id).map_err(|_| {
        let detail = "the ID was not issued in this namespace: give the namespace and the format that \
                      it was taken with";
        Problem::new(Kind::FOREIGN_ID, detail)
    })?;
    let inspected = Inspected {
        namespace: name,
        id: text,
        time: time(parts.unix_ms),
        unix_ms: parts.unix_ms,
        tick: parts.tick,
        node: parts.node,
        sequence: parts.sequence,
    };
    Ok(Json(inspected).into_response())
}

/// As RFC 3339 has it.
fn time(unix_ms: u64) -> Option<String> {
    /// The first millisecond of the year 10,000.
    const END: u64 = 253_402_300_800_000;

    let time = (unix_ms < END).then(|| UNIX_EPOCH + Duration::from_millis(unix_ms))?;
    Some(humantime::format_rfc3339_millis(time).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339_has_it() {
        assert_eq!(time(0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(1_730_000_000_007).unwrap(), "2024-10-27T03:33:20.007Z");
        assert_eq!(
            time(253_402_300_799_999).unwrap(),
            "9999-12-31T23:59:59.999Z"
        );
        assert_eq!(time(253_402_300_800_000), None);
        assert_eq!(time(u64::MAX), None);
    }
}
