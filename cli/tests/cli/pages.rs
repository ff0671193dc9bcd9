//! Help, manual pages and completions: what is read beside the program.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::home::{Home, stderr, stdout, succeed};
use ringflake_kit::{assert_says, words};

/// Every command, by the words that lead to it, as help lists them.
fn all_commands(home: &Home) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut next = 0;
    while let Some(command) = all.get(next).cloned() {
        let help = home.print(format!("{command} --help"));
        let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
        // A description goes on further in.
        let names = list.lines().map_while(|line| line.strip_prefix("  "));
        let names = names.filter(|line| !line.starts_with(' '));
        let names = names.map(|line| words(line)[0]);
        let names = names.filter(|&name| name != "help");
        all.extend(names.map(|name| format!("{command} {name}")));
        next += 1;
    }
    all
}

#[test]
fn every_command_has_a_manual_page_that_is_linked_by_name() {
    let home = Home::new();
    let directory = home.file("man/man1");
    let output = succeed(home.run(format!("man {}", directory.display())));
    assert_says(&stderr(&output), &["manual pages to"]);
    let files = fs::read_dir(&directory).unwrap();
    let files: BTreeSet<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let commands = all_commands(&home);
    assert!(commands.len() > 15, "{commands:?}");
    let page = |command: String| format!("ringflake{}.1", command.replace(' ', "-"));
    assert_eq!(files, commands.into_iter().map(page).collect());
    let page = fs::read_to_string(directory.join("ringflake-store-init.1")).unwrap();
    assert_says(&page, &[".SH NAME", "ringflake\\-store\\-init"]);
    assert_says(&page, &["\\-\\-history", "\\-\\-data\\-dir"]);
    // Without a directory there is one page, on stdout.
    let page = home.print("man");
    assert_says(&page, &[".TH ringflake 1", "ringflake\\-generate"]);
    let file = home.write_secret("a-file", "");
    let message = home.refuse(format!("man {file}"));
    assert_says(&message, &["manual pages can't be written"]);
}

#[test]
fn completions_are_scripts_that_know_every_command() {
    let home = Home::new();
    for shell in words("bash elvish fish powershell zsh") {
        let script = home.print(format!("completions {shell}"));
        assert_says(&script, &["generate", "raise-floor", "lease-duration"]);
    }
    let script = home.path("ringflake.bash");
    fs::write(&script, home.print("completions bash")).unwrap();
    let bash = |args: &[&str]| {
        let mut bash = Command::new("bash");
        let output = bash.args(args).stdin(Stdio::null()).output().unwrap();
        stdout(&succeed(output))
    };
    bash(&["-n", &script]);
    let complete = format!(
        "source {script}; COMP_WORDS=(ringflake store rai); COMP_CWORD=2; \
         _ringflake ringflake rai store; echo \"${{COMPREPLY[@]}}\""
    );
    assert_eq!(bash(&["-c", &complete]), "raise-floor\n");
}

#[test]
fn help_is_no_wider_than_the_terminal() {
    let home = Home::new();
    for command in all_commands(&home) {
        let help = home.run_with(&format!("{command} --help"), "COLUMNS", "80");
        let help = stdout(&succeed(help));
        let widest = help.lines().map(str::len).max().unwrap();
        assert!(widest <= 80, "{command}: {widest}\n{help}");
        assert_says(&help, &["--data-dir"]);
    }
}

#[test]
fn help_says_what_must_be_known() {
    let home = Home::new();
    for (command, parts) in [
        (
            "inspect",
            &[
                "2 to 13 digits may be base32hex or a decimal number",
                "give --input u64 or --input base32hex",
            ][..],
        ),
        (
            "tune",
            &[
                "--rate",
                "--burst",
                "--trace",
                "--run",
                "--report",
                "margin of 2",
            ],
        ),
        ("layout", &["JSON", "200k", "twice the nodes"]),
        ("layout show", &["JSON"]),
        ("layout sql", &["Only for plain IDs", "63 bits", "SQLite"]),
        ("store init", &["JSON", "If in doubt it is unknown"]),
        ("store check", &["JSON"]),
        ("store ls", &["JSON"]),
        ("store raise-floor", &["JSON"]),
        ("store release", &["JSON"]),
        ("store repair", &["JSON"]),
    ] {
        let help = home.print(format!("{command} --help"));
        assert_says(&words(&help).join(" "), parts);
    }
}
