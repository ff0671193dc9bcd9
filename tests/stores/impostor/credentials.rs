//! Where certificates and passwords come from, and when they are read.

use std::fs;
use std::path::Path;

use ringflake_kit::child::passes;
use ringflake_kit::tls::{Identity, allow, only_for_us};
use tempfile::TempDir;

use super::{PASSWORD, all_at_once, ask, file};
use crate::sqlite::{child, given_path};

/// The URL without its password, and with the authority of the tests.
fn without_password(url: &str) -> String {
    let url = url.replace("CA", &file("ca.pem"));
    url.replace(":hunter2@localhost", "@localhost")
        .replace("//@", "//")
}

#[test]
fn a_file_that_is_replaced_is_read_by_the_next_connection() {
    all_at_once(|impostor, url| {
        let directory = TempDir::new().unwrap();
        let [ca, password] = ["ca.pem", "password"].map(|name| directory.path().join(name));
        fs::copy(file("client.pem"), &ca).unwrap();
        let mut store = impostor.open(&url.replace("CA", ca.to_str().unwrap()));
        let text = ask(&mut store);
        assert!(!impostor.knows(), "{url}");
        assert!(text.contains("invalid peer certificate"), "{url}: {text}");
        fs::copy(file("ca.pem"), &ca).unwrap();
        let text = ask(&mut store);
        impostor.learns(&format!("{url}: {text}"));

        fs::write(&password, "old\n").unwrap();
        only_for_us(&password);
        let path = password.display();
        let mut store = impostor.open(&format!("{}&password_file={path}", without_password(url)));
        ask(&mut store);
        assert!(!impostor.knows(), "{url}");
        fs::write(&password, format!("{PASSWORD}\n")).unwrap();
        let text = ask(&mut store);
        impostor.learns(&format!("{url}: {text}"));
    });
}

/// In a process of their own, which has all of the variables.
#[test]
fn each_store_has_a_variable_for_its_password() {
    const VARIABLES: [&str; 4] = [
        "ETCDCTL_PASSWORD",
        "MYSQL_PWD",
        "PGPASSWORD",
        "REDISCLI_AUTH",
    ];
    let is_given = given_path().is_some();
    all_at_once(|impostor, url| {
        let text = impostor.meet(&without_password(url));
        match is_given {
            true => impostor.learns(&format!("{url}: {text}")),
            false => assert!(!impostor.knows(), "{url}: {text}"),
        }
    });
    if !is_given {
        let mut child = child(Path::new("all"));
        passes(child.envs(VARIABLES.map(|name| (name, PASSWORD))));
    }
}

/// The machine's authorities are those of a variable, so that takes a process.
#[test]
fn the_authorities_that_the_machine_knows_are_believed() {
    let Some(authority) = given_path() else {
        for authority in ["client.pem", "ca.pem"].map(file) {
            let mut child = child(Path::new(&authority));
            child.env("SSL_CERT_FILE", &authority);
            passes(child.env_remove("SSL_CERT_DIR"));
        }
        return;
    };
    all_at_once(|impostor, url| {
        // The driver of MySQL reads none but those of `ca`.
        if url.starts_with("mysql:") {
            return;
        }
        // They are trusted where the URL asks for TLS and names no others.
        let text = impostor.meet(&url.replace("ca=CA", "tls=required"));
        match authority.ends_with("ca.pem") {
            true => impostor.learns(&format!("{url}: {text}")),
            false => assert!(!impostor.knows(), "{url}: {text}"),
        }
    });
}

#[test]
fn a_private_key_that_others_may_read_or_write_is_refused() {
    all_at_once(|impostor, url| {
        let identity = Identity::new();
        let own = identity.parameters();
        let url = format!("{}&{own}", url.replace("CA", &file("ca.pem")));
        for mode in [0o664, 0o660, 0o602] {
            allow(&identity.key(), mode);
            impostor.fails(&url, "key can't be read");
            impostor.fails(&url, &format!(" {}'", identity.key().display()));
        }
        only_for_us(&identity.key());
        impostor.succeeds(&url);
    });
}

#[test]
fn postgres_is_shown_the_clients_certificate() {
    let impostor = super::postgres::impostor_that_wants_a_certificate();
    let ca = file("ca.pem");
    let url = format!("postgres://me:hunter2@localhost:PORT/app?sslrootcert={ca}");
    let identity = Identity::new();
    let (cert, key) = (identity.certificate(), identity.key());
    // libpq's words for them.
    let (cert_path, key_path) = (cert.display(), key.display());
    let own = format!("{url}&sslcert={cert_path}&sslkey={key_path}");
    impostor.fails(&url, "");
    let mut store = impostor.open(&own);
    fs::remove_file(&cert).unwrap();
    impostor.fails(&own, "cert can't be read");
    let text = ask(&mut store);
    assert!(!impostor.knows());
    assert!(text.contains("cert can't be read"), "{text}");
    fs::copy(file("client.pem"), &cert).unwrap();
    let text = ask(&mut store);
    impostor.learns(&text);
    fs::write(&key, "no key").unwrap();
    let text = ask(&mut store);
    assert!(!impostor.knows());
    assert!(text.contains("key holds no private key"), "{text}");
}
