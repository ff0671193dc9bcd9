//! Exit statuses, and what is said on the way out.

use crate::home::{Home, fail, stdout};

#[test]
fn a_failure_exits_with_1_and_one_line() {
    let home = Home::new();
    let file = home.write_secret("a-file", "");
    let in_a_file = format!("{file}/data");
    for args in [
        &["generate", "--data-dir", &in_a_file][..],
        &["keygen", "--data-dir", &in_a_file],
        &["keygen", "--out", &in_a_file],
        &["generate", "--secret-file", &file],
        &["inspect", "--secret-file", &file, "5"],
        &["verify", "--capacity", "1000", "-n", "1"],
        &["verify", "--nodes", "7..131073", "-n", "1"],
        &["bench", "--secret-file", &file],
    ] {
        let output = home.run(args);
        assert_eq!(stdout(&output), "", "{args:?}");
        fail(output);
    }
}

#[test]
fn help_and_version_are_printed() {
    let home = Home::new();
    assert!(home.print(&["--version"]).starts_with("ringflake "));
    for command in ["keygen", "generate", "inspect", "verify", "bench", "store"] {
        assert!(home.print(&["--help"]).contains(command));
        let help = home.print(&[command, "--help"]);
        assert!(help.contains("--data-dir"), "{command}");
    }
}

#[test]
fn help_warns_of_base32hex_ids_that_look_like_numbers() {
    let home = Home::new();
    let help = home.print(&["inspect", "--help"]);
    let words = Vec::from_iter(help.split_whitespace()).join(" ");
    assert!(
        words.contains("2 to 13 digits may be base32hex or a decimal number"),
        "{help}"
    );
    assert!(
        words.contains("give --input u64 or --input base32hex"),
        "{help}"
    );
}
