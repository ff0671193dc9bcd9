//! A chart of lines as SVG, once for wide pages and once for narrow ones.
//!
//! Nothing is written within the axes, so no text lies on data. Colours are variables of the
//! page's style sheet, which has a light and a dark form.

use std::fmt;

/// Room around the axes, in pixels.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BELOW: f64 = 46.0;
const HEIGHT: f64 = 200.0;
const LEGEND: f64 = 20.0;

/// Lines over two axes.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Names the elements; unique in the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The description of the picture.
    pub(super) text: String,
    /// What the vertical axis means; the horizontal one likewise.
    pub(super) up: &'static str,
    pub(super) across: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// Values from one end to the other, and those that have a label.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) until: f64,
    pub(super) labels: Vec<(f64, String)>,
}

/// Points, in order.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Dashed,
    /// A line with a mark at each point.
    Marked,
}

impl Line {
    pub(super) fn new(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().collect(),
            style,
        }
    }
}

impl Axis {
    /// From 0 to a bit more than `most`, with about `count` round labels.
    pub(super) fn from_zero(most: f64, count: f64, label: impl Fn(f64) -> String) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_below(most / count);
        let last = (most / step).ceil() as u32;
        Self {
            from: 0.0,
            until: most * 1.05,
            labels: (0..=last)
                .map(|index| f64::from(index) * step)
                .filter(|&at| at <= most * 1.05)
                .map(|at| (at, label(at)))
                .collect(),
        }
    }

    /// Powers of ten, with a label at each that is whole.
    pub(super) fn powers(from: f64, until: f64, label: impl Fn(i32) -> String) -> Self {
        let whole = from.ceil() as i32..=until.floor() as i32;
        Self {
            from,
            until,
            labels: whole.map(|power| (power.into(), label(power))).collect(),
        }
    }

    /// One label beside the other.
    pub(super) fn names(names: impl Iterator<Item = String>) -> Self {
        let labels: Vec<_> = (0..).map(f64::from).zip(names).collect();
        Self {
            from: -0.3,
            until: labels.len() as f64 - 0.7,
            labels,
        }
    }

    fn share(&self, value: f64) -> f64 {
        ((value - self.from) / (self.until - self.from)).clamp(0.0, 1.0)
    }
}

/// The largest of 1, 2 or 5 times a power of ten that is not above `value`.
fn round_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|factor| factor * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

/// A moment, with the digits that it needs.
pub(super) fn seconds(at: f64) -> String {
    ((at * 1e6).round() / 1e6).to_string()
}

/// Text from outside, made safe for an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let escape = |character| match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        // No page may hold the others.
        _ if char::is_control(character) && !"\t\n\r".contains(character) => String::new(),
        _ => character.to_string(),
    };
    text.chars().map(escape).collect()
}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_svg(f, "wide", 900.0)?;
        self.write_svg(f, "narrow", 420.0)
    }
}

impl Chart {
    fn write_svg(&self, f: &mut fmt::Formatter<'_>, class: &str, width: f64) -> fmt::Result {
        let id = format!("{}-{class}", self.id);
        let height = TOP + HEIGHT + BELOW + LEGEND * self.lines.len() as f64;
        writeln!(
            f,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-text\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>",
            self.title,
            escaped(&self.text)
        )?;
        let (right, base) = (width - RIGHT, TOP + HEIGHT);
        let x = |value: f64| LEFT + (right - LEFT) * self.x.share(value);
        let y = |value: f64| base - HEIGHT * self.y.share(value);
        write_text(f, [8.0, 16.0], "start", self.up)?;
        for (at, label) in &self.y.labels {
            let y = y(*at);
            writeln!(
                f,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            )?;
            write_text(f, [LEFT - 8.0, y + 4.0], "end", label)?;
        }
        // As many as have room.
        let every = (self.x.labels.len() as f64 * 62.0 / (right - LEFT)).ceil() as usize;
        for (at, label) in self.x.labels.iter().step_by(every.max(1)) {
            write_text(f, [x(*at), base + 18.0], "middle", label)?;
        }
        let middle = LEFT.midpoint(right);
        write_text(f, [middle, base + 36.0], "middle", self.across)?;
        for (index, line) in self.lines.iter().enumerate() {
            let points: Vec<_> = line.points.iter().map(|&(at, to)| (x(at), y(to))).collect();
            line.write(f, index, &points)?;
            let down = base + BELOW + LEGEND * index as f64 + 8.0;
            line.write(f, index, &[(LEFT, down), (LEFT + 24.0, down)])?;
            write_text(f, [LEFT + 34.0, down + 4.0], "start", &line.name)?;
        }
        writeln!(f, "</svg>")
    }
}

fn write_text(
    f: &mut fmt::Formatter<'_>,
    [x, y]: [f64; 2],
    anchor: &str,
    text: &str,
) -> fmt::Result {
    let text = escaped(text);
    writeln!(
        f,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    )
}

impl Line {
    /// Draws it through these points of the picture.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        index: usize,
        points: &[(f64, f64)],
    ) -> fmt::Result {
        let class = format!("line-{index}");
        let dashes = match self.style {
            Style::Dashed => " stroke-dasharray=\"6 5\"",
            Style::Plain | Style::Marked => "",
        };
        let path = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} "));
        let path: String = path.collect();
        writeln!(
            f,
            "<polyline class=\"{class}\" stroke-width=\"2\"{dashes} points=\"{path}\"/>"
        )?;
        if self.style == Style::Marked {
            for (x, y) in points {
                writeln!(
                    f,
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round_and_start_at_zero() {
        let labels = |most, count| {
            let axis = Axis::from_zero(most, count, |at| format!("{at:.2}"));
            axis.labels
                .into_iter()
                .map(|(_, label)| label)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            labels(65_536.0, 4.0),
            "0.00 10000.00 20000.00 30000.00 40000.00 50000.00 60000.00"
        );
        assert_eq!(labels(1.0, 4.0), "0.00 0.20 0.40 0.60 0.80 1.00");
        assert_eq!(labels(0.0, 2.0), "0.00 0.50 1.00");
    }

    #[test]
    fn data_lies_within_the_axes() {
        let axis = Axis::from_zero(100.0, 4.0, |at| format!("{at}"));
        let shares = [-1.0, 0.0, 52.5, 900.0].map(|at| axis.share(at));
        assert_eq!(shares, [0.0, 0.0, 0.5, 1.0]);
    }
}
