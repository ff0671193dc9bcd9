//! Unix sockets: their rights from the first moment on, and the files they leave.
//!
//! A socket gets its mode before it listens. Nobody can connect earlier, so the mode holds for every
//! connection.
//!
//! From the look at the name until it is taken or removed, the name is locked: of two servers that
//! start or end at once, none takes the name from the other.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::{BACKLOG, Listener};

/// The file of a socket, which is removed with this, unless another server listens there or keeps
/// the name locked.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Listener {
    pub(crate) fn bind_unix(path: &Path, mode: u32) -> io::Result<(Self, SocketFile)> {
        // Before anything is removed.
        SockAddr::unix(path)?;
        let _locked = NameLock::acquire(path, PATIENCE)?;
        refuse_used(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        let open = || {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
            socket.listen(BACKLOG)
        };
        open().inspect_err(|_| drop(fs::remove_file(path)))?;
        Ok((Self::Unix(socket.into()), SocketFile(path.to_owned())))
    }
}

/// How long another server may hold the lock: far longer than any does.
const PATIENCE: Duration = Duration::from_secs(5);

/// The lock of a socket's name: a file beside it, which exists while it is held. Its mode is 0600,
/// so users who can only read the directory can't hold it.
#[derive(Debug)]
struct NameLock {
    path: PathBuf,
    _file: File,
}

impl NameLock {
    fn acquire(socket: &Path, patience: Duration) -> io::Result<Self> {
        const PAUSE: Duration = Duration::from_millis(5);

        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let deadline = Instant::now() + patience;
        loop {
            let mut options = File::options();
            options.write(true).mode(0o600);
            // Follows no link to make a file in another place.
            let opened = match options.create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    match options.create_new(false).open(&path) {
                        // Its holder has removed it meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                        opened => Some(opened?),
                    }
                }
                opened => Some(opened?),
            };
            if let Some(file) = opened {
                match file.try_lock() {
                    // The last holder may have removed this one.
                    Ok(()) if is_same(&file, &path) => return Ok(Self { path, _file: file }),
                    Ok(()) | Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
            if Instant::now() >= deadline {
                let path = path.display();
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    format!("another process keeps {path} locked: end it, or name another socket"),
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // Before the lock is released. One that stays is taken again.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_same(file: &File, path: &Path) -> bool {
    let identity = |it: fs::Metadata| (it.dev(), it.ino());
    let [file, path] = [file.metadata(), fs::symlink_metadata(path)].map(|it| it.map(identity));
    matches!((file, path), (Ok(file), Ok(path)) if file == path)
}

/// Refuses a path that a living server listens at, or that is no socket.
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
    use io::ErrorKind::{AddrInUse, ConnectionRefused, NotFound, WouldBlock};
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if matches!(error.kind(), ConnectionRefused | NotFound) => Ok(()),
        // As many wait already as the living server lets.
        Err(error) if error.kind() == WouldBlock => Err(AddrInUse.into()),
        Err(error) => Err(error),
        Ok(()) => Err(AddrInUse.into()),
    }
}

impl Drop for SocketFile {
    /// The socket of this server is closed by now. While the name is locked, nobody else is
    /// between binding and listening.
    fn drop(&mut self) {
        let Ok(_locked) = NameLock::acquire(&self.0, PATIENCE) else {
            return;
        };
        if refuse_used(&self.0).is_ok() {
            // Nobody could do anything about a failure.
            let _ = fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Barrier, mpsc};

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
            let (listener, file) = Listener::bind_unix(&path, mode).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
            UnixStream::connect(&path).unwrap();
            assert_eq!(names(home.path()), ["socket"]);
            drop(listener);
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
        let (next, next_file) = Listener::bind_unix(&path, 0o600).unwrap();
        // Its own file is gone, and that of the next one is not its own.
        drop(file);
        UnixStream::connect(&path).unwrap();
        drop(next);
        drop(next_file);
        assert_eq!(names(home.path()), [""; 0]);
    }

    #[test]
    fn of_servers_that_start_at_once_one_gets_the_name() {
        const SERVERS: usize = 4;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        for round in 0..50 {
            if round % 2 == 1 {
                // With a dead one's in the way.
                drop(UnixListener::bind(&path).unwrap());
            }
            let start = Barrier::new(SERVERS);
            let bound: Vec<_> = std::thread::scope(|scope| {
                let bind = || {
                    start.wait();
                    let deadline = Instant::now() + Duration::from_secs(60);
                    loop {
                        let bound = Listener::bind_unix(&path, 0o600);
                        let error = bound.as_ref().err().map(io::Error::kind);
                        // A busy machine may stop the server that has locked the name for
                        // longer than the others wait.
                        let is_locked = error == Some(io::ErrorKind::WouldBlock);
                        if !is_locked || Instant::now() >= deadline {
                            return bound;
                        }
                    }
                };
                let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(bind)).collect();
                let bound = threads.into_iter().map(|thread| thread.join().unwrap());
                bound.collect()
            });
            for error in bound.iter().filter_map(|bound| bound.as_ref().err()) {
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
            }
            assert_eq!(bound.iter().filter(|bound| bound.is_ok()).count(), 1);
            UnixStream::connect(&path).unwrap();
        }
    }

    #[test]
    fn a_server_that_accepts_nobody_lives_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        let address = SockAddr::unix(&path).unwrap();
        let unix = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        let living = unix();
        living.bind(&address).unwrap();
        living.listen(1).unwrap();
        let mut waiting = Vec::new();
        let is_full = (0..100).any(|_| {
            let socket = unix();
            socket.set_nonblocking(true).unwrap();
            let connected = socket.connect(&address);
            waiting.push(socket);
            connected.is_err()
        });
        assert!(is_full);
        let (send, result) = mpsc::channel();
        let server = std::thread::spawn(move || {
            send.send(Listener::bind_unix(&path, 0o600)).unwrap();
        });
        let bound = result.recv_timeout(Duration::from_secs(60));
        // Nobody waits for it any more.
        drop((living, waiting));
        server.join().unwrap();
        let error = bound.expect("it does not wait").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
    }

    #[test]
    fn a_name_is_locked_by_a_file_that_others_can_not_open() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        // A lock on the directory, which any reader can take, has no effect.
        let directory = File::open(home.path()).unwrap();
        directory.lock().unwrap();
        let held = NameLock::acquire(&path, Duration::ZERO).unwrap();
        let found = fs::metadata(home.path().join("socket.lock")).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        let error = NameLock::acquire(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(error.to_string().contains("socket.lock locked"), "{error}");
        drop(held);
        assert_eq!(names(home.path()), [""; 0]);
        drop(NameLock::acquire(&path, Duration::ZERO).unwrap());
        // Nor does a link make a file elsewhere.
        let elsewhere = home.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, home.path().join("socket.lock")).unwrap();
        NameLock::acquire(&path, Duration::ZERO).unwrap_err();
        assert!(!elsewhere.exists());
    }

    #[test]
    fn a_name_has_one_lock_though_each_holder_removes_the_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("socket");
        let is_held = AtomicBool::new(false);
        let compete = || {
            for _ in 0..4_000 {
                if let Ok(_lock) = NameLock::acquire(&path, Duration::ZERO) {
                    assert!(!is_held.swap(true, Ordering::Relaxed));
                    std::thread::yield_now();
                    is_held.store(false, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(compete)));
        });
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
