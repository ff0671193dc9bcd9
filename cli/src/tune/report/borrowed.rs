//! Seconds borrowed from the future, over time.

use anyhow::Result;
use plotters::prelude::*;
use ringflake::plan::Load;

use super::canvas::{
    Area, Format, LEGEND_LINE, beside, dashed, legend, line, mark, picture, span, thinned,
    time_chart,
};
use super::figure::Figure;
use super::palette::INK;
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
    let limit_shown = (most * 4.0 >= limit).then_some(limit);
    let place = match limit_shown {
        Some(_) => "the dashed line",
        None => "beyond the picture",
    };
    let text = format!(
        "{}: how far the last ID that was made lay ahead of the clock, at the most {}: by \
         arithmetic, and as the generator counts it, in whole ticks of its layout. The limit \
         is {} ({place}).",
        trial.setting,
        time(most),
        time(limit),
    );
    let times = span(&trial.total.samples);
    let top = 260;
    let height = |_| top + 2 * LEGEND_LINE + 4;
    let svg = picture(["borrowed", title, &text], height, |area, format| {
        let (above, _) = area.split_vertically(top);
        draw(area, &above, format, times, &points, most, limit_shown)?;
        legend(area, top, &names.map(str::to_owned))
    })?;
    let rows = thinned(&points, |&[at, calculated, _]| (at, calculated)).into_iter();
    Ok(Figure {
        title,
        text,
        picture: Some(svg),
        head: ["seconds"].into_iter().chain(names).collect(),
        rows: rows
            .map(|row| row.map(|value| format!("{value:.4}")).to_vec())
            .collect(),
    })
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
    most: f64,
    limit: Option<f64>,
) -> Result<()> {
    let highest = most.max(limit.unwrap_or(1e-3));
    let mut chart = time_chart(area, format, (start, end), highest * 1.1, time)?;
    for index in 0..2 {
        let point = |point: &Point| (point[0], point[1 + index]);
        let points: Vec<_> = thinned(points, point).iter().map(point).collect();
        chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
        // So many that the line can be followed.
        for point in points.iter().step_by(points.len().div_ceil(12).max(1)) {
            mark(root, chart.backend_coord(point), index)?;
        }
    }
    if let Some(limit) = limit {
        dashed(&mut chart, [(start, limit), (end, limit)], 4)?;
        let (x, y) = chart.backend_coord(&(start, limit));
        root.draw(&Text::new("limit", (x + 6, y + 11), beside(INK.drawn())))?;
    }
    Ok(())
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
