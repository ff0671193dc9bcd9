//! Unix sockets: their rights from the first moment on, and the files they leave.
//!
//! A socket is bound in a directory that only this user may enter, is given its mode there,
//! and then gets its name, in place of one that a server left that has died. So nobody can
//! connect who may not, and nobody finds the name without a server.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::Listener;

/// The file of a socket, which is removed with this.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and number: another server may have put its own there.
    id: (u64, u64),
}

impl Listener {
    /// Binds a Unix socket of this mode.
    pub(crate) fn bind_unix(path: &Path, mode: u32) -> io::Result<(Self, SocketFile)> {
        // One without a name at the end has no directory to be in.
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        refuse_used(path)?;
        let private = make_private(parent)?;
        let bound = Self::bind_in(&private, path, mode);
        // Empty but after a failure.
        let _ = fs::remove_file(private.join(NAME));
        let _ = fs::remove_dir(&private);
        bound
    }

    fn bind_in(private: &Path, path: &Path, mode: u32) -> io::Result<(Self, SocketFile)> {
        let hidden = private.join(NAME);
        let listener = UnixListener::bind(&hidden)?;
        fs::set_permissions(&hidden, Permissions::from_mode(mode))?;
        let id = id_of(&hidden)?;
        fs::rename(&hidden, path)?;
        let path = path.to_owned();
        Ok((Self::Unix(listener), SocketFile { path, id }))
    }
}

/// Makes a directory that only this user may enter.
fn make_private(parent: &Path) -> io::Result<PathBuf> {
    /// One that was killed may have left some.
    const TRIES: u32 = 16;
    let mut number = 0;
    loop {
        let path = parent.join(format!(".{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < TRIES => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A short one: the path of a socket has about 100 bytes at most.
const NAME: &str = "s";

/// Refuses a path that a living server has, or that is no socket.
fn refuse_used(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file of that name which is no socket: name another, or move it away",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // Nobody could do anything about a failure.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let files = fs::read_dir(directory).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_server() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        for mode in [0o600, 0o660, 0o666] {
            let (_listener, file) = Listener::bind_unix(&path, mode).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
            UnixStream::connect(&path).unwrap();
            assert_eq!(names(home.path()), ["socket"]);
            drop(file);
            assert_eq!(names(home.path()), [""; 0]);
        }
    }

    #[test]
    fn a_dead_servers_socket_is_replaced_and_a_living_ones_is_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        // A listener of the library leaves its file.
        drop(UnixListener::bind(&path).unwrap());
        let (living, file) = Listener::bind_unix(&path, 0o600).unwrap();
        let error = Listener::bind_unix(&path, 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();

        drop(living);
        let (_next, next_file) = Listener::bind_unix(&path, 0o600).unwrap();
        // Its own file is gone, and that of the next one is not its own.
        drop(file);
        UnixStream::connect(&path).unwrap();
        drop(next_file);
        assert_eq!(names(home.path()), [""; 0]);
    }

    #[test]
    fn what_a_killed_server_left_is_no_obstacle() {
        let home = tempfile::tempdir().unwrap();
        let left = make_private(home.path()).unwrap();
        let path = home.path().join("socket");
        let _bound = Listener::bind_unix(&path, 0o600).unwrap();
        assert!(left.exists() && path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("notes");
        fs::write(&path, "dear").unwrap();
        let error = Listener::bind_unix(&path, 0o600).unwrap_err();
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"dear");
        let nowhere = home.path().join("a/b");
        let error = Listener::bind_unix(&nowhere, 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
