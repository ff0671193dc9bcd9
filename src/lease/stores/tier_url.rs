//! The URL of a tier.

use std::path::Path;

use crate::lease::options::OpenError;

/// The path and the upstream store's URL in `tier:PATH?upstream=URL`.
pub(crate) fn parse(url: &str) -> Result<(&Path, &str), OpenError> {
    let rest = url
        .strip_prefix("tier:")
        .ok_or_else(|| invalid("it begins with tier:"))?;
    let (path, parameters) = rest.split_once('?').ok_or_else(no_upstream)?;
    let path = match path.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => {
            return Err(invalid(
                "two slashes announce a host, and a file has none: write \
                 tier:tier.db?upstream=URL or tier:///var/lib/app/tier.db?upstream=URL",
            ));
        }
        None => path,
    };
    let upstream = parameters
        .strip_prefix("upstream=")
        .filter(|upstream| !upstream.is_empty())
        .ok_or_else(no_upstream)?;
    if upstream.starts_with("tier:") {
        return Err(invalid(
            "its upstream store is a tier, too: name the store of the cluster",
        ));
    }
    Ok((Path::new(path), upstream))
}

fn no_upstream() -> OpenError {
    invalid(
        "it names no upstream store: write tier:PATH?upstream=URL, with the URL of the \
         cluster's store, as it stands, at the end",
    )
}

fn invalid(reason: &str) -> OpenError {
    OpenError::Invalid {
        scheme: "tier",
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_url_is_all_that_follows() {
        for (url, path, upstream) in [
            ("tier:a.db?upstream=redis://h/1", "a.db", "redis://h/1"),
            (
                "tier:///v/a b.db?upstream=postgres://u:p@h/d?sslmode=require&connect_timeout=1",
                "/v/a b.db",
                "postgres://u:p@h/d?sslmode=require&connect_timeout=1",
            ),
        ] {
            assert_eq!(parse(url).unwrap(), (Path::new(path), upstream));
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_without_the_url() {
        for (url, names) in [
            ("tier:a.db", "upstream=URL"),
            ("tier:a.db?upstream=", "upstream=URL"),
            ("tier:a.db?spare=1&upstream=hunter2:", "upstream=URL"),
            ("tier://host/a.db?upstream=hunter2:", "two slashes"),
            ("tier:a.db?upstream=tier:b.db", "a tier, too"),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(
                error.contains(names) && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
