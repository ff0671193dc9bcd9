//! A request for IDs, from its query and its body. Where both have a member, the body's counts.

use axum::body::Bytes;
use axum::http::HeaderMap;
use ringflake::Layout;
use ringflake::lease::{Fingerprint, Namespace};
use serde::Deserialize;

use super::body;
use super::format::Format;
use super::problem::Problem;

/// A request for IDs, complete and within its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakeRequest {
    pub(super) namespace: String,
    pub(super) count: usize,
    pub(super) format: Format,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default, deserialize_with = "body::given")]
    namespace: Option<String>,
    #[serde(default, deserialize_with = "body::whole")]
    count: Option<u64>,
    #[serde(default, deserialize_with = "body::given")]
    format: Option<Format>,
}

impl TakeRequest {
    pub(super) fn read(
        query: Option<&str>,
        headers: &HeaderMap,
        body: &Bytes,
        most: usize,
    ) -> Result<Self, Problem> {
        let query = Query::read(query, &["namespace", "count", "format"])?;
        let form = Form::read(headers, body)?;
        // The query is checked even if the body overrides it.
        let in_query = query.get("namespace").map(str::to_owned);
        for name in form.namespace.iter().chain(&in_query) {
            check_name(name)?;
        }
        let namespace = form.namespace.or(in_query).ok_or_else(|| {
            Problem::invalid(
                "the namespace is missing: give it in the query, as in ?namespace=orders, or in a \
                 JSON body, as in {\"namespace\":\"orders\"}",
            )
        })?;
        let checked = |count: u64| {
            let count = usize::try_from(count).ok();
            let count = count.filter(|count| (1..=most).contains(count));
            count.ok_or_else(|| Problem::invalid(format!("count must be 1 to {most}")))
        };
        // Anything but digits is out of range.
        let in_query = query.get("count").map(|text| match is_digits(text) {
            true => text.parse().unwrap_or(0),
            false => 0,
        });
        let in_query = in_query.map(checked).transpose()?;
        let in_body = form.count.map(checked).transpose()?;
        let count = in_body.or(in_query).unwrap_or(1);
        let in_query = query.get("format").map(Format::named).transpose()?;
        let format = form.format.or(in_query);
        Ok(Self {
            namespace,
            count,
            format: format.unwrap_or_default(),
        })
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    let checked = Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN);
    checked
        .map(drop)
        .map_err(|error| Problem::invalid(error.to_string()))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Form {
    fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        // A client that has nothing to say may call it what it likes, as curl does.
        if body.is_empty() {
            return Ok(Self::default());
        }
        let members = format!(
            "namespace (a text), count (a whole number) and format (one of {})",
            Format::ALL.map(Format::name).join(", ")
        );
        body::object(headers, body, &members, "{\"namespace\":\"orders\"}")
    }
}

#[derive(Debug)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Each of these names at most once, and no other.
    pub(super) fn read(query: Option<&str>, names: &[&'static str]) -> Result<Self, Problem> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(&known) = names.iter().find(|known| **known == name) else {
                let names = names.join(", ");
                return Err(Problem::invalid(format!(
                    "unknown parameter in the query: the allowed ones are {names}"
                )));
            };
            if found.iter().any(|(own, _)| *own == known) {
                return Err(Problem::invalid(format!(
                    "the query has {known} more than once: give it once"
                )));
            }
            found.push((known, value.into_owned()));
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_TYPE;
    use proptest::prelude::*;

    use super::super::problem::Kind;
    use super::*;

    const LIMIT: usize = 1000;

    fn take(query: &str, body: &str) -> Result<TakeRequest, Kind> {
        let json = HeaderValue::from_static("Application/JSON; charset=utf-8");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let body = Bytes::from(body.to_owned());
        TakeRequest::read(Some(query), &headers, &body, LIMIT).map_err(|problem| problem.kind)
    }

    #[test]
    fn a_query_or_a_body_will_do() {
        let of = |count, format| {
            let namespace = "orders".to_owned();
            Ok(TakeRequest {
                namespace,
                count,
                format,
            })
        };
        let whole = r#"{"namespace":"orders","count":7,"format":"text"}"#;
        for (query, body) in [
            ("namespace=orders&count=7&format=text", ""),
            ("", whole),
            ("namespace=others&count=8&format=fixed", whole),
            ("namespace=orders&count=7", r#"{"format":"text"}"#),
            ("namespace=orders", r#"{"count":7.0,"format":"text"}"#),
        ] {
            assert_eq!(take(query, body), of(7, Format::Text), "{query} {body}");
        }
        let most = format!("namespace=%6Frders&count={LIMIT}");
        assert_eq!(take(&most, ""), of(LIMIT, Format::Decimal));
        assert_eq!(take("namespace=orders", ""), of(1, Format::Decimal));
    }

    #[test]
    fn what_is_wrong_is_refused_for_what_it_is() {
        let table = r#"
            - |
            namespace= |
            namespace=Orders |
            namespace=a&namespace=a |
            namespace=a&number=1 |
            namespace=a&count= |
            namespace=a&count=0 |
            namespace=a&count=1001 |
            namespace=a&count=%2B1 |
            namespace=a&count=99999999999999999999 |
            namespace=a&format=hex |
            namespace=A | {"namespace":"a"}
            namespace=a&count=0 | {"count":1}
            namespace=a&format=hex | {"format":"text"}
            namespace=a | []
            namespace=a | null
            namespace=a | ["a", 1, "text"]
            namespace=a | {"number":1}
            namespace=a | {"count":0}
            namespace=a | {"count":1001}
            namespace=a | {"count":-1}
            namespace=a | {"count":"1"}
            namespace=a | {"count":1.5}
            namespace=a | {"count":-1.0}
            namespace=a | {"count":1e300}
            namespace=a | {"count":1,"count":1}
            namespace=a | {"namespace":7}
            namespace=a | {"count":null}"#;
        for row in table.trim().lines() {
            let (query, body) = row.trim().split_once(" |").unwrap();
            let query = query.trim_start_matches('-');
            assert_eq!(take(query, body.trim()), Err(Kind::INVALID), "{row}");
        }
        for body in ["{", "{}{}", "nothing"] {
            assert_eq!(take("namespace=a", body), Err(Kind::MALFORMED), "{body}");
        }
        let body = Bytes::from_static(b"{}");
        let untyped = TakeRequest::read(Some("namespace=a"), &HeaderMap::new(), &body, LIMIT);
        assert_eq!(untyped.unwrap_err().kind, Kind::UNSUPPORTED_MEDIA_TYPE);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_or_refused(query in ".*", body in ".*") {
            if let Ok(request) = take(&query, &body) {
                prop_assert!((1..=LIMIT).contains(&request.count));
                prop_assert!(check_name(&request.namespace).is_ok());
            }
        }
    }
}
