//! Which client a connection belongs to, and what that one may do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::kit::{error, incr, request, serve};
use crate::access::{Exceeded, Rights, Role};
use crate::limits::Limits;

/// Everybody may take five IDs at once, and only of `orders`. Keeps refusals.
#[derive(Clone, Default)]
struct FiveOrders(Arc<Mutex<Vec<String>>>);

impl Rights for FiveOrders {
    fn allows(&self, role: Role, _: Option<&[u8]>) -> bool {
        role == Role::Take
    }

    fn spend(&self, _: Role, _: Option<&[u8]>, name: &str, ids: u64) -> Result<(), Exceeded> {
        let retry_after = Duration::from_secs(1);
        match (name, ids) {
            ("orders", 0..=5) => Ok(()),
            ("orders", _) => Err(Exceeded::Rate { retry_after }),
            _ => Err(Exceeded::Namespace),
        }
    }

    fn log_refusal(&self, peer: &str, role: Role, _: Option<&[u8]>, _: &str) {
        self.0.lock().unwrap().push(format!("{peer} {role}"));
    }
}

#[test]
fn a_token_beyond_its_limits_takes_nothing() {
    let rights = FiveOrders::default();
    let setup = serve(|it| it.rights = Arc::new(rights.clone()));
    let mut client = setup.connect(true);
    client.ask(&incr("orders").repeat(5), 5);
    for reply in &client.ask(&incr("orders").repeat(6), 6) {
        assert!(error(reply).starts_with("NOPERM "), "{reply:?}");
    }
    assert!(error(&client.ask(&request(&["LPOP", "orders", "6"]), 1)[0]).starts_with("NOPERM "));
    assert!(error(&client.ask(&incr("invoices"), 1)[0]).starts_with("NOPERM "));
    assert_eq!(setup.count(|it| &it.ids), 5);
    assert!(setup.namespaces.get("invoices").is_none(), "none is opened");
    assert_eq!(rights.0.lock().unwrap()[0], "127.0.0.1 take");
}

#[test]
fn the_client_is_the_one_that_the_proxy_names() {
    let rights = FiveOrders::default();
    let limits = Limits {
        connections_per_client: 1,
        ..Limits::default()
    };
    let setup = serve(|it| {
        it.rights = Arc::new(rights.clone());
        it.limits = limits;
        it.proxy_protocol = true;
    });
    let connect = |address: &str| {
        let mut client = setup.connect(true);
        let header = format!("PROXY TCP4 {address} 198.51.100.1 1 2\r\n");
        client.send(&[header.as_bytes(), &incr("invoices")].concat());
        client
    };
    let mut first = connect("192.0.2.1");
    assert!(error(&first.replies(1)[0]).starts_with("NOPERM "));
    let mut second = connect("192.0.2.2");
    assert!(error(&second.replies(1)[0]).starts_with("NOPERM "));
    assert_eq!(
        *rights.0.lock().unwrap(),
        ["192.0.2.1 take", "192.0.2.2 take"]
    );
    let mut again = connect("192.0.2.1");
    let full = again.read_to_end();
    assert!(full.starts_with(b"-ERR max number of clients"), "{full:?}");
}

#[test]
fn a_connection_without_the_header_of_a_proxy_gets_no_reply() {
    let setup = serve(|it| it.proxy_protocol = true);
    let mut client = setup.connect(true);
    client.send(&request(&["PING"]).repeat(3));
    assert_eq!(client.read_to_end(), b"");
}
