//! The body of a request, and its members.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::app::Context;
use super::buffer_permit::guarded;
use super::problem::{Kind, Problem};

/// The most bytes of a body that needs no permit: those of a usual request are fewer.
const SMALL_BODY: usize = 4 << 10;

/// Reads the whole body, within its limits in bytes and in time. A body that may be large
/// needs a permit, and is refused if there is none.
pub(super) async fn read(body: Body, most: usize, context: &Context) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {most} bytes, which is the limit: send less");
        Problem::new(Kind::BODY_TOO_LARGE, detail)
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let size = body.size_hint().upper().map_or(most, |size| size as usize);
    let size = size.min(most);
    let permit = match size > SMALL_BODY {
        true => {
            let permit = context.buffers.budget.try_acquire(size);
            Some(permit.ok_or_else(|| context.busy())?)
        }
        false => None,
    };
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout_at(context.until.into(), read).await {
        Ok(Ok(bytes)) => {
            context.deadlines.set_body(false);
            Ok(guarded(bytes, permit))
        }
        Ok(Err(error)) if is_length_limit(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::malformed(
            "the body ended before its length, or its parts can't be read: send it again",
        )),
        Err(_) => Err(Problem::new(
            Kind::TIMEOUT,
            "the body did not arrive in time: send it again without a pause",
        )),
    }
}

fn is_length_limit(error: &axum::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// A JSON object. `members` says which it may have, and `example` shows one.
pub(super) fn object<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &Bytes,
    members: &str,
    example: &str,
) -> Result<T, Problem> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let is_json = content_type.is_some_and(|value| {
        let media_type = value.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("application/json")
    });
    if !is_json {
        return Err(Problem::new(
            Kind::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "the body is not application/json: send JSON with that Content-Type, such as \
                 {example}"
            ),
        ));
    }
    // An array would do for serde, too.
    if body.trim_ascii_start().first() != Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
    {
        return Err(Problem::invalid(format!(
            "the body is not a JSON object: send one, such as {example}"
        )));
    }
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Problem::invalid(format!(
                "the body is not allowed at line {line}, column {column}: its members are \
                 {members}, each at most once"
            ))
        } else {
            Problem::malformed(format!(
                "the body is not JSON at line {line}, column {column}: send an object, as in \
                 {example}"
            ))
        }
    })
}

/// A member that is there has a value: null is none.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A member that is a whole number, as JSON Schema has it: without a fraction, however it is
/// written.
pub(super) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    /// All whole numbers up to this one are exact.
    const MOST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

    let number = serde_json::Number::deserialize(from)?;
    let written_with_a_point = || {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && (0.0..=MOST).contains(&value)).then_some(value as u64)
    };
    let whole = number.as_u64().or_else(written_with_a_point);
    let error = || D::Error::custom("a whole number is expected");
    whole.ok_or_else(error).map(Some)
}
