//! The rights of a request, by its token, or where it needs none by where it comes from.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::response::Response;

use super::app::Context;
use super::cross_origin;
use super::problem::{Kind, Problem};
use crate::access::{Access, Exceeded, Role};

/// How long the response to an unknown token waits, and all requests behind it.
pub(super) const DELAY: Duration = Duration::from_millis(200);

const UNKNOWN_TOKEN: &str = "Bearer realm=\"ringflake\", error=\"invalid_token\"";

/// Marks a response that is not an error, though the request had an unknown token.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownToken;

pub(super) fn is_unknown_token(response: &Response) -> bool {
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    challenge.is_some_and(|challenge| challenge == UNKNOWN_TOKEN)
        || response.extensions().get::<UnknownToken>().is_some()
}

/// Checks that the request has this role, as [`check`] does, and logs a refusal.
pub(super) fn require(rights: &Access, head: &Parts, role: Role) -> Result<(), Problem> {
    check(rights, head, role).inspect_err(|problem| log(rights, head, role, None, problem))
}

fn log(rights: &Access, head: &Parts, role: Role, namespace: Option<&str>, problem: &Problem) {
    if let Some(context) = head.extensions.get::<Context>() {
        let client = context.buffers.budgets.answers.client().to_string();
        let token = token(&head.headers).ok().flatten();
        rights.log_refusal(&client, role, token, namespace, problem.kind.name);
    }
}

/// Checks that the request has this role: 401 if its token is missing or unknown, 403 if the token
/// is for other roles or no client can have this one. If no token is needed, checks that the
/// request does not come from a page of another site.
pub(super) fn check(rights: &Access, head: &Parts, role: Role) -> Result<(), Problem> {
    if rights.allows(role, None) {
        cross_origin::check(head)?;
    }
    let token = token(&head.headers);
    if rights.allows(role, token.ok().flatten()) {
        if let Some(context) = head.extensions.get::<Context>() {
            context.authorize();
        }
        return Ok(());
    }
    if !rights.is_anybodys(role) {
        let detail = format!(
            "nobody has the permission {role} here: name a file of tokens as tokens.{role} in the \
             server's configuration, and send one of them"
        );
        return Err(Problem::new(Kind::FORBIDDEN, detail)
            .challenge("Bearer realm=\"ringflake\", error=\"insufficient_scope\""));
    }
    match token {
        Ok(Some(token)) if is_known(rights, token) => Err(Problem::new(
            Kind::FORBIDDEN,
            format!("the token lacks the permission {role}: use one that has it"),
        )
        .challenge("Bearer realm=\"ringflake\", error=\"insufficient_scope\"")),
        Ok(Some(_)) | Err(()) => Err(Problem::new(
            Kind::UNAUTHENTICATED,
            format!(
                "unknown token: send one with the permission {role}, as in Authorization: \
                 Bearer TOKEN"
            ),
        )
        .challenge(UNKNOWN_TOKEN)),
        Ok(None) => Err(Problem::new(
            Kind::UNAUTHENTICATED,
            format!(
                "a token with the permission {role} is needed: send it as in Authorization: \
                 Bearer TOKEN"
            ),
        )
        .challenge("Bearer realm=\"ringflake\"")),
    }
}

/// Counts `amount` IDs, or one request, against the limits of the request's token, which
/// [`require`] has accepted.
pub(super) fn spend(
    rights: &Access,
    head: &Parts,
    role: Role,
    namespace: &str,
    amount: usize,
) -> Result<(), Problem> {
    let token = token(&head.headers).ok().flatten();
    let spent = rights.spend(role, token, namespace, amount as u64);
    let spent = spent.map_err(|exceeded| match exceeded {
        Exceeded::Namespace => Problem::new(
            Kind::FORBIDDEN,
            format!("{exceeded}: use one that may use {namespace}"),
        ),
        Exceeded::Rate { retry_after } => {
            let detail = format!("{exceeded}: try again later, or ask for less");
            Problem::new(Kind::RATE_LIMITED, detail).retry_after(retry_after)
        }
    });
    spent.inspect_err(|problem| log(rights, head, role, Some(namespace), problem))
}

/// Whether any right that not everybody has comes with it.
fn is_known(rights: &Access, token: &[u8]) -> bool {
    Role::ALL
        .into_iter()
        .any(|role| !rights.allows(role, None) && rights.allows(role, Some(token)))
}

/// The token, if there is one; an error if there is another kind of credentials.
fn token(headers: &HeaderMap) -> Result<Option<&[u8]>, ()> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let value = match (all.next(), all.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.as_bytes(),
        (Some(_), Some(_)) => return Err(()),
    };
    let (scheme, token) = value.split_at_checked(b"Bearer ".len()).ok_or(())?;
    if scheme.eq_ignore_ascii_case(b"Bearer ") {
        Ok(Some(token.trim_ascii()))
    } else {
        Err(())
    }
}
