//! Records of the format before: refused by name, upgraded once, and all there.

use ringflake::lease::{Acquire, Fingerprint, History, Init, LeaseStore, Namespace, Renew};
use ringflake::{Layout, Secret};
use ringflake_kit::assert_says;

use crate::kit::{
    fingerprint_mismatch, format_mismatch, init, not_initialised, now, secret_in_use,
};

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 16])
}

fn space(name: &str, secret: &Secret) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::of(secret)).unwrap()
}

/// `write_back` gives the record of this name this format and fingerprint, and takes
/// away what is kept beside it since format 1.
pub(crate) fn upgrades_from_format_1(
    open: &dyn Fn() -> Box<dyn LeaseStore>,
    write_back: &dyn Fn(&str, i64, Fingerprint),
) {
    let (ours, others) = (secret(1), secret(2));
    let former = Fingerprint::of_format_1;
    let mut store = open();
    let orders = space("orders", &ours);
    init(&mut *store, &orders);
    init(&mut *store, &space("invoices", &others));
    // Held to the end of the test, on however slow a machine.
    let ask = |blocks| Acquire::new(blocks, 600, now());
    let grants = store.acquire(&orders, &ask(3)).unwrap();
    let known = store.list(&orders).unwrap();
    // Two namespaces could share a secret then, and nobody could tell.
    write_back("orders", 1, former(&ours, "orders"));
    write_back("invoices", 1, former(&ours, "invoices"));

    let mut store = open();
    let renew = Renew::new(&grants[0], grants[0].ticks.end + 10, now());
    for said in [
        format_mismatch(store.acquire(&orders, &ask(1))),
        format_mismatch(store.renew(&orders, &renew)),
        format_mismatch(store.release(&orders, grants[1].block, grants[1].epoch)),
        format_mismatch(store.list(&orders)),
        format_mismatch(store.check(&orders, now())),
    ] {
        assert_says(&said, &["recorded: 1, known: 2", "store upgrade"]);
    }
    let wrong = former(&others, "orders");
    fingerprint_mismatch(store.upgrade(&orders, wrong));
    format_mismatch(store.list(&orders));
    not_initialised(store.upgrade(&space("missing", &ours), wrong));

    assert!(store.upgrade(&orders, former(&ours, "orders")).unwrap());
    assert!(!store.upgrade(&orders, former(&ours, "orders")).unwrap());
    assert_eq!(store.list(&orders).unwrap(), known);
    assert_eq!(store.renew(&orders, &renew).unwrap(), renew.new_end);
    let more = store.acquire(&orders, &ask(1)).unwrap();
    assert!(grants.iter().all(|grant| grant.block != more[0].block));

    // Now it can be told.
    let invoices = space("invoices", &ours);
    let said = secret_in_use(store.upgrade(&invoices, former(&ours, "invoices")));
    assert_says(&said, &[r#"namespace: "invoices", other: "orders""#]);
    format_mismatch(store.list(&invoices));
    let init = Init::new(History::New, now());
    let said = secret_in_use(store.init(&space("again", &ours), &init));
    assert_says(&said, &[r#"namespace: "again", other: "orders""#]);

    write_back("orders", 3, orders.fingerprint());
    for said in [
        format_mismatch(store.list(&orders)),
        format_mismatch(store.upgrade(&orders, wrong)),
    ] {
        assert_says(&said, &["recorded: 3", "as new as"]);
    }
}
