//! Imports run one way: the sources are read, and each use is looked up in the table of
//! `ARCHITECTURE.md`. Nothing goes in a circle, from one file to the next and back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

mod arrows;
mod resolve;
mod tree;

use self::arrows::{Table, parse_table};
use self::tree::Crate;

/// Where the table stands.
const HEADING: &str = "## Who may use whom";

fn read(path: &Path) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).ok()
}

/// The packages beside the library, whose rows begin with their names.
const BESIDE: [&str; 2] = ["cli", "server"];

/// The library, and then the others.
fn all() -> &'static [Crate; 3] {
    static CRATES: OnceLock<[Crate; 3]> = OnceLock::new();
    CRATES.get_or_init(|| {
        [
            (None, "src/lib.rs"),
            (Some(BESIDE[0]), "cli/src/main.rs"),
            (Some(BESIDE[1]), "server/src/lib.rs"),
        ]
        .map(|(name, root)| Crate::read(name, Path::new(root), &read))
    })
}

fn fail_with(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn a_module_uses_those_alone_that_the_table_allows() {
    let table = parse_table(&read(Path::new("ARCHITECTURE.md")).unwrap(), HEADING);
    let is_of = |row: &str, package: &str| {
        let rest = row.strip_prefix(package);
        rest.is_some_and(|rest| rest.starts_with("::"))
    };
    let tables = [None, Some(BESIDE[0]), Some(BESIDE[1])].map(|package| -> Table {
        let rows = table.iter().filter(|(row, _)| match package {
            None => !BESIDE.iter().any(|package| is_of(row, package)),
            Some(package) => is_of(row, package),
        });
        rows.map(|(row, uses)| (row.clone(), uses.clone()))
            .collect()
    });
    let mut faults = Vec::new();
    for (tree, table) in all().iter().zip(tables) {
        assert!(!table.is_empty(), "no rows under '{HEADING}'");
        faults.extend(tree.outside_of_table(&table));
    }
    fail_with(&faults);
}

#[test]
fn no_file_uses_itself_by_way_of_others() {
    let mut faults = Vec::new();
    for circle in all().iter().flat_map(Crate::circles) {
        faults.push(format!("{} files in a circle:", circle.files.len()));
        faults.extend(circle.arrows);
    }
    fail_with(&faults);
}

#[test]
fn what_the_root_exports_is_for_users_alone() {
    fail_with(&all()[0].facade_imports());
}

/// A made-up tree: its root, and the files beside it.
fn made_up(root: &str, files: &[(&str, &str)]) -> Crate {
    let read = |path: &Path| match path.strip_prefix("src").unwrap() {
        path if path == "lib.rs" => Some(root.to_owned()),
        path => files
            .iter()
            .find(|(name, _)| path == *name)
            .map(|(_, text)| (*text).to_owned()),
    };
    Crate::read(None, Path::new("src/lib.rs"), &read)
}

/// `room` and `ring` use `id`, as they may.
fn sound(ring: &str) -> Crate {
    let root = "mod id; mod ring; mod room;\npub use self::id::Id;";
    let room = "mod wall;\npub use self::wall::Wall;\npub fn enter() {}";
    made_up(
        root,
        &[
            ("id.rs", "pub struct Id;"),
            ("ring.rs", ring),
            ("room.rs", room),
            ("room/wall.rs", "use crate::id::Id;\npub struct Wall(Id);"),
        ],
    )
}

/// Each module with those that it may use.
fn rows(rows: &[(&str, &[&str])]) -> Table {
    let row = |(module, uses): &(&str, &[&str])| {
        let uses: Vec<_> = uses.iter().map(|used| format!("`{used}`")).collect();
        format!("| `{module}` | {} |\n", uses.join(", "))
    };
    let rows: String = rows.iter().map(row).collect();
    let above = "# A page\n| `w` | `y` |\n";
    let head = "| module | may use |\n|---|---|\n";
    let page = format!("{above}{HEADING}\n{head}{rows}## Else\n| `x` | `y` |");
    parse_table(&page, HEADING)
}

const SOUND: &[(&str, &[&str])] = &[("id", &[]), ("room", &["id"]), ("ring", &["id"])];

#[test]
fn a_tree_in_order_has_no_faults() {
    let tree = sound("use crate::id::Id;\npub struct Ring(Id);");
    assert_eq!(tree.outside_of_table(&rows(SOUND)), [""; 0]);
    assert_eq!(tree.facade_imports(), [""; 0]);
    assert!(tree.circles().is_empty());
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
        "#[cfg(test)] const F: fn() = g::<u8, u8>;\nfn f() { crate::room::enter() }",
    ] {
        let faults = sound(ring).outside_of_table(&rows(SOUND));
        assert!(!faults.is_empty(), "{ring}");
        for fault in faults {
            let begin = "src/ring.rs:2: `ring` uses `room` (";
            assert!(fault.starts_with(begin), "{ring}: {fault}");
            assert!(fault.ends_with("it may use: id"), "{ring}: {fault}");
        }
    }
}

#[test]
fn what_only_tests_and_comments_name_is_left_out() {
    for ring in [
        "#[cfg(test)]\nmod tests { use crate::room::Wall; }",
        "#[cfg(all(test, unix))]\nmod tests;",
        "#[cfg(feature = \"loom\")]\nmod model { use crate::room::Wall; }",
        "#[cfg(test)]\nuse crate::room::Wall;",
        "#[test]\nfn f() { crate::room::enter() }",
        "#[cfg(test)]\nfn f<A, B>() { crate::room::enter() }",
        "struct S { #[cfg(test)] wall: crate::room::Wall }",
        "//! [`Wall`](crate::room::Wall)\n// crate::room::enter()",
        "fn f() -> &'static str { \"crate::room::enter()\" }",
    ] {
        assert_eq!(
            sound(ring).outside_of_table(&rows(SOUND)),
            [""; 0],
            "{ring}"
        );
    }
}

#[test]
fn a_module_without_a_row_and_a_row_without_a_module() {
    let table = rows(&[("id", &[]), ("room", &["id", "cellar"]), ("rong", &[])]);
    assert_eq!(
        sound("").outside_of_table(&table),
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
        let fault = format!(
            "src/ring.rs:{line}: `Id` is taken from what the root exports: \
             name its module, crate::id"
        );
        assert_eq!(sound(ring).facade_imports(), [fault]);
    }
}

#[test]
fn a_function_that_has_a_modules_name_is_not_the_module() {
    let above = "use crate::local::Local;\npub fn local() -> Local { Local }";
    let tree = made_up(
        "mod above; mod local;\npub use self::above::local;",
        &[("local.rs", "pub struct Local;"), ("above.rs", above)],
    );
    assert_eq!(tree.facade_imports(), [""; 0]);
    for (above, faults) in [(&["local"][..], 0), (&[], 1)] {
        let table = rows(&[("local", &[]), ("above", above)]);
        assert_eq!(tree.outside_of_table(&table).len(), faults, "{above:?}");
    }
}

#[test]
fn a_circle_is_found_with_the_files_in_it() {
    let part = "mod part;\nuse self::part::Part;\npub struct A(Part);";
    let tree = made_up(
        "mod a; mod b;",
        &[
            ("a.rs", part),
            ("a/part.rs", "pub struct Part(crate::b::B);"),
            ("b.rs", "use crate::a::A;\npub struct B(Option<Box<A>>);"),
        ],
    );
    let circles = tree.circles();
    let [circle] = &circles[..] else {
        panic!("{circles:?}")
    };
    let files = ["src/a.rs", "src/a/part.rs", "src/b.rs"].map(PathBuf::from);
    assert_eq!(circle.files, BTreeSet::from(files));
    let arrows = [
        "src/a/part.rs:1 -> src/b.rs (crate::b::B)",
        "src/a.rs:2 -> src/a/part.rs (self::part::Part)",
        "src/b.rs:1 -> src/a.rs (crate::a::A)",
    ];
    assert_eq!(circle.arrows, arrows);
}

#[test]
fn what_a_parent_exports_again_is_no_arrow_to_it() {
    let exports = "mod b;\nmod c;\npub use self::b::B;\npub(crate) use self::c::C;";
    let c = ("a/c.rs", "use super::B;\npub struct C(B);");
    let tree = made_up(
        "mod a;",
        &[("a.rs", exports), ("a/b.rs", "pub struct B;"), c],
    );
    assert!(tree.circles().is_empty());
}

#[test]
fn a_child_that_uses_its_parents_own_items_is_found() {
    let parent = "mod b;\nuse self::b::B;\npub struct A(B);\npub const SIZE: usize = 1;";
    let child = "pub struct B([u8; super::SIZE]);";
    let tree = made_up("mod a;", &[("a.rs", parent), ("a/b.rs", child)]);
    assert_eq!(tree.circles().len(), 1);
    let faults = tree.outside_of_table(&rows(&[("a::b", &[])]));
    let expected = "src/a/b.rs:1: `a::b` uses `what stands above it` (super::SIZE); it may use: ";
    assert_eq!(faults, [expected]);
}
