//! The costs as a picture.

use std::error::Error;
use std::fs;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Costs, STEP, median};

/// Pixels of the whole picture, with a panel for each database side by side.
const SIZE: (u32, u32) = (1200, 440);

/// One for each kind: what is drawn, and what takes its place where dark pages are preferred.
const COLOURS: [(u32, u32); 4] = [
    (0x0060A8, 0x6CB6F5),
    (0xA84300, 0xF59A5B),
    (0x00704E, 0x4CC9A0),
    (0x7A3FA0, 0xC9A0EC),
];

/// Paper, and what is written on it.
const REST: [(u32, u32); 2] = [(0xFFFFFF, 0x14171A), (0x000000, 0xE8EAED)];

/// Steps that are drawn as one point.
const SMOOTH: usize = 4;

/// Draws, for each database, how long an insert took against the rows that were there.
pub fn draw(file: &str, databases: &[Costs]) -> Result<(), Box<dyn Error>> {
    let mut svg = String::new();
    {
        let picture = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        picture.fill(&WHITE)?;
        for (area, costs) in picture
            .split_evenly((1, databases.len()))
            .iter()
            .zip(databases)
        {
            draw_panel(area, costs)?;
        }
        picture.present()?;
    }
    let mut style = String::from("<style>\n@media (prefers-color-scheme: dark) {\n");
    for (light, dark) in REST.into_iter().chain(COLOURS) {
        for property in ["fill", "stroke"] {
            style += &format!("[{property}=\"#{light:06X}\"] {{ {property}: #{dark:06X} }}\n");
        }
    }
    style += "}\n</style>\n";
    let (head, rest) = svg.split_once('\n').unwrap_or((&svg, ""));
    fs::write(file, format!("{head}\n{style}{rest}"))?;
    Ok(())
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    costs: &Costs,
) -> Result<(), Box<dyn Error>> {
    let lines: Vec<(&str, Vec<(f64, f64)>)> = costs
        .kinds
        .iter()
        .map(|(kind, rounds)| (kind.name(), line(rounds)))
        .collect();
    let points = || lines.iter().flat_map(|(_, line)| line);
    let rows = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);

    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_right(28)
        .caption(
            format!("{}: cost of an insert", costs.database),
            ("sans-serif", 22),
        )
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..rows, 0.0..highest * 1.25)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("rows in the table, thousands")
        .y_desc("us a row")
        .draw()?;
    for ((name, line), (colour, _)) in lines.iter().zip(COLOURS) {
        let [_, red, green, blue] = colour.to_be_bytes();
        let style = RGBColor(red, green, blue).stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.iter().copied(), style))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// Thousands of rows, and microseconds a row in the median of the rounds.
fn line(rounds: &[super::Cost]) -> Vec<(f64, f64)> {
    let steps = rounds
        .iter()
        .map(|cost| cost.steps.len())
        .min()
        .unwrap_or(0);
    (0..steps / SMOOTH)
        .map(|point| {
            let range = point * SMOOTH..(point + 1) * SMOOTH;
            let cost = median(rounds.iter().map(|cost| {
                let time: f64 = cost.steps[range.clone()]
                    .iter()
                    .map(|step| step.as_secs_f64())
                    .sum();
                time * 1e6 / (SMOOTH * STEP) as f64
            }));
            ((range.end * STEP) as f64 / 1e3, cost)
        })
        .collect()
}
