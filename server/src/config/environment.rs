//! Settings from variables.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::ConfigError;
use super::log::{LogFormat, LogLevel};
use super::settings::Settings;
use super::text::{parse_addresses, parse_hosts, parse_mode, parse_switch, parse_time};

impl Settings {
    /// The settings of the environment, whose variables `get` returns. An empty one counts
    /// as none.
    ///
    /// | variable | key of a file |
    /// |---|---|
    /// | `RINGFLAKE_DATA_DIR` | `data-dir` |
    /// | `RINGFLAKE_BEST_EFFORT` | `best-effort` |
    /// | `RINGFLAKE_SERVE_ON_DEMAND` | `on-demand` |
    /// | `RINGFLAKE_SERVE_DRAIN` | `drain` |
    /// | `RINGFLAKE_SERVE_RESP`, `RINGFLAKE_SERVE_HTTP` | `resp.listen`, `http.listen`; several with commas, or `off` |
    /// | `RINGFLAKE_SERVE_RESP_UNIX`, `RINGFLAKE_SERVE_HTTP_UNIX` | `resp.unix`, `http.unix` |
    /// | `RINGFLAKE_SERVE_RESP_UNIX_MODE`, `RINGFLAKE_SERVE_HTTP_UNIX_MODE` | `resp.unix-mode`, `http.unix-mode` |
    /// | `RINGFLAKE_SERVE_HTTP_HOSTS` | `http.hosts`, with commas |
    /// | `RINGFLAKE_SERVE_TLS_CERTIFICATE`, `RINGFLAKE_SERVE_TLS_KEY`, `RINGFLAKE_SERVE_TLS_CLIENT_CA` | `tls.certificate`, `tls.key`, `tls.client-ca` |
    /// | `RINGFLAKE_SERVE_TAKE_TOKENS`, `RINGFLAKE_SERVE_INSPECT_TOKENS`, `RINGFLAKE_SERVE_ADMIN_TOKENS` | `tokens.take`, `tokens.inspect`, `tokens.admin`: the path of a file |
    /// | `RINGFLAKE_SERVE_LOG_FORMAT`, `RINGFLAKE_SERVE_LOG_LEVEL` | `log.format`, `log.level` |
    ///
    /// # Errors
    /// [`ConfigError::Value`] with the variable's name.
    pub fn from_environment(get: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let path = |name: &str| get(name).map(PathBuf::from);
        macro_rules! read {
            ($name:literal, $parse:expr) => {{
                let parsed = get($name).map(|value| $parse(&value.to_string_lossy()));
                let refused = |reason| ConfigError::value($name, reason);
                parsed.transpose().map_err(refused)?
            }};
        }
        let mut settings = Self {
            data_dir: path("RINGFLAKE_DATA_DIR"),
            best_effort: read!("RINGFLAKE_BEST_EFFORT", parse_switch),
            on_demand: read!("RINGFLAKE_SERVE_ON_DEMAND", parse_switch),
            drain: read!("RINGFLAKE_SERVE_DRAIN", parse_time),
            ..Self::default()
        };
        settings.resp.listen = read!("RINGFLAKE_SERVE_RESP", parse_addresses);
        settings.resp.unix = path("RINGFLAKE_SERVE_RESP_UNIX");
        settings.resp.unix_mode = read!("RINGFLAKE_SERVE_RESP_UNIX_MODE", parse_mode);
        settings.http.listen = read!("RINGFLAKE_SERVE_HTTP", parse_addresses);
        settings.http.unix = path("RINGFLAKE_SERVE_HTTP_UNIX");
        settings.http.unix_mode = read!("RINGFLAKE_SERVE_HTTP_UNIX_MODE", parse_mode);
        settings.http.hosts = read!("RINGFLAKE_SERVE_HTTP_HOSTS", parse_hosts);
        settings.tls.certificate = path("RINGFLAKE_SERVE_TLS_CERTIFICATE");
        settings.tls.key = path("RINGFLAKE_SERVE_TLS_KEY");
        settings.tls.client_ca = path("RINGFLAKE_SERVE_TLS_CLIENT_CA");
        settings.tokens.take = path("RINGFLAKE_SERVE_TAKE_TOKENS");
        settings.tokens.inspect = path("RINGFLAKE_SERVE_INSPECT_TOKENS");
        settings.tokens.admin = path("RINGFLAKE_SERVE_ADMIN_TOKENS");
        settings.log.format = read!("RINGFLAKE_SERVE_LOG_FORMAT", LogFormat::from_name);
        settings.log.level = read!("RINGFLAKE_SERVE_LOG_LEVEL", LogLevel::from_name);
        Ok(settings)
    }
}
