//! Where passwords come from, and when they are read.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use ringflake::lease::{OpenOptions, open};
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

/// Has a server of its own: a repeated login may reach it after the test has gone on.
#[test]
fn a_password_that_can_not_be_read_safely_is_not_sent() {
    all_at_once(|thief, url, _| {
        let url = without_password(url);
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("password");
        fs::write(&path, "old\n").unwrap();
        only_for_us(&path);
        let mut store = thief.open(&format!("{url}&password_file={}", path.display()));
        ask(&mut store);
        fs::write(&path, format!("{PASSWORD}\n")).unwrap();

        #[cfg(unix)]
        {
            ringflake_kit::tls::allow(&path, 0o606);
            let text = ask(&mut store);
            assert!(!thief.knows(), "{url}");
            assert!(text.contains("chmod 600"), "{url}: {text}");
        }
        fs::remove_file(&path).unwrap();
        let text = ask(&mut store);
        assert!(!thief.knows(), "{url}");
        assert!(
            text.contains("password_file can't be read"),
            "{url}: {text}"
        );
    });
}

#[test]
fn a_program_is_asked_at_each_connection() {
    all_at_once(|thief, url, _| {
        let url = without_password(url);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let options = OpenOptions::new()
            .timeout(Duration::from_secs(30))
            .with_password(move || match count.fetch_add(1, SeqCst) {
                0 => Err(std::io::Error::other("the vault is sealed")),
                1 => Ok("old".into()),
                _ => Ok(PASSWORD.into()),
            });
        let mut store = open(&thief.url(&url), &options).unwrap();
        assert_eq!(asked.load(SeqCst), 0, "{url}");
        let text = ask(&mut store);
        if asked.load(SeqCst) == 1 {
            assert!(text.contains("the vault is sealed"), "{url}: {text}");
        }
        // Some stores try more than once.
        let leaked = (0..3).any(|_| {
            ask(&mut store);
            thief.knows()
        });
        assert!(leaked, "{url}");
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

    #[cfg(all(feature = "postgres", unix))]
    #[test]
    fn postgres_has_a_file_of_passwords_in_the_home_directory() {
        use std::os::unix::fs::PermissionsExt;

        let home = TempDir::new().unwrap();
        let thief = crate::thief::postgres::thief(b'S');
        let ca = file("ca.pem");
        let url = format!("postgres://me@localhost:PORT/app?sslrootcert={ca}");
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
