//! The colours, each for a light page and for a dark one.
//!
//! Pictures are drawn in the light ones. The page's style sheet puts the dark
//! ones in their place where the reader prefers that, by attribute selectors;
//! so a picture that is cut out of the page still has its colours.

use plotters::style::RGBColor;

/// One colour in both of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour {
    light: u32,
    dark: u32,
}

impl Colour {
    const fn new(light: u32, dark: u32) -> Self {
        Self { light, dark }
    }

    /// What it is drawn in.
    pub(super) fn drawn(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

pub(super) const PAPER: Colour = Colour::new(0xFFFFFF, 0x14171A);
pub(super) const INK: Colour = Colour::new(0x1B1F24, 0xE8EAED);
/// Axes and what is written along them.
pub(super) const QUIET: Colour = Colour::new(0x565D66, 0xA4ACB5);
/// Lines that guide the eye and mean nothing.
pub(super) const GRID: Colour = Colour::new(0xDFE3E8, 0x2D3339);

/// Lines. Their markers and labels differ as well.
pub(super) const LINES: [Colour; 6] = [
    Colour::new(0x0060A8, 0x6CB6F5),
    Colour::new(0xA84300, 0xF59A5B),
    Colour::new(0x00704E, 0x4CC9A0),
    Colour::new(0x7A3FA0, 0xC9A0EC),
    Colour::new(0xB3261E, 0xF28B82),
    Colour::new(0x6B5B00, 0xD6C35A),
];

/// Cells, with [`INK`] on them.
pub(super) const CLEAN: Colour = Colour::new(0xCFEADF, 0x123D30);
pub(super) const SLOW: Colour = Colour::new(0xE5DCF3, 0x35284A);
pub(super) const FEW: Colour = Colour::new(0xFBE3CF, 0x4A2C14);
pub(super) const MANY: Colour = Colour::new(0xF3B995, 0x6E3A12);
pub(super) const LEFT_OUT: Colour = Colour::new(0xEEF0F2, 0x22272C);

const ALL: [Colour; 15] = [
    PAPER, INK, QUIET, GRID, LINES[0], LINES[1], LINES[2], LINES[3], LINES[4], LINES[5], CLEAN,
    SLOW, FEW, MANY, LEFT_OUT,
];

/// What the style sheet calls its colours.
const VARIABLES: [(&str, Colour); 12] = [
    ("paper", PAPER),
    ("ink", INK),
    ("quiet", QUIET),
    ("rule", Colour::new(0xDFE3E8, 0x3A4149)),
    ("raised", RAISED),
    ("link", LINES[0]),
    ("good", LINES[2]),
    ("good-paper", CLEAN),
    ("caution", LINES[1]),
    ("caution-paper", FEW),
    ("bad", LINES[4]),
    ("bad-paper", BAD),
];

/// Behind code, tables and numbers, and behind a verdict that is bad.
const RAISED: Colour = Colour::new(0xF5F6F8, 0x1C2024);
const BAD: Colour = Colour::new(0xFADDDA, 0x4A1E1B);

/// The colours of the page, and the rules that put the dark ones in place of the light ones.
pub(super) fn rules() -> String {
    let variables = |form: fn(&Colour) -> u32| {
        let all = VARIABLES.iter();
        let all = all.map(|(name, colour)| format!("--{name}: #{:06X};", form(colour)));
        format!(":root {{ {} }}", all.collect::<Vec<_>>().join(" "))
    };
    let mut rules = format!(
        ":root {{ color-scheme: light dark; }}\n{}\n@media (prefers-color-scheme: dark) {{\n{}\n",
        variables(|colour| colour.light),
        variables(|colour| colour.dark)
    );
    for Colour { light, dark } in ALL {
        for property in ["fill", "stroke"] {
            rules += &format!("svg [{property}=\"#{light:06X}\"] {{ {property}: #{dark:06X} }}\n");
        }
    }
    rules + "}\n"
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The contrast of two colours, 1 to 21, as WCAG 2 defines it.
    fn contrast(one: u32, other: u32) -> f64 {
        let part = |part: u8| match f64::from(part) / 255.0 {
            part if part <= 0.04045 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        let [one, other] = [one, other].map(|colour| {
            let [_, red, green, blue] = colour.to_be_bytes().map(part);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        });
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn what_is_read_stands_out_from_what_lies_behind_it() {
        // Two examples from the definition.
        assert!((contrast(0, 0xFF_FFFF) - 21.0).abs() < 1e-9);
        assert!((contrast(0x77_7777, 0xFF_FFFF) - 4.48).abs() < 0.01);
        let on_paper = LINES.iter().chain([&INK, &QUIET]).map(|&it| (it, PAPER));
        let on_cells = [CLEAN, SLOW, FEW, MANY, LEFT_OUT].map(|cell| (INK, cell));
        let on_raised = [INK, QUIET, LINES[0]].map(|it| (it, RAISED));
        let on_verdicts = [
            (LINES[2], CLEAN),
            (LINES[1], FEW),
            (LINES[4], BAD),
            (INK, BAD),
        ];
        let others = on_cells.into_iter().chain(on_raised).chain(on_verdicts);
        for (text, behind) in on_paper.chain(others) {
            for (text, behind) in [(text.light, behind.light), (text.dark, behind.dark)] {
                let contrast = contrast(text, behind);
                assert!(
                    contrast >= 4.5,
                    "#{text:06X} on #{behind:06X}: {contrast:.1}"
                );
            }
        }
    }

    #[test]
    fn no_colour_is_there_twice() {
        for (index, colour) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.light != colour.light));
        }
    }

    /// Whether a line of data has this colour, as it is written in a picture.
    pub(in super::super) fn is_data(colour: &str) -> bool {
        LINES
            .iter()
            .any(|line| colour == format!("#{:06X}", line.light))
    }

    /// Every colour that a picture uses has its dark form.
    pub(in super::super) fn knows_all_colours_of(svg: &str) {
        for attribute in ["fill=\"#", "stroke=\"#"] {
            for part in svg.split(attribute).skip(1) {
                let colour = u32::from_str_radix(&part[..6], 16).unwrap();
                assert!(ALL.iter().any(|it| it.light == colour), "#{colour:06X}");
            }
        }
    }
}
