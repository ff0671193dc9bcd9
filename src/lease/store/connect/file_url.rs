//! The URLs of stores in a file: `sqlite:PATH` and `tier:PATH?upstream=URL`.

use std::path::Path;

use crate::lease::store::options::OpenError;

/// The path in `sqlite:PATH`.
pub(crate) fn parse_sqlite(url: &str) -> Result<&Path, OpenError> {
    const SCHEME: &str = "sqlite";

    let path = path_in(SCHEME, after(SCHEME, url)?, "leases.db", "")?;
    if path.contains('?') {
        return Err(invalid(
            SCHEME,
            "it has no parameters: leave out the question mark and what follows",
        ));
    }
    Ok(Path::new(path))
}

/// The path and the upstream store's URL in `tier:PATH?upstream=URL`.
pub(crate) fn parse_tier(url: &str) -> Result<(&Path, &str), OpenError> {
    const SCHEME: &str = "tier";

    let no_upstream = || {
        invalid(
            SCHEME,
            "it names no upstream store: write tier:PATH?upstream=URL, with the URL of the \
             cluster's store, as it stands, at the end",
        )
    };
    let rest = after(SCHEME, url)?;
    let (path, parameters) = rest.split_once('?').ok_or_else(no_upstream)?;
    let path = path_in(SCHEME, path, "tier.db", "?upstream=URL")?;
    let upstream = parameters
        .strip_prefix("upstream=")
        .filter(|upstream| !upstream.is_empty())
        .ok_or_else(no_upstream)?;
    if upstream.starts_with("tier:") {
        return Err(invalid(
            SCHEME,
            "its upstream store is a tier, too: name the store of the cluster",
        ));
    }
    Ok((Path::new(path), upstream))
}

/// The part of a URL after its scheme and the colon.
fn after<'a>(scheme: &'static str, url: &'a str) -> Result<&'a str, OpenError> {
    let rest = url.strip_prefix(scheme);
    let rest = rest.and_then(|rest| rest.strip_prefix(':'));
    rest.ok_or_else(|| invalid(scheme, format!("it begins with {scheme}:")))
}

/// The path of a file: as it stands, or absolute after `//`. The error shows both forms,
/// of a `file` and with the `tail` that such a URL has.
fn path_in<'a>(
    scheme: &'static str,
    path: &'a str,
    file: &str,
    tail: &str,
) -> Result<&'a str, OpenError> {
    match path.strip_prefix("//") {
        None => Ok(path),
        Some(path) if path.starts_with('/') => Ok(path),
        Some(_) => Err(invalid(
            scheme,
            format!(
                "two slashes announce a host, and a file has none: write \
                 {scheme}:{file}{tail} or {scheme}:///var/lib/app/{file}{tail}"
            ),
        )),
    }
}

fn invalid(scheme: &'static str, reason: impl Into<String>) -> OpenError {
    OpenError::Invalid {
        scheme,
        reason: reason.into(),
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
                "tier:///v/a b.db?upstream=postgres://u:p@h/d?tls=required&connect_timeout=1",
                "/v/a b.db",
                "postgres://u:p@h/d?tls=required&connect_timeout=1",
            ),
        ] {
            assert_eq!(parse_tier(url).unwrap(), (Path::new(path), upstream));
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
            let error = parse_tier(url).unwrap_err().to_string();
            assert!(
                error.contains(names) && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_path_is_relative_or_absolute_and_never_a_hosts() {
        for (rest, path) in [
            ("a.db", "a.db"),
            ("/v/a.db", "/v/a.db"),
            ("///v/a.db", "/v/a.db"),
        ] {
            assert_eq!(
                parse_sqlite(&format!("sqlite:{rest}")).unwrap(),
                Path::new(path)
            );
            let tier = format!("tier:{rest}?upstream=etcd://h");
            assert_eq!(parse_tier(&tier).unwrap().0, Path::new(path));
        }
        for (url, shown) in [
            (
                "sqlite://host/a.db",
                "sqlite:leases.db or sqlite:///var/lib/app/leases.db",
            ),
            (
                "tier://host/a.db?upstream=etcd://h",
                "tier:tier.db?upstream=URL or tier:///var/lib/app/tier.db?upstream=URL",
            ),
            ("sqlite:a.db?mode=ro", "no parameters"),
            ("a.db", "begins with sqlite:"),
        ] {
            let error = match url.starts_with("tier:") {
                true => parse_tier(url).unwrap_err(),
                false => parse_sqlite(url).unwrap_err(),
            };
            assert!(error.to_string().contains(shown), "{url}: {error}");
        }
    }
}
