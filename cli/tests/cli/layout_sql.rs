//! The SQL that `layout sql` prints, run by ordinary users of the three databases.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use humantime::{format_rfc3339_micros, parse_rfc3339};
use mysql::prelude::Queryable;
use ringflake::Layout;
use ringflake_kit::assert_says;
use ringflake_kit::server::{Lent, MariaDb, Postgres, Reachable, Session};
use rusqlite::types::Value;
use rusqlite::{Connection, named_params};

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

/// A database, and a connection of an ordinary user to it.
trait Database {
    const NAME: &str;
    /// Microseconds between the moments that it tells apart.
    const STEP_US: i64;
    /// Reads from each ID, in order: the ID, its time in Unix microseconds, node and sequence.
    const FIELDS: &str;
    /// Counts the IDs in the partition of the examples, of the four that surround its bounds.
    const PARTITION: (&str, &str);
    /// What the example with BETWEEN counts of them.
    const BETWEEN: &str;

    /// Runs what was printed.
    fn install(&mut self, printed: &str);

    /// Runs a statement, and returns the first column of each row.
    fn ask(&mut self, sql: &str) -> Vec<String>;

    /// The first and the last ID of this moment in Unix microseconds, or of `NULL`.
    fn bounds(&mut self, moment: Option<i64>) -> [Option<i64>; 2];
}

fn insert(database: &mut impl Database, ids: &[i64]) {
    let rows: Vec<_> = ids.iter().map(|id| format!("({id})")).collect();
    database.ask("DELETE FROM orders");
    database.ask(&format!("INSERT INTO orders VALUES {}", rows.join(",")));
}

fn check<D: Database>(database: &mut D) {
    let home = Home::new();
    let print = |layout| home.print(format!("layout sql {layout} --for {}", D::NAME));
    for text in LAYOUTS {
        database.install(&print(text));
        check_fields(&home, text, database);
        check_bounds(text.parse().unwrap(), database);
    }
    let printed = print("positive");
    database.install(&printed);
    check_examples(&printed, database);
}

/// The output of SplitMix64 with this number.
fn mixed(number: u64) -> u64 {
    let state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn last_id(layout: &Layout) -> i64 {
    i64::MAX >> (63 - layout.total_bits())
}

/// Compares with `inspect`: random IDs, the edges of all fields, and numbers that are no IDs.
fn check_fields<D: Database>(home: &Home, text: &str, database: &mut D) {
    let layout: Layout = text.parse().unwrap();
    let last = last_id(&layout);
    let random = (1..=1_000).map(|number| mixed(number) as i64 & last);
    let mut ids: BTreeSet<_> = random.collect();
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
    insert(database, &all);
    let found = database.ask(D::FIELDS);
    assert_eq!(found.len(), expected.len(), "{text}");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{text}");
    }
}

/// Compares with all ticks near a moment: at the start of a tick, just before and after it, and
/// in its middle.
fn check_bounds<D: Database>(layout: Layout, database: &mut D) {
    let ticks = layout.ticks();
    let ids = layout.nodes() * layout.sequences();
    let last_id = last_id(&layout);
    let start = |tick| layout.tick_start_unix_ms(tick) as i64 * 1_000;
    for tick in [0, 1, ticks / 2, ticks - 1, ticks] {
        let half = layout.tick_ms() as i64 / 2 * 1_000;
        for distance in [-half, -D::STEP_US, 0, D::STEP_US, half] {
            let moment = start(tick) + distance;
            let mut near = tick.saturating_sub(3)..ticks.min(tick + 4);
            let last = near.clone().rfind(|&tick| start(tick) <= moment);
            let last = last.map_or(-1, |tick| (tick * ids + (ids - 1)) as i64);
            let first = near.find(|&tick| start(tick) >= moment);
            let first = first.map_or(last_id.saturating_add(1), |tick| (tick * ids) as i64);
            let found = database.bounds(Some(moment));
            assert_eq!(found, [Some(first), Some(last)], "{layout} {moment}");
        }
    }
    let year = 365 * 86_400_000_000;
    let before = database.bounds(Some(start(0) - year));
    assert_eq!(before, [Some(0), Some(-1)], "{layout}");
    let after = database.bounds(Some(start(ticks) + year));
    let above = last_id.saturating_add(1);
    assert_eq!(after, [Some(above), Some(last_id)], "{layout}");
    assert_eq!(database.bounds(None), [None, None], "{layout}");
}

/// Runs the examples in the comment, and counts IDs at the bounds of their month.
fn check_examples<D: Database>(printed: &str, database: &mut D) {
    let (_, examples) = printed.split_once("-- Examples").unwrap();
    let lines = examples.lines().skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("--   "));
    // Those of SQLite's shell begin with a dot.
    let lines = lines.filter(|line| !line.starts_with('.'));
    let examples = Vec::from_iter(lines).join("\n");
    let examples = Vec::from_iter(examples.split_terminator(';'));
    let month = ["2024-11-01T00:00:00Z", "2024-12-01T00:00:00Z"].map(|t| parse_rfc3339(t).unwrap());
    let ids = Layout::POSITIVE.ids_between(month[0]..month[1]).unwrap();
    let (first, last) = (ids.start().to_i64(), ids.end().to_i64());
    let rows = [first - 1, first, last, last + 1];
    // A copy has the rows that are there by then; a partition is new.
    let is_copied = D::NAME == "sqlite";
    insert(database, if is_copied { &rows } else { &[0] });
    database.ask(examples.last().unwrap());
    insert(database, &rows);
    let (sql, count) = D::PARTITION;
    assert_eq!(database.ask(sql), [count]);
    let counted = examples.iter().map(|example| example.trim_start());
    let counted = counted.filter(|example| example.to_lowercase().starts_with("select"));
    let counted: Vec<_> = counted.map(|example| database.ask(example)).collect();
    let [times, between] = &counted[..] else {
        panic!("{examples:?}");
    };
    assert_eq!(times.len(), 4);
    assert_eq!(between, &[D::BETWEEN]);
}

/// A moment in Unix microseconds as SQL has it, in UTC.
fn text(unix_us: i64) -> String {
    let moment = UNIX_EPOCH + Duration::from_micros(unix_us.try_into().unwrap());
    let text = format_rfc3339_micros(moment).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

/// The numbers in a row, with `-` for `NULL`.
fn numbers<const N: usize>(row: &[String]) -> [Option<i64>; N] {
    let [row] = row else { panic!("{row:?}") };
    let number = |word: &str| (word != "-").then(|| word.parse().unwrap());
    let numbers: Vec<_> = row.split(' ').map(number).collect();
    numbers.try_into().unwrap()
}

/// What the query for the bounds of a period returns, as a row of numbers.
const BOUNDS: &str = "SELECT concat_ws(' ', coalesce(first_id, '-'), coalesce(end_id, '-'), \
                      coalesce(last_id, '-'))";

/// The statements of a text, without comments.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    let text = Vec::from_iter(lines).join("\n");
    let statements = text.split(';').filter(|text| !text.trim().is_empty());
    statements.map(str::to_owned).collect()
}

impl Database for Session {
    const NAME: &str = "postgres";
    const STEP_US: i64 = 1;
    const FIELDS: &str = "SELECT concat_ws(' ', id, \
        (extract(epoch FROM ringflake_time(id)) * 1000000)::bigint, \
        ringflake_node(id), ringflake_sequence(id)) FROM orders ORDER BY id";
    const PARTITION: (&str, &str) = ("SELECT count(*) FROM orders_2024_11", "2");
    // Its last tick begins with the next month.
    const BETWEEN: &str = "3";

    fn install(&mut self, printed: &str) {
        self.execute(printed);
    }

    fn ask(&mut self, sql: &str) -> Vec<String> {
        self.values(sql)
    }

    fn bounds(&mut self, moment: Option<i64>) -> [Option<i64>; 2] {
        let moment = moment.map_or("NULL".to_owned(), |moment| format!("'{}+00'", text(moment)));
        numbers(&self.values(&format!(
            "SELECT concat_ws(' ', coalesce(ringflake_first_id({moment})::text, '-'), \
             coalesce(ringflake_last_id({moment})::text, '-'))"
        )))
    }
}

#[test]
fn postgres_reads_plain_ids_as_inspect_does() {
    let Some(server) = Lent::<Postgres>::start() else {
        return;
    };
    let mut owner = server.owner();
    for sql in [
        "SET TimeZone = 'America/New_York'",
        "CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE rest PARTITION OF orders DEFAULT",
    ] {
        owner.execute(sql);
    }
    assert_eq!(owner.value("SHOW is_superuser"), "off");
    check(&mut owner);
    let of_null = "SELECT num_nulls(ringflake_time(NULL), ringflake_node(NULL), \
                   ringflake_sequence(NULL))";
    assert_eq!(owner.value(of_null), "3");
    let plan = owner.values(
        "EXPLAIN (VERBOSE) SELECT ringflake_time(id), ringflake_node(id), ringflake_sequence(id) \
         FROM orders WHERE id >= ringflake_first_id(now()) AND id <= ringflake_last_id(now())",
    );
    // Each is inlined.
    assert!(!plan.join("\n").contains("ringflake_"), "{plan:?}");
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

/// A user without privileges outside of a database, on a server with a binary log.
struct MariaDbUser {
    connection: mysql::Conn,
    bounds: String,
}

impl Database for MariaDbUser {
    const NAME: &str = "mysql";
    const STEP_US: i64 = 1;
    const FIELDS: &str = "SELECT CONCAT_WS(' ', id, \
        TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', time), node, sequence) \
        FROM ringflake_ids ORDER BY id";
    // It has all before, too.
    const PARTITION: (&str, &str) = ("SELECT COUNT(*) FROM orders PARTITION (until_2024_11)", "3");
    const BETWEEN: &str = "2";

    fn install(&mut self, printed: &str) {
        let mut statements = statements(printed);
        self.bounds = statements.pop().unwrap();
        for sql in statements {
            self.ask(&sql);
        }
    }

    fn ask(&mut self, sql: &str) -> Vec<String> {
        let rows: Result<Vec<mysql::Row>, _> = self.connection.query(sql);
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.iter().map(|row| row.get(0).unwrap()).collect()
    }

    fn bounds(&mut self, moment: Option<i64>) -> [Option<i64>; 2] {
        let moment = moment.map_or("NULL".to_owned(), |moment| format!("'{}'", text(moment)));
        let sql = format!("{BOUNDS} FROM ({}) AS bounds", self.bounds);
        self.ask(&format!("SET @since = {moment}, @until = NULL"));
        let [first, _, _] = numbers::<3>(&self.ask(&sql));
        self.ask(&format!("SET @since = NULL, @until = {moment}"));
        let [none, end, last] = numbers(&self.ask(&sql));
        assert_eq!((none, end), (None, first));
        [first, last]
    }
}

#[test]
fn mariadb_reads_plain_ids_as_inspect_does() {
    let log = MariaDb::binary_log(1);
    let Some(server) = MariaDb::start_with(&log.each_ref().map(|setting| &**setting)) else {
        return;
    };
    let mut user = MariaDbUser {
        connection: mysql::Conn::new(&*server.url()).unwrap(),
        bounds: String::new(),
    };
    // So there is a view, and no function.
    let function = "CREATE FUNCTION one() RETURNS INT DETERMINISTIC NO SQL RETURN 1";
    let refused = user.connection.query_drop(function).unwrap_err();
    assert_says(&refused.to_string(), &["SUPER privilege", "binary logging"]);
    user.ask("SET time_zone = '-05:00'");
    user.ask("CREATE TABLE orders (id BIGINT PRIMARY KEY)");
    check(&mut user);
}

/// A database in memory, and the query for bounds.
struct Sqlite(Connection, String);

impl Sqlite {
    fn bounds_of(&self, since: Value, until: Value) -> [Option<i64>; 3] {
        let sql = format!("{BOUNDS} FROM ({})", self.1);
        let values = named_params! { ":since": since, ":until": until };
        let row = self.0.query_one(&sql, values, |row| row.get(0));
        numbers(&[row.unwrap()])
    }
}

impl Database for Sqlite {
    const NAME: &str = "sqlite";
    const STEP_US: i64 = 1_000;
    // The time as text has to be that of the milliseconds.
    const FIELDS: &str = "SELECT concat_ws(' ', id, CASE WHEN \
        time = strftime('%Y-%m-%dT%H:%M:%fZ', unix_ms / 1000.0, 'unixepoch') \
        THEN unix_ms * 1000 END, node, sequence) FROM ringflake_ids ORDER BY id";
    const PARTITION: (&str, &str) = ("SELECT count(*) FROM orders_2024_11", "2");
    const BETWEEN: &str = "2";

    fn install(&mut self, printed: &str) {
        self.0.execute_batch(printed).unwrap();
        self.1 = statements(printed).pop().unwrap();
    }

    fn ask(&mut self, sql: &str) -> Vec<String> {
        let mut statement = self.0.prepare(sql).unwrap();
        let text = |row: &rusqlite::Row<'_>| {
            Ok(match row.get(0)? {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => text,
                other => panic!("{other:?}"),
            })
        };
        let rows = statement.query_map([], text).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn bounds(&mut self, moment: Option<i64>) -> [Option<i64>; 2] {
        let moment = moment.map_or(Value::Null, |us| Value::Integer(us / 1_000));
        let [first, _, _] = self.bounds_of(moment.clone(), Value::Null);
        let [none, end, last] = self.bounds_of(Value::Null, moment);
        assert_eq!((none, end), (None, first));
        [first, last]
    }
}

#[test]
fn sqlite_reads_plain_ids_as_inspect_does() {
    let mut sqlite = Sqlite(Connection::open_in_memory().unwrap(), String::new());
    sqlite.ask("CREATE TABLE orders (id INTEGER PRIMARY KEY)");
    check(&mut sqlite);
    // Only integers are moments.
    for moment in [Value::Text("2024-11-01".to_owned()), Value::Real(1.7e12)] {
        assert_eq!(sqlite.bounds_of(moment.clone(), moment), [None; 3]);
    }
}

#[test]
fn layouts_that_sql_cannot_read_are_refused_with_one_that_it_can() {
    let home = Home::new();
    for (layout, parts) in [
        (
            "randflake",
            ["64 bits", "'ringflake layout sql positive --for mysql'"],
        ),
        (
            "60/1/3@2026-01-01T00:00:00Z/1ms",
            ["64 bits", "sql 47/1/3@2026-01-01T00:00:00Z/1ms --for"],
        ),
        (
            "48/8/7@2026-01-01T00:00:00Z/1ms",
            ["9999", "sql 47/8/7@2026-01-01T00:00:00Z/1ms --for"],
        ),
        (
            "1/1/1@9999-12-31T00:00:00Z/100000s",
            ["9999", "a shorter tick"],
        ),
    ] {
        let line = format!("layout sql {layout} --for mysql");
        home.assert_refused(&line, 2, parts[0]);
        home.assert_refused(&line, 2, parts[1]);
    }
    // The examples of this one would be in the year 10000.
    home.print("layout sql 1/1/1@9999-12-01T00:00:00Z/1s --for mysql");
    let same = |database| home.print(format!("layout sql Positive --for {database}"));
    assert_eq!(same("mariadb"), same("mysql"));
}
