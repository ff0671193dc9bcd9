use proptest::prelude::*;
use ringflake::{Cipher, Id, Layout, ManualClock};

use super::*;
use crate::format::Format;

/// Rows as IDs, and the faults, of these lines.
fn inspect(lines: &str) -> (Vec<u64>, Vec<String>) {
    inspect_at(u64::MAX, lines)
}

/// The same by a clock that shows this time.
fn inspect_at(now_unix_ms: u64, lines: &str) -> (Vec<u64>, Vec<String>) {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let layout = Layout::RANDFLAKE;
    let mut reader = Reader {
        input: InputFormat::Auto,
        inspector: Inspector::new(layout, Cipher::plain()),
        printer: Printer::new(Format::Json, &layout, &mut rows),
        faults_out: &mut faults,
        unit: "line",
        evidence: Evidence::default(),
        closed: false,
        faults: 0,
        clock: ManualClock::new(now_unix_ms),
        in_the_future: 0,
        likely_cause: "of another secret",
    };
    reader.take_lines(Lines::new(lines.as_bytes())).unwrap();
    let id = |row: &str| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        row["id"].as_str().unwrap().parse::<Id>().unwrap().to_u64()
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(rows).lines().map(id).collect(),
        text(faults).lines().map(str::to_owned).collect(),
    )
}

fn lines<T: ToString>(texts: impl IntoIterator<Item = T>) -> String {
    texts
        .into_iter()
        .map(|text| text.to_string() + "\n")
        .collect()
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
            is_shown |= auto.spelling_shown_by(text).is_some();
            is_shown || !auto.is_ambiguous(text)
        });
        let expected = Vec::from_iter(certain.map(|(_, number)| *number));
        let (rows, faults) = inspect(&lines(&texts));
        prop_assert_eq!(faults.len(), numbers.len() - expected.len());
        prop_assert_eq!(rows, expected);
    }

    #[test]
    fn digits_beside_both_spellings_are_never_guessed(
        number in 10_u64..10_u64.pow(13),
        order in Just(["1a", "12345678901234", ""]).prop_shuffle(),
    ) {
        let text = number.to_string();
        let all = order.map(|other| if other.is_empty() { text.as_str() } else { other });
        let (rows, faults) = inspect(&lines(all));
        prop_assert_eq!((rows.len(), faults.len()), (2, 1), "{:?}", faults);
        prop_assert!(faults[0].contains("--input u64") && faults[0].contains("--input base32hex"));
    }
}

#[test]
fn digits_are_read_as_the_ids_before_them() {
    assert_eq!(inspect("1a\n10\n7\n\n20\n"), (vec![42, 32, 7, 64], vec![]));
    assert_eq!(inspect("-1\n10\n7\n"), (vec![u64::MAX, 10, 7], vec![]));
}

#[test]
fn digits_that_nothing_decides_are_reported_in_order() {
    let (rows, faults) = inspect("10\n!\n7\nid\n20\n");
    // The word is an ID, and may be a title.
    assert_eq!(rows, [7, 0o22 * 32 + 13]);
    let numbers = faults.iter().map(|fault| fault.split_once(": ").unwrap().0);
    assert_eq!(Vec::from_iter(numbers), ["line 1", "line 2", "line 5"]);
    assert!(faults[0].contains("--input u64") && faults[0].contains("--input base32hex"));
}

#[test]
fn the_first_time_that_no_id_can_have_is_warned_of() {
    let layout = Layout::RANDFLAKE;
    let day = PLAUSIBLE_MS / layout.tick_ms();
    let id = |tick| layout.pack(tick, 0, 0).unwrap();
    let now = layout.tick_start_unix_ms(1_000);
    let ids = [id(1_000), id(1_001 + day), id(1_002 + day), id(1_003 + day)];
    let (rows, faults) = inspect_at(now, &lines(ids));
    assert_eq!(rows, ids, "all are shown");
    let [warning] = &faults[..] else {
        panic!("{faults:?}");
    };
    let when = in_words(layout.tick_start_unix_ms(1_002 + day));
    for part in [
        "warning: line 3: ",
        &when,
        "in the future",
        "of another secret",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(inspect_at(u64::MAX, &lines(ids)).1, Vec::<String>::new());
}
