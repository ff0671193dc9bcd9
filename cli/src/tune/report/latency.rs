//! Latency by percentile, one line a configuration.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{
    Area, Format, Hint, LEGEND_LINE, LEGEND_SAMPLE, centred, label, legend, legend_name, line,
    mark, picture,
};
use super::figure::Figure;
use super::palette::{GRID, INK, QUIET};
use crate::load::PERCENTILES;
use crate::tune::baseline::Baseline;
use crate::tune::trial::Trial;
use crate::units::{grouped, time};

/// The most lines that a picture holds, beside that of no ring.
const MOST_LINES: usize = 4;

/// Seconds at the named percentiles.
type Latencies = [f64; PERCENTILES.len()];

/// What is drawn.
struct Lines {
    /// The names of rings, and their latencies.
    rings: Vec<(String, Latencies)>,
    without_ring: Option<Latencies>,
}

/// How long takes lasted, of which those of the first trials are drawn.
pub(super) fn figure(trials: &[&Trial], baseline: Option<&Baseline>) -> Result<Figure> {
    let title = "Latency by percentile";
    // The others have no latency.
    let measured = trials.iter().filter(|trial| trial.total.taken > 0);
    let lines = Lines {
        rings: measured
            .take(MOST_LINES)
            .map(|trial| (trial.setting.to_string(), trial.latencies()))
            .collect(),
        without_ring: baseline.map(Baseline::latencies),
    };
    let text = text(trials, &lines);
    let picture = match lines.count() {
        0 => None,
        count => {
            let below = LEGEND_LINE * count + 8;
            let height = |format: Format| format.choose(330, 290) + below;
            let draw = |area: &Area<'_>, format| lines.draw(area, format, height(format) - below);
            Some(picture(["latency", title, &text], height, draw)?)
        }
    };
    let without_ring =
        baseline.map(|it| row("no ring".to_owned(), it.latencies(), it.total.taken, 0));
    let of_trial = |trial: &&Trial| {
        let total = &trial.total;
        row(
            trial.setting.to_string(),
            trial.latencies(),
            total.taken,
            total.empties,
        )
    };
    Ok(Figure {
        title,
        text,
        picture,
        head: (["configuration"].into_iter())
            .chain(PERCENTILES.map(|(name, _)| name))
            .chain(["takes", "empties"])
            .collect(),
        rows: without_ring
            .into_iter()
            .chain(trials.iter().map(of_trial))
            .collect(),
    })
}

fn text(trials: &[&Trial], lines: &Lines) -> String {
    let Some((first, latencies)) = lines.rings.first() else {
        return "No latency was measured.".to_owned();
    };
    let mut text = format!(
        "From the moment at which a take was due to its return, on a logarithmic axis, at named \
         percentiles, one line for each configuration. With {first}: {}.",
        in_words(latencies)
    );
    if let Some(latencies) = &lines.without_ring {
        text += &format!(
            " The dotted line is the same load with takes that cost nothing, without a ring and \
             a producer: {}. Lateness that it has, too, is due to the system, which lets threads \
             wait for a core, and not to the ring.",
            in_words(latencies)
        );
    }
    if trials.len() > lines.rings.len() {
        text += &format!(
            " {} of {} configurations are drawn; the table has all of them.",
            lines.rings.len(),
            trials.len()
        );
    }
    let silent = trials.iter().filter(|trial| trial.total.taken == 0).count();
    if silent > 0 {
        text += &format!(" {silent} of them gave no IDs, and have no line.");
    }
    text
}

fn in_words(latencies: &Latencies) -> String {
    let named = PERCENTILES.iter().zip(latencies);
    let figures: Vec<_> = named
        .map(|((name, _), seconds)| format!("{name} {}", time(*seconds)))
        .collect();
    figures.join(", ")
}

impl Lines {
    fn count(&self) -> u32 {
        (self.rings.len() + usize::from(self.without_ring.is_some())) as u32
    }

    fn all(&self) -> impl Iterator<Item = &Latencies> {
        let rings = self.rings.iter().map(|(_, latencies)| latencies);
        rings.chain(&self.without_ring)
    }

    /// The decades, in seconds, between which all figures lie.
    fn decades(&self) -> (f64, f64) {
        let known = self
            .all()
            .flatten()
            .filter(|&&seconds| seconds.is_finite() && seconds > 0.0);
        let (low, high) = known.fold((f64::MAX, f64::MIN), |(low, high), &seconds| {
            (low.min(seconds), high.max(seconds))
        });
        if low > high {
            return (1e-8, 1e-5);
        }
        // A little lower, so that rounding does not leave the lowest without its label.
        let from = 10_f64.powf(low.log10().floor()) * (1.0 - 1e-9);
        let until = 10_f64.powf(high.log10().ceil());
        (from, until.max(from * 10.0))
    }

    /// Draws the chart, and from `top` downwards its legend.
    fn draw(&self, root: &Area<'_>, format: Format, top: u32) -> Result<Vec<Hint>> {
        let (area, _) = root.split_vertically(top);
        let (from, until) = self.decades();
        let last = PERCENTILES.len() as f64 - 1.0;
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .margin_top(28)
            .margin_right(format.choose(28, 22))
            .x_label_area_size(28)
            .y_label_area_size(70)
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
        root.draw(&Text::new("from due to taken", (8, 3), label()))?;
        let points = |latencies: &Latencies| -> Vec<_> {
            let at = |(index, seconds): (usize, &f64)| (index as f64, seconds.clamp(from, until));
            latencies.iter().enumerate().map(at).collect()
        };
        let mut hints = Vec::new();
        let (_, down) = chart.plotting_area().get_pixel_range();
        for (index, (name, _)) in PERCENTILES.iter().enumerate() {
            let at = index as f64;
            let rule = PathElement::new([(at, from), (at, until)], GRID.drawn());
            chart.draw_series([rule])?;
            let (x, y) = chart.backend_coord(&(at, from));
            let place = centred(QUIET.drawn());
            root.draw(&Text::new((*name).to_owned(), (x, y + 16), place))?;
            let half = format.choose(70, 24);
            hints.push(Hint {
                part: [x - half, down.start, x + half, down.end],
                text: self.tell(name, index),
            });
        }
        if let Some(latencies) = &self.without_ring {
            let style = INK.drawn().stroke_width(2);
            chart.draw_series(DashedLineSeries::new(points(latencies), 2, 4, style))?;
        }
        for (index, (_, latencies)) in self.rings.iter().enumerate() {
            let points = points(latencies);
            chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
            for point in &points {
                mark(root, chart.backend_coord(point), index)?;
            }
        }
        let names = self.rings.iter().enumerate();
        let names: Vec<_> = names
            .map(|(index, (name, _))| (index, name.clone()))
            .collect();
        legend(root, top, &names)?;
        if self.without_ring.is_some() {
            let y = legend_name(
                root,
                top,
                names.len(),
                "no ring: what the system adds by itself",
            )?;
            // As the line is drawn.
            for x in (LEGEND_SAMPLE[0]..LEGEND_SAMPLE[1]).step_by(6) {
                let dash = [(x, y), (x + 2, y)];
                root.draw(&PathElement::new(dash, INK.drawn().stroke_width(2)))?;
            }
        }
        Ok(hints)
    }

    /// A percentile of all that is drawn.
    fn tell(&self, name: &str, index: usize) -> String {
        let rings = self
            .rings
            .iter()
            .map(|(ring, latencies)| (ring.as_str(), latencies));
        let all = rings.chain(
            self.without_ring
                .iter()
                .map(|latencies| ("no ring", latencies)),
        );
        let told = all.map(|(name, latencies)| format!("\n{}: {name}", time(latencies[index])));
        name.to_owned() + &told.collect::<String>()
    }
}

/// A row of the table.
fn row(name: String, latencies: Latencies, taken: u64, empties: u64) -> Vec<String> {
    let mut cells = vec![name];
    cells.extend(latencies.map(time));
    cells.extend([taken, empties].map(grouped));
    cells
}
