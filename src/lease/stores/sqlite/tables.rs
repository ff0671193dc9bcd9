//! The tables: what is kept, and how it is read and written.
//!
//! They are those of every store that keeps tables, with columns of this one's own in
//! `ringflake_namespace` for how the clock stood (see `clock_step`), and one row about the file
//! (see `witness`). Triggers hold the rules that no bug and
//! no hand must break: marks, epochs and floors don't fall, and no block is
//! forgotten.

mod blocks;
mod file;
mod spaces;

use rusqlite::Connection;

pub(super) use self::blocks::{candidates, least_marks, read_block, read_mark, write_repair};
pub(in crate::lease::stores) use self::blocks::{read_blocks, write_blocks};
pub(super) use self::file::{FileRow, read_file, rename_file, write_file};
pub(in crate::lease::stores) use self::spaces::{Space, read_row};
pub(super) use self::spaces::{insert_space, read_name, read_namespaces, read_space, update_space};
use super::session::StepError;
use crate::lease::stores::row::corrupt;

/// The version of the tables, as `user_version`.
const VERSION: i64 = 1;

/// The purpose of a file. Blocks of one kind are not the other's to grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Kind {
    Store,
    /// A machine's grant logs, with tables of their own beside these; see `tier`.
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

const CREATE: &str = "
    CREATE TABLE ringflake_file (
        name TEXT NOT NULL,
        writes INTEGER NOT NULL,
        life INTEGER NOT NULL
    ) STRICT;
    INSERT INTO ringflake_file VALUES (lower(hex(randomblob(16))), 0, 1);

    CREATE TABLE ringflake_namespace (
        name TEXT NOT NULL PRIMARY KEY,
        format INTEGER NOT NULL,
        layout TEXT NOT NULL,
        block_bits INTEGER NOT NULL,
        fingerprint TEXT NOT NULL,
        horizon_ms INTEGER NOT NULL,
        failover_ms INTEGER NOT NULL,
        skew_ms INTEGER NOT NULL,
        floor INTEGER NOT NULL,
        incarnation TEXT NOT NULL,
        clock_boot TEXT,
        clock_offset_ms INTEGER,
        clock_doubt_offset_ms INTEGER,
        clock_doubt_since_ms INTEGER
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ringflake_block (
        namespace TEXT NOT NULL REFERENCES ringflake_namespace (name),
        block INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        hwm_end INTEGER NOT NULL,
        released INTEGER NOT NULL,
        granted_unix_ms INTEGER,
        holder_host TEXT,
        holder_instance TEXT,
        PRIMARY KEY (namespace, block)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX ringflake_block_mark
        ON ringflake_block (namespace, hwm_end, block);
    CREATE INDEX ringflake_block_released
        ON ringflake_block (namespace, hwm_end, block) WHERE released = 1;

    CREATE UNIQUE INDEX ringflake_namespace_secret
        ON ringflake_namespace (fingerprint)
        WHERE fingerprint <> '00000000000000000000000000000000';

    CREATE TRIGGER ringflake_floor_never_falls BEFORE UPDATE ON ringflake_namespace
        WHEN new.floor < old.floor OR new.name <> old.name
    BEGIN
        SELECT RAISE(ABORT, 'a floor never falls');
    END;
    CREATE TRIGGER ringflake_block_is_made_sound BEFORE INSERT ON ringflake_block
        WHEN NOT (new.block >= 0 AND new.epoch BETWEEN 1 AND new.hwm_end)
    BEGIN
        SELECT RAISE(ABORT, 'an epoch is from 1 to its mark');
    END;
    CREATE TRIGGER ringflake_block_stays_sound BEFORE UPDATE ON ringflake_block
        WHEN NOT (new.block >= 0 AND new.epoch BETWEEN 1 AND new.hwm_end)
    BEGIN
        SELECT RAISE(ABORT, 'an epoch is from 1 to its mark');
    END;
    CREATE TRIGGER ringflake_block_is_never_forgotten BEFORE DELETE ON ringflake_block
    BEGIN
        SELECT RAISE(ABORT, 'a block is never forgotten');
    END;
";

const MARK_NEVER_FALLS: &str = "
    CREATE TRIGGER IF NOT EXISTS ringflake_mark_never_falls BEFORE UPDATE ON ringflake_block
        WHEN new.hwm_end < old.hwm_end OR new.epoch < old.epoch
            OR new.namespace <> old.namespace OR new.block <> old.block
    BEGIN
        SELECT RAISE(ABORT, 'a mark never falls');
    END;
";

/// Lets the next statements of the transaction repair a row. A mark that can't be true
/// is no mark.
const LET_MARKS_FALL: &str = "DROP TRIGGER IF EXISTS ringflake_mark_never_falls";

/// Whether the tables are there; false for a file without any content.
pub(in crate::lease::stores) fn exist(
    connection: &Connection,
    store: &str,
) -> Result<bool, StepError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id")?;
    match (Kind::of_application(application), pragma("user_version")?) {
        (Some(_), VERSION) => Ok(true),
        (Some(_), version) => Err(corrupt(format!(
            "{store} has version {version}, and this program reads version {VERSION}: use a program \
             at least as new as the one that wrote it"
        ))
        .into()),
        (None, version) => {
            let things: i64 =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if (application, version, things) == (0, 0, 0) {
                return Ok(false);
            }
            Err(corrupt(format!(
                "{store} is the database of another application (its ID is {application:#x}, and \
                 it has {things} tables and indexes): give the store a file of its own"
            ))
            .into())
        }
    }
}

/// Refuses a file that is for something else; one without any content is for both.
pub(super) fn refuse_other_kind(
    connection: &Connection,
    store: &str,
    kind: Kind,
) -> Result<(), StepError> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let advice = match (kind, Kind::of_application(application)) {
        (Kind::Store, Some(Kind::Tier)) => {
            "is the file of a tier: its URL is tier:PATH?upstream=URL"
        }
        (Kind::Tier, Some(Kind::Store)) => {
            "is a store: give the tier a file of its own, which need not exist"
        }
        _ => return Ok(()),
    };
    Err(corrupt(format!("{store} {advice}")).into())
}

/// Makes the tables in a file without any content.
pub(in crate::lease::stores) fn make(
    connection: &Connection,
    store: &str,
    kind: Kind,
) -> Result<(), StepError> {
    if !exist(connection, store)? {
        connection.execute_batch(CREATE)?;
        connection.execute_batch(MARK_NEVER_FALLS)?;
        connection.pragma_update(None, "application_id", kind.application())?;
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(())
}

/// Looks for damage that reading some rows would not meet.
pub(super) fn inspect(connection: &Connection, store: &str) -> Result<(), StepError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(corrupt(format!("{store} is damaged: {found}")).into())
}
