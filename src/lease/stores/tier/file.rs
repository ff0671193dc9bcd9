//! A tier's grant logs in a file.
//!
//! The namespace's record and the blocks of the sub-grants stand in the tables of every
//! store, with their triggers; beside them the upstream grants, and the state of
//! the requests. All of a namespace is read at each step: a machine has few blocks.
//!
//! A file that is a copy is no reason to refuse: its upstream grants are given up. Sub-grants
//! of the original belong to others, and no mark of this file matters to anybody then. A file
//! that may be an older state of itself keeps its upstream grants, which are the machine's
//! whatever it has forgotten, and raises the floor over the sub-grants of them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::alive;
use super::grant_log::{Caller, GrantLog, Standing, UpstreamGrant};
use super::operation::Operation;
use super::requests::{Failing, UpstreamState};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::events;
use crate::lease::namespace::Namespace;
use crate::lease::record::Incarnation;
use crate::lease::stores::row::{corrupt, from_column, to_column};
use crate::lease::stores::sqlite::SqliteStore;
use crate::lease::stores::sqlite::opening::Opened;
use crate::lease::stores::sqlite::session::{Access, StepError};
use crate::lease::stores::sqlite::steps::refuse_second_use;
use crate::lease::stores::sqlite::tables::{self, Kind, Space};
use crate::lease::stores::sqlite::txn::Txn;

const CREATE: &str = "
    CREATE TABLE ringflake_upstream (
        namespace TEXT NOT NULL REFERENCES ringflake_namespace (name),
        block INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        start_tick INTEGER NOT NULL,
        end_tick INTEGER NOT NULL CHECK (start_tick < end_tick),
        used_by TEXT,
        standing TEXT NOT NULL CHECK (standing IN ('held', 'draining', 'closed')),
        PRIMARY KEY (namespace, block)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ringflake_tier (
        namespace TEXT NOT NULL PRIMARY KEY REFERENCES ringflake_namespace (name),
        first_epoch INTEGER NOT NULL,
        reach INTEGER NOT NULL,
        errand_began_unix_ms INTEGER,
        failing_since_unix_ms INTEGER,
        failed_last_unix_ms INTEGER,
        failures INTEGER,
        failure TEXT
    ) STRICT, WITHOUT ROWID;

    CREATE TRIGGER ringflake_upstream_end_never_falls BEFORE UPDATE ON ringflake_upstream
        WHEN new.end_tick < old.end_tick
            OR new.namespace <> old.namespace OR new.block <> old.block
            OR (new.start_tick <> old.start_tick AND new.start_tick < old.end_tick)
    BEGIN
        SELECT RAISE(ABORT, 'what was granted upstream never grows back');
    END;
    CREATE TRIGGER ringflake_upstream_is_never_forgotten BEFORE DELETE ON ringflake_upstream
    BEGIN
        SELECT RAISE(ABORT, 'what was granted upstream is never forgotten');
    END;
";

impl SqliteStore {
    /// Writes the first grant log of a namespace, and makes the file if it is missing.
    /// Does nothing if another process was faster.
    pub(super) fn create_log(&mut self, log: &GrantLog) -> Result<(), StoreError> {
        let namespace = &log.record.namespace.clone();
        self.create_file()?;
        let mut opened = self.open(namespace, Access::Write)?;
        let make = |opened: &Opened| {
            let connection = opened.session.connection();
            if !tables::exist(connection, &opened.name)? {
                tables::make(connection, &opened.name, Kind::Tier)?;
                connection.execute_batch(CREATE)?;
            }
            tables::read_row(connection, &opened.name, namespace)
        };
        let made = make(&opened).map_err(|error: StepError| error.into_error(&opened.name))?;
        if made.is_some() {
            return Ok(());
        }
        self.look_at_file(&mut opened, Access::Write)?;
        let described = |error: StepError| error.into_error(&opened.name);
        let connection = opened.session.connection();
        refuse_second_use(connection, namespace, &namespace.claims(&[])).map_err(described)?;
        let mut txn = self.txn(&opened, Space::new(log.record.clone()))?;
        txn.adopt();
        txn.insert()
            .and_then(|()| insert(connection, log))
            .map_err(described)?;
        self.commit(opened, "init")
    }

    /// Runs one step on the grant log of a namespace, in one transaction.
    pub(super) fn change_log<T>(
        &mut self,
        operation: Operation,
        namespace: &Namespace,
        step: impl FnOnce(&mut GrantLog, &Caller) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = self.path().to_owned();
        // Without one its blocks are free when their marks pass, as in every store.
        let user = (operation.needs_signs)
            .then(|| alive::sign(&path))
            .flatten();
        self.run(operation.name, namespace, Access::Write, |txn| {
            let mut before = read(txn, namespace)?;
            let mut log = before.clone();
            let found = txn.incarnation.clone();
            if found != log.record.incarnation && found.is_same_file(&log.record.incarnation) {
                // It may be an older state of itself: its upstream grants are its own, and what
                // it has forgotten of their sub-grants lies below the floor.
                let now = log.record.tick_at(txn.expected_unix_ms())?;
                log.record.observe(&found, now);
                txn.space.record = log.record.clone();
                txn.save()?;
                before = log.clone();
            } else if found != log.record.incarnation {
                let recorded = log.record.incarnation.as_str();
                if is_same_but_for_the_machine(recorded, found.as_str()) && alive::is_shared(&path)
                {
                    return Ok(Err(shared_with_another(txn.store, recorded, &found)));
                }
                events::tier_given_up(txn.store, recorded, found.as_str());
                txn.part_from_original()?;
                log.forget(&txn.incarnation, txn.unix_ms);
                // Whatever becomes of the step: a file that has been made this one's has
                // nothing left that was another one's.
                write(txn.connection, &before, &log)?;
                txn.space.record = log.record.clone();
                txn.save()?;
                before = log.clone();
            }
            if operation.needs_clock
                && let Some(stepped) = txn.doubt_clock()?
            {
                return Ok(Err(stepped));
            }
            if operation.needs_signs {
                log.reap(|user| alive::is_gone(&path, user));
            }
            let caller = Caller {
                user,
                arrived_unix_ms: txn.arrived_unix_ms,
                unix_ms: txn.unix_ms,
            };
            let answer = step(&mut log, &caller);
            if GrantLog::is_to_be_kept(&answer) {
                write(txn.connection, &before, &log)?;
                txn.space.record = log.record;
                txn.save()?;
            }
            Ok(answer)
        })
    }
}

fn is_same_but_for_the_machine(recorded: &str, found: &str) -> bool {
    let inode = |identity: &str| identity.split_once(", ").map(|(_, inode)| inode.to_owned());
    inode(recorded) == inode(found)
}

/// Processes live that take the machine for another one. Each would give up what the
/// others have.
fn shared_with_another(store: &str, recorded: &str, found: &Incarnation) -> StoreError {
    StoreError::Copied {
        store: store.to_owned(),
        recorded: recorded.to_owned(),
        found: format!(
            "{found}, while other processes use the file: containers of one machine need its \
             /etc/machine-id mounted, and each machine needs a file of its own"
        ),
    }
}

fn read(txn: &Txn<'_>, namespace: &Namespace) -> Result<GrantLog, StepError> {
    let connection = txn.connection;
    let (mut blocks, mut quarantined) = (BTreeMap::new(), BTreeMap::new());
    for judged in tables::read_blocks(connection, namespace)? {
        match judged {
            Ok(state) => drop(blocks.insert(state.block, state)),
            Err(damage) => {
                damage.log(namespace);
                if let Some(block) = damage.block {
                    quarantined.insert(block, damage);
                }
            }
        }
    }
    let (first_epoch, reach, upstream_state) = read_tier(connection, namespace)?;
    Ok(GrantLog {
        record: txn.space.record.clone(),
        first_epoch,
        reach,
        upstream: read_upstream(connection, namespace)?,
        blocks,
        upstream_state,
        quarantined,
    })
}

fn read_upstream(
    connection: &Connection,
    namespace: &Namespace,
) -> Result<BTreeMap<Block, UpstreamGrant>, StepError> {
    let mut statement = connection.prepare(
        "SELECT block, epoch, start_tick, end_tick, standing, used_by FROM ringflake_upstream \
         WHERE namespace = ?1",
    )?;
    let rows = statement.query_and_then([namespace.name()], |row| {
        let start = from_column("start_tick", row.get(2)?)?;
        let end = from_column("end_tick", row.get(3)?)?;
        let standing: String = row.get(4)?;
        let upstream = UpstreamGrant {
            epoch: Epoch::new(from_column("epoch", row.get(1)?)?),
            ticks: start..end,
            standing: parse_standing(&standing)?,
            used_by: row.get(5)?,
        };
        Ok((Block::new(from_column("block", row.get(0)?)?), upstream))
    })?;
    rows.collect()
}

fn read_tier(
    connection: &Connection,
    namespace: &Namespace,
) -> Result<(Epoch, u64, UpstreamState), StepError> {
    let found = connection
        .query_row(
            "SELECT reach, errand_began_unix_ms, failing_since_unix_ms, failed_last_unix_ms, \
                    failures, failure, first_epoch \
             FROM ringflake_tier WHERE namespace = ?1",
            [namespace.name()],
            |row| {
                let since: Option<i64> = row.get(2)?;
                let last: Option<i64> = row.get(3)?;
                let failures: Option<u32> = row.get(4)?;
                let message: Option<String> = row.get(5)?;
                let failing = since.zip(last).zip(failures).zip(message);
                let began: Option<i64> = row.get(1)?;
                Ok((row.get(6)?, row.get(0)?, began, failing))
            },
        )
        .optional()?;
    let Some((first_epoch, reach, began, failing)) = found else {
        let name = namespace.name();
        return Err(corrupt(format!("ringflake_tier has no row of namespace {name:?}")).into());
    };
    let millis = |column: &str, value: i64| from_column(column, value);
    let failing = match failing {
        None => None,
        Some((((since, last), failures), message)) => Some(Failing {
            since_unix_ms: millis("failing_since_unix_ms", since)?,
            last_unix_ms: millis("failed_last_unix_ms", last)?,
            failures,
            message,
        }),
    };
    let began_unix_ms = match began {
        None => None,
        Some(began) => Some(millis("errand_began_unix_ms", began)?),
    };
    let upstream_state = UpstreamState {
        began_unix_ms,
        failing,
    };
    let first_epoch = Epoch::new(from_column("first_epoch", first_epoch)?);
    Ok((first_epoch, from_column("reach", reach)?, upstream_state))
}

fn insert(connection: &Connection, log: &GrantLog) -> Result<(), StepError> {
    connection.execute(
        "INSERT INTO ringflake_tier (namespace, first_epoch, reach) VALUES (?1, ?2, ?3)",
        params![
            log.record.namespace.name(),
            to_column(log.first_epoch.get()),
            to_column(log.reach),
        ],
    )?;
    Ok(())
}

/// Writes what has changed, but for the record.
fn write(connection: &Connection, before: &GrantLog, after: &GrantLog) -> Result<(), StepError> {
    let namespace = &after.record.namespace;
    let blocks: Vec<BlockState> = (after.blocks.iter())
        .filter(|(block, state)| before.blocks.get(block) != Some(state))
        .map(|(_, state)| state.clone())
        .collect();
    tables::write_blocks(connection, namespace, &blocks)?;

    let mut statement = connection.prepare(
        "INSERT INTO ringflake_upstream \
             (namespace, block, epoch, start_tick, end_tick, standing, used_by) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (namespace, block) DO UPDATE SET \
             epoch = excluded.epoch, start_tick = excluded.start_tick, \
             end_tick = excluded.end_tick, standing = excluded.standing, \
             used_by = excluded.used_by",
    )?;
    for (block, upstream) in &after.upstream {
        if before.upstream.get(block) != Some(upstream) {
            statement.execute(params![
                namespace.name(),
                to_column(block.index()),
                to_column(upstream.epoch.get()),
                to_column(upstream.ticks.start),
                to_column(upstream.ticks.end),
                standing(upstream.standing),
                upstream.used_by,
            ])?;
        }
    }
    if (before.first_epoch, &before.upstream_state) != (after.first_epoch, &after.upstream_state) {
        let upstream_state = &after.upstream_state;
        let failing = upstream_state.failing.as_ref();
        connection.execute(
            "UPDATE ringflake_tier \
             SET errand_began_unix_ms = ?2, failing_since_unix_ms = ?3, \
                 failed_last_unix_ms = ?4, failures = ?5, failure = ?6, first_epoch = ?7 \
             WHERE namespace = ?1",
            params![
                namespace.name(),
                upstream_state.began_unix_ms.map(to_column),
                failing.map(|failing| to_column(failing.since_unix_ms)),
                failing.map(|failing| to_column(failing.last_unix_ms)),
                failing.map(|failing| failing.failures),
                failing.map(|failing| &failing.message),
                to_column(after.first_epoch.get()),
            ],
        )?;
    }
    Ok(())
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Held => "held",
        Standing::Draining => "draining",
        Standing::Closed => "closed",
    }
}

fn parse_standing(text: &str) -> Result<Standing, StoreError> {
    match text {
        "held" => Ok(Standing::Held),
        "draining" => Ok(Standing::Draining),
        "closed" => Ok(Standing::Closed),
        other => Err(corrupt(format!("standing is {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::time::Duration;

    use std::path::Path;

    use super::*;
    use crate::clock::ManualClock;
    use crate::layout::Layout;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::grant::Grant;
    use crate::lease::limits::StoreLimits;
    use crate::lease::options::OpenOptions;
    use crate::lease::record::StoreRecord;
    use crate::lease::request::{History, Init};
    use crate::lease::stores::sqlite::clock_step::Uptime;

    const START_MS: u64 = 1_760_000_000_000;

    thread_local! {
        /// How long the machine of this thread has been up, in milliseconds.
        static UPTIME: Cell<u64> = const { Cell::new(0) };
    }

    fn file(path: &Path, clock: &ManualClock) -> SqliteStore {
        let uptime = || {
            Some(Uptime {
                boot: "one".to_owned(),
                ms: UPTIME.get(),
            })
        };
        SqliteStore::of_kind(Kind::Tier, path, &OpenOptions::new())
            .unwrap()
            .on_machine(Arc::new(clock.clone()), uptime)
    }

    fn step(name: &'static str, needs_clock: bool) -> Operation {
        Operation {
            name,
            needs_clock,
            needs_signs: false,
        }
    }

    /// The step that finds a copy is refused for its clock. What the file had as another
    /// one is given up all the same.
    #[test]
    fn s9_a_copy_gives_up_its_grants_even_if_its_clock_is_doubted() {
        let space = Namespace::new("test", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let clock = ManualClock::new(START_MS);
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("a.db"), directory.path().join("b.db"));
        let mut original = file(&path, &clock);
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(120));
        let init = Init::new(History::New, START_MS).with_limits(limits);
        let record = StoreRecord::create(&space, &init, &Incarnation::new(""), START_MS).unwrap();
        let now = record.tick_at(START_MS).unwrap();
        let log = GrantLog {
            record,
            first_epoch: Epoch::new(now),
            reach: 3600,
            upstream: BTreeMap::new(),
            blocks: BTreeMap::new(),
            upstream_state: UpstreamState::default(),
            quarantined: BTreeMap::new(),
        };
        original.create_log(&log).unwrap();
        let grant = Grant::new(Block::new(3), Epoch::FIRST, now..now + 3600);
        let adopted = original.change_log(step("adopt", false), &space, |log, _| {
            log.adopt(std::slice::from_ref(&grant))
        });
        adopted.unwrap();
        std::fs::copy(&path, &copy).unwrap();

        let standing = |file: &mut SqliteStore, needs_clock: bool| {
            file.change_log(step("look", needs_clock), &space, |log, _| {
                let standings = log.upstream.values().map(|it| it.standing);
                Ok(standings.collect::<Vec<_>>())
            })
        };
        let mut copied = file(&copy, &clock);
        clock.advance(Duration::from_secs(3600));
        UPTIME.set(1000);
        let doubted = standing(&mut copied, true).unwrap_err();
        assert!(
            matches!(doubted, StoreError::ClockStepped { .. }),
            "{doubted:?}"
        );
        assert_eq!(standing(&mut copied, false).unwrap(), [Standing::Closed]);
        assert_eq!(standing(&mut original, false).unwrap(), [Standing::Held]);
    }
}
