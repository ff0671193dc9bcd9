//! A Redis that takes every password. The driver refuses `0.0.0.0`, so that here
//! another way to write 127.0.0.1 stands for another machine.

use super::Thief;

pub(super) fn thief(tls: bool) -> Thief {
    Thief::that_answers(tls, b"+OK\r\n")
}

#[test]
fn it_gets_no_password_elsewhere() {
    super::get_no_password_elsewhere(thief, "redis", ":hunter2", "[::ffff:127.0.0.1]");
}
