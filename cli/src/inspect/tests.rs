use proptest::prelude::*;
use ringflake::{Cipher, Id, Layout};

use super::*;
use crate::format::Format;

/// Rows as IDs, and the faults, of these lines.
fn inspect(lines: &str) -> (Vec<u64>, Vec<String>) {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let layout = Layout::RANDFLAKE;
    let mut reader = Reader {
        input: InputFormat::Auto,
        inspector: Inspector::new(layout, Cipher::plain()),
        printer: Printer::new(Format::Json, &layout, &mut rows),
        faults_out: &mut faults,
        unit: "line",
        spelling: None,
        closed: false,
        faults: 0,
        in_the_future: 0,
        likely_cause: "of another secret",
    };
    reader.take_lines(Lines::new(lines.as_bytes())).unwrap();
    let id = |row: &str| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        row["id"].as_str().unwrap().parse::<Id>().unwrap().to_u64()
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let faults = text(faults);
    // Without the warning about times.
    let faults = faults.lines().filter(|line| line.starts_with("line "));
    (
        text(rows).lines().map(id).collect(),
        faults.map(str::to_owned).collect(),
    )
}

proptest! {
    #[test]
    fn ids_of_all_lengths_are_read_right_or_reported(
        numbers in prop::collection::vec((any::<u64>(), 0_u32..64), 1..20),
        spelling in 0..3,
    ) {
        let numbers = Vec::from_iter(numbers.iter().map(|(number, bits)| number >> bits));
        let ids = numbers.iter().map(|&number| Id::from_u64(number));
        let texts = Vec::from_iter(ids.map(|id| match spelling {
            0 => id.to_string(),
            1 => id.to_u64().to_string(),
            _ => id.to_i64().to_string(),
        }));
        let auto = InputFormat::Auto;
        let mut is_shown = false;
        let certain = texts.iter().zip(&numbers).filter(|(text, _)| {
            is_shown |= auto.shown_by(text).is_some();
            is_shown || !auto.is_ambiguous(text)
        });
        let expected = Vec::from_iter(certain.map(|(_, number)| *number));
        let (rows, faults) = inspect(&texts.join("\n"));
        prop_assert_eq!(faults.len(), numbers.len() - expected.len());
        prop_assert_eq!(rows, expected);
    }
}

#[test]
fn digits_are_read_as_the_ids_before_them_or_reported() {
    // The IDs, and the numbers of the lines that are reported.
    for (text, ids, reported) in [
        ("1a\n10\n7\n\n20\n", &[42, 32, 7, 64][..], &[][..]),
        ("order_12\n10\n", &[34, 32], &[]),
        ("-1\n10\n7\n", &[u64::MAX, 10, 7], &[]),
        ("010\n10\n", &[10, 10], &[]),
        // The word is an ID, and may be a title.
        ("10\n!\n7\nid\n20\n", &[7, 589], &[1, 2, 5]),
        ("99999999999999999999\n10\n", &[], &[1, 2]),
        // Both before it.
        ("1a\n12345678901234\n10\n", &[42, 12_345_678_901_234], &[3]),
        ("-1\n1a\n-1\n10\n", &[u64::MAX, 42, u64::MAX], &[4]),
    ] {
        let (rows, faults) = inspect(text);
        assert_eq!(rows, ids, "{text:?}");
        let lines: Vec<_> = faults
            .iter()
            .map(|fault| fault.split_once(": ").unwrap().0)
            .collect();
        let expected: Vec<_> = reported.iter().map(|line| format!("line {line}")).collect();
        assert_eq!(lines, expected, "{text:?}");
    }
    let (_, faults) = inspect("10\n");
    assert!(faults[0].contains("--input u64") && faults[0].contains("--input base32hex"));
}
