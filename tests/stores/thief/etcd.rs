//! An etcd that takes every password.

use super::Thief;

pub(super) fn thief(tls: bool) -> Thief {
    Thief::that_answers(tls, b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
}

#[test]
fn it_gets_no_password_elsewhere() {
    super::get_no_password_elsewhere(thief, "etcd", "me:hunter2", "0.0.0.0");
    thief(false).fails(
        "etcd://me:hunter2@localhost:PORT,0.0.0.0:PORT",
        "write etcds://",
    );
}
