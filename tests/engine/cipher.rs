//! The cipher against published answers, its backends against the reference,
//! and the secret's promises.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;

use proptest::collection::vec;
use proptest::prelude::*;
use ringflake::{Backend, Cipher, Secret, SecretError};
use ringflake_kit::{assert_matches, known_answers};

mod positive;

fn ciphers(secret: &Secret) -> Vec<Cipher> {
    Backend::available()
        .map(|backend| Cipher::with_backend(secret, backend).unwrap())
        .collect()
}

fn expected(cipher: &Cipher, first: u64, length: usize) -> Vec<u64> {
    (0..length as u64)
        .map(|offset| cipher.encrypt(first.wrapping_add(offset)))
        .collect()
}

fn run(cipher: &Cipher, first: u64, length: usize) -> Vec<u64> {
    let mut out = vec![0; length];
    cipher.encrypt_run(first, &mut out);
    out
}

/// Checks an answer both ways, as the first of a run, and in the middle of one.
#[track_caller]
fn assert_answer(cipher: &Cipher, raw: u64, id: u64) {
    let case = format!("{cipher:?}: {raw}");
    assert_eq!(cipher.encrypt(raw), id, "{case}");
    assert_eq!(cipher.decrypt(id), raw, "{case}");
    assert_eq!(run(cipher, raw, 1), [id], "{case}");
    assert_eq!(run(cipher, raw.wrapping_sub(45), 100)[45], id, "{case}");
}

mod answers {
    use super::*;

    /// From the SPARX paper: eight bytes of plaintext and of ciphertext, which
    /// on the wire are the bytes of a little-endian number.
    #[test]
    fn of_the_sparx_paper() {
        let secret = Secret::from_hex("00112233445566778899aabbccddeeff").unwrap();
        let raw = u64::from_le_bytes([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        let id = u64::from_le_bytes([0x2b, 0xbe, 0xf1, 0x52, 0x01, 0xf5, 0x5f, 0x98]);
        for cipher in ciphers(&secret) {
            assert_answer(&cipher, raw, id);
        }
    }

    #[test]
    fn of_the_randflake_reference() {
        let secrets = known_answers::column("secret_hex");
        let raws = known_answers::numbers("raw_u64");
        let ids = known_answers::numbers("id_u64");
        for ((secret, raw), id) in secrets.into_iter().zip(raws).zip(ids) {
            for cipher in ciphers(&Secret::from_hex(secret).unwrap()) {
                assert_answer(&cipher, raw, id);
            }
        }
    }
}

mod runs {
    use super::*;

    /// Starts all over the 64 bits, half of them just before a number where
    /// the low 15, 16, 32, 48 or all 64 bits wrap around.
    pub(super) fn starts() -> impl Strategy<Value = u64> {
        let edge = (
            any::<u64>(),
            0_u64..1100,
            prop::sample::select(vec![15, 16, 32, 48, 64]),
        );
        prop_oneof![
            any::<u64>(),
            edge.prop_map(|(high, before, bits)| {
                let wrap = high.checked_shl(bits).unwrap_or(0);
                wrap.wrapping_sub(before)
            }),
        ]
    }

    proptest! {
        #[test]
        fn agree_with_the_reference(
            secret in any::<[u8; 16]>(),
            first in starts(),
            length in prop_oneof![0_usize..=200, Just(1024)],
        ) {
            for cipher in ciphers(&Secret::from_bytes(secret)) {
                prop_assert_eq!(
                    run(&cipher, first, length),
                    expected(&cipher, first, length),
                    "{:?}", cipher
                );
            }
        }
    }

    /// Every mix of full and partial vectors, aligned and not, and cut at every
    /// place by the end of a section.
    #[test]
    fn of_every_length_agree_with_the_reference() {
        let secret = Secret::from_bytes(*b"every length of\0");
        let lengths = || (0..=200).chain([1024]);
        for cipher in ciphers(&secret) {
            for first in [0, 0x1234_5678_9abc_1000, 7, u64::MAX - 99] {
                let all = expected(&cipher, first, 1024);
                for length in lengths() {
                    assert_eq!(
                        run(&cipher, first, length),
                        all[..length],
                        "{cipher:?}: {length} from {first:#x}"
                    );
                }
            }
        }
    }

    /// A run longer than several sections of 2^15.
    #[test]
    fn of_several_sections_agree_with_the_reference() {
        let secret = Secret::from_bytes([3; 16]);
        let first = 0x00ff_ffff_fffe_fff0;
        let expected = expected(&Cipher::sparx64(&secret), first, (1 << 17) + 5);
        for cipher in ciphers(&secret) {
            assert!(
                run(&cipher, first, expected.len()) == expected,
                "{cipher:?}"
            );
        }
    }
}

mod bijection {
    use super::*;

    proptest! {
        #[test]
        fn both_ways(secret in any::<[u8; 16]>(), block: u64) {
            let cipher = Cipher::sparx64(&Secret::from_bytes(secret));
            prop_assert_eq!(cipher.decrypt(cipher.encrypt(block)), block);
            prop_assert_eq!(cipher.encrypt(cipher.decrypt(block)), block);
        }

        #[test]
        fn depends_on_the_whole_secret(secret in any::<[u8; 16]>(), bit in 0_usize..128) {
            let mut other = secret;
            other[bit / 8] ^= 1 << (bit % 8);
            let ids = [secret, other]
                .map(|secret| run(&Cipher::sparx64(&Secret::from_bytes(secret)), 0, 4));
            prop_assert_ne!(&ids[0], &ids[1]);
        }
    }

    #[test]
    fn on_two_whole_sections() {
        for cipher in ciphers(&Secret::from_bytes(*b"whole sections..")) {
            let first = 0xfedc_ba98_7654_0000;
            let ids = run(&cipher, first, 1 << 16);
            let distinct: HashSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), 1 << 16, "{cipher:?}");
            for (&id, raw) in ids.iter().zip(first..) {
                assert_eq!(cipher.decrypt(id), raw, "{cipher:?}");
            }
        }
    }
}

mod backends {
    use super::*;

    /// Each is there where its instructions are, the fastest first.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn are_those_that_the_processor_has() {
        let bw = is_x86_feature_detected!("avx512bw");
        let has = [
            (
                Backend::Avx512Vbmi2,
                bw && is_x86_feature_detected!("avx512vbmi2"),
            ),
            (Backend::Avx512Bw, bw),
            (Backend::Avx2, is_x86_feature_detected!("avx2")),
            (Backend::Sse41, is_x86_feature_detected!("sse4.1")),
            (Backend::Portable, true),
        ];
        let expected: Vec<_> = has.iter().filter(|(_, has)| *has).collect();
        assert!(Backend::available().eq(expected.iter().map(|(backend, _)| *backend)));
    }

    #[test]
    fn have_names_that_a_refusal_lists() {
        for (backend, name) in [
            (Backend::Portable, "portable"),
            (Backend::Sse41, "sse4.1"),
            (Backend::Avx2, "avx2"),
            (Backend::Avx512Bw, "avx512bw"),
            (Backend::Avx512Vbmi2, "avx512vbmi2"),
            (Backend::Neon, "neon"),
        ] {
            assert_eq!(backend.to_string(), name);
        }
        let foreign = if cfg!(target_arch = "x86_64") {
            Backend::Neon
        } else {
            Backend::Avx2
        };
        let error = Cipher::with_backend(&Secret::from_bytes([1; 16]), foreign).unwrap_err();
        let names: Vec<_> = Backend::available().map(|b| b.to_string()).collect();
        let list = format!("choose one of {}", names.join(", "));
        assert!(list.ends_with("portable"), "{list}");
        assert_eq!(error.backend, foreign);
        let message = error.to_string();
        assert!(message.ends_with(&list), "{message}");
        assert!(message.contains(&foreign.to_string()), "{message}");
    }
}

mod secrets {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f";
    const BYTES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    proptest! {
        #[test]
        fn from_the_digits_of_any_bytes(bytes in any::<[u8; 16]>()) {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let (read, made) = (Secret::from_hex(&digits).unwrap(), Secret::from_bytes(bytes));
            prop_assert_eq!(read.expose(), &bytes);
            prop_assert_eq!(made.expose(), &bytes);
        }

        #[test]
        fn only_from_32_digits(text in "\\PC{0,40}") {
            let good = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            prop_assert_eq!(Secret::from_hex(&text).is_ok(), good);
        }

        #[test]
        fn with_the_place_of_a_bad_digit(position in 0_usize..32, bad in "[^0-9a-fA-F]") {
            prop_assume!(bad.len() == 1);
            let mut digits = DIGITS.to_owned();
            digits.replace_range(position..=position, &bad);
            let error = Secret::from_hex(&digits).unwrap_err();
            prop_assert!(
                matches!(error, SecretError::HexDigit { position: found } if found == position),
                "{}", error
            );
        }

        #[test]
        fn never_panic_on_a_file(contents in vec(any::<u8>(), 0..80)) {
            let file = file(&contents);
            let digits = contents.trim_ascii_end();
            let good = contents.len() == 16
                || contents.len() <= 64
                    && digits.len() == 32
                    && digits.iter().all(u8::is_ascii_hexdigit);
            prop_assert_eq!(Secret::from_file(file.path()).is_ok(), good);
        }
    }

    fn file(contents: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), contents).unwrap();
        file
    }

    #[test]
    fn from_files() {
        let padded = format!("{DIGITS:64}");
        for (contents, bytes) in [
            (&BYTES[..], BYTES),
            (DIGITS.as_bytes(), BYTES),
            (b"000102030405060708090A0B0C0D0E0F\n", BYTES),
            (b"000102030405060708090a0b0c0d0e0f\r\n", BYTES),
            (b"000102030405060708090a0b0c0d0e0f \t\n\n", BYTES),
            (padded.as_bytes(), BYTES),
            // Raw bytes that look like white space or digits are still raw bytes.
            (b"0123456789abcde\n", *b"0123456789abcde\n"),
            (b"0123456789abcdef", *b"0123456789abcdef"),
            (&[b' '; 16], [b' '; 16]),
        ] {
            let secret = Secret::from_file(file(contents).path()).unwrap();
            assert_eq!(secret.expose(), &bytes, "{contents:?}");
        }
    }

    #[test]
    fn with_the_length_of_a_wrong_file() {
        let padded = format!("{DIGITS:65}");
        for (contents, length, says) in [
            (&b""[..], 0, "has 0 bytes"),
            (&BYTES[1..], 15, "has 15 bytes"),
            (b"0123456789abcdef\n", 17, "has 17 bytes"),
            (&[b'0'; 64], 64, "has 64 bytes"),
            (padded.as_bytes(), 65, "more than 64 bytes"),
            (&[b'0'; 4096], 65, "more than 64 bytes"),
        ] {
            let file = file(contents);
            let error = Secret::from_file(file.path()).unwrap_err();
            assert_matches!(error, SecretError::FileLength { path, found }
                if path == file.path() && *found == length);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn with_the_path_and_source_of_an_unreadable_file() {
        let missing = PathBuf::from("no/such/secret");
        let error = Secret::from_file(&missing).unwrap_err();
        assert!(error.to_string().contains("no/such/secret"), "{error}");
        let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn never_show() {
        let digits = "c0ffee00deadbeef0123456789abcdef";
        let secret = Secret::from_hex(digits).unwrap();
        for text in [format!("{secret:?}"), format!("{secret:#?}")] {
            assert_eq!(text, "Secret(..)");
        }
        let cipher = Cipher::with_backend(&secret, Backend::Portable).unwrap();
        assert_eq!(
            format!("{cipher:?}"),
            r#"Cipher { algorithm: "SPARX-64/128", id_bits: 64, backend: portable, .. }"#
        );
        assert_eq!(format!("{:?}", Cipher::plain()), "Cipher(plain)");
    }

    #[test]
    fn never_show_in_errors() {
        let spoilt = [
            "c0ffee00deadbeef0123456789abcde",
            "c0ffee00deadbeef0123456789abcdeg",
        ];
        for text in spoilt {
            let file = file(text.as_bytes());
            for error in [
                Secret::from_hex(text).unwrap_err(),
                Secret::from_file(file.path()).unwrap_err(),
            ] {
                for shown in [format!("{error}"), format!("{error:?}")] {
                    assert!(!shown.contains("c0ffee"), "{shown}");
                    assert!(!shown.contains("abcde"), "{shown}");
                }
            }
        }
    }

    #[test]
    fn leave_zeros_when_dropped() {
        let mut place = MaybeUninit::new(Secret::from_bytes([0xa5; 16]));
        // SAFETY: the place was initialised just above and is not used as a
        // `Secret` again.
        unsafe { place.assume_init_drop() };
        // SAFETY: the storage is still owned by `place`, as large as the array,
        // and dropping plain bytes leaves them initialised.
        let left = unsafe { ptr::read(place.as_ptr().cast::<[u8; 16]>()) };
        assert_eq!(left, [0; 16]);
    }

    #[cfg(feature = "getrandom")]
    #[test]
    fn are_generated_anew() {
        let drawn: HashSet<_> = (0..100)
            .map(|_| *Secret::generate().unwrap().expose())
            .collect();
        assert_eq!(drawn.len(), 100);
    }
}
