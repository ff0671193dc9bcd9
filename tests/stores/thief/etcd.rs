//! An etcd that takes every password.

use super::{Thief, file};

pub(super) fn thief(tls: bool) -> Thief {
    Thief::new(move |victim| {
        if tls {
            victim.encrypt()?;
        }
        let nothing = b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n";
        while !victim.listen(4096)?.is_empty() {
            victim.say(nothing)?;
        }
        Ok(())
    })
}

#[test]
fn it_gets_no_password_elsewhere() {
    let plain = thief(false);
    plain.fails("etcd://me:hunter2@0.0.0.0:PORT", "write etcds://");
    plain.fails(
        "etcd://me:hunter2@localhost:PORT,0.0.0.0:PORT",
        "write etcds://",
    );
    plain.fails("etcds://me:hunter2@0.0.0.0:PORT", "");
    plain.succeeds("etcd://me:hunter2@0.0.0.0:PORT?tls=off");

    let tls = thief(true);
    tls.fails(
        "etcds://me:hunter2@0.0.0.0:PORT",
        "invalid peer certificate",
    );
    let ca = file("ca.pem");
    let other = format!("etcds://me:hunter2@0.0.0.0:PORT?ca={ca}");
    tls.fails(&other, "not valid for name");
    tls.succeeds(&format!("etcds://me:hunter2@localhost:PORT?ca={ca}"));
}
