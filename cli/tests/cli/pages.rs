//! Help, manual pages and completions: what is read beside the program.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::home::{Home, fail, stderr, stdout, succeed};
use ringflake_kit::assert_says;

/// The commands below these, as their help lists them.
fn commands_below(home: &Home, names: &[&str]) -> Vec<String> {
    let help = home.print(&[names, &["-h"]].concat());
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|&name| name != "help")
        .map(str::to_owned)
        .collect()
}

/// Every command, with the words that lead to it.
fn all_commands(home: &Home) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut next = 0;
    while let Some(names) = all.get(next).cloned() {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        for below in commands_below(home, &names) {
            let mut words: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            words.push(below);
            all.push(words);
        }
        next += 1;
    }
    all
}

#[test]
fn every_command_has_a_manual_page_that_is_linked_by_name() {
    let home = Home::new();
    let directory = home.file("man/man1");
    let output = succeed(home.run(&["man", directory.to_str().unwrap()]));
    assert!(
        stderr(&output).contains("manual pages to"),
        "{}",
        stderr(&output)
    );
    let files = fs::read_dir(&directory).unwrap();
    let files: BTreeSet<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let commands = all_commands(&home);
    assert!(commands.len() > 15, "{commands:?}");
    let expected: BTreeSet<_> = commands
        .iter()
        .map(|words| [&["ringflake".to_owned()], &words[..]].concat().join("-") + ".1")
        .collect();
    assert_eq!(files, expected);
    let page = fs::read_to_string(directory.join("ringflake-store-init.1")).unwrap();
    for said in [
        ".SH NAME",
        "ringflake\\-store\\-init",
        "\\-\\-history",
        "\\-\\-data\\-dir",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // Without a directory there is one page, on stdout.
    let page = home.print(&["man"]);
    assert_says(&page, &[".TH ringflake 1", "ringflake\\-generate"]);
    let file = home.write_secret("a-file", "");
    let message = fail(home.run(&["man", &file]));
    assert_says(&message, &["manual pages can't be written"]);
}

#[test]
fn completions_are_scripts_that_know_every_command() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.print(&["completions", shell]);
        for word in ["generate", "raise-floor", "lease-duration"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let script = home.file("ringflake.bash");
    fs::write(&script, home.print(&["completions", "bash"])).unwrap();
    let bash = |args: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(args).stdin(Stdio::null()).output().unwrap()
    };
    succeed(bash(&["-n", script.to_str().unwrap()]));
    let complete = format!(
        "source {}; COMP_WORDS=(ringflake store rai); COMP_CWORD=2; \
         _ringflake ringflake rai store; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    assert_eq!(stdout(&succeed(bash(&["-c", &complete]))), "raise-floor\n");
}

#[test]
fn help_is_no_wider_than_the_terminal() {
    let home = Home::new();
    for words in all_commands(&home) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut command = home.command(&[&words[..], &["--help"]].concat());
        let help = stdout(&succeed(command.env("COLUMNS", "80").output().unwrap()));
        let widest = help.lines().map(str::len).max().unwrap();
        assert!(widest <= 80, "{words:?}: {widest}\n{help}");
    }
}
