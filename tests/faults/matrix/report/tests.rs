//! That the report shows what failed, and that a part of it replaces no whole.

use std::collections::BTreeSet;
use std::fs;

use libtest_mimic::{Failed, Trial};

use super::{Book, Figures, Row, Run, Verdict};
use crate::matrix::case::{Case, try_out};
use crate::matrix::scenarios::{self, Scenario};
use crate::matrix::target::Kind;
use crate::matrix::{Outcome, Scale};

/// This program has no harness that would find them.
pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! trials {
        ($($test:ident,)*) => {
            vec![$(Trial::test(concat!("report::", stringify!($test)), $test),)*]
        };
    }
    trials![
        a_failure_is_shown_with_its_figures,
        a_panic_is_shown_with_its_figures,
        figures_fail_what_finds_nothing_wrong,
        a_part_does_not_overwrite_the_whole,
        the_head_says_when_what_and_where,
        a_plain_run_has_every_fault_and_every_store,
    ]
}

/// Each that the whole matrix has, but two clocks, and on a store that has it.
fn a_plain_run_has_every_fault_and_every_store() -> Result<(), Failed> {
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
    Ok(())
}

fn figures(twice: u64) -> Figures {
    Figures {
        ids: 4321,
        twice,
        outside: Some(0),
        overlaps: Some(Vec::new()),
        faults: 7,
        starts: 8,
        refusals: 3,
        ..Figures::default()
    }
}

fn run() -> Run {
    Run {
        command: "this".to_owned(),
        date: "today".to_owned(),
        commit: "abc".to_owned(),
        machine: "a machine".to_owned(),
    }
}

/// A scenario that leaves these figures and ends like this.
fn tried(figures: Figures, end: impl FnOnce() -> Outcome<()>) -> Row {
    let mut target = Kind::Sqlite.prepare().unwrap();
    let case = Case::new(&mut *target, "a fault", Scale::Long);
    try_out(case, "", |case| {
        case.record().add(figures);
        end()
    })
}

/// The page of a matrix of this one scenario.
fn page(row: &Row) -> String {
    super::page::text(std::slice::from_ref(row), &[], &run(), true)
}

#[track_caller]
fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

fn a_failure_is_shown_with_its_figures() -> Result<(), Failed> {
    let row = tried(figures(0), || Err("it never came to this".to_owned()));
    assert_eq!(row.failure().unwrap(), "it never came to this");
    holds(
        &page(&row),
        &[
            "1 scenarios: 0 passed, 1 failed, 0 were not run. 8 processes, 4321 IDs: 0 issued twice",
            "* **SQLite, a fault** failed: it never came to this",
            "| SQLite | a fault | **failed** | 4321 | 0 | 0 | 0 | 7 | 3 |",
        ],
    );
    Ok(())
}

fn a_panic_is_shown_with_its_figures() -> Result<(), Failed> {
    let row = tried(figures(0), || panic!("of {}", 13));
    assert_eq!(row.failure().unwrap(), "panicked: of 13");
    holds(
        &page(&row),
        &[
            "0 passed, 1 failed",
            "* **SQLite, a fault** panicked: of 13",
            "| SQLite | a fault | **panicked** | 4321 |",
        ],
    );
    Ok(())
}

fn figures_fail_what_finds_nothing_wrong() -> Result<(), Failed> {
    assert_eq!(tried(figures(0), || Ok(())).verdict, Verdict::Passed);
    let row = tried(figures(99), || Ok(()));
    holds(
        &row.failure().unwrap(),
        &["of 4321 IDs 99 were issued twice"],
    );
    holds(
        &page(&row),
        &["4321 IDs: 99 issued twice", "**failed** | 4321 | 99 |"],
    );
    // Where nothing is promised they are told, and fail nothing.
    let excused = Figures {
        excused: 5,
        ..figures(0)
    };
    let row = tried(excused, || Ok(()));
    assert_eq!(row.verdict, Verdict::Passed);
    holds(
        &page(&row),
        &[
            "0 issued twice (and 5 where nothing is promised)",
            "| 0 +5 |",
        ],
    );
    // Who did nothing has shown nothing.
    let row = tried(Figures::default(), || Ok(()));
    assert!(row.failure().is_some());
    Ok(())
}

fn a_part_does_not_overwrite_the_whole() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (kept, scratch) = (directory.path().join("kept"), directory.path().join("part"));
    let planned = || {
        let row = |fault| {
            let scenario = Scenario::new(fault, |_| Ok(()));
            Row::not_run(Kind::Sqlite, &scenario, "its turn never came")
        };
        vec![row("a fault"), row("another")]
    };
    let write = |scale, rows: &[Row]| {
        let book = Book::new(scale, planned());
        rows.iter().for_each(|row| book.enter(row.clone()));
        book.write_to(&run(), &kept, &scratch)
    };
    let one = tried(figures(0), || Ok(()));
    let failed = tried(figures(1), || Ok(()));
    let other = Row {
        fault: "another",
        ..one.clone()
    };
    assert_eq!(write(Scale::Long, &[])?, None);
    // The whole, whether all is well or not.
    assert_eq!(
        write(Scale::Long, &[failed, other.clone()])?,
        Some(kept.clone()),
        "a failure belongs to the whole"
    );
    holds(&fs::read_to_string(&kept)?, &["1 passed, 1 failed"]);
    assert_eq!(
        write(Scale::Long, &[one.clone(), other.clone()])?,
        Some(kept.clone())
    );
    let whole = fs::read_to_string(&kept)?;
    holds(&whole, &["2 passed, 0 failed, 0 were not run"]);
    // A filter, and the matrix at less length.
    for (scale, rows) in [
        (Scale::Long, &[one.clone()][..]),
        (Scale::Whole, &[one, other][..]),
    ] {
        assert_eq!(write(scale, rows)?, Some(scratch.clone()));
        holds(&fs::read_to_string(&scratch)?, &["no report on the whole"]);
        assert_eq!(fs::read_to_string(&kept)?, whole);
    }
    let part = write(Scale::Long, &[tried(figures(0), || Ok(()))])?;
    holds(
        &fs::read_to_string(part.unwrap())?,
        &[
            "1 were not run",
            "| SQLite | another | not run: its turn never came | – |",
        ],
    );
    Ok(())
}

fn the_head_says_when_what_and_where() -> Result<(), Failed> {
    let row = tried(figures(0), || Ok(()));
    holds(
        &page(&row),
        &[
            "Written by `this`",
            "**date**: today",
            "**commit**: abc",
            "**machine**: a machine",
        ],
    );
    let now = Run::of_now();
    holds(&now.date, &[" UTC"]);
    assert!(!now.commit.is_empty());
    holds(&now.machine, &["processors", "Linux ", "SQLite 3."]);
    Ok(())
}
