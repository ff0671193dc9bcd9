//! What all pictures share: sizes, text, markers, and the frame for readers who
//! can't see them.

use std::fmt::Write;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::Escaped;
use super::palette::{INK, LINES, QUIET};

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

    fn name(self) -> &'static str {
        self.choose("wide", "narrow")
    }

    /// Pixels across.
    fn width(self) -> u32 {
        self.choose(920, 358)
    }
}

/// What a picture is called, and what it tells.
pub(super) struct Words<'a> {
    /// Unique in the page; letters only.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) text: &'a str,
}

/// A picture in both formats, of which the style sheet shows one.
pub(super) fn picture(
    words: &Words<'_>,
    height: impl Fn(Format) -> u32,
    draw: impl Fn(&Area<'_>, Format) -> Result<()>,
) -> Result<String> {
    let mut html = String::new();
    for format in [Format::Wide, Format::Narrow] {
        let size = (format.width(), height(format));
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            draw(&area, format)?;
            area.present()?;
        }
        frame(&mut html, words, format, size, &svg)?;
    }
    Ok(html)
}

/// Puts a head that tells its title and text in place of the one of `svg`.
fn frame(
    html: &mut String,
    words: &Words<'_>,
    format: Format,
    (width, height): (u32, u32),
    svg: &str,
) -> Result<()> {
    let inner = svg.split_once(">\n").map_or(svg, |(_, inner)| inner);
    let id = format!("{}-{}", words.id, format.name());
    write!(
        html,
        "<svg class=\"{}\" role=\"img\" aria-labelledby=\"{id}-title {id}-text\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>\n{inner}",
        format.name(),
        Escaped(words.title),
        Escaped(words.text),
    )?;
    Ok(())
}

/// Height of text on the page, in pixels, as the backend wants it told.
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

/// Draws the marker of the line with this index: six shapes, told apart without
/// their colours.
pub(super) fn mark(area: &Area<'_>, (x, y): (i32, i32), index: usize) -> Result<()> {
    const R: i32 = 4;
    let colour = LINES[index % LINES.len()].drawn();
    let thin = colour.stroke_width(2);
    match index % 6 {
        0 => area.draw(&Circle::new((x, y), R, colour.filled()))?,
        1 => area.draw(&polygon(
            [(x, y - R - 1), (x + R + 1, y + R), (x - R - 1, y + R)],
            colour,
        ))?,
        2 => area.draw(&Rectangle::new(
            [(x - R, y - R), (x + R, y + R)],
            colour.filled(),
        ))?,
        3 => area.draw(&polygon(
            [
                (x, y - R - 2),
                (x + R + 2, y),
                (x, y + R + 2),
                (x - R - 2, y),
            ],
            colour,
        ))?,
        4 => {
            area.draw(&PathElement::new([(x - R, y - R), (x + R, y + R)], thin))?;
            area.draw(&PathElement::new([(x - R, y + R), (x + R, y - R)], thin))?;
        }
        _ => area.draw(&Circle::new((x, y), R, thin))?,
    }
    Ok(())
}

fn polygon<const N: usize>(corners: [(i32, i32); N], colour: RGBColor) -> Polygon<(i32, i32)> {
    Polygon::new(corners, colour.filled())
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

/// Of `points`, in ascending order of time, so few that a picture holds them:
/// from each of `spans` equal spans the first, the lowest, the highest and the last.
pub(super) fn thinned(points: &[(f64, f64)], spans: usize) -> Vec<(f64, f64)> {
    let (Some(&(start, _)), Some(&(end, _))) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() <= spans * 4 || end <= start {
        return points.to_vec();
    }
    let span_of = |at: f64| (((at - start) / (end - start)) * spans as f64) as usize;
    let mut kept = Vec::with_capacity(spans * 4);
    for span in points.chunk_by(|one, other| span_of(one.0) == span_of(other.0)) {
        let by_value = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let lowest = span.iter().min_by(by_value);
        let highest = span.iter().max_by(by_value);
        let mut four: Vec<_> = [span.first(), lowest, highest, span.last()]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        four.sort_by(|one, other| one.0.total_cmp(&other.0));
        four.dedup();
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
        let thin = thinned(&points, 50);
        assert!(thin.len() <= 50 * 4 + 4, "{}", thin.len());
        for point in [points[0], points[5_555], points[7_777], points[9_999]] {
            assert!(thin.contains(&point), "{point:?}");
        }
        assert!(thin.is_sorted_by(|one, other| one.0 <= other.0));
    }

    #[test]
    fn what_is_few_stays_as_it_is() {
        let points = [(0.0, 1.0), (1.0, 1.0)];
        assert_eq!(thinned(&points, 50), points);
        assert_eq!(thinned(&[], 50), []);
    }
}
