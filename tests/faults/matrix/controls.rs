//! Negative controls: what is wrong, each in one way, is found out by the same
//! scenarios that find nothing wrong with the stores.

use std::collections::BTreeSet;
use std::thread;

use libtest_mimic::Trial;
use ringflake_kit::assert_says;

use super::case::{Case, try_out};
use super::report::Figures;
use super::scenarios::{self, Scenario, deaths};
use super::target::{Kind, Target};
use super::wire::Flaw;
use super::worker_pool::{NARROW, Terms, WIDE, WORKERS};
use super::{Outcome, Scale, space};

/// A flaw, its store, and the figure that must reveal it.
type Control = (Flaw, Kind, fn(&Figures) -> bool);

const CONTROLS: [Control; 4] = [
    (Flaw::StartsAnew, Kind::Sqlite, |it| it.twice > 0),
    (Flaw::PassesTheEnd, Kind::Sqlite, |it| it.outside > 0),
    (Flaw::IgnoresTheMark, Kind::Sqlite, overlaps),
    (Flaw::TtlOnly, Kind::Redis, overlaps),
];

fn overlaps(it: &Figures) -> bool {
    it.twice > 0 && !it.overlaps.is_empty()
}

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    let flaws = CONTROLS.into_iter().map(move |(flaw, kind, is_caught)| {
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
                    return Ok(());
                }
                missed.push(figures);
            }
            Err(format!("nobody has noticed: {missed:?}").into())
        })
    });
    let others: [(&str, fn()); 2] = [
        ("controls: failures are seen", failures_are_seen),
        (
            "controls: a plain run has all",
            a_plain_run_has_every_fault_and_every_store,
        ),
    ];
    flaws.chain(others.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }))
}

/// Scenarios that leave these figures and end like this, and the verdict on each.
fn failures_are_seen() {
    let good = Figures {
        ids: 4321,
        ..Figures::default()
    };
    let (mut twice, mut excused) = (good.clone(), good.clone());
    twice.twice = 99;
    excused.excused = 5;
    // A run without IDs proves nothing.
    let nothing = Figures::default();
    let well = || Ok(());
    type Case<'a> = (&'a Figures, fn() -> Outcome<()>, &'a str);
    let cases: [Case<'_>; 6] = [
        (&good, well, ""),
        (&excused, well, ""),
        (&good, || Err("never so".to_owned()), "never so"),
        (&good, || panic!("of {}", 13), "panicked: of 13"),
        (&twice, well, "of 4321 IDs 99 were issued twice"),
        (&nothing, well, "of 0 IDs"),
    ];
    for (figures, end, expected) in cases {
        let figures = figures.clone();
        let scenario = Scenario::new("a fault", move |case| {
            case.findings().figures = Some(figures.clone());
            end()
        });
        let mut target = Kind::Sqlite.prepare().unwrap();
        let row = try_out(Kind::Sqlite, &mut *target, &scenario, Scale::Long);
        match row.verdict {
            Ok(()) => assert_eq!(expected, ""),
            Err(why) => assert_says(&why, &[expected]),
        }
    }
}

/// Each that the whole matrix has, but two clocks, and on a store that has it.
fn a_plain_run_has_every_fault_and_every_store() {
    let names = |kind: Kind, scale: Scale| -> BTreeSet<&str> {
        let all = scenarios::of(kind).into_iter();
        let of_it = all.filter(|scenario| scenario.is_of(kind, scale));
        of_it.map(|scenario| scenario.name).collect()
    };
    let of = |scale| {
        Kind::ALL
            .into_iter()
            .flat_map(move |kind| names(kind, scale))
    };
    let (quick, whole): (BTreeSet<_>, BTreeSet<_>) =
        (of(Scale::Quick).collect(), of(Scale::Whole).collect());
    let missing: Vec<_> = whole.difference(&quick).collect();
    assert_eq!(missing, [&"server an hour on", &"workers an hour back"]);
    assert_eq!(of(Scale::Quick).count(), scenarios::QUICK.len());
    for kind in Kind::ALL {
        let (quick, whole) = (names(kind, Scale::Quick), names(kind, Scale::Whole));
        assert!(!quick.is_empty() && quick.is_subset(&whole), "{quick:?}");
    }
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
