//! Several secrets and namespaces in one data directory, which programs share.

use std::fs;

use ringflake::{CachedGenerator, Layout, Local};

use crate::home::{
    Home, ONE, OTHER, Parts, assert_new, distinct, fail, object, stderr, stdout, succeed,
};
use ringflake_kit::assert_says;
use ringflake_kit::tls::mode;

const LAYOUT: Layout = Layout::RANDFLAKE;

const NAMELESS: &str = "30-17-17_2024-10-27t03.33.20z-1s";

fn program(home: &Home) -> CachedGenerator {
    let local = Local::new("orders").in_directory(home.data_dir());
    CachedGenerator::builder(LAYOUT)
        .local(local.accept_best_effort(true))
        .capacity(64)
        .build()
        .unwrap()
}

/// The namespace that these options lead to.
fn namespace(home: &Home, options: &str) -> String {
    // After a loss the status is that of an alarm.
    let said = stdout(&home.run(format!("store check --format json {options}")));
    object(&said)["namespace"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_and_the_command_line_share_a_namespace() {
    let home = Home::new();
    let generate = "generate -n 100 --namespace orders";
    let first = succeed(home.run(generate));
    assert_says(&stderr(&first), &[&home.path("data/orders.secret")]);
    assert_eq!(mode(&home.data_dir().join("orders.secret")), 0o600);

    let ids = program(&home);
    let own: Vec<_> = (0..100).map(|_| ids.take().unwrap()).collect();
    let mut lines: String = own.iter().map(|id| format!("{id}\n")).collect();
    lines += &stdout(&first);
    lines += &home.print(generate);
    let parts = home.inspect("--input base32hex --namespace orders", &lines);
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 300);
    assert_new(&parts);
    for (id, parts) in own.iter().zip(&parts) {
        let known = ids.inspect(*id).unwrap();
        assert_eq!(parts.cell(), (known.unix_ms, known.node, known.sequence));
    }
    let held = home.print("store ls --all --format json --namespace orders");
    assert_eq!(held.lines().count(), 3, "{held}");
    assert_eq!(namespace(&home, "--namespace orders"), "orders");
    home.print("verify -n 1000 --namespace orders");
    // Plain ones are in a namespace of their own.
    home.print("generate --namespace orders --plain");
    let plain = namespace(&home, "--namespace orders --plain");
    assert_eq!(plain, "orders-plain");
    assert!(!home.data_dir().join("secret").exists());
}

#[test]
fn another_secret_for_a_namespace_is_refused_by_both_names() {
    let home = Home::new();
    let other = home.write_secret("other.key", OTHER);
    let kept = home.path("data/orders.secret");
    let refuse = |command: &str| {
        let options = format!("--namespace orders --secret-file {other}");
        let message = home.refuse(format!("{command} {options}"));
        assert_says(&message, &[&other, &kept]);
    };
    refuse("generate");
    assert!(!home.data_dir().exists());
    home.print("generate --namespace orders");
    for command in [
        "generate",
        "inspect 5",
        "store ls",
        "store check",
        "store init --history new",
    ] {
        refuse(command);
    }
    let generate = "generate --namespace orders";
    let by_variable = home.run_with(generate, "RINGFLAKE_SECRET_FILE", &other);
    assert_says(&fail(by_variable), &["RINGFLAKE_SECRET_FILE"]);
    // Its own, under whatever name, is none.
    let copy = home.write_secret("copy", fs::read(kept).unwrap());
    home.print(format!("{generate} --secret-file {copy}"));

    // In a store that is shared, the one that was meant is named if it is known.
    let url = format!("sqlite:{}", home.path("shared.db"));
    let place = format!("--store {url} --namespace orders --secret-file");
    succeed(home.run("keygen"));
    let meant = home.path("data/secret");
    home.print(format!("store init --history new {place} {meant}"));
    let message = home.refuse(format!("generate {place} {other}"));
    assert_says(&message, &[&other, &meant]);
}

#[test]
fn secrets_in_one_directory_are_told_apart_for_good() {
    let home = Home::new();
    let files = [("one", ONE), ("other", OTHER)].map(|(name, hex)| home.keep_secret(name, hex));
    let kept = home.print("generate");
    assert_eq!(namespace(&home, ""), NAMELESS);
    let mut known = vec![NAMELESS.to_owned()];
    for file in &files {
        let secret = format!("--secret-file {file}");
        let generate = format!("generate -n 100 {secret}");
        let first = home.print(&generate);
        let name = namespace(&home, &secret);
        assert!(name.starts_with(&format!("{NAMELESS}-")), "{name}");
        let second = home.print(&generate);
        assert_eq!(namespace(&home, &secret), name);
        let inspect = format!("--input base32hex {secret}");
        let parts = home.inspect(inspect, &[first, second].concat());
        assert_eq!(distinct(parts.iter().map(Parts::cell)), 200);
        assert_new(&parts);
        known.push(name);
    }
    assert_eq!(distinct(&known), 3);

    // Put in the place of the one that was kept, a secret stays where it was.
    fs::copy(&files[0], home.data_dir().join("secret")).unwrap();
    assert_eq!(namespace(&home, ""), known[1]);
    let more = home.print("generate");
    assert_eq!(distinct(kept.lines().chain(more.lines())), 20);
    // And so does one that is given under the name of another namespace.
    program(&home);
    let given = format!("--secret-file {}", home.path("data/orders.secret"));
    home.print(format!("generate {given}"));
    assert_eq!(namespace(&home, &given), "orders");
}
