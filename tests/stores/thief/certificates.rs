//! Which certificates are believed, and when they are read.

use std::fs;

use tempfile::TempDir;

use super::{Thief, all_at_once, file};

/// A thief with a certificate for `localhost`, and a URL that leads to it.
fn thieves() -> Vec<(Thief, &'static str)> {
    vec![
        #[cfg(feature = "etcd")]
        (
            super::etcd::thief(true),
            "etcds://me:hunter2@localhost:PORT?ca=CA",
        ),
        #[cfg(feature = "mysql")]
        (
            super::mysql::thief(true),
            "mysql://me:hunter2@localhost:PORT/app?require_ssl=true&root_cert_path=CA",
        ),
        #[cfg(feature = "postgres")]
        (
            super::postgres::thief(b'S'),
            "postgres://me:hunter2@localhost:PORT/app?sslmode=verify-full&sslrootcert=CA",
        ),
        #[cfg(feature = "redis")]
        (
            super::redis::thief(true),
            "rediss://:hunter2@localhost:PORT?ca=CA",
        ),
    ]
}

#[test]
fn a_file_that_is_replaced_is_taken_up_by_the_next_connection() {
    all_at_once(thieves(), |(thief, url)| {
        let directory = TempDir::new().unwrap();
        let ca = directory.path().join("ca.pem");
        fs::copy(file("client.pem"), &ca).unwrap();
        let mut store = thief.open(&url.replace("CA", ca.to_str().unwrap()));
        let text = thief.ask(&mut *store);
        assert!(!thief.knows(), "{url}");
        assert!(text.contains("invalid peer certificate"), "{url}: {text}");

        fs::copy(file("ca.pem"), &ca).unwrap();
        let text = thief.ask(&mut *store);
        assert!(thief.knows(), "{url}: {text}");
    });
}

/// The machine's authorities are those of a variable, so that takes a process.
#[test]
fn the_authorities_that_the_machine_knows_are_believed() {
    all_at_once(thieves(), |(thief, url)| {
        let (url, _) = url.rsplit_once(['?', '&']).unwrap();
        for (authority, known) in [("client.pem", false), ("ca.pem", true)] {
            let text = thief.meet_elsewhere(url, |command| {
                command
                    .env("SSL_CERT_FILE", file(authority))
                    .env_remove("SSL_CERT_DIR");
            });
            assert_eq!(thief.knows(), known, "{url} {authority}: {text}");
        }
    });
}

#[cfg(unix)]
#[test]
fn a_private_key_that_others_may_read_or_write_is_refused() {
    all_at_once(thieves(), |(thief, url)| {
        let (scheme, _) = url.split_once(':').unwrap();
        let (certificate, key) = match scheme {
            "mysql" => ("cert_chain_path", "priv_key_path"),
            "postgres" => ("sslcert", "sslkey"),
            _ => ("cert", "key"),
        };
        let identity = ringflake_kit::tls::Identity::new();
        let own = identity.parameters(certificate, key);
        let url = format!("{}&{own}", url.replace("CA", &file("ca.pem")));
        for mode in [0o664, 0o660, 0o602] {
            ringflake_kit::tls::allow(&identity.key(), mode);
            let reason = format!("{key} can't be read");
            thief.fails(&url, &reason);
            thief.fails(&url, &format!("chmod 600 {}", identity.key().display()));
        }
        ringflake_kit::tls::only_for_us(&identity.key());
        thief.succeeds(&url);
    });
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_is_shown_the_clients_certificate() {
    let thief = super::postgres::thief_that_wants_a_certificate();
    let ca = file("ca.pem");
    let url = format!("postgres://me:hunter2@localhost:PORT/app?sslrootcert={ca}");
    let directory = TempDir::new().unwrap();
    let [cert, key] = ["client.pem", "client.key"].map(|name| directory.path().join(name));
    let own = format!("{url}&sslcert={}&sslkey={}", cert.display(), key.display());
    thief.fails(&url, "");
    thief.fails(&own, "sslcert can't be read");

    let mut store = thief.open(&own);
    thief.ask(&mut *store);
    assert!(!thief.knows());
    for path in [&cert, &key] {
        fs::copy(file(path.file_name().unwrap().to_str().unwrap()), path).unwrap();
    }
    ringflake_kit::tls::only_for_us(&key);
    let text = thief.ask(&mut *store);
    assert!(thief.knows(), "{text}");
    fs::write(&key, "no key").unwrap();
    let text = thief.ask(&mut *store);
    assert!(!thief.knows());
    assert!(text.contains("sslkey"), "{text}");
}
