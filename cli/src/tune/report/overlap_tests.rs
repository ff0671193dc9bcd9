//! No text of a picture lies on its data or on other text, whatever the load and the rings.

use proptest::prelude::*;
use ringflake::plan::Load;

use super::palette::tests::is_data;
use super::tests::any_load;
use super::*;
use crate::drive::measurement::Sample;
use crate::tune::outcome::tests::outcome;

/// Left, top, right and bottom.
type Part = [f64; 4];

fn meet(one: Part, other: Part) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

/// The value of an attribute.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = element.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

fn number(element: &str, name: &str) -> f64 {
    attribute(element, name).map_or(0.0, |value| value.parse().unwrap())
}

/// Where each text stands: as wide as wide letters are, and as high as small ones.
fn texts(picture: &str) -> Vec<(String, Part)> {
    let text = |element: &str| {
        let (head, rest) = element.split_once('>').unwrap();
        let text = rest.split("</text>").next().unwrap().trim().to_owned();
        let (x, y) = (number(head, "x"), number(head, "y"));
        let width = text.chars().count() as f64 * 7.4;
        let left = match attribute(head, "text-anchor") {
            Some("middle") => x - width / 2.0,
            Some("end") => x - width,
            _ => x,
        };
        // The middle of the letters, from the shift of the backend.
        let middle = match attribute(head, "dy") {
            Some("0.76em") => y + 5.0,
            Some("0.5ex") => y,
            _ => y - 5.0,
        };
        (text, [left, middle - 5.0, left + width, middle + 5.0])
    };
    let elements = picture.split("<text").skip(1);
    elements.map(text).collect()
}

/// The parts in which data are drawn: each piece of a line, each marker.
fn data(picture: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for element in picture.split('<') {
        let Some((kind, _)) = element.split_once(' ') else {
            continue;
        };
        let colours = ["stroke", "fill"].map(|name| attribute(element, name));
        let is_data = colours.into_iter().flatten().any(is_data);
        if !is_data {
            continue;
        }
        match kind {
            "polyline" | "polygon" => {
                let points = attribute(element, "points").unwrap().split_whitespace();
                let points: Vec<_> = points
                    .map(|point| {
                        let (x, y) = point.split_once(',').unwrap();
                        [x, y].map(|it| it.parse::<f64>().unwrap())
                    })
                    .collect();
                for pair in points.windows(2) {
                    let [[x, y], [u, v]] = [pair[0], pair[1]];
                    parts.push([x.min(u), y.min(v), x.max(u), y.max(v)]);
                }
            }
            "line" => {
                let [x, y, u, v] = ["x1", "y1", "x2", "y2"].map(|it| number(element, it));
                parts.push([x.min(u), y.min(v), x.max(u), y.max(v)]);
            }
            "circle" => {
                let [x, y, r] = ["cx", "cy", "r"].map(|it| number(element, it));
                parts.push([x - r, y - r, x + r, y + r]);
            }
            "rect" => {
                let [x, y, width, height] =
                    ["x", "y", "width", "height"].map(|it| number(element, it));
                parts.push([x, y, x + width, y + height]);
            }
            "text" => {}
            other => panic!("{other} is drawn and not known here"),
        }
    }
    parts
}

fn assert_readable(outcome: &Outcome) -> Result<(), TestCaseError> {
    let page = html(outcome, "ringflake tune", &[]).unwrap();
    for picture in page.split("<svg ").skip(1) {
        let picture = picture.split("</svg>").next().unwrap();
        let size = attribute(picture, "viewBox").unwrap();
        let name = attribute(picture, "aria-labelledby").unwrap().to_owned();
        let size: Vec<f64> = size.split(' ').map(|it| it.parse().unwrap()).collect();
        let (texts, data) = (texts(picture), data(picture));
        for (index, (text, part)) in texts.iter().enumerate() {
            let is_inside = part[0] >= -1.0 && part[2] <= size[2] + 1.0 && part[3] <= size[3];
            prop_assert!(is_inside, "{name}: {text} at {part:?} of {size:?}");
            for (other, place) in &texts[index + 1..] {
                prop_assert!(
                    !meet(*part, *place),
                    "{name}: {text} on {other}, {part:?} {place:?}"
                );
            }
            for piece in &data {
                prop_assert!(
                    !meet(*part, *piece),
                    "{name}: {text} at {part:?} on {piece:?}"
                );
            }
        }
    }
    Ok(())
}

/// The recommended ring, with other samples.
fn with_samples(load: Load, capacity: u32, samples: Vec<Sample>) -> Outcome {
    let mut outcome = outcome();
    outcome.part = load.clone();
    outcome.load = load;
    let recommended = outcome.findings.recommended.unwrap();
    let mut trial = outcome.findings.trials.remove(&recommended).unwrap();
    trial.setting.capacity = 1 << capacity;
    trial.total.samples = samples;
    outcome.findings.recommended = Some(trial.setting);
    outcome.findings.trials.insert(trial.setting, trial);
    outcome
}

fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1.0]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_text_lies_on_data_or_on_text(
        load in any_load(),
        capacity in 0..25_u32,
        millis in 1..20_000_u32,
        levels in prop::collection::vec((shares(), shares(), 0..3_u64, 0..3_u64), 1..60),
        borrowed in prop_oneof![Just(0.0), 0.0..1e-6, 0.0..60.0],
        unit in 0..9_u32,
    ) {
        let (mut fills, mut empties) = (0, 0);
        let sample = |(index, &(level, threshold, more, dry)): (usize, &(f64, f64, u64, u64))| {
            fills += more;
            empties += dry;
            let slots = f64::from(1 << capacity);
            Sample {
                seconds: f64::from(millis) / 1000.0 * index as f64,
                level: (level * slots) as usize,
                threshold: (threshold * slots) as usize,
                borrowed: borrowed * level,
                fills,
                empties,
            }
        };
        let samples = levels.iter().enumerate().map(sample).collect();
        let mut outcome = with_samples(load, capacity, samples);
        // Latencies from nanoseconds to minutes.
        for trial in outcome.findings.trials.values_mut() {
            trial.total.latency.saturating_record_n(10_u64.pow(unit + 3), 1_000_000_000);
        }
        assert_readable(&outcome)?;
    }
}

#[test]
fn a_text_on_a_line_would_be_found() {
    let at = |y: i32| {
        format!(
            "<polyline stroke=\"#0060A8\" points=\"0,90 10,90 \"/><text x=\"2\" y=\"{y}\" \
             dy=\"0.5ex\" text-anchor=\"start\">name</text>"
        )
    };
    let is_met = |picture: String| {
        let (texts, data) = (texts(&picture), data(&picture));
        assert_eq!((texts.len(), data.len()), (1, 1));
        meet(texts[0].1, data[0])
    };
    assert!(is_met(at(92)));
    assert!(!is_met(at(80)));
}
