use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::encode::encode;
use redis_protocol::resp2::types::{OwnedFrame, RangeFrame, Resp2Frame};

use super::*;

const MOST: usize = 4_096;

/// The result of an input: the arguments of its requests, and the reason why it ends there.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    requests: Vec<(Vec<Vec<u8>>, usize)>,
    /// Bytes that are no whole request.
    rest: usize,
    malformed: Option<Malformed>,
}

/// Decodes what comes in pieces, as a connection does.
fn decode_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = Decoder::new(MOST);
    let mut input = Vec::new();
    let mut requests = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match decoder.decode(&input) {
                Ok(Decoded::Request(arguments, used)) => {
                    let words = arguments.of(&input[..used]);
                    let (name, rest) = words.split();
                    let kept = std::iter::once(name).chain(rest.iter().copied());
                    requests.push((kept.map(<[u8]>::to_vec).collect(), arguments.len()));
                    input.drain(..used);
                }
                Ok(Decoded::Nothing(used)) => drop(input.drain(..used)),
                Ok(Decoded::Part) => break,
                Err(malformed) => {
                    return Outcome {
                        requests,
                        rest: 0,
                        malformed: Some(malformed),
                    };
                }
            }
        }
    }
    Outcome {
        requests,
        rest: input.len(),
        malformed: None,
    }
}

fn decode_all(input: &[u8]) -> Outcome {
    decode_pieces([input])
}

/// Cuts at each of the places.
pub(in crate::resp) fn cut<'a>(input: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|at| at.index(input.len() + 1)).collect();
    places.extend([0, input.len()]);
    places.sort_unstable();
    places.windows(2).map(|at| &input[at[0]..at[1]]).collect()
}

fn encode_request(arguments: &[Vec<u8>]) -> Vec<u8> {
    let bulk = |argument: &Vec<u8>| OwnedFrame::BulkString(argument.clone());
    let frame = OwnedFrame::Array(arguments.iter().map(bulk).collect());
    let mut bytes = vec![0; frame.encode_len(false)];
    let written = encode(&mut bytes, &frame, false).unwrap();
    bytes.truncate(written);
    bytes
}

/// Bytes that look like requests more often than chance has it.
fn nearly_requests() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        3 => "[*$][0-9]{1,3}\r\n".prop_map(String::into_bytes),
        2 => Just(b"$4\r\nINCR\r\n".to_vec()),
        2 => Just(b"*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n".to_vec()),
        1 => "[*$][-+ 0-9]{0,24}".prop_map(String::into_bytes),
        1 => "(ping|incr x|post /)".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..12),
        1 => (0_usize..700).prop_map(|length| {
            [format!("${length}\r\n").into_bytes(), vec![b'x'; length], b"\r\n".to_vec()].concat()
        }),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn both_paths_and_the_crate_agree(input in nearly_requests(), from: prop::sample::Index) {
        let input = &input[from.index(input.len() + 1)..];
        let found = any_bulk(input, MOST);
        if let Some(plain) = plain_bulk(input) {
            prop_assert_eq!(&found, &Ok(Some(plain)));
        }
        // The crate does not look at the end of a string.
        if let Ok(Some((place, used))) = found {
            let string = RangeFrame::BulkString((place.start, place.end));
            prop_assert_eq!(decode_range(input).unwrap(), Some((string, used)));
        }
    }

    #[test]
    fn a_short_string_goes_the_plain_path(string in vec(any::<u8>(), 0..1_000)) {
        let bytes = encode_request(std::slice::from_ref(&string));
        let (place, used) = plain_bulk(&bytes[4..]).unwrap();
        prop_assert_eq!(&bytes[4..][place], &string[..]);
        prop_assert_eq!(used, bytes.len() - 4);
    }

    #[test]
    fn where_the_input_is_cut_changes_nothing(
        input in nearly_requests(),
        places: Vec<prop::sample::Index>,
    ) {
        prop_assert_eq!(decode_pieces(cut(&input, &places)), decode_all(&input));
        prop_assert_eq!(decode_pieces(input.chunks(1)), decode_all(&input));
    }

    #[test]
    fn arguments_come_out_as_they_went_in(
        requests in vec(vec(vec(any::<u8>(), 0..1_200), 1..4), 1..4),
    ) {
        let input: Vec<u8> = requests.iter().flat_map(|request| encode_request(request)).collect();
        let expected = requests.into_iter().map(|request| (request.clone(), request.len()));
        let expected = Outcome { requests: expected.collect(), rest: 0, malformed: None };
        prop_assert_eq!(decode_all(&input), expected);
    }
}

#[test]
fn a_line_is_a_request_of_its_words() {
    let outcome = decode_all(b"PING\r\n  incr\tns \n\r\n\n*0\r\n*-1\r\nGET");
    let words = |line: &str| {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    assert_eq!(
        outcome.requests,
        [(words("PING"), 1), (words("incr ns"), 2)]
    );
    assert_eq!(outcome.rest, 3);
}

#[test]
fn what_is_no_request_is_refused_by_name() {
    let long = format!("*1\r\n${}\r\n", MOST + 1);
    let line = "x".repeat(MOST);
    for (input, expected) in [
        ("*x\r\n", Malformed::ArrayLength),
        ("*1\n", Malformed::ArrayLength),
        ("*11111111111111111111111111111111", Malformed::ArrayLength),
        ("*99999999\r\n", Malformed::TooLong { most: MOST }),
        ("*1\r\n:1\r\n", Malformed::NotBulk(b':')),
        ("*1\r\n*1\r\n$1\r\nx\r\n", Malformed::NotBulk(b'*')),
        ("*1\r\n$-1\r\n", Malformed::BulkLength),
        ("*1\r\n$x\r\n", Malformed::BulkLength),
        ("*1\r\n$1\r\nxyz", Malformed::BulkEnd),
        ("*1\r\n$1000\n", Malformed::BulkLength),
        (&long, Malformed::TooLong { most: MOST }),
        (&line, Malformed::TooLong { most: MOST }),
        ("POST / HTTP/1.1\r\n", Malformed::Http),
    ] {
        let outcome = decode_all(input.as_bytes());
        assert_eq!(outcome.malformed, Some(expected), "{input:?}");
        assert_eq!(outcome.requests, []);
    }
}

#[test]
fn a_request_is_no_longer_than_the_limit() {
    // `*1`, `$4084` and three ends of lines.
    let bulk = |length| encode_request(&[vec![b'x'; length - 4 - 7 - 2]]);
    let line = |length| [vec![b'x'; length - 2], b"\r\n".to_vec()].concat();
    // Each of the strings that are to come has five bytes.
    let array = |length| format!("*{}\r\n", length / 5).into_bytes();
    for (request, over) in [
        (bulk(MOST), bulk(MOST + 1)),
        (line(MOST), line(MOST + 1)),
        (array(MOST), array(MOST + 5)),
    ] {
        assert_eq!(decode_all(&request).malformed, None);
        let most = Some(Malformed::TooLong { most: MOST });
        assert_eq!(decode_all(&over).malformed, most);
    }
}

#[test]
fn more_arguments_than_are_kept_are_counted() {
    let arguments = vec![b"x".to_vec(); KEPT + 5];
    let outcome = decode_all(&encode_request(&arguments));
    assert_eq!(outcome.requests, [(arguments[..KEPT].to_vec(), KEPT + 5)]);
}

#[test]
fn a_request_byte_by_byte_is_looked_at_once() {
    let input = encode_request(&vec![vec![b'x'; 5]; 300]);
    let mut decoder = Decoder::new(MOST);
    for end in 1..input.len() {
        assert_eq!(decoder.decode(&input[..end]), Ok(Decoded::Part));
        // It stands at the string that is not there as a whole, and not at the beginning.
        assert!(end < 6 || decoder.at + 11 >= end, "{} {end}", decoder.at);
    }
    assert!(matches!(decoder.decode(&input), Ok(Decoded::Request(_, _))));
}
