//! The SQL that `layout sql` prints, run by an ordinary user of PostgreSQL.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_micros;
use ringflake::Layout;
use ringflake_kit::server::{Lent, Postgres, Session};
use ringflake_kit::split_mix::SplitMix64;

use crate::home::{Home, Parts};

/// Ticks of 1 s, 1 ms, 10 ms, 7 ms and 2 days; an epoch within a second; 63 bits and
/// fewer; and times that a double can't hold in microseconds.
const LAYOUTS: [&str; 8] = [
    "positive",
    "twitter",
    "sonyflake-sized",
    "js-safe",
    "20/5/7@2026-01-01T00:00:00.007Z/7ms",
    "12/40/11@2000-02-29T12:00:00Z/172800s",
    "47/8/8@1971-01-01T00:00:00Z/1ms",
    "1/1/1@2026-06-01T00:00:00Z/1s",
];

fn insert(user: &Session, ids: &[i64]) {
    let rows: Vec<_> = ids.iter().map(|id| format!("({id})")).collect();
    user.execute("DELETE FROM orders");
    user.execute(&format!("INSERT INTO orders VALUES {}", rows.join(",")));
}

fn check(user: &Session) {
    let home = Home::new();
    let print = |layout| home.print(format!("layout sql {layout}"));
    for text in LAYOUTS {
        user.execute(&print(text));
        check_fields(&home, text, user);
        check_bounds(text.parse().unwrap(), user);
    }
    user.execute(&print("positive"));
}

fn last_id(layout: &Layout) -> i64 {
    i64::MAX >> (63 - layout.total_bits())
}

/// Compares with `inspect`: random IDs, the edges of all fields, and numbers that are no IDs.
fn check_fields(home: &Home, text: &str, user: &Session) {
    let layout: Layout = text.parse().unwrap();
    let last = last_id(&layout);
    let mut random = SplitMix64::new(1);
    let mut ids: BTreeSet<_> = (0..1_000).map(|_| random.roll() as i64 & last).collect();
    for tick in [0, layout.ticks() / 2, layout.ticks() - 1] {
        for node in [0, layout.nodes() - 1] {
            for sequence in [0, layout.sequences() - 1] {
                ids.insert(layout.pack(tick, node, sequence).unwrap() as i64);
            }
        }
    }
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let parts = home.inspect(format!("--plain --input u64 --layout {text}"), &lines);
    let row = |(id, parts): (&i64, &Parts)| {
        let (unix_ms, node, sequence) = parts.cell();
        format!("{id} {} {node} {sequence}", unix_ms * 1_000)
    };
    let mut expected: Vec<_> = ids.iter().zip(&parts).map(row).collect();
    let below = [i64::MIN, -1];
    expected.splice(0..0, below.map(|id| id.to_string()));
    let mut all: Vec<_> = below.into_iter().chain(ids).collect();
    if let Some(above) = last.checked_add(1) {
        all.push(above);
        expected.push(above.to_string());
    }
    insert(user, &all);
    let found = user.values(
        "SELECT concat_ws(' ', id, (extract(epoch FROM ringflake_time(id)) * 1000000)::bigint, \
         ringflake_node(id), ringflake_sequence(id)) FROM orders ORDER BY id",
    );
    assert_eq!(found.len(), expected.len(), "{text}");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{text}");
    }
}

/// Compares with all ticks near a moment: at the start of a tick, just before and after it, and
/// in its middle.
fn check_bounds(layout: Layout, user: &Session) {
    let ticks = layout.ticks();
    let ids = layout.nodes() * layout.sequences();
    let last_id = last_id(&layout);
    let start = |tick| layout.tick_start_unix_ms(tick) as i64 * 1_000;
    for tick in [0, 1, ticks / 2, ticks - 1, ticks] {
        let half = layout.tick_ms() as i64 / 2 * 1_000;
        for distance in [-half, -1, 0, 1, half] {
            let moment = start(tick) + distance;
            let mut near = tick.saturating_sub(3)..ticks.min(tick + 4);
            let last = near.clone().rfind(|&tick| start(tick) <= moment);
            let last = last.map_or(-1, |tick| (tick * ids + (ids - 1)) as i64);
            let first = near.find(|&tick| start(tick) >= moment);
            let first = first.map_or(last_id.saturating_add(1), |tick| (tick * ids) as i64);
            let found = bounds(user, Some(moment));
            assert_eq!(found, [Some(first), Some(last)], "{layout} {moment}");
        }
    }
    let year = 365 * 86_400_000_000;
    let before = bounds(user, Some(start(0) - year));
    assert_eq!(before, [Some(0), Some(-1)], "{layout}");
    let after = bounds(user, Some(start(ticks) + year));
    let above = last_id.saturating_add(1);
    assert_eq!(after, [Some(above), Some(last_id)], "{layout}");
    assert_eq!(bounds(user, None), [None, None], "{layout}");
}

/// A moment in Unix microseconds as SQL has it, in UTC.
fn text(unix_us: i64) -> String {
    let moment = UNIX_EPOCH + Duration::from_micros(unix_us.try_into().unwrap());
    let text = format_rfc3339_micros(moment).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

/// The first and the last ID of this moment in Unix microseconds, or of `NULL`.
fn bounds(user: &Session, moment: Option<i64>) -> [Option<i64>; 2] {
    let moment = moment.map_or("NULL".to_owned(), |moment| format!("'{}+00'", text(moment)));
    ["first", "last"].map(|end| {
        let id = user.value(&format!("SELECT ringflake_{end}_id({moment})"));
        (!id.is_empty()).then(|| id.parse().unwrap())
    })
}

#[test]
fn postgres_reads_plain_ids_as_inspect_does() {
    let Some(server) = Lent::<Postgres>::start() else {
        return;
    };
    let owner = server.owner();
    for sql in [
        "SET TimeZone = 'America/New_York'",
        "CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE rest PARTITION OF orders DEFAULT",
    ] {
        owner.execute(sql);
    }
    assert_eq!(owner.value("SHOW is_superuser"), "off");
    check(&owner);
    let of_null = "SELECT num_nulls(ringflake_time(NULL), ringflake_node(NULL), \
                   ringflake_sequence(NULL))";
    assert_eq!(owner.value(of_null), "3");
    let plan = owner.values(
        "EXPLAIN (VERBOSE) SELECT ringflake_time(id), ringflake_node(id), ringflake_sequence(id) \
         FROM orders WHERE id >= ringflake_first_id(now()) AND id <= ringflake_last_id(now())",
    );
    // Each is inlined.
    assert!(!plan.join("\n").contains("ringflake_"), "{plan:?}");
    // As the guide partitions a table.
    owner.execute("DELETE FROM orders");
    owner.execute(
        "CREATE TABLE orders_2024_11 PARTITION OF orders FOR VALUES \
         FROM (ringflake_first_id('2024-11-01Z')) TO (ringflake_first_id('2024-12-01Z'))",
    );
    let plan = owner.values(
        "EXPLAIN SELECT * FROM orders WHERE id >= ringflake_first_id('2024-11-02Z') \
         AND id < ringflake_first_id('2024-11-03Z')",
    );
    let plan = plan.join("\n");
    assert!(
        plan.contains("orders_2024_11") && !plan.contains("rest"),
        "{plan}"
    );
}
