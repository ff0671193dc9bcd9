//! The tables in the file, and the row about the file itself.

use rusqlite::{Connection, Row, params};

use super::session::StepError;
use crate::lease::error::StoreError;

/// The version of the tables, as `user_version`.
const VERSION: i64 = 1;

/// The purpose of a file. Blocks of one kind are not the other's to grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) enum Kind {
    Store,
    /// A machine's grant logs.
    Tier,
}

impl Kind {
    /// The scheme of the URL of a store in such a file.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Store => "sqlite",
            Self::Tier => "tier",
        }
    }

    /// Tells the files apart: "rflk" and "rflt".
    fn application(self) -> i64 {
        match self {
            Self::Store => 0x7266_6c6b,
            Self::Tier => 0x7266_6c74,
        }
    }

    fn of_application(application: i64) -> Option<Self> {
        [Self::Store, Self::Tier]
            .into_iter()
            .find(|kind| kind.application() == application)
    }
}

/// The view is for people.
const CREATE: &str = "
    CREATE TABLE ringflake_file (
        name TEXT NOT NULL,
        identity TEXT NOT NULL,
        token TEXT NOT NULL,
        life INTEGER NOT NULL,
        life_began_unix_ms INTEGER NOT NULL
    ) STRICT;
    INSERT INTO ringflake_file (name, identity, token, life, life_began_unix_ms)
        VALUES (lower(hex(randomblob(16))), '', '', 1, 0);

    CREATE TABLE ringflake (
        key TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL,
        rank INTEGER,
        namespace TEXT GENERATED ALWAYS AS (
            CASE WHEN key GLOB '*/block/*' THEN substr(key, 1, instr(key, '/') - 1) END
        ) VIRTUAL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX ringflake_rank ON ringflake (namespace, rank) WHERE namespace IS NOT NULL;
    CREATE TRIGGER ringflake_keeps_entries BEFORE DELETE ON ringflake
    BEGIN
        SELECT RAISE(ABORT, 'entries are never deleted');
    END;

    CREATE VIEW ringflake_block AS
        SELECT namespace, block, value ->> 'epoch' AS epoch,
            CAST(value ->> 'hwm_end' AS INTEGER) AS hwm_end, value ->> 'released' AS released,
            value ->> 'start' AS start, value ->> 'granted_unix_ms' AS granted_unix_ms,
            value ->> 'holder_host' AS holder_host, value ->> 'holder_instance' AS holder_instance
        FROM (SELECT namespace, CAST(substr(key, -20) AS INTEGER) AS block,
            CASE WHEN json_valid(value) THEN value END AS value
            FROM ringflake WHERE namespace IS NOT NULL);
";

/// Whether the tables are there; false for a file without any content. A file of another kind
/// is refused.
pub(super) fn exist(connection: &Connection, store: &str, kind: Kind) -> Result<bool, StepError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id")?;
    match (Kind::of_application(application), pragma("user_version")?) {
        (Some(found), _) if found != kind => {
            let advice = match found {
                Kind::Tier => "is the file of a tier: its URL is tier:PATH?upstream=URL",
                Kind::Store => "is a store: give the tier a file of its own, which need not exist",
            };
            Err(StoreError::corrupt(format!("{store} {advice}")).into())
        }
        (Some(_), VERSION) => Ok(true),
        (Some(_), version) => Err(StoreError::corrupt(format!(
            "{store} has tables of version {version}, and this program reads version {VERSION}: \
             use a program at least as new as the one that wrote it"
        ))
        .into()),
        (None, version) => {
            let things: i64 =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if (application, version, things) == (0, 0, 0) {
                return Ok(false);
            }
            Err(StoreError::corrupt(format!(
                "{store} is the database of another application (its ID is {application:#x}, and \
                 it has {things} tables and indexes): give the store a file of its own"
            ))
            .into())
        }
    }
}

/// Creates the tables in a file without any content.
pub(super) fn create(connection: &Connection, kind: Kind) -> Result<(), StepError> {
    connection.execute_batch(CREATE)?;
    connection.pragma_update(None, "application_id", kind.application())?;
    connection.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Looks for damage that reading some rows would not meet.
pub(super) fn inspect(connection: &Connection, store: &str) -> Result<(), StepError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::corrupt(format!("{store} is damaged: {found}")).into())
}

/// The file's record of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRow {
    /// Random, under which its note lies.
    pub(super) name: String,
    /// See `identity`; empty before the first write.
    pub(super) identity: String,
    /// Of its last write; empty before the first.
    pub(super) token: String,
    /// How often it began a new life; see `witness`.
    pub(super) life: u64,
    /// When it began this life, in milliseconds since 1970; 0 in the first one.
    pub(super) life_began_unix_ms: u64,
}

impl FileRow {
    pub(super) fn read(connection: &Connection) -> Result<Self, StepError> {
        let sql = "SELECT name, identity, token, life, life_began_unix_ms \
                   FROM ringflake_file";
        let number = |column: &str, value: i64| {
            u64::try_from(value).map_err(|_| StoreError::corrupt(format!("{column} is {value}")))
        };
        let read = |row: &Row<'_>| {
            Ok(Self {
                name: row.get(0)?,
                identity: row.get(1)?,
                token: row.get(2)?,
                life: number("life", row.get(3)?)?,
                life_began_unix_ms: number("life_began_unix_ms", row.get(4)?)?,
            })
        };
        connection.query_row_and_then(sql, [], read)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), StepError> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        connection.execute(
            "UPDATE ringflake_file SET name = ?1, identity = ?2, token = ?3, life = ?4, \
                 life_began_unix_ms = ?5",
            params![
                self.name,
                self.identity,
                self.token,
                number(self.life),
                number(self.life_began_unix_ms),
            ],
        )?;
        Ok(())
    }
}

/// A name that no other file has, or a token that no other write has.
pub(super) fn draw(connection: &Connection) -> Result<String, StepError> {
    let sql = "SELECT lower(hex(randomblob(16)))";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}
