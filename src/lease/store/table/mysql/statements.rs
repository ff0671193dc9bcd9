//! The SQL that is sent. Both servers understand it; they differ in their identity.
//!
//! Keys and values are sent as hexadecimal literals, so nothing has to be escaped, whatever
//! the server's modes are. Several statements go in one request.

use std::fmt::Write as _;

use super::flavour::Flavour;
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::sql::{Single, to_bigint};
use crate::lease::store::table::{Blocks, Key, Put, Query, Txn};

/// The time at which it is evaluated, in a session at UTC. `NOW()` would be the
/// time at which the statement began, and `SET timestamp` would move it. Not
/// `UNIX_TIMESTAMP`, which has 31 bits in some versions.
const UNIX_MS: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000";

/// Whatever the server's defaults are: each statement commits by itself unless
/// a transaction was begun, a value that does not fit is an error, and times are UTC.
pub(super) fn set_up(lock_wait_secs: u32) -> [String; 2] {
    [
        format!(
            "SET SESSION autocommit = 1, time_zone = '+00:00', \
             sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = {lock_wait_secs}"
        ),
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE".to_owned(),
    ]
}

pub(super) const VERSION: &str = "SELECT VERSION()";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// Tables that a crash could empty or damage.
pub(super) const OTHER_ENGINES: &str = "\
    SELECT CONCAT(TABLE_NAME, ' (', ENGINE, ')') FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB' AND TABLE_NAME = 'ringflake'";

/// Whether the table has its index, whether the view is there, and whether the view's name is that
/// of a table. Asked first, since creating takes privileges that a user no longer needs afterwards.
/// Tables that the user has no privilege for are not listed.
pub(super) const HAS_TABLES: &str = "\
    SELECT EXISTS (SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = 'ringflake' AND INDEX_NAME = 'ringflake_rank'),
        COUNT(*) = 1,
        COUNT(IF(TABLE_NAME = 'ringflake_block' AND TABLE_TYPE = 'BASE TABLE', 1, NULL)) > 0
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
        AND TABLE_NAME = 'ringflake_block'";

/// Values are compared as bytes: this collation ignores trailing spaces.
pub(super) const CREATE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS ringflake (
        `key` VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        `value` VARCHAR(4000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        `rank` BIGINT,
        `namespace` VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS
            (IF(SUBSTRING_INDEX(SUBSTRING_INDEX(`key`, '/', 2), '/', -1) = 'block',
                SUBSTRING_INDEX(`key`, '/', 1), NULL)) STORED,
        KEY ringflake_rank (`namespace`, `rank`)
    ) ENGINE = InnoDB",
    // None for the table that was just created.
    "CREATE INDEX ringflake_rank ON ringflake (`namespace`, `rank`)",
];

/// For people. Nothing depends on it. `CREATE OR REPLACE` would take the privilege `DROP`.
pub(super) const CREATE_VIEW: &str = "
    CREATE VIEW ringflake_block AS
        SELECT `namespace`, CAST(SUBSTRING_INDEX(`key`, '/', -1) AS UNSIGNED) AS `block`,
            CAST(JSON_EXTRACT(`json`, '$.epoch') AS SIGNED) AS `epoch`,
            CAST(JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.hwm_end')) AS SIGNED) AS `hwm_end`,
            CAST(JSON_EXTRACT(`json`, '$.start') AS SIGNED) AS `start`,
            JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.released')) = 'true' AS `released`,
            CAST(JSON_EXTRACT(`json`, '$.granted_unix_ms') AS SIGNED) AS `granted_unix_ms`,
            JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.holder_host')) AS `holder_host`,
            JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.holder_instance')) AS `holder_instance`
        FROM (SELECT `namespace`, `key`, IF(JSON_VALID(`value`), `value`, NULL) AS `json`
            FROM ringflake WHERE `namespace` IS NOT NULL) AS `blocks`";

fn hex(text: &str) -> String {
    let mut digits = String::with_capacity(2 * text.len() + 3);
    digits += "x'";
    for byte in text.bytes() {
        // A string takes everything.
        let _ = write!(digits, "{byte:02x}");
    }
    digits + "'"
}

/// A literal of characters.
fn text(text: &str) -> String {
    format!("_utf8mb4 {}", hex(text))
}

fn key(key: &Key) -> String {
    text(key.as_str())
}

fn rank(put: &Put) -> String {
    put.rank
        .map_or_else(|| "NULL".to_owned(), |rank| to_bigint(rank).to_string())
}

/// The row of `alias` with this key has this value.
fn has(alias: &str, key: &str, value: &str) -> String {
    let (name, value) = (text(key), hex(value));
    format!("{alias}.`key` = {name} AND CAST({alias}.`value` AS BINARY) = {value}")
}

/// One item after the other.
fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    items.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// The reads of a query, if it reads anything, with the columns of an
/// [`EntryRow`](crate::lease::store::table::sql::EntryRow).
pub(super) fn entries(query: &Query) -> Option<String> {
    let mut parts = Vec::new();
    if !query.keys.is_empty() {
        let keys = list(&query.keys, key);
        parts.push(format!(
            "SELECT 0, `key`, `value`, `rank` FROM ringflake WHERE `key` IN ({keys})"
        ));
    }
    if let Some(blocks) = &query.blocks {
        let range = blocks.keys();
        let (start, end) = (text(&range.start), text(&range.end));
        parts.push(format!(
            "SELECT 0, `key`, `value`, `rank` FROM ringflake WHERE `key` >= {start} AND `key` < {end}"
        ));
    }
    if let Some(Blocks::Lowest {
        namespace, limit, ..
    }) = &query.blocks
    {
        parts.push(format!(
            "(SELECT 1, `key`, `value`, `rank` FROM ringflake WHERE `namespace` = {}
            ORDER BY `rank` LIMIT {})",
            text(namespace),
            u64::from(*limit) + 1
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" UNION ALL "))
}

/// The statements that depend on the server.
#[derive(Debug)]
pub(super) struct Statements {
    incarnation: &'static str,
    accepts_best_effort: bool,
}

impl Statements {
    pub(super) fn new(flavour: Flavour, accepts_best_effort: bool) -> Self {
        Self {
            incarnation: match flavour {
                Flavour::MySql => "CONCAT(@@global.server_uuid, '/database ', DATABASE())",
                Flavour::MariaDb => {
                    "CONCAT(CONCAT_WS('/', @@global.server_id, @@global.hostname, \
                     @@global.datadir), '/database ', DATABASE())"
                }
            },
            accepts_best_effort,
        }
    }

    /// Clock, identity and settings.
    pub(super) fn state(&self) -> String {
        format!(
            "SELECT {UNIX_MS}, CONCAT({}), CONCAT(@@global.innodb_flush_log_at_trx_commit), \
             CONCAT(@@global.log_bin), CONCAT(@@global.sync_binlog), \
             CONCAT(@@global.innodb_doublewrite), CONCAT(@@global.read_only), \
             COALESCE(CONCAT(@@global.innodb_flush_method), '')",
            self.incarnation
        )
    }

    /// What must hold besides the values.
    fn conditions(&self, txn: &Txn) -> String {
        let [earliest, latest] = [txn.not_before_unix_ms, txn.not_after_unix_ms].map(to_bigint);
        let mut conditions = format!("{UNIX_MS} BETWEEN {earliest} AND {latest}");
        if let Some(incarnation) = txn.incarnation.as_ref().map(Incarnation::as_str) {
            let (server, incarnation) = (self.incarnation, hex(incarnation));
            let _ = write!(
                conditions,
                " AND CAST(CONVERT({server} USING utf8mb4) AS BINARY) = {incarnation}"
            );
        }
        // A user with the right to write to a read-only server is not stopped by the server.
        conditions += " AND CONCAT(@@global.read_only) IN ('0', 'OFF')";
        if !self.accepts_best_effort {
            conditions += " AND @@global.innodb_flush_log_at_trx_commit = 1
                AND (NOT @@global.log_bin OR @@global.sync_binlog = 1)
                AND CONCAT(@@global.innodb_doublewrite) NOT IN ('0', 'OFF', 'DETECT_ONLY')";
        }
        conditions
    }

    /// A commit that replaces one entry, as a statement that commits by itself and finds its
    /// row or does not; if it is such a commit.
    ///
    /// Entries that are only compared come first, and are locked with a shared lock: both
    /// servers do that in an update of several tables, and not in a subquery.
    ///
    /// Under `--sysdate-is-now` the time is read before the rows are locked.
    pub(super) fn single(&self, txn: &Txn) -> Option<String> {
        let Single {
            put,
            before,
            compared,
        } = Single::of(txn)?;
        let mut sql = "UPDATE ".to_owned();
        let mut conditions = Vec::new();
        for (index, (key, expected)) in compared.iter().enumerate() {
            let _ = write!(sql, "ringflake AS `c{index}` STRAIGHT_JOIN ");
            conditions.push(has(&format!("`c{index}`"), key, expected));
        }
        conditions.push(has("`p`", put.key.as_str(), before));
        conditions.push(self.conditions(txn));
        let (value, rank) = (text(&put.value), rank(put));
        let _ = write!(
            sql,
            "ringflake AS `p` SET `p`.`value` = {value}, `p`.`rank` = {rank} WHERE {}",
            conditions.join(" AND ")
        );
        Some(sql)
    }

    /// All statements of a commit but the last.
    pub(super) fn several(&self, txn: &Txn) -> Several {
        let find = |key: &Key| txn.puts.iter().find(|put| put.key == *key);
        let (mut shared, mut absent, mut changed, mut inserted) = <_>::default();
        let (mut replaced, mut all) = (Vec::new(), txn.compare.iter().collect::<Vec<_>>());
        all.sort();
        for (key, expected) in all {
            let list: &mut Vec<_> = match (find(key), expected) {
                (None, Some(_)) => &mut shared,
                (None, None) => &mut absent,
                (Some(_), Some(_)) => &mut changed,
                (Some(_), None) => &mut inserted,
            };
            list.push((key, expected.as_deref().unwrap_or_default(), find(key)));
        }
        for put in &txn.puts {
            if !txn.compare.iter().any(|(key, _)| *key == put.key) {
                replaced.push((&put.key, "", Some(put)));
            }
        }
        replaced.sort_by_key(|it| it.0);
        type Row<'a> = (&'a Key, &'a str, Option<&'a Put>);
        let values = |row: &Row<'_>| {
            let (value, rank) = row.2.map(|put| (text(&put.value), rank(put))).unzip();
            let (value, rank) = (value.unwrap_or_default(), rank.unwrap_or_default());
            (value, rank)
        };
        let insert = |rows: &[Row<'_>]| {
            let rows = list(rows, |row| {
                let (value, rank) = values(row);
                format!("({}, {value}, {rank})", key(row.0))
            });
            format!("INSERT INTO ringflake (`key`, `value`, `rank`) VALUES {rows}")
        };
        let any_of = |rows: &[Row<'_>]| {
            let row = |row: &Row<'_>| format!("({})", has("ringflake", row.0.as_str(), row.1));
            rows.iter().map(row).collect::<Vec<_>>().join(" OR ")
        };

        let mut several = Several::default();
        if !absent.is_empty() {
            // Locks the gap, where nobody can insert them then.
            several.push(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                Expected::Nothing,
            );
        }
        several.push("START TRANSACTION", Expected::Nothing);
        let locked: Vec<&Row<'_>> = shared.iter().chain(&absent).collect();
        if !locked.is_empty() {
            let keys = list(&locked, |row| key(row.0));
            several.push(
                format!(
                    "SELECT `key`, `value` FROM ringflake WHERE `key` IN ({keys}) \
                     ORDER BY `key` LOCK IN SHARE MODE"
                ),
                Expected::Entries,
            );
        }
        if !changed.is_empty() {
            let case = |item: &dyn Fn(&Row<'_>) -> String| -> String {
                let when = |row: &Row<'_>| format!("WHEN {} THEN {} ", key(row.0), item(row));
                changed.iter().map(when).collect()
            };
            let (new, ranks) = (case(&|row| values(row).0), case(&|row| values(row).1));
            several.push(
                format!(
                    "UPDATE ringflake SET `value` = CASE `key` {new}END, \
                     `rank` = CASE `key` {ranks}END WHERE `key` IN ({}) AND ({}) ORDER BY `key`",
                    list(&changed, |row| key(row.0)),
                    any_of(&changed)
                ),
                Expected::Rows(changed.len() as u64),
            );
        }
        if !inserted.is_empty() {
            several.push(insert(&inserted), Expected::Rows(inserted.len() as u64));
        }
        if !replaced.is_empty() {
            several.push(
                format!(
                    "{} ON DUPLICATE KEY UPDATE `value` = VALUES(`value`), `rank` = VALUES(`rank`)",
                    insert(&replaced)
                ),
                Expected::Nothing,
            );
        }
        // After all locks.
        let conditions = format!("SELECT {}", self.conditions(txn));
        several.push(conditions, Expected::Truth);
        several
    }
}

/// Statements that are sent together.
#[derive(Debug, Default)]
pub(super) struct Several {
    pub(super) sql: String,
    /// What each must return.
    pub(super) expected: Vec<Expected>,
}

/// What a statement of a commit must return for the commit to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    /// The entries that are compared and not written.
    Entries,
    /// So many rows that were changed.
    Rows(u64),
    /// The number 1.
    Truth,
}

impl Several {
    fn push(&mut self, statement: impl AsRef<str>, expected: Expected) {
        if !self.sql.is_empty() {
            self.sql += "; ";
        }
        self.sql += statement.as_ref();
        self.expected.push(expected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::block::Block;

    #[test]
    fn literals_hold_no_character_of_the_text() {
        assert_eq!(text("a'\\"), "_utf8mb4 x'61275c'");
        assert_eq!(hex(""), "x''");
    }

    #[test]
    fn a_renewal_is_a_single_statement() {
        let statements = Statements::new(Flavour::MariaDb, false);
        let block = Key::block("a", Block::new(7));
        let mut txn = Txn {
            compare: vec![
                (Key::record("a"), Some("{}".to_owned())),
                (block.clone(), Some("1".to_owned())),
            ],
            puts: vec![Put {
                key: block.clone(),
                value: "2".to_owned(),
                rank: Some(2),
            }],
            ..Txn::default()
        };
        let sql = statements.single(&txn).unwrap();
        assert!(sql.starts_with("UPDATE ringflake AS `c0` STRAIGHT_JOIN ringflake AS `p` SET"));
        txn.not_after_unix_ms = 1;
        assert_eq!(statements.single(&txn), None);
        txn.not_after_unix_ms = u64::MAX;
        txn.compare[1].1 = None;
        assert_eq!(statements.single(&txn), None);
        let expected = statements.several(&txn).expected;
        use Expected::{Entries, Nothing, Rows, Truth};
        assert_eq!(expected, [Nothing, Entries, Rows(1), Truth]);
        txn.puts[0].key = Key::check("a");
        assert_eq!(statements.single(&txn), None);
    }
}
