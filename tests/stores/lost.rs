//! Namespaces whose record alone was lost, where what is left of them counts; or replaced.

use ringflake::lease::table::{Blocks, Commit, Key, Put, Query, Table, Txn};
use ringflake::lease::{Fingerprint, History, Init, LeaseStore, Namespace};
use ringflake::{IdWidth, Layout, Secret};

use crate::kit::{
    answers, format, history_unknown, limits, made, not_initialised, now, secret_in_use, space,
    take,
};
use crate::served::Served;

fn keyed(name: &str, secret: &Secret, width: IdWidth) -> Namespace {
    let print = Fingerprint::of_width(secret, width);
    let space = Namespace::new(name, &Layout::JS_SAFE, print).unwrap();
    space.with_block_bits(10).unwrap()
}

fn begin(history: History) -> Init {
    Init::new(history, now()).with_limits(limits())
}

pub(crate) fn keeps_the_width_of_a_lost_record(server: &dyn Served) {
    let mut store = server.store();
    for (byte, width) in (0x61..).zip(IdWidth::ALL) {
        let secret = Secret::from_bytes([byte; 16]);
        let name = format!("{width}-orders");
        let orders = keyed(&name, &secret, width);
        let again = || begin(History::Unknown).with_secret(&secret);
        store
            .init(&orders, &begin(History::New).with_secret(&secret))
            .unwrap();
        server.lose(&name);
        for other in IdWidth::ALL.into_iter().filter(|&other| other != width) {
            let other = keyed(&name, &secret, other);
            secret_in_use(store.init(&other, &again())).says("of another width");
            not_initialised(store.list(&other));
        }
        store.init(&orders, &again()).unwrap();
    }
}

pub(crate) fn believes_no_program_after_a_loss(server: &dyn Served) {
    let mut store = server.store();
    let secret = Secret::from_bytes([0x71; 16]);
    let unused = keyed("unused", &secret, IdWidth::Full);
    let (used, fresh) = (space("used"), space("fresh"));
    for space in [&unused, &used] {
        store.init(space, &begin(History::New)).unwrap();
    }
    take(&mut store, &used, 60);
    let left = [
        (&unused, "its secret is noted"),
        (&used, "there are blocks"),
    ];
    for (space, what) in left {
        server.lose(space.name());
        for history in [History::New, History::Unused] {
            history_unknown(store.init_if_new(space, &begin(history))).says(what);
            not_initialised(store.list(space));
        }
    }
    store.init_if_new(&fresh, &begin(History::New)).unwrap();
    store.init_if_new(&used, &begin(History::Unknown)).unwrap();
    // Somebody who knows the namespace.
    store.init(&unused, &begin(History::New)).unwrap();
}

pub(crate) fn a_record_in_a_later_format_is_refused(server: &dyn Served) {
    a_later_format_is_refused(&|| server.store(), &mut *server.table());
}

/// No method uses it, and none writes.
pub(crate) fn a_later_format_is_refused(
    open: &dyn Fn() -> Box<dyn LeaseStore>,
    table: &mut dyn Table,
) {
    let mut store = open();
    let space = made(&mut store, "later", 5);
    take(&mut store, &space, 60);
    let record = Key::record("later");
    let all = Query {
        keys: vec![record.clone(), Key::check("later")],
        blocks: Some(Blocks::All {
            namespace: "later".to_owned(),
        }),
    };
    let value = &table.read(&all).unwrap().entries[&record];
    let put = Put {
        key: record,
        value: value.replace(r#""format":1,"#, r#""format":9,"#),
        rank: None,
    };
    let replace = Txn {
        puts: vec![put],
        ..Txn::default()
    };
    let replaced = table.commit(&replace, &all).unwrap();
    assert!(matches!(replaced, Commit::Done), "{replaced:?}");
    let before = table.read(&all).unwrap().entries;
    // By the values that it has cached, and by those that it reads.
    for mut store in [store, open()] {
        for answer in answers(&mut store, &space) {
            format(answer).says("format 9");
        }
        store.init(&space, &begin(History::Unknown)).unwrap_err();
    }
    assert_eq!(table.read(&all).unwrap().entries, before);
}
