//! A PostgreSQL that asks for the password in the clear.

use std::io;

use super::{Thief, Victim, file};

/// One that answers the question for TLS with this letter.
pub(super) fn thief(tls: u8) -> Thief {
    Thief::new(move |victim| rob(victim, tls, Victim::encrypt))
}

fn rob(victim: &mut Victim, tls: u8, encrypt: fn(&mut Victim) -> io::Result<()>) -> io::Result<()> {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    if victim.listen(8)? == SSL_REQUEST {
        victim.say(&[tls])?;
        if tls == b'S' {
            encrypt(victim)?;
        }
        victim.listen(8)?;
    }
    victim.listen(4096)?;
    victim.say(b"R\0\0\0\x08\0\0\0\x03")?;
    // The password message, or the end of the connection.
    victim.listen(4096)?;
    victim.hang_up()
}

#[test]
fn it_gets_no_password_in_the_clear() {
    for letter in [b'S', b'N'] {
        let thief = thief(letter);
        for query in ["", "?tls=off", "?sslmode=disable"] {
            let url = format!("postgres://me:hunter2@127.0.0.1:PORT/app{query}");
            thief.fails(&url, "in the clear");
        }
    }
    let encrypted = "postgres://me:hunter2@localhost:PORT/app?sslmode=require";
    thief(b'S').fails(encrypted, "invalid peer certificate");
    thief(b'N').fails(encrypted, "has no TLS");

    let ca = file("ca.pem");
    let known = format!("postgres://me:hunter2@localhost:PORT/app?sslrootcert={ca}");
    thief(b'N').fails(&known, "has no TLS");
}

#[test]
fn it_is_not_believed_elsewhere() {
    let url = |place: &str, query: &str| format!("postgres://me:hunter2@{place}:PORT/app{query}");
    super::is_not_believed_elsewhere(&thief(b'S'), url);
    thief(b'N').fails(&url("0.0.0.0", ""), "has no TLS");
}

pub(super) fn thief_that_wants_a_certificate() -> Thief {
    Thief::new(move |victim| rob(victim, b'S', Victim::encrypt_for_the_known))
}
