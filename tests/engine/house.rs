//! Imports run one way. The sources are scanned for paths such as `crate::ring::RingBuffer`; tests,
//! models and comments are left out.

use std::fs;
use std::path::{Path, PathBuf};

/// What proofs rest on: the only modules of the library that these may use.
const ONLY: [(&str, &[&str]); 3] = [
    ("cipher", &["events"]),
    ("ring", &["id", "sync", "fork"]),
    ("timeline", &["layout", "sync", "clock", "fork", "lease"]),
];

/// Files, and the paths that they must not name.
const APART: [(&str, &str); 4] = [
    ("src/lease/client/protocol", "crate::lease::client::"),
    ("src/lease/client/failure", "crate::lease::client::"),
    ("server/src/http", "crate::resp"),
    ("server/src/resp", "crate::http"),
];

/// The sources under `folder`, with their path from there.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn read(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            // Built for tests and models alone.
            if name.ends_with("tests") || ["model", "placement"].contains(&name) {
                continue;
            }
            if path.is_dir() {
                read(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    read(&root, &mut found);
    assert!(found.len() > 20, "{folder} has few files");
    let code = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(&root).unwrap().to_owned(), code(&text))
    };
    found.into_iter().map(code).collect()
}

/// The text without comments, and without what only tests have.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut is_for_tests = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            is_for_tests = true;
        } else if is_for_tests && line.starts_with("mod ") && line.ends_with('{') {
            // The tests of a file are its end.
            break;
        } else if is_for_tests {
            is_for_tests = line.starts_with('#');
        } else if !line.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The first names of all paths of `code` that begin with `crate`.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let paths = code.match_indices("crate::").filter(|&(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    });
    paths.map(|(at, begin)| {
        let path = &code[at + begin.len()..];
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        &path[..end.unwrap_or(path.len())]
    })
}

#[test]
fn a_module_uses_those_before_it_in_the_order_of_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).unwrap();
    let order = page.split("```order\n").nth(1).expect("there is no order");
    let order = order.split("```").next().unwrap();
    let order: Vec<_> = order.split_whitespace().collect();
    let place = |module: &str| {
        let place = order.iter().position(|it| *it == module);
        place.unwrap_or_else(|| panic!("ARCHITECTURE.md does not place the module `{module}`"))
    };
    for (path, code) in sources("src") {
        let module = path.with_extension("");
        let module = module.iter().next().unwrap().to_str().unwrap();
        if module == "lib" {
            continue;
        }
        let may = ONLY.iter().find(|(it, _)| *it == module);
        // A name of the library's root has no place either.
        for name in names(&code).filter(|name| *name != module) {
            let path = path.display();
            assert!(place(name) < place(module), "{path} uses `{name}`");
            let is_allowed = may.is_none_or(|(_, may)| may.contains(&name));
            assert!(is_allowed, "{path} uses `{name}`; it may use {may:?}");
        }
    }
}

#[test]
fn parts_know_nothing_of_each_other() {
    for (part, apart) in APART {
        let (folder, module) = part.split_at(part.find("src/").unwrap() + "src".len());
        let module = module.trim_start_matches('/');
        let sources = sources(folder);
        let is_of_part = |path: &Path| path.with_extension("").starts_with(module);
        let own = sources.iter().filter(|(path, _)| is_of_part(path));
        let own: Vec<_> = own.collect();
        assert!(!own.is_empty(), "there is no {part}");
        let within = format!("crate::{}", module.replace('/', "::"));
        for (path, code) in own {
            let others = code.replace(&within, "");
            assert!(!others.contains(apart), "{} names {apart}", path.display());
        }
    }
}

#[test]
fn a_path_is_found_wherever_it_stands() {
    for (text, expected) in [
        ("use crate::id::Id;", &["id"][..]),
        (
            "fn f() -> crate::block::Block { crate::Id }",
            &["block", "Id"],
        ),
        ("// crate::id\n#[cfg(test)]\nuse crate::ring;\n", &[]),
        (
            "crate::id::f();\n#[cfg(test)]\nmod tests {\ncrate::ring::f()",
            &["id"],
        ),
        ("other_crate::id", &[]),
    ] {
        let code = code(text);
        assert_eq!(names(&code).collect::<Vec<_>>(), expected, "{text}");
    }
}
