//! Seconds borrowed from the future, over time.

use anyhow::Result;
use plotters::prelude::*;
use ringflake::plan::Load;

use super::canvas::{Area, Format, Hint, LEGEND_LINE, legend, line, mark, picture};
use super::figure::Figure;
use super::palette::LINES;
use super::time_chart::{LineName, TimeAxes, dashed, hints, name_lines, span, thinned, ticks};
use crate::drive::measurement::Sample;
use crate::load::BORROW_LIMIT;
use crate::tune::outcome::Outcome;
use crate::tune::trial::Trial;
use crate::units::time;

/// How far the last ID lay ahead of the clock: the seconds, those borrowed by arithmetic,
/// and those that the generator counts, in whole ticks.
type Point = [f64; 3];

pub(super) fn figure(trial: &Trial, outcome: &Outcome) -> Result<Figure> {
    let title = "Seconds borrowed over time";
    let names = ["by arithmetic", "in whole ticks"];
    let points = points(
        &trial.total.samples,
        &outcome.part,
        outcome.budget.sustained,
    );
    let all = points.iter().flat_map(|point| &point[1..]);
    let most = all.copied().fold(0.0, f64::max);
    let limit = BORROW_LIMIT.as_secs_f64();
    let shown = Shown {
        lines: [1, 2].map(|column| points.iter().any(|point| point[column] > 0.0)),
        limit: (most * 4.0 >= limit).then_some(limit),
        most,
    };
    let place = match shown.limit {
        Some(_) => "the dashed line",
        None => "beyond the picture",
    };
    let left_out = match shown.lines {
        [false, false] => " Nothing was borrowed at any time, so no picture is drawn.",
        [true, false] => " No whole tick was borrowed at any time: that line is left out.",
        _ => "",
    };
    let text = format!(
        "{}: how far the last ID that was made lay ahead of the clock, at the most {}: by \
         arithmetic, and as the generator counts it, in whole ticks of its layout. The limit \
         is {} ({place}).{left_out}",
        trial.setting,
        time(most),
        time(limit),
    );
    let times = span(&trial.total.samples);
    let top = 272;
    let lines = shown.lines.iter().filter(|&&is_shown| is_shown).count() as u32;
    let height = |_| top + lines * LEGEND_LINE + 4;
    let draw = |area: &Area<'_>, format| {
        let (above, _) = area.split_vertically(top);
        let shown_names = names.into_iter().enumerate();
        let shown_names: Vec<_> = (shown_names.filter(|&(index, _)| shown.lines[index]))
            .map(|(index, name)| (index, name.to_owned()))
            .collect();
        legend(area, top, &shown_names)?;
        draw(area, &above, format, times, &points, &shown)
    };
    let svg = match lines {
        0 => None,
        _ => Some(picture(["borrowed", title, &text], height, draw)?),
    };
    let rows = thinned(&points, |&[at, calculated, _]| (at, calculated)).into_iter();
    Ok(Figure {
        title,
        text,
        picture: svg,
        head: ["seconds"].into_iter().chain(names).collect(),
        rows: rows
            .map(|row| row.map(|value| format!("{value:.4}")).to_vec())
            .collect(),
    })
}

/// What the picture holds.
struct Shown {
    /// Which of the two lines are above 0 at any time.
    lines: [bool; 2],
    limit: Option<f64>,
    most: f64,
}

/// IDs made beyond what the nodes have are a debt in seconds, which grows when the ring is
/// filled and shrinks as time goes by.
fn points(samples: &[Sample], load: &Load, sustained: f64) -> Vec<Point> {
    let (mut made_before, mut seconds_before, mut debt) = (0.0, 0.0, 0.0_f64);
    let point = |sample: &Sample| {
        let made = load.demanded_by(sample.seconds) + sample.level as f64;
        let more = (made - made_before) / sustained;
        debt = (debt + more - (sample.seconds - seconds_before)).max(0.0);
        (made_before, seconds_before) = (made, sample.seconds);
        [sample.seconds, debt, sample.borrowed]
    };
    samples.iter().map(point).collect()
}

fn draw(
    root: &Area<'_>,
    area: &Area<'_>,
    format: Format,
    (start, end): (f64, f64),
    points: &[Point],
    shown: &Shown,
) -> Result<Vec<Hint>> {
    let highest = shown.most.max(shown.limit.unwrap_or(1e-3));
    let axes = TimeAxes {
        what: "ahead of the clock",
        across: (start, end),
        top: highest * 1.1,
        ticks: ticks(highest * 1.1),
        value: time,
        names_lines: shown.limit.is_some(),
    };
    let mut chart = axes.draw(area, format)?;
    for index in (0..2).filter(|&index| shown.lines[index]) {
        let point = |point: &Point| (point[0], point[1 + index]);
        let points: Vec<_> = thinned(points, point).iter().map(point).collect();
        chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
        // So many that the line can be followed.
        for point in points.iter().step_by(points.len().div_ceil(12).max(1)) {
            mark(root, chart.backend_coord(point), index)?;
        }
    }
    if let Some(limit) = shown.limit {
        dashed(&mut chart, [(start, limit), (end, limit)], 4)?;
        let name = LineName {
            value: limit,
            wide: format!("limit {}", time(limit)),
            narrow: "limit",
            colour: LINES[4],
        };
        name_lines(root, &chart, format, vec![name])?;
    }
    Ok(hints(&chart, format, (start, end), |from, until| {
        let is_within = |point: &&Point| (from..=until).contains(&point[0]);
        let within = points.iter().filter(is_within);
        let [at, calculated, counted] = within.max_by(|one, other| one[1].total_cmp(&other[1]))?;
        Some(format!(
            "{at:.4} s: {} ahead of the clock by arithmetic, {} in whole ticks",
            time(*calculated),
            time(*counted)
        ))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_grows_by_what_is_made_and_is_paid_back_by_time() {
        let sample = |at: u32| Sample {
            seconds: f64::from(at) / 1000.0,
            level: 10,
            threshold: 5,
            borrowed: 0.0,
            fills: 0,
            empties: 0,
        };
        let samples: Vec<_> = (0..=1000).map(sample).collect();
        // 10 IDs in the ring, of 100 a second; then half as many as there are, or thrice.
        for (rate, at, debt) in [
            ("50/s", 0, 0.1),
            ("50/s", 100, 0.05),
            ("50/s", 1000, 0.0),
            ("300/s", 1000, 2.1),
        ] {
            let load = Load::steady(rate.parse().unwrap());
            let point = points(&samples, &load, 100.0)[at];
            assert!((point[1] - debt).abs() < 1e-9, "{rate}: {point:?}");
        }
    }
}
