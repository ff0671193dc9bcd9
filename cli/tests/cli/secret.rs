//! Where the secret comes from, and where it goes.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use ringflake::{Id, Layout};

use crate::home::{Home, OTHER, Parts, assert_new, fail, stderr, stdout, succeed};
use ringflake_kit::assert_says;
use ringflake_kit::tls::{allow, mode};

#[test]
fn a_secret_is_made_once_kept_and_never_shown() {
    let home = Home::new();
    let first = succeed(home.run("generate"));
    let path = home.path("data/secret");
    assert_says(&stderr(&first), &[&path]);
    assert_eq!(mode(path.as_ref()), 0o600);
    assert_eq!(mode(&home.data_dir()), 0o700);
    let text = fs::read_to_string(&path).unwrap();
    let secret = text.strip_suffix('\n').unwrap();
    assert_eq!(secret.len(), 32);
    assert!(secret.bytes().all(|digit| digit.is_ascii_hexdigit()));

    let second = succeed(home.run("generate --format json"));
    assert_eq!(stderr(&second), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    // Both runs used it: under another secret the times would be anywhere.
    let ids = stdout(&first);
    assert_new(&home.inspect("", &ids));
    let shown = [
        first,
        second,
        home.feed("inspect", ids.as_bytes()),
        home.feed("inspect", b"no such ID"),
        home.run("keygen"),
        home.run("verify -n 1000"),
        home.run("store check"),
        home.run("store ls --format json"),
        home.run("bench --rounds 1 --only encrypt_batch"),
    ];
    for output in shown {
        let all = [stdout(&output), stderr(&output)].concat().to_lowercase();
        assert!(!all.contains(secret));
    }
}

#[test]
fn a_secret_can_come_from_three_places_in_two_forms() {
    let home = Home::new();
    let ids = home.print("generate -n 3");
    let known = home.inspect("", &ids);

    let kept = home.data_dir().join("secret");
    let hex = fs::read_to_string(&kept).unwrap();
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let raw_file = home.write_secret("raw", bytes);
    let hex_file = home.write_secret("hex", hex.to_uppercase());
    fs::remove_file(kept).unwrap();
    let other_file = home.write_secret("other", OTHER);

    let with_file = |file: &str| home.inspect(format!("--secret-file {file}"), &ids);
    assert_eq!(with_file(&raw_file), known);
    assert_eq!(with_file(&hex_file), known);
    assert_ne!(with_file(&other_file), known);

    let id = ids.lines().next().unwrap();
    let with_variable = |file: &str, options: &str| {
        let line = format!("inspect --format json {id} {options}");
        let output = home.run_with(&line, "RINGFLAKE_SECRET_FILE", file);
        Parts::of(&stdout(&succeed(output)))
    };
    assert_eq!(with_variable(&hex_file, ""), known[0]);
    // The command line is stronger.
    let by_both = with_variable(&other_file, &format!("--secret-file {hex_file}"));
    assert_eq!(by_both, known[0]);
    let id: Id = id.parse().unwrap();
    let plain = Layout::RANDFLAKE.unpack(id.to_u64()).unwrap();
    assert_eq!(with_variable(&other_file, "--plain").node, plain.node);
}

#[test]
fn a_lost_secret_is_reported_when_a_new_one_takes_its_place() {
    let home = Home::new();
    home.print("generate -n 1");
    home.print("generate -n 1 --namespace orders");
    fs::remove_file(home.data_dir().join("secret")).unwrap();
    let text = stderr(&succeed(home.run("generate -n 1")));
    assert_says(
        &text,
        &[
            "created the secret",
            "warning: leases.db",
            ": 30-17-17_",
            "backup",
        ],
    );
    assert!(!text.contains("orders"), "{text}");
    assert_eq!(stderr(&succeed(home.run("generate -n 1"))), "");
}

#[test]
fn a_secret_that_is_none_is_refused_without_repeating_it() {
    let home = Home::new();
    let short = home.write_secret("short", "deadbeef\n");
    let message = home.refuse(format!("generate --secret-file {short}"));
    assert_says(&message, &[&short]);
    assert!(!message.contains("deadbeef"), "{message}");
}

#[test]
fn a_secret_that_others_can_read_is_warned_about() {
    let home = Home::new();
    let path = home.write("my secret", OTHER);
    allow(path.parent().unwrap(), 0o755);
    let word = format!("'{}'", path.display());
    let warned = |user: Option<&str>, mode| {
        allow(&path, mode);
        let mut inspect = home.command("inspect --input u64 5");
        inspect.arg("--secret-file").arg(&path);
        if let Some(user) = user {
            ringflake_kit::server::as_user(&mut inspect, user);
        }
        let said = stderr(&succeed(inspect.output().unwrap()));
        let help = said.lines().find_map(|line| line.strip_prefix("  help: "));
        help.map(str::to_owned)
    };
    let of_root = fs::metadata(&path).unwrap().uid() == 0;
    if of_root {
        // As deploy/systemd has it: the service is in the group.
        let narrow = format!("as root, run 'chgrp GROUP {word} && chmod g=r,o= {word}'");
        assert_eq!(warned(None, 0o640), None);
        assert_says(&warned(None, 0o644).unwrap(), &[&*narrow]);
        assert_says(&warned(Some("nobody"), 0o644).unwrap(), &[&*narrow]);
        chown(&path, Some(65534), None).unwrap();
    }
    let user = of_root.then_some("nobody");
    assert_eq!(warned(user, 0o600), None);
    for mode in [0o640, 0o604] {
        assert_says(
            &warned(user, mode).unwrap(),
            &[&format!("run 'chmod go-r {word}'")],
        );
    }
}

#[test]
fn keygen_writes_where_it_is_told_and_never_overwrites() {
    let home = Home::new();
    let read = |file: &str| fs::read_to_string(file).unwrap();
    let file = home.path("a-secret");
    let keygen = format!("keygen --out {file}");
    let output = succeed(home.run(&keygen));
    assert_eq!(stdout(&output), "");
    assert_says(&stderr(&output), &[&file]);
    let text = read(&file);
    assert_eq!(text.trim_end_matches('\n').len(), 32);
    assert_eq!(mode(file.as_ref()), 0o600);
    assert_says(&home.refuse(keygen), &["never overwritten"]);
    assert_eq!(read(&file), text);

    let kept_file = home.path("data/secret");
    assert!(!fs::exists(&kept_file).unwrap());
    succeed(home.run("keygen"));
    let kept = read(&kept_file);
    assert_ne!(kept, text);
    home.refuse("keygen");
    assert_eq!(read(&kept_file), kept);

    let printed = home.print("keygen --out -");
    assert_eq!(printed.len(), 33);
    assert_ne!(printed, kept);
    let message = fail(home.feed_unread("keygen --out -", b""));
    assert_says(&message, &["is lost"]);
}
