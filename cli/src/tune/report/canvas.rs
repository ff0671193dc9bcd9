//! What all pictures share: sizes, text, markers, axes of time.

use std::fmt::Write;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::Escaped;
use super::palette::{GRID, INK, LINES, QUIET};
use crate::drive::measurement::Sample;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// For which width of page a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Wide,
    /// For a phone. Text keeps its size, and there are fewer labels.
    Narrow,
}

impl Format {
    pub(super) fn choose<T>(self, wide: T, narrow: T) -> T {
        match self {
            Self::Wide => wide,
            Self::Narrow => narrow,
        }
    }
}

/// A picture in both formats, of which the style sheet shows one.
///
/// `id` is unique in the page, and made of letters; `title` and `text` are for readers
/// who can't see the picture.
pub(super) fn picture(
    [id, title, text]: [&str; 3],
    height: impl Fn(Format) -> u32,
    draw: impl Fn(&Area<'_>, Format) -> Result<()>,
) -> Result<String> {
    let mut html = String::new();
    for format in [Format::Wide, Format::Narrow] {
        let size = (format.choose(920, 358), height(format));
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            draw(&area, format)?;
            area.present()?;
        }
        // A head with the title and the text takes the place of the backend's.
        let inner = svg.split_once(">\n").map_or(&*svg, |(_, inner)| inner);
        let name = format.choose("wide", "narrow");
        let (width, height) = size;
        write!(
            html,
            "<svg class=\"{name}\" role=\"img\" aria-labelledby=\"{id}-{name}-title \
             {id}-{name}-text\" viewBox=\"0 0 {width} {height}\">\n\
             <title id=\"{id}-{name}-title\">{}</title>\n\
             <desc id=\"{id}-{name}-text\">{}</desc>\n{inner}",
            Escaped(title),
            Escaped(text),
        )?;
    }
    Ok(html)
}

/// Height of text on the page, in pixels, times the factor of the backend.
const TEXT: f64 = 13.0 * 1.24;

pub(super) fn text(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", TEXT).into_font().color(&colour)
}

/// What stands along the axes.
pub(super) fn label() -> TextStyle<'static> {
    text(QUIET.drawn())
}

pub(super) fn centred(colour: RGBColor) -> TextStyle<'static> {
    text(colour).pos(Pos::new(HPos::Center, VPos::Center))
}

/// Text that begins at a point, half above and half below.
pub(super) fn beside(colour: RGBColor) -> TextStyle<'static> {
    text(colour).pos(Pos::new(HPos::Left, VPos::Center))
}

/// The style of the line with this index.
pub(super) fn line(index: usize) -> ShapeStyle {
    LINES[index % LINES.len()].drawn().stroke_width(2)
}

/// Draws the marker of the line with this index: six shapes, which differ
/// without their colours.
pub(super) fn mark(area: &Area<'_>, (x, y): (i32, i32), index: usize) -> Result<()> {
    const R: i32 = 4;
    let colour = LINES[index % LINES.len()].drawn();
    let thin = colour.stroke_width(2);
    let corners: &[(i32, i32)] = match index % 6 {
        0 => return Ok(area.draw(&Circle::new((x, y), R, colour.filled()))?),
        1 => &[(0, -R - 1), (R + 1, R), (-R - 1, R)],
        2 => &[(-R, -R), (R, -R), (R, R), (-R, R)],
        3 => &[(0, -R - 2), (R + 2, 0), (0, R + 2), (-R - 2, 0)],
        4 => return Ok(area.draw(&Cross::new((x, y), R, thin))?),
        _ => return Ok(area.draw(&Circle::new((x, y), R, thin))?),
    };
    let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    Ok(area.draw(&Polygon::new(corners, colour.filled()))?)
}

/// One line of a legend takes this many pixels.
pub(super) const LEGEND_LINE: u32 = 20;

/// Says which line is which, from `top` downwards, one below the other.
pub(super) fn legend(area: &Area<'_>, top: u32, names: &[String]) -> Result<()> {
    const LEFT: i32 = 12;
    const LENGTH: i32 = 28;
    for (index, name) in names.iter().enumerate() {
        let y = (top + LEGEND_LINE * index as u32 + LEGEND_LINE / 2) as i32;
        area.draw(&PathElement::new(
            [(LEFT, y), (LEFT + LENGTH, y)],
            line(index),
        ))?;
        mark(area, (LEFT + LENGTH / 2, y), index)?;
        area.draw(&Text::new(
            name.clone(),
            (LEFT + LENGTH + 8, y),
            beside(INK.drawn()),
        ))?;
    }
    Ok(())
}

/// A chart over time.
pub(super) type TimeChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The axes of a chart over `across`, in seconds, from 0 up to `top`.
pub(super) fn time_chart<'a, 'b>(
    area: &'a Area<'b>,
    format: Format,
    (start, end): (f64, f64),
    top: f64,
    value: fn(f64) -> String,
) -> Result<TimeChart<'a, 'b>> {
    let decimals = match end - start {
        0.0..0.05 => 3,
        0.05..0.5 => 2,
        0.5..5.0 => 1,
        _ => 0,
    };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(start..end, 0.0..top)?;
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
        .x_label_formatter(&|at| format!("{at:.decimals$}"))
        .y_label_formatter(&|at| value(*at))
        .x_desc("seconds")
        .draw()?;
    Ok(chart)
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
    (start, end.max(start + 1e-6))
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
}
