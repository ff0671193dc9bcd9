//! Batches: each number as it is encrypted or decrypted alone, on every backend.

use super::*;

/// The ciphers of 64 bits, of positive IDs, and of none.
fn all(secret: &Secret) -> Vec<Cipher> {
    let mut ciphers = ciphers(secret);
    ciphers.extend(positive::ciphers(secret));
    ciphers.push(Cipher::plain());
    #[cfg(feature = "js-safe")]
    ciphers.push(Cipher::js_safe(secret));
    ciphers
}

fn check(cipher: &Cipher, numbers: &[u64]) {
    let mut batch = numbers.to_vec();
    cipher.encrypt_batch(&mut batch);
    let expected = numbers.iter().map(|&raw| cipher.encrypt(raw));
    assert!(
        batch.iter().copied().eq(expected),
        "{cipher:?}: {numbers:?}"
    );
    cipher.decrypt_batch(&mut batch);
    assert_eq!(batch, numbers, "{cipher:?}");
    // Numbers that no encryption has given.
    cipher.decrypt_batch(&mut batch);
    let expected = numbers.iter().map(|&id| cipher.decrypt(id));
    assert!(
        batch.iter().copied().eq(expected),
        "{cipher:?}: {numbers:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_numbers_are_encrypted_and_decrypted(
        secret in any::<[u8; 16]>(),
        numbers in prop_oneof![vec(any::<u64>(), 0..=200), vec(any::<u64>(), 1000..1300)],
    ) {
        for cipher in all(&Secret::from_bytes(secret)) {
            check(&cipher, &numbers);
        }
    }
}

/// Every mix of full and partial vectors.
#[test]
fn batches_of_every_length_agree_with_the_reference() {
    let secret = Secret::from_bytes(*b"every length of\0");
    let numbers = run(&Cipher::sparx64(&secret), 77, 200);
    for cipher in ciphers(&secret) {
        for length in 0..=200 {
            check(&cipher, &numbers[..length]);
        }
    }
}

/// More than have places of 16 bits.
#[test]
fn a_batch_may_be_longer_than_a_section() {
    let secret = Secret::from_bytes([3; 16]);
    let numbers: Vec<_> = (u64::MAX / 2 - 20_000..).take((1 << 16) + 5).collect();
    let expected: Vec<_> = {
        let cipher = Cipher::positive(&secret);
        numbers.iter().map(|&raw| cipher.encrypt(raw)).collect()
    };
    for cipher in positive::ciphers(&secret) {
        let mut batch = numbers.clone();
        cipher.encrypt_batch(&mut batch);
        assert!(batch == expected, "{cipher:?}");
        cipher.decrypt_batch(&mut batch);
        assert!(batch == numbers, "{cipher:?}");
    }
}
