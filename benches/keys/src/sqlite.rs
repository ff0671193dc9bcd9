//! SQLite: a file of its own for each table.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use super::key::{Key, Kind};
use super::{Cost, Table};

/// A table whose rows lie in the tree of the primary key.
pub struct Sqlite {
    directory: TempDir,
    connection: Connection,
}

impl Sqlite {
    pub fn create(kind: Kind) -> Result<Self, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let connection = Connection::open(directory.path().join("keys.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        let (column, rows) = match kind.is_number() {
            true => ("integer primary key", ""),
            false => ("blob primary key", "without rowid"),
        };
        let table = format!("create table orders (id {column}, body text not null) {rows}");
        connection.execute(&table, [])?;
        Ok(Self {
            directory,
            connection,
        })
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("keys.db")
    }
}

impl Table for Sqlite {
    fn insert(&mut self, keys: &[Key]) -> Result<(), Box<dyn Error>> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare("insert into orders values (?1, ?2)")?;
            for key in keys {
                let body = "forty characters that stand for an order";
                match key {
                    Key::Number(number) => insert.execute((number, body))?,
                    Key::Uuid(uuid) => insert.execute((uuid.as_bytes().as_slice(), body))?,
                };
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn measure(&mut self) -> Result<(usize, Cost), Box<dyn Error>> {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let rows = self
            .connection
            .query_row("select count(*) from orders", [], count)?;
        self.connection
            .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
        let all = fs::metadata(self.file())?.len();
        let cost = Cost {
            steps: Vec::new(),
            // The rows are in it.
            tree: all,
            all,
            log: None,
        };
        Ok((rows.try_into()?, cost))
    }
}
