//! The SQL that is sent. Both servers understand it; they differ in the statement for
//! their identity.

use super::flavour::Flavour;

/// The time at which it is evaluated, in a session at UTC. `NOW()` would be the
/// time at which the statement began, and `SET timestamp` would move it. Not
/// `UNIX_TIMESTAMP`, which has 31 bits in some versions.
macro_rules! unix_ms {
    () => {
        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000"
    };
}

macro_rules! record_columns {
    () => {
        "`format`, `name`, `layout`, `block_bits`, `fingerprint`, `horizon_ms`, `failover_ms`, \
         `skew_ms`, `floor`, `incarnation`"
    };
}

macro_rules! block_columns {
    () => {
        "`block`, `epoch`, `hwm_end`, `released`, `granted_unix_ms`, `holder_host`, \
         `holder_instance`"
    };
}

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
pub(super) const BEGIN: &str = "START TRANSACTION";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// All that is read until the commit is of one moment.
pub(super) const BEGIN_READ: [&str; 2] = [
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
];

pub(super) const CLOCK: &str = concat!("SELECT ", unix_ms!());

/// Tables that a crash could empty or damage.
pub(super) const OTHER_ENGINES: &str = "\
    SELECT CONCAT(TABLE_NAME, ' (', ENGINE, ')') FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB'
        AND TABLE_NAME IN ('ringflake_namespace', 'ringflake_block')";

/// Asked first, since `CREATE TABLE IF NOT EXISTS` wants a privilege that a user
/// needs no more once they exist.
pub(super) const COUNT_TABLES: &str = "\
    SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
        AND TABLE_NAME IN ('ringflake_namespace', 'ringflake_block')";

/// The fingerprint stands in `secret`, too, but for plain IDs: there it is none, which
/// any number of rows may have.
pub(super) const CREATE_TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS ringflake_namespace (
        `name` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        `format` BIGINT NOT NULL,
        `layout` VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        `block_bits` BIGINT NOT NULL,
        `fingerprint` CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        `horizon_ms` BIGINT NOT NULL,
        `failover_ms` BIGINT NOT NULL,
        `skew_ms` BIGINT NOT NULL,
        `floor` BIGINT NOT NULL,
        `incarnation` VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        `secret` CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
        UNIQUE KEY ringflake_namespace_secret (`secret`),
        CONSTRAINT ringflake_namespace_numbers CHECK (`floor` >= 0)
    ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS ringflake_block (
        `namespace` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        `block` BIGINT NOT NULL,
        `epoch` BIGINT NOT NULL DEFAULT 0,
        `hwm_end` BIGINT NOT NULL DEFAULT 0,
        `released` BOOLEAN NOT NULL DEFAULT FALSE,
        `granted_unix_ms` BIGINT,
        `holder_host` VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        `holder_instance` VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        PRIMARY KEY (`namespace`, `block`),
        KEY ringflake_block_mark (`namespace`, `hwm_end`, `block`),
        CONSTRAINT ringflake_block_numbers
            CHECK (`block` >= 0
                AND (`epoch` BETWEEN 1 AND `hwm_end` OR `epoch` = 0 AND `hwm_end` = 0))
    ) ENGINE = InnoDB",
];

/// Whether the tables have the additions since format 1.
pub(super) const COUNT_ADDITIONS: &str = "\
    SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
        AND TABLE_NAME = 'ringflake_namespace' AND COLUMN_NAME = 'secret'";

/// The last addition proves that all were made.
pub(super) const ADD: [&str; 3] = [
    "ALTER TABLE ringflake_block
        ADD CONSTRAINT ringflake_block_numbers
            CHECK (`block` >= 0
                AND (`epoch` BETWEEN 1 AND `hwm_end` OR `epoch` = 0 AND `hwm_end` = 0))",
    "ALTER TABLE ringflake_namespace
        ADD CONSTRAINT ringflake_namespace_numbers CHECK (`floor` >= 0)",
    "ALTER TABLE ringflake_namespace
        ADD COLUMN `secret` CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
        ADD UNIQUE KEY ringflake_namespace_secret (`secret`)",
];

/// With the columns that Baidu's uid-generator publishes in `WORKER_NODE.sql`.
pub(super) const CREATE_WORKER_NODE: &str = "\
    CREATE TABLE IF NOT EXISTS WORKER_NODE (
        ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        HOST_NAME VARCHAR(64) NOT NULL,
        PORT VARCHAR(64) NOT NULL,
        TYPE INT NOT NULL,
        LAUNCH_DATE DATE NOT NULL,
        MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
    ) ENGINE = InnoDB";

/// A type of 2 is a process that runs on a machine, not in a container. Without
/// a holder, what the server itself sees of the client.
pub(super) const NOTE_LAUNCH: &str = "\
    INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)
    VALUES (COALESCE(?, LEFT(SUBSTRING_INDEX(USER(), '@', -1), 64)),
        COALESCE(?, CONCAT(CONNECTION_ID())), 2, CURRENT_DATE, NOW(), NOW())";

pub(super) const IS_RECORDED: &str =
    "SELECT EXISTS (SELECT * FROM ringflake_namespace WHERE `name` = ?)";

pub(super) const CREATE_RECORD: &str = concat!(
    "INSERT INTO ringflake_namespace (",
    record_columns!(),
    ", `secret`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
);

/// The lock makes it wait for another one that has written this secret and not committed.
pub(super) const NAMESPACE_OF: &str =
    "SELECT `name` FROM ringflake_namespace WHERE `secret` = ? LOCK IN SHARE MODE";

pub(super) const CREATE_FIRST_BLOCK: &str =
    "INSERT INTO ringflake_block (`namespace`, `block`) VALUES (?, 0)";

/// Makes twice as many blocks of those that there are.
pub(super) const DOUBLE_BLOCKS: &str = "\
    INSERT INTO ringflake_block (`namespace`, `block`)
    SELECT `namespace`, `block` + ? FROM ringflake_block WHERE `namespace` = ?";

macro_rules! record {
    () => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM ringflake_namespace WHERE `name` = ?"
        )
    };
}

pub(super) const RECORD: &str = record!();
/// The newer `FOR SHARE` is MySQL's alone.
pub(super) const RECORD_SHARED: &str = concat!(record!(), " LOCK IN SHARE MODE");
pub(super) const RECORD_EXCLUSIVE: &str = concat!(record!(), " FOR UPDATE");

/// Blocks never granted have mark 0, and so come first. Without the index the
/// server would lock every row of the namespace before it sorts them. Parameters 4 to
/// 6: whether to pass over what is quarantined, and how many blocks and ticks there are.
macro_rules! candidates {
    () => {
        concat!(
            "SELECT ",
            block_columns!(),
            " FROM ringflake_block FORCE INDEX (ringflake_block_mark)
            WHERE `namespace` = ? AND (`hwm_end` <= ? OR `released`) AND `hwm_end` < ?
                AND (NOT ? OR `block` >= 0 AND `block` < ? AND `hwm_end` <= ?
                    AND (`epoch` BETWEEN 1 AND `hwm_end` OR `epoch` = 0 AND `hwm_end` = 0))
            ORDER BY `hwm_end`, `block` LIMIT ? FOR UPDATE"
        )
    };
}

pub(super) const CANDIDATES: &str = concat!(candidates!(), " SKIP LOCKED");
pub(super) const CANDIDATES_WAITING: &str = candidates!();

pub(super) const MARKS: &str = "\
    SELECT MIN(IF(`released`, NULL, `hwm_end`)), MIN(IF(`released`, `hwm_end`, NULL))
    FROM ringflake_block WHERE `namespace` = ? AND `epoch` BETWEEN 1 AND `hwm_end`";

pub(super) const UPDATE_RECORD: &str =
    "UPDATE ringflake_namespace SET `floor` = ?, `incarnation` = ? WHERE `name` = ?";

pub(super) const GRANTED: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE `namespace` = ? AND (`epoch` <> 0 OR `hwm_end` <> 0) ORDER BY `block`"
);

pub(super) const GRANTED_ONE: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE `namespace` = ? AND (`epoch` <> 0 OR `hwm_end` <> 0)
        AND `block` = ?"
);

pub(super) const ONE_LOCKED: &str = concat!(
    "SELECT ",
    block_columns!(),
    " FROM ringflake_block WHERE `namespace` = ? AND `block` = ? FOR UPDATE"
);

pub(super) const REPAIR: &str = "\
    UPDATE ringflake_block
    SET `epoch` = ?, `hwm_end` = ?, `released` = TRUE,
        `granted_unix_ms` = NULL, `holder_host` = NULL, `holder_instance` = NULL
    WHERE `namespace` = ? AND `block` = ?";

/// So many of the blocks. Parameters: the namespace, each block.
pub(super) fn known(blocks: usize) -> String {
    let (columns, list) = (block_columns!(), vec!["?"; blocks].join(", "));
    format!(
        "SELECT {columns} FROM ringflake_block
        WHERE `namespace` = ? AND (`epoch` <> 0 OR `hwm_end` <> 0) AND `block` IN ({list})"
    )
}

/// Locks so many records against changes. Parameters: their names.
pub(super) fn records_shared(records: usize) -> String {
    let list = vec!["?"; records].join(", ");
    format!(
        "SELECT `name` FROM ringflake_namespace WHERE `name` IN ({list}) ORDER BY `name`
        LOCK IN SHARE MODE"
    )
}

/// Locks those of so many blocks that nobody has locked. Parameters: the namespace, each
/// block.
pub(super) fn free(blocks: usize) -> String {
    let list = vec!["?"; blocks].join(", ");
    format!(
        "SELECT `block` FROM ringflake_block FORCE INDEX (PRIMARY)
        WHERE `namespace` = ? AND `block` IN ({list}) FOR UPDATE SKIP LOCKED"
    )
}

/// Moves the marks of `blocks` blocks. Parameters: block and mark of each, time,
/// host and instance, the namespace, each block.
pub(super) fn grant(blocks: usize) -> String {
    let marks = "WHEN ? THEN ? ".repeat(blocks);
    let list = vec!["?"; blocks].join(", ");
    format!(
        "UPDATE ringflake_block
        SET `epoch` = `epoch` + 1, `hwm_end` = CASE `block` {marks}END, `released` = FALSE,
            `granted_unix_ms` = ?, `holder_host` = ?, `holder_instance` = ?
        WHERE `namespace` = ? AND `block` IN ({list})"
    )
}

const VERIFIED: &str = "\
    `b`.`namespace` = ? AND `n`.`format` = ? AND `n`.`layout` = ? AND `n`.`block_bits` = ?
        AND `n`.`fingerprint` = ? AND `b`.`block` = ? AND `b`.`epoch` = ? AND `b`.`epoch` > 0
        AND `b`.`hwm_end` BETWEEN `b`.`epoch` AND ?";

const JOINED: &str = "\
    UPDATE ringflake_block AS `b` JOIN ringflake_namespace AS `n` ON `n`.`name` = `b`.`namespace`";

pub(super) fn release() -> String {
    format!("{JOINED} SET `b`.`released` = TRUE WHERE {VERIFIED}")
}

/// The statements that differ between the servers.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) present: String,
    pub(super) extend: String,
}

impl Statements {
    pub(super) fn new(flavour: Flavour) -> Self {
        let incarnation = match flavour {
            Flavour::MySql => "@@global.server_uuid",
            Flavour::MariaDb => {
                "CONCAT_WS('/', @@global.server_id, @@global.hostname, @@global.datadir)"
            }
        };
        let unix_ms = unix_ms!();
        Self {
            present: format!(
                "SELECT {unix_ms}, CONCAT({incarnation}), \
                 CONCAT(@@global.innodb_flush_log_at_trx_commit), CONCAT(@@global.log_bin), \
                 CONCAT(@@global.sync_binlog), CONCAT(@@global.innodb_doublewrite), \
                 CONCAT(@@global.read_only)"
            ),
            // The new mark comes back as the statement's insert ID: neither
            // server has a RETURNING for this.
            extend: format!(
                "{JOINED}
                SET `b`.`hwm_end` = LAST_INSERT_ID(GREATEST(?, LEAST(?, ?,
                        ({unix_ms} - ?) DIV ? + `n`.`horizon_ms` DIV ?))),
                    `b`.`released` = FALSE
                WHERE {VERIFIED} AND `b`.`hwm_end` = ? AND `n`.`floor` <= ? AND {unix_ms} >= ?
                    AND `n`.`incarnation` = {incarnation}
                    AND (? OR @@global.innodb_flush_log_at_trx_commit = 1
                        AND (NOT @@global.log_bin OR @@global.sync_binlog = 1))"
            ),
        }
    }
}
