//! Latency by percentile, one line a configuration.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{Area, Format, LEGEND_LINE, centred, label, legend, line, mark, picture};
use super::figure::Figure;
use super::palette::{GRID, QUIET};
use crate::load::PERCENTILES;
use crate::tune::trial::Trial;
use crate::units::{grouped, time};

/// The most lines that a picture holds.
const MOST_LINES: usize = 6;

/// How long takes lasted, of which those of the first trials are drawn.
pub(super) fn figure(trials: &[&Trial]) -> Result<Figure> {
    let title = "Latency by percentile";
    let drawn = &trials[..trials.len().min(MOST_LINES)];
    let text = text(trials.len(), drawn);
    let picture = if drawn.is_empty() {
        None
    } else {
        let names: Vec<_> = drawn.iter().map(|it| it.setting.to_string()).collect();
        let below = LEGEND_LINE * names.len() as u32 + 8;
        let height = |format: Format| format.choose(320, 280) + below;
        Some(picture(
            ["latency", title, &text],
            height,
            |area, format| {
                let (above, _) = area.split_vertically(height(format) - below);
                draw(area, &above, drawn, format)?;
                legend(area, height(format) - below, &names)
            },
        )?)
    };
    Ok(Figure {
        title,
        text,
        picture,
        head: (["configuration"].into_iter())
            .chain(PERCENTILES.map(|(name, _)| name))
            .chain(["takes", "empties"])
            .collect(),
        rows: trials.iter().map(|trial| cells(trial)).collect(),
    })
}

fn text(all: usize, drawn: &[&Trial]) -> String {
    let Some(first) = drawn.first() else {
        return "No latency was measured.".to_owned();
    };
    let mut text = format!(
        "From the moment at which a take was due to its return, on a logarithmic axis, at named \
         percentiles, one line for each configuration. With {}: ",
        first.setting
    );
    let named = PERCENTILES.iter().zip(first.latencies());
    let figures: Vec<_> = named
        .map(|((name, _), seconds)| format!("{name} {}", time(seconds)))
        .collect();
    text.push_str(&figures.join(", "));
    text.push('.');
    if all > drawn.len() {
        text.push_str(&format!(
            " {} of {all} configurations are drawn; the table has all of them.",
            drawn.len()
        ));
    }
    text
}

/// The decades, in seconds, between which all figures lie.
fn decades(trials: &[&Trial]) -> (f64, f64) {
    let figures = trials.iter().flat_map(|trial| trial.latencies());
    let known = figures.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    let (low, high) = known.fold((f64::MAX, f64::MIN), |(low, high), seconds| {
        (low.min(seconds), high.max(seconds))
    });
    if low > high {
        return (1e-8, 1e-5);
    }
    let from = 10_f64.powf(low.log10().floor());
    let until = 10_f64.powf(high.log10().ceil());
    (from, until.max(from * 10.0))
}

fn draw(root: &Area<'_>, area: &Area<'_>, trials: &[&Trial], format: Format) -> Result<()> {
    let (from, until) = decades(trials);
    let last = PERCENTILES.len() as f64 - 1.0;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(format.choose(28, 22))
        .x_label_area_size(28)
        .y_label_area_size(58)
        .build_cartesian_2d(-0.2..last + 0.2, (from..until).log_scale())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(QUIET.drawn())
        .label_style(label())
        // Written below, at the percentiles.
        .x_labels(0)
        .y_labels(8)
        .y_label_formatter(&|seconds| time(*seconds))
        .draw()?;
    for (index, (name, _)) in PERCENTILES.iter().enumerate() {
        let at = index as f64;
        let rule = PathElement::new([(at, from), (at, until)], GRID.drawn());
        chart.draw_series([rule])?;
        let (x, y) = chart.backend_coord(&(at, from));
        let place = centred(QUIET.drawn());
        root.draw(&Text::new((*name).to_owned(), (x, y + 16), place))?;
    }
    for (index, trial) in trials.iter().enumerate() {
        let points: Vec<_> = (trial.latencies().iter().enumerate())
            .map(|(at, seconds)| (at as f64, seconds.clamp(from, until)))
            .collect();
        chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
        for point in &points {
            mark(root, chart.backend_coord(point), index)?;
        }
    }
    Ok(())
}

/// A row of the table.
fn cells(trial: &Trial) -> Vec<String> {
    let mut cells = vec![trial.setting.to_string()];
    cells.extend(trial.latencies().map(time));
    cells.extend([trial.total.taken, trial.total.empties].map(grouped));
    cells
}
