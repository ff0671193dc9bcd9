use std::path::Path;

use proptest::prelude::*;

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
lease = "lease.tokens"
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
    from(text).and_then(Config::new).unwrap_err().to_string()
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
        ("[resp]\nlisten = [\"a\"]", 2, ["\"a\"", "127.0.0.1:6379"]),
        ("[resp]\nlisten = 5", 2, ["addresses", "off"]),
        ("[log]\n\nlevel = \"loud\"", 3, ["\"loud\"", "warn, info"]),
        ("drain = \"5\"", 1, ["unit", "90s"]),
        ("[namespaces.a]\nlayout = \"x\"", 2, ["\"x\"", "randflake"]),
        ("[namespaces.a]\nid-width = \"x\"", 2, ["\"x\"", "js-safe"]),
        (
            "[namespaces.a]\ninit-if-new = \"x\"",
            2,
            ["\"x\"", "unknown"],
        ),
        ("[http]\nunix-mode = \"0777\"", 2, ["0777", "0660"]),
        ("a = ", 1, ["/etc/ringflake/serve.toml", "line 1"]),
    ] {
        let error = from(text).unwrap_err();
        let said = error.to_string();
        let ConfigError::Syntax { line: found, .. } = error else {
            panic!("{said}")
        };
        assert_eq!(found, line, "{said}");
        for part in parts {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_its_key() {
    for (text, key) in [
        ("on-demand = false", "on-demand"),
        ("drain = \"2h\"", "drain"),
        ("[resp]\nworkers = 0", "resp.workers"),
        ("[http]\nunix-mode = \"0660\"", "http.unix-mode"),
        ("[tls]\nkey = \"a\"", "tls.certificate"),
        ("[tls]\ncertificate = \"a\"", "tls.key"),
        ("[tls]\nclient-ca = \"a\"", "tls.certificate"),
        ("[limits]\ncount = 0", "limits.count"),
        ("[limits]\nrequest-bytes = 10", "limits.request-bytes"),
        ("[limits]\nidle-time = \"1ms\"", "limits.idle-time"),
        (
            "[limits]\nconnections = 5\nconnections-per-client = 6",
            "limits.connections-per-client",
        ),
        (
            "[namespaces.a]\nstore = \"sqlite:a\"\nstore-url-file = \"b\"",
            "namespaces.a.store",
        ),
        (
            "[namespaces.a]\nstore = \"sqlite:a\"",
            "namespaces.a.secret-file",
        ),
        (
            "[namespaces.a]\nplain = true\nsecret-file = \"b\"",
            "namespaces.a.secret-file",
        ),
        (
            "[namespaces.a]\nsecret-file = \"b\"",
            "namespaces.a.secret-file",
        ),
        ("[namespaces.a]\ntier = true", "namespaces.a.tier"),
        ("[namespaces.a]\nblock-bits = 1", "namespaces.a.block-bits"),
    ] {
        let said = refusal(text);
        assert!(said.starts_with(&format!("{key}: ")), "{text}: {said}");
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
        (format!("{OPEN}{TOKEN}"), "there is no TLS"),
    ] {
        let refused = refusal(&text);
        assert!(refused.contains(said), "{refused}");
        assert!(refused.contains("0.0.0.0:80"), "{refused}");
        let flag = "--open-to-the-network-without-tokens-or-tls";
        assert!(refused.contains(flag), "{refused}");
    }
    for text in [format!("{OPEN}{TLS}{TOKEN}"), format!("{FLAG}{OPEN}")] {
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
fn the_environment_lies_over_the_file() {
    let variables = [
        ("RINGFLAKE_DATA_DIR", "relative"),
        ("RINGFLAKE_BEST_EFFORT", "0"),
        ("RINGFLAKE_SERVE_ON_DEMAND", "false"),
        ("RINGFLAKE_SERVE_DRAIN", "4s"),
        ("RINGFLAKE_SERVE_RESP", "localhost:1,localhost:2"),
        ("RINGFLAKE_SERVE_RESP_UNIX", "a"),
        ("RINGFLAKE_SERVE_RESP_UNIX_MODE", "0666"),
        ("RINGFLAKE_SERVE_HTTP", "localhost:3"),
        ("RINGFLAKE_SERVE_HTTP_UNIX", "b"),
        ("RINGFLAKE_SERVE_HTTP_UNIX_MODE", "0666"),
        ("RINGFLAKE_SERVE_HTTP_HOSTS", "a.example,b.example"),
        ("RINGFLAKE_SERVE_TLS_CERTIFICATE", "c"),
        ("RINGFLAKE_SERVE_TLS_KEY", "d"),
        ("RINGFLAKE_SERVE_TLS_CLIENT_CA", "e"),
        ("RINGFLAKE_SERVE_TAKE_TOKENS", "f"),
        ("RINGFLAKE_SERVE_INSPECT_TOKENS", "g"),
        ("RINGFLAKE_SERVE_LEASE_TOKENS", "h"),
        ("RINGFLAKE_SERVE_ADMIN_TOKENS", "i"),
        ("RINGFLAKE_SERVE_LOG_FORMAT", "text"),
        ("RINGFLAKE_SERVE_LOG_LEVEL", "warn"),
    ];
    let get = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| value.into())
    };
    let upper = Settings::from_environment(get).unwrap();
    let whole = upper.clone().over(from(WHOLE).unwrap());
    // Each variable counts, and all the rest is the file's.
    assert_eq!(whole.clone().over(from(WHOLE).unwrap()), whole);
    let config = Config::new(whole).unwrap();
    assert_eq!(config.data_dir, Some("relative".into()));
    assert!(!config.best_effort && !config.on_demand);
    assert_eq!(config.drain(), Duration::from_secs(4));
    assert_eq!(config.resp.listen.len(), 2);
    assert_eq!(config.resp.unix, Some("a".into()));
    assert_eq!(config.resp.unix_mode, 0o666);
    assert_eq!(config.resp.workers, 2);
    assert_eq!(config.http.listen, ["127.0.0.1:3".parse().unwrap()]);
    assert_eq!(config.http.unix, Some("b".into()));
    assert_eq!(config.http.unix_mode, 0o666);
    assert_eq!(config.http.hosts, ["a.example", "b.example"]);
    assert_eq!(config.log_format(), LogFormat::Text);
    assert_eq!(config.log_level(), LogLevel::Warn);
    let files = config.tokens;
    let files = [files.take, files.inspect, files.lease, files.admin];
    assert_eq!(
        files.map(Option::unwrap),
        ["f", "g", "h", "i"].map(PathBuf::from)
    );
    let tls = config.tls.unwrap();
    let files = [Some(tls.certificate), Some(tls.key), tls.client_ca];
    assert_eq!(
        files.map(Option::unwrap),
        ["c", "d", "e"].map(PathBuf::from)
    );
    assert_eq!(config.limits.count, 1000);
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
        assert_eq!(
            Settings::from_environment(get).unwrap(),
            Settings::default()
        );
    }
}

/// Layers that say this or that.
fn layer() -> impl Strategy<Value = Settings> {
    let namespaces = prop::collection::btree_map("[ab]", any::<Option<u32>>(), 0..3);
    let parts = (
        any::<Option<bool>>(),
        any::<Option<u16>>(),
        any::<Option<usize>>(),
        any::<Option<usize>>(),
        namespaces,
    );
    parts.prop_map(|(on_demand, port, count, workers, namespaces)| {
        let mut layer = Settings {
            on_demand,
            ..Settings::default()
        };
        layer.resp.listen = port.map(|port| vec![([127, 0, 0, 1], port).into()]);
        layer.http.workers = workers;
        layer.limits.count = count;
        layer.namespaces = namespaces
            .into_iter()
            .map(|(name, blocks)| {
                let namespace = NamespaceSettings {
                    blocks,
                    ..NamespaceSettings::default()
                };
                (name, namespace)
            })
            .collect();
        layer
    })
}

proptest! {
    #[test]
    fn layers_add_up_in_their_order(a in layer(), b in layer(), c in layer()) {
        let by_pairs = a.clone().over(b.clone()).over(c.clone());
        prop_assert_eq!(&by_pairs, &a.clone().over(b.clone().over(c.clone())));
        prop_assert_eq!(a.clone().over(Settings::default()), a.clone());
        prop_assert_eq!(Settings::default().over(a.clone()), a.clone());
        let first = [&a, &b, &c].into_iter().find_map(|layer| layer.limits.count);
        prop_assert_eq!(by_pairs.limits.count, first);
        let of_a = |layer: &Settings| layer.namespaces.get("a").and_then(|a| a.blocks);
        prop_assert_eq!(of_a(&by_pairs), [&a, &b, &c].into_iter().find_map(of_a));
    }

    #[test]
    fn no_file_makes_the_parser_panic(text in "(\\[[a-z.]{1,8}\\]\n)?[a-z-]{1,10} = .{0,12}") {
        let _ = from(&text).and_then(Config::new);
    }
}

#[test]
fn a_layout_named_after_a_width_has_that_width() {
    let config = |text: &str| {
        let text = format!("[namespaces.a]\n{text}");
        let settings = Settings::from_toml(&text, Path::new("serve.toml")).unwrap();
        Config::new(settings)
    };
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
    let error = config("layout = 'positive'\nid-width = 'full'").unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("namespaces.a.id-width: the layout positive"),
        "{error}"
    );
}

#[test]
fn clients_may_begin_the_names_that_the_configuration_lists() {
    let config = |text: &str| {
        let settings = Settings::from_toml(text, Path::new("serve.toml")).unwrap();
        Config::new(settings)
    };
    let may = |config: &Config| ["orders", "app-1", "app", "ap"].map(|name| config.may_begin(name));
    assert_eq!(may(&config("").unwrap()), [true; 4]);
    assert_eq!(may(&config("[namespaces.orders]").unwrap()), [false; 4]);
    let listed = config("on-demand-names = ['app-*', 'orders']").unwrap();
    assert_eq!(may(&listed), [true, true, false, false]);
    let error = config("on-demand-names = ['a']\n[namespaces.orders]").unwrap_err();
    assert!(
        error.to_string().starts_with("on-demand-names: "),
        "{error}"
    );
}

#[test]
fn clients_of_a_proxy_need_tokens() {
    let config = |text: &str| {
        let text = format!("http.proxy-protocol = true\n{text}");
        let settings = Settings::from_toml(&text, Path::new("serve.toml")).unwrap();
        Config::new(settings)
    };
    let error = config("").unwrap_err().to_string();
    assert!(error.starts_with("http.proxy-protocol: "), "{error}");
    assert!(
        config("tokens.take = 'tokens'")
            .unwrap()
            .http
            .proxy_protocol
    );
}
