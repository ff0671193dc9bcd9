//! Errors, as `application/problem+json` of RFC 9457.
//!
//! Each says what was wrong, what is allowed and what to do next. None quotes a token or an
//! ID.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringflake::TakeError;
use serde::Serialize;

use crate::readiness::whole_seconds;

pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// A kind of error: programs distinguish them by its name, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
}

macro_rules! kinds {
    ($($NAME:ident: $status:ident $name:literal $title:literal,)+) => {
        impl Kind {
            $(pub(super) const $NAME: Self = Self {
                name: $name,
                status: StatusCode::$status,
                title: $title,
            };)+

            pub(super) const ALL: &[Self] = &[$(Self::$NAME),+];
        }
    };
}

kinds! {
    MALFORMED: BAD_REQUEST "malformed" "The request can't be read",
    UNAUTHENTICATED: UNAUTHORIZED "unauthenticated" "A token is needed",
    FORBIDDEN: FORBIDDEN "forbidden" "The token lacks this permission",
    CROSS_SITE: FORBIDDEN "cross-site" "Cross-site request",
    NOT_FOUND: NOT_FOUND "not-found" "Path not found",
    UNKNOWN_NAMESPACE: NOT_FOUND "unknown-namespace" "Unknown namespace",
    NO_ID: NOT_FOUND "no-id" "The path has no ID in this format",
    FOREIGN_ID: NOT_FOUND "foreign-id" "The ID was not issued in this namespace",
    METHOD_NOT_ALLOWED: METHOD_NOT_ALLOWED "method-not-allowed" "Method not allowed for this path",
    TOO_MANY_NAMESPACES: CONFLICT "too-many-namespaces" "Too many namespaces",
    UNKNOWN_HOST: MISDIRECTED_REQUEST "unknown-host" "Unknown host name",
    INVALID: UNPROCESSABLE_ENTITY "invalid" "A value is not allowed",
    RATE_LIMITED: TOO_MANY_REQUESTS "rate-limited" "The rate limit of the token is reached",
    CANNOT_ISSUE: SERVICE_UNAVAILABLE "cannot-issue" "No ID can be issued at the moment",
    BUSY: SERVICE_UNAVAILABLE "busy" "The server is busy",
    CANNOT_OPEN: SERVICE_UNAVAILABLE "cannot-open" "The namespace can't be opened at the moment",
}

impl Kind {
    pub(super) fn urn(self) -> String {
        format!("urn:ringflake:problem:{}", self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) kind: Kind,
    detail: String,
    retry_after: Option<Duration>,
    challenge: Option<&'static str>,
}

#[derive(Serialize)]
struct Written<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_after: None,
            challenge: None,
        }
    }

    /// The same request may succeed after this.
    pub(super) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The error of the token, in the form of RFC 6750.
    pub(super) fn challenge(mut self, challenge: &'static str) -> Self {
        self.challenge = Some(challenge);
        self
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Kind::INVALID, detail)
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Kind::MALFORMED, detail)
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let written = Written {
            r#type: self.kind.urn(),
            title: self.kind.title,
            status: self.kind.status.as_u16(),
            detail: &self.detail,
            retry_after_ms: self.retry_after.map(whole_milliseconds),
        };
        // Texts and numbers can always be written.
        serde_json::to_vec(&written).unwrap_or_default()
    }
}

/// Rounded up: who waits for less would come too early.
fn whole_milliseconds(wait: Duration) -> u64 {
    let milliseconds = wait.as_nanos().div_ceil(1_000_000);
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}

impl From<TakeError> for Problem {
    fn from(error: TakeError) -> Self {
        let problem = Self::new(Kind::CANNOT_ISSUE, error.to_string());
        match error.retry_after() {
            Some(wait) => problem.retry_after(wait),
            None => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json()));
        *response.status_mut() = self.kind.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(wait) = self.retry_after {
            // It has no smaller unit.
            headers.insert(RETRY_AFTER, whole_seconds(wait).max(1).into());
        }
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use ringflake::Refused;

    use super::*;

    #[test]
    fn every_kind_reads_as_in_its_snapshot() {
        let line =
            |kind: &Kind| format!("{} {}: {}\n", kind.status.as_u16(), kind.name, kind.title);
        let text: String = Kind::ALL.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/http.txt");
        ringflake_kit::snapshot::assert_snapshot(path, &text);
    }

    #[test]
    fn a_take_that_may_succeed_later_says_when() {
        let limit = Duration::from_secs(60);
        for (wait, seconds, milliseconds) in [
            (1, "1", 1),
            (1_000_000, "1", 1),
            (1_000_001, "1", 2),
            (1_001_000_000, "2", 1001),
        ] {
            let retry_after = Duration::from_nanos(wait);
            let refused = Refused::BorrowLimit { retry_after, limit };
            let problem = Problem::from(TakeError::from(refused));
            let written: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
            assert_eq!(written["retry_after_ms"], milliseconds);
            let response = problem.into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], seconds);
        }
    }
}
