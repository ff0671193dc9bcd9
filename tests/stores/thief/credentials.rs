//! Where certificates and passwords come from, and when they are read.

use std::fs;

use ringflake_kit::tls::{Identity, allow, only_for_us};
use tempfile::TempDir;

use super::{PASSWORD, all_at_once, ask, file};

/// The URL without its password, and with the authority of the tests.
fn without_password(url: &str) -> String {
    let url = url.replace("CA", &file("ca.pem"));
    url.replace(":hunter2@localhost", "@localhost")
        .replace("//@", "//")
}

#[test]
fn a_file_that_is_replaced_is_read_by_the_next_connection() {
    all_at_once(|thief, url, _| {
        let directory = TempDir::new().unwrap();
        let [ca, password] = ["ca.pem", "password"].map(|name| directory.path().join(name));
        fs::copy(file("client.pem"), &ca).unwrap();
        let mut store = thief.open(&url.replace("CA", ca.to_str().unwrap()));
        let text = ask(&mut store);
        assert!(!thief.knows(), "{url}");
        assert!(text.contains("invalid peer certificate"), "{url}: {text}");
        fs::copy(file("ca.pem"), &ca).unwrap();
        let text = ask(&mut store);
        thief.learns(&format!("{url}: {text}"));

        fs::write(&password, "old\n").unwrap();
        only_for_us(&password);
        let path = password.display();
        let mut store = thief.open(&format!("{}&password_file={path}", without_password(url)));
        ask(&mut store);
        assert!(!thief.knows(), "{url}");
        fs::write(&password, format!("{PASSWORD}\n")).unwrap();
        let text = ask(&mut store);
        thief.learns(&format!("{url}: {text}"));
    });
}

#[test]
fn each_store_has_a_variable_for_its_password() {
    all_at_once(|thief, url, variable| {
        let url = without_password(url);
        let text = thief.meet_elsewhere(&url, |_| {});
        assert!(!thief.knows(), "{url}: {text}");
        let text = thief.meet_elsewhere(&url, |command| _ = command.env(variable, PASSWORD));
        thief.learns(&format!("{url}: {text}"));
    });
}

/// The machine's authorities are those of a variable, so that takes a process.
#[test]
fn the_authorities_that_the_machine_knows_are_believed() {
    all_at_once(|thief, url, _| {
        // The driver of MySQL reads none but those of `ca`.
        if url.starts_with("mysql:") {
            return;
        }
        // They are trusted where the URL asks for TLS and names no others.
        let url = &url.replace("ca=CA", "tls=required");
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

#[test]
fn a_private_key_that_others_may_read_or_write_is_refused() {
    all_at_once(|thief, url, _| {
        let identity = Identity::new();
        let own = identity.parameters();
        let url = format!("{}&{own}", url.replace("CA", &file("ca.pem")));
        for mode in [0o664, 0o660, 0o602] {
            allow(&identity.key(), mode);
            thief.fails(&url, "key can't be read");
            thief.fails(&url, &format!("chmod 600 {}", identity.key().display()));
        }
        only_for_us(&identity.key());
        thief.succeeds(&url);
    });
}

#[test]
fn postgres_is_shown_the_clients_certificate() {
    let thief = super::postgres::thief_that_wants_a_certificate();
    let ca = file("ca.pem");
    let url = format!("postgres://me:hunter2@localhost:PORT/app?sslrootcert={ca}");
    let identity = Identity::new();
    let (cert, key) = (identity.certificate(), identity.key());
    // libpq's words for them.
    let (cert_path, key_path) = (cert.display(), key.display());
    let own = format!("{url}&sslcert={cert_path}&sslkey={key_path}");
    thief.fails(&url, "");
    let mut store = thief.open(&own);
    fs::remove_file(&cert).unwrap();
    thief.fails(&own, "cert can't be read");
    let text = ask(&mut store);
    assert!(!thief.knows());
    assert!(text.contains("cert can't be read"), "{text}");
    fs::copy(file("client.pem"), &cert).unwrap();
    let text = ask(&mut store);
    thief.learns(&text);
    fs::write(&key, "no key").unwrap();
    let text = ask(&mut store);
    assert!(!thief.knows());
    assert!(text.contains("key holds no private key"), "{text}");
}
