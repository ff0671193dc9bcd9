//! Which certificates are trusted, and when they are read.

use std::fs;

use tempfile::TempDir;

use super::{all_at_once, ask, file};

#[test]
fn a_file_that_is_replaced_is_taken_up_by_the_next_connection() {
    all_at_once(|thief, url, _| {
        let directory = TempDir::new().unwrap();
        let ca = directory.path().join("ca.pem");
        fs::copy(file("client.pem"), &ca).unwrap();
        let mut store = thief.open(&url.replace("CA", ca.to_str().unwrap()));
        let text = ask(&mut store);
        assert!(!thief.knows(), "{url}");
        assert!(text.contains("invalid peer certificate"), "{url}: {text}");

        fs::copy(file("ca.pem"), &ca).unwrap();
        let text = ask(&mut store);
        thief.learns(&format!("{url}: {text}"));
    });
}

/// The machine's authorities are those of a variable, so that takes a process.
#[test]
fn the_authorities_that_the_machine_knows_are_believed() {
    all_at_once(|thief, url, _| {
        // They are trusted where the URL asks for TLS and names no others.
        let (url, _) = url.split_once('?').unwrap();
        let query = match url.split_once(':').unwrap().0 {
            "mysql" => "?require_ssl=true",
            "postgres" => "?sslmode=verify-full",
            _ => "",
        };
        let url = &format!("{url}{query}");
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
