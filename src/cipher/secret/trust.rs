//! Whether nobody else can have put a secret where it was found.
//!
//! Write access to the file, or to its directory, is enough to choose the secret, and with it
//! to read every ID and make any. So file and directory must belong to this
//! user or to root, and nobody else may write them, as ssh asks of its keys.
//!
//! * A group that is this process's own, or root's, counts as this user: with a umask of
//!   002 that is what every user's files look like.
//! * In a directory with the sticky bit, such as `/tmp` or the volume of a Kubernetes
//!   secret, others can make files but not replace this one.
//! * A pipe or a terminal was opened by the parent of this process, and is accepted as it is.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path};

use super::shell::quoted;

const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The user and the groups of this process.
#[derive(Clone, Copy, Debug)]
struct Us {
    uid: u32,
    gid: u32,
}

/// Who may write to a file or directory.
#[derive(Clone, Copy, Debug)]
struct Rights {
    uid: u32,
    gid: u32,
    mode: u32,
}

/// Why a file or directory is not trusted, and what to do about it.
#[derive(Debug)]
struct Objection {
    reason: String,
    /// What makes it trusted, without the path.
    command: String,
    remedy: Remedy,
}

#[derive(Debug)]
enum Remedy {
    Command,
    /// The command takes it from this user.
    AsOwner(u32),
    /// Of a directory of root's, for root: the command locks users out who may write there.
    UsersDirectory,
    /// Of a directory of root's, for another user: as above, and only root can run the command.
    OwnDirectory,
}

impl Objection {
    fn about(&self, what: &str, path: &Path) -> String {
        let Self {
            reason, command, ..
        } = self;
        let change = format!("run '{command} {}'", quoted(path.display()));
        let remedy = match self.remedy {
            Remedy::Command => change,
            Remedy::AsOwner(owner) => as_owner(owner, &change),
            Remedy::UsersDirectory => format!(
                "put the secret into a directory of the user that needs it, with mode 0700; only \
                 if root alone is to use this one, {change}"
            ),
            Remedy::OwnDirectory => {
                "put the secret into a directory of this user's own, with mode 0700".to_owned()
            }
        };
        format!("{what} {reason}: {remedy}")
    }

    /// The same of a directory, in which other users may have to write.
    fn for_directory(mut self, us: Us, owner: u32) -> Self {
        self.remedy = match self.remedy {
            Remedy::Command if us.uid == 0 => Remedy::UsersDirectory,
            Remedy::Command if us.uid != owner => Remedy::OwnDirectory,
            remedy => remedy,
        };
        self
    }
}

/// What to do about a file of this user, instead of the change that makes it this process's own.
pub(crate) fn as_owner(owner: u32, change: &str) -> String {
    format!(
        "run the same command as that user, with sudo -E -H -u '#{owner}'; only if this user alone is \
         to use it, {change}"
    )
}

/// The command that gives a file to this user, without the file. Only root can.
pub(crate) fn chown_to(user: u32) -> String {
    match user {
        0 => "chown 0".to_owned(),
        _ => format!("sudo chown {user}"),
    }
}

/// The reason to distrust the file that was opened at `path`, if there is one.
pub(super) fn objection(file: &File, path: &Path) -> io::Result<Option<String>> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let us = Us::now();
    if let Some(reason) = us.object_to(Rights::of(&found)) {
        return Ok(Some(reason.about("it", path)));
    }
    // One that has no name any more lies where nobody can replace it.
    let Ok(real) = path.canonicalize() else {
        return Ok(None);
    };
    // Nor must anybody replace a link to it.
    for place in [path::absolute(path)?, real] {
        if let Some(reason) = objection_to_directory(place.parent().unwrap_or(&place))? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

/// The reason to distrust every secret in this directory, if there is one.
pub(super) fn objection_to_directory(directory: &Path) -> io::Result<Option<String>> {
    let rights = Rights::of(&fs::metadata(directory)?);
    let us = Us::now();
    let reason = us.object_to(rights.in_a_directory());
    let reason = reason.map(|reason| reason.for_directory(us, rights.uid));
    let what = format!("its directory, {},", directory.display());
    Ok(reason.map(|reason| reason.about(&what, directory)))
}

impl Us {
    fn now() -> Self {
        Self {
            // SAFETY: it reads a number that the process has, and can't fail.
            uid: unsafe { libc::geteuid() },
            // SAFETY: as above.
            gid: unsafe { libc::getegid() },
        }
    }

    fn object_to(self, rights: Rights) -> Option<Objection> {
        let Rights { uid, gid, mode } = rights;
        let shown = mode & 0o7777;
        if uid != 0 && uid != self.uid {
            return Some(Objection {
                reason: format!(
                    "belongs to user {uid}, and this process is user {}",
                    self.uid
                ),
                command: chown_to(self.uid),
                remedy: Remedy::AsOwner(uid),
            });
        }
        let group_is_ours = gid == 0 || gid == self.gid;
        if mode & OTHERS_WRITE != 0 {
            return Some(Objection {
                reason: format!("can be written by everybody (mode {shown:04o})"),
                command: "chmod o-w".to_owned(),
                remedy: Remedy::Command,
            });
        }
        (mode & GROUP_WRITES != 0 && !group_is_ours).then(|| Objection {
            reason: format!("can be written by group {gid} (mode {shown:04o})"),
            command: "chmod g-w".to_owned(),
            remedy: Remedy::Command,
        })
    }
}

impl Rights {
    fn of(found: &Metadata) -> Self {
        Self {
            uid: found.uid(),
            gid: found.gid(),
            mode: found.mode(),
        }
    }

    /// The users that may replace a file in this directory.
    fn in_a_directory(self) -> Self {
        let writers = if self.mode & STICKY != 0 {
            GROUP_WRITES | OTHERS_WRITE
        } else {
            0
        };
        Self {
            mode: self.mode & !writers,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::super::{Secret, SecretError};
    use super::*;

    const US: Us = Us {
        uid: 1000,
        gid: 1000,
    };

    fn rights(uid: u32, gid: u32, mode: u32) -> Rights {
        Rights { uid, gid, mode }
    }

    #[test]
    fn what_others_can_write_is_objected_to() {
        for (found, said) in [
            (rights(1000, 1000, 0o600), None),
            (rights(0, 0, 0o644), None),
            (rights(1000, 1000, 0o664), None),
            (rights(1000, 0, 0o664), None),
            (rights(1001, 1000, 0o600), Some("user 1001")),
            (rights(1000, 100, 0o660), Some("group 100")),
            (rights(0, 100, 0o620), Some("group 100")),
            (rights(1000, 1000, 0o602), Some("everybody")),
            (rights(0, 0, 0o666), Some("everybody")),
        ] {
            let reason = US.object_to(found);
            assert_eq!(reason.is_some(), said.is_some(), "{found:?}: {reason:?}");
            let text = reason.map_or(String::new(), |it| it.about("it", Path::new("a b")));
            assert!(text.contains(said.unwrap_or_default()), "{text}");
            let command = match said {
                Some(said) if said.starts_with("user") => {
                    "with sudo -E -H -u '#1001'; only if this user alone is to use it, run 'sudo chown \
                     1000 'a b''"
                }
                Some(said) if said.starts_with("group") => "'chmod g-w 'a b''",
                Some(_) => "'chmod o-w 'a b''",
                None => "",
            };
            assert!(text.ends_with(command), "{text}");
        }
    }

    #[test]
    fn no_remedy_locks_another_user_out() {
        const ROOT: Us = Us { uid: 0, gid: 0 };
        for (us, found, remedy) in [
            (
                ROOT,
                rights(1001, 1001, 0o700),
                "sudo -E -H -u '#1001'; only",
            ),
            (US, rights(1001, 1001, 0o700), "sudo -E -H -u '#1001'; only"),
            // A volume that a service of another user writes to.
            (US, rights(0, 0, 0o777), "directory of this user's own"),
            (US, rights(0, 100, 0o770), "directory of this user's own"),
            (
                ROOT,
                rights(0, 998, 0o2775),
                "of the user that needs it, with mode 0700; only",
            ),
            (
                ROOT,
                rights(0, 0, 0o777),
                "of the user that needs it, with mode 0700; only",
            ),
            (US, rights(1000, 1000, 0o777), ": run 'chmod o-w a'"),
        ] {
            let reason = us.object_to(found).unwrap().for_directory(us, found.uid);
            let text = reason.about("its directory", Path::new("a"));
            assert!(text.contains(remedy), "{found:?}: {text}");
        }
    }

    #[test]
    fn a_sticky_directory_keeps_others_from_what_is_not_theirs() {
        for (found, is_fine) in [
            (rights(0, 0, 0o1777), true),
            (rights(1000, 100, 0o1770), true),
            (rights(0, 0, 0o777), false),
            (rights(1001, 1000, 0o1700), false),
        ] {
            let reason = US.object_to(found.in_a_directory());
            assert_eq!(reason.is_none(), is_fine, "{found:?}: {reason:?}");
        }
        // The mode is shown without the kind of file.
        let reason = US.object_to(rights(0, 0, 0o100_666)).unwrap().reason;
        assert!(reason.contains("mode 0666"), "{reason}");
        // For a file it means nothing.
        assert!(US.object_to(rights(1000, 1000, 0o1606)).is_some());
    }

    fn secret(directory: &Path) -> PathBuf {
        let path = directory.join("secret");
        Secret::from_bytes([7; 16]).to_new_file(&path).unwrap();
        path
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn refused(path: &Path, said: &str) {
        match Secret::from_file(path) {
            Err(error @ SecretError::FileNotTrusted { .. }) => {
                let text = error.to_string();
                assert!(text.contains(said) && text.contains("chmod"), "{text}");
                assert!(text.contains(path.to_str().unwrap()), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_judged_with_its_directory_and_through_links() {
        let home = tempfile::tempdir().unwrap();
        let open = home.path().join("open");
        fs::create_dir(&open).unwrap();
        let path = secret(&open);
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for mode in [0o700, 0o755, 0o1777] {
            allow(&open, mode);
            Secret::from_file(&link).unwrap();
        }
        allow(&open, 0o777);
        refused(&path, "its directory");
        refused(&link, "its directory");
        allow(&open, 0o700);
        // A link that others can replace leads to what they choose.
        allow(home.path(), 0o777);
        Secret::from_file(&path).unwrap();
        refused(&link, "its directory");
        allow(home.path(), 0o700);
        allow(&path, 0o622);
        refused(&path, "it can be written");
    }

    #[test]
    fn what_was_handed_over_open_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let path = secret(home.path());
        let file = File::open(&path).unwrap();
        allow(home.path(), 0o777);
        refused(&path, "its directory");
        fs::remove_file(&path).unwrap();
        let (reading, mut writing) = io::pipe().unwrap();
        let secret = Secret::from_bytes([7; 16]);
        secret.write_hex(&mut writing).unwrap();
        drop(writing);
        for open in [file.as_raw_fd(), reading.as_raw_fd()] {
            let found = Secret::from_file(format!("/dev/fd/{open}")).unwrap();
            assert_eq!(found.expose(), secret.expose());
        }
    }
}
