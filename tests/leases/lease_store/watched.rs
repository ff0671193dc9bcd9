//! A table that counts its calls and conflicts, and loses the replies to chosen commits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringflake::lease::table::{
    Commit, Description, MemoryTable, Query, Snapshot, Table, TableError, Txn,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Commit,
    Describe,
}

/// A commit whose reply is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// How many commits come before it.
    pub(crate) after: usize,
    pub(crate) is_applied: bool,
}

/// Clones share the server and the counts.
#[derive(Clone, Debug)]
pub(crate) struct WatchedTable {
    table: MemoryTable,
    watch: Arc<Mutex<Watch>>,
}

#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) calls: Vec<Call>,
    pub(crate) conflicts: usize,
    pub(crate) lost: Option<Lost>,
    /// The commit whose reply was lost.
    pub(crate) lost_txn: Option<Txn>,
}

impl Watch {
    pub(crate) fn commits(&self) -> usize {
        let commits = self.calls.iter().filter(|call| **call == Call::Commit);
        commits.count()
    }
}

impl WatchedTable {
    pub(crate) fn new(table: MemoryTable) -> Self {
        Self {
            table,
            watch: Arc::default(),
        }
    }

    pub(crate) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the calls so far, and loses the reply to a commit from here on.
    pub(crate) fn lose(&self, lost: Lost) {
        *self.watch() = Watch {
            lost: Some(lost),
            ..Watch::default()
        };
    }
}

impl Table for WatchedTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        self.watch().calls.push(Call::Read);
        self.table.read(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        let lost = {
            let mut watch = self.watch();
            let before = watch.commits();
            watch.calls.push(Call::Commit);
            let lost = watch.lost.filter(|lost| lost.after == before);
            if lost.is_some() {
                watch.lost_txn = Some(txn.clone());
            }
            lost
        };
        if lost.is_some_and(|lost| !lost.is_applied) {
            return Ok(Commit::Unknown("no reply".into()));
        }
        let outcome = self.table.commit(txn, instead)?;
        match (&outcome, lost) {
            (Commit::Conflict(_), _) => self.watch().conflicts += 1,
            (_, Some(_)) => return Ok(Commit::Unknown("no reply".into())),
            _ => {}
        }
        Ok(outcome)
    }

    fn describe(&mut self) -> Result<Description, TableError> {
        self.watch().calls.push(Call::Describe);
        self.table.describe()
    }
}
