//! Exit statuses, and what is said on the way out.

use crate::home::{Home, fail, stdout};
use ringflake_kit::assert_says;

#[test]
fn a_failure_exits_with_1_and_one_line() {
    let home = Home::new();
    let file = home.write_secret("a-file", "");
    for line in [
        &*format!("generate --data-dir {file}/data"),
        &format!("keygen --data-dir {file}/data"),
        &format!("keygen --out {file}/data"),
        &format!("generate --secret-file {file}"),
        &format!("inspect --secret-file {file} 5"),
        &format!("bench --secret-file {file}"),
        "verify --capacity 1000 -n 1",
        "verify --nodes 7..131073 -n 1",
    ] {
        let output = home.run(line);
        assert_eq!(stdout(&output), "", "{line}");
        fail(output);
    }
}

#[test]
fn help_and_version_are_printed() {
    let home = Home::new();
    assert!(home.print("--version").starts_with("ringflake "));
    for command in ["keygen", "generate", "inspect", "verify", "bench", "store"] {
        assert_says(&home.print("--help"), &[command]);
        assert_says(&home.print(format!("{command} --help")), &["--data-dir"]);
    }
}

#[test]
fn help_warns_of_base32hex_ids_that_look_like_numbers() {
    let help = Home::new().print("inspect --help");
    let words = Vec::from_iter(help.split_whitespace()).join(" ");
    assert_says(
        &words,
        &[
            "2 to 13 digits may be base32hex or a decimal number",
            "give --input u64 or --input base32hex",
        ],
    );
}
