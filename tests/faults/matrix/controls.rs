//! Negative controls: what is wrong, each in one way, is found out by the same
//! cells that find nothing wrong with the stores.

use libtest_mimic::Failed;

use super::Outcome;
use super::cells::deaths;
use super::crew::{Crew, NARROW, Terms, WIDE, WORKERS};
use super::ground::{Ground, Kind};
use super::report::Row;
use super::wire::Flaw;

pub(crate) fn run() -> Result<(), Failed> {
    let sqlite = Kind::Sqlite.prepare().expect("it needs no server");
    caught(Flaw::StartsAnew, &*sqlite, |row| row.twice > 0)?;
    caught(Flaw::PassesTheEnd, &*sqlite, |row| row.outside > 0)?;
    caught(Flaw::IgnoresTheMark, &*sqlite, |row| {
        row.twice > 0 && !row.overlaps.is_empty()
    })?;
    if let Some(redis) = Kind::Redis.prepare() {
        caught(Flaw::TtlOnly, &*redis, |row| {
            row.twice > 0 && !row.overlaps.is_empty()
        })?;
    }
    Ok(())
}

fn caught(flaw: Flaw, ground: &dyn Ground, is_caught: impl Fn(&Row) -> bool) -> Outcome<()> {
    eprintln!("faults: the flaw {flaw:?}");
    let mut missed = Vec::new();
    // Some show only if one comes soon after the other.
    for attempt in 0..5 {
        let name = format!("{flaw:?}-{attempt}").to_lowercase();
        let row = wrong(flaw, ground, &name)?;
        if is_caught(&row) && row.verdict().is_err() {
            return Ok(());
        }
        missed.push(row);
    }
    Err(format!("nobody has noticed: {missed:?}"))
}

/// Workers with a flaw, killed and ended.
fn wrong(flaw: Flaw, ground: &dyn Ground, name: &str) -> Outcome<Row> {
    let terms = Terms {
        flaw: Some(flaw),
        // Released blocks are given again only where there are few.
        node_bits: if flaw == Flaw::IgnoresTheMark {
            NARROW
        } else {
            WIDE
        },
        ..Terms::default()
    };
    let mut crew = Crew::start(&ground.direct_url(), &ground.url(), name, terms)?;
    for number in 0..WORKERS {
        crew.kill(number);
        crew.spawn(number, None);
    }
    crew.all_serve("after the deaths")?;
    deaths::end_and_start(&mut crew, 2)?;
    crew.finish(ground.kind().name(), name)
}
