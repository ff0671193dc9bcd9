//! Where passwords come from, and when they are read.

use std::fs;

use tempfile::TempDir;

use super::{PASSWORD, Thief, all_at_once, ask, file};
use ringflake_kit::tls::only_for_us;

/// The URL without its password, and with the authority of the tests.
fn without_password(url: &str) -> String {
    let url = url.replace("CA", &file("ca.pem"));
    url.replace(":hunter2@localhost", "@localhost")
        .replace("//@", "//")
}

#[test]
fn another_password_in_the_file_is_for_the_next_connection() {
    all_at_once(|thief, url, _| {
        let url = without_password(url);
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("password");
        fs::write(&path, "old\n").unwrap();
        only_for_us(&path);
        let mut store = thief.open(&format!("{url}&password_file={}", path.display()));
        ask(&mut store);
        assert!(!thief.knows(), "{url}");
        fs::write(&path, format!("{PASSWORD}\n")).unwrap();
        let text = ask(&mut store);
        thief.learns(&format!("{url}: {text}"));
    });
}

/// Variables are those of a process of their own.
mod environment {
    use super::*;

    /// Looks for a namespace there, and answers what went wrong.
    fn check(thief: &Thief, url: &str, variable: Option<(&str, &str)>) -> String {
        thief.meet_elsewhere(url, |command| {
            if let Some((name, value)) = variable {
                command.env(name, value);
            }
        })
    }

    #[test]
    fn each_store_has_a_variable() {
        all_at_once(|thief, url, variable| {
            let url = without_password(url);
            let text = check(&thief, &url, None);
            assert!(!thief.knows(), "{url}: {text}");
            let text = check(&thief, &url, Some((variable, PASSWORD)));
            thief.learns(&format!("{url}: {text}"));
        });
    }
}
