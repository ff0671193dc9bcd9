//! Several renewals in one transaction.

use crate::kit::{corrupt, made, mark, several};
use crate::served::Served as _;
use crate::sql::batches::{self as sql, all, moved, renew_all};
use ringflake_kit::server::{Lent, Postgres};

/// The number of the next transaction that writes.
pub(super) fn next_transaction(server: &Postgres) -> u64 {
    let next = "SELECT txid_snapshot_xmax(txid_current_snapshot())";
    server.admin().value(next).parse().unwrap()
}

#[test]
fn a_renewal_that_would_overlap_costs_no_other() {
    let server = started!(Lent::<Postgres>::start());
    let (mut store, space) = server.with("orders", 5);
    let grants = several(&mut store, &space, 3, 10);
    let (block, end) = (grants[1].block, grants[1].ticks.end);
    server.owner().execute(&format!(
        "INSERT INTO ringflake_ledger VALUES ('orders', {block}, 7, '[{end}, {})')",
        end + 5
    ));
    let mut answers = renew_all(&mut store, &all(&space, &grants));
    corrupt(answers.remove(1)).says("ringflake_ledger_disjoint");
    moved(answers, &[(&space, &grants[0]), (&space, &grants[2])]);
    assert_eq!(mark(&mut store, &space, block), Some(end));
}

/// The triggers see all rows of a statement at once.
#[test]
fn one_statement_notes_each_row_by_what_it_changes() {
    let server = started!(Lent::<Postgres>::start());
    let owner = server.owner();
    made(&mut server.store(), "orders", 5);
    let value = |epoch: &str, start: u64, end: u64| {
        format!(
            r#"{{"hwm_end":"{end:020}","epoch":{epoch},"released":false,"start":{start},"granted_unix_ms":1}}"#
        )
    };
    let change = |rows: [&str; 4]| {
        let rows = rows.iter().enumerate();
        let row = |(block, value)| format!("('orders/block/{block:020}', '{value}')");
        let rows: Vec<_> = rows.map(row).collect();
        owner.execute(&format!(
            "INSERT INTO ringflake (key, value) VALUES {}
            ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            rows.join(", ")
        ));
    };
    change([
        &value("1", 10, 20),
        &value("1", 10, 20),
        &value("1", 10, 20),
        "{",
    ]);
    change([
        &value("1", 10, 30),
        &value("2", 20, 30),
        r#"{ "hwm_end" : "30", "start" : 20, "epoch" : 2 }"#,
        // Nobody granted this one.
        &value("2", 20, 30),
    ]);
    let noted = "SELECT concat_ws(' ', block, epoch, ticks) FROM ringflake_ledger ORDER BY 1";
    assert_eq!(
        owner.values(noted),
        [
            "0 1 [10,30)",
            "1 1 [10,20)",
            "1 2 [20,30)",
            "2 1 [10,20)",
            "2 2 [20,30)"
        ]
    );
}

#[test]
fn renewals_of_the_same_blocks_never_deadlock() {
    let server = started!(Lent::<Postgres>::start());
    sql::renewals_of_the_same_blocks_share_what_is_added(&*server);
    let deadlocks = "SELECT sum(deadlocks) FROM pg_stat_database";
    assert_eq!(server.admin().value(deadlocks), "0");
}

#[test]
fn renewals_of_many_namespaces_are_one_transaction_everywhere() {
    let server = started!(Lent::<Postgres>::start());
    let counts = || vec![next_transaction(&server)];
    sql::renewals_of_many_namespaces_are_one_transaction(&*server, counts);
    let agree = "SELECT count(*) FROM ringflake_ledger AS l
        JOIN ringflake_block AS b USING (namespace, block, epoch)
        WHERE upper(l.ticks) = b.hwm_end";
    assert_eq!(server.admin().value(agree), "60");
}
