//! What a server would do, worked out without doing it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringflake::Layout;
use serde::Serialize;

use crate::access::{Access, Right, Role};
use crate::config::{Config, NamespaceSettings, Protocol, ProtocolConfig, TlsFiles, is_local};
use crate::factory::GeneratorFactory;
use crate::listener::Address;
use crate::server::StartError;
use crate::tls::Loaded;

/// What a server of a [`Config`] would do. Binds nothing, asks no store, issues nothing and
/// writes nothing; it reads the files that the configuration names. Shows no secret, no
/// token and no URL.
///
/// # Examples
/// ```
/// use ringflake_server::{Config, Plan, Settings};
///
/// let plan = Plan::of(&Config::new(Settings::default())?)?;
/// assert_eq!(plan.sockets[0].address, "127.0.0.1:6379");
/// assert!(plan.on_demand && plan.namespaces.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// Where it would listen.
    pub sockets: Vec<PlannedSocket>,
    /// Names that requests of HTTP may use besides those that always may.
    pub hosts: Vec<String>,
    /// The holders of each role: `everybody`, `nobody`, or the number of tokens.
    pub rights: BTreeMap<&'static str, String>,
    /// The directory of local namespaces, which need not exist; none where there is no home.
    pub data_dir: Option<PathBuf>,
    /// Whether clients might begin namespaces.
    pub on_demand: bool,
    /// Those that would be served from the start.
    pub namespaces: Vec<PlannedNamespace>,
    /// Each limit by its key; times in milliseconds, with `-ms` at the end.
    pub limits: BTreeMap<&'static str, u64>,
    /// How long requests have to end.
    pub drain_ms: u64,
    /// The values of the other keys that are set.
    pub settings: BTreeMap<String, String>,
    /// What somebody should know before it starts.
    pub warnings: Vec<String>,
}

/// A socket of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedSocket {
    /// `resp` or `http`.
    pub protocol: &'static str,
    /// An address with its port, or `unix:` and a path.
    pub address: String,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// The mode of a Unix socket, in octal.
    pub mode: Option<String>,
}

/// A namespace of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedNamespace {
    /// Its name.
    pub name: String,
    /// The name or the numbers of its layout.
    pub layout: String,
    /// The bits of its IDs.
    pub id_bits: u32,
    /// Whether they are encrypted.
    pub encrypted: bool,
    /// The kind of the store: `local` for the data directory.
    pub store: String,
    /// Slots of its rings.
    pub capacity: usize,
    /// The number of rings.
    pub stripes: usize,
}

impl Plan {
    /// What a server of this configuration would do.
    ///
    /// # Errors
    /// [`StartError`], for what would keep it from starting, as far as that shows.
    pub fn of(config: &Config) -> Result<Self, StartError> {
        let tls = config.tls.as_ref().map(Loaded::from_files).transpose()?;
        let has_expired = tls.is_some_and(|tls| tls.has_expired);
        let mut all_local = true;
        let mut sockets = Vec::new();
        for protocol in Protocol::ALL {
            let of = config.protocol(protocol);
            let planned = |address: Address, mode: Option<String>| PlannedSocket {
                protocol: protocol.name(),
                address: address.to_string(),
                tls: config.tls.is_some() && mode.is_none(),
                mode,
            };
            for &address in &of.listen {
                all_local &= is_local(address) && !of.proxy_protocol;
                sockets.push(planned(Address::Tcp(address), None));
            }
            if let Some(path) = &of.unix {
                let mode = format!("{:04o}", of.unix_mode);
                sockets.push(planned(Address::Unix(path.clone()), Some(mode)));
            }
        }
        let rights = Access::read(&config.tokens, all_local, config.open)?;
        let who = |right: &Right| match right {
            Right::Everybody => "everybody".to_owned(),
            Right::Nobody => "nobody".to_owned(),
            Right::Tokens(tokens) => match tokens.count() {
                1 => "1 token".to_owned(),
                count => format!("{count} tokens"),
            },
        };
        let rights: BTreeMap<_, _> = Role::ALL
            .map(Role::name)
            .into_iter()
            .zip(rights.iter().map(who))
            .collect();
        let factory = GeneratorFactory::new(Arc::new(config.clone()));
        let data_dir = match factory.data_dir() {
            Ok(path) => Some(path),
            Err(error) if config.on_demand => return Err(StartError::DataDir(error)),
            Err(_) => None,
        };
        Ok(Self {
            warnings: warnings(config, all_local, has_expired, &sockets, &rights),
            sockets,
            hosts: config.http.hosts.clone(),
            rights,
            data_dir,
            on_demand: config.on_demand,
            namespaces: namespaces(config, &factory)?,
            limits: limits(config),
            drain_ms: in_ms(config.drain),
            settings: settings(config),
        })
    }
}

fn namespaces(
    config: &Config,
    factory: &GeneratorFactory,
) -> Result<Vec<PlannedNamespace>, StartError> {
    let planned = config.namespaces.iter().map(|(name, settings)| {
        let refused = |source| StartError::Namespace {
            name: name.clone(),
            source,
        };
        let check = factory.check(name).map_err(refused)?;
        let layout = settings.layout.unwrap_or(Layout::RANDFLAKE);
        let store = match (&settings.store, &settings.store_url_file) {
            (Some(url), _) => url.scheme().to_owned(),
            (None, Some(path)) => format!("the URL in {}", path.display()),
            (None, None) => "local".to_owned(),
        };
        Ok(PlannedNamespace {
            name: name.clone(),
            layout: layout
                .name()
                .map_or_else(|| layout.to_string(), str::to_owned),
            id_bits: check.id_width.bits(),
            encrypted: settings.plain != Some(true),
            store: match settings.tier {
                Some(true) => format!("{store}, with a tier in the data directory"),
                _ => store,
            },
            capacity: check.capacity,
            stripes: check.stripes,
        })
    });
    planned.collect()
}

/// The keys that the rest of a plan does not show.
fn settings(config: &Config) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut add = |key: String, value: Option<String>| all.extend(value.map(|it| (key, it)));
    let set = |is_set: bool| is_set.then(|| true.to_string());
    let names = config.on_demand_names.join(", ");
    add("on-demand-names".into(), not_empty(&names));
    add("best-effort".into(), set(config.best_effort));
    let open = "open-to-the-network-without-tokens-or-tls";
    add(open.into(), set(config.open));
    add("log.format".into(), Some(config.log_format.to_string()));
    add("log.level".into(), Some(config.log_level.to_string()));
    if let Some(TlsFiles {
        certificate,
        key,
        client_ca,
    }) = &config.tls
    {
        add("tls.certificate".into(), path(Some(certificate)));
        add("tls.key".into(), path(Some(key)));
        add("tls.client-ca".into(), path(client_ca.as_ref()));
    }
    for (role, file) in Role::ALL.into_iter().zip(config.tokens.files()) {
        add(format!("tokens.{}", role.name()), path(file.as_ref()));
    }
    for protocol in Protocol::ALL {
        let ProtocolConfig {
            listen: _,
            is_default: _,
            unix: _,
            unix_mode: _,
            hosts: _,
            workers,
            proxy_protocol,
            announce,
            key_prefix,
            colon,
        } = config.protocol(protocol);
        let mut add = |key, value| add(format!("{protocol}.{key}"), value);
        add("workers", Some(workers.to_string()));
        add("proxy-protocol", set(*proxy_protocol));
        add("announce", announce.clone());
        add("key-prefix", not_empty(key_prefix));
        add("replace-colons", colon.map(String::from));
    }
    for (name, settings) in &config.namespaces {
        let NamespaceSettings {
            layout: _,
            plain: _,
            id_width: _,
            store: _,
            store_url_file: _,
            tier: _,
            capacity: _,
            stripes: _,
            secret_file,
            block_bits,
            init_if_new,
            blocks,
            widen_to,
            lease_duration,
            wait,
            producers,
            borrow_limit,
        } = settings;
        let mut add = |key, value| add(format!("namespaces.{name}.{key}"), value);
        let history = init_if_new.map(|it| format!("{it:?}").to_lowercase());
        add("secret-file", path(secret_file.as_ref()));
        add("init-if-new", history);
        add("block-bits", block_bits.map(|it| it.to_string()));
        add("blocks", blocks.map(|it| it.to_string()));
        add("widen-to", widen_to.map(|it| it.to_string()));
        add("producers", producers.map(|it| it.to_string()));
        add("lease-duration", time(*lease_duration));
        add("wait", time(*wait));
        add("borrow-limit", time(*borrow_limit));
    }
    all
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

fn time(time: Option<Duration>) -> Option<String> {
    time.map(|time| format!("{time:?}"))
}

fn limits(config: &Config) -> BTreeMap<&'static str, u64> {
    let limits = &config.limits;
    let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    #[rustfmt::skip]
    let all = [
        ("connections", number(limits.connections)),
        ("connections-per-client", number(limits.connections_per_client)),
        ("count", number(limits.count)),
        ("request-bytes", number(limits.request_bytes)),
        ("request-time-ms", in_ms(limits.request_time)),
        ("idle-time-ms", in_ms(limits.idle_time)),
        ("namespaces", number(limits.namespaces)),
    ];
    BTreeMap::from(all)
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn warnings(
    config: &Config,
    all_local: bool,
    has_expired: bool,
    sockets: &[PlannedSocket],
    rights: &BTreeMap<&'static str, String>,
) -> Vec<String> {
    let takers = &*rights[Role::Take.name()];
    let all = [
        (
            !all_local && takers == "everybody",
            "everybody on the network can take IDs, as the configuration says: give tokens.take",
        ),
        (
            takers == "nobody",
            "nobody can take IDs: one file of tokens closes every role; give tokens.take",
        ),
        (
            !all_local && config.tls.is_none(),
            "everybody on the network can read along, as the configuration says: give tls",
        ),
        (
            !all_local && config.on_demand && config.on_demand_names.is_empty(),
            "clients of the network can begin namespaces, up to limits.namespaces: name those \
             that are meant, or give on-demand = false",
        ),
        (
            sockets.is_empty(),
            "there is no socket but those that a service manager hands over: give resp.listen or \
             http.listen if none does",
        ),
        (
            config.tls.is_some() && sockets.iter().all(|socket| !socket.tls),
            "there is a certificate, and no TCP socket: Unix sockets have no TLS",
        ),
        (
            has_expired,
            "tls.certificate has expired, so clients refuse to connect: replace the file",
        ),
        (
            config.best_effort,
            "best-effort is on: a store that can lose what it confirmed is accepted, and after a \
             loss IDs can be issued twice; leave it out where IDs matter",
        ),
    ];
    let holds = all.into_iter().filter(|(holds, _)| *holds);
    holds.map(|(_, text)| text.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Settings;

    fn plan(text: &str, directory: &Path) -> Result<Plan, StartError> {
        let settings = Settings::from_toml(text, &directory.join("serve.toml"))?;
        Plan::of(&Config::new(settings)?)
    }

    #[test]
    fn a_plan_shows_what_matters_and_writes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("a.secret");
        std::fs::write(&secret, "00112233445566778899aabbccddeeff").unwrap();
        ringflake_kit::tls::only_for_us(&secret);
        let token = home.path().join("tokens");
        std::fs::write(&token, "take-0123456789ab\nmore-0123456789ab").unwrap();
        ringflake_kit::tls::only_for_us(&token);
        let text = "
            data-dir = 'data'
            http.listen = 'off'
            http.unix = 'h.sock'
            http.hosts = ['Ids.example']
            resp.listen = ['127.0.0.1:1', '[::1]:1']
            tokens.take = 'tokens'
            limits.count = 77
            on-demand = true
            on-demand-names = ['orders', 'app-*']
            resp.key-prefix = 'app:'
            [namespaces.plain]
            plain = true
            layout = 'twitter'
            [namespaces.shared]
            store = 'sqlite:leases.db?password=hunter2'
            secret-file = 'a.secret'
            layout = 'positive'
            capacity = 1024
            stripes = 1
            blocks = 3
            ";
        // A parameter that SQLite does not have.
        let error = plan(text, home.path()).unwrap_err();
        let StartError::Namespace { name, source } = error else {
            panic!("{error}")
        };
        assert!(!source.to_string().contains("hunter2"), "{source}");
        assert_eq!(name, "shared");

        let text = text.replace("?password=hunter2", "");
        // In two stores, which can't see each other.
        let twice = "[namespaces.zoo]\nstore = 'sqlite:zoo.db'\nsecret-file = 'a.secret'";
        let error = plan(&format!("{text}\n{twice}"), home.path()).unwrap_err();
        let StartError::Namespace { name, source } = error else {
            panic!("{error}")
        };
        assert_eq!(name, "zoo");
        let said = source.to_string();
        assert_eq!(said, "namespace \"shared\" has the same secret");

        let plan = plan(&text, home.path()).unwrap();
        let sockets = plan.sockets.iter().map(|socket| &*socket.address);
        let unix = format!("unix:{}", home.path().join("h.sock").display());
        assert_eq!(
            sockets.collect::<Vec<_>>(),
            ["127.0.0.1:1", "[::1]:1", &unix]
        );
        assert_eq!(plan.hosts, ["ids.example"]);
        assert_eq!(plan.sockets[2].mode.as_deref(), Some("0660"));
        let rights = ["take", "inspect", "admin"].map(|role| &*plan.rights[role]);
        assert_eq!(rights, ["2 tokens", "nobody", "nobody"]);
        let settings = [
            "on-demand-names",
            "resp.key-prefix",
            "namespaces.shared.blocks",
        ];
        let settings = settings.map(|key| &*plan.settings[key]);
        assert_eq!(
            (plan.on_demand, settings),
            (true, ["orders, app-*", "app:", "3"])
        );
        let [plain, shared] = &plan.namespaces[..] else {
            panic!("{plan:?}")
        };
        assert_eq!((&*plain.store, plain.encrypted), ("local", false));
        assert_eq!(plain.layout, "twitter");
        assert_eq!((&*shared.store, shared.id_bits), ("sqlite", 63));
        assert_eq!((shared.capacity, shared.stripes), (1024, 1));
        assert_eq!(
            (plan.limits["count"], plan.limits["idle-time-ms"]),
            (77, 300_000)
        );
        assert_eq!(plan.warnings, [""; 0]);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_plan_warns_of_what_an_operator_may_not_mean() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("tokens");
        std::fs::write(&file, "admin-0123456789ab").unwrap();
        ringflake_kit::tls::only_for_us(&file);
        let identity = ringflake_kit::tls::Identity::new();
        let expired = identity.certificate().with_file_name("expired.pem");
        std::fs::copy(ringflake_kit::tls::file("expired.pem"), expired).unwrap();
        let tls = format!(
            "tls.certificate = '{}'\ntls.key = '{}'\nhttp.listen = 'off'\n",
            identity.certificate().display(),
            identity.key().display(),
        );
        let open = "open-to-the-network-without-tokens-or-tls = true\nresp.listen = '0.0.0.0:1'";
        for (text, warnings) in [
            ("", &[][..]),
            (open, &["can take", "can read along", "can begin"]),
            (
                &format!("{open}\non-demand-names = ['orders']"),
                &["can take", "can read along"],
            ),
            ("best-effort = true", &["can be issued twice"]),
            ("resp.listen = 'off'\nhttp.listen = 'off'", &["no socket"]),
            ("tokens.admin = 'tokens'", &["nobody can take IDs"]),
            (&tls, &[]),
            (&tls.replace("client.pem", "expired.pem"), &["has expired"]),
            (&format!("{tls}resp.unix = 'r.sock'"), &["no TCP socket"]),
        ] {
            let plan = plan(text, home.path()).unwrap();
            assert_eq!(plan.warnings.len(), warnings.len(), "{text}: {plan:?}");
            for (warning, said) in plan.warnings.iter().zip(warnings) {
                assert!(warning.contains(said), "{warning}");
            }
            let is_tls = |socket: &PlannedSocket| socket.tls == socket.address.contains("6379");
            assert!(!text.contains("tls.key") || plan.sockets.iter().all(is_tls));
        }
        // It is read, so that a start does not fail at it.
        let missing = "tls.certificate = 'no.pem'\ntls.key = 'no.key'";
        let error = plan(missing, home.path()).unwrap_err();
        assert!(error.to_string().contains("no.pem"), "{error}");
    }
}
