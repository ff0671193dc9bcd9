//! Charts over time: their axes, the names of their lines beside them, and their hints.

use std::ops::Range;

use anyhow::Result;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::canvas::{Area, Format, Hint, beside, label};
use super::palette::{Colour, GRID, LINES, QUIET};
use crate::drive::measurement::Sample;

/// A chart with its axes.
pub(super) type TimeChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Values>>;

/// An axis of values from 0 on, of which some are written beside it.
#[derive(Clone)]
pub(super) struct Values {
    all: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for Values {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.all.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.all.range()
    }
}

/// What a chart over time is about.
#[derive(Clone, Debug)]
pub(super) struct TimeAxes<'a> {
    /// What goes upwards, with its unit.
    pub(super) what: &'a str,
    /// The first and the last moment, in seconds.
    pub(super) across: (f64, f64),
    /// Where the values end, which begin at 0.
    pub(super) top: f64,
    /// Values that are written beside the chart, in ascending order.
    pub(super) ticks: Vec<f64>,
    pub(super) value: fn(f64) -> String,
    /// Whether lines have their names at their right ends.
    pub(super) names_lines: bool,
}

impl TimeAxes<'_> {
    pub(super) fn draw<'a, 'b>(
        &self,
        area: &'a Area<'b>,
        format: Format,
    ) -> Result<TimeChart<'a, 'b>> {
        let (start, end) = self.across;
        // Three digits tell the labels apart.
        let decimals = (5.0 / (end - start)).log10().ceil().clamp(0.0, 6.0) as usize;
        let upwards = Values {
            all: (0.0..self.top).into(),
            ticks: self.ticks.clone(),
        };
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_top(28)
            .margin_right(if self.names_lines {
                format.choose(160, 86)
            } else {
                30
            })
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(start..end, upwards)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.drawn())
            .axis_style(QUIET.drawn())
            .label_style(label())
            .axis_desc_style(label())
            .x_labels(format.choose(9, 4))
            .x_label_formatter(&|at| format!("{at:.decimals$}"))
            .y_label_formatter(&|at| (self.value)(*at))
            .x_desc("seconds")
            .draw()?;
        area.draw(&Text::new(self.what.to_owned(), (8, 3), label()))?;
        Ok(chart)
    }
}

/// Values from 0 to `top`, so few and so round that they can be read.
pub(super) fn ticks(top: f64) -> Vec<f64> {
    if !(top.is_finite() && top > 0.0) {
        return vec![0.0];
    }
    let step = round_below(top / 3.0);
    (0..)
        .map(|index| f64::from(index) * step)
        .take_while(|&at| at <= top)
        .collect()
}

/// The largest of 1, 2, 5, 10 and so on that is no larger than `value`, which is positive.
pub(super) fn round_below(value: f64) -> f64 {
    let decade = 10_f64.powi(value.log10().floor() as i32);
    let steps = [5.0, 2.0, 1.0].map(|step| step * decade);
    // A little above, since a tenth has no exact form.
    let fits = steps.into_iter().find(|&step| step <= value * (1.0 + 1e-9));
    fits.unwrap_or(decade)
}

/// A line that has its name at its right end.
pub(super) struct LineName {
    pub(super) value: f64,
    pub(super) wide: String,
    pub(super) narrow: &'static str,
    pub(super) colour: Colour,
}

/// Writes the names beside the chart, where no data are, in the order of their values.
pub(super) fn name_lines(
    area: &Area<'_>,
    chart: &TimeChart<'_, '_>,
    format: Format,
    mut names: Vec<LineName>,
) -> Result<()> {
    names.sort_by(|one, other| other.value.total_cmp(&one.value));
    let (across, down) = pixels(chart);
    let height = |name: &LineName| chart.backend_coord(&(0.0, name.value)).1;
    let mut heights: Vec<_> = names.iter().map(height).collect();
    spread(&mut heights, down);
    for (name, height) in names.into_iter().zip(heights) {
        let text = format.choose(name.wide, name.narrow.to_owned());
        let place = (across.end + 8, height);
        area.draw(&Text::new(text, place, beside(name.colour.drawn())))?;
    }
    Ok(())
}

/// Names are so many pixels apart, at the least.
const APART: i32 = 17;

/// Moves `heights`, in ascending order, apart from each other and into `range`, which has
/// room for them.
fn spread(heights: &mut [i32], range: Range<i32>) {
    let mut least = range.start;
    for height in heights.iter_mut() {
        *height = least.max(*height);
        least = *height + APART;
    }
    let mut most = range.end;
    for height in heights.iter_mut().rev() {
        *height = most.min(*height);
        most = *height - APART;
    }
}

/// The columns and rows of pixels that the values of a chart lie in.
pub(super) fn pixels(chart: &TimeChart<'_, '_>) -> (Range<i32>, Range<i32>) {
    chart.plotting_area().get_pixel_range()
}

/// Hints for the spans into which the time of a chart is divided, side by side, from what
/// `tell` says of one.
pub(super) fn hints(
    chart: &TimeChart<'_, '_>,
    format: Format,
    (start, end): (f64, f64),
    tell: impl Fn(f64, f64) -> Option<String>,
) -> Vec<Hint> {
    let count = format.choose(SPANS, SPANS / 3);
    let (across, down) = pixels(chart);
    let at = |index: usize| start + (end - start) * index as f64 / count as f64;
    let place = |index: usize| across.start + across.len() as i32 * index as i32 / count as i32;
    let hint = |index: usize| {
        let part = [place(index), down.start, place(index + 1), down.end];
        let text = tell(at(index), at(index + 1))?;
        Some(Hint { part, text })
    };
    (0..count).filter_map(hint).collect()
}

/// A dashed line between two points of a chart.
pub(super) fn dashed(
    chart: &mut TimeChart<'_, '_>,
    ends: [(f64, f64); 2],
    colour: usize,
) -> Result<()> {
    let style = LINES[colour].drawn().stroke_width(2);
    chart.draw_series(DashedLineSeries::new(ends, 7, 5, style))?;
    Ok(())
}

/// The first and the last moment of `samples`, apart from each other.
pub(super) fn span(samples: &[Sample]) -> (f64, f64) {
    let start = samples.first().map_or(0.0, |sample| sample.seconds);
    let end = samples.last().map_or(1.0, |sample| sample.seconds);
    (start, end.max(start + 1e-3))
}

/// Spans into which a picture divides its time.
const SPANS: usize = 120;

/// Of `items`, in ascending order of time, so few that a picture holds them: from each
/// span the first, the lowest, the highest and the last. `point` is an item's time and
/// value.
pub(super) fn thinned<T: Copy>(items: &[T], point: impl Fn(&T) -> (f64, f64)) -> Vec<T> {
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
        return Vec::new();
    };
    let (start, end) = (point(first).0, point(last).0);
    if items.len() <= SPANS * 4 || end <= start {
        return items.to_vec();
    }
    let span_of = |item: &T| (((point(item).0 - start) / (end - start)) * SPANS as f64) as usize;
    let mut kept = Vec::with_capacity(SPANS * 4);
    for span in items.chunk_by(|one, other| span_of(one) == span_of(other)) {
        let by_value = |one: &&T, other: &&T| point(one).1.total_cmp(&point(other).1);
        let lowest = span.iter().min_by(by_value);
        let highest = span.iter().max_by(by_value);
        let four = [span.first(), lowest, highest, span.last()];
        let mut four: Vec<T> = four.into_iter().flatten().copied().collect();
        four.sort_by(|one, other| point(one).0.total_cmp(&point(other).0));
        four.dedup_by_key(|item| point(item));
        kept.extend(four);
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_the_extremes() {
        let mut points: Vec<_> = (0..10_000)
            .map(|at| (f64::from(at), f64::from(at % 100)))
            .collect();
        points[5_555].1 = -3.0;
        points[7_777].1 = 1e6;
        let thin = thinned(&points, |&point| point);
        assert!(thin.len() <= SPANS * 4 + 4, "{}", thin.len());
        for point in [points[0], points[5_555], points[7_777], points[9_999]] {
            assert!(thin.contains(&point), "{point:?}");
        }
        assert!(thin.is_sorted_by(|one, other| one.0 <= other.0));
        for few in [&[], &points[..100]] {
            assert_eq!(thinned(few, |&point| point), few);
        }
    }

    #[test]
    fn ticks_are_few_and_round() {
        for (top, values) in [
            (1.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (44.0, vec![0.0, 10.0, 20.0, 30.0, 40.0]),
            (3e-6, vec![0.0, 1e-6, 2e-6, 3e-6]),
            (0.0, vec![0.0]),
            (f64::NAN, vec![0.0]),
        ] {
            let found = ticks(top);
            let pairs = found.iter().zip(&values);
            let is_near = pairs.clone().all(|(a, b)| (a - b).abs() <= 1e-9 * b);
            assert!(found.len() == values.len() && is_near, "{top}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn ticks_are_neither_one_nor_too_many(top in 1e-9..1e15_f64) {
            prop_assert!((3..=8).contains(&ticks(top).len()), "{:?}", ticks(top));
        }

        #[test]
        fn names_that_are_spread_do_not_touch_and_stay_in_their_order(
            mut heights in prop::collection::vec(-50..400_i32, 0..6),
        ) {
            heights.sort_unstable();
            spread(&mut heights, 28..290);
            prop_assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= APART));
            prop_assert!(heights.iter().all(|height| (28..=290).contains(height)));
        }
    }
}
