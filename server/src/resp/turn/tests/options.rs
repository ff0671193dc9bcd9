//! Words that are no options, and what a connection remembers of those that are.

use super::*;

#[test]
fn a_word_that_is_no_option_is_refused() {
    let mut bench = Bench::new(Everything);
    bench.line("INCR ns");
    for line in [
        "HELLO 2 WHAT default secret",
        "HELLO 2 WHAT me",
        "CLIENT WHAT LIB-NAME me",
        "COMMAND WHAT",
        "RINGFLAKE.TAKE ns 1 WHAT text",
        "RINGFLAKE.INSPECT ns 5 WHAT decimal",
    ] {
        let error = bench.error(line);
        assert!(error.starts_with("ERR "), "{error}");
    }
    assert_eq!(bench.session.token(), None);
    assert_eq!(bench.session.library, ["", ""]);
    assert_eq!(bench.session.name, "");
}

#[test]
fn a_protocol_is_kept_until_a_reset() {
    let mut bench = Bench::new(Everything);
    let null = |bench: &mut Bench| bench.answer(&[b"CLIENT GETNAME\r\n"]).0;
    assert_eq!(null(&mut bench), b"$-1\r\n");
    bench.answer(&[b"HELLO 3\r\n"]);
    assert_eq!(null(&mut bench), b"_\r\n");
    bench.answer(&[b"HELLO\r\n"]);
    assert_eq!(null(&mut bench), b"_\r\n");
    // At once, and from then on.
    let both = bench.answer(&[b"RESET\r\nCLIENT GETNAME\r\n"]).0;
    assert_eq!(both, b"+RESET\r\n$-1\r\n");
    assert_eq!(null(&mut bench), b"$-1\r\n");
}

#[test]
fn a_reset_forgets_the_client() {
    let mut bench = Bench::new(Everything);
    bench.lines("AUTH secret\nCLIENT SETNAME me");
    assert_eq!(bench.line("CLIENT GETNAME"), string("me"));
    assert_eq!(bench.session.token(), Some(&b"secret"[..]));
    bench.line("RESET");
    assert_eq!(bench.line("CLIENT GETNAME"), OwnedFrame::Null);
    assert_eq!(bench.session.token(), None);
}

#[test]
fn a_command_is_described_whole() {
    let mut bench = Bench::new(Everything);
    let OwnedFrame::Array(known) = bench.line("COMMAND INFO incr ping") else {
        panic!()
    };
    for (found, (name, arity, key)) in known.iter().zip([("incr", 2, 1), ("ping", -1, 0)]) {
        let fast = OwnedFrame::Array(vec![OwnedFrame::SimpleString(b"fast".to_vec())]);
        let key = || OwnedFrame::Integer(key);
        let whole = [
            string(name),
            OwnedFrame::Integer(arity),
            fast,
            key(),
            key(),
            key(),
        ];
        assert_eq!(*found, OwnedFrame::Array(whole.into()));
    }
    assert_eq!(known.len(), 2);
}
