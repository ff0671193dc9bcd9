//! Values of a file that it writes as text.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ringflake::lease::History;
use ringflake::{IdWidth, Layout};
use serde::de::{Deserialize, Deserializer, Error};

use super::log::{LogFormat, LogLevel};
use super::store_url::StoreUrl;
use super::text;

/// A function that reads a text with `parse`.
macro_rules! readers {
    ($($name:ident: $type:ty = $parse:expr;)*) => { $(
        pub(super) fn $name<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<$type>, D::Error> {
            let text = String::deserialize(from)?;
            let parse: fn(&str) -> Result<$type, String> = $parse;
            parse(&text).map(Some).map_err(Error::custom)
        }
    )* };
}

readers! {
    time: Duration = text::parse_time;
    mode: u32 = text::parse_mode;
    log_format: LogFormat = LogFormat::from_name;
    log_level: LogLevel = LogLevel::from_name;
    path: PathBuf = |text| match text {
        "" => Err("the path is empty: give one, or leave this out".to_owned()),
        _ => Ok(text.into()),
    };
    url: StoreUrl = |url| Ok(StoreUrl::new(url));
    layout: Layout = |text| text.parse().map_err(|error| format!("{error}"));
    id_width: IdWidth = |text| {
        IdWidth::from_name(text).ok_or_else(|| {
            let names = IdWidth::ALL.map(IdWidth::name).join(", ");
            format!("{text:?} is no width of IDs: give one of {names}")
        })
    };
    history: History = |text| match text {
        "new" => Ok(History::New),
        "unused" => Ok(History::Unused),
        "unknown" => Ok(History::Unknown),
        _ => Err(format!(
            "{text:?} is no history: give new if no ID with a present or future time was issued \
             with this layout and secret, and unknown if in doubt"
        )),
    };
}

/// A list of addresses, or text as on a command line.
pub(super) fn addresses<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<SocketAddr>>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(
        untagged,
        expecting = "addresses such as [\"127.0.0.1:6379\"], or \"off\""
    )]
    enum Addresses {
        List(Vec<String>),
        Text(String),
    }
    let read = match Addresses::deserialize(from)? {
        Addresses::List(list) => list.iter().map(|text| text::parse_address(text)).collect(),
        Addresses::Text(text) => text::parse_addresses(&text),
    };
    read.map(Some).map_err(Error::custom)
}
