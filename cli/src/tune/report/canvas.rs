//! What all pictures share: sizes, text, markers, legends, and what a pointer shows.

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
}

/// A part of a picture, and what is shown while a pointer rests on it.
#[derive(Clone, Debug)]
pub(super) struct Hint {
    /// Left, top, right and bottom.
    pub(super) part: [i32; 4],
    pub(super) text: String,
}

/// A picture in both formats, of which the style sheet shows one.
///
/// `id` is unique in the page, and made of letters; `title` and `text` are for readers
/// who can't see the picture.
pub(super) fn picture(
    [id, title, text]: [&str; 3],
    height: impl Fn(Format) -> u32,
    draw: impl Fn(&Area<'_>, Format) -> Result<Vec<Hint>>,
) -> Result<String> {
    let mut html = String::new();
    for format in [Format::Wide, Format::Narrow] {
        let size = (format.choose(920, 358), height(format));
        let mut svg = String::new();
        let hints = {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let hints = draw(&area, format)?;
            area.present()?;
            hints
        };
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
            inner = inner.trim_end().trim_end_matches("</svg>"),
        )?;
        write_hints(&mut html, &hints)?;
        html.push_str("</svg>\n");
    }
    Ok(html)
}

/// On top of what is drawn, since that is where a pointer looks first.
fn write_hints(html: &mut String, hints: &[Hint]) -> Result<()> {
    writeln!(html, "<g class=\"hints\" fill=\"transparent\">")?;
    for Hint { part, text } in hints {
        let [left, top, right, bottom] = part;
        writeln!(
            html,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            right - left,
            bottom - top,
            Escaped(text)
        )?;
    }
    writeln!(html, "</g>")?;
    Ok(())
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
pub(super) fn legend(area: &Area<'_>, top: u32, names: &[(usize, String)]) -> Result<()> {
    for (place, (index, name)) in names.iter().enumerate() {
        let y = legend_name(area, top, place, name)?;
        area.draw(&PathElement::new(
            LEGEND_SAMPLE.map(|x| (x, y)),
            line(*index),
        ))?;
        mark(area, ((LEGEND_SAMPLE[0] + LEGEND_SAMPLE[1]) / 2, y), *index)?;
    }
    Ok(())
}

/// The ends of the piece of line before a name in a legend.
pub(super) const LEGEND_SAMPLE: [i32; 2] = [12, 40];

/// Writes a name of a legend, and returns how far down it stands.
pub(super) fn legend_name(area: &Area<'_>, top: u32, place: usize, name: &str) -> Result<i32> {
    let y = (top + LEGEND_LINE * place as u32 + LEGEND_LINE / 2) as i32;
    let at = (LEGEND_SAMPLE[1] + 8, y);
    area.draw(&Text::new(name.to_owned(), at, beside(INK.drawn())))?;
    Ok(y)
}
