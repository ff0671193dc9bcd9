//! `GET /`: the status page for people; and `GET /v1/status`, which the page polls.
//!
//! The page is one file that sends requests to its own server only: the policy in its response
//! allows the one script and the one style that are in it, by their digests. The page holds no
//! figures, so it needs no token; `/v1/status` needs the role `admin`.

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac_sha256::Hash;

use super::app::App;
use super::auth;
use super::problem::Problem;
use crate::access::Role;
use crate::status::{OfProtocol, Status};

const PAGE: &str = include_str!("page.html");

pub(super) async fn page() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy()),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, PAGE).into_response()
}

/// What the page may do: run its own script, and ask its own server.
fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let digest = |element| STANDARD.encode(Hash::hash(inside(element).as_bytes()));
        format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            digest("script"),
            digest("style")
        )
    })
}

/// The content of the page's only element of this name.
fn inside(element: &str) -> &'static str {
    let [opens, closes] = [format!("<{element}>"), format!("</{element}>")];
    let inside = PAGE.split_once(&opens).map(|(_, rest)| rest);
    let inside = inside.and_then(|rest| rest.split_once(&closes));
    inside.map_or("", |(inside, _)| inside)
}

/// Answers with all that the page shows.
pub(super) async fn status(State(app): State<Arc<App>>, head: Parts) -> Result<Response, Problem> {
    auth::require(&app.setup.rights, &head, Role::Admin)?;
    let protocols = app.protocols.iter();
    let protocols = protocols.map(|(name, threads)| OfProtocol::of(name, threads));
    let status = Status::now(
        &app.setup.namespaces.all(),
        protocols.collect(),
        app.started.elapsed(),
        app.setup.drain.has_begun(),
        app.data_dir_obstacle().await,
    );
    Ok(Json(status).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style_of_the_page() {
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert_eq!(PAGE.matches("<style").count(), 1);
        assert!(inside("script").contains("fetch(\"v1/status\""));
        assert!(inside("style").contains("prefers-color-scheme"));
        assert!(
            !PAGE.contains("style=") && !PAGE.contains("onclick="),
            "the policy forbids it"
        );
        let digest = STANDARD.encode(Hash::hash(inside("script").as_bytes()));
        assert!(policy().contains(&format!("script-src 'sha256-{digest}'")));
    }
}
