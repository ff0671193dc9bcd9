use std::path::Path;

use proptest::prelude::*;
use ringflake_kit::assert_says;

use super::*;

/// A file that says everything.
const WHOLE: &str = r#"
data-dir = "data"
on-demand = true
best-effort = true
drain = "3s"
open-to-the-network-without-tokens-or-tls = false

[resp]
listen = ["127.0.0.1:6380", "[::1]:6380"]
unix = "/run/resp.sock"
unix-mode = "0600"
workers = 2

[http]
listen = "off"
unix = "http.sock"
hosts = ["Ids.example.com"]

[tls]
certificate = "server.pem"
key = "server.key"
client-ca = "/etc/clients.pem"

[tokens]
take = "take.tokens"
inspect = "inspect.tokens"
admin = "admin.tokens"

[limits]
connections = 10
connections-per-client = 2
count = 1000
request-bytes = 2048
request-time = "1s"
idle-time = "2min"
namespaces = 5

[log]
format = "json"
level = "debug"

[namespaces.orders]

[namespaces.invoices]
layout = "positive"
id-width = "positive"
store = "postgres://ids:hunter2@db/ids"
secret-file = "invoices.secret"
tier = true
block-bits = 3
init-if-new = "unknown"
blocks = 2
widen-to = 4
lease-duration = "300s"
wait = "1s"
capacity = 4096
stripes = 2
producers = 1
borrow-limit = "30s"
"#;

fn from(text: &str) -> Result<Settings, ConfigError> {
    Settings::from_toml(text, Path::new("/etc/ringflake/serve.toml"))
}

/// Why a file is refused, by its text or by what it adds up to.
#[track_caller]
fn refusal(text: &str) -> String {
    let error = from(text).and_then(Config::new).unwrap_err();
    let help = error.help().map(|help| format!("\n{help}"));
    format!("{error}{}", help.unwrap_or_default())
}

#[test]
fn the_settings_of_the_guide_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guide =
        ["beside.md", "network.md", "proxy.md"].map(|page| format!("src/guide/serve/{page}"));
    for page in guide.iter().map(String::as_str).chain(["server/README.md"]) {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let blocks: Vec<_> = text.split("```toml\n").skip(1).collect();
        assert!(!blocks.is_empty(), "{page}");
        for block in blocks {
            let (settings, _) = block.split_once("```").unwrap();
            let config = from(settings).and_then(Config::new);
            config.unwrap_or_else(|error| panic!("{page}: {error}"));
        }
    }
}

#[test]
fn a_file_may_say_everything() {
    let config = Config::new(from(WHOLE).unwrap()).unwrap();
    let in_etc = |name: &str| Path::new("/etc/ringflake").join(name);
    assert_eq!(config.data_dir, Some(in_etc("data")));
    assert_eq!(config.resp.unix, Some("/run/resp.sock".into()));
    assert_eq!(config.resp.listen.len(), 2);
    assert_eq!(config.resp.unix_mode, 0o600);
    assert_eq!(config.http.unix, Some(in_etc("http.sock")));
    assert!(config.http.listen.is_empty());
    assert_eq!(config.drain, Duration::from_secs(3));
    let tls = config.tls.unwrap();
    assert_eq!(tls.key, in_etc("server.key"));
    assert_eq!(tls.client_ca, Some("/etc/clients.pem".into()));
    assert_eq!(config.tokens.admin, Some(in_etc("admin.tokens")));
    assert_eq!(config.limits.idle_time, Duration::from_secs(120));
    assert_eq!(config.log_format, LogFormat::Json);
    let invoices = &config.namespaces["invoices"];
    assert_eq!(invoices.secret_file, Some(in_etc("invoices.secret")));
    assert_eq!(invoices.borrow_limit, Some(Duration::from_secs(30)));
    assert_eq!(config.namespaces["orders"], NamespaceSettings::default());
}

#[test]
fn all_but_the_log_level_needs_a_restart() {
    let config = |text: &str| Config::new(from(text).unwrap()).unwrap();
    let running = config(WHOLE);
    assert_eq!(running.needs_restart(&running), [""; 0]);
    let level = config(&WHOLE.replace("\"debug\"", "\"error\""));
    assert_ne!(running, level);
    assert_eq!(running.needs_restart(&level), [""; 0]);
    let on_demand = "on-demand = true\n";
    let names = &*format!("{on_demand}on-demand-names = ['app-*']\n");
    for (key, before, after) in [
        ("data-dir", "\"data\"", "\"other\""),
        ("on-demand", on_demand, "on-demand = false\n"),
        ("on-demand-names", on_demand, names),
        ("best-effort", "best-effort = true", "best-effort = false"),
        ("drain", "\"3s\"", "\"4s\""),
        (
            "open-to-the-network-without-tokens-or-tls",
            "or-tls = false",
            "or-tls = true",
        ),
        ("resp", "workers = 2", "workers = 3"),
        ("http", "Ids.example.com", "other.example.com"),
        ("tls", "server.key", "other.key"),
        ("tokens", "take.tokens", "other.tokens"),
        ("limits", "count = 1000", "count = 5"),
        ("log.format", "\"json\"", "\"text\""),
        ("namespaces", "widen-to = 4", "widen-to = 8"),
    ] {
        let changed = config(&WHOLE.replace(before, after));
        assert_eq!(running.needs_restart(&changed), [key]);
    }
}

#[test]
fn nothing_is_needed() {
    let config = Config::new(Settings::default()).unwrap();
    assert_eq!(config.resp.listen, Protocol::Resp.default_addresses());
    assert_eq!(config.http.listen, Protocol::Http.default_addresses());
    assert!(config.on_demand && !config.best_effort && !config.open);
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn a_socket_that_is_given_replaces_the_default() {
    let config = Config::new(from("[resp]\nunix = \"a\"").unwrap()).unwrap();
    assert!(config.resp.listen.is_empty());
    assert_eq!(config.http.listen, Protocol::Http.default_addresses());
    let config = Config::new(from("[http]\nlisten = \"127.0.0.1:1\"").unwrap()).unwrap();
    assert_eq!(config.http.listen, ["127.0.0.1:1".parse().unwrap()]);
}

#[test]
fn an_error_names_the_line_and_what_is_allowed() {
    for (text, line, parts) in [
        ("\nport = 5", 2, ["`port`", "`data-dir`"]),
        ("[tokens]\nlease = \"f\"", 2, ["`lease`", "`inspect`"]),
        ("[resp]\nlisten = [\"a\"]", 2, ["\"a\"", "127.0.0.1:6379"]),
        ("[resp]\nlisten = 5", 2, ["addresses", "off"]),
        ("[log]\n\nlevel = \"loud\"", 3, ["\"loud\"", "warn, info"]),
        ("drain = \"5\"", 1, ["unit", "90s"]),
        (
            "drain = \"184467440 737095516 15s 1000ms\"",
            1,
            ["unit", "90s"],
        ),
        ("[namespaces.a]\nlayout = \"x\"", 2, ["\"x\"", "randflake"]),
        ("[namespaces.a]\nid-width = \"x\"", 2, ["\"x\"", "js-safe"]),
        ("namespaces.a.init-if-new = \"x\"", 1, ["\"x\"", "unknown"]),
        ("[http]\nunix-mode = \"0777\"", 2, ["0777", "0660"]),
        ("resp.unix = \"\"", 1, ["the path is empty", "leave"]),
        ("limits.count = \"x\"", 1, ["\"x\"", "a whole number"]),
        ("log = 5", 1, ["5", "a table of settings"]),
        ("[namespaces]\na = 5", 2, ["5", "a table of settings"]),
        ("a = ", 1, ["/etc/ringflake/serve.toml", "line 1"]),
    ] {
        let error = from(text).unwrap_err();
        let said = error.to_string();
        let ConfigError::Syntax { line: found, .. } = error else {
            panic!("{said}")
        };
        assert_eq!(found, line, "{said}");
        assert_says(&said, &parts);
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_its_key() {
    let table = "
        on-demand = false            | on-demand
        drain = '2h'                 | drain
        on-demand-names = ['a']; [namespaces.a] | on-demand-names
        on-demand-names = ['a*b']    | on-demand-names
        on-demand-names = []         | on-demand-names
        on-demand-names = ['Orders'] | on-demand-names
        http.proxy-protocol = true   | http.proxy-protocol
        resp.workers = 0             | resp.workers
        resp.hosts = ['a']           | resp.hosts
        http.announce = 'a:1'        | http.announce
        http.key-prefix = 'a'        | http.key-prefix
        resp.announce = 'a'          | resp.announce
        resp.announce = ':6379'      | resp.announce
        resp.listen = 'off'; resp.announce = 'a:1' | resp.announce
        resp.replace-colons = ':'    | resp.replace-colons
        resp.listen = ['[::1]:1', '[::1]:1']               | resp.listen
        resp.listen = '[::1]:1'; http.listen = '[::1]:1'   | http.listen
        resp.unix = 'a'; http.unix = 'a'                   | http.unix
        resp.unix = 'LONG'           | resp.unix
        http.unix-mode = '0660'      | http.unix-mode
        tls.key = 'a'                | tls.certificate
        tls.certificate = 'a'        | tls.key
        tls.client-ca = 'a'          | tls.certificate
        limits.count = 0             | limits.count
        limits.count = 65537         | limits.count
        limits.request-bytes = 10    | limits.request-bytes
        limits.idle-time = '1ms'     | limits.idle-time
        limits.connections = 0       | limits.connections
        limits.connections = 5; limits.connections-per-client = 6 | limits.connections-per-client
        namespaces.a.store = 'sqlite:a'; namespaces.a.store-url-file = 'b' | namespaces.a.store
        namespaces.a.store = 'sqlite:a'   | namespaces.a.secret-file
        namespaces.a.plain = true; namespaces.a.secret-file = 'b' | namespaces.a.secret-file
        namespaces.a.secret-file = 'b'    | namespaces.a.secret-file
        namespaces.a.tier = true          | namespaces.a.tier
        namespaces.a.wait = '1s'          | namespaces.a.wait
        namespaces.a.store = 'sqlite:a'; namespaces.a.plain = true; namespaces.a.wait = '31s' | namespaces.a.wait
        namespaces.a.block-bits = 1       | namespaces.a.block-bits";
    for row in table.trim().lines() {
        let (text, key) = row.split_once('|').unwrap();
        let long = &"a".repeat(108);
        let said = refusal(&text.replace("; ", "\n").replace("LONG", long));
        assert!(said.starts_with(&format!("{}: ", key.trim())), "{said}");
    }
}

#[test]
fn the_network_needs_a_token_and_tls() {
    const OPEN: &str = "[http]\nlisten = \"0.0.0.0:80\"\n";
    const TLS: &str = "[tls]\ncertificate = \"a\"\nkey = \"b\"\n";
    const TOKEN: &str = "[tokens]\ntake = \"c\"\n";
    const FLAG: &str = "open-to-the-network-without-tokens-or-tls = true\n";
    for (text, said) in [
        (OPEN.to_owned(), "tokens.take) and a certificate"),
        (format!("{OPEN}{TLS}"), "give a take token (tokens.take),"),
        (format!("{OPEN}{TOKEN}"), "without TLS"),
    ] {
        let refused = refusal(&text);
        assert!(refused.contains(said), "{refused}");
        assert!(refused.contains("0.0.0.0:80"), "{refused}");
        let flag = "--open-to-the-network-without-tokens-or-tls";
        assert!(refused.contains(flag), "{refused}");
    }
    for text in [
        format!("{OPEN}{TLS}{TOKEN}"),
        format!("{FLAG}{OPEN}"),
        format!("http.proxy-protocol = true\n{TOKEN}"),
    ] {
        Config::new(from(&text).unwrap()).unwrap();
    }
}

#[test]
fn only_loopback_is_local() {
    for (address, local) in [
        ("127.0.0.1:1", true),
        ("127.8.8.8:1", true),
        ("[::1]:1", true),
        ("[::ffff:127.0.0.1]:1", true),
        ("0.0.0.0:1", false),
        ("[::]:1", false),
        ("10.0.0.1:1", false),
        ("[::ffff:10.0.0.1]:1", false),
    ] {
        assert_eq!(is_local(address.parse().unwrap()), local, "{address}");
    }
}

#[test]
fn no_text_shows_the_url_of_a_store() {
    let settings = from(WHOLE).unwrap();
    let config = Config::new(settings.clone()).unwrap();
    for text in [format!("{settings:?}"), format!("{config:?}")] {
        assert!(text.contains("postgres:..") && !text.contains("hunter2"));
    }
    // In the wrong place, where the parser would repeat it.
    for wrong in ["plain", "blocks", "layout", "wait"] {
        let text = format!("[namespaces.a]\n{wrong} = \"redis://:hunter2@host\"");
        let said = refusal(&text);
        assert!(!said.contains("hunter2"), "{said}");
        assert!(said.contains("line 2"), "{said}");
    }
}

#[test]
fn a_variable_says_what_a_key_of_a_file_says() {
    #[rustfmt::skip]
    let all = [
        ("DATA_DIR", "relative", "data-dir = 'relative'"),
        ("BEST_EFFORT", "0", "best-effort = false"),
        ("BEST_EFFORT", "true", "best-effort = true"),
        ("SERVE_ON_DEMAND", "1", "on-demand = true"),
        ("SERVE_ON_DEMAND", "false", "on-demand = false"),
        ("SERVE_DRAIN", "4s", "drain = '4s'"),
        ("SERVE_RESP", "localhost:1,[::1]:2", "resp.listen = ['127.0.0.1:1', '[::1]:2']"),
        ("SERVE_RESP_UNIX", "a", "resp.unix = 'a'"),
        ("SERVE_RESP_UNIX_MODE", "0666", "resp.unix-mode = '0666'"),
        ("SERVE_HTTP", "off", "http.listen = 'off'"),
        ("SERVE_HTTP_UNIX", "b", "http.unix = 'b'"),
        ("SERVE_HTTP_UNIX_MODE", "0600", "http.unix-mode = '0600'"),
        ("SERVE_HTTP_HOSTS", "a.b,c.d", "http.hosts = ['a.b', 'c.d']"),
        ("SERVE_TLS_CERTIFICATE", "c", "tls.certificate = 'c'"),
        ("SERVE_TLS_KEY", "d", "tls.key = 'd'"),
        ("SERVE_TLS_CLIENT_CA", "e", "tls.client-ca = 'e'"),
        ("SERVE_TAKE_TOKENS", "f", "tokens.take = 'f'"),
        ("SERVE_INSPECT_TOKENS", "g", "tokens.inspect = 'g'"),
        ("SERVE_ADMIN_TOKENS", "i", "tokens.admin = 'i'"),
        ("SERVE_LOG_FORMAT", "text", "log.format = 'text'"),
        ("SERVE_LOG_LEVEL", "warn", "log.level = 'warn'"),
    ];
    for (name, value, text) in all {
        let name = format!("RINGFLAKE_{name}");
        let get = |asked: &str| (*asked == name).then(|| value.into());
        let found = Settings::from_environment(get).unwrap();
        let file = Settings::from_toml(text, Path::new("serve.toml")).unwrap();
        assert_eq!(found, file, "{name}");
        assert_ne!(found, Settings::default(), "{name}");
    }
}

#[test]
fn a_wrong_variable_is_refused_by_its_name() {
    for (name, value) in [
        ("RINGFLAKE_BEST_EFFORT", "yes"),
        ("RINGFLAKE_SERVE_RESP", "6379"),
        ("RINGFLAKE_SERVE_LOG_LEVEL", "loud"),
        ("RINGFLAKE_SERVE_DRAIN", "5"),
        ("RINGFLAKE_SERVE_HTTP_HOSTS", "a:1"),
    ] {
        let get = |asked: &str| (asked == name).then(|| value.into());
        let said = Settings::from_environment(get).unwrap_err().to_string();
        assert!(said.starts_with(&format!("{name}: ")), "{said}");
        // An empty one is none.
        let get = |asked: &str| (asked == name).then(Default::default);
        let none = Settings::from_environment(get).unwrap();
        assert_eq!(none, Settings::default());
    }
}

#[test]
fn a_file_that_is_not_regular_is_read_once() {
    Settings::from_file("/dev/null").unwrap();
    let error = Settings::from_file_again("/dev/null").unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("/dev/null: not a regular file"), "{said}");
}

#[test]
fn a_layer_lies_over_another_key_by_key() {
    let upper = "drain = '1s'\nlimits.count = 1\nhttp.workers = 2\n[namespaces.a]\nblocks = 3";
    let lower = "drain = '2s'\nlimits.count = 4\nlimits.namespaces = 5\n[namespaces.a]\nblocks = 6\ncapacity = 7\n\
                 [namespaces.b]\nblocks = 8";
    let whole = "drain = '1s'\nlimits.count = 1\nlimits.namespaces = 5\nhttp.workers = 2\n\
                 [namespaces.a]\nblocks = 3\ncapacity = 7\n[namespaces.b]\nblocks = 8";
    let [upper, lower, whole] = [upper, lower, whole].map(|text| from(text).unwrap());
    assert_eq!(upper.clone().over(lower), whole);
    assert_eq!(upper.clone().over(Settings::default()), upper);
    assert_eq!(Settings::default().over(upper.clone()), upper);
}

proptest! {
    #[test]
    fn no_file_makes_the_parser_panic(text in "(\\[[a-z.]{1,8}\\]\n)?[a-z-]{1,10} = .{0,12}") {
        let _ = from(&text).and_then(Config::new);
    }
}

#[test]
fn a_layout_named_after_a_width_has_that_width() {
    let config = |text: &str| from(&format!("[namespaces.a]\n{text}")).and_then(Config::new);
    for (layout, width) in [
        ("positive", Some(IdWidth::Positive)),
        ("positive-ms", Some(IdWidth::Positive)),
        ("js-safe", Some(IdWidth::JsSafe)),
        ("twitter", None),
    ] {
        let config = config(&format!("layout = '{layout}'")).unwrap();
        assert_eq!(config.namespaces["a"].id_width, width, "{layout}");
    }
    assert!(config("layout = 'positive'\nid-width = 'positive'").is_ok());
    assert!(config("layout = 'positive'\nid-width = 'full'\nplain = true").is_ok());
    let error = config("layout = 'positive'\nid-width = 'full'")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("namespaces.a.id-width: the layout positive"),
        "{error}"
    );
}

#[test]
fn clients_may_begin_the_names_that_the_configuration_lists() {
    let config = |text: &str| from(text).and_then(Config::new);
    let may = |config: &Config| ["orders", "app-1", "app", "ap"].map(|name| config.may_begin(name));
    assert_eq!(may(&config("").unwrap()), [true; 4]);
    assert_eq!(may(&config("[namespaces.orders]").unwrap()), [false; 4]);
    let listed = config("on-demand-names = ['app-*', 'orders']").unwrap();
    assert_eq!(may(&listed), [true, true, false, false]);
}
