//! A request for IDs, from its query.

use super::format::Format;
use super::problem::Problem;
use crate::config::check_name;

/// A request for IDs, complete and within its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakeRequest {
    pub(super) namespace: String,
    pub(super) count: usize,
    pub(super) format: Format,
}

impl TakeRequest {
    pub(super) fn read(query: Option<&str>, most: usize) -> Result<Self, Problem> {
        let query = Query::read(query, &["namespace", "count", "format"])?;
        let namespace = query.namespace()?;
        let is_digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let count = query
            .get("count")
            .map_or(Some(1), |text| Some(text).filter(is_digits)?.parse().ok());
        let count = count.filter(|count| (1..=most).contains(count));
        let count = count.ok_or_else(|| Problem::invalid(format!("count must be 1 to {most}")))?;
        let format = query.get("format").map(Format::named).transpose()?;
        Ok(Self {
            namespace: namespace.to_owned(),
            count,
            format: format.unwrap_or_default(),
        })
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

    /// The name of a namespace, which has to be there.
    pub(super) fn namespace(&self) -> Result<&str, Problem> {
        let name = self.get("namespace").ok_or_else(|| {
            Problem::invalid(
                "the namespace is missing: give it in the query, as in ?namespace=orders",
            )
        })?;
        check_name(name).map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::problem::Kind;
    use super::*;

    const LIMIT: usize = 1000;

    fn take(query: &str) -> Result<TakeRequest, Kind> {
        TakeRequest::read(Some(query), LIMIT).map_err(|problem| problem.kind)
    }

    #[test]
    fn a_query_says_what_is_wanted() {
        for (query, count, format) in [
            ("namespace=orders&count=7&format=text", 7, Format::Text),
            ("namespace=%6Frders&count=1000", LIMIT, Format::Decimal),
            ("namespace=orders", 1, Format::Decimal),
        ] {
            let namespace = "orders".to_owned();
            let expected = TakeRequest {
                namespace,
                count,
                format,
            };
            assert_eq!(take(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_invalid() {
        for query in [
            "",
            "namespace=",
            "namespace=Orders",
            "namespace=a&namespace=a",
            "namespace=a&number=1",
            "namespace=a&count=",
            "namespace=a&count=0",
            "namespace=a&count=1001",
            "namespace=a&count=%2B1",
            "namespace=a&count=99999999999999999999",
            "namespace=a&format=hex",
        ] {
            assert_eq!(take(query), Err(Kind::INVALID), "{query}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_or_refused(query in ".*") {
            if let Ok(request) = take(&query) {
                prop_assert!((1..=LIMIT).contains(&request.count));
                prop_assert!(check_name(&request.namespace).is_ok());
            }
        }
    }
}
