//! How many `INCR` a second does a server of the Redis protocol answer, and what does one of
//! them cost it?
//!
//! `load` asks over some connections, each with a pipeline of some depth: it writes the same
//! bytes again and again, one connection after the other, and waits only for replies that
//! are not there yet. That is two system calls for a pipeline and some nanoseconds for a
//! reply, much less than `redis-benchmark` spends. When the clock has stopped, all integers
//! are sorted: none came twice. It prints requests a second, and the microseconds of
//! processor time that the server, whose process is `PID`, and the loader spent on each.
//!
//! `null` answers `:1` to each request without looking at it: a server that costs nothing
//! but its system calls, and so the limit of whatever asks it. `ask` is `load` without the
//! check, for that server.
//!
//! ```text
//! cargo bench -p ringflake-server --bench resp -- load ADDRESS CONNECTIONS DEPTH REQUESTS PID
//! cargo bench -p ringflake-server --bench resp -- ask ADDRESS CONNECTIONS DEPTH REQUESTS PID
//! cargo bench -p ringflake-server --bench resp -- null ADDRESS SOCKET
//! ```
//!
//! An address has a colon; what has none is a Unix socket. `../../benches/serve.sh` compares
//! `ringflake serve`, `redis-server` and `null` so.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};

const REQUEST: &[u8] = b"*2\r\n$4\r\nINCR\r\n$5\r\nbench\r\n";
/// A server that says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    match *given {
        [
            how @ ("load" | "ask"),
            address,
            connections,
            depth,
            requests,
            pid,
        ] => {
            let number = |text: &str| text.parse().expect("a number");
            let [connections, depth] = [connections, depth].map(number);
            let mut ids = load(address, connections, depth, number(requests), pid);
            if how == "load" {
                ids.sort_unstable();
                assert!(ids.is_sorted_by(|a, b| a < b), "an integer came twice");
            }
        }
        ["null", address, socket] => null(address, socket),
        _ => println!("nothing is asked for: the head of benches/resp.rs says what can be"),
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(address: &str) -> Box<dyn Stream> {
    if address.contains(':') {
        let stream = TcpStream::connect(address).expect("a server listens there");
        stream.set_nodelay(true).expect("a socket of TCP");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        Box::new(stream)
    } else {
        let stream = UnixStream::connect(address).expect("a server listens there");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        Box::new(stream)
    }
}

fn load(address: &str, connections: usize, depth: usize, requests: usize, pid: &str) -> Vec<i64> {
    let rounds = requests.div_ceil(connections * depth);
    let requests = rounds * connections * depth;
    let pipeline = REQUEST.repeat(depth);
    let mut streams: Vec<_> = (0..connections).map(|_| connect(address)).collect();
    let mut ids = Vec::with_capacity(requests);
    let mut room = vec![0; 32 * depth];
    let before = [pid, "self"].map(spent);
    let start = Instant::now();
    for stream in &mut streams {
        stream.write_all(&pipeline).expect("a server that reads");
    }
    for round in 1..=rounds {
        for stream in &mut streams {
            receive(stream, depth, &mut room, &mut ids);
            if round < rounds {
                stream.write_all(&pipeline).expect("a server that reads");
            }
        }
    }
    let time = start.elapsed();
    let after = [pid, "self"].map(spent);
    let micros = |of: usize| (after[of] - before[of]).as_secs_f64() * 1e6 / requests as f64;
    let rate = requests as f64 / time.as_secs_f64();
    println!("{rate:.0} {:.4} {:.4}", micros(0), micros(1));
    assert_eq!(ids.len(), requests);
    ids
}

fn receive(stream: &mut dyn Stream, depth: usize, room: &mut [u8], ids: &mut Vec<i64>) {
    let (mut length, mut lines) = (0, 0);
    while lines < depth {
        let more = stream.read(&mut room[length..]).expect("replies in time");
        assert_ne!(more, 0, "the server has closed a connection");
        let new = &room[length..length + more];
        lines += new.iter().filter(|&&byte| byte == b'\n').count();
        length += more;
    }
    let (mut number, mut sign) = (0_i64, 1);
    for &byte in &room[..length] {
        match byte {
            b'0'..=b'9' => number = number * 10 - i64::from(byte - b'0'),
            b'-' => sign = -1,
            b':' => (number, sign) = (0, 1),
            b'\r' => {}
            // It was built below zero, where one more has room.
            b'\n' => ids.push(if sign < 0 { number } else { -number }),
            _ => panic!("no integer: {}", room[..length].escape_ascii()),
        }
    }
}

/// The processor time of all threads of a process.
fn spent(pid: &str) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process of Linux");
    let nanos = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

#[tokio::main(flavor = "current_thread")]
async fn null(address: &str, socket: &str) {
    let tcp = TcpListener::bind(address).await.expect("it is free");
    let unix = UnixListener::bind(socket).expect("it is free");
    loop {
        tokio::select! {
            Ok((stream, _)) = tcp.accept() => {
                stream.set_nodelay(true).expect("a TCP socket");
                tokio::spawn(echo(stream));
            }
            Ok((stream, _)) = unix.accept() => drop(tokio::spawn(echo(stream))),
        }
    }
}

/// Answers all requests until the client closes.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut input = vec![0; 64 << 10];
    let replies = b":1\r\n".repeat(input.len());
    loop {
        let mut buffer = ReadBuf::new(&mut input);
        let read = poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await;
        let requests = buffer.filled().iter().filter(|&&byte| byte == b'*').count();
        if read.is_err() || buffer.filled().is_empty() {
            return;
        }
        let mut rest = &replies[..4 * requests];
        while !rest.is_empty() {
            match poll_fn(|context| Pin::new(&mut stream).poll_write(context, rest)).await {
                Ok(written @ 1..) => rest = &rest[written..],
                Ok(0) | Err(_) => return,
            }
        }
    }
}
