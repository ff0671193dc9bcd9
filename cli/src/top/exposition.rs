//! The text format of Prometheus, version 0.0.4, as far as it carries figures.
//!
//! ```text
//! # HELP name text          left out
//! # TYPE name counter       left out
//! name{label="value",...} 1.5e3 1700000000000
//! ```

use std::collections::BTreeMap;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// All samples of a text. Lines that are none are left out: a process may publish what
/// other programs understand.
pub(super) fn samples(text: &str) -> impl Iterator<Item = Sample> {
    text.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample> {
    let line = line.trim_start();
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(|it: char| it == '{' || it.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    // A time may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// What stands before the closing brace, and what behind it.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let (mut labels, mut rest) = (BTreeMap::new(), text);
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = quoted(behind.trim_start())?;
        labels.insert(name.trim().to_owned(), value);
        rest = behind;
    }
}

/// A string in double quotes, and what stands behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    fn written(sample: &Sample) -> String {
        let label = |(name, value): (&String, &String)| {
            let value = value.replace('\\', r"\\").replace('"', "\\\"");
            format!("{name}=\"{}\"", value.replace('\n', r"\n"))
        };
        let labels: Vec<_> = sample.labels.iter().map(label).collect();
        match labels.is_empty() {
            true => format!("{} {}", sample.name, sample.value),
            false => format!("{}{{{}}} {}", sample.name, labels.join(","), sample.value),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            name in "[a-z_:][a-z0-9_:]{0,20}",
            labels in btree_map("[a-z_][a-z0-9_]{0,8}", "[ -~\n\u{e4}]{0,12}", 0..4),
            value in -1e12..1e12,
        ) {
            let sample = Sample { name, labels, value };
            let text = format!("# HELP x y\n{}\n", written(&sample));
            prop_assert_eq!(samples(&text).collect::<Vec<_>>(), [sample]);
        }

        #[test]
        fn no_text_is_too_odd(text in "[{}\"\\\\=, a1\n#]{0,60}") {
            for sample in samples(&text) {
                prop_assert!(!sample.name.is_empty() && !sample.name.starts_with('#'));
            }
        }
    }

    #[test]
    fn lines_of_other_kinds_are_left_out() {
        let text = "# TYPE a gauge\n\na{b=\"c\",} +Inf 17\nb\nc{d=\"e} 1\nd NaN\ne one\n";
        let found: Vec<_> = samples(text).collect();
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!(found[0].labels["b"], "c");
        assert!(found[0].value.is_infinite() && found[1].value.is_nan());
    }
}
