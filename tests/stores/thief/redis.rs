//! A Redis that takes every password. The driver refuses `0.0.0.0`, so that here
//! another way to write 127.0.0.1 stands for another machine.

use super::{Thief, file};

pub(super) fn thief(tls: bool) -> Thief {
    Thief::new(move |victim| {
        if tls {
            victim.encrypt()?;
        }
        while !victim.listen(4096)?.is_empty() {
            victim.say(b"+OK\r\n")?;
        }
        Ok(())
    })
}

#[test]
fn it_gets_no_password_elsewhere() {
    let plain = thief(false);
    plain.fails(
        "redis://:hunter2@[::ffff:127.0.0.1]:PORT",
        "write rediss://",
    );
    plain.fails("rediss://:hunter2@[::ffff:127.0.0.1]:PORT", "");
    plain.succeeds("redis://:hunter2@[::ffff:127.0.0.1]:PORT?tls=off");

    let tls = thief(true);
    tls.fails(
        "rediss://:hunter2@[::ffff:127.0.0.1]:PORT",
        "invalid peer certificate",
    );
    let ca = file("ca.pem");
    let other = format!("rediss://:hunter2@[::ffff:127.0.0.1]:PORT?ca={ca}");
    tls.fails(&other, "not valid for name");
    tls.succeeds(&format!("rediss://:hunter2@localhost:PORT?ca={ca}"));
}
