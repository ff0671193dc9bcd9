//! Positive IDs: answers, walks by hand, and runs on every backend.

use proptest::prelude::*;
use ringflake::{Id, Inspector, Layout, LayoutError};

use super::runs::starts;
use super::{Backend, Cipher, Secret, assert_answer, expected, run};

/// The first number outside.
const END: u64 = 1 << 63;

pub(super) fn ciphers(secret: &Secret) -> Vec<Cipher> {
    Backend::available()
        .map(|backend| Cipher::positive_with_backend(secret, backend).unwrap())
        .collect()
}

/// The ID of `raw`, walked by hand with the cipher of 64 bits, and the encryptions that it took.
fn walked(cipher: &Cipher, raw: u64) -> (u64, u32) {
    let mut id = cipher.encrypt(raw);
    let mut encryptions = 1;
    while id >= END {
        id = cipher.encrypt(id);
        encryptions += 1;
    }
    (id, encryptions)
}

/// Computed by another implementation of the cipher, written from the paper: secret, raw, ID
/// and the encryptions that it takes.
const ANSWERS: [(&str, u64, u64, u32); 14] = [
    (PAPER, 0, 9_106_106_974_612_709_236, 1),
    (PAPER, 1, 618_641_791_188_934_092, 2),
    (PAPER, 42, 7_465_537_584_773_239_995, 1),
    (PAPER, 2_113_124_171_775, 6_442_668_868_603_681_425, 1),
    (PAPER, 1 << 62, 5_161_114_741_823_353_842, 3),
    (PAPER, END - 1, 2_846_467_234_637_391_902, 1),
    (PAPER, 673, 5_757_447_670_307_412_908, 13),
    (PAPER, 3_929, 3_352_033_744_479_718_549, 11),
    (OTHER, 0, 1_428_826_998_650_800_540, 1),
    (OTHER, 2, 5_849_221_499_474_450_923, 13),
    (OTHER, 2_113_124_171_775, 4_234_760_760_247_968_776, 1),
    (OTHER, 1 << 62, 3_140_300_602_847_092_863, 2),
    (OTHER, END - 1, 3_711_852_130_512_929_233, 2),
    (OTHER, 3_348, 1_235_312_154_869_691_867, 14),
];

const PAPER: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "73757065722d7365637265742d6b6579";

#[test]
fn answers_of_another_implementation() {
    for (secret, raw, id, encryptions) in ANSWERS {
        let secret = Secret::from_hex(secret).unwrap();
        assert_eq!(walked(&Cipher::sparx64(&secret), raw), (id, encryptions));
        for cipher in ciphers(&secret) {
            assert_answer(&cipher, raw, id);
        }
    }
}

proptest! {
    #[test]
    fn positive_ids_are_one_to_one_with_raws(secret in any::<[u8; 16]>(), number: u64) {
        let secret = Secret::from_bytes(secret);
        let (cipher, raw) = (Cipher::positive(&secret), number % END);
        let id = cipher.encrypt(raw);
        prop_assert!(id < END);
        prop_assert!(Id::from_u64(id).to_i64() >= 0);
        prop_assert_eq!(id, walked(&Cipher::sparx64(&secret), raw).0);
        prop_assert_eq!(cipher.decrypt(id), raw);
        prop_assert_eq!(cipher.encrypt(cipher.decrypt(raw)), raw);
    }

    #[test]
    fn numbers_outside_the_domain_are_their_own(secret in any::<[u8; 16]>(), number: u64) {
        let cipher = Cipher::positive(&Secret::from_bytes(secret));
        let outside = number | END;
        prop_assert_eq!(cipher.encrypt(outside), outside);
        prop_assert_eq!(cipher.decrypt(outside), outside);
    }

    #[test]
    fn runs_of_positive_ids_agree_with_single_ones(
        secret in any::<[u8; 16]>(),
        first in prop_oneof![starts(), (0_u64..1100).prop_map(|before| END - before)],
        length in prop_oneof![0_usize..=200, 900_usize..1100],
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

/// Sixteen raws in a row, as many as a vector of AVX2 has, which all need a second encryption.
#[test]
fn a_vector_may_be_left_over_as_a_whole() {
    let secret = Secret::from_bytes(*b"all are left ...");
    let once = Cipher::sparx64(&secret);
    let ids = run(&once, 0, 1 << 20);
    let is_left = |ids: &[u64]| ids.iter().all(|&id| id >= END);
    let first = ids.windows(16).position(is_left).unwrap();
    for cipher in ciphers(&secret) {
        for (before, length) in [(0, 16), (0, 17), (3, 100), (64, 256)] {
            let first = (first as u64).saturating_sub(before);
            assert_eq!(
                run(&cipher, first, length),
                expected(&cipher, first, length),
                "{cipher:?}"
            );
        }
    }
}

#[test]
fn an_inspector_refuses_what_no_positive_id_is() {
    let cipher = Cipher::positive(&Secret::from_bytes([9; 16]));
    let raw = Layout::TWITTER.pack(5, 6, 7).unwrap();
    let id = cipher.encrypt(raw);
    for layout in [Layout::TWITTER, Layout::RANDFLAKE] {
        let inspector = Inspector::new(layout, cipher.clone());
        assert_eq!(inspector.inspect(Id::from_u64(id)), layout.unpack(raw));
        let error = inspector.inspect(Id::from_u64(END | 5)).unwrap_err();
        let expected = LayoutError::NotOfCipher {
            id: END | 5,
            id_bits: 63,
        };
        assert_eq!(error, expected);
        assert_eq!(
            error.to_string(),
            "0x8000000000000005 has bits above the 63 that this cipher's IDs have; \
             it was encrypted with a 64-bit cipher, or not encrypted"
        );
    }
    let wide = Cipher::sparx64(&Secret::from_bytes([9; 16]));
    let inspector = Inspector::new(Layout::RANDFLAKE, wide);
    assert!(inspector.inspect(Id::from_u64(END | 5)).is_ok());
}
