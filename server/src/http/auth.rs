//! The rights of a request, by its token, or where it needs none by where it comes from.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::cross_origin;
use super::problem::{Kind, Problem};
use crate::access::{Rights, Role};

/// That the request has this right: 401 if its token is none or unknown, 403 if it is one
/// with other rights, or nobody has this one. Where it needs no token, that no page of another
/// site has sent it.
pub(super) fn require(rights: &dyn Rights, head: &Parts, role: Role) -> Result<(), Problem> {
    if rights.allows(role, None) {
        cross_origin::check(head)?;
    }
    let token = token(&head.headers);
    if rights.allows(role, token.ok().flatten()) {
        return Ok(());
    }
    if !rights.is_anybodys(role) {
        let detail = format!(
            "nobody has the right {role} here: name a file of tokens as tokens.{role} in the \
             server's configuration, and send one of them"
        );
        return Err(Problem::new(Kind::FORBIDDEN, detail)
            .challenge("Bearer realm=\"ringflake\", error=\"insufficient_scope\""));
    }
    match token {
        Ok(Some(token)) if is_known(rights, token) => Err(Problem::new(
            Kind::FORBIDDEN,
            format!("the token has not the right {role}: use one that has it"),
        )
        .challenge("Bearer realm=\"ringflake\", error=\"insufficient_scope\"")),
        Ok(Some(_)) | Err(()) => Err(Problem::new(
            Kind::UNAUTHENTICATED,
            format!(
                "the token is not known here: send one that has the right {role}, as in \
                 Authorization: Bearer TOKEN"
            ),
        )
        .challenge("Bearer realm=\"ringflake\", error=\"invalid_token\"")),
        Ok(None) => Err(Problem::new(
            Kind::UNAUTHENTICATED,
            format!(
                "this needs a token with the right {role}: send it as in Authorization: Bearer \
                 TOKEN"
            ),
        )
        .challenge("Bearer realm=\"ringflake\"")),
    }
}

/// Whether any right that not everybody has comes with it.
fn is_known(rights: &dyn Rights, token: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, Request};

    use super::*;

    /// Takes with `t`, inspects with `i`; nobody is given leases, and the rest is everybody's.
    struct Two;

    impl Rights for Two {
        fn allows(&self, role: Role, token: Option<&[u8]>) -> bool {
            match role {
                Role::Take => token == Some(b"t"),
                Role::Inspect => token == Some(b"i"),
                Role::Lease => false,
                _ => true,
            }
        }

        fn is_anybodys(&self, role: Role) -> bool {
            role != Role::Lease
        }
    }

    fn required(role: Role, values: &[&'static str]) -> Result<(), Kind> {
        let values = values.iter().map(|value| HeaderValue::from_static(value));
        let (mut head, ()) = Request::new(()).into_parts();
        for value in values {
            head.headers.append(AUTHORIZATION, value);
        }
        require(&Two, &head, role).map_err(|problem| problem.kind)
    }

    #[test]
    fn a_token_gives_its_own_right_only() {
        assert_eq!(required(Role::Take, &["Bearer t"]), Ok(()));
        assert_eq!(required(Role::Take, &["bearer  t "]), Ok(()));
        assert_eq!(required(Role::Inspect, &["Bearer t"]), Err(Kind::FORBIDDEN));
        assert_eq!(required(Role::Admin, &[]), Ok(()));
        assert_eq!(required(Role::Admin, &["Basic x"]), Ok(()));
    }

    #[test]
    fn what_is_nobodys_is_forbidden_to_all() {
        for values in [&[][..], &["Bearer t"], &["Bearer x"]] {
            let refused = required(Role::Lease, values);
            assert_eq!(refused, Err(Kind::FORBIDDEN), "{values:?}");
        }
    }

    #[test]
    fn who_is_unknown_is_asked_who_it_is() {
        let unknown = Err(Kind::UNAUTHENTICATED);
        for values in [
            &[][..],
            &["Bearer x"],
            &["Bearer "],
            &["Bearer"],
            &["Basic t"],
            &["Bearer t", "Bearer t"],
            &["t"],
        ] {
            assert_eq!(required(Role::Take, values), unknown, "{values:?}");
        }
    }
}
