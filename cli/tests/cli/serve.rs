//! `ringflake serve` as a process: its start, its signals and its end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringflake_kit::server::free_port;
use ringflake_kit::{Logged, assert_says, eventually};

use crate::home::Home;

const TOKEN: &str = "take-0123456789abcdef";
const OTHER_TOKEN: &str = "take-fedcba9876543210";

/// A hang becomes a failure after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server with these options and no other sockets, once it is ready.
fn start(home: &Home, options: &str) -> Logged {
    let serving = spawn(home.command(format!("serve {options}")));
    serving.wait_for("ready");
    serving
}

fn spawn(mut command: Command) -> Logged {
    Logged::spawn(&mut command)
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let stream = BufReader::new(stream);
        Self { stream }
    }

    /// The answer to a command, unless the server has closed the connection.
    fn try_ask(&mut self, command: &str) -> Option<String> {
        let mut request = format!("*{}\r\n", command.split_whitespace().count());
        for word in command.split_whitespace() {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        // One that ends in the middle is none.
        Some(line.strip_suffix("\r\n")?.to_owned())
    }

    #[track_caller]
    fn ask(&mut self, command: &str) -> String {
        let answer = self.try_ask(command);
        answer.unwrap_or_else(|| panic!("no answer to {command:?}"))
    }

    #[track_caller]
    fn take(&mut self) -> String {
        let answer = self.ask("INCR orders");
        assert!(answer.starts_with(':'), "{answer}");
        answer
    }
}

/// No socket but this one, and more time for a clean end than the default on a busy machine.
fn on(port: u16) -> String {
    format!("--http off --resp 127.0.0.1:{port} --drain 60s")
}

/// Writes a file of settings, and returns the option that names it.
fn configure(home: &Home, text: &str) -> String {
    let path = home.path("serve.toml");
    fs::write(&path, text).unwrap();
    format!("--config {path}")
}

/// Runs `command` by this script, which ends in `exec "$@"`, in this shell.
fn in_shell(mut shell: Command, script: &str, command: &Command) -> Command {
    shell.args(["-c", script, "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// How many blocks are held: a line is about each.
fn held_blocks(home: &Home) -> usize {
    let list = home.print("store ls --namespace orders --format json");
    list.lines().count()
}

#[test]
fn who_insists_need_not_wait_for_the_drain() {
    let home = Home::new();
    let (resp, http) = (free_port(), free_port());
    let settings = "limits.request-time = '1h'\n[namespaces.slow]\nplain = true\n\
                    layout = '31/10/3@2024-10-27T03:33:20Z/1s'\nborrow-limit = '1s'";
    let config = configure(&home, settings);
    let options = format!("--resp 127.0.0.1:{resp} --http 127.0.0.1:{http} --drain 1h {config}");
    let mut serving = start(&home, &options);
    let send = |request: &str| {
        let mut stream = Client::connect(http).stream.into_inner();
        let request = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    // There are 256 IDs a second: a request for more holds the end up for minutes.
    let _waiting = send("POST /v1/ids?namespace=slow&count=65536");
    eventually("it has some of its IDs", || {
        let mut metrics = String::new();
        send("GET /metrics").read_to_string(&mut metrics).unwrap();
        let mut lines = metrics.lines();
        let issued = "ringflake_ids_issued_total{namespace=\"slow\"} ";
        lines.any(|line| line.starts_with(issued) && !line.ends_with(" 0"))
    });
    eventually("it ends", || {
        serving.signal(libc::SIGTERM);
        serving.has_ended()
    });
    let log = serving.wait(130);
    assert_says(&log, &["stopping"]);
    assert!(!log.contains("stopped"), "{log}");
}

#[test]
fn a_server_that_ends_gives_its_leases_back() {
    let home = Home::new();
    let port = free_port();
    for round in 0..2 {
        let serving = start(&home, &on(port));
        Client::connect(port).take();
        assert_ne!(held_blocks(&home), 0, "{round}");
        let log = serving.stop();
        assert_eq!(held_blocks(&home), 0, "{log}");
        assert_says(&log, &["stopping signal=\"SIGTERM\"", "clean=true"]);
    }
}

#[test]
fn a_reload_reads_tokens_and_the_level_of_the_log() {
    let home = Home::new();
    let port = free_port();
    let tokens = format!("tokens.take = '{}'\n", home.write_secret("tokens", TOKEN));
    let config = configure(&home, &tokens);
    let serving = start(&home, &format!("{} {config}", on(port)));
    let auth = |token: &str| Client::connect(port).ask(&format!("AUTH {token}"));
    let refused = Client::connect(port).ask("INCR orders");
    assert!(refused.starts_with("-NOAUTH"), "{refused}");
    assert!(auth(OTHER_TOKEN).starts_with("-WRONGPASS"));
    let mut client = Client::connect(port);
    assert_eq!(client.ask(&format!("AUTH {TOKEN}")), "+OK");

    // A replaced file is read without a signal, whatever the settings look like by then.
    configure(&home, "half-writ");
    home.write_secret("tokens", format!("{TOKEN}\n{OTHER_TOKEN}\n"));
    eventually("the other token counts", || auth(OTHER_TOKEN) == "+OK");
    configure(&home, &tokens);
    assert_eq!(auth(TOKEN), "+OK");
    client.take();

    // One that can't be read changes nothing.
    home.write_secret("tokens", "short");
    serving.signal(libc::SIGHUP);
    serving.wait_for("not reloaded");
    client.take();

    // A removed token counts no more, and its connections are closed.
    home.write_secret("tokens", OTHER_TOKEN);
    serving.signal(libc::SIGHUP);
    eventually("the first token counts no more", || {
        auth(TOKEN).starts_with("-WRONGPASS")
    });
    assert_eq!(auth(OTHER_TOKEN), "+OK");
    eventually("its connection is closed", || {
        client.try_ask("INCR orders").is_none()
    });

    // The rest of the file needs a new server, and the line says so; the level does not.
    configure(&home, &format!("{tokens}limits.count = 5\n"));
    serving.signal(libc::SIGHUP);
    serving.wait_for("reloaded needs_restart=\"limits\"");
    configure(&home, &format!("{tokens}log.level = 'error'\n"));
    serving.signal(libc::SIGHUP);
    // It counts before the line would be written.
    home.write_secret("tokens", TOKEN);
    serving.signal(libc::SIGHUP);
    eventually("the tokens are read once more", || auth(TOKEN) == "+OK");
    let log = serving.stop();
    for secret in [TOKEN, OTHER_TOKEN, "short"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(!log.contains("stopped"), "{log}");
}

#[test]
fn a_start_that_fails_tells_no_password() {
    let home = Home::new();
    let text = "[namespaces.a]\nstore = 'redis://:hunter2@a/x'\nplain = true";
    let options = format!("--resp 127.0.0.1:0 --http off {}", configure(&home, text));
    let message = home.refuse(format!("serve --log-level off {options}"));
    assert_says(&message, &["namespace \"a\" can't be opened"]);
    assert!(!message.contains("hunter2"), "{message}");
}

/// A service manager, as far as a server notifies it.
struct Manager(UnixDatagram);

impl Manager {
    /// The server with these options, started by it. With a watchdog, the messages have to
    /// be read all the time.
    fn start(home: &Home, options: &str, watchdog: bool) -> (Self, Logged) {
        let path = home.file("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = home.command(format!("serve {options}"));
        command.env("NOTIFY_SOCKET", &path);
        if watchdog {
            command.env("WATCHDOG_USEC", "200000");
        }
        (Self(socket), Logged::spawn(&mut command))
    }

    /// The next message, of which a line begins like this; signs of life may come before it.
    #[track_caller]
    fn next(&self, word: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "there is no {word}");
            let mut buffer = [0; 512];
            let length = self.0.recv(&mut buffer).unwrap();
            let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
            if message.lines().any(|line| line.starts_with(word)) {
                return message;
            }
            assert_eq!(message, "WATCHDOG=1\n", "before {word}");
        }
    }
}

#[test]
fn a_reload_before_the_first_lease_is_not_ready() {
    let home = Home::new();
    // Its past has to be waited out first.
    let text = "
        [namespaces.orders]
        store = 'sqlite:STORE'
        plain = true
        init-if-new = 'unknown'
        wait = '10ms'
        ";
    let config = configure(&home, &text.replace("STORE", &home.path("waiting.db")));
    let options = format!("{} {config}", on(free_port()));
    let (manager, serving) = Manager::start(&home, &options, false);
    serving.wait_for("not ready");
    serving.signal(libc::SIGHUP);
    serving.wait_for("serve: reloaded");
    serving.signal(libc::SIGTERM);
    manager.next("STOPPING=1");
    serving.wait(0);
}

#[test]
fn signals_before_the_settings_are_read_are_kept() {
    let home = Home::new();
    let (config, next) = (home.file("serve.toml"), home.file("next.toml"));
    let settings = "http.listen = 'off'\nresp.listen = ['127.0.0.1:0']\n";
    fs::write(&next, settings).unwrap();
    let fifo = std::ffi::CString::new(config.to_str().unwrap()).unwrap();
    // SAFETY: it reads a string that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let serving = spawn(home.command(format!("serve --config {}", config.display())));
    // Once this returns, the server reads its settings, and waits for them.
    let mut writer = fs::File::options().write(true).open(&config).unwrap();
    serving.signal(libc::SIGHUP);
    serving.signal(libc::SIGHUP);
    // The reload is to find a file.
    fs::rename(&next, &config).unwrap();
    writer.write_all(settings.as_bytes()).unwrap();
    drop(writer);
    serving.wait_for("ready");
    serving.wait_for("reloaded");
    serving.stop();
}

#[test]
fn settings_from_a_pipe_stay_in_use_at_a_reload() {
    let home = Home::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let settings = "http.listen = 'off'\nresp.listen = ['127.0.0.1:0']\n";
    writer.write_all(settings.as_bytes()).unwrap();
    drop(writer);
    let mut command = home.command("serve --config /dev/stdin");
    command.stdin(reader);
    let serving = spawn(command);
    serving.wait_for("ready");
    serving.signal(libc::SIGHUP);
    serving.wait_for("reloaded");
    assert_says(
        &serving.stop(),
        &["not reloaded", "/dev/stdin: not a regular file"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_data_directory_in_memory_is_refused_in_words_of_the_settings() {
    // Of /dev/shm.
    let home = Home::new();
    let mut command = home.command("serve --resp off --http 127.0.0.1:0");
    command.env_remove("RINGFLAKE_BEST_EFFORT");
    let log = spawn(command).wait(1);
    assert_says(&log, &["data-dir", "best-effort = true"]);
    assert!(!log.contains("Local::"), "{log}");
}

/// A server without options in a network of its own, with IPv6 or without; none where this
/// process may not make one.
fn serve_in_own_network(home: &Home, disable_ipv6: u8) -> Option<Logged> {
    let script = format!(
        "ip link set lo up && echo {disable_ipv6} >/proc/sys/net/ipv6/conf/lo/disable_ipv6 && \
         exec \"$@\""
    );
    let in_network = |command: &Command| {
        let mut shell = Command::new("unshare");
        shell.args(["--net", "sh"]);
        in_shell(shell, &script, command)
    };
    let tried = in_network(&Command::new("true"))
        .stderr(Stdio::null())
        .status();
    let is_made = tried.is_ok_and(|status| status.success());
    if !ringflake_kit::has(is_made, "no network of its own can be made here") {
        return None;
    }
    Some(spawn(in_network(&home.command("serve"))))
}

#[test]
fn both_addresses_of_localhost_are_served_where_the_machine_has_both() {
    for (disable_ipv6, is_there) in [(0, true), (1, false)] {
        let home = Home::new();
        let Some(serving) = serve_in_own_network(&home, disable_ipv6) else {
            return;
        };
        serving.wait_for("ready");
        let log = serving.stop();
        for port in [6379, 7464] {
            assert_says(&log, &[&format!("address=127.0.0.1:{port}")]);
            let found = log.contains(&format!("address=[::1]:{port}"));
            assert_eq!(found, is_there, "{log}");
        }
    }
}

#[test]
fn a_server_whose_disk_is_full_is_not_ready() {
    let home = Home::new();
    let data = home.data_dir();
    fs::create_dir_all(&data).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k,mode=700 none '{}' && exec \"$@\"",
        data.display()
    );
    let on_small_disk = |command: &Command| {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh"]);
        in_shell(shell, &script, command)
    };
    let tried = on_small_disk(&Command::new("true"))
        .stderr(Stdio::null())
        .status();
    let is_mounted = tried.is_ok_and(|status| status.success());
    if !ringflake_kit::has(is_mounted, "no disk of its own can be mounted here") {
        return;
    }
    let serve = home.command(format!("serve --best-effort {}", on(free_port())));
    let serving = spawn(on_small_disk(&serve));
    serving.wait_for("ready");
    let filler = format!("/proc/{}/root{}/filler", serving.id(), data.display());
    fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    serving.wait_for("the data directory can't be used");
    serving.wait_for("not ready: the data directory can't be");
    assert_says(&serving.stop(), &["No space left on device"]);
}

#[test]
fn the_service_manager_is_told_of_each_turn() {
    let home = Home::new();
    let (manager, serving) = Manager::start(&home, &on(free_port()), true);
    let told = |word: &str| manager.next(word);
    told("READY=1");
    assert_eq!(told("WATCHDOG=1"), "WATCHDOG=1\n");
    serving.signal(libc::SIGHUP);
    assert_says(&told("RELOADING=1"), &["MONOTONIC_USEC="]);
    told("READY=1");
    fs::rename(home.data_dir(), home.file("away")).unwrap();
    told("STATUS=not ready: *: the data directory can't be");
    fs::rename(home.file("away"), home.data_dir()).unwrap();
    told("READY=1");
    serving.signal(libc::SIGTERM);
    told("STOPPING=1");
    serving.wait(0);
}

#[test]
fn a_start_that_waits_for_a_store_ends_at_a_signal() {
    let home = Home::new();
    let store = format!("store = 'redis://127.0.0.1:{}'", free_port());
    let text = format!("[namespaces.orders]\n{store}\nplain = true\nwait = '30s'");
    let options = format!("{} {}", on(free_port()), configure(&home, &text));
    let serving = spawn(home.command(format!("serve {options}")));
    serving.wait_for("waiting for stores");
    serving.signal(libc::SIGTERM);
    let log = serving.wait(0);
    assert_says(
        &log,
        &["stopping signal=\"SIGTERM\"", "stopped during the start"],
    );
    assert!(!log.contains("serving"), "{log}");
}

/// `ringflake serve`, with this socket as the one of a service manager.
fn serve_on(home: &Home, socket: &impl AsFd) -> Command {
    // By a number that is not the one at which it is handed over, and so is closed there.
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: numbers.
    let socket = unsafe { libc::fcntl(socket, libc::F_DUPFD_CLOEXEC, 10) };
    assert_ne!(socket, -1, "{}", std::io::Error::last_os_error());
    // SAFETY: nobody else knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // The number of the process is known when it runs.
    let script = "LISTEN_PID=$$ exec \"$@\"";
    let mut command = in_shell(
        Command::new("sh"),
        script,
        &home.command("serve --http off"),
    );
    command
        .envs([("LISTEN_FDS", "1"), ("LISTEN_FDNAMES", "resp")])
        .stdin(Stdio::null());
    // 3 is the first number that is handed over.
    let hand_over = move || {
        // SAFETY: two numbers; the command has the socket.
        match unsafe { libc::dup2(socket.as_raw_fd(), 3) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: it makes one system call, allocates nothing and takes no lock.
    unsafe { command.pre_exec(hand_over) };
    command
}

#[test]
fn sockets_of_the_service_manager_are_served() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = Logged::spawn(&mut serve_on(&home, &listener));
    serving.wait_for("ready");
    Client::connect(port).take();
    let log = serving.stop();
    assert_says(&log, &[&format!("127.0.0.1:{port}")]);
    // In place of the default.
    assert!(!log.contains(":6379"), "{log}");
}

#[test]
fn a_connection_of_the_service_manager_is_no_socket_to_listen_on() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let serving = Logged::spawn(&mut serve_on(&home, &client));
    serving.wait_for("Accept=no");
    serving.wait(1);
}

#[cfg(target_os = "linux")]
#[test]
fn it_may_have_as_many_files_open_as_it_may_ask_for() {
    let home = Home::new();
    let serve = home.command(format!("serve {}", on(free_port())));
    let script = "ulimit -Sn 64 && exec \"$@\"";
    let serving = spawn(in_shell(Command::new("sh"), script, &serve));
    serving.wait_for("ready");
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let files: Vec<_> = files.unwrap().split_whitespace().collect();
    assert_eq!(files[3], files[4], "{limits}");
    assert_ne!(files[3], "64", "{limits}");
    serving.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn fewer_connections_than_the_default_are_no_warning() {
    for (settings, level) in [("", "INFO"), ("limits.connections = 5000", "WARN")] {
        let home = Home::new();
        let config = configure(&home, settings);
        let serve = home.command(format!("serve {} {config}", on(free_port())));
        let script = "ulimit -n 1024 && exec \"$@\"";
        let serving = spawn(in_shell(Command::new("sh"), script, &serve));
        serving.wait_for("ready");
        let log = serving.stop();
        let mut lines = log
            .lines()
            .filter(|line| line.contains("limits.connections"));
        assert!(lines.next().is_some_and(|it| it.contains(level)), "{log}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn without_files_left_it_says_so_once_and_goes_on_when_there_are_some() {
    let home = Home::new();
    let (resp, http) = (free_port(), free_port());
    // Connections that send nothing stay open, however long it takes to open all of them.
    let config = configure(&home, "limits.request-time = '1h'");
    let options = format!("--resp 127.0.0.1:{resp} --http 127.0.0.1:{http} {config}");
    let serving = start(&home, &options);
    let few = libc::rlimit {
        rlim_cur: 64,
        rlim_max: 64,
    };
    let process = libc::pid_t::try_from(serving.id()).unwrap();
    // SAFETY: it reads a number of this process, and asks for no old ones.
    let done = unsafe { libc::prlimit(process, libc::RLIMIT_NOFILE, &few, std::ptr::null_mut()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    for (protocol, port) in [("resp", resp), ("http", http)] {
        let said = format!("accept connections; retrying protocol=\"{protocol}\"");
        let connect = |_| TcpStream::connect(("127.0.0.1", port)).unwrap();
        let waiting: Vec<_> = (0..80).map(connect).collect();
        serving.wait_for(&said);
        drop(waiting);
        // Among others.
        let waiting: Vec<_> = (0..80).map(connect).collect();
        drop(waiting);
        // The first take opens the files of its namespace, and connections that were dropped may
        // still have theirs.
        eventually("an ID is given again", || {
            let answer = Client::connect(resp).try_ask("INCR orders");
            answer.is_some_and(|answer| answer.starts_with(':'))
        });
        assert_eq!(serving.log().matches(&said).count(), 1);
    }
    serving.stop();
}

#[test]
fn the_log_is_an_object_on_each_line() {
    let home = Home::new();
    let port = free_port();
    let serving = start(&home, &format!("{} --log-format json", on(port)));
    let mut client = Client::connect(port);
    let id = client.take();
    // Text from a client stays one value on one line.
    client.ask("INCR No\"name\u{7}");
    let log = serving.stop();
    let messages: Vec<_> = log
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(event["level"].is_string() && event["timestamp"].is_string());
            event["message"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_says(
        &messages.join("\n"),
        &[
            "listening",
            "serving\nready",
            "a namespace is open",
            "stopping",
            "stopped",
        ],
    );
    assert!(!log.contains(&id[1..]), "an ID is in the log");
}
