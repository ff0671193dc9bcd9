//! Negative controls: what is wrong, each in one way, is found out by the same
//! scenarios that find nothing wrong with the stores.

use std::thread;

use libtest_mimic::Trial;

use super::case::Case;
use super::report::{Book, Figures};
use super::scenarios::deaths;
use super::target::{Kind, Target};
use super::wire::Flaw;
use super::worker_pool::{NARROW, Terms, WIDE, WORKERS};
use super::{Outcome, Scale, space};

/// A flaw, its store, and the figure that must reveal it.
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
            let Some(mut target) = kind.prepare() else {
                return Ok(());
            };
            let mut missed = Vec::new();
            // Some show only if one comes soon after the other.
            for attempt in 0..5 {
                let name = format!("{flaw:?}-{attempt}").to_lowercase();
                let figures = wrong(flaw, &mut *target, &name)?;
                if is_caught(&figures) && figures.verdict().is_err() {
                    book.caught(flaw, figures);
                    return Ok(());
                }
                missed.push(figures);
            }
            Err(format!("nobody has noticed: {missed:?}").into())
        })
    })
}

/// Workers with a flaw, killed and ended.
fn wrong(flaw: Flaw, target: &mut dyn Target, name: &str) -> Outcome<Figures> {
    // Released blocks are given again only where there are few.
    let is_of_few = flaw == Flaw::IgnoresTheMark;
    let terms = Terms {
        flaw: Some(flaw),
        ..Terms::of(if is_of_few { NARROW } else { WIDE })
    };
    let case = Case::new(target, name, Scale::Quick);
    let mut pool = case.pool(terms)?;
    pool.kill_and_spawn(0..WORKERS);
    pool.all_serve("after the deaths")?;
    deaths::end_and_start(&mut pool, 2)?;
    if flaw == Flaw::PassesTheEnd {
        // However few they issue, the clock takes them there.
        thread::sleep(space::LEASE_DURATION + space::TICK * 5);
        pool.all_serve("past the end")?;
    }
    pool.finish()?;
    let figures = case.findings().figures.take();
    figures.ok_or_else(|| "it has no figures".to_owned())
}
