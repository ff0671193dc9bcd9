//! Every error that an operator can see, beside `tests/messages/server.txt`.

use std::io;
use std::path::Path;
use std::time::Duration;

use ringflake::lease::{NamespaceError, OpenError as UrlError, StoreError};
use ringflake::{BuildError, IdWidth, LocalError, SecretError};
use ringflake_kit::messages;
use ringflake_kit::snapshot::{assert_snapshot, entry};

use crate::config::{ConfigError, Protocol, Settings, StoreUrl};
use crate::listener::Address;
use crate::namespaces::OpenError;
use crate::readiness::Obstacle;
use crate::server::StartError;
use crate::wording::{Target, help_of_build, help_of_local, help_of_store};

fn io_error(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

fn tcp(address: &str) -> Address {
    Address::Tcp(address.parse().unwrap())
}

fn too_wide() -> BuildError {
    BuildError::LayoutTooWide {
        bits: 64,
        width: IdWidth::Positive,
    }
}

fn own_errors() -> String {
    let show =
        |name: &str, error: &ConfigError| entry(name, error, &[("help", error.help().as_deref())]);
    let open_to_the_network = |has_token, has_tls| ConfigError::OpenToTheNetwork {
        address: "0.0.0.0:6379".parse().unwrap(),
        has_token,
        has_tls,
    };
    let mut text = messages!(show, ConfigError {
        Unreadable { path: "serve.toml".into(), source: io_error(io::ErrorKind::NotFound) },
        Syntax {
            path: "serve.toml".into(),
            line: 7,
            reason: "unknown key resp.listn".into(),
        },
        Value { key: "limits.count".into(), reason: "give 1 to 65536".into() },
        Content { path: "take.tokens".into(), reason: "line 3 has no name".into() },
        OpenToTheNetwork {
            address: "0.0.0.0:6379".parse().unwrap(),
            has_token: false,
            has_tls: false,
        },
        NoSocket,
    });
    for (has_token, has_tls) in [(false, true), (true, false)] {
        let error = open_to_the_network(has_token, has_tls);
        text += &show("ConfigError::OpenToTheNetwork", &error);
    }
    macro_rules! with_note {
        ($type:ty) => {
            |name: &str, error: &$type| {
                let help = error.help();
                entry(
                    name,
                    error,
                    &[("note", error.note()), ("help", help.as_deref())],
                )
            }
        };
    }
    let show = with_note!(OpenError);
    text += &messages!(show, OpenError {
        Unknown,
        TooMany { most: 64 },
        Stopping,
        Name(NamespaceError::NameLength { bytes: 0 }),
        LocalName(LocalError::NameLength { bytes: 64 }.into()),
        Build {
            error: too_wide().into(),
            help: help_of_build(&too_wide(), &targets()[0]),
        },
        Store(UrlError::NoScheme.into()),
        Secret(SecretError::HexLength { found: 31 }.into()),
        Local(LocalError::NoHome.into()),
        Local(LocalError::Store(StoreError::Corrupt {
            detail: "sqlite:leases.db is damaged".into(),
            source: None,
        }).into()),
        SharedSecret { other: "invoices".into() },
        UrlFile {
            path: "store.url".into(),
            source: io_error(io::ErrorKind::NotFound).into(),
        },
    });
    let show = with_note!(StartError);
    text += &messages!(show, StartError {
        Config(ConfigError::NoSocket),
        Bind {
            protocol: Protocol::Resp,
            address: tcp("127.0.0.1:6379"),
            source: io_error(io::ErrorKind::AddrInUse),
        },
        Bind {
            protocol: Protocol::Http,
            address: tcp("127.0.0.1:7464"),
            source: io_error(io::ErrorKind::AddrInUse),
        },
        Bind {
            protocol: Protocol::Http,
            address: Address::Unix("/run/http.sock".into()),
            source: io_error(io::ErrorKind::AddrInUse),
        },
        Bind {
            protocol: Protocol::Http,
            address: Address::Unix("/run/my ids/http.sock".into()),
            source: io_error(io::ErrorKind::NotFound),
        },
        Bind {
            protocol: Protocol::Http,
            address: tcp("127.0.0.1:80"),
            source: io_error(io::ErrorKind::PermissionDenied),
        },
        DataDir(LocalError::Copied { directory: "/var/lib/ringflake".into() }),
        Namespace { name: "orders".into(), source: OpenError::Stopping },
        Workers {
            protocol: Protocol::Http,
            source: io_error(io::ErrorKind::OutOfMemory),
        },
    });
    let plain = |name: &str, obstacle: &Obstacle| entry(name, obstacle, &[]);
    text + &messages!(plain, Obstacle {
        NoLease,
        Ahead { retry_after: Duration::from_millis(1_001) },
        DataDir { kind: io::ErrorKind::StorageFull },
        Refused { reason: "leases.db is damaged" },
    })
}

/// A namespace in the data directory, in a file, in two servers, and in two tiers.
fn targets() -> [Target; 6] {
    let text = "
        [namespaces.local]
        [namespaces.file]
        store = 'sqlite:leases.db'
        secret-file = 'a.secret'
        id-width = 'positive'
        [namespaces.plain]
        store-url-file = 'my store.url'
        plain = true
        layout = 'twitter'
        [namespaces.server]
        store = 'redis://:hunter2@host'
        secret-file = 'a.secret'
        block-bits = 3
        [namespaces.tier-of-file]
        store = 'tier:t.db?upstream=sqlite:leases.db'
        secret-file = 'a.secret'
        [namespaces.tier-of-server]
        store = 'tier:t.db?upstream=redis://:hunter2@host'
        secret-file = 'a.secret'";
    let settings = Settings::from_toml(text, Path::new("/etc/serve.toml")).unwrap();
    let names = [
        "local",
        "file",
        "plain",
        "server",
        "tier-of-file",
        "tier-of-server",
    ];
    names.map(|name| {
        let of = &settings.namespaces[name];
        let read = StoreUrl::new("redis://:hunter2@host");
        let url = of
            .store
            .as_ref()
            .or(of.store_url_file.as_ref().map(|_| &read));
        Target::new(name, of, url, Some(Path::new("/var/lib/ringflake")))
    })
}

/// Errors of the library whose help names settings of the server.
fn errors_of_the_library() -> String {
    let not_durable = || StoreError::NotDurable {
        store: "redis at db:6379".into(),
        reason: "appendonly is no".into(),
    };
    let (namespace, print) = (|| "orders".to_owned(), ringflake::lease::Fingerprint::PLAIN);
    let (given, recorded) = (IdWidth::Full, IdWidth::Positive);
    let directory = || "/var/lib/ringflake".into();
    #[rustfmt::skip]
    let stores = [
        not_durable(),
        StoreError::NotInitialised { namespace: namespace() },
        StoreError::HistoryUnknown { namespace: namespace(), reason: "the table is new".into() },
        StoreError::FingerprintMismatch { namespace: namespace(), recorded: print, offered: print },
        StoreError::Unavailable { source: "connection reset".into() },
        StoreError::Corrupt { detail: "sqlite:leases.db is damaged".into(), source: None },
        StoreError::Ambiguous { operation: "acquire", source: "timed out".into() },
        StoreError::Copied { store: "leases.db".into(), recorded: "one file".into(), found: "another".into() },
    ];
    #[rustfmt::skip]
    let locals = [
        LocalError::NoHome,
        LocalError::Directory { path: directory(), source: io_error(io::ErrorKind::StorageFull) },
        LocalError::Store(not_durable()),
        LocalError::OtherWidth { namespace: namespace(), recorded, given },
        LocalError::SecretBrought { path: None, directory: directory() },
    ];
    #[rustfmt::skip]
    let builds = [
        too_wide(),
        BuildError::EncryptionWidens { bits: 53, width: given },
        BuildError::NoLeaseYet { waited: Duration::from_secs(5), error: not_durable() },
    ];
    let mut text = String::new();
    let targets = targets();
    for error in &stores {
        let mut helps: Vec<_> = targets
            .iter()
            .map(|target| help_of_store(error, Some(target)))
            .collect();
        helps.dedup();
        let helps: Vec<_> = helps.iter().map(|help| ("help", help.as_deref())).collect();
        text += &entry("StoreError", error, &helps);
    }
    for error in &locals {
        let help = help_of_local(error, Some(&targets[0]));
        text += &entry("LocalError", error, &[("help", help.as_deref())]);
    }
    for error in &builds {
        let help = help_of_build(error, &targets[0]);
        text += &entry("BuildError", error, &[("help", help.as_deref())]);
    }
    text
}

#[test]
fn every_error_reads_as_in_its_snapshot() {
    let text = own_errors() + &errors_of_the_library();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/server.txt");
    assert_snapshot(path, &text);
}

#[test]
fn no_error_names_an_item_of_the_library() {
    let text = own_errors() + &errors_of_the_library();
    assert!(!text.contains('`'), "{text}");
    let messages = text.lines().filter(|line| line.contains(' '));
    for message in messages {
        assert!(!message.contains("::"), "{message}");
    }
}
