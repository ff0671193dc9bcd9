//! `MULTI` and `EXEC`.

use super::*;
use crate::access::{Right, Role};

#[test]
fn exec_runs_the_queue_in_order() {
    let mut bench = Bench::new(Access::open());
    let replies =
        bench.lines("MULTI\nINCR a\nINCR a\nLPOP b 3\nECHO x\nLPOP a\nUNWATCH\nEXEC\nPING");
    let shown = all_shown(&replies);
    assert_eq!(shown[0], "+OK");
    assert_eq!(shown[1..7], ["+QUEUED"; 6]);
    assert!(is_like(&shown[7], "[:*, :*, [*], \"x\", \"*\", +OK]"));
    let ids: std::collections::HashSet<_> = match &replies[7] {
        OwnedFrame::Array(results) => results[..3].iter().flat_map(texts).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!((ids.len(), &*shown[8]), (5, "+PONG"));
    assert_eq!(bench.opened, ["a", "b"]);
}

#[test]
fn no_id_is_taken_before_exec() {
    let mut bench = Bench::new(Access::open());
    bench.lines("MULTI\nINCR a\nLPOP a 100");
    assert_eq!((bench.ids(), bench.opened.len()), (0, 0));
    bench.check("DISCARD => +OK\nINCR a => :*");
    assert_eq!(bench.ids(), 1);
    bench.lines("MULTI\nINCR a\nLPOP a 100\nEXEC");
    assert_eq!(bench.ids(), 102);
}

#[test]
fn a_request_that_can_not_be_queued_aborts_exec() {
    let mut bench = Bench::new(Access::open());
    for line in [
        "GET x",
        "ECHO",
        "AUTH default secret",
        "LPOP a 10000",
        "INCRBY b 5",
        "LPOP b -5",
        "LPOP b 1 1",
        "RINGFLAKE.TAKE b x",
        "RINGFLAKE.TAKE b 1 FORMAT hex",
    ] {
        let replies = all_shown(&bench.lines(&format!("MULTI\nINCR a\n{line}\nINCR a\nEXEC")));
        assert!(replies[2].starts_with('-'), "{line}: {replies:?}");
        assert_eq!(replies[3], "+QUEUED");
        assert!(replies[4].starts_with("-EXECABORT "), "{replies:?}");
        // The connection goes on.
        bench.check("PING => +PONG");
    }
    assert_eq!(bench.opened, [""; 0]);
}

#[test]
fn a_transaction_has_limits() {
    let mut bench = Bench::new(Access::open());
    // As many as one reply may have, though more bytes than a request.
    let mut exec = |requests: String| bench.lines(&format!("MULTI\n{requests}EXEC")).pop();
    let mut ids = texts(&exec("INCR a\n".repeat(10_000)).unwrap());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_000);
    // Requests that differ from the one before have 4,096 bytes together.
    let many = |count| (0..count).map(|text| format!("ECHO {text:09}\n")).collect();
    assert_eq!(texts(&exec(many(256)).unwrap()).len(), 256);
    for requests in ["INCR a\n".repeat(10_001), many(257)] {
        assert!(shown(&exec(requests).unwrap()).starts_with("-EXECABORT "));
    }
    assert_eq!(bench.session.queued_bytes(), 0);
    let pings = |count: usize| format!("MULTI\n{}INCR a\nEXEC", "PING\n".repeat(count));
    let replies = bench.lines(&pings(1_024)).pop().unwrap();
    assert!(matches!(replies, OwnedFrame::Array(replies) if replies.len() == 1_025));
    let error = bench.lines(&pings(1_025)).pop().unwrap();
    assert!(matches!(error, OwnedFrame::Error(error) if error.starts_with("EXECABORT ")));
}

#[test]
fn a_namespace_that_can_not_be_opened_aborts_exec() {
    let mut bench = Bench::new(Access::open());
    let long = "x".repeat(65);
    let replies = bench.lines(&format!("MULTI\nINCR a\nINCR {long}\nEXEC\nINCR a"));
    assert!(shown(&replies[3]).starts_with("-EXECABORT "), "{replies:?}");
    assert!(is_integer(&replies[4]));
    assert_eq!(bench.ids(), 1);
    bench.lines(&format!("MULTI\nINCR b\nINCR {long}\nEXEC"));
    assert_eq!(bench.opened, ["a"], "no other name that was queued");
}

#[test]
fn commands_of_transactions_have_their_place() {
    let mut bench = Bench::new(Access::open());
    bench.check(
        "EXEC => -ERR EXEC without MULTI
         DISCARD => -ERR DISCARD without MULTI
         WATCH a b => +OK
         UNWATCH => +OK
         MULTI => +OK
         MULTI => -ERR *nested*
         WATCH a => -ERR *inside MULTI*
         UNWATCH => +QUEUED
         EXEC => [+OK]
         MULTI => +OK
         RESET => +RESET
         INCR ns => :*",
    );
    assert!(!bench.answer(&[b"MULTI\r\nQUIT\r\n"]).1);
    Bench::new(Access::by_name()).check(
        "AUTH inspect => +OK
         MULTI => +OK
         INCR ns => -NOPERM *
         EXEC => -EXECABORT *",
    );
}

#[test]
fn a_request_of_a_transaction_is_counted_once() {
    let mut bench = Bench::new(Access::open());
    bench.lines("MULTI\nINCR a\nINCR a\nINCR b\nEXEC");
    assert_eq!(bench.context.answered(), 5);
}

#[test]
fn a_right_that_was_lost_meanwhile_aborts_exec() {
    let access = Arc::new(Access::new(Access::limited(None, 9)));
    let mut bench = Bench::new(Arc::clone(&access));
    bench.line("AUTH t");
    bench.lines("INCR a\nMULTI\nPING\nINCR a");
    let mut rights = Access::limited(None, 9);
    rights[Role::Take as usize] = Right::Nobody;
    access.replace(rights);
    bench.check("EXEC => -EXECABORT Transaction discarded because of: NOPERM this token *");
    assert_eq!(bench.context.shared.setup.counters[1].ids.load(Relaxed), 1);
}
