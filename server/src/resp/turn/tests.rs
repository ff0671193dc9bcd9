//! Sessions without sockets: lines in, replies out.

mod figures;
mod transactions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake::{CachedGenerator, Layout, StaticLease};
use ringflake_kit::events::said;

use super::*;
use crate::access::Access;
use crate::clients::Client;
use crate::namespaces::Namespaces;
use crate::namespaces::tests::generator;
use crate::resp::context::{Announced, Shared};
use crate::resp::decode::tests::cut;
use crate::resp::reply::Rejection;
use crate::setup::Setup;

struct Bench {
    session: Session,
    context: WorkerContext,
    opened: Vec<String>,
}

impl Bench {
    fn new(rights: Arc<Access>) -> Self {
        Self::of(rights, generator)
    }

    fn of(rights: Arc<Access>, build: fn() -> CachedGenerator) -> Self {
        let namespaces = Namespaces::new(Box::new(move |_| Ok(build())), 8);
        let mut setup = Setup::of(rights, namespaces);
        setup.limits.count = 10_000;
        setup.limits.request_bytes = 4_096;
        let shared = Arc::new(Shared::new(setup));
        Self {
            session: Session::new(7, "192.0.2.1:5".to_owned(), Client::User(None), &shared),
            context: WorkerContext::new(shared, 0),
            opened: Vec::new(),
        }
    }

    /// With an address for cluster clients, and a prefix of keys.
    fn announcing() -> Self {
        let mut bench = Self::new(Access::open());
        let shared = Arc::get_mut(&mut bench.context.shared).unwrap();
        shared.announced = Announced::new("ids.example.com:6380");
        shared.setup.config.key_prefix = "app:".to_owned();
        bench
    }

    /// One turn: how many bytes it answers, what comes next, and the replies.
    fn turn(&mut self, input: &[u8]) -> (usize, NextAction, Vec<u8>) {
        let mut output = Vec::new();
        let (used, next) = self.session.turn(input, &mut self.context, &mut output);
        (used, next, output)
    }

    fn answer(&mut self, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            loop {
                let (used, next, replies) = self.turn(&input);
                input.drain(..used);
                output.extend(replies);
                match next {
                    NextAction::Input => break,
                    NextAction::Turn | NextAction::Delay => {}
                    NextAction::Close | NextAction::Drop => return (output, false),
                    NextAction::Open(name) => {
                        self.context.shared.setup.namespaces.open(&name).unwrap();
                        self.opened.push(name);
                    }
                }
            }
        }
        (output, true)
    }

    fn lines(&mut self, lines: &str) -> Vec<OwnedFrame> {
        let lines = lines.replace('\n', "\r\n") + "\r\n";
        frames(&self.answer(&[lines.as_bytes()]).0)
    }

    #[track_caller]
    fn line(&mut self, line: &str) -> OwnedFrame {
        let mut replies = self.lines(line);
        assert_eq!(replies.len(), 1, "{line}: {replies:?}");
        replies.remove(0)
    }

    /// Sends each line of a table of `line => reply`. A `*` stands for any text.
    #[track_caller]
    fn check(&mut self, table: &str) {
        for row in table.trim().lines() {
            let (line, expected) = row.trim().split_once(" => ").expect(row);
            let found = shown(&self.line(line));
            assert!(is_like(&found, expected), "{row}\nfound {found}");
        }
    }

    fn ids(&self) -> u64 {
        self.context.shared.setup.counters[1].ids.load(Relaxed)
    }
}

fn frames(mut bytes: &[u8]) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    while let Some((frame, used)) = decode(bytes).unwrap() {
        frames.push(frame);
        bytes = &bytes[used..];
    }
    assert_eq!(bytes, b"");
    frames
}

/// A reply as a table has it: `+simple`, `-error`, `:7`, `"bulk"`, `null`, `[a, b]`.
fn shown(reply: &OwnedFrame) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match reply {
        OwnedFrame::SimpleString(line) => format!("+{}", text(line)),
        OwnedFrame::Error(line) => format!("-{line}"),
        OwnedFrame::Integer(number) => format!(":{number}"),
        OwnedFrame::BulkString(bytes) => format!("{:?}", text(bytes)),
        OwnedFrame::Null => "null".to_owned(),
        OwnedFrame::Array(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn all_shown(replies: &[OwnedFrame]) -> Vec<String> {
    replies.iter().map(shown).collect()
}

fn is_like(found: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return found == pattern;
    };
    found.strip_prefix(start).is_some_and(|found| {
        let mut ends = (0..=found.len()).filter_map(|at| found.get(at..));
        ends.any(|end| is_like(end, rest))
    })
}

/// The items of a list, or the text of a string.
fn texts(reply: &OwnedFrame) -> Vec<String> {
    match reply {
        OwnedFrame::Array(items) => items.iter().flat_map(texts).collect(),
        OwnedFrame::BulkString(text) => vec![String::from_utf8(text.clone()).unwrap()],
        OwnedFrame::Integer(number) => vec![number.to_string()],
        other => panic!("{other:?}"),
    }
}

fn is_integer(reply: &OwnedFrame) -> bool {
    matches!(reply, OwnedFrame::Integer(_))
}

/// A generator of 16 IDs a second, and ten seconds ahead of the clock at most.
fn slow() -> CachedGenerator {
    // A node that no other of this process has.
    static NEXT: AtomicU64 = AtomicU64::new(400);
    let node = NEXT.fetch_add(1, Relaxed);
    let layout = Layout::builder()
        .bits(46, 14, 4)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap();
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, node..node + 1))
        .capacity(64)
        .borrow_limit(Duration::from_secs(10))
        .build()
        .unwrap()
}

#[test]
fn incr_and_lpop_name_ids_alike() {
    let mut bench = Bench::new(Access::open());
    let takes = ["INCR ns", "lpop ns", "LPOP ns 20", "RINGFLAKE.TAKE ns 20"];
    let ids: Vec<_> = takes
        .iter()
        .flat_map(|take| texts(&bench.line(take)))
        .collect();
    assert_eq!(ids.len(), 42);
    let inspect = |id| texts(&bench.line(&format!("RINGFLAKE.INSPECT ns {id}")));
    let mut raws: Vec<_> = ids.iter().map(inspect).collect();
    for parts in &raws {
        let names: Vec<_> = parts.iter().step_by(2).collect();
        assert_eq!(names, ["tick", "unix_ms", "node", "sequence"]);
    }
    raws.sort();
    raws.dedup();
    assert_eq!(raws.len(), 42);
    assert_eq!(bench.opened, ["ns"]);
}

#[test]
fn each_form_of_an_id_is_inspected_alike() {
    let mut bench = Bench::new(Access::open());
    for (take, read) in [
        ("decimal", "decimal"),
        ("unsigned", "decimal"),
        ("integer", "decimal"),
        ("TEXT", "text"),
    ] {
        let id = texts(&bench.line(&format!("RINGFLAKE.TAKE ns 1 FORMAT {take}"))).remove(0);
        let parts = texts(&bench.line(&format!("RINGFLAKE.INSPECT ns {id} FORMAT {read}")));
        assert_eq!(parts.len(), 8, "{take}");
    }
    bench.check(
        "RINGFLAKE.TAKE ns 1 FORMAT hex => -ERR *'hex'*
         RINGFLAKE.INSPECT ns x1 => -ERR this is no ID*",
    );
}

#[test]
fn a_pipeline_of_takes_is_one_batch() {
    let mut bench = Bench::new(Access::open());
    let replies = bench.lines("INCR ns\nINCRBY ns 1\nINCR other\nLPOP ns");
    assert_eq!(replies.len(), 4);
    // All that came are one run, but for the budget.
    let many = "INCR ns\r\n".repeat(REQUESTS);
    let (used, next, output) = bench.turn(many.as_bytes());
    assert_eq!((used, next), (many.len(), NextAction::Turn));
    assert_eq!(frames(&output).len(), REQUESTS);
    assert_eq!(bench.turn(b""), (0, NextAction::Input, Vec::new()));
}

#[test]
fn a_request_behind_an_empty_line_is_decoded_anew() {
    // The bytes before the second one are an end of the first, with the empty line.
    let replies = Bench::new(Access::open()).lines("INCR ns\n\nCR ns\n");
    assert!(is_integer(&replies[0]), "{replies:?}");
    assert!(shown(&replies[1]).contains("unknown command 'CR'"));
}

#[test]
fn takes_of_two_forms_are_answered_each_in_its_own() {
    let replies = Bench::new(Access::open()).lines("INCR ns\nLPOP ns\nLPOP ns\nINCR ns");
    let integers: Vec<_> = replies.iter().map(is_integer).collect();
    assert_eq!(integers, [true, false, false, true], "{replies:?}");
}

#[test]
fn names_are_compared_whole_and_without_their_prefix() {
    let mut bench = Bench::announcing();
    bench.lines("INCR orders\nINCR order\nINCR app:orders\nINCR orders2\nLPOP app:order 2");
    assert_eq!(bench.opened, ["orders", "order", "orders2"]);
    for name in ["x".repeat(65).as_bytes(), b"\xff"] {
        let line = [b"INCR ", name, b"\r\nLPOP ", name, b" 2\r\n"].concat();
        let replies = all_shown(&frames(&bench.answer(&[&line]).0));
        assert_eq!(replies.len(), 2);
        assert!(replies.iter().all(|reply| reply.contains("1 to 64 bytes")));
    }
    assert_eq!(bench.opened.len(), 3);
}

#[test]
fn a_key_with_a_colon_is_refused_with_the_settings_that_take_it() {
    let mut bench = Bench::new(Access::open());
    for line in [
        "INCR app:orders",
        "LPOP app:orders 2",
        "RINGFLAKE.TAKE app:orders 2",
        "RINGFLAKE.INSPECT app:orders 1",
    ] {
        bench.check(&format!(
            "{line} => -ERR namespace name \"app:orders\" contains ':', which is not allowed: use \
             \"app.orders\", or set resp.replace-colons = \".\" in the server's configuration, or \
             resp.key-prefix = \"app:\" to strip that from all keys"
        ));
    }
    // As a prefix, the second one would leave nothing.
    bench.check(
        "INCR app:eu:orders => -ERR *use \"app.eu.orders\"*, or resp.key-prefix = \"app:eu:\" to*
         INCR orders: => -ERR *use \"orders.\", or set resp.replace-colons = * configuration",
    );
    assert!(bench.opened.is_empty(), "{:?}", bench.opened);

    let mut bench = Bench::announcing();
    bench.check(
        "INCR app:eu:orders => -ERR *name \"eu:orders\"*use \"eu.orders\", or set * configuration",
    );
    assert!(bench.opened.is_empty(), "{:?}", bench.opened);

    Arc::get_mut(&mut bench.context.shared)
        .unwrap()
        .setup
        .config
        .colon = Some('.');
    bench.lines("INCR app:eu:orders\nLPOP eu.orders 2\nINCR eu:orders\nRINGFLAKE.TAKE a:b: 1");
    assert_eq!(bench.opened, ["eu.orders", "a.b."]);
}

#[test]
fn a_command_gets_all_of_its_arguments_or_none() {
    let docs = |count| format!("COMMAND DOCS{}", " x".repeat(count));
    let most = crate::resp::decode::KEPT - 2;
    Bench::new(Access::open()).check(&format!(
        "{} => []\n{} => -ERR wrong number of arguments*",
        docs(most),
        docs(most + 1)
    ));
}

#[test]
fn takes_that_get_nothing_are_refused_one_by_one() {
    let mut bench = Bench::of(Access::open(), slow);
    bench.line("INCR ns");
    let replies = all_shown(&bench.lines(&["INCR ns"; REQUESTS].join("\n")));
    assert_eq!(replies.len(), REQUESTS);
    // Those in front have what there was.
    let given = replies.iter().take_while(|it| it.starts_with(':')).count();
    let mut refused = replies[given..].iter();
    assert!(given < REQUESTS && refused.all(|reply| reply.starts_with("-TRYAGAIN ")));
}

#[test]
fn fewer_ids_are_a_list_and_none_an_error() {
    let began = Instant::now();
    let mut bench = Bench::of(Access::open(), slow);
    bench.line("INCR ns");
    let mut taken = Vec::new();
    // All that there are for now; in a later second there are more.
    let error = loop {
        match bench.line("LPOP ns 1000") {
            OwnedFrame::Error(error) => break error,
            list => taken.push(texts(&list).len()),
        }
    };
    assert!(error.starts_with("TRYAGAIN "), "{error}");
    // Ten seconds of sixteen, the one that is running, and those that ended meanwhile.
    let seconds = 10 + 1 + 1 + began.elapsed().as_secs() as usize;
    assert!((1..=16 * seconds).contains(&taken[0]), "{taken:?}");
    assert!(taken.iter().all(|&count| count > 0), "{taken:?}");
}

#[test]
fn half_a_request_behind_a_take_waits_with_it() {
    // The take's namespace is to be opened when half of the next request is decoded.
    let pieces = [&b"INCR new\r\n*2\r\n$4\r\nECHO\r\n$2\r\n"[..], b"ab\r\n"];
    let (output, goes_on) = Bench::new(Access::open()).answer(&pieces);
    let replies = frames(&output);
    assert!(goes_on && is_integer(&replies[0]), "{replies:?}");
    assert_eq!(all_shown(&replies[1..]), ["\"ab\""]);
}

#[test]
fn a_turn_ends_at_its_budget() {
    let mut bench = Bench::new(Access::open());
    let many = "PING\r\n".repeat(3 * REQUESTS);
    let (used, next, _) = bench.turn(many.as_bytes());
    assert_eq!((used, next), (REQUESTS * 6, NextAction::Turn));
    bench.line("INCR ns");
    let long = "LPOP ns 2048\r\n".repeat(8);
    let (used, next, _) = bench.turn(long.as_bytes());
    assert!(next == NextAction::Turn && used < long.len());
}

#[test]
fn a_token_that_is_too_long_to_be_one_is_wrong() {
    let mut bench = Bench::new(Access::open());
    let longest = "t".repeat(512);
    bench.check(&format!(
        "AUTH {longest}t => -WRONGPASS *\nHELLO 3 AUTH u {longest}t => -WRONGPASS *"
    ));
    assert_eq!(bench.session.token(), None);
    bench.check(&format!("AUTH {longest} => +OK"));
    assert_eq!(bench.session.token(), Some(longest.as_bytes()));
}

#[test]
fn a_client_without_a_token_can_authenticate_and_nothing_else() {
    let mut bench = Bench::new(Access::by_name());
    bench.check(
        "PING => -NOAUTH Authentication required.
         INCR ns => -NOAUTH Authentication required.
         INFO => -NOAUTH Authentication required.
         CLIENT ID => -NOAUTH Authentication required.
         RINGFLAKE.STATS => -NOAUTH Authentication required.
         LPOP ns 3 => -NOAUTH Authentication required.
         MULTI => -NOAUTH Authentication required.
         HELLO 3 => -NOAUTH HELLO must be called*
         AUTH nobody => -WRONGPASS *
         HELLO 2 AUTH default nobody => -WRONGPASS *",
    );
    assert_eq!(bench.opened, [""; 0]);
    let quit = bench.answer(&[b"QUIT\r\nPING\r\n"]);
    assert_eq!(quit, (b"+OK\r\n".to_vec(), false));
}

#[test]
fn a_request_before_authentication_is_short() {
    let mut bench = Bench::new(Access::by_name());
    let part = [b"*1\r\n$2000\r\n", &[b'x'; 1_100][..]].concat();
    let (output, goes_on) = bench.answer(&[&part]);
    assert!(!goes_on);
    assert!(output.starts_with(b"-ERR Protocol error: a request has at most 1024 bytes"));
    // The longest token fits, and requests are longer then.
    let mut bench = Bench::new(Access::by_name());
    let (token, text) = ("t".repeat(512), "x".repeat(3_000));
    bench.check(&format!(
        "HELLO 3 AUTH default {token} => -WRONGPASS *
         AUTH take => +OK
         ECHO {text} => {text:?}
         RESET => +RESET"
    ));
    assert!(!bench.answer(&[&part]).1);
}

#[test]
fn failed_authentications_are_delayed_and_one_line_of_the_log_for_each_client() {
    let mut bench = Bench::new(Access::by_name());
    let guesses = ["AUTH guess\r\nAUTH guess\r\n", "HELLO 3 AUTH x guess\r\n"];
    for peer in ["192.0.2.1:5", "192.0.2.2:5"] {
        let address: SocketAddr = peer.parse().unwrap();
        let client = address.ip().into();
        bench.session = Session::new(7, peer.to_owned(), client, &bench.context.shared);
        let lines = said(|| {
            let next = guesses.map(|guess| bench.turn(guess.as_bytes()).1);
            assert_eq!(next, [NextAction::Delay, NextAction::Delay]);
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(peer), "{lines:?}");
        assert!(!lines[0].contains("guess"), "{lines:?}");
    }
    assert_eq!(bench.turn(b"AUTH take\r\n").1, NextAction::Input);
    let counted = &bench.context.shared.setup.counters[1].auth_failures;
    assert_eq!(counted.load(Relaxed), 4);
}

#[test]
fn a_header_of_the_proxy_protocol_gets_no_reply() {
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
    let v1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n";
    for header in [&v1[..], v2] {
        let whole = [header, b"INCR ns\r\n"].concat();
        for pieces in [vec![&whole[..]], whole.chunks(1).collect()] {
            let answer = Bench::new(Access::open()).answer(&pieces);
            assert_eq!(answer, (Vec::new(), false));
        }
    }
    // Anywhere else it is a request like any other, and empty lines are none.
    let (output, goes_on) = Bench::new(Access::open()).answer(&[b"\r\n", b"\r\nPING\r\n", v1]);
    assert!(goes_on && output.starts_with(b"+PONG\r\n-ERR unknown command 'PROXY'"));
}

#[test]
fn a_browser_is_closed_before_its_body_is_read() {
    for (line, count) in [("POST", 1), ("GET", 2), ("PUT", 2)] {
        let mut bench = Bench::new(Access::open());
        let head = format!("{line} / HTTP/1.1\r\nHost: localhost:6379\r\n\r\n");
        let body = b"*2\r\n$4\r\nINCR\r\n$2\r\nns\r\nINCR ns\r\n";
        let (output, goes_on) = bench.answer(&[head.as_bytes(), body]);
        let replies = all_shown(&frames(&output));
        assert_eq!((replies.len(), goes_on, bench.ids()), (count, false, 0));
        assert!(
            replies[count - 1].contains("not HTTP"),
            "{line}: {replies:?}"
        );
    }
}

#[test]
fn a_namespace_that_can_not_be_opened_is_tried_again() {
    let mut bench = Bench::new(Access::open());
    let input = b"INCR later\r\nINCR later\r\nPING\r\n";
    let open = NextAction::Open("later".to_owned());
    assert_eq!(bench.turn(input), (0, open, Vec::new()));
    bench
        .session
        .open_failed("later".to_owned(), Rejection::CANNOT_OPEN);
    let (used, next, replies) = bench.turn(input);
    assert_eq!((used, next), (input.len(), NextAction::Input));
    let replies = all_shown(&frames(&replies));
    assert!(
        replies[..2].iter().all(|it| it.starts_with("-TRYAGAIN ")),
        "{replies:?}"
    );
    assert_eq!(replies[2], "+PONG");
    bench.check("INCR later => :*");
}

#[test]
fn a_token_gives_the_rights_that_it_has() {
    let mut bench = Bench::new(Access::by_name());
    bench.context.shared.setup.namespaces.open("ns").unwrap();
    bench.check(
        "AUTH default take => +OK
         PING => +PONG
         INCR ns => :*
         LPOP ns 2 => [*]
         RINGFLAKE.INSPECT ns 5 => -NOPERM *
         RINGFLAKE.STATS => -NOPERM *
         RINGFLAKE.STATS ns => -NOPERM *
         AUTH default inspect => +OK
         INCR ns => -NOPERM *
         LPOP ns 2 => -NOPERM *
         RINGFLAKE.INSPECT ns 5 => [*, :5]
         RINGFLAKE.STATS => -NOPERM *
         AUTH default admin => +OK
         INCR ns => -NOPERM *
         RINGFLAKE.INSPECT ns 5 => -NOPERM *
         RINGFLAKE.STATS => [*]
         RINGFLAKE.STATS ns => [*]
         RESET => +RESET
         PING => -NOAUTH *",
    );
}

#[test]
fn hello_chooses_the_protocol_and_names_the_client() {
    let mut bench = Bench::new(Access::by_name());
    let (reply, _) = bench.answer(&[b"HELLO 3 AUTH default take SETNAME me\r\n"]);
    assert!(reply.starts_with(b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    // A map is a list for the older protocol. Both name one version.
    bench.check(
        "CLIENT GETNAME => \"me\"
         HELLO 4 => -NOPROTO *
         HELLO 2 WHAT => -ERR *'WHAT'*",
    );
    let hello = texts(&bench.line("HELLO 2"));
    assert_eq!((hello.len(), &*hello[2]), (13, "version"));
    // The oldest one with which redis-py uses its cache.
    assert_eq!(hello[3], "7.4.0");
    let info = texts(&bench.line("INFO server")).remove(0);
    assert!(info.contains(&format!("\r\nredis_version:{}\r\n", hello[3])));
}

#[test]
fn a_protocol_is_kept_until_a_reset() {
    let mut bench = Bench::new(Access::open());
    for (lines, reply) in [
        (&b"CLIENT GETNAME\r\n"[..], &b"$-1\r\n"[..]),
        (b"HELLO 3\r\nCLIENT GETNAME\r\n", b"_\r\n"),
        (b"HELLO\r\nCLIENT GETNAME\r\n", b"_\r\n"),
        // At once, and from then on.
        (b"RESET\r\nCLIENT GETNAME\r\n", b"+RESET\r\n$-1\r\n"),
        (b"CLIENT GETNAME\r\n", b"$-1\r\n"),
    ] {
        assert!(bench.answer(&[lines]).0.ends_with(reply));
    }
}

#[test]
fn what_clients_send_on_their_own_is_answered() {
    let mut bench = Bench::new(Access::open());
    bench.check(
        r#"CLIENT SETNAME me => +OK
        CLIENT SETINFO LIB-NAME redis-py => +OK
        CLIENT SETINFO lib-ver 7.1.0 => +OK
        CLIENT NO-EVICT ON => +OK
        CLIENT NO-TOUCH off => +OK
        CLIENT REPLY ON => +OK
        CLIENT TRACKING OFF => +OK
        CLIENT TRACKING ON => +OK
        CLIENT TRACKING on optin noloop prefix a redirect 5 => +OK
        CLIENT CACHING YES => +OK
        CLIENT CACHING no => +OK
        CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip => +OK
        CLIENT MAINT_NOTIFICATIONS OFF => +OK
        SELECT 0 => +OK
        SELECT 1 => +OK
        SELECT 15 => +OK
        READONLY => +OK
        AUTH default secret => +OK
        CLIENT ID => :7
        CLIENT INFO => "id=7 addr=192.0.2.1:5 name=me db=0 resp=2 lib-name=redis-py lib-ver=7.1.0\n"
        PING hello => "hello"
        ECHO hello => "hello"
        CONFIG GET save => ["save", ""]
        CONFIG GET maxmemory => []
        CONFIG GET appendonly maxmemory SAVE => ["appendonly", "no", "SAVE", ""]
        COMMAND COUNT => :28
        COMMAND DOCS incr => ["incr", [*not always greater*]]
        COMMAND INFO incr get => [["incr", :2, [+fast], :1, :1, :1, []], null]
        COMMAND INFO ping => [["ping", :-1, [+fast], :0, :0, :0, []]]
        CLIENT GETNAME => "me""#,
    );
    assert!(matches!(bench.line("COMMAND"), OwnedFrame::Array(all) if all.len() == 28));
    assert_eq!(texts(&bench.line("RINGFLAKE.HELP")).len(), 7);
    assert_eq!(bench.session.token(), Some(&b"secret"[..]));
    bench.check("RESET => +RESET\nCLIENT GETNAME => null");
    assert_eq!(bench.session.token(), None);
}

#[test]
fn everything_else_is_refused_with_words() {
    let mut bench = Bench::new(Access::open());
    bench.check(
        "GET x => -ERR unknown command '*this is a server of unique IDs: INCR name*
         SET x 1 => -ERR unknown command '*
         SUBSCRIBE x => -ERR unknown command '*
         EVAL x 0 => -ERR unknown command '*
         MGET a b c d => -ERR unknown command '*
         INCR => -ERR wrong number of arguments*
         INCR a b => -ERR wrong number of arguments*
         LPOP => -ERR wrong number of arguments*
         ECHO => -ERR wrong number of arguments*
         RINGFLAKE.TAKE ns => -ERR wrong number of arguments*
         SELECT => -ERR wrong number of arguments*
         INCRBY ns 2 => -ERR *LPOP name count
         LPOP ns 10001 => -ERR *it is 0 to 10000
         LPOP ns -1 => -ERR *it is 0 to 10000
         LPOP ns x => -ERR *it is 0 to 10000
         LPOP ns 99999999999999999999 => -ERR *it is 0 to 10000
         RINGFLAKE.INSPECT never 5 => -ERR no ID was taken in this namespace since the server started*
         RINGFLAKE.STATS never => -ERR no ID was taken in this namespace since the server started*
         CONFIG SET save x => -ERR *
         CLIENT KILL x => -ERR *
         CLIENT REPLY OFF => -ERR *
         CLIENT TRACKING => -ERR *
         CLIENT TRACKING ON WHAT => -ERR *
         CLIENT TRACKING ON REDIRECT x => -ERR *
         CLIENT CACHING MAYBE => -ERR *
         COMMAND GETKEYS x => -ERR *
         SELECT 16 => -ERR *
         SELECT -1 => -ERR *
         HELLO 2 WHAT default secret => -ERR *
         HELLO 2 WHAT me => -ERR *
         CLIENT WHAT LIB-NAME me => -ERR *
         COMMAND WHAT => -ERR *
         RINGFLAKE.TAKE ns 1 WHAT text => -ERR *
         RINGFLAKE.INSPECT ns 5 WHAT decimal => -ERR *",
    );
    assert_eq!(bench.session.token(), None);
    assert_eq!(bench.session.library, ["", ""]);
    assert_eq!(bench.session.name, "");
    assert_eq!(bench.opened, [""; 0], "none of them begins a namespace");
    bench.check("LPOP ns 0 => []");
    // Of a long or hostile name only what is harmless comes back.
    let (reply, _) = bench.answer(&[&[b"*1\r\n$300\r\n", &[b'\n'; 300][..], b"\r\n"].concat()]);
    assert!(reply.len() < 400);
    assert_eq!(frames(&reply).len(), 1);
}

#[test]
fn a_long_name_is_cut_and_a_name_with_spaces_is_refused() {
    let mut bench = Bench::new(Access::open());
    let long = "n".repeat(65);
    let (reply, _) = bench.answer(&[format!("HELLO 3 SETNAME {long}\r\n").as_bytes()]);
    assert!(reply.starts_with(b"%7\r\n"), "{}", reply.escape_ascii());
    bench.check(&format!(
        "HELLO 2 => [*]
         CLIENT GETNAME => {:?}
         CLIENT SETNAME m{long} => +OK
         CLIENT SETINFO lib-name {long} => +OK",
        &long[..64]
    ));
    assert_eq!(bench.session.name.len(), 64);
    assert_eq!(bench.session.library[0].len(), 64);
    for name in ["a b".to_owned(), format!("{long}\n")] {
        let length = name.len();
        let request = format!("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n${length}\r\n{name}\r\n");
        let (reply, _) = bench.answer(&[request.as_bytes()]);
        assert!(reply.starts_with(b"-ERR Client names cannot contain spaces"));
    }
}

#[test]
fn cluster_and_sentinel_clients_find_the_one_node() {
    let mut bench = Bench::announcing();
    let id = texts(&bench.line("CLUSTER MYID")).remove(0);
    bench.check(&format!(
        r#"CLUSTER SLOTS => [[:0, :16383, ["ids.example.com", :6380, "{id}"]]]
        CLUSTER NODES => "{id} ids.example.com:6380@6380 myself,master *"
        CLUSTER SHARDS => [["slots", [:0, :16383], "nodes", [["id", "{id}", "ip", "ids.example.com", *"port", :6380, *]]]]
        CLUSTER INFO => "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:16384\r\n*"
        CLUSTER COUNTKEYSINSLOT 12739 => :0
        CLUSTER KEYSLOT 123456789 => :12739
        SENTINEL get-master-addr-by-name anything => ["ids.example.com", "6380"]
        SENTINEL MASTERS => [["name", "mymaster", *]]
        SENTINEL MASTER any => ["name", "any", "ip", "ids.example.com", "port", "6380", *]
        SENTINEL SENTINELS any => []
        SENTINEL REPLICAS mymaster => []
        INFO cluster => "*cluster_enabled:1*"
        INFO server => "*redis_mode:cluster*"
        HELLO => [*"mode", "cluster"*]
        ROLE => ["master", *]"#
    ));
    Bench::new(Access::open()).check(
        r#"CLUSTER SLOTS => -ERR This instance has cluster support disabled
         INFO cluster => "*cluster_enabled:0*"
         INFO server => "*redis_mode:standalone*"
         HELLO => [*"mode", "standalone"*]
         SENTINEL MASTERS => -ERR *resp.announce*"#,
    );
}

/// Requests without IDs in their replies, so that these are the same each time.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "ECHO [a-z]{1,9}\r\n",
        "PING\r\n",
        "LPOP ns 0\r\n",
        "MULTI\r\n",
        "EXEC\r\n",
        "SET a b\r\n",
        Just("*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n".to_owned()),
        Just("*1\r\n$4\r\nPING\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("INCR\r\n".to_owned()),
        Just("*1\r\n$9\r\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn where_requests_are_cut_changes_no_reply(
        input in requests(),
        places: Vec<prop::sample::Index>,
    ) {
        let whole = Bench::new(Access::open()).answer(&[&input]);
        let pieces = cut(&input, &places);
        prop_assert_eq!(Bench::new(Access::open()).answer(&pieces), whole);
    }

    #[test]
    fn no_bytes_are_too_strange(input in prop::collection::vec(any::<u8>(), 0..300)) {
        let (output, _) = Bench::new(Access::open()).answer(&[&input]);
        frames(&output);
    }
}
