//! Exit statuses, and what is said on the way out.

use crate::home::{Home, fail, stderr, stdout};

#[test]
fn a_wrong_command_line_exits_with_2() {
    let home = Home::new();
    for args in [
        &[][..],
        &["fly"],
        &["generate", "--format", "xml"],
        &["generate", "-n", "many"],
        &["generate", "-n", "-1"],
        &["generate", "--nodes", "5"],
        &["generate", "--nodes", "5..5"],
        &["generate", "--layout", "mine"],
        &["generate", "--layout", "60/60/60@2020-01-01T00:00:00Z/1s"],
        &["generate", "--threads", "0"],
        &["generate", "--plain", "--secret-file", "x"],
        &["generate", "an-id"],
        &["inspect", "--input", "hex", "5"],
        &["verify", "--capacity", "x"],
        &["bench", "--only", "sleep"],
        &["bench", "--rounds", "0"],
        &["keygen", "--plain"],
        &["generate", "--lease-duration", "5"],
        &["generate", "--wait", "18446744073709551615s 1000ms"],
        &["generate", "--store", "sqlite:x"],
        &["generate", "--namespace", "orders", "--nodes", "0..1"],
        &["generate", "--namespace", "No name"],
        &["generate", "--store", "sqlite:x", "--namespace", "No name"],
        &["generate", "--block-bits", "5"],
        &[
            "verify",
            "--store",
            "sqlite:x",
            "--namespace",
            "a",
            "--nodes",
            "0..1",
        ],
        &["store"],
        &["store", "fly"],
        &["store", "init"],
        &["store", "init", "--history", "old"],
        &["store", "raise-floor"],
        &[
            "store",
            "raise-floor",
            "--over-lost-grants",
            "--to-tick",
            "5",
        ],
        &["store", "release", "--block", "5"],
        &["store", "check", "--store", "sqlite:x"],
    ] {
        let output = home.run(args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{args:?}");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("ringflake: "), "{text}");
        let see = match args.first() {
            None | Some(&"fly") => "; see 'ringflake --help'\n".to_owned(),
            Some(&"store") => match args.get(1) {
                None | Some(&"fly") => "; see 'ringflake store --help'\n".to_owned(),
                Some(command) => format!("; see 'ringflake store {command} --help'\n"),
            },
            Some(command) => format!("; see 'ringflake {command} --help'\n"),
        };
        assert!(text.ends_with(&see), "{text}");
        for frame in ["error:", "Usage", "For more"] {
            assert!(!text.contains(frame), "{text}");
        }
    }
    assert!(!home.data_dir().exists());
}

/// Checks that the command line is wrong, and returns what is said about it.
#[track_caller]
fn misuse(home: &Home, args: &[&str]) -> String {
    let output = home.run(args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_wrong_command_line_is_told_what_would_be_right() {
    let home = Home::new();
    let text = misuse(&home, &["generate", "--format", "xml"]);
    assert!(
        text.contains("'xml'") && text.contains("u64le") && text.contains("--format"),
        "{text}"
    );
    let text = misuse(&home, &["generate", "--plain", "--secret-file", "x"]);
    assert!(
        text.contains("--plain") && text.contains("--secret-file"),
        "{text}"
    );
    assert!(misuse(&home, &["generat"]).contains("'generate'"));
    let text = misuse(&home, &["--data-dir", "x", "verify", "--capacity", "x"]);
    assert!(text.ends_with("'ringflake verify --help'\n"), "{text}");
}

#[test]
fn an_option_that_is_gone_is_answered_with_the_present_one() {
    let home = Home::new();
    for (args, said) in [
        (
            &["generate", "--cover", "9s"][..],
            "--cover is now --lease-duration;",
        ),
        (&["store", "ls", "--json"], "--json is now --format json;"),
        (&["store", "bump-floor"], "bump-floor is now raise-floor;"),
        (&["inspect", "--format", "table"], "table is now text;"),
    ] {
        let text = misuse(&home, args);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn init_explains_the_choice_that_it_asks_for() {
    let home = Home::new();
    let text = misuse(&home, &["store", "init"]);
    assert!(
        text.contains("--history new") && text.contains("--history unknown if in doubt"),
        "{text}"
    );
}

#[test]
fn empty_nodes_are_told_from_reversed_ones() {
    let home = Home::new();
    let said = |nodes| misuse(&home, &["generate", "--nodes", nodes]);
    let reversed = said("32..0");
    assert!(
        reversed.contains("reversed") && reversed.contains(" 0..32;"),
        "{reversed}"
    );
    assert!(said("5..5").contains("5..6"));
    let last = said("18446744073709551615..18446744073709551615");
    assert!(
        last.contains("is empty") && !last.contains("18446744073709551616"),
        "{last}"
    );
}

#[test]
fn advice_names_options_and_dates() {
    let home = Home::new();
    for command in ["generate", "verify"] {
        let message = fail(home.run(&[command, "--layout", "js-safe"]));
        assert!(message.contains("--plain"), "{message}");
        assert!(!message.contains('`'), "{message}");

        let layout = "28/22/13@2999-01-01T00:00:00Z/1s";
        let message = fail(home.run(&[command, "--layout", layout]));
        assert!(
            message.contains("begins at 2999-01-01T00:00:00Z"),
            "{message}"
        );
        assert!(
            !message.contains(" ms") && !message.contains("tick"),
            "{message}"
        );
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn a_failure_exits_with_1_and_one_line() {
    let home = Home::new();
    let file = home.write_secret("a-file", "");
    let in_a_file = format!("{file}/data");
    for args in [
        &["generate", "--nodes", "131000..131073"][..],
        &["generate", "--data-dir", &in_a_file],
        &["keygen", "--data-dir", &in_a_file],
        &["keygen", "--out", &in_a_file],
        &["generate", "--secret-file", &file],
        &["inspect", "--secret-file", &file, "5"],
        &["inspect", "5"],
        &["verify", "--capacity", "1000", "-n", "1"],
        &["verify", "--producers", "0", "-n", "1"],
        &["verify", "--nodes", "7..131073", "-n", "1"],
        &["verify", "--layout", "baidu"],
        &["generate", "--lease-duration", "9s"],
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
        words.contains("up to 13 digits has to be named: --input u64"),
        "{help}"
    );
    assert!(
        words.contains("whatever generate prints by default is read back"),
        "{help}"
    );
}
