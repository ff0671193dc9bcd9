//! `--report`: the answer and its run, as one page that needs nothing beside itself.
//!
//! No script, no font, no picture from elsewhere, so it can be mailed and kept. Every text
//! from outside is escaped where it is written. Two pictures: the level over time, and the
//! thresholds.

use std::env;
use std::fmt::{self, Write as _};

use self::chart::{Axis, Chart, Line, Style, escaped, seconds};
use super::answer::Answer;
use super::replay::{Replay, Run};
use super::snippet;
use super::text;
use crate::drive::Sample;
use crate::timestamp;
use crate::units::{grouped, short};

mod chart;

/// The page as HTML.
pub(super) fn html(answer: &Answer, replay: &Replay, command: &str) -> String {
    let mut html = String::new();
    // Writing to a string never fails.
    let _ = write(&mut html, answer, replay, command);
    html
}

fn write(html: &mut String, answer: &Answer, replay: &Replay, command: &str) -> fmt::Result {
    let title = escaped(&answer.load.to_string());
    let (class, sign, verdict) = match answer.is_served() && replay.finding.is_good() {
        true => ("good", "\u{2713}", "Served"),
        false => ("bad", "\u{d7}", "Not confirmed"),
    };
    write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>ringflake tune: {title}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"quiet\">Made by ringflake tune, {}</p>\n\
         </header>\n<main>\n\
         <section class=\"verdict {class}\" aria-label=\"The verdict\">\n\
         <span class=\"sign\" aria-hidden=\"true\">{sign}</span>\n<div>\n<h2>{verdict}</h2>\n\
         <p>{}</p>\n<p>{}</p>\n</div>\n</section>\n<section>\n<h2>Why</h2>\n",
        include_str!("report/style.css"),
        timestamp::in_words(answer.now_unix_ms),
        escaped(&answer.headline()),
        escaped(&replay.in_words(answer)),
    )?;
    write_facts(html, &answer.facts())?;
    writeln!(html, "</section>")?;
    if let Some(code) = snippet::code(answer) {
        writeln!(html, "<section>\n<h2>The generator</h2>")?;
        write_code(html, "The program", &code)?;
        writeln!(html, "</section>")?;
    }
    let run = replay.decisive();
    let charts = run.map(|run| [level(run), thresholds(answer, replay)]);
    for chart in charts.into_iter().flatten() {
        let (title, text) = (chart.title, escaped(&chart.text));
        writeln!(
            html,
            "<section>\n<h2>{title}</h2>\n<figure>\n{chart}<figcaption>{text}</figcaption>\n\
             </figure>\n</section>"
        )?;
    }
    write_table(html, &text::heads(true), &text::rows(answer, Some(replay)))?;
    writeln!(html, "<section>\n<h2>How this was measured</h2>")?;
    write_code(html, "The command", command)?;
    let build = match cfg!(debug_assertions) {
        true => "not optimised: its figures are not those of a release build",
        false => "optimised",
    };
    writeln!(
        html,
        "<p class=\"quiet\">ringflake {}, {build}, on {} and {}</p>",
        env!("CARGO_PKG_VERSION"),
        env::consts::OS,
        env::consts::ARCH
    )?;
    writeln!(html, "</section>\n</main>\n</body>\n</html>")
}

fn write_code(html: &mut String, label: &str, code: &str) -> fmt::Result {
    let code = escaped(code);
    // Scrolling by keyboard needs a box that takes the focus.
    writeln!(
        html,
        "<pre tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><code>{code}</code></pre>"
    )
}

fn write_facts(html: &mut String, facts: &[(&'static str, String)]) -> fmt::Result {
    writeln!(html, "<dl>")?;
    for (name, value) in facts {
        writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(value))?;
    }
    writeln!(html, "</dl>")
}

fn write_table(html: &mut String, heads: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        html,
        "<section>\n<h2>The thresholds in numbers</h2>\n<p class=\"quiet\">The lowest level and \
         the empties: in the worst case, as computed, and as measured by a run; and how long takes \
         lasted from the moment at which they were due.</p>\n\
         <div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"The thresholds\">\n\
         <table>\n<thead><tr>"
    )?;
    for name in heads {
        write!(html, "<th scope=\"col\">{name}</th>")?;
    }
    writeln!(html, "</tr></thead>\n<tbody>")?;
    for row in rows {
        write!(html, "<tr>")?;
        for (column, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            match column {
                0 => write!(html, "<th scope=\"row\">{cell}</th>")?,
                _ => write!(html, "<td>{cell}</td>")?,
            }
        }
        writeln!(html, "</tr>")?;
    }
    writeln!(html, "</tbody>\n</table>\n</div>\n</section>")
}

/// The level of the ring over time.
fn level(run: &Run) -> Chart {
    let samples = &run.measured.samples;
    let end = run.measured.took.as_secs_f64();
    let chunk = samples.len().div_ceil(300).max(1);
    // Of each part the highest and the lowest level.
    let points = samples.chunks(chunk).flat_map(|part| {
        let highest = part.iter().max_by_key(|it| it.level);
        let lowest = part.iter().min_by_key(|it| it.level);
        let point = |it: &Sample| (it.seconds, it.level as f64);
        let mut both = [highest, lowest].map(|it| it.map_or((0.0, 0.0), point));
        both.sort_by(|one, other| one.0.total_cmp(&other.0));
        both
    });
    let thresholds = samples.iter().step_by(chunk);
    let thresholds = thresholds.map(|it| (it.seconds, it.threshold as f64));
    let lines = vec![
        Line::new("level", Style::Plain, points),
        Line::new(
            "threshold: below it a producer is woken",
            Style::Dashed,
            thresholds,
        ),
    ];
    Chart {
        id: "level",
        title: "The level of the ring",
        text: format!(
            "{}: IDs in the ring. At its lowest {} were left; takes found it empty {} times, and \
             made some for it {} times.",
            run.setting,
            grouped(run.lowest() as u64),
            grouped(run.measured.empties),
            grouped(run.measured.assists)
        ),
        up: "IDs".to_owned(),
        across: "seconds",
        x: Axis::from_zero(end, 8.0, seconds),
        y: Axis::from_zero(run.setting.capacity as f64, 4.0, short),
        lines,
    }
}

/// The lowest level by threshold.
fn thresholds(answer: &Answer, replay: &Replay) -> Chart {
    let levels = answer.levels();
    let numbered = || (0..).map(f64::from).zip(&levels);
    let measured = numbered()
        .filter_map(|(at, (setting, _))| Some((at, replay.run_of(*setting)?.lowest() as f64)));
    let worst = numbered().map(|(at, (_, level))| (at, level.lowest));
    let lines = vec![
        Line::new("measured", Style::Marked, measured),
        Line::new("in the worst case, computed", Style::Dashed, worst),
    ];
    let points = lines.iter().flat_map(|it| &it.points);
    let most = points.map(|it| it.1).fold(0.0, f64::max);
    Chart {
        id: "thresholds",
        title: "Thresholds",
        text: "The lowest level of the ring by its threshold. A higher one keeps more IDs, and \
               wakes producers more often."
            .to_owned(),
        up: "lowest level, IDs".to_owned(),
        across: "threshold",
        x: Axis::names(levels.iter().map(|(it, _)| it.threshold.to_string())),
        y: Axis::from_zero(most, 4.0, short),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::answer::Setting;
    use crate::tune::answer::tests::answer;
    use crate::tune::replay::Finding;
    use crate::tune::replay::tests::{replay, run};

    fn page(command: &str) -> String {
        let answer = answer("1M", Some("20M:100ms/1s"));
        let mut replay = replay(vec![run(Setting::DEFAULT, 0, 30_000)], Finding::Confirmed);
        let others = Setting::DEFAULT.with_thresholds().into_iter();
        replay.thresholds = others.map(|it| run(it, 0, 20_000)).collect();
        html(&answer, &replay, command)
    }

    #[test]
    fn the_page_needs_nothing_beside_itself() {
        let html = page("ringflake tune");
        for wrong in [
            "http:", "https:", "<script", "<img", "@import", "url(", "src=", "<iframe",
        ] {
            assert!(!html.contains(wrong), "{wrong}");
        }
        assert!(html.trim_end().ends_with("</html>"));
    }

    #[test]
    fn two_pictures_in_two_widths_have_a_title_and_a_text() {
        let html = page("ringflake tune");
        let pictures: Vec<_> = html.split("<svg ").skip(1).collect();
        assert_eq!(pictures.len(), 4);
        for picture in pictures {
            let (picture, _) = picture.split_once("</svg>").unwrap();
            let (_, labels) = picture.split_once("aria-labelledby=\"").unwrap();
            for id in labels.split('"').next().unwrap().split(' ') {
                assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
            }
            assert!(
                !picture.contains("NaN") && !picture.contains("inf"),
                "{picture}"
            );
        }
        for text in [
            "Confirmed by a run: no take found 65,536 slots, threshold 50 % empty in 2 s",
            "<th scope=\"row\">75 %</th>",
        ] {
            assert!(html.contains(text), "{text}");
        }
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let evil = "<script>x</script>\"'&\0";
        let html = page(evil);
        assert!(
            !html.contains("<script")
                && html.contains("&lt;script&gt;x&lt;/script&gt;&quot;&#39;&amp;<")
        );
    }

    #[test]
    fn a_run_that_measured_nothing_has_a_page_too() {
        let nothing = replay(Vec::new(), Finding::NotMeasured);
        let html = html(&answer("1/s", None), &nothing, "ringflake tune");
        assert!(html.contains("class=\"verdict bad\"") && html.contains("longer --seconds"));
        assert_eq!(html.matches("<svg ").count(), 0);
    }
}
