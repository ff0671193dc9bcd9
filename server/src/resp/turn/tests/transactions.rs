//! `MULTI` and `EXEC`.

use super::*;

fn queued() -> OwnedFrame {
    OwnedFrame::SimpleString(b"QUEUED".to_vec())
}

#[test]
fn exec_runs_the_queue_in_order() {
    let mut bench = Bench::new(Everything);
    let lines = "MULTI\nINCR a\nINCR a\nLPOP b 3\nECHO x\nLPOP a\nEXEC\nPING";
    let replies = bench.lines(lines);
    assert_eq!(replies[0], ok());
    assert!(
        replies[1..6].iter().all(|reply| *reply == queued()),
        "{replies:?}"
    );
    let OwnedFrame::Array(results) = &replies[6] else {
        panic!("{replies:?}")
    };
    assert!(matches!(
        results[..],
        [
            OwnedFrame::Integer(first),
            OwnedFrame::Integer(second),
            OwnedFrame::Array(_),
            OwnedFrame::BulkString(_),
            OwnedFrame::BulkString(_)
        ] if first != second
    ));
    assert_eq!(texts(&results[2]).len(), 3);
    assert_eq!(results[3], string("x"));
    assert_eq!(replies[7], OwnedFrame::SimpleString(b"PONG".to_vec()));
    assert_eq!(bench.opened, ["a", "b"]);
}

#[test]
fn no_id_is_taken_before_exec() {
    let mut bench = Bench::new(Everything);
    let ids = |bench: &Bench| bench.context.shared.counters[1].ids.load(Relaxed);
    bench.lines("MULTI\nINCR a\nLPOP a 100");
    assert_eq!((ids(&bench), bench.opened.len()), (0, 0));
    assert_eq!(bench.line("DISCARD"), ok());
    assert!(matches!(bench.line("INCR a"), OwnedFrame::Integer(_)));
    assert_eq!(ids(&bench), 1);
    bench.lines("MULTI\nINCR a\nLPOP a 100\nEXEC");
    assert_eq!(ids(&bench), 102);
}

#[test]
fn a_request_that_can_not_be_queued_aborts_exec() {
    let mut bench = Bench::new(Everything);
    for line in ["GET x", "ECHO", "AUTH default secret", "LPOP a 10000"] {
        let replies = bench.lines(&format!("MULTI\nINCR a\n{line}\nINCR a\nEXEC"));
        assert!(
            matches!(replies[2], OwnedFrame::Error(_)),
            "{line}: {replies:?}"
        );
        assert_eq!(replies[3], queued());
        let OwnedFrame::Error(error) = &replies[4] else {
            panic!("{line}: {replies:?}")
        };
        assert!(error.starts_with("EXECABORT "), "{error}");
        // The connection goes on.
        assert_eq!(
            bench.line("PING"),
            OwnedFrame::SimpleString(b"PONG".to_vec())
        );
    }
    assert_eq!(bench.opened, [""; 0]);
}

#[test]
fn a_transaction_has_limits() {
    let mut bench = Bench::new(Everything);
    // As many as one reply may have, though more bytes than a request.
    let full = format!("MULTI\n{}EXEC", "INCR a\n".repeat(10_000));
    let replies = bench.lines(&full);
    let OwnedFrame::Array(ids) = replies.last().unwrap() else {
        panic!("{:?}", replies.last())
    };
    let mut ids: Vec<_> = ids
        .iter()
        .map(|id| match id {
            OwnedFrame::Integer(id) => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_000);
    let over = format!("MULTI\n{}EXEC", "INCR a\n".repeat(10_001));
    let error = bench.lines(&over).pop().unwrap();
    assert!(matches!(error, OwnedFrame::Error(error) if error.starts_with("EXECABORT ")));
    // Different requests, which need memory.
    let many: String = (0..1_000).map(|name| format!("ECHO {name}\n")).collect();
    let error = bench.lines(&format!("MULTI\n{many}EXEC")).pop().unwrap();
    assert!(matches!(error, OwnedFrame::Error(error) if error.starts_with("EXECABORT ")));
    assert_eq!(bench.session.queued_bytes(), 0);
    let pings = |count: usize| format!("MULTI\n{}INCR a\nEXEC", "PING\n".repeat(count));
    let replies = bench.lines(&pings(1_024)).pop().unwrap();
    assert!(matches!(replies, OwnedFrame::Array(replies) if replies.len() == 1_025));
    let error = bench.lines(&pings(1_025)).pop().unwrap();
    assert!(matches!(error, OwnedFrame::Error(error) if error.starts_with("EXECABORT ")));
}

#[test]
fn a_namespace_that_can_not_be_opened_aborts_exec() {
    let mut bench = Bench::new(Everything);
    let long = "x".repeat(65);
    let replies = bench.lines(&format!("MULTI\nINCR a\nINCR {long}\nEXEC\nINCR a"));
    let OwnedFrame::Error(error) = &replies[3] else {
        panic!("{replies:?}")
    };
    assert!(error.starts_with("EXECABORT "), "{error}");
    assert!(matches!(replies[4], OwnedFrame::Integer(_)));
    assert_eq!(bench.context.shared.counters[1].ids.load(Relaxed), 1);
}

#[test]
fn commands_of_transactions_have_their_place() {
    let mut bench = Bench::new(Everything);
    assert_eq!(bench.error("EXEC"), "ERR EXEC without MULTI");
    assert_eq!(bench.error("DISCARD"), "ERR DISCARD without MULTI");
    assert_eq!(bench.line("WATCH a b"), ok());
    assert_eq!(bench.line("UNWATCH"), ok());
    assert_eq!(bench.line("MULTI"), ok());
    assert!(bench.error("MULTI").contains("nested"));
    assert!(bench.error("WATCH a").contains("inside MULTI"));
    assert_eq!(bench.line("UNWATCH"), queued());
    assert_eq!(bench.line("EXEC"), OwnedFrame::Array(vec![ok()]));
    bench.line("MULTI");
    bench.line("RESET");
    assert!(matches!(bench.line("INCR ns"), OwnedFrame::Integer(_)));
    assert!(!bench.answer(&[b"MULTI\r\nQUIT\r\n"]).1);
    let mut bench = Bench::new(ByName);
    assert!(bench.error("MULTI").starts_with("NOAUTH "));
    bench.line("AUTH inspect");
    let replies = bench.lines("MULTI\nINCR ns\nEXEC");
    assert!(matches!(&replies[1], OwnedFrame::Error(error) if error.starts_with("NOPERM ")));
    assert!(matches!(&replies[2], OwnedFrame::Error(error) if error.starts_with("EXECABORT ")));
}

#[test]
fn a_request_of_a_transaction_is_counted_once() {
    let mut bench = Bench::new(Everything);
    bench.lines("MULTI\nINCR a\nINCR a\nINCR b\nEXEC");
    assert_eq!(bench.context.answered(), 5);
}

#[test]
fn a_right_that_was_lost_meanwhile_aborts_exec() {
    let ledger = Arc::new(Ledger::default());
    let mut bench = Bench::new(Arc::clone(&ledger));
    bench.lines("INCR a\nMULTI\nPING\nINCR a");
    ledger.is_closed.store(true, Relaxed);
    let reply = bench.line("EXEC");
    assert!(
        matches!(&reply, OwnedFrame::Error(error) if error.starts_with("EXECABORT ")),
        "{reply:?}"
    );
    assert_eq!(bench.context.shared.counters[1].ids.load(Relaxed), 1);
}
