//! Servers that a test starts for itself: on a free port, in a directory of its
//! own, and gone with the test.

pub mod clock;
pub mod etcd;
mod lent;
pub mod mariadb;
mod port;
pub mod postgres;
pub mod redis;
mod template;

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, geteuid, waitid};
#[cfg(target_os = "linux")]
use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;

pub use self::clock::Clock;
pub use self::etcd::Etcd;
pub use self::lent::Lent;
pub use self::mariadb::MariaDb;
pub use self::port::free_port;
pub use self::postgres::{Postgres, Session};
pub use self::redis::Redis;
pub use crate::has;

/// Of the user `app`, in SQL servers.
pub const PASSWORD: &str = "Sesame-Street";

/// Where Debian keeps servers that are not on everybody's path.
const ELSEWHERE: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/postgresql"];

#[derive(Debug)]
pub struct Instance {
    directory: TempDir,
    port: u16,
    clock: Option<Clock>,
    server: Option<Server>,
}

impl Instance {
    fn new(directory: TempDir, clock: Option<Clock>) -> Self {
        Self {
            directory,
            port: free_port(),
            clock,
            server: None,
        }
    }

    fn launch(&mut self, mut command: Command, ready: impl FnMut() -> bool) {
        assert!(self.server.is_none(), "it is running");
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        let log = self.directory.path().join("log");
        self.server = Some(Server::start(command, &log, ready));
    }

    fn process(&self) -> &Server {
        self.server.as_ref().expect("it is running")
    }

    fn take(&mut self) -> Server {
        self.server.take().expect("it is running")
    }
}

pub trait TestServer: Sync {
    fn port(&self) -> u16 {
        self.instance().port
    }

    /// The URL of its store as it is reached through a proxy on this port.
    fn url_through(&self, port: u16) -> String;

    fn url(&self) -> String {
        self.url_through(self.port())
    }

    /// A new server with this calendar clock, or the machine's; none where it is not
    /// installed, after saying that the test is skipped for it.
    fn start_by(clock: Option<Clock>) -> Option<Self>
    where
        Self: Sized;

    /// Takes away what tests have written, and ends the connections of their stores.
    fn clear(&self);

    /// Leaves what no store writes in the record of this block, by a client of the server's own.
    fn damage(&self, namespace: &str, block: u64);

    fn instance(&self) -> &Instance;

    fn instance_mut(&mut self) -> &mut Instance;

    /// The running process, for signals.
    fn process(&self) -> &Server {
        self.instance().process()
    }

    /// Ends every connection and writes everything down.
    fn stop(&mut self) {
        self.instance_mut().take().stop();
    }

    /// As after a crash: it ends at once, and nothing is written down.
    fn kill(&mut self) {
        self.instance_mut().take().kill();
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill), on the
    /// same directory and port.
    fn restart(&mut self);

    fn revive(&mut self) {
        let server = &mut self.instance_mut().server;
        if server.as_mut().expect("it was started").has_ended() {
            *server = None;
            self.restart();
        }
    }

    fn clock(&self) -> &Clock {
        let clock = self.instance().clock.as_ref();
        clock.expect("it has the machine's clock")
    }

    /// The running processes, the first of which is the others' parent.
    fn processes(&self) -> Vec<i32> {
        vec![self.process().id() as i32]
    }
}

/// No value of a block, or one whose epoch no mark has.
fn damaged(block: u64) -> &'static str {
    match block % 2 {
        0 => "{",
        _ => r#"{"hwm_end":"00000000000000000005","epoch":6,"released":true}"#,
    }
}

/// The server that the expression starts; ends the test where it is not installed.
#[macro_export]
macro_rules! started {
    ($start:expr) => {
        match $start {
            Some(server) => server,
            None => return,
        }
    };
}

/// Where `program` is, or none, after saying that this test is skipped for it.
///
/// # Panics
/// When servers are required.
pub fn find(program: &str, package: &str) -> Option<PathBuf> {
    let found = locate(program);
    let lack = format!("{program} is not installed (Debian's package: {package})");
    has(found.is_some(), &lack).then_some(found).flatten()
}

pub fn locate(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(ELSEWHERE[2]).into_iter().flatten().flatten();
    std::env::split_paths(&path)
        .chain(ELSEWHERE.iter().map(PathBuf::from))
        // The newest first.
        .chain({
            let mut versions: Vec<_> = versions.map(|entry| entry.path().join("bin")).collect();
            versions.sort_unstable();
            versions.into_iter().rev()
        })
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// A directory that the server's own user may enter and write.
pub fn directory() -> TempDir {
    open_to_all(TempDir::with_prefix("ringflake-").unwrap())
}

/// The same for a server's data, in memory where there is enough of it: that outlives the
/// server, which is all that a test can do to it, and nobody waits for a disk.
pub fn data_directory() -> TempDir {
    const ENOUGH: u64 = 2 << 30;
    match rustix::fs::statvfs("/dev/shm") {
        Ok(memory) if memory.f_bavail * memory.f_frsize >= ENOUGH => {
            open_to_all(TempDir::with_prefix_in("ringflake-", "/dev/shm").unwrap())
        }
        _ => directory(),
    }
}

fn open_to_all(directory: TempDir) -> TempDir {
    use std::os::unix::fs::PermissionsExt;

    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory.path(), open).unwrap();
    directory
}

/// Makes `command` run as `user` where this process is root: some servers
/// refuse to be.
pub fn as_user(command: &mut Command, user: &str) {
    if !geteuid().is_root() {
        return;
    }
    let number = |flag: &str| -> u32 {
        let id = Command::new("id").args([flag, user]).output().unwrap();
        let text = String::from_utf8(id.stdout).unwrap();
        text.trim()
            .parse()
            .unwrap_or_else(|_| panic!("no user {user}"))
    };
    command.uid(number("-u")).gid(number("-g"));
}

/// Has the kernel kill the process when this one dies.
pub fn end_with_parent(command: &mut Command) {
    let end = || -> io::Result<()> {
        #[cfg(target_os = "linux")]
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: the system call may be made between fork and exec.
    unsafe { command.pre_exec(end) };
}

/// A running server; killed when dropped, and when the process dies.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `command`, with its output in `log`, and waits until `ready`.
    ///
    /// # Panics
    /// With the log, if it ends or is not ready within three minutes: enough for a machine with
    /// ten times the load.
    pub fn start(mut command: Command, log: &Path, mut ready: impl FnMut() -> bool) -> Self {
        let file = File::options().create(true).append(true).open(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        end_with_parent(&mut command);
        let shown = format!("{command:?}");
        let child = spawn(command).unwrap();
        let mut server = Self {
            child,
            log: log.to_owned(),
        };
        let deadline = Instant::now() + Duration::from_secs(180);
        while !ready() {
            let ended = server.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{shown} is not ready ({ended:?}):\n{}",
                server.log()
            );
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Sends it a signal. After `libc::SIGSTOP` all of its threads stand still when this
    /// returns: one that still ran could answer once more.
    pub fn signal(&self, signal: i32) {
        signal_child(self.id() as libc::pid_t, signal);
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn stop(mut self) {
        self.signal(libc::SIGTERM);
        self.child.wait().unwrap();
    }

    /// Asks it to end with this signal, and kills it if it does not in a while.
    pub fn end(mut self, signal: i32) {
        self.signal(signal);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Sends a signal to a child of this process that was not waited for, as
/// [`Server::signal`] does.
pub fn signal_child(process: libc::pid_t, signal: i32) {
    // SAFETY: the child was not waited for, so the number is still its own.
    let sent = unsafe { libc::kill(process, signal) };
    assert_eq!(sent, 0, "signal {signal}");
    if signal == libc::SIGSTOP {
        let process = Pid::from_raw(process).expect("the number of a process");
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(process), options).expect("it stops");
    }
}

/// Starts `command` from a thread that lives as long as the process. The kernel ends a
/// server with the thread that started it, and a [`Lent`] one outlives its first test.
fn spawn(command: Command) -> io::Result<Child> {
    type Asked = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: OnceLock<Mutex<mpsc::Sender<Asked>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, asked) = mpsc::channel::<Asked>();
        thread::spawn(move || {
            for (mut command, answer) in asked {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, child) = mpsc::channel();
    let starter = starter.lock().unwrap_or_else(PoisonError::into_inner);
    starter.send((command, answer)).expect("the thread lives");
    drop(starter);
    child.recv().expect("the thread lives")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
