//! The tables as a picture.

use std::error::Error;
use std::fs;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Axis, Line};

/// Pixels of the whole picture, which has two panels in each direction.
const SIZE: (u32, u32) = (1200, 840);

/// The range of costs shown, in nanoseconds.
const NANOS: Range<f64> = 0.5..100.0;

/// Colours that stand out from paper, in the light theme and in the dark one.
const COLOURS: [Themed; 4] = [
    Themed(0x0060A8, 0x6CB6F5),
    Themed(0x00704E, 0x4CC9A0),
    Themed(0xA84300, 0xF59A5B),
    Themed(0x7A3FA0, 0xC9A0EC),
];

/// Paper, and what is written on it.
const REST: [Themed; 2] = [Themed(0xFFFFFF, 0x14171A), Themed(0x000000, 0xE8EAED)];

/// A colour that is drawn, and what takes its place where dark pages are preferred.
#[derive(Clone, Copy)]
struct Themed(u32, u32);

impl Themed {
    fn drawn(self) -> RGBColor {
        let [_, red, green, blue] = self.0.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// Draws a panel for each axis into an SVG file.
pub(crate) fn draw(file: &str, panels: &[(Axis, Vec<Line>)]) -> Result<(), Box<dyn Error>> {
    let mut svg = String::new();
    {
        let picture = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        picture.fill(&WHITE)?;
        for (area, (axis, lines)) in picture.split_evenly((2, 2)).iter().zip(panels) {
            draw_panel(area, axis, lines)?;
        }
        picture.present()?;
    }
    let (head, rest) = svg.split_once('\n').unwrap_or((&svg, ""));
    fs::write(file, format!("{head}\n{}{rest}", style()))?;
    Ok(())
}

/// The rules that put the dark colours in place.
fn style() -> String {
    let mut style = String::from("<style>\n@media (prefers-color-scheme: dark) {\n");
    for Themed(light, dark) in REST.into_iter().chain(COLOURS) {
        for property in ["fill", "stroke"] {
            style += &format!("[{property}=\"#{light:06X}\"] {{ {property}: #{dark:06X} }}\n");
        }
    }
    style + "}\n</style>\n"
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    axis: &Axis,
    lines: &[Line],
) -> Result<(), Box<dyn Error>> {
    // Positions are spaced evenly: most axes double or quadruple.
    let last = axis.positions.len() - 1;
    let label = |&index: &usize| match axis.positions.get(index) {
        Some(position) if axis.doubles => format!("2^{}", position.ilog2()),
        Some(position) => position.to_string(),
        None => String::new(),
    };

    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_right(28)
        .caption(
            format!("Live cost against {}", axis.name),
            ("sans-serif", 22),
        )
        .x_label_area_size(30)
        .y_label_area_size(56)
        .build_cartesian_2d(0..last, NANOS.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(axis.positions.len())
        .x_label_formatter(&label)
        .y_desc("ns an ID")
        .draw()?;

    for (line, colour) in lines.iter().zip(COLOURS) {
        let style = colour.drawn().stroke_width(2);
        let costs = line.costs.iter().enumerate();
        let points = costs.map(|(index, (_, cost))| (index, cost.live));
        let consumers = match line.consumers {
            1 => "1 consumer",
            _ => "2 consumers",
        };
        chart
            .draw_series(LineSeries::new(points, style).point_size(3))?
            .label(format!("{}, {consumers}", line.batch))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
