mod cluster;
mod figures;
mod options;
mod strangers;
mod transactions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake::{CachedGenerator, Layout, StaticLease};

use super::*;
use crate::access::{Ledger, Rights};
use crate::drain::Drain;
use crate::limits::Limits;
use crate::namespaces::Namespaces;
use crate::resp::context::Shared;
use crate::resp::tests::kit::{ByName, Everything, generator};

/// A session without a socket.
struct Bench {
    session: Session,
    context: WorkerContext,
    namespaces: Arc<Namespaces>,
    opened: Vec<String>,
}

impl Bench {
    fn new(rights: impl Rights + 'static) -> Self {
        Self::of(rights, generator)
    }

    fn of(rights: impl Rights + 'static, build: fn() -> CachedGenerator) -> Self {
        let namespaces = Arc::new(Namespaces::new(Box::new(move |_| Ok(build())), 8));
        let limits = Limits {
            count: 10_000,
            request_bytes: 4_096,
            ..Limits::default()
        };
        let shared = Arc::new(Shared::new(
            Arc::new(rights),
            limits,
            Arc::clone(&namespaces),
            Drain::default(),
            1,
        ));
        Self {
            session: Session::new(7, "192.0.2.1:5".to_owned(), &shared),
            context: WorkerContext::new(shared, 0),
            namespaces,
            opened: Vec::new(),
        }
    }

    /// Everything that comes back for this, and whether the connection goes on.
    fn answer(&mut self, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            loop {
                let mut turn = Vec::new();
                let (used, next) = self.session.turn(&input, &mut self.context, &mut turn);

                input.drain(..used);
                output.extend(turn);
                match next {
                    NextAction::Input => break,
                    NextAction::Turn | NextAction::Delay => {}
                    NextAction::Close | NextAction::Drop => return (output, false),
                    NextAction::Open(name) => {
                        self.namespaces.open(&name).unwrap();
                        self.opened.push(name);
                    }
                }
            }
        }
        (output, true)
    }

    /// The replies to some lines.
    fn lines(&mut self, lines: &str) -> Vec<OwnedFrame> {
        let lines = lines.replace('\n', "\r\n") + "\r\n";
        frames(&self.answer(&[lines.as_bytes()]).0)
    }

    /// The one reply to a line.
    fn line(&mut self, line: &str) -> OwnedFrame {
        let mut replies = self.lines(line);
        assert_eq!(replies.len(), 1, "{line}: {replies:?}");
        replies.remove(0)
    }

    fn error(&mut self, line: &str) -> String {
        match self.line(line) {
            OwnedFrame::Error(error) => error,
            other => panic!("{line}: {other:?}"),
        }
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

fn ok() -> OwnedFrame {
    OwnedFrame::SimpleString(b"OK".to_vec())
}

fn string(text: &str) -> OwnedFrame {
    OwnedFrame::BulkString(text.as_bytes().to_vec())
}

fn texts(reply: &OwnedFrame) -> Vec<String> {
    let OwnedFrame::Array(items) = reply else {
        panic!("{reply:?}")
    };
    let text = |item: &OwnedFrame| match item {
        OwnedFrame::BulkString(text) => String::from_utf8(text.clone()).unwrap(),
        OwnedFrame::Integer(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    items.iter().map(text).collect()
}

#[test]
fn incr_and_lpop_name_ids_alike() {
    let mut bench = Bench::new(Everything);
    let OwnedFrame::Integer(first) = bench.line("INCR ns") else {
        panic!()
    };
    let mut ids = vec![first.to_string()];
    let OwnedFrame::BulkString(second) = bench.line("lpop ns") else {
        panic!()
    };
    ids.push(String::from_utf8(second).unwrap());
    ids.extend(texts(&bench.line("LPOP ns 20")));
    ids.extend(texts(&bench.line("RINGFLAKE.TAKE ns 20")));
    assert_eq!(ids.len(), 42);
    let mut raws: Vec<_> = ids
        .iter()
        .map(|id| texts(&bench.line(&format!("RINGFLAKE.INSPECT ns {id}"))))
        .collect();
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
    let mut bench = Bench::new(Everything);
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
    assert!(
        bench
            .error("RINGFLAKE.TAKE ns 1 FORMAT hex")
            .contains("'hex'")
    );
    assert!(
        bench
            .error("RINGFLAKE.INSPECT ns x1")
            .contains("this is no ID")
    );
}

#[test]
fn a_pipeline_of_takes_is_one_batch() {
    let mut bench = Bench::new(Everything);
    bench.line("INCR ns");
    let replies = bench.lines(&["INCR ns", "INCRBY ns 1", "INCR other", "LPOP ns"].join("\n"));
    assert_eq!(replies.len(), 4);
    // All that came are one run, but for the budget.
    let many = "INCR ns\r\n".repeat(REQUESTS);
    let mut output = Vec::new();
    let (used, next) = bench
        .session
        .turn(many.as_bytes(), &mut bench.context, &mut output);
    assert_eq!((used, next), (many.len(), NextAction::Turn));
    assert_eq!(frames(&output).len(), REQUESTS);
    let (used, next) = bench.session.turn(b"", &mut bench.context, &mut output);
    assert_eq!((used, next), (0, NextAction::Input));
}

#[test]
fn a_request_behind_an_empty_line_is_decoded_anew() {
    let mut bench = Bench::new(Everything);
    // The bytes before the second one are an end of the first, with the empty line.
    let replies = bench.lines("INCR ns\n\nCR ns\n");
    assert!(matches!(replies[0], OwnedFrame::Integer(_)), "{replies:?}");
    let OwnedFrame::Error(error) = &replies[1] else {
        panic!("{replies:?}")
    };
    assert!(error.contains("unknown command 'CR'"), "{error}");
}

#[test]
fn takes_of_two_forms_are_answered_each_in_its_own() {
    let mut bench = Bench::new(Everything);
    let replies = bench.lines("INCR ns\nLPOP ns\nLPOP ns\nINCR ns");
    let is_integer = |reply: &OwnedFrame| matches!(reply, OwnedFrame::Integer(_));
    let integers: Vec<_> = replies.iter().map(is_integer).collect();
    assert_eq!(integers, [true, false, false, true], "{replies:?}");
}

#[test]
fn a_name_that_begins_another_is_a_name_of_its_own() {
    let mut bench = Bench::new(Everything);
    bench.lines("INCR orders\nINCR order\nINCR orders2\nINCR order");
    assert_eq!(bench.opened, ["orders", "order", "orders2"]);
}

#[test]
fn a_command_gets_all_of_its_arguments_or_none() {
    let mut bench = Bench::new(Everything);
    let docs = |count| format!("COMMAND DOCS{}", " x".repeat(count));
    let most = crate::resp::decode::KEPT - 2;
    assert_eq!(bench.line(&docs(most)), OwnedFrame::Array(Vec::new()));
    let error = bench.error(&docs(most + 1));
    assert!(error.contains("wrong number of arguments"), "{error}");
}

/// A generator of 16 IDs a second.
fn slow() -> CachedGenerator {
    rare(4)
}

/// A generator of so many bits of IDs a second, and ten seconds ahead of the clock at most.
fn rare(bits: u32) -> CachedGenerator {
    // A node that no other of this process has.
    static NEXT: AtomicU64 = AtomicU64::new(400);
    let node = NEXT.fetch_add(1, Relaxed);
    let layout = Layout::builder().bits(46, 18 - bits, bits).build().unwrap();
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, node..node + 1))
        .capacity(64)
        .borrow_limit(Duration::from_secs(10))
        .build()
        .unwrap()
}

#[test]
fn takes_that_get_nothing_are_refused_one_by_one() {
    let mut bench = Bench::of(Everything, slow);
    bench.line("INCR ns");
    let replies = bench.lines(&["INCR ns"; REQUESTS].join("\n"));
    assert_eq!(replies.len(), REQUESTS);
    let is_refused = |reply: &OwnedFrame| match reply {
        OwnedFrame::Integer(_) => false,
        OwnedFrame::Error(error) => error.starts_with("TRYAGAIN "),
        other => panic!("{other:?}"),
    };
    // Those in front have what there was.
    let first = replies.iter().position(is_refused).unwrap();
    assert!(replies[first..].iter().all(is_refused), "{replies:?}");
}

#[test]
fn half_a_request_behind_a_take_waits_with_it() {
    let mut bench = Bench::new(Everything);
    // The take's namespace is to be opened when half of the next request is decoded.
    let pieces = [&b"INCR new\r\n*2\r\n$4\r\nECHO\r\n$2\r\n"[..], b"ab\r\n"];
    let (output, goes_on) = bench.answer(&pieces);
    assert!(goes_on);
    let replies = frames(&output);
    assert!(matches!(replies[0], OwnedFrame::Integer(_)), "{replies:?}");
    assert_eq!(replies[1..], [OwnedFrame::BulkString(b"ab".to_vec())]);
}

#[test]
fn a_turn_ends_at_its_budget() {
    let mut bench = Bench::new(Everything);
    let many = "PING\r\n".repeat(3 * REQUESTS);
    let mut output = Vec::new();
    let (used, next) = bench
        .session
        .turn(many.as_bytes(), &mut bench.context, &mut output);
    assert_eq!((used, next), (REQUESTS * 6, NextAction::Turn));
    bench.line("INCR ns");
    let long = "LPOP ns 2048\r\n".repeat(8);
    let (used, next) = bench
        .session
        .turn(long.as_bytes(), &mut bench.context, &mut output);
    assert_eq!(next, NextAction::Turn);
    assert!(used < long.len());
}

#[test]
fn a_look_begins_no_namespace() {
    let mut bench = Bench::new(Everything);
    for line in ["RINGFLAKE.INSPECT never 5", "RINGFLAKE.STATS never"] {
        let error = bench.error(line);
        assert!(
            error.starts_with("ERR no namespace of this name is in use"),
            "{error}"
        );
    }
    assert!(bench.opened.is_empty());
}

#[test]
fn a_token_that_is_too_long_to_be_one_is_wrong() {
    let mut bench = Bench::new(Everything);
    let longest = "t".repeat(512);
    for line in [
        format!("AUTH {longest}t"),
        format!("HELLO 3 AUTH u {longest}t"),
    ] {
        assert!(bench.error(&line).starts_with("WRONGPASS "));
        assert_eq!(bench.session.token(), None);
    }
    bench.line(&format!("AUTH {longest}"));
    assert_eq!(bench.session.token(), Some(longest.as_bytes()));
}

#[test]
fn a_count_has_its_range() {
    let mut bench = Bench::new(Everything);
    assert_eq!(bench.line("LPOP ns 0"), OwnedFrame::Array(Vec::new()));
    for count in ["10001", "-1", "x", "99999999999999999999"] {
        let error = bench.error(&format!("LPOP ns {count}"));
        assert!(error.ends_with("it is 0 to 10000"), "{error}");
    }
    assert!(bench.error("INCRBY ns 2").contains("LPOP name count"));
}

#[test]
fn a_name_has_its_range() {
    let mut bench = Bench::new(Everything);
    for name in ["x".repeat(65).as_bytes(), b"\xff"] {
        let line = [b"INCR ", name, b"\r\nLPOP ", name, b" 2\r\n"].concat();
        let replies = frames(&bench.answer(&[&line]).0);
        assert_eq!(replies.len(), 2);
        for reply in replies {
            let OwnedFrame::Error(error) = reply else {
                panic!("{reply:?}")
            };
            assert!(error.contains("1 to 64 bytes"), "{error}");
        }
    }
    assert_eq!(bench.opened, [""; 0]);
}

#[test]
fn without_a_token_nothing_but_its_request_is_answered() {
    let mut bench = Bench::new(ByName);
    for line in [
        "PING",
        "INCR ns",
        "INFO",
        "CLIENT ID",
        "RINGFLAKE.STATS",
        "LPOP ns 3",
    ] {
        assert_eq!(
            bench.error(line),
            "NOAUTH Authentication required.",
            "{line}"
        );
    }
    assert!(
        bench
            .error("HELLO 3")
            .starts_with("NOAUTH HELLO must be called")
    );
    assert!(bench.error("AUTH nobody").starts_with("WRONGPASS "));
    assert!(
        bench
            .error("HELLO 2 AUTH default nobody")
            .starts_with("WRONGPASS ")
    );
    assert_eq!(bench.opened, [""; 0]);
    assert_eq!(bench.line("QUIT"), ok());
}

#[test]
fn a_token_gives_the_rights_that_it_has() {
    let mut bench = Bench::new(ByName);
    let allowed = [
        ("take", ["INCR ns", "LPOP ns 2"]),
        ("inspect", ["RINGFLAKE.INSPECT ns 5", "PING"]),
        ("admin", ["RINGFLAKE.STATS", "RINGFLAKE.STATS ns"]),
    ];
    bench.namespaces.open("ns").unwrap();
    for (token, own) in allowed {
        assert_eq!(bench.line(&format!("AUTH default {token}")), ok());
        for (of, lines) in allowed {
            for line in lines.into_iter().filter(|line| *line != "PING") {
                let is_refused = matches!(bench.line(line), OwnedFrame::Error(error) if error.starts_with("NOPERM "));
                assert_eq!(is_refused, of != token, "{token}: {line}");
            }
        }
        assert!(
            !matches!(bench.line(own[1]), OwnedFrame::Error(_)),
            "{}",
            own[1]
        );
    }
    assert_eq!(
        bench.line("RESET"),
        OwnedFrame::SimpleString(b"RESET".to_vec())
    );
    assert!(bench.error("PING").starts_with("NOAUTH"));
}

#[test]
fn figures_need_the_right_to_them() {
    let mut bench = Bench::new(ByName);
    let mut sections = |token: &str| {
        bench.line(&format!("AUTH {token}"));
        let OwnedFrame::BulkString(text) = bench.line("INFO") else {
            panic!()
        };
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("redis_version:"));
        (
            text.contains("total_commands_processed:"),
            text.contains("connected_clients:"),
        )
    };
    assert_eq!(sections("take"), (false, false));
    assert_eq!(sections("admin"), (true, true));
}

#[test]
fn hello_chooses_the_protocol_and_names_the_client() {
    let mut bench = Bench::new(ByName);
    let (reply, _) = bench.answer(&[b"HELLO 3 AUTH default take SETNAME me\r\n"]);
    assert!(reply.starts_with(b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    assert_eq!(bench.answer(&[b"CLIENT GETNAME\r\n"]).0, b"$2\r\nme\r\n");
    assert!(bench.error("HELLO 4").starts_with("NOPROTO "));
    assert!(bench.error("HELLO 2 WHAT").contains("'WHAT'"));
    // A map is a list for the older protocol.
    let hello = bench.line("HELLO 2");
    assert!(matches!(hello, OwnedFrame::Array(items) if items.len() == 14));
}

#[test]
fn what_clients_send_on_their_own_is_answered() {
    let mut bench = Bench::new(Everything);
    for line in [
        "CLIENT SETNAME me",
        "CLIENT SETINFO LIB-NAME redis-py",
        "CLIENT SETINFO lib-ver 7.1.0",
        "CLIENT NO-EVICT ON",
        "CLIENT NO-TOUCH off",
        "CLIENT REPLY ON",
        "CLIENT TRACKING OFF",
        "CLIENT TRACKING ON",
        "CLIENT TRACKING on optin noloop prefix a redirect 5",
        "CLIENT CACHING YES",
        "CLIENT CACHING no",
        "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip",
        "CLIENT MAINT_NOTIFICATIONS OFF",
        "SELECT 0",
        "SELECT 1",
        "SELECT 15",
        "READONLY",
        "AUTH default secret",
    ] {
        assert_eq!(bench.line(line), ok(), "{line}");
    }
    assert_eq!(bench.line("CLIENT ID"), OwnedFrame::Integer(7));
    assert_eq!(
        bench.line("CLIENT INFO"),
        string("id=7 addr=192.0.2.1:5 name=me db=0 resp=2 lib-name=redis-py lib-ver=7.1.0\n"),
    );
    assert_eq!(bench.line("PING hello"), string("hello"));
    assert_eq!(bench.line("ECHO hello"), string("hello"));
    assert_eq!(texts(&bench.line("CONFIG GET save")), ["save", ""]);
    assert_eq!(
        bench.line("CONFIG GET maxmemory"),
        OwnedFrame::Array(Vec::new())
    );
    assert_eq!(
        texts(&bench.line("CONFIG GET appendonly maxmemory SAVE")),
        ["appendonly", "no", "SAVE", ""]
    );
    assert_eq!(bench.line("COMMAND COUNT"), OwnedFrame::Integer(28));
    assert!(matches!(bench.line("COMMAND"), OwnedFrame::Array(all) if all.len() == 28));
    assert!(matches!(bench.line("COMMAND DOCS incr"), OwnedFrame::Array(all) if all.len() == 2));
    let OwnedFrame::Array(known) = bench.line("COMMAND INFO incr get") else {
        panic!()
    };
    assert_eq!(known[1], OwnedFrame::Null);
    let OwnedFrame::Array(incr) = &known[0] else {
        panic!("{known:?}")
    };
    assert_eq!(incr[..2], [string("incr"), OwnedFrame::Integer(2)]);
    assert_eq!(texts(&bench.line("RINGFLAKE.HELP")).len(), 7);
}

#[test]
fn everything_else_is_refused_with_words() {
    let mut bench = Bench::new(Everything);
    for line in [
        "GET x",
        "SET x 1",
        "SUBSCRIBE x",
        "EVAL x 0",
        "MGET a b c d",
    ] {
        let error = bench.error(line);
        assert!(error.starts_with("ERR unknown command '"), "{error}");
        assert!(
            error.contains("this is a server of unique IDs: INCR name"),
            "{error}"
        );
    }
    for line in [
        "INCR",
        "INCR a b",
        "LPOP",
        "ECHO",
        "RINGFLAKE.TAKE ns",
        "SELECT",
    ] {
        assert!(
            bench
                .error(line)
                .starts_with("ERR wrong number of arguments"),
            "{line}"
        );
    }
    for line in [
        "CONFIG SET save x",
        "CLIENT KILL x",
        "CLIENT REPLY OFF",
        "CLIENT TRACKING",
        "CLIENT TRACKING ON WHAT",
        "CLIENT TRACKING ON REDIRECT x",
        "CLIENT CACHING MAYBE",
        "COMMAND GETKEYS x",
        "SELECT 16",
        "SELECT -1",
    ] {
        bench.error(line);
    }
    // Of a long or hostile name only what is harmless comes back.
    let (reply, _) = bench.answer(&[&[b"*1\r\n$300\r\n", &[b'\n'; 300][..], b"\r\n"].concat()]);
    assert!(reply.len() < 400);
    assert_eq!(frames(&reply).len(), 1);
}

#[test]
fn a_long_name_is_cut_and_a_name_with_spaces_is_refused() {
    let mut bench = Bench::new(Everything);
    let long = "n".repeat(65);
    let (reply, _) = bench.answer(&[format!("HELLO 3 SETNAME {long}\r\n").as_bytes()]);
    assert!(reply.starts_with(b"%7\r\n"), "{}", reply.escape_ascii());
    bench.answer(&[b"HELLO 2\r\n"]);
    assert_eq!(bench.line("CLIENT GETNAME"), string(&long[..64]));
    assert_eq!(bench.line(&format!("CLIENT SETNAME m{long}")), ok());
    assert_eq!(bench.line(&format!("CLIENT SETINFO lib-name {long}")), ok());
    assert_eq!(bench.session.name.len(), 64);
    assert_eq!(bench.session.library[0].len(), 64);
    for name in ["a b".to_owned(), format!("{long}\n")] {
        let request = format!(
            "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n${}\r\n{name}\r\n",
            name.len()
        );
        let (reply, _) = bench.answer(&[request.as_bytes()]);
        assert!(
            reply.starts_with(b"-ERR Client names cannot contain spaces"),
            "{name}"
        );
    }
}

#[test]
fn hello_and_info_say_one_version() {
    let mut bench = Bench::new(Everything);
    let OwnedFrame::BulkString(info) = bench.line("INFO server") else {
        panic!()
    };
    let info = String::from_utf8(info).unwrap();
    let version = info
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"))
        .unwrap();
    let (hello, _) = bench.answer(&[b"HELLO 2\r\n"]);
    let expected = format!("\r\nversion\r\n${}\r\n{version}\r\n", version.len());
    assert!(
        String::from_utf8(hello).unwrap().contains(&expected),
        "{version}"
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
        let mut places: Vec<_> = places.iter().map(|at| at.index(input.len() + 1)).collect();
        places.extend([0, input.len()]);
        places.sort_unstable();
        let pieces: Vec<_> = places.windows(2).map(|at| &input[at[0]..at[1]]).collect();
        let whole = Bench::new(Everything).answer(&[&input]);
        prop_assert_eq!(Bench::new(Everything).answer(&pieces), whole);
    }

    #[test]
    fn no_bytes_are_too_strange(input in prop::collection::vec(any::<u8>(), 0..300)) {
        let (output, _) = Bench::new(Everything).answer(&[&input]);
        frames(&output);
    }
}
