//! Negative controls: what is wrong, each in one way, is found out by the same
//! scenarios that find nothing wrong with the stores.

use libtest_mimic::Trial;

use super::Outcome;
use super::case::Record;
use super::report::{Book, Figures};
use super::scenarios::deaths;
use super::target::{Kind, Target};
use super::wire::Flaw;
use super::worker_pool::{NARROW, Terms, WIDE, WORKERS, WorkerPool};

/// What is wrong, on which store, and what finds it out.
type Control = (Flaw, Kind, fn(&Figures) -> bool);

const CONTROLS: [Control; 4] = [
    (Flaw::StartsAnew, Kind::Sqlite, |it| it.twice > 0),
    (Flaw::PassesTheEnd, Kind::Sqlite, |it| it.outside > Some(0)),
    (Flaw::IgnoresTheMark, Kind::Sqlite, overlaps),
    (Flaw::TtlOnly, Kind::Redis, overlaps),
];

fn overlaps(it: &Figures) -> bool {
    it.twice > 0 && !it.overlapping().is_empty()
}

pub(crate) fn trials(book: &'static Book) -> impl Iterator<Item = Trial> {
    CONTROLS.into_iter().map(move |(flaw, kind, is_caught)| {
        Trial::test(format!("controls: {flaw:?}"), move || {
            let Some(target) = kind.prepare() else {
                return Ok(());
            };
            let figures = caught(flaw, &*target, is_caught)?;
            book.caught(flaw, figures);
            Ok(())
        })
    })
}

fn caught(flaw: Flaw, target: &dyn Target, is_caught: fn(&Figures) -> bool) -> Outcome<Figures> {
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
    // Released blocks are given again only where there are few.
    let is_of_few = flaw == Flaw::IgnoresTheMark;
    let terms = Terms {
        flaw: Some(flaw),
        ..Terms::of(if is_of_few { NARROW } else { WIDE })
    };
    let record = Record::default();
    let pool = WorkerPool::new(&target.direct_url(), &target.url(), name, terms, &record)?;
    let mut pool = pool.serving()?;
    pool.kill_and_spawn(0..WORKERS);
    pool.all_serve("after the deaths")?;
    deaths::end_and_start(&mut pool, 2)?;
    pool.finish()?;
    let figures = record.figures();
    figures.ok_or_else(|| "it has no figures".to_owned())
}
