//! That the report shows what failed, and that a part of it replaces no whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use libtest_mimic::Trial;
use ringflake_kit::assert_says;

use super::{Book, Figures, Row, Verdict, head, page};
use crate::matrix::case::try_out;
use crate::matrix::scenarios::{self, Scenario};
use crate::matrix::target::Kind;
use crate::matrix::{Outcome, Scale};

/// This program has no harness that would find them.
pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! trials {
        ($($test:ident,)*) => {
            vec![$(Trial::test(concat!("report::", stringify!($test)), || {
                $test();
                Ok(())
            }),)*]
        };
    }
    trials![
        a_verdict_is_shown_with_its_figures,
        a_part_does_not_overwrite_the_whole,
        the_head_says_when_what_and_where,
        a_plain_run_has_every_fault_and_every_store,
    ]
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

/// The page of a matrix of one scenario, which leaves these figures and ends like this.
fn a_verdict_is_shown_with_its_figures() {
    let figures = Figures {
        ids: 4321,
        outside: Some(0),
        overlaps: Some(Vec::new()),
        faults: 7,
        starts: 8,
        refusals: 3,
        ..Figures::default()
    };
    let (mut twice, mut excused) = (figures.clone(), figures.clone());
    twice.twice = 99;
    excused.excused = 5;
    let nothing = Figures::default();
    let well = || Ok(());
    type Case<'a> = (&'a Figures, fn() -> Outcome<()>, &'a [&'a str]);
    let cases: [Case<'_>; 6] = [
        (
            &figures,
            || Err("it never came to this".to_owned()),
            &[
                "1 scenarios: 0 passed, 1 failed, 0 were not run.",
                "\n* **SQLite, a fault** failed: it never came to this\n",
                "| SQLite | a fault | **failed** | 4321 | 0 | 0 | 0 | 7 | 3 |",
            ],
        ),
        (
            &figures,
            || panic!("of {}", 13),
            &["failed: panicked: of 13\n", "**failed** | 4321 |"],
        ),
        (
            &twice,
            well,
            &[
                "failed: of 4321 IDs 99 were issued twice",
                "**failed** | 4321 | 99 |",
            ],
        ),
        // A run without IDs proves nothing.
        (&nothing, well, &["failed: of 0 IDs", "**failed** | 0 |"]),
        (
            &figures,
            well,
            &[
                "1 scenarios: 1 passed, 0 failed, 0 were not run. \
                 8 processes, 4321 IDs: 0 issued twice, ",
                "| SQLite | a fault | passed | 4321 |",
            ],
        ),
        // Where nothing is promised they are reported, and fail nothing.
        (
            &excused,
            well,
            &[
                "0 issued twice (and 5 where nothing is promised)",
                "passed | 4321 | 0 +5 |",
            ],
        ),
    ];
    for (figures, end, shown) in cases {
        let figures = figures.clone();
        let scenario = Scenario::new("a fault", move |case| {
            case.findings().figures = Some(figures.clone());
            end()
        });
        let mut target = Kind::Sqlite.prepare().unwrap();
        let row = try_out(Kind::Sqlite, &mut *target, &scenario, Scale::Long);
        assert_says(&page::text(&[row], &[], "", true), shown);
    }
    let row = a_row("a fault", &Verdict::NotRun("why"));
    assert_says(
        &page::text(&[row], &[], "", true),
        &["1 were not run", "| SQLite | a fault | not run: why | – |"],
    );
}

fn a_row(name: &'static str, verdict: &Verdict) -> Row {
    let scenario = Scenario::new(name, |_| Ok(()));
    Row::new(Kind::Sqlite, &scenario, verdict.clone())
}

fn a_part_does_not_overwrite_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let [kept, scratch] = ["kept", "scratch"].map(|name| directory.path().join(name));
    let no_turn = Verdict::NotRun("its turn never came");
    let failed = Verdict::Failed("why".to_owned());
    let passed = Verdict::Passed;
    for (scale, one, other, place) in [
        (Scale::Long, &no_turn, &no_turn, None),
        // The whole, whether all is well or not.
        (Scale::Long, &failed, &passed, Some(&kept)),
        (Scale::Long, &passed, &passed, Some(&kept)),
        // A filter, and the matrix at less length.
        (Scale::Long, &passed, &no_turn, Some(&scratch)),
        (Scale::Whole, &passed, &passed, Some(&scratch)),
    ] {
        let case = format!("{scale:?}, {one:?} and {other:?}");
        let planned = ["one", "other"].map(|name| a_row(name, &no_turn));
        let book = Book::new(scale, planned.into());
        book.enter(a_row("one", one));
        book.enter(a_row("other", other));
        let kept_before = fs::read(&kept).ok();
        let written = book.write_to(&case, &kept, &scratch).unwrap();
        assert_eq!(written, place.map(PathBuf::as_path), "{case}");
        if let Some(path) = written {
            let text = fs::read_to_string(path).unwrap();
            assert_says(&text, &[&case]);
            let is_part = text.contains("no report on the whole");
            assert_eq!(is_part, path == scratch, "{case}");
        }
        if written != Some(&kept) {
            assert_eq!(fs::read(&kept).ok(), kept_before, "{case}");
        }
    }
}

fn the_head_says_when_what_and_where() {
    let head = head();
    assert_says(
        &head,
        &["Written by `", "cargo test", " UTC\n", "SQLite 3."],
    );
    assert_says(&head, &["processors", "Linux ", "**commit**: "]);
}
