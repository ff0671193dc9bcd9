//! The server's public key, for passwords that are sent without TLS.
//!
//! To log in with `caching_sha2_password` for the first time, a client sends the
//! password encrypted with the server's RSA key. Without a file that holds it the
//! driver asks the peer for one, and so encrypts for any peer that answers. The driver
//! has no setting against that, so it is given a file that can't be there.

use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// No path of a file holds this byte: reading it is an error on every system.
pub(super) const NO_FILE: &str = "\0";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// Checks a condition without which the driver panics: that `pem` holds
/// an RSA key that is long enough for the password.
///
/// # Errors
/// The fault of the file.
pub(super) fn check(pem: &[u8], password: &str) -> Result<(), String> {
    let form = "the file of server_key_path holds no RSA key in PEM: \
                it begins with -----BEGIN PUBLIC KEY-----";
    let begins = |line: &[u8]| line.starts_with(b"-----BEGIN");
    if pem
        .split(|byte| *byte == b'\n')
        .filter(|line| begins(line))
        .count()
        != 1
    {
        return Err(form.into());
    }
    let key = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| form)?;
    let bytes = modulus(&key).ok_or(form)?;
    // OAEP with SHA-1 takes 42 bytes, and the password ends with a zero.
    let room = bytes.saturating_sub(42 + 1);
    if bytes < 128 || password.len() > room {
        return Err(format!(
            "the key of server_key_path has {bytes} bytes, which is too short for this password: \
             use TLS"
        ));
    }
    Ok(())
}

/// How many bytes the modulus of this RSA key has.
fn modulus(key: &[u8]) -> Option<usize> {
    let (key, _) = element(key, SEQUENCE)?;
    let (_algorithm, key) = element(key, SEQUENCE)?;
    let (bits, _) = element(key, BIT_STRING)?;
    let (unused, key) = bits.split_first()?;
    if *unused != 0 {
        return None;
    }
    let (numbers, _) = element(key, SEQUENCE)?;
    let (modulus, rest) = element(numbers, INTEGER)?;
    element(rest, INTEGER)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    Some(modulus.len() - zeros)
}

/// The content of the element of DER that `der` begins with, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, der) = der.split_first()?;
    let (&first, der) = der.split_first()?;
    let (length, der) = match first {
        0..=0x7f => (usize::from(first), der),
        0x81..=0x84 => {
            let (digits, der) = der.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (length, der)
        }
        _ => return None,
    };
    (*found == tag).then(|| der.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/tls/rsa.pub.pem"
    ));

    #[test]
    fn a_key_is_one_that_the_driver_can_use() {
        check(KEY.as_bytes(), "hunter2").unwrap();
        check(KEY.as_bytes(), &"x".repeat(213)).unwrap();
        let text = check(KEY.as_bytes(), &"x".repeat(214)).unwrap_err();
        assert!(text.contains("256 bytes"), "{text}");
        let short = |line: usize| {
            let lines = KEY.lines().enumerate();
            let kept = lines.filter(|(index, _)| *index != line);
            kept.map(|(_, line)| format!("{line}\n"))
                .collect::<String>()
        };
        for text in [
            String::new(),
            "hunter2".into(),
            short(1),
            short(0),
            format!("{KEY}{KEY}"),
            KEY.replace("PUBLIC", "RSA PUBLIC"),
        ] {
            let error = check(text.as_bytes(), "hunter2").unwrap_err();
            assert!(error.contains("BEGIN PUBLIC KEY"), "{error}");
        }
    }

    #[test]
    fn what_is_cut_or_longer_than_it_is_has_no_length() {
        let key = SubjectPublicKeyInfoDer::from_pem_slice(KEY.as_bytes()).unwrap();
        assert_eq!(modulus(&key), Some(256));
        for length in 0..key.len() {
            assert_eq!(modulus(&key[..length]), None, "{length}");
        }
    }

    #[test]
    fn no_file_can_be_read_there() {
        let error = std::fs::read(NO_FILE).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}
