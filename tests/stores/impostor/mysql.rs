//! A MySQL that has never seen this client, and wants its password.

use std::io;

use super::{Client, Impostor, file};

const SSL: u32 = 0x800;
/// Protocol 4.1, databases, transactions, secure connections and plug-ins.
const CAPABILITIES: u32 = 0x0008_a208;

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[number], payload].concat()
}

fn greeting(capabilities: u32) -> Vec<u8> {
    let bits = capabilities.to_le_bytes();
    let mut payload = vec![10];
    payload.extend(b"8.0.36\0\x07\0\0\0abcdefgh\0");
    payload.extend(&bits[..2]);
    payload.extend([33, 2, 0]);
    payload.extend(&bits[2..]);
    payload.push(21);
    payload.extend([0; 10]);
    payload.extend(b"ijklmnopqrst\0caching_sha2_password\0");
    packet(0, &payload)
}

/// Answers the proof with "I don't know you: send the password", and a request for a key with its
/// own key. Hangs up after the client's reply.
fn ask_for_password(client: &mut Client, number: u8) -> io::Result<()> {
    client.listen(4096)?;
    client.received.lock().unwrap().clear();
    client.say(&packet(number, &[1, 4]))?;
    if client.listen(4096)? == packet(number + 1, &[2]) {
        let key = std::fs::read(file("rsa.pub.pem"))?;
        client.say(&packet(number + 2, &[&[1], &key[..]].concat()))?;
        if client.listen(4096)?.len() == 4 + 256 {
            client
                .received
                .lock()
                .unwrap()
                .extend(b"hunter2, with the impostor's key");
        }
    }
    client.hang_up()
}

pub(super) fn impostor(tls: bool) -> Impostor {
    Impostor::new(move |client| {
        let more = if tls { SSL } else { 0 };
        client.say(&greeting(CAPABILITIES | more))?;
        if !tls {
            return ask_for_password(client, 2);
        }
        // 32 bytes that ask for TLS.
        client.listen(4 + 32)?;
        client.encrypt()?;
        ask_for_password(client, 3)
    })
}

#[test]
fn it_gets_no_password_without_tls() {
    let impostor = impostor(false);
    for url in [
        "mysql://me:hunter2@127.0.0.1:PORT/app",
        "mysql://me:hunter2@localhost:PORT/app?tls=off",
        "mysql://me:hunter2@0.0.0.0:PORT/app?tls=off",
    ] {
        impostor.fails(url, "use TLS");
    }
    impostor.fails("mysql://me:hunter2@0.0.0.0:PORT/app", "has no TLS");
}

#[test]
fn it_is_not_believed_elsewhere() {
    let url = |place: &str, query: &str| format!("mysql://me:hunter2@{place}:PORT/app{query}");
    super::is_not_believed_elsewhere(&impostor(true), url);
}
