//! The options that commands share.

use std::cmp::Ordering;
use std::env;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ringflake::lease::{Fingerprint, Namespace, NamespaceError};
use ringflake::{IdWidth, Layout};

use crate::count::count;
use crate::usage::Misuse;

#[derive(Debug, Args)]
pub(crate) struct LayoutArgs {
    /// How the 64 bits are divided: a name (randflake, region-type-machine,
    /// baidu-2026, baidu, baidu-31-23-9, twitter, sonyflake-sized, positive, positive-ms,
    /// js-safe) or time/node/sequence@epoch/tick, such as 28/22/13@2026-01-01T00:00:00Z/1s
    #[arg(long, value_name = "NAME|SPEC", default_value = "randflake")]
    pub(crate) layout: Layout,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KeyArgs {
    /// A file with the secret, 32 hexadecimal digits or 16 raw bytes
    /// [env: RINGFLAKE_SECRET_FILE] [default: the one in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// No encryption: IDs that sort by time and that anybody can read
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) plain: bool,
    /// How many bits IDs have, always the same under one secret: full for 64, positive for
    /// 63 (never negative), js-safe for 53 (exact in JavaScript)
    #[arg(long, value_name = "WIDTH", default_value = "full", hide_possible_values = true, value_parser = id_width())]
    pub(crate) id_width: IdWidth,
}

fn id_width() -> impl TypedValueParser<Value = IdWidth> {
    PossibleValuesParser::new(IdWidth::ALL.map(IdWidth::name))
        // One of those names.
        .map(|name| IdWidth::from_name(&name).unwrap_or_default())
}

/// A namespace of a store, with its layout and key.
#[derive(Args)]
pub(crate) struct TargetArgs {
    #[command(flatten, next_help_heading = "Store")]
    pub(crate) store: StoreArgs,
    #[command(flatten, next_help_heading = "Form of the IDs")]
    pub(crate) layout: LayoutArgs,
    #[command(flatten, next_help_heading = "Form of the IDs")]
    pub(crate) key: KeyArgs,
}

/// Where IDs come from.
#[derive(Args)]
pub(crate) struct SupplyArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten, next_help_heading = "Leases")]
    pub(crate) leases: LeaseArgs,
}

/// Which store, and which ID space in it. Not `Debug`: the URL may hold a password.
#[derive(Args)]
pub(crate) struct StoreArgs {
    /// The store that leases come from, such as postgres://user@host/database. Use the
    /// variable for a URL with a password: other users can see command lines
    /// [env: RINGFLAKE_STORE] [default: leases.db in the data directory]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The ID space in the store, by the name that it was initialised with; without a
    /// store, the one in the data directory, with its own secret
    #[arg(long, value_name = "NS", value_parser = namespace_name)]
    pub(crate) namespace: Option<String>,
    /// The binary logarithm of the nodes in a block, as the namespace was initialised
    /// [default: 5]
    #[arg(long, value_name = "B", value_parser = count::<u32>(0..=63))]
    pub(crate) block_bits: Option<u32>,
    /// Accept a store that can lose grants that it confirmed, such as a file in
    /// memory; after a loss, IDs can be issued twice [env: RINGFLAKE_BEST_EFFORT=1]
    #[arg(long)]
    best_effort: bool,
}

impl StoreArgs {
    /// The store's URL; `None` for the one in the data directory.
    pub(crate) fn url(&self) -> Option<String> {
        self.store.clone().or_else(|| variable(STORE_VARIABLE))
    }

    pub(crate) fn is_from_environment(&self) -> bool {
        self.store.is_none()
    }

    pub(crate) fn shows_password(&self) -> bool {
        self.store.as_deref().is_some_and(has_password)
    }

    /// The option that accepts such a store, as the command line has it.
    pub(crate) fn best_effort_word(&self) -> &'static str {
        match self.best_effort {
            true => " --best-effort",
            false => "",
        }
    }

    pub(crate) fn accepts_best_effort(&self) -> Result<bool> {
        if self.best_effort {
            return Ok(true);
        }
        match variable(BEST_EFFORT_VARIABLE).as_deref() {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(value) => Err(Misuse(format!(
                "{BEST_EFFORT_VARIABLE} must be 0 or 1, got {value:?}\n\
                 help: 1 accepts a store that can lose grants that it confirmed"
            ))
            .into()),
        }
    }
}

/// Whether the URL of a server holds a password, before its host or as a parameter.
fn has_password(url: &str) -> bool {
    // A tier's is that of its upstream store.
    let url = upstream(url).unwrap_or(url);
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let login = place.rsplit_once('@').map_or("", |(login, _)| login);
    let password = login.split_once(':').map_or("", |(_, word)| word);
    let is_password = |parameter: &str| {
        let value = parameter.strip_prefix("password=");
        value.is_some_and(|value| !value.is_empty())
    };
    !password.is_empty() || query.split('&').any(is_password)
}

/// The URL of the store behind a tier.
pub(crate) fn upstream(url: &str) -> Option<&str> {
    let tier = url.strip_prefix("tier:")?;
    Some(tier.split_once("?upstream=")?.1)
}

pub(crate) fn has_store_variable() -> bool {
    variable(STORE_VARIABLE).is_some()
}

const STORE_VARIABLE: &str = "RINGFLAKE_STORE";
const BEST_EFFORT_VARIABLE: &str = "RINGFLAKE_BEST_EFFORT";

/// Checks that every store accepts `name`, and returns it.
pub(crate) fn namespace_name(name: &str) -> Result<String, NamespaceError> {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    Ok(name.to_owned())
}

/// What a run wants of its leases.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// How many blocks of nodes to hold at the start; a run that gets ahead of the clock
    /// takes more [default: 1; in leases.db as many as the IDs need, up to 256]
    #[arg(long, value_name = "N", value_parser = count::<u32>(1..=256))]
    pub(crate) blocks: Option<u32>,
    /// How long leases last, and so how long the run goes on without its store
    /// [default: 2s for the first lease, then 60s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) lease_duration: Option<Duration>,
    /// How long to wait for nodes that other runs hold, for a data directory that another
    /// process has locked, or for a store that can't be reached
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s")]
    pub(crate) wait: Duration,
}

/// A time with its unit, such as `90s` or `1h 30m`.
pub(crate) fn time(text: &str) -> Result<Duration> {
    /// humantime panics at sums beyond its range; so many digits can't add up.
    const DIGITS: usize = 9;
    if text.bytes().filter(u8::is_ascii_digit).count() > DIGITS {
        bail!("give a time with its unit, of at most {DIGITS} digits in all, such as 90s or 10min");
    }
    Ok(humantime::parse_duration(text)?)
}

/// The path in an environment variable; an empty one counts as none.
pub(crate) fn path_variable(name: &str) -> Option<PathBuf> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The text in an environment variable; an empty one counts as none.
fn variable(name: &str) -> Option<String> {
    Some(path_variable(name)?.to_string_lossy().into_owned())
}

/// A half-open range that is not empty, written `A..B`.
pub(crate) fn node_range(text: &str) -> Result<Range<u64>> {
    let Some((start, end)) = text.split_once("..") else {
        bail!("give two numbers as in 0..32");
    };
    let (Ok(start), Ok(end)) = (start.parse::<u64>(), end.parse::<u64>()) else {
        bail!("give two whole numbers as in 0..32, the second of them not included");
    };
    match start.cmp(&end) {
        Ordering::Less => Ok(start..end),
        Ordering::Greater => bail!("the bounds are reversed: write {end}..{start}"),
        Ordering::Equal => match start.checked_add(1) {
            Some(next) => bail!(
                "the range is empty: its end is not included, \
                     so write {start}..{next} for node {start}"
            ),
            None => bail!("the range is empty: its end is not included"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_found() {
        for url in [
            "redis://:hunter2@host",
            "postgres://me:hunter2@host/app",
            "mysql://me:a@b@host/app?tls=required",
            "postgres://me@host/app?password=hunter2",
            "tier:///a/b.db?upstream=postgres://me:hunter2@host/app",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in [
            "sqlite:/a:b@c",
            "redis://host:6379",
            "postgres://me@host:5432/app?password_file=/run/a:b@c",
            "postgres://me:@host/app?password=",
            "etcd://a:1,b:2",
            "tier:///a:b@c?upstream=postgres://me@host/app",
        ] {
            assert!(!has_password(url), "{url}");
        }
    }
}
