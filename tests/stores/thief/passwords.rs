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
    use std::path::Path;

    use super::*;

    /// Looks for a namespace there, and answers what went wrong.
    fn check(thief: &Thief, url: &str, home: &Path, variable: Option<(&str, &str)>) -> String {
        thief.meet_elsewhere(url, |command| {
            command.env("HOME", home).env_remove("PGPASSFILE");
            if let Some((name, value)) = variable {
                command.env(name, value);
            }
        })
    }

    #[test]
    fn each_store_has_a_variable() {
        let home = TempDir::new().unwrap();
        all_at_once(|thief, url, variable| {
            let url = without_password(url);
            let text = check(&thief, &url, home.path(), None);
            assert!(!thief.knows(), "{url}: {text}");
            let text = check(&thief, &url, home.path(), Some((variable, PASSWORD)));
            thief.learns(&format!("{url}: {text}"));
        });
    }
    #[test]
    fn postgres_has_a_file_of_passwords_in_the_home_directory() {
        use std::os::unix::fs::PermissionsExt;

        let home = TempDir::new().unwrap();
        let thief = crate::thief::postgres::thief(b'S');
        let ca = file("ca.pem");
        let url = format!("postgres://me@localhost:PORT/app?ca={ca}");
        let path = home.path().join(".pgpass");
        let allow = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let line = format!("localhost:{}:app:me:{PASSWORD}\n", thief.port);
        fs::write(&path, line).unwrap();

        allow(0o644);
        let text = check(&thief, &url, home.path(), None);
        assert!(!thief.knows(), "{text}");
        assert!(text.contains("chmod 600"), "{text}");
        allow(0o600);
        let text = check(&thief, &url, home.path(), None);
        thief.learns(&text);
        // Somebody else's.
        let text = check(&thief, &url.replace("me@", "you@"), home.path(), None);
        assert!(!thief.knows(), "{text}");

        let elsewhere = format!("{url}&passfile={}", path.display());
        let text = check(&thief, &elsewhere, Path::new("/nowhere"), None);
        thief.learns(&text);

        // As for libpq, a variable can name the file, and the URL has the last word.
        let named = ("PGPASSFILE", path.to_str().unwrap());
        let text = check(&thief, &url, Path::new("/nowhere"), Some(named));
        thief.learns(&text);
        let other = format!("{url}&passfile=/nowhere/else");
        let text = check(&thief, &other, home.path(), Some(named));
        assert!(!thief.knows(), "{text}");
    }
}
