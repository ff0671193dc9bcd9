//! Negative controls: what is wrong, each in one way, is found out by the same
//! scenarios that find nothing wrong with the stores.

use libtest_mimic::Failed;

use super::Outcome;
use super::case::Record;
use super::report::{Book, Control, Figures};
use super::scenarios::deaths;
use super::target::{Kind, Target};
use super::wire::Flaw;
use super::worker_pool::{NARROW, Terms, WIDE, WORKERS, WorkerPool};

pub(crate) fn run(book: &Book) -> Result<(), Failed> {
    let sqlite = Kind::Sqlite.prepare().expect("it needs no server");
    let caught = |flaw, target: &dyn Target, is_caught: fn(&Figures) -> bool| {
        let figures = caught(flaw, target, is_caught)?;
        let flaw = format!("{flaw:?}");
        book.caught(Control { flaw, figures });
        Outcome::Ok(())
    };
    caught(Flaw::StartsAnew, &*sqlite, |it| it.twice > 0)?;
    caught(Flaw::PassesTheEnd, &*sqlite, |it| it.outside > Some(0))?;
    caught(Flaw::IgnoresTheMark, &*sqlite, |it| {
        it.twice > 0 && !it.overlapping().is_empty()
    })?;
    if let Some(redis) = Kind::Redis.prepare() {
        caught(Flaw::TtlOnly, &*redis, |it| {
            it.twice > 0 && !it.overlapping().is_empty()
        })?;
    }
    Ok(())
}

fn caught(
    flaw: Flaw,
    target: &dyn Target,
    is_caught: impl Fn(&Figures) -> bool,
) -> Outcome<Figures> {
    eprintln!("faults: the flaw {flaw:?}");
    let mut missed = Vec::new();
    // Some show only if one comes soon after the other.
    for attempt in 0..5 {
        let name = format!("{flaw:?}-{attempt}").to_lowercase();
        let figures = wrong(flaw, target, &name)?;
        if is_caught(&figures) && figures.verdict().is_err() {
            return Ok(figures);
        }
        missed.push(figures);
    }
    Err(format!("nobody has noticed: {missed:?}"))
}

/// Workers with a flaw, killed and ended.
fn wrong(flaw: Flaw, target: &dyn Target, name: &str) -> Outcome<Figures> {
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
    let record = Record::default();
    let mut pool = WorkerPool::start(&target.direct_url(), &target.url(), name, terms, &record)?;
    for number in 0..WORKERS {
        pool.kill(number);
        pool.spawn(number, None);
    }
    pool.all_serve("after the deaths")?;
    deaths::end_and_start(&mut pool, 2)?;
    pool.finish()?;
    record
        .figures()
        .ok_or_else(|| "it has no figures".to_owned())
}
