//! Seconds borrowed from the future, over time.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{
    Area, Format, LEGEND_LINE, Words, beside, label, legend, line, mark, picture, thinned,
};
use super::figure::Figure;
use super::level::seconds;
use super::palette::{GRID, INK, LINES, QUIET};
use super::table::Table;
use crate::units::time;

const SPANS: usize = 120;

/// How far the last ID lay ahead of the clock.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct BorrowCourse {
    /// Of which configuration.
    pub(in super::super) of: String,
    /// Seconds, and seconds borrowed by arithmetic: what was made beyond what the
    /// nodes have.
    pub(in super::super) reckoned: Vec<(f64, f64)>,
    /// The same as the generator tells it, in whole ticks.
    pub(in super::super) borrowed: Vec<(f64, f64)>,
    /// The most that may be borrowed.
    pub(in super::super) limit: f64,
}

impl BorrowCourse {
    pub(super) fn figure(&self) -> Result<Figure> {
        let title = "Seconds borrowed over time";
        let text = self.words();
        let words = Words {
            id: "borrowed",
            title,
            text: &text,
        };
        let names = ["by arithmetic", "in whole ticks"].map(str::to_owned);
        let top = 260;
        let height = |_| top + 2 * LEGEND_LINE + 4;
        let svg = picture(&words, height, |area, format| {
            let (above, _) = area.split_vertically(top);
            self.draw(area, &above, format)?;
            legend(area, top, &names)
        })?;
        Ok(Figure {
            title,
            text,
            picture: Some(svg),
            table: self.table(),
        })
    }

    fn most(&self) -> f64 {
        let all = self.borrowed.iter().chain(&self.reckoned);
        all.map(|point| point.1).fold(0.0, f64::max)
    }

    fn shows_limit(&self) -> bool {
        self.most() * 4.0 >= self.limit
    }

    fn words(&self) -> String {
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
        let start = self.borrowed.first().map_or(0.0, |point| point.0);
        let end = self.borrowed.last().map_or(1.0, |point| point.0);
        let end = end.max(start + 1e-6);
        let highest = match self.shows_limit() {
            true => self.most().max(self.limit),
            false => self.most().max(1e-3),
        };
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(42)
            .y_label_area_size(58)
            .build_cartesian_2d(start..end, 0.0..highest * 1.1)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.drawn())
            .axis_style(QUIET.drawn())
            .label_style(label())
            .axis_desc_style(label())
            .x_labels(format.choose(9, 4))
            .y_labels(5)
            .x_label_formatter(&|at| seconds(*at, end - start))
            .y_label_formatter(&|borrowed| time(*borrowed))
            .x_desc("seconds")
            .draw()?;
        for (index, points) in [&self.reckoned, &self.borrowed].into_iter().enumerate() {
            let points = thinned(points, SPANS);
            chart.draw_series(LineSeries::new(points.iter().copied(), line(index)))?;
            // So many that the line can be followed.
            for point in points.iter().step_by(points.len().div_ceil(12).max(1)) {
                mark(root, chart.backend_coord(point), index)?;
            }
        }
        if self.shows_limit() {
            let ends = [(start, self.limit), (end, self.limit)];
            let style = LINES[4].drawn().stroke_width(2);
            chart.draw_series(DashedLineSeries::new(ends, 7, 5, style))?;
            let (x, y) = chart.backend_coord(&(start, self.limit));
            root.draw(&Text::new("limit", (x + 6, y + 11), beside(INK.drawn())))?;
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let points = thinned(&self.reckoned, SPANS).into_iter();
        let rows = points.map(|(at, reckoned)| {
            let until = self.borrowed.iter().take_while(|point| point.0 <= at);
            let borrowed = until.last().map_or(0.0, |point| point.1);
            [at, reckoned, borrowed]
                .map(|value| format!("{value:.4}"))
                .to_vec()
        });
        Table::new(
            "Seconds borrowed over time",
            &["seconds", "by arithmetic", "in whole ticks"],
            rows.collect(),
        )
    }
}
