//! Files that hold a password or a private key.
//!
//! A file that others may read keeps no secret, and the contents of one that others may
//! write are theirs, so both are refused:
//!
//! | the file is | rights that it may have |
//! |---|---|
//! | this user's | its owner's: mode 0600 or less |
//! | root's | anybody's to read, too: mode 0644 or less |
//!
//! The second is how several users share one, and how orchestrators mount secrets: root
//! decides who may look. A pipe, or anything else that is no
//! regular file, was opened by the parent of this process, and is taken as it is. Other systems than
//! Unix have no such rights, and nothing is refused there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The contents of the file at `path`, unless others may read or write it.
///
/// # Errors
/// Those of the file; [`io::ErrorKind::PermissionDenied`] where it is refused, with what
/// to do.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    check(&file, path)?;
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)?;
    Ok(contents)
}

#[cfg(unix)]
fn check(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;

    let found = file.metadata()?;
    // SAFETY: it reads a number that the process has, and can't fail.
    let us = unsafe { libc::geteuid() };
    if found.is_file()
        && let Some((reason, commands)) = objection(us, found.uid(), found.mode())
    {
        let word = crate::cipher::shell_quoted(path.display());
        let commands: Vec<_> = commands.iter().map(|it| format!("{it} {word}")).collect();
        let change = format!("run '{}'", commands.join(" && "));
        let remedy = match found.uid() {
            0 if us != 0 => format!("as root, {change}"),
            owner if owner != us => crate::cipher::as_owner(owner, &change),
            _ => change,
        };
        let text = format!(
            "{} is to be a secret, and it {reason}; it must be this user's with mode 0600 or \
             less, or root's with 0644 or less: {remedy}",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(_file: &File, _path: &Path) -> io::Result<()> {
    Ok(())
}

/// The fault of a file of this owner and mode for user `us`, if it has one, and the commands that
/// fix it, without the path.
#[cfg(unix)]
fn objection(us: u32, owner: u32, mode: u32) -> Option<(String, Vec<String>)> {
    let may_be_had = match owner {
        0 => 0o644,
        _ => 0o600,
    };
    if owner != 0 && owner != us {
        let mut commands = vec![crate::cipher::chown_to(us)];
        if mode & 0o077 != 0 {
            commands.push("chmod 600".to_owned());
        }
        let reason = format!("belongs to user {owner}, where this process is user {us}");
        Some((reason, commands))
    } else if mode & 0o077 & !may_be_had != 0 {
        // One of root's is read by this user as one of the others, or by a service as one of the
        // group.
        let command = match owner {
            0 => "chmod go-wx",
            _ => "chmod 600",
        };
        let mode = mode & 0o7777;
        let reason = format!("can be read or written by others (mode {mode:04o})");
        Some((reason, vec![command.to_owned()]))
    } else {
        None
    }
}

/// Gives the file of a test these rights, where there are such.
#[cfg(test)]
pub(crate) fn allow(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_others_may_read_or_write_is_objected_to() {
        const US: u32 = 1000;
        for (owner, mode, said) in [
            (US, 0o600, None),
            (US, 0o400, None),
            (US, 0o700, None),
            (US, 0o640, Some("mode 0640")),
            (US, 0o620, Some("mode 0620")),
            (US, 0o610, Some("mode 0610")),
            (US, 0o604, Some("mode 0604")),
            (US, 0o602, Some("mode 0602")),
            (0, 0o600, None),
            (0, 0o640, None),
            (0, 0o440, None),
            (0, 0o660, Some("mode 0660")),
            (0, 0o650, Some("mode 0650")),
            (0, 0o644, None),
            (0, 0o444, None),
            (0, 0o646, Some("mode 0646")),
            (1001, 0o600, Some("user 1001")),
            (1001, 0o644, Some("user 1001")),
        ] {
            let reason = objection(US, owner, mode);
            assert_eq!(reason.is_some(), said.is_some(), "{owner} {mode:o}");
            let (reason, commands) = reason.unwrap_or_default();
            assert!(reason.contains(said.unwrap_or_default()), "{reason}");
            let expected = match (said, owner) {
                (None, _) => &[][..],
                (_, US) => &["chmod 600"],
                (_, 0) => &["chmod go-wx"],
                (_, _) if mode == 0o600 => &["sudo chown 1000"],
                _ => &["sudo chown 1000", "chmod 600"],
            };
            assert_eq!(commands, expected, "{owner} {mode:o}");
        }
        let (_, commands) = objection(0, 0, 0o664).unwrap();
        assert_eq!(commands, ["chmod go-wx"]);
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(&path, "hunter2").unwrap();
        allow(&path, 0o666);
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let text = error.to_string();
        let advice = format!(" {}'", path.display());
        for part in ["mode 0666", "0600", "0644", &advice] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
        allow(&path, 0o600);
        assert_eq!(read(&path).unwrap(), b"hunter2");
    }

    #[test]
    fn what_is_no_regular_file_is_taken_as_it_is() {
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
    }
}
