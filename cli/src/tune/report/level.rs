//! Level over time, with the threshold and each fill marked.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{
    Area, Format, SPANS, beside, dashed, line, mark, picture, span, thinned, time_chart, value_at,
};
use super::figure::Figure;
use super::palette::{INK, PAPER};
use crate::units::{grouped, short, time};

/// The markers of fills and of empties.
const FILL: usize = 1;
const EMPTY: usize = 4;

/// The level of one ring over time.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Level {
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

impl Level {
    fn threshold_at(&self, at: f64) -> Option<f64> {
        let first = self.thresholds.first().map(|point| point.1);
        value_at(&self.thresholds, at).or(first)
    }

    pub(super) fn figure(&self) -> Result<Figure> {
        let title = "Level over time";
        let text = self.text();
        let draw = |area: &Area<'_>, format| self.draw(area, format);
        let svg = picture(["level", title, &text], |_| 340, draw)?;
        let count = |counts, at| grouped(value_at(counts, at).unwrap_or(0.0) as u64);
        let row = |(at, level): (f64, f64)| {
            let threshold = self.threshold_at(at);
            vec![
                format!("{at:.4}"),
                grouped(level as u64),
                threshold.map_or("none".to_owned(), |slots| grouped(slots as u64)),
                count(&self.fills, at),
                count(&self.empties, at),
            ]
        };
        let head = "seconds, IDs in the ring, threshold, fills so far, empties so far";
        Ok(Figure {
            title,
            picture: Some(svg),
            head: head.split(", ").collect(),
            rows: thinned(&self.levels, SPANS).into_iter().map(row).collect(),
            text,
        })
    }

    fn text(&self) -> String {
        let (start, end) = span(&self.levels);
        let levels = self.levels.iter().map(|point| point.1);
        let lowest = levels.fold(self.capacity as f64, f64::min);
        let all = |counts: &[(f64, f64)]| counts.last().map_or(0, |point| point.1 as u64);
        format!(
            "{}: {} of one run. The level of the ring (line) lies between 0 and the capacity of \
             {} IDs; the lowest was {} IDs, {:.0} % of it. The dashed line is the threshold. Each \
             triangle above is a moment by which one or more fills had ended, {} in all; each cross \
             below one by which takes had found the ring empty, {} in all.",
            self.of,
            time(end - start),
            grouped(self.capacity as u64),
            grouped(lowest as u64),
            100.0 * lowest / self.capacity.max(1) as f64,
            all(&self.fills),
            all(&self.empties),
        )
    }

    fn draw(&self, area: &Area<'_>, format: Format) -> Result<()> {
        let (start, end) = span(&self.levels);
        // Room above for the fills.
        let top = self.capacity as f64 * 1.12;
        let mut chart = time_chart(area, format, (start, end), top, short)?;
        chart.draw_series(LineSeries::new(thinned(&self.levels, SPANS), line(0)))?;
        let thresholds = thinned(&self.thresholds, SPANS);
        let ends = thresholds.iter().skip(1).map(|next| next.0).chain([end]);
        for (&(from, threshold), until) in thresholds.iter().zip(ends) {
            dashed(&mut chart, [(from, threshold), (until, threshold)], 1)?;
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
            let name = Text::new("threshold", (x + 6, y - 11), beside(INK.drawn()));
            area.draw(&name)?;
        }
        Ok(())
    }
}

/// The moments at which a count grew.
fn moments(counts: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    let before = [0.0].into_iter().chain(counts.iter().map(|point| point.1));
    let grown = counts.iter().zip(before);
    grown
        .filter(|(point, before)| point.1 > *before)
        .map(|(point, _)| point.0)
}
