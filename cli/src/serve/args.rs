//! The options of `serve`, as the layer of settings above all others.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ringflake_server::{LogFormat, LogLevel, Settings, parse_addresses, parse_hosts};

use crate::args::time;
use crate::data_dir::DataDir;
use crate::format::FormatArgs;

const EXAMPLES: &str = "Examples:
  ringflake serve                            # for clients of this machine
  ringflake serve --check --config serve.toml
  redis-cli INCR orders                      # takes an ID
  curl -X POST localhost:7464/v1/ids?namespace=orders

Options override variables, and variables override the file. SIGHUP reads tokens,
certificates and the level of the log again; SIGTERM stops.";

/// Serve unique IDs to every language: the Redis protocol and HTTP
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// A file with settings, in TOML [env: RINGFLAKE_SERVE_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Where to serve the Redis protocol, or off
    /// [env: RINGFLAKE_SERVE_RESP] [default: port 6379 of localhost]
    #[arg(long, value_name = "ADDR", value_parser = addresses, help_heading = "Sockets")]
    resp: Vec<List<SocketAddr>>,
    /// The same on a Unix socket [env: RINGFLAKE_SERVE_RESP_UNIX]
    #[arg(long, value_name = "PATH", help_heading = "Sockets")]
    resp_unix: Option<PathBuf>,
    /// Where to serve HTTP, or off
    /// [env: RINGFLAKE_SERVE_HTTP] [default: port 7464 of localhost]
    #[arg(long, value_name = "ADDR", value_parser = addresses, help_heading = "Sockets")]
    http: Vec<List<SocketAddr>>,
    /// The same on a Unix socket [env: RINGFLAKE_SERVE_HTTP_UNIX]
    #[arg(long, value_name = "PATH", help_heading = "Sockets")]
    http_unix: Option<PathBuf>,
    /// A name of the server, such as ids.example.com, that requests of HTTP without a token
    /// may use [env: RINGFLAKE_SERVE_HTTP_HOSTS]
    #[arg(long, value_name = "NAME", value_parser = hosts, help_heading = "Sockets")]
    http_hosts: Vec<List<String>>,
    /// Serve other machines without tokens or TLS: everybody there can take IDs or read
    /// the traffic
    #[arg(long, help_heading = "Sockets")]
    open_to_the_network_without_tokens_or_tls: bool,
    /// Accept a data directory or a store that can lose grants that it confirmed; after a
    /// loss, IDs can be issued twice [env: RINGFLAKE_BEST_EFFORT=1]
    #[arg(long)]
    best_effort: bool,
    /// How long requests may take after SIGTERM, and then the release of leases
    /// [env: RINGFLAKE_SERVE_DRAIN] [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    drain: Option<Duration>,
    /// The format of the log on stderr: text or json
    /// [env: RINGFLAKE_SERVE_LOG_FORMAT] [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = "Log", hide_possible_values = true, value_parser = log_format())]
    log_format: Option<LogFormat>,
    /// The level of the log: off, error, warn, info, debug or trace
    /// [env: RINGFLAKE_SERVE_LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Log", hide_possible_values = true, value_parser = log_level())]
    log_level: Option<LogLevel>,
    /// Print the configuration, and do nothing else
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) format: FormatArgs,
}

/// Items of a list with commas between.
type List<T> = Box<[T]>;

fn hosts(text: &str) -> Result<List<String>, String> {
    parse_hosts(text).map(Vec::into_boxed_slice)
}

fn addresses(text: &str) -> Result<List<SocketAddr>, String> {
    parse_addresses(text).map(Vec::into_boxed_slice)
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::ALL.map(LogFormat::name))
        .try_map(|name| LogFormat::from_name(&name))
}

fn log_level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::name))
        .try_map(|name| LogLevel::from_name(&name))
}

impl ServeArgs {
    /// What the command line says.
    pub(super) fn settings(&self, data_dir: &DataDir) -> Settings {
        let switch = |given: bool| given.then_some(true);
        let listen = |given: &[List<SocketAddr>]| (!given.is_empty()).then(|| given.concat());
        let mut settings = Settings::default();
        settings.data_dir = data_dir.given().cloned();
        settings.best_effort = switch(self.best_effort);
        settings.drain = self.drain;
        settings.open_to_the_network_without_tokens_or_tls =
            switch(self.open_to_the_network_without_tokens_or_tls);
        settings.resp.listen = listen(&self.resp);
        settings.resp.unix.clone_from(&self.resp_unix);
        settings.http.listen = listen(&self.http);
        settings.http.unix.clone_from(&self.http_unix);
        settings.http.hosts = (!self.http_hosts.is_empty()).then(|| self.http_hosts.concat());
        settings.log.format = self.log_format;
        settings.log.level = self.log_level;
        settings
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn settings(line: &str) -> Settings {
        let line = format!("x {line}");
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        line.args.settings(&DataDir::new(None))
    }

    #[test]
    fn a_line_without_options_says_nothing() {
        assert_eq!(settings(""), Settings::default());
    }

    #[test]
    fn each_option_has_its_place() {
        let settings = settings(
            "--resp localhost:1 --resp [::1]:2 --http off --resp-unix a --http-unix b --drain 3s \
             --http-hosts a.example,b.example --http-hosts c.example \
             --open-to-the-network-without-tokens-or-tls --best-effort --log-format json \
             --log-level warn",
        );
        assert_eq!(settings.resp.listen.unwrap().len(), 2);
        assert_eq!(settings.http.listen, Some(vec![]));
        assert_eq!(settings.resp.unix, Some("a".into()));
        assert_eq!(settings.http.unix, Some("b".into()));
        let hosts = ["a.example", "b.example", "c.example"].map(str::to_owned);
        assert_eq!(settings.http.hosts, Some(hosts.to_vec()));
        assert_eq!(settings.drain, Some(Duration::from_secs(3)));
        assert_eq!(settings.best_effort, Some(true));
        assert_eq!(
            settings.open_to_the_network_without_tokens_or_tls,
            Some(true)
        );
        assert_eq!(settings.log.format, Some(LogFormat::Json));
        assert_eq!(settings.log.level, Some(LogLevel::Warn));
    }
}
