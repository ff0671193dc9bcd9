//! The file of passwords that libpq reads: `~/.pgpass`.
//!
//! A line is `HOST:PORT:DATABASE:USER:PASSWORD`. A field but the last may be `*`,
//! which means any; `\:` and `\\` are a colon and a backslash. The first line that
//! fits counts. A file that others may read is refused.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::lease::store::options::Hidden;

/// The connection that a password is looked up for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'a> {
    /// The names that the host goes by.
    pub(super) hosts: &'a [&'a str],
    pub(super) port: u16,
    pub(super) database: Option<&'a str>,
    pub(super) user: Option<&'a str>,
}

/// Where the file is unless the URL says so, as for libpq.
pub(super) fn usual_place() -> Option<PathBuf> {
    let named = env::var_os("PGPASSFILE").filter(|name| !name.is_empty());
    let at_home = || env::home_dir().map(|home| home.join(".pgpass"));
    named.map(PathBuf::from).or_else(at_home)
}

/// The password for this login; none where the file is missing or has none.
///
/// # Errors
/// When it can't be read, and when others may read it.
pub(super) fn look_up(path: &Path, login: Login<'_>) -> io::Result<Option<Hidden>> {
    let described = |error: io::Error| {
        let text = format!("{} can't be read: {error}", path.display());
        io::Error::new(error.kind(), text)
    };
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(described)?,
    };
    let about = file.metadata().map_err(described)?;
    if !about.is_file() {
        return Ok(None);
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0 {
        let text = format!(
            "{} holds passwords, and others may read it: chmod 600 {0}",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let text = io::read_to_string(file).map_err(described)?;
    Ok(text
        .lines()
        .find_map(|line| fits(line, login))
        .map(Hidden::new))
}

/// The password of this line, if it is for this login.
fn fits(line: &str, login: Login<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (host, rest) = field(line)?;
    let (port, rest) = field(rest)?;
    let (database, rest) = field(rest)?;
    let (user, rest) = field(rest)?;
    // As in libpq, the password ends at the next colon.
    let password = field(rest).map_or_else(|| plain(rest), |(password, _)| plain(password));
    let is = |field: &str, value: &str| field == "*" || plain(field) == value;
    let may_be = |field: &str, value: Option<&str>| match value {
        Some(value) => is(field, value),
        None => field == "*",
    };
    let user_fits = may_be(user, login.user);
    // A database that is not named has the user's name.
    let database_fits = may_be(database, login.database.or(login.user));
    let host_fits = login.hosts.iter().any(|name| is(host, name));
    (host_fits && is(port, &login.port.to_string()) && database_fits && user_fits)
        .then_some(password)
}

/// The text before the next colon, as it is written, and the text after it.
fn field(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.find(|c| match c {
        _ if escaped => {
            escaped = false;
            false
        }
        '\\' => {
            escaped = true;
            false
        }
        c => c == ':',
    })?;
    Some((&text[..end], &text[end + 1..]))
}

/// Without its backslashes.
fn plain(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut characters = field.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => text.extend(characters.next()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::store::connect::private_file::allow;

    const LOGIN: Login<'_> = Login {
        hosts: &["db"],
        port: 5432,
        database: Some("ids"),
        user: Some("me"),
    };

    #[test]
    fn a_line_fits_field_by_field() {
        for (line, password) in [
            ("db:5432:ids:me:word", Some("word")),
            ("*:*:*:*:word", Some("word")),
            ("db:*:ids:*:", Some("")),
            (r"db:5432:ids:me:a\:b\\c", Some(r"a:b\c")),
            (r"d\b:5432:ids:me:word", Some("word")),
            ("db:5432:ids:me:word:more", Some("word")),
            ("db:5432:ids:me: word ", Some(" word ")),
            ("other:5432:ids:me:word", None),
            ("db:5433:ids:me:word", None),
            ("db:5432:other:me:word", None),
            ("db:5432:ids:other:word", None),
            (r"\*:5432:ids:me:word", None),
            ("#*:*:*:*:word", None),
            ("db:5432:ids:me", None),
            ("", None),
        ] {
            assert_eq!(fits(line, LOGIN).as_deref(), password, "{line}");
        }
        let login = Login {
            hosts: &["/run", "localhost"],
            database: None,
            ..LOGIN
        };
        assert!(fits("localhost:5432:me:me:word", login).is_some());
        assert!(fits("/run:5432:me:me:word", login).is_some());
        let nobody = Login {
            user: None,
            ..LOGIN
        };
        assert!(fits("db:5432:ids:me:word", nobody).is_none());
        assert!(fits("db:5432:ids:*:word", nobody).is_some());
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        assert_eq!(look_up(&path, LOGIN).unwrap(), None);
        assert_eq!(look_up(directory.path(), LOGIN).unwrap(), None);
        fs::write(
            &path,
            "# passwords\nx:*:*:*:no\r\ndb:*:*:*:yes\n*:*:*:*:no\n",
        )
        .unwrap();
        allow(&path, 0o600);
        let found = look_up(&path, LOGIN).unwrap().unwrap();
        assert_eq!(found.expose(), "yes");
    }

    #[cfg(unix)]
    #[test]
    fn what_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        fs::write(&path, "*:*:*:*:hunter2\n").unwrap();
        for mode in [0o640, 0o604, 0o666, 0o620] {
            allow(&path, mode);
            let error = look_up(&path, LOGIN).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let text = error.to_string();
            assert!(text.contains("chmod 600"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
