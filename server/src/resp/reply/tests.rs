use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

use super::*;

/// The replies as a client reads them, without a rest.
fn read(write: impl FnOnce(&mut Replies<'_>)) -> OwnedFrame {
    let mut bytes = Vec::new();
    write(&mut Replies {
        bytes: &mut bytes,
        protocol: Protocol::Resp2,
        errors: Errors::default(),
    });
    let (frame, used) = decode(&bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    frame
}

fn string(text: impl Into<Vec<u8>>) -> OwnedFrame {
    OwnedFrame::BulkString(text.into())
}

proptest! {
    #[test]
    fn a_number_is_read_as_it_was_written(number: i64, shift in 0_u32..64) {
        for number in [number >> shift, i64::MIN, i64::MAX, 0] {
            prop_assert_eq!(read(|replies| replies.integer(number)), OwnedFrame::Integer(number));
        }
    }

    #[test]
    fn an_id_is_the_same_in_each_form(number: u64, shift in 0_u32..64) {
        for id in [Id::from_u64(number >> shift), Id::from_u64(u64::MAX), Id::default()] {
            let of = |form| read(|replies| replies.id(id, form));
            prop_assert_eq!(of(Form::Integer), OwnedFrame::Integer(id.to_i64()));
            for (form, text) in [
                (Form::Decimal, id.to_i64().to_string()),
                (Form::Unsigned, id.to_u64().to_string()),
                (Form::Text, id.to_string()),
            ] {
                prop_assert_eq!(of(form), string(text.clone()));
                prop_assert_eq!(form.read(text.as_bytes()), Some(id));
            }
        }
    }

    #[test]
    fn an_error_is_one_line(text: String) {
        let frame = read(|replies| replies.error("ERR", &text));
        let OwnedFrame::Error(line) = frame else { panic!("{frame:?}") };
        prop_assert!(line.starts_with("ERR "));
        prop_assert_eq!(line.len(), text.len() + 4);
    }
}

#[test]
fn an_error_whose_text_fails_is_a_reply() {
    struct Fails;
    impl fmt::Display for Fails {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    let frame = read(|replies| replies.error("ERR", Fails));
    assert_eq!(frame, OwnedFrame::Error("ERR ".into()));
}
