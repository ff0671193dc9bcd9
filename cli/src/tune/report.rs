//! `--report`: the answer and its run, as one page that needs nothing beside itself.
//!
//! No script, no font, no picture from elsewhere, so it can be mailed and kept. Every text
//! from outside is escaped where it is written. Four pictures: the load and the level over time,
//! the latency, and the thresholds.

use std::env;
use std::fmt::{self, Write as _};

use self::chart::{Axis, Chart, Line, Style, escaped, seconds};
use super::answer::Answer;
use super::replay::{Replay, Run};
use super::snippet;
use super::text;
use crate::drive::Sample;
use crate::timestamp;
use crate::units::{grouped, short, time};

mod chart;

/// The most parts of a picture over time, so that a page stays small.
const PARTS: usize = 300;

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
    writeln!(html, "<dl>")?;
    for (name, value) in answer.facts() {
        writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
    }
    writeln!(html, "</dl>\n</section>")?;
    if let Some(code) = snippet::code(answer) {
        writeln!(html, "<section>\n<h2>The generator</h2>")?;
        write_code(html, "The program", &code)?;
        writeln!(html, "</section>")?;
    }
    let charts = replay.decisive().map(|run| {
        let over_time = [load(answer, run), level(run)];
        over_time
            .into_iter()
            .chain([latency(run), thresholds(answer, replay)])
    });
    for chart in charts.into_iter().flatten() {
        let (title, text) = (chart.title, escaped(&chart.text));
        writeln!(
            html,
            "<section>\n<h2>{title}</h2>\n<figure>\n{chart}<figcaption>{text}</figcaption>\n\
             </figure>\n</section>"
        )?;
    }
    write_table(html, &text::table(answer, Some(replay)))?;
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

fn write_table(html: &mut String, table: &[Vec<String>]) -> fmt::Result {
    let [heads, rows @ ..] = table else {
        return Ok(());
    };
    writeln!(
        html,
        "<section>\n<h2>The thresholds in numbers</h2>\n<p class=\"quiet\">The lowest level and \
         the empties: in the worst case, as computed, and as measured by a run; and the latency \
         from when a take was due until it returned.</p>\n\
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

/// The rate that the load asked for, and that of the IDs that were handed out.
fn load(answer: &Answer, run: &Run) -> Chart {
    let (measured, load, samples) = (&run.measured, &answer.load, &run.measured.samples);
    let end = measured.took.as_secs_f64();
    let every = samples.len().div_ceil(PARTS).max(1);
    let last = samples.len().saturating_sub(1);
    // The average of each part, as a step.
    let line = |name, style, ids: &dyn Fn(&Sample) -> f64| {
        let steps = (0..last).step_by(every).flat_map(|at| {
            let [from, until] = [at, last.min(at + every)].map(|at| &samples[at]);
            // The last sample may come at once after the one before it.
            let seconds = (until.seconds - from.seconds).max(1e-3);
            let rate = (ids(until) - ids(from)) / seconds;
            [(from.seconds, rate), (until.seconds, rate)]
        });
        Line::new(name, style, steps)
    };
    let asked = |it: &Sample| load.demanded_by(it.seconds.min(end));
    let lines = vec![
        line("handed out", Style::Plain, &|it| it.issued as f64),
        line("asked for", Style::Dashed, &asked),
    ];
    Chart {
        id: "load",
        title: "The load",
        text: format!(
            "{load}. Averages over {}. {} IDs were due, and {} of them were taken by the end; the \
             ring was at most {} ahead of the clock.",
            time(end * every as f64 / samples.len().max(1) as f64),
            grouped(measured.demanded),
            grouped(measured.by_end),
            time(measured.most_borrowed())
        ),
        up: "IDs/s",
        across: "seconds",
        x: Axis::from_zero(end, 8.0, seconds),
        y: Axis::from_zero(highest(&lines), 4.0, short),
        lines,
    }
}

/// The level of the ring over time.
fn level(run: &Run) -> Chart {
    let samples = &run.measured.samples;
    let end = run.measured.took.as_secs_f64();
    // Of each part the highest and the lowest level.
    let chunk = samples.len().div_ceil(PARTS).max(1);
    let points = samples.chunks(chunk).flat_map(|part| {
        let highest = part.iter().max_by_key(|it| it.level);
        let lowest = part.iter().min_by_key(|it| it.level);
        let point = |it: &Sample| (it.seconds, it.level as f64);
        let mut both = [highest, lowest].map(|it| it.map_or((0.0, 0.0), point));
        both.sort_by(|one, other| one.0.total_cmp(&other.0));
        both
    });
    let threshold = run.setting.below() as f64;
    let lines = vec![
        Line::new("level", Style::Plain, points),
        Line::new(
            "threshold: below it a producer is woken",
            Style::Dashed,
            [(0.0, threshold), (end, threshold)],
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
        up: "IDs",
        across: "seconds",
        x: Axis::from_zero(end, 8.0, seconds),
        y: Axis::from_zero(run.setting.capacity as f64, 4.0, short),
        lines,
    }
}

/// The latency by percentile, on logarithmic axes: shows where it begins to rise, between the
/// percentiles of the table.
fn latency(run: &Run) -> Chart {
    let latency = &run.measured.latency;
    let nines = (latency.len() as f64).log10().max(1.0);
    let log = |nanos: u64| (nanos.max(1) as f64).log10();
    // The quantile 1 - 1/n of n takes is the second slowest.
    let points = (0..PARTS).map(|part| {
        let nines = nines * part as f64 / PARTS as f64;
        let quantile = 1.0 - 10_f64.powf(-nines);
        (nines, log(latency.value_at_quantile(quantile)))
    });
    let points = points.chain([(nines, log(latency.max()))]);
    let [least, most] = [log(latency.min()), log(latency.max()) + 1.0].map(f64::floor);
    let percentile = |nines: i32| {
        let digits = (nines - 2).max(0) as usize;
        format!("p{:.digits$}", 100.0 - 10_f64.powi(2 - nines))
    };
    Chart {
        id: "latency",
        title: "Latency",
        text: format!(
            "{}: latency from when a take was due until it returned. The line ends at the \
             slowest of {} takes.",
            run.setting,
            grouped(latency.len())
        ),
        up: "from due to taken",
        across: "percentile of the takes",
        // No label at the edge, which has no room for one.
        x: Axis::powers(0.0, nines.floor() + 0.999, percentile),
        y: Axis::powers(least, most, |power| time(10_f64.powi(power - 9))),
        lines: vec![Line::new("latency", Style::Plain, points)],
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
    Chart {
        id: "thresholds",
        title: "Thresholds",
        text: "The lowest level of the ring by its threshold. A higher one keeps more IDs, and \
               wakes producers more often."
            .to_owned(),
        up: "lowest level, IDs",
        across: "threshold",
        x: Axis::names(levels.iter().map(|(it, _)| it.threshold.to_string())),
        y: Axis::from_zero(highest(&lines), 4.0, short),
        lines,
    }
}

/// The highest value of all lines.
fn highest(lines: &[Line]) -> f64 {
    let points = lines.iter().flat_map(|it| &it.points);
    points.map(|it| it.1).fold(0.0, f64::max)
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
    fn each_picture_has_a_title_a_text_and_units_in_two_widths() {
        let html = page("ringflake tune");
        let pictures: Vec<_> = html.split("<svg ").skip(1).collect();
        let parts = [
            "The load<|20M/s for the first 100ms|>IDs/s<|>seconds<|>10 M<|>1.2<",
            "The level of the ring<|30,000 were left|>IDs<|>seconds<|>60 k<|>1.2<",
            "Latency<|slowest of 1,000,000 takes|>from due to taken<|>percentile of the takes<|>10 us<|>p99.99<",
            "Thresholds<|by its threshold|>lowest level, IDs<|>threshold<|>20 k<|>75 %<",
        ];
        assert_eq!(pictures.len(), 2 * parts.len());
        for (index, picture) in pictures.into_iter().enumerate() {
            let (picture, _) = picture.split_once("</svg>").unwrap();
            for part in parts[index / 2].split('|') {
                assert!(picture.contains(part), "{part} in picture {index}");
            }
            let (_, labels) = picture.split_once("aria-labelledby=\"").unwrap();
            for id in labels.split('"').next().unwrap().split(' ') {
                assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
            }
            let is_finite = !picture.contains("NaN") && !picture.contains("inf");
            assert!(is_finite, "{picture}");
        }
        for text in [
            "Confirmed by a run: no take found 65,536 slots, threshold 50 % empty in 2 s",
            "<th scope=\"row\">50 %</th><td>6,354</td><td>0</td><td>30,000</td><td>0</td>",
        ] {
            assert!(html.contains(text), "{text}");
        }
    }

    #[test]
    fn load_and_latency_are_drawn_where_they_were_measured() {
        let run = run(Setting::DEFAULT, 0, 30_000);
        let load = load(&answer("1M", Some("20M:100ms/1s")), &run);
        // Of the average that begins with each fourth sample.
        let rate = |line: usize, at: usize| (load.lines[line].points[2 * at].1 / 1e3).round();
        assert_eq!([0, 62, 125].map(|at| rate(0, at)), [500.0; 3]);
        assert_eq!([0, 62, 125].map(|at| rate(1, at)), [20e3, 1e3, 20e3]);
        assert_eq!(load.lines[0].points.last().unwrap().0, 1.998);
        let latency = latency(&run);
        assert_eq!((latency.y.from, latency.y.until), (2.0, 7.0));
        let points = &latency.lines[0].points;
        for (percentile, nanos) in [(1.0, 200.0), (3.0, 60_000.0), (6.0, 3e6)] {
            let (_, found) = points.iter().find(|it| it.0 >= percentile).unwrap();
            let ratio = 10_f64.powf(*found) / nanos;
            assert!((ratio - 1.0).abs() < 0.01, "{percentile}: {found}");
        }
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let evil = "<script>x</script>\"'&\0";
        let html = page(evil);
        let harmless = "&lt;script&gt;x&lt;/script&gt;&quot;&#39;&amp;<";
        assert!(!html.contains("<script") && html.contains(harmless));
    }

    #[test]
    fn a_run_that_measured_nothing_has_a_page_too() {
        let nothing = replay(Vec::new(), Finding::NotMeasured);
        let html = html(&answer("1/s", None), &nothing, "ringflake tune");
        assert!(html.contains("class=\"verdict bad\"") && html.contains("longer --seconds"));
        assert_eq!(html.matches("<svg ").count(), 0);
    }
}
