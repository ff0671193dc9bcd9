//! Reads `randflake.csv`: answers computed with Randflake's reference
//! implementation, one a line, named by a header.

const CSV: &str = include_str!("../../data/randflake.csv");

/// The 64 values of one column, from the top.
pub fn column(name: &str) -> Vec<&'static str> {
    let mut lines = CSV.lines();
    let header = lines.next().expect("a header");
    let index = header
        .split(',')
        .position(|title| title == name)
        .unwrap_or_else(|| panic!("no column {name} in {header}"));
    let values: Vec<_> = lines
        .map(|line| line.split(',').nth(index).expect("a value in every column"))
        .collect();
    assert_eq!(values.len(), 64);
    values
}

pub fn numbers(name: &str) -> Vec<u64> {
    let values = column(name);
    values.iter().map(|value| value.parse().unwrap()).collect()
}
