//! A PostgreSQL that asks for the password in the clear.

use std::io;

use super::{Client, Impostor, file};

/// One that answers the question for TLS with this letter.
pub(super) fn impostor(tls: u8) -> Impostor {
    Impostor::new(move |client| ask_for_password(client, tls, Client::encrypt))
}

fn ask_for_password(
    client: &mut Client,
    tls: u8,
    encrypt: fn(&mut Client) -> io::Result<()>,
) -> io::Result<()> {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    if client.listen(8)? == SSL_REQUEST {
        client.say(&[tls])?;
        if tls == b'S' {
            encrypt(client)?;
        }
        client.listen(8)?;
    }
    client.listen(4096)?;
    client.say(b"R\0\0\0\x08\0\0\0\x03")?;
    // The password message, or the end of the connection.
    client.listen(4096)?;
    client.hang_up()
}

#[test]
fn it_gets_no_password_in_the_clear() {
    for letter in [b'S', b'N'] {
        let impostor = impostor(letter);
        for query in ["", "?tls=off", "?sslmode=disable"] {
            let url = format!("postgres://me:hunter2@127.0.0.1:PORT/app{query}");
            impostor.fails(&url, "in the clear");
        }
    }
    let encrypted = "postgres://me:hunter2@localhost:PORT/app?sslmode=require";
    impostor(b'S').fails(encrypted, "invalid peer certificate");
    impostor(b'N').fails(encrypted, "has no TLS");

    let ca = file("ca.pem");
    let known = format!("postgres://me:hunter2@localhost:PORT/app?sslrootcert={ca}");
    impostor(b'N').fails(&known, "has no TLS");
}

#[test]
fn it_is_not_believed_elsewhere() {
    let url = |place: &str, query: &str| format!("postgres://me:hunter2@{place}:PORT/app{query}");
    super::is_not_believed_elsewhere(&impostor(b'S'), url);
    impostor(b'N').fails(&url("0.0.0.0", ""), "has no TLS");
}

pub(super) fn impostor_that_wants_a_certificate() -> Impostor {
    Impostor::new(move |client| ask_for_password(client, b'S', Client::encrypt_for_the_known))
}
