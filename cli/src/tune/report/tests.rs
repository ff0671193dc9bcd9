//! The page, from made-up figures.

use super::palette::tests::knows_all_colours_of;
use super::*;
use crate::drive::measurement::Sample;
use crate::tune::outcome::tests::outcome;
use crate::tune::search::Findings;

fn page(outcome: &Outcome) -> String {
    html(outcome, "ringflake tune --rate 1M", &[]).unwrap()
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
    assert_eq!(pictures.len(), 8, "four pictures for two widths");
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
    assert_eq!(html.matches("<figure>").count(), 4);
    assert_eq!(html.matches("<table>").count(), 4);
    for number in [
        "<td>1,000,000</td><td>123,456</td><td>0</td>",
        "did not run: one that is no larger was chosen",
        "<th scope=\"row\">32,768 slots, threshold 50 %</th>",
        "misses the goal with 301 us",
        // The table has all of them.
        "6 of 7 configurations are drawn",
    ] {
        assert!(html.contains(number), "{number}");
    }
}

#[test]
fn the_recommended_one_is_marked_in_picture_and_table() {
    let without = |outcome: &mut Outcome| outcome.findings.recommended = None;
    for (mark, counts) in [
        ("recommended, keeps the goal with 20.1 us", (1, 0)),
        ("None could be recommended", (0, 3)),
        ("<svg ", (8, 8)),
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
fn what_comes_from_outside_is_shown_and_not_followed() {
    let evil = "<script>x</script>\"'&";
    let figure = Figure {
        title: "title",
        text: evil.to_owned(),
        picture: Some(canvas::picture(["id", evil, evil], |_| 9, |_, _| Ok(())).unwrap()),
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
