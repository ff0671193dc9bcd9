//! Imports run one way: the sources are read, and each use is looked up in the table of
//! `ARCHITECTURE.md`. Nothing goes in a circle, from one file to the next and back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

mod arrows;
mod resolve;
mod tree;

use self::arrows::{House, Table, parse_table};
use self::tree::Crate;

/// Where the table stands.
const HEADING: &str = "## Who may use whom";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read_crate(main: &str) -> Crate {
    let read = |path: &Path| std::fs::read_to_string(root().join(path)).ok();
    Crate::read(Path::new(main), &read)
}

fn table() -> Table {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = parse_table(&page, HEADING);
    assert!(!table.is_empty(), "no rows under '{HEADING}'");
    table
}

/// The library and the command line, each with what its rows begin with.
fn both() -> [(&'static Crate, &'static str); 2] {
    static CRATES: OnceLock<[Crate; 2]> = OnceLock::new();
    let read = || [read_crate("src/lib.rs"), read_crate("cli/src/main.rs")];
    let [library, cli] = CRATES.get_or_init(read);
    [(library, ""), (cli, "cli")]
}

fn fail_with(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn a_module_uses_those_alone_that_the_table_allows() {
    let table = table();
    let faults = both().map(|(tree, prefix)| {
        let house = House { tree, prefix };
        house.outside_of_table(&table)
    });
    fail_with(&faults.concat());
}

#[test]
fn no_file_uses_itself_by_way_of_others() {
    let mut faults = Vec::new();
    for (tree, prefix) in both() {
        let house = House { tree, prefix };
        for circle in house.circles() {
            faults.push(format!("{} files in a circle:", circle.files.len()));
            faults.extend(circle.arrows);
        }
    }
    fail_with(&faults);
}

#[test]
fn what_the_root_exports_is_for_users_alone() {
    let [(tree, _), _] = both();
    fail_with(&house(tree).facade_imports());
}

/// A made-up tree of files.
fn made_up(files: &[(&str, &str)]) -> Crate {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    Crate::read(Path::new("src/lib.rs"), &read)
}

fn house(tree: &Crate) -> House<'_> {
    House { tree, prefix: "" }
}

/// `room` and `ring` use `id`, as they may.
fn sound(ring: &str) -> Crate {
    made_up(&[
        (
            "src/lib.rs",
            "mod id; mod ring; mod room;\npub use self::id::Id;",
        ),
        ("src/id.rs", "pub struct Id;"),
        ("src/ring.rs", ring),
        (
            "src/room.rs",
            "mod wall;\npub use self::wall::Wall;\npub fn enter() {}",
        ),
        (
            "src/room/wall.rs",
            "use crate::id::Id;\npub struct Wall(Id);",
        ),
    ])
}

fn rows() -> Table {
    parse_table(
        "# A page\n## Who may use whom\n| module | may use |\n|---|---|\n\
         | `id` | nothing |\n| `room` | `id` |\n| `ring` | `id` |\n## Else\n| `x` | `y` |",
        HEADING,
    )
}

#[test]
fn a_tree_in_order_has_no_faults() {
    let tree = sound("use crate::id::Id;\npub struct Ring(Id);");
    assert_eq!(house(&tree).outside_of_table(&rows()), [""; 0]);
    assert_eq!(house(&tree).facade_imports(), [""; 0]);
    assert!(house(&tree).circles().is_empty());
}

#[test]
fn a_use_outside_of_the_table_is_found_by_name() {
    for ring in [
        "\nuse crate::room::Wall;",
        "\nuse crate::{id::Id, room::{self, Wall}};",
        "\nfn f() { crate::room::enter() }",
        "\nfn f() -> super::room::Wall { todo!() }",
        "\nfn f() { assert!(crate::room::enter() == ()) }",
        "\nuse crate::room as chamber;",
    ] {
        let tree = sound(ring);
        let faults = house(&tree).outside_of_table(&rows());
        assert!(!faults.is_empty(), "{ring}");
        for fault in faults {
            assert!(
                fault.starts_with("src/ring.rs:2: `ring` uses `room` ("),
                "{fault}"
            );
            assert!(fault.ends_with("it may use: id"), "{fault}");
        }
    }
}

#[test]
fn what_only_tests_and_comments_name_is_left_out() {
    for ring in [
        "#[cfg(test)]\nmod tests { use crate::room::Wall; }",
        "#[cfg(all(test, unix))]\nmod tests;",
        "#[cfg(test)]\nuse crate::room::Wall;",
        "#[test]\nfn f() { crate::room::enter() }",
        "//! [`Wall`](crate::room::Wall)\n// crate::room::enter()",
        "fn f() -> &'static str { \"crate::room::enter()\" }",
    ] {
        let tree = sound(ring);
        assert_eq!(house(&tree).outside_of_table(&rows()), [""; 0], "{ring}");
    }
}

#[test]
fn a_module_without_a_row_and_a_row_without_a_module() {
    let tree = sound("");
    let mut table = rows();
    table.remove("ring");
    table.insert("rong".to_owned(), BTreeSet::new());
    table.get_mut("room").unwrap().insert("cellar".to_owned());
    assert_eq!(
        house(&tree).outside_of_table(&table),
        [
            "`ring` has no row in the table",
            "`rong` has a row in the table, but is no module",
            "`room` may use `cellar` by the table, but no such module is beside it",
        ]
    );
}

#[test]
fn an_import_from_the_facade_is_found_by_name() {
    for (ring, line) in [
        ("use crate::Id;", 1),
        ("\nuse super::{Id};", 2),
        ("\n\nfn f(_: crate::Id) {}", 3),
    ] {
        let tree = sound(ring);
        assert_eq!(
            house(&tree).facade_imports(),
            [format!(
                "src/ring.rs:{line}: `Id` is taken from what the root exports: \
                 name its module, crate::id"
            )]
        );
    }
}

#[test]
fn a_function_that_has_a_modules_name_is_not_the_module() {
    let tree = made_up(&[
        (
            "src/lib.rs",
            "mod above; mod local;\npub use self::above::local;",
        ),
        ("src/local.rs", "pub struct Local;"),
        (
            "src/above.rs",
            "use crate::local::Local;\npub fn local() -> Local { Local }",
        ),
    ]);
    assert_eq!(house(&tree).facade_imports(), [""; 0]);
    let table = parse_table(
        "## Who may use whom\n| `local` | nothing |\n| `above` | `local` |",
        HEADING,
    );
    assert_eq!(house(&tree).outside_of_table(&table), [""; 0]);
    let nothing = parse_table(
        "## Who may use whom\n| `local` | nothing |\n| `above` | nothing |",
        HEADING,
    );
    assert_eq!(house(&tree).outside_of_table(&nothing).len(), 1);
}

#[test]
fn a_circle_is_found_with_the_files_in_it() {
    let tree = made_up(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "mod part;\nuse self::part::Part;\npub struct A(Part);",
        ),
        ("src/a/part.rs", "pub struct Part(crate::b::B);"),
        (
            "src/b.rs",
            "use crate::a::A;\npub struct B(Option<Box<A>>);",
        ),
    ]);
    let circles = house(&tree).circles();
    let [circle] = &circles[..] else {
        panic!("{circles:?}")
    };
    let files = ["src/a.rs", "src/a/part.rs", "src/b.rs"].map(PathBuf::from);
    assert_eq!(circle.files, files.into());
    assert_eq!(
        circle.arrows,
        [
            "src/a/part.rs:1 -> src/b.rs (crate::b::B)",
            "src/a.rs:2 -> src/a/part.rs (self::part::Part)",
            "src/b.rs:1 -> src/a.rs (crate::a::A)",
        ]
    );
}

#[test]
fn what_a_parent_exports_again_is_no_arrow_to_it() {
    let tree = made_up(&[
        ("src/lib.rs", "mod a;"),
        (
            "src/a.rs",
            "mod b;\nmod c;\npub use self::b::B;\npub use self::c::C;",
        ),
        ("src/a/b.rs", "pub struct B;"),
        ("src/a/c.rs", "use super::B;\npub struct C(B);"),
    ]);
    assert!(house(&tree).circles().is_empty());
}

#[test]
fn a_child_that_uses_its_parents_own_items_is_found() {
    let tree = made_up(&[
        ("src/lib.rs", "mod a;"),
        (
            "src/a.rs",
            "mod b;\nuse self::b::B;\npub struct A(B);\npub const SIZE: usize = 1;",
        ),
        ("src/a/b.rs", "pub struct B([u8; super::SIZE]);"),
    ]);
    assert_eq!(house(&tree).circles().len(), 1);
    let table = parse_table("## Who may use whom\n| `a::b` | nothing |", HEADING);
    let faults = house(&tree).outside_of_table(&table);
    let expected = "src/a/b.rs:1: `a::b` uses `what stands above it` (super::SIZE); it may use: ";
    assert_eq!(faults, [expected]);
}
