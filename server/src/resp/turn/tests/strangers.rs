//! What a client can do that has given no token.

use super::*;

#[test]
fn a_request_before_authentication_is_short() {
    let mut bench = Bench::new(ByName);
    let part = [b"*1\r\n$2000\r\n", &[b'x'; 1_100][..]].concat();
    let (output, goes_on) = bench.answer(&[&part]);
    assert!(!goes_on);
    assert!(output.starts_with(b"-ERR Protocol error: a request has at most 1024 bytes"));
    // The longest token fits, and requests are longer then.
    let mut bench = Bench::new(ByName);
    let long = format!("HELLO 3 AUTH default {}", "t".repeat(512));
    assert!(bench.error(&long).starts_with("WRONGPASS "));
    assert_eq!(bench.line("AUTH take"), ok());
    let text = "x".repeat(3_000);
    assert_eq!(bench.line(&format!("ECHO {text}")), string(&text));
    bench.line("RESET");
    assert!(!bench.answer(&[&part]).1);
}

#[test]
fn a_failed_authentication_is_counted_and_delayed() {
    let mut bench = Bench::new(ByName);
    let mut turn = |line: &str| {
        let mut output = Vec::new();
        let next = bench
            .session
            .turn(line.as_bytes(), &mut bench.context, &mut output);
        let failures = bench.context.shared.counters[1].auth_failures.load(Relaxed);
        (next.1, failures)
    };
    assert_eq!(turn("AUTH wrong\r\nAUTH wrong\r\n"), (NextAction::Delay, 1));
    assert_eq!(turn("HELLO 3 AUTH x wrong\r\n"), (NextAction::Delay, 2));
    assert_eq!(turn("AUTH take\r\n"), (NextAction::Input, 2));
}

#[test]
fn a_header_of_the_proxy_protocol_gets_no_reply() {
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
    let v1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n";
    for header in [&v1[..], v2] {
        let whole = [header, b"INCR ns\r\n"].concat();
        assert_eq!(
            Bench::new(Everything).answer(&[&whole]),
            (Vec::new(), false)
        );
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(Bench::new(Everything).answer(&bytes), (Vec::new(), false));
    }
    // Anywhere else it is a request like any other, and empty lines are none.
    let mut bench = Bench::new(Everything);
    let (output, goes_on) = bench.answer(&[b"\r\n", b"\r\nPING\r\n", v1]);
    assert!(goes_on && output.starts_with(b"+PONG\r\n-ERR unknown command 'PROXY'"));
}
