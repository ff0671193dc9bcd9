//! The page, from made-up figures.

use std::fmt::Write as _;

use plotters::style::RGBColor;
use proptest::prelude::*;
use ringflake::plan::{Load, Trace};

use super::palette::tests::knows_all_colours_of;
use super::*;
use crate::drive::measurement::Sample;
use crate::tune::outcome::tests::outcome;
use crate::tune::search::Findings;

fn page(outcome: &Outcome) -> String {
    html(outcome, "ringflake tune --rate 1M", &[]).unwrap()
}

/// Loads that are small, large, in bursts, even, and out of the ordinary.
pub(super) fn any_load() -> impl Strategy<Value = Load> {
    let rates = || 0..11_u32;
    let rate = |power: u32| 10_u64.pow(power);
    let counts = prop_oneof![Just(0), 1..10_u64, 1..1_000_000_000_000_u64];
    let traces = prop::collection::vec(counts, 1..30);
    prop_oneof![
        rates().prop_map(move |power| Load::steady(format!("{}/s", rate(power)).parse().unwrap())),
        (rates(), rates(), 1..500_u64, 1..100_000_u64).prop_map(
            move |(low, high, length, rest)| {
                let burst = format!("{}/s:{length}ms/{}ms", rate(high), length + rest);
                let steady = Load::steady(format!("{}/s", rate(low)).parse().unwrap());
                steady.with_burst(burst.parse().unwrap())
            }
        ),
        (traces, 1..1000_u32).prop_map(|(mut counts, step)| {
            counts[0] += 1;
            let mut text = String::new();
            for (index, count) in counts.iter().enumerate() {
                writeln!(text, "{},{count}", index as u32 * step).unwrap();
            }
            text.parse::<Trace>().unwrap().into()
        }),
    ]
}

/// How lines with this index are drawn.
fn drawn(line: usize) -> String {
    let RGBColor(red, green, blue) = palette::LINES[line].drawn();
    format!("<polyline fill=\"none\" opacity=\"1\" stroke=\"#{red:02X}{green:02X}{blue:02X}\"")
}

/// How often `mark` is in the page of the made-up figures, and in that of others.
fn before_and_after(mark: &str, change: impl FnOnce(&mut Outcome)) -> (usize, usize) {
    let count = |outcome| page(outcome).matches(mark).count();
    let mut changed = outcome();
    change(&mut changed);
    (count(&outcome()), count(&changed))
}

#[test]
fn nothing_in_it_comes_from_elsewhere() {
    let html = page(&outcome());
    for wrong in [
        "http:", "https:", "<script", "<img", "@import", "url(", "src=", "<iframe",
    ] {
        assert!(!html.contains(wrong), "{wrong}");
    }
}

#[test]
fn every_picture_has_a_title_and_a_text_and_only_known_colours() {
    let html = page(&outcome());
    let pictures: Vec<_> = html.split("<svg ").skip(1).collect();
    assert_eq!(pictures.len(), 10, "five pictures for two widths");
    for picture in pictures {
        let picture = picture.split("</svg>").next().unwrap();
        assert!(picture.contains("role=\"img\""));
        let (_, labels) = picture.split_once("aria-labelledby=\"").unwrap();
        let labels = labels.split('"').next().unwrap();
        for id in labels.split(' ') {
            assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
            assert!(picture.contains(&format!(" id=\"{id}\"")), "{id}");
        }
        knows_all_colours_of(picture);
    }
}

#[test]
fn every_picture_has_its_numbers_beside_it() {
    let html = page(&outcome());
    assert_eq!(html.matches("<figure>").count(), 5);
    assert_eq!(html.matches("<table>").count(), 5);
    for number in [
        "<td>1,000,000</td><td>123,456</td><td>0</td>",
        "did not run: one that is no larger was chosen",
        "<th scope=\"row\">32,768 slots, threshold 50 %</th>",
        "misses the goal with 301 us",
        // The table has all of them.
        "4 of 7 configurations are drawn",
    ] {
        assert!(html.contains(number), "{number}");
    }
}

#[test]
fn the_recommended_one_is_marked_in_picture_and_table() {
    let without = |outcome: &mut Outcome| outcome.findings.recommended = None;
    for (mark, counts) in [
        // In the table, and in the hints of two pictures.
        ("recommended, keeps the goal with 20.1 us", (3, 0)),
        ("None could be recommended", (0, 3)),
        ("<svg ", (10, 10)),
    ] {
        assert_eq!(before_and_after(mark, without), counts, "{mark}");
    }
    let (with, without) = before_and_after("<rect ", without);
    assert!(with > without);
}

#[test]
fn each_fill_and_the_empties_are_marked() {
    let change = |change: fn(&mut Sample)| {
        move |outcome: &mut Outcome| {
            let recommended = outcome.findings.recommended.unwrap();
            let trial = outcome.findings.trials.get_mut(&recommended).unwrap();
            trial.total.samples.iter_mut().skip(1010).for_each(change);
        }
    };
    // Once for each width.
    let (before, after) = before_and_after("<polygon ", change(|sample| sample.fills += 1));
    assert_eq!(after, before + 2);
    // A cross of two strokes, one for each width.
    let (before, after) = before_and_after("<line ", change(|sample| sample.empties += 9));
    assert_eq!(after, before + 4);
}

#[test]
fn each_picture_tells_a_pointer_what_lies_there() {
    let html = page(&outcome());
    for picture in html.split("<svg ").skip(1) {
        let (picture, _) = picture.split_once("</svg>").unwrap();
        let (_, hints) = picture.split_once("<g class=\"hints\"").unwrap();
        let titles = hints.matches("<title>").count();
        assert!(
            titles >= 6 && titles == hints.matches("<rect ").count(),
            "{titles}"
        );
    }
    for hint in [
        "s: 400 k IDs due in each 20 ms",
        " % of it; threshold ",
        ": no ring</title>",
        "s ahead of the clock by arithmetic",
        "32,768 slots, threshold 25 %: 123,456 of 1,000,000 takes found it empty in",
    ] {
        assert!(html.contains(hint), "{hint}");
    }
}

#[test]
fn a_line_that_is_zero_throughout_is_left_out_and_named() {
    let change = |change: fn(&mut Sample)| {
        move |outcome: &mut Outcome| {
            for trial in outcome.findings.trials.values_mut() {
                trial.total.samples.iter_mut().for_each(change);
            }
        }
    };
    for (text, line, change) in [
        (
            "No whole tick was borrowed",
            1,
            change(|it| it.borrowed = 0.0),
        ),
        ("its level has no line", 0, change(|it| it.level = 0)),
    ] {
        assert_eq!(before_and_after(text, change), (0, 3));
        let (before, after) = before_and_after(&drawn(line), change);
        assert!(after < before, "{text}: {after} of {before}");
    }
    let nothing = |outcome: &mut Outcome| {
        change(|sample| (sample.borrowed, sample.level) = (0.0, 0))(outcome);
        outcome.part = Load::steady("1k".parse().unwrap());
    };
    assert_eq!(before_and_after("Nothing was borrowed", nothing), (0, 1));
    assert_eq!(before_and_after("<svg ", nothing), (10, 8));
    let without_takes = |outcome: &mut Outcome| {
        let trials = &mut outcome.findings.trials;
        let first = trials.values_mut().next().unwrap();
        (first.total.taken, first.total.refused) = (0, 9);
    };
    assert_eq!(
        before_and_after("1 of them gave no IDs", without_takes),
        (0, 3)
    );
}

#[test]
fn a_ring_that_did_not_run_for_long_is_not_said_to_be_empty_or_not_recommended() {
    let without_samples = |outcome: &mut Outcome| {
        for trial in outcome.findings.trials.values_mut() {
            trial.total.samples.clear();
        }
    };
    let too_short = before_and_after("its run was too short", without_samples);
    assert_eq!(too_short, (0, 1));
    let empty = before_and_after("The ring was empty throughout", without_samples);
    assert_eq!(empty, (0, 0));
    let not_run = |outcome: &mut Outcome| {
        let recommended = outcome.findings.recommended.as_mut().unwrap();
        recommended.capacity = 1 << 22;
    };
    let counts = before_and_after("The recommended one did not run: 4,194,304 slots", not_run);
    assert_eq!(counts, (0, 3));
    assert_eq!(
        before_and_after("None could be recommended", not_run),
        (0, 0)
    );
}

#[test]
fn what_comes_from_outside_is_shown_and_not_followed() {
    let evil = "<script>x</script>\"'&";
    let figure = Figure {
        title: "title",
        text: evil.to_owned(),
        picture: Some(canvas::picture(["id", evil, evil], |_| 9, |_, _| Ok(vec![])).unwrap()),
        head: vec!["one", "two"],
        rows: vec![vec![evil.to_owned(); 2]],
    };
    let machine = [("processor", evil.to_owned())];
    let page = html(&outcome(), evil, &machine).unwrap() + &figure.to_string();
    assert!(!page.contains("<script") && !page.contains(evil));
    // The command, the processor, the text and two cells; title and text of two pictures.
    assert_eq!(page.matches("&lt;script&gt;").count(), 2 + 3 + 4);
}

#[test]
fn a_run_that_was_cut_short_has_a_page_too() {
    let mut outcome = outcome();
    outcome.findings = Findings::default();
    let html = page(&outcome);
    assert!(html.contains("No latency was measured."));
    assert!(html.trim_end().ends_with("</html>"));
}
