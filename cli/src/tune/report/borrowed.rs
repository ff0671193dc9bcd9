//! Seconds borrowed from the future, over time.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{
    Area, Format, LEGEND_LINE, SPANS, beside, dashed, legend, line, mark, picture, span, thinned,
    time_chart, value_at,
};
use super::figure::Figure;
use super::palette::INK;
use crate::units::time;

/// How far the last ID lay ahead of the clock.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Borrowed {
    /// Of which configuration.
    pub(in super::super) of: String,
    /// Seconds, and seconds borrowed by arithmetic: IDs made beyond what the nodes have.
    pub(in super::super) calculated: Vec<(f64, f64)>,
    /// The same as the generator counts it, in whole ticks.
    pub(in super::super) borrowed: Vec<(f64, f64)>,
    /// The most that may be borrowed.
    pub(in super::super) limit: f64,
}

impl Borrowed {
    pub(super) fn figure(&self) -> Result<Figure> {
        let title = "Seconds borrowed over time";
        let text = self.text();
        let names = ["by arithmetic", "in whole ticks"].map(str::to_owned);
        let top = 260;
        let height = |_| top + 2 * LEGEND_LINE + 4;
        let svg = picture(["borrowed", title, &text], height, |area, format| {
            let (above, _) = area.split_vertically(top);
            self.draw(area, &above, format)?;
            legend(area, top, &names)
        })?;
        let row = |(at, calculated)| {
            let borrowed = value_at(&self.borrowed, at).unwrap_or(0.0);
            let values = [at, calculated, borrowed];
            values.map(|value| format!("{value:.4}")).to_vec()
        };
        let points = thinned(&self.calculated, SPANS).into_iter();
        Ok(Figure {
            title,
            text,
            picture: Some(svg),
            head: vec!["seconds", "by arithmetic", "in whole ticks"],
            rows: points.map(row).collect(),
        })
    }

    fn most(&self) -> f64 {
        let all = self.borrowed.iter().chain(&self.calculated);
        all.map(|point| point.1).fold(0.0, f64::max)
    }

    fn shows_limit(&self) -> bool {
        self.most() * 4.0 >= self.limit
    }

    fn text(&self) -> String {
        let place = match self.shows_limit() {
            true => "the dashed line",
            false => "beyond the picture",
        };
        format!(
            "{}: how far the last ID that was made lay ahead of the clock, at the most {}: by \
             arithmetic, and as the generator counts it, in whole ticks of its layout. The limit \
             is {} ({place}).",
            self.of,
            time(self.most()),
            time(self.limit),
        )
    }

    fn draw(&self, root: &Area<'_>, area: &Area<'_>, format: Format) -> Result<()> {
        let (start, end) = span(&self.borrowed);
        let highest = match self.shows_limit() {
            true => self.most().max(self.limit),
            false => self.most().max(1e-3),
        };
        let mut chart = time_chart(area, format, (start, end), highest * 1.1, time)?;
        for (index, points) in [&self.calculated, &self.borrowed].into_iter().enumerate() {
            let points = thinned(points, SPANS);
            chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
            // So many that the line can be followed.
            for point in points.iter().step_by(points.len().div_ceil(12).max(1)) {
                mark(root, chart.backend_coord(point), index)?;
            }
        }
        if self.shows_limit() {
            dashed(&mut chart, [(start, self.limit), (end, self.limit)], 4)?;
            let (x, y) = chart.backend_coord(&(start, self.limit));
            root.draw(&Text::new("limit", (x + 6, y + 11), beside(INK.drawn())))?;
        }
        Ok(())
    }
}
