//! Where passwords come from, and when they are read.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use ringflake::lease::{OpenOptions, open};
use tempfile::TempDir;

use super::{PASSWORD, Thief, all_at_once, file};
use ringflake_kit::tls::only_for_us;

/// A thief that is believed, a URL without a password that leads to it, and the
/// variable that the password can be in.
fn thieves() -> Vec<(Thief, String, &'static str)> {
    let ca = file("ca.pem");
    vec![
        #[cfg(feature = "etcd")]
        (
            super::etcd::thief(true),
            format!("etcds://me@localhost:PORT?ca={ca}"),
            "ETCDCTL_PASSWORD",
        ),
        #[cfg(feature = "mysql")]
        (
            super::mysql::thief(true),
            format!("mysql://me@localhost:PORT/app?root_cert_path={ca}"),
            "MYSQL_PWD",
        ),
        #[cfg(feature = "postgres")]
        (
            super::postgres::thief(b'S'),
            format!("postgres://me@localhost:PORT/app?sslrootcert={ca}"),
            "PGPASSWORD",
        ),
        #[cfg(feature = "redis")]
        (
            super::redis::thief(true),
            format!("rediss://localhost:PORT?ca={ca}"),
            "REDISCLI_AUTH",
        ),
    ]
}

#[test]
fn another_password_in_the_file_is_for_the_next_connection() {
    all_at_once(thieves(), |(thief, url, _)| {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("password");
        fs::write(&path, "old\n").unwrap();
        only_for_us(&path);
        let mut store = thief.open(&format!("{url}&password_file={}", path.display()));
        thief.ask(&mut *store);
        assert!(!thief.knows(), "{url}");
        fs::write(&path, format!("{PASSWORD}\n")).unwrap();
        let text = thief.ask(&mut *store);
        assert!(thief.knows(), "{url}: {text}");

        #[cfg(unix)]
        {
            ringflake_kit::tls::allow(&path, 0o606);
            let text = thief.ask(&mut *store);
            assert!(!thief.knows(), "{url}");
            assert!(text.contains("chmod 600"), "{url}: {text}");
        }
        fs::remove_file(&path).unwrap();
        let text = thief.ask(&mut *store);
        assert!(!thief.knows(), "{url}");
        assert!(
            text.contains("password_file can't be read"),
            "{url}: {text}"
        );
    });
}

#[test]
fn a_program_is_asked_at_each_connection() {
    all_at_once(thieves(), |(thief, url, _)| {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let options = OpenOptions::new()
            .timeout(Duration::from_secs(2))
            .with_password(move || match count.fetch_add(1, SeqCst) {
                0 => Err(std::io::Error::other("the vault is sealed")),
                1 => Ok("old".into()),
                _ => Ok(PASSWORD.into()),
            });
        let url = url.replace("PORT", &thief.port.to_string());
        let mut store = open(&url, &options).unwrap();
        assert_eq!(asked.load(SeqCst), 0, "{url}");
        let text = thief.ask(&mut *store);
        if asked.load(SeqCst) == 1 {
            assert!(text.contains("the vault is sealed"), "{url}: {text}");
        }
        // Some stores try more than once.
        let told = (0..3).any(|_| {
            thief.ask(&mut *store);
            thief.knows()
        });
        assert!(told, "{url}");
    });
}

/// Variables are those of a process of their own.
mod environment {
    use std::path::Path;

    use super::*;

    /// Looks for a namespace there, and answers what went wrong.
    fn check(thief: &Thief, url: &str, home: &Path, variable: Option<&str>) -> String {
        check_with(thief, url, home, variable.map(|name| (name, PASSWORD)))
    }

    /// The same, with any variable.
    fn check_with(thief: &Thief, url: &str, home: &Path, variable: Option<(&str, &str)>) -> String {
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
        all_at_once(thieves(), |(thief, url, variable)| {
            let text = check(&thief, &url, home.path(), None);
            assert!(!thief.knows(), "{url}: {text}");
            let text = check(&thief, &url, home.path(), Some(variable));
            assert!(thief.knows(), "{url}: {text}");
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
        assert!(thief.knows(), "{text}");
        // Somebody else's.
        let text = check(&thief, &url.replace("me@", "you@"), home.path(), None);
        assert!(!thief.knows(), "{text}");

        let elsewhere = format!("{url}&passfile={}", path.display());
        let text = check(&thief, &elsewhere, Path::new("/nowhere"), None);
        assert!(thief.knows(), "{text}");

        // As for libpq, a variable can name the file, and the URL has the last word.
        let named = ("PGPASSFILE", path.to_str().unwrap());
        let text = check_with(&thief, &url, Path::new("/nowhere"), Some(named));
        assert!(thief.knows(), "{text}");
        let other = format!("{url}&passfile=/nowhere/else");
        let text = check_with(&thief, &other, home.path(), Some(named));
        assert!(!thief.knows(), "{text}");
    }
}
