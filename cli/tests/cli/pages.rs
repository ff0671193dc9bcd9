//! Help and completions: what is read beside the program.

use crate::home::{Home, stdout, succeed};
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
fn completions_know_every_command_and_option() {
    let home = Home::new();
    let script = home.print("completions bash");
    assert_says(&script, &["generate", "raise-floor", "lease-duration"]);
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
