//! Records of the format before: refused by name, upgraded once, and all there.

use ringflake::lease::{
    Acquire, Fingerprint, History, Init, LeaseStore, Namespace, Renew, StoreError,
};
use ringflake::{Clock, Layout, Secret, SystemClock};

use crate::kit::fingerprint_mismatch;

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 16])
}

fn space(name: &str, secret: &Secret) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::of(secret)).unwrap()
}

fn former(name: &str, secret: &Secret) -> Fingerprint {
    Fingerprint::of_format_1(secret, name)
}

fn ask(blocks: u32) -> Acquire {
    Acquire::new(blocks, 60, SystemClock.unix_ms())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    match answer {
        Err(
            error @ StoreError::Format {
                recorded: 1,
                known: 2,
                ..
            },
        ) => {
            assert!(error.to_string().contains("store upgrade"), "{error}");
        }
        other => panic!("{other:?}, not a refusal of format 1"),
    }
}

/// `write_back` gives the record of this name this format and fingerprint, and takes
/// away what is kept beside it since format 1.
pub(crate) fn upgrades_from_format_1(
    open: &dyn Fn() -> Box<dyn LeaseStore>,
    write_back: &dyn Fn(&str, i64, Fingerprint),
) {
    let mut store = open();
    let mut make = |space: &Namespace| {
        let init = Init::new(History::New, SystemClock.unix_ms());
        store.init(space, &init).unwrap();
        let grants = store.acquire(space, &ask(3)).unwrap();
        (grants, store.list(space).unwrap())
    };
    let (ours, others) = (secret(1), secret(2));
    let orders = space("orders", &ours);
    let (grants, known) = make(&orders);
    make(&space("invoices", &others));
    // Two namespaces could share a secret then, and nobody could tell.
    write_back("orders", 1, former("orders", &ours));
    write_back("invoices", 1, former("invoices", &ours));

    let mut store = open();
    let now = SystemClock.unix_ms();
    let renew = Renew::new(&grants[0], grants[0].ticks.end + 10, now);
    refused(store.acquire(&orders, &ask(1)));
    refused(store.renew(&orders, &renew));
    refused(store.release(&orders, grants[1].block, grants[1].epoch));
    refused(store.list(&orders));
    refused(store.check(&orders, now));

    let wrong = former("orders", &others);
    fingerprint_mismatch(store.upgrade(&orders, wrong));
    refused(store.list(&orders));
    let missing = space("missing", &ours);
    let error = store.upgrade(&missing, wrong).unwrap_err();
    assert!(
        matches!(error, StoreError::NotInitialised { .. }),
        "{error}"
    );

    assert!(store.upgrade(&orders, former("orders", &ours)).unwrap());
    assert!(!store.upgrade(&orders, former("orders", &ours)).unwrap());
    assert_eq!(store.list(&orders).unwrap(), known);
    let end = store.renew(&orders, &renew).unwrap();
    assert_eq!(end, renew.new_end);
    let more = store.acquire(&orders, &ask(1)).unwrap();
    assert!(grants.iter().all(|grant| grant.block != more[0].block));

    // Now it can be told.
    let invoices = space("invoices", &ours);
    let upgrade = store.upgrade(&invoices, former("invoices", &ours));
    in_use(upgrade, "invoices");
    refused(store.list(&invoices));
    let again = space("again", &ours);
    in_use(store.init(&again, &Init::new(History::New, now)), "again");

    write_back("orders", 3, orders.fingerprint());
    for error in [
        store.list(&orders).unwrap_err(),
        store.upgrade(&orders, wrong).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Format { recorded: 3, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("as new as"), "{error}");
    }
}

#[track_caller]
fn in_use<T: std::fmt::Debug>(answer: Result<T, StoreError>, refused: &str) {
    match answer {
        Err(StoreError::SecretInUse { namespace, other }) => {
            assert_eq!((&*namespace, &*other), (refused, "orders"));
        }
        other => panic!("{other:?}, not a refusal of the secret"),
    }
}
