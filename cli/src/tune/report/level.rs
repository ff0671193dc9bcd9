//! Level over time, with the threshold and each fill marked.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{Area, Format, Words, beside, label, line, mark, picture, thinned};
use super::figure::Figure;
use super::palette::{GRID, INK, LINES, PAPER, QUIET};
use super::table::Table;
use crate::units::{grouped, short, time};

/// Spans into which a picture divides its time.
const SPANS: usize = 120;

/// The markers of fills and of empties.
const FILL: usize = 1;
const EMPTY: usize = 4;

/// How the level went, in one play of one configuration.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LevelCourse {
    /// Of which configuration.
    pub(in super::super) of: String,
    pub(in super::super) capacity: usize,
    /// Seconds, and the threshold from then on. One for a fixed threshold.
    pub(in super::super) thresholds: Vec<(f64, f64)>,
    /// Seconds, and IDs in the ring.
    pub(in super::super) levels: Vec<(f64, f64)>,
    /// Seconds, and how many fills ended by then.
    pub(in super::super) fills: Vec<(f64, f64)>,
    /// Seconds, and how many takes had found the ring empty by then.
    pub(in super::super) empties: Vec<(f64, f64)>,
}

impl LevelCourse {
    fn span(&self) -> (f64, f64) {
        let start = self.levels.first().map_or(0.0, |point| point.0);
        let end = self.levels.last().map_or(1.0, |point| point.0);
        (start, end.max(start + 1e-6))
    }

    fn lowest(&self) -> f64 {
        let levels = self.levels.iter().map(|point| point.1);
        levels.fold(self.capacity as f64, f64::min)
    }

    fn threshold_at(&self, at: f64) -> Option<f64> {
        let until = self.thresholds.iter().take_while(|point| point.0 <= at);
        until
            .last()
            .or(self.thresholds.first())
            .map(|point| point.1)
    }

    pub(super) fn figure(&self) -> Result<Figure> {
        let words = self.words();
        let title = "Level over time";
        let words = Words {
            id: "level",
            title,
            text: &words,
        };
        let svg = picture(&words, |_| 340, |area, format| self.draw(area, format))?;
        Ok(Figure {
            title,
            text: words.text.to_owned(),
            picture: Some(svg),
            table: self.table(),
        })
    }

    fn words(&self) -> String {
        let (start, end) = self.span();
        let lowest = self.lowest();
        format!(
            "{}: {} of one play. The level of the ring (line) lies between 0 and the capacity of \
             {} IDs; the lowest was {} IDs, {:.0} % of it. The dashed line is the threshold. Each \
             triangle above is a moment by which one or more fills had ended, {} in all; each cross \
             below one by which takes had found the ring empty, {} in all.",
            self.of,
            time(end - start),
            grouped(self.capacity as u64),
            grouped(lowest as u64),
            100.0 * lowest / self.capacity.max(1) as f64,
            count_by(&self.fills, f64::MAX),
            count_by(&self.empties, f64::MAX),
        )
    }

    fn draw(&self, area: &Area<'_>, format: Format) -> Result<()> {
        let (start, end) = self.span();
        // Room above for the fills.
        let top = self.capacity as f64 * 1.12;
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(42)
            .y_label_area_size(52)
            .build_cartesian_2d(start..end, 0.0..top)?;
        let across = end - start;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.drawn())
            .axis_style(QUIET.drawn())
            .label_style(label())
            .axis_desc_style(label())
            .x_labels(format.choose(9, 4))
            .y_labels(6)
            .x_label_formatter(&|at| seconds(*at, across))
            .y_label_formatter(&|level| short(*level))
            .x_desc("seconds")
            .draw()?;

        let levels = thinned(&self.levels, SPANS);
        chart.draw_series(LineSeries::new(levels, line(0)))?;
        for (from, to, threshold) in self.steps(end) {
            let ends = [(from, threshold), (to, threshold)];
            let style = LINES[1].drawn().stroke_width(2);
            chart.draw_series(DashedLineSeries::new(ends, 7, 5, style))?;
        }
        for at in moments(&self.fills) {
            let at = chart.backend_coord(&(at, self.capacity as f64 * 1.06));
            mark(area, at, FILL)?;
        }
        for at in moments(&self.empties) {
            mark(area, chart.backend_coord(&(at, 0.0)), EMPTY)?;
        }
        if let Some(threshold) = self.threshold_at(start) {
            let (x, y) = chart.backend_coord(&(start, threshold));
            // Lines may run through here.
            let behind = [(x + 2, y - 20), (x + 74, y - 3)];
            area.draw(&Rectangle::new(behind, PAPER.drawn().filled()))?;
            let words = Text::new("threshold", (x + 6, y - 11), beside(INK.drawn()));
            area.draw(&words)?;
        }
        Ok(())
    }

    /// From when, until when, which threshold.
    fn steps(&self, end: f64) -> Vec<(f64, f64, f64)> {
        let thin = thinned(&self.thresholds, SPANS);
        let ends = thin.iter().skip(1).map(|next| next.0).chain([end]);
        let steps = thin.iter().zip(ends);
        steps
            .map(|(&(from, slots), to)| (from, to, slots))
            .collect()
    }

    fn table(&self) -> Table {
        let rows = thinned(&self.levels, SPANS).into_iter().map(|(at, level)| {
            let threshold = self.threshold_at(at);
            vec![
                format!("{at:.4}"),
                grouped(level as u64),
                threshold.map_or("none".to_owned(), |slots| grouped(slots as u64)),
                grouped(count_by(&self.fills, at)),
                grouped(count_by(&self.empties, at)),
            ]
        });
        Table::new(
            "Level over time",
            &[
                "seconds",
                "IDs in the ring",
                "threshold",
                "fills so far",
                "empties so far",
            ],
            rows.collect(),
        )
    }
}

/// The moments at which a count grew, as far as they were told apart.
fn moments(counts: &[(f64, f64)]) -> Vec<f64> {
    let mut before = 0.0;
    let mut moments = Vec::new();
    for &(at, count) in counts {
        if count > before {
            moments.push(at);
        }
        before = count;
    }
    moments
}

/// What had been counted by a moment.
fn count_by(counts: &[(f64, f64)], at: f64) -> u64 {
    let until = counts.iter().take_while(|point| point.0 <= at);
    until.last().map_or(0, |point| point.1 as u64)
}

/// A moment on an axis that spans `across` seconds.
pub(super) fn seconds(at: f64, across: f64) -> String {
    let decimals = match across {
        0.0..0.05 => 3,
        0.05..0.5 => 2,
        0.5..5.0 => 1,
        _ => 0,
    };
    format!("{at:.decimals$}")
}
