//! Level over time, with the threshold and each fill marked.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{Area, Format, Hint, line, mark, picture};
use super::figure::Figure;
use super::palette::{LINES, QUIET};
use super::time_chart::{LineName, TimeAxes, dashed, hints, name_lines, span, thinned};
use crate::drive::measurement::Sample;
use crate::tune::setting::Setting;
use crate::tune::trial::Trial;
use crate::units::{grouped, short, time};

/// The line of the threshold, and the markers of fills and of empties.
const THRESHOLD: usize = 3;
const FILL: usize = 1;
const EMPTY: usize = 4;

/// The level of a ring around its lowest.
pub(super) fn figure(trial: &Trial) -> Result<Figure> {
    let title = "Level over time";
    let head = "seconds, IDs in the ring, threshold, fills so far, empties so far";
    let head = head.split(", ").collect();
    let samples = window(&trial.total.samples);
    let Some(first) = samples.first() else {
        return Ok(Figure {
            title,
            text: format!(
                "{}: its run was too short for the level to be seen.",
                trial.setting
            ),
            picture: None,
            head,
            rows: Vec::new(),
        });
    };
    let fills = |sample: &Sample| sample.fills - first.fills;
    let empties = |sample: &Sample| sample.empties - first.empties;
    let (start, end) = span(samples);
    let capacity = trial.setting.capacity;
    let lowest = samples.iter().map(|sample| sample.level).min();
    let lowest = lowest.unwrap_or(capacity);
    let text = format!(
        "{}: {} of one run, around the lowest level. The ring holds between 0 and its capacity \
         of {} IDs (thin line); the lowest level was {} IDs, {:.0} % of that. The dashed line \
         is the threshold. Each triangle above is a moment by which one or more fills had \
         ended, {} in all; each cross below one by which takes had found the ring empty, {} in \
         all.{}",
        trial.setting,
        time(end - start),
        grouped(capacity as u64),
        grouped(lowest as u64),
        (100.0 * lowest as f64 / capacity as f64).floor(),
        samples.last().map_or(0, fills),
        samples.last().map_or(0, empties),
        match is_empty(samples) {
            true => " The ring was empty throughout: its level has no line.",
            false => "",
        },
    );
    let row = |sample: Sample| {
        vec![
            format!("{:.4}", sample.seconds),
            grouped(sample.level as u64),
            grouped(sample.threshold as u64),
            grouped(fills(&sample)),
            grouped(empties(&sample)),
        ]
    };
    let draw = |area: &Area<'_>, format| draw(area, format, trial.setting, samples);
    Ok(Figure {
        title,
        picture: Some(picture(["level", title, &text], |_| 340, draw)?),
        head,
        rows: thinned(samples, level).into_iter().map(row).collect(),
        text,
    })
}

fn level(sample: &Sample) -> (f64, f64) {
    (sample.seconds, sample.level as f64)
}

/// The time around the lowest level: as much of it as has so few fills that each
/// can be seen.
fn window(samples: &[Sample]) -> &[Sample] {
    const MOST_MARKS: usize = 60;
    const LEAST: f64 = 0.02;
    let lowest = samples.iter().min_by_key(|sample| sample.level);
    let Some(lowest) = lowest.map(|sample| sample.seconds) else {
        return samples;
    };
    let mut around = 1.1;
    loop {
        let start = samples.partition_point(|sample| sample.seconds < lowest - around);
        let end = samples.partition_point(|sample| sample.seconds <= lowest + around);
        let window = &samples[start..end];
        if moments(window, |sample| sample.fills).count() <= MOST_MARKS || around < LEAST {
            return window;
        }
        around *= 0.8;
    }
}

/// Whether the ring had nothing at all, as far as it was seen.
fn is_empty(samples: &[Sample]) -> bool {
    samples.iter().all(|sample| sample.level == 0)
}

fn draw(
    area: &Area<'_>,
    format: Format,
    setting: Setting,
    samples: &[Sample],
) -> Result<Vec<Hint>> {
    let capacity = setting.capacity as f64;
    let (start, end) = span(samples);
    let quarters = if setting.capacity < 4 { 1 } else { 4 };
    let axes = TimeAxes {
        what: "IDs in the ring",
        across: (start, end),
        // Room above for the fills.
        top: capacity * 1.16,
        ticks: (0..=quarters)
            .map(|index| capacity * f64::from(index) / f64::from(quarters))
            .collect(),
        value: short,
        names_lines: true,
    };
    let mut chart = axes.draw(area, format)?;
    let full = PathElement::new([(start, capacity), (end, capacity)], QUIET.drawn());
    chart.draw_series([full])?;
    if !is_empty(samples) {
        let levels = thinned(samples, level);
        chart.draw_series(LineSeries::new(levels.iter().map(level), line(0)))?;
    }
    let steps = samples.chunk_by(|one, other| one.threshold == other.threshold);
    let thresholds: Vec<_> = steps
        .map(|step| (step[0].seconds, step[0].threshold as f64))
        .collect();
    let thresholds = thinned(&thresholds, |&point| point);
    let ends = thresholds.iter().skip(1).map(|next| next.0).chain([end]);
    for (&(from, threshold), until) in thresholds.iter().zip(ends) {
        dashed(
            &mut chart,
            [(from, threshold), (until, threshold)],
            THRESHOLD,
        )?;
    }
    let above = capacity * 1.09;
    for at in moments(samples, |sample| sample.fills) {
        mark(area, chart.backend_coord(&(at, above)), FILL)?;
    }
    for at in moments(samples, |sample| sample.empties) {
        mark(area, chart.backend_coord(&(at, 0.0)), EMPTY)?;
    }

    let name = |value, narrow, wide, colour| LineName {
        value,
        wide,
        narrow,
        colour,
    };
    let with = |name: &str, ids: f64| format!("{name} {}", grouped(ids as u64));
    let mut names = vec![name(
        capacity,
        "capacity",
        with("capacity", capacity),
        QUIET,
    )];
    if let Some(&(_, threshold)) = thresholds.last() {
        let wide = match thresholds.len() {
            1 => with("threshold", threshold),
            _ => "threshold".to_owned(),
        };
        names.push(name(threshold, "threshold", wide, LINES[THRESHOLD]));
    }
    if moments(samples, |sample| sample.fills).next().is_some() {
        names.push(name(above, "fills", "fills".to_owned(), LINES[FILL]));
    }
    if moments(samples, |sample| sample.empties).next().is_some() {
        names.push(name(0.0, "empties", "empties".to_owned(), LINES[EMPTY]));
    }
    name_lines(area, &chart, format, names)?;
    Ok(hints(&chart, format, (start, end), |from, until| {
        tell(samples, capacity, from, until)
    }))
}

/// What happened from one moment to another.
fn tell(samples: &[Sample], capacity: f64, from: f64, until: f64) -> Option<String> {
    let first = samples.partition_point(|sample| sample.seconds < from);
    let behind = samples.partition_point(|sample| sample.seconds <= until);
    let span = samples.get(first..behind)?;
    let lowest = span.iter().min_by_key(|sample| sample.level)?;
    let before = &samples[first.saturating_sub(1)];
    let last = &span[span.len() - 1];
    Some(format!(
        "{:.4} s: {} IDs in the ring, {:.0} % of it; threshold {}; fills that ended: {}; takes that \
         found it empty: {}",
        lowest.seconds,
        grouped(lowest.level as u64),
        100.0 * lowest.level as f64 / capacity,
        grouped(lowest.threshold as u64),
        last.fills - before.fills,
        last.empties - before.empties,
    ))
}

/// The moments at which a count grew.
fn moments(samples: &[Sample], count: fn(&Sample) -> u64) -> impl Iterator<Item = f64> {
    let grown = samples
        .windows(2)
        .filter(move |pair| count(&pair[1]) > count(&pair[0]));
    grown.map(|pair| pair[1].seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(fills_each: u64) -> Vec<Sample> {
        let sample = |index: u64| Sample {
            seconds: index as f64 / 1000.0,
            level: if index == 3000 { 1 } else { 10 },
            threshold: 5,
            borrowed: 0.0,
            fills: index * fills_each,
            empties: 0,
        };
        (0..5000).map(sample).collect()
    }

    #[test]
    fn the_picture_is_about_the_lowest_level_and_so_short_that_each_fill_is_seen() {
        let samples = [samples(0), samples(1)];
        let [few, many] = [window(&samples[0]), window(&samples[1])];
        assert_eq!((few[0].seconds, few[few.len() - 1].seconds), (1.9, 4.1));
        assert!(many.len() <= 61, "{}", many.len());
        assert!(many.iter().any(|sample| sample.level == 1));
    }
}
