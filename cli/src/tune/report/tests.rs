//! The page, from made-up figures.

use super::palette::tests::knows_all_colours_of;
use super::*;

/// Something for every part of the page.
fn page() -> Page {
    let times = |scale: f64| [1e-8, 3e-8, 2e-7, 1e-6, 4e-5, 2e-3].map(|at| at * scale);
    let row = |name: &str, scale| LatencyRow {
        name: name.to_owned(),
        seconds: times(scale),
        takes: 1_000_000,
        empties: 3,
    };
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Page {
        title: "1 M IDs/s, bursts".to_owned(),
        made_at: "2026-11-20T12:00:00Z".to_owned(),
        verdict: "A ring of 65,536 slots keeps up.".to_owned(),
        warnings: vec!["The lease gives less.".to_owned()],
        choice: vec![fact("capacity", "65,536 slots")],
        snippet: "CachedGenerator::builder(layout)".to_owned(),
        reasons: vec!["A burst asks for 2 M IDs.".to_owned()],
        level: Some(Level {
            of: "65,536 slots, 50 %".to_owned(),
            capacity: 65_536,
            thresholds: vec![(0.0, 32_768.0)],
            levels: (0..2000)
                .map(|at| (f64::from(at) / 1e3, f64::from(at % 50) * 1300.0))
                .collect(),
            fills: vec![(0.0, 1.0), (0.5, 2.0), (1.5, 4.0)],
            empties: vec![(0.0, 0.0), (0.7, 9.0)],
        }),
        latency: (0..8)
            .map(|at| row(&format!("ring {at}"), f64::from(at + 1)))
            .collect(),
        grid: grid(),
        borrowed: Some(Borrowed {
            of: "65,536 slots, 50 %".to_owned(),
            calculated: vec![(0.0, 0.1), (2.0, 0.3)],
            borrowed: (0..2000)
                .map(|at| (f64::from(at) / 1e3, f64::from(at % 7)))
                .collect(),
            limit: 60.0,
        }),
        command: "ringflake tune --rate 1M".to_owned(),
        machine: vec![fact("cores", "2")],
    }
}

fn grid() -> Grid {
    let ran = |empties, goal| CellOutcome::Ran {
        seconds: 1.0,
        takes: 1_000_000,
        empties,
        goal,
        lowest_level: 7,
    };
    let cell = |capacity, threshold, outcome| Cell {
        capacity,
        threshold,
        outcome,
        is_recommended: capacity == 65_536 && threshold == 1,
    };
    Grid {
        capacities: vec![16_384, 32_768, 65_536],
        thresholds: vec!["25 %".to_owned(), "50 %".to_owned()],
        cells: vec![
            cell(16_384, 0, CellOutcome::LeftOut("too small".to_owned())),
            cell(32_768, 0, ran(123_456, None)),
            cell(65_536, 0, ran(12, None)),
            cell(32_768, 1, ran(0, Some((3e-6, false)))),
            cell(65_536, 1, ran(0, Some((1e-6, true)))),
        ],
    }
}

#[test]
fn nothing_in_it_comes_from_elsewhere() {
    let html = page().html().unwrap();
    for wrong in [
        "http:", "https:", "<script", "<img", "@import", "url(", "src=", "<iframe",
    ] {
        assert!(!html.contains(wrong), "{wrong}");
    }
}

#[test]
fn every_picture_has_a_title_and_a_text_and_only_known_colours() {
    let html = page().html().unwrap();
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
    let html = page().html().unwrap();
    assert_eq!(html.matches("<figure>").count(), 4);
    assert_eq!(html.matches("<table>").count(), 4);
    for number in [
        "123,456",
        "did not run: too small",
        "ring 7",
        "keeps the goal with 1 us",
    ] {
        assert!(html.contains(number), "{number}");
    }
    // The picture has six of the eight; the table has all.
    assert!(html.contains("6 of 8 configurations are drawn"));
}

#[test]
fn the_recommended_one_is_marked_in_picture_and_table() {
    let with = page().html().unwrap();
    let mut page = page();
    for cell in &mut page.grid.cells {
        cell.is_recommended = false;
    }
    let without = page.html().unwrap();
    assert!(with.contains("recommended, keeps the goal"));
    assert!(!without.contains("recommended, keeps the goal"));
    assert!(without.contains("None could be recommended"));
    let rectangles = |html: &str| html.matches("<rect ").count();
    assert!(rectangles(&with) > rectangles(&without));
}

#[test]
fn each_fill_is_marked() {
    let triangles = |page: &Page| page.html().unwrap().matches("<polygon ").count();
    let some = page();
    let mut more = page();
    let level = more.level.as_mut().unwrap();
    level.fills.push((1.7, 5.0));
    // One for each width.
    assert_eq!(triangles(&more), triangles(&some) + 2);
}

#[test]
fn empties_are_marked() {
    let lines = |page: &Page| page.html().unwrap().matches("<line ").count();
    let with = page();
    let mut without = page();
    without.level.as_mut().unwrap().empties.clear();
    // A cross of two strokes, one for each width.
    assert_eq!(lines(&with), lines(&without) + 4);
}

#[test]
fn what_comes_from_outside_is_shown_and_not_followed() {
    let evil = "<script>x</script>\"'&".to_owned();
    let mut page = page();
    for text in [
        &mut page.title,
        &mut page.made_at,
        &mut page.verdict,
        &mut page.snippet,
        &mut page.command,
        &mut page.warnings[0],
        &mut page.reasons[0],
        &mut page.choice[0].1,
        &mut page.machine[0].0,
        &mut page.latency[0].name,
        &mut page.grid.thresholds[0],
    ] {
        text.clone_from(&evil);
    }
    page.level.as_mut().unwrap().of.clone_from(&evil);
    page.borrowed.as_mut().unwrap().of.clone_from(&evil);
    page.grid.cells[0].outcome = CellOutcome::LeftOut(evil.clone());
    let html = page.html().unwrap();
    assert!(!html.contains("<script"));
    assert!(!html.contains(&evil));
    assert!(html.matches("&lt;script&gt;").count() >= 13);
}

#[test]
fn a_run_that_was_cut_short_has_a_page_too() {
    let mut page = page();
    page.level = None;
    page.borrowed = None;
    page.latency.clear();
    page.grid = Grid::default();
    let html = page.html().unwrap();
    assert!(html.contains("No latency was measured."));
    assert!(html.trim_end().ends_with("</html>"));
}
