//! Imports run one way. The sources are scanned for paths such as `crate::ring::RingBuffer`
//! and `super::lane`; tests, models and comments are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's names from the root to it.
type Module = Vec<String>;

/// The siblings that a module may use. Modules that are not listed may use any sibling that
/// does not lead in a circle.
const ONLY: [(&str, &[&str]); 6] = [
    ("cipher", &["describe", "events"]),
    ("ring", &["id", "sync", "fork"]),
    ("timeline", &["layout", "sync", "clock", "fork", "lease"]),
    ("lease::client::failure", &[]),
    ("lease::client::protocol", &[]),
    (
        "lease::store::table",
        &["connect", "key", "options", "record", "report"],
    ),
];

/// The modules of a crate, with the paths that each names.
fn read(folder: &str) -> BTreeMap<Module, Vec<Module>> {
    let mut modules = BTreeMap::<_, Vec<_>>::new();
    let mut left = vec![(
        Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        Vec::new(),
    )];
    while let Some((folder, above)) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut module = above.clone();
            // Built for tests and models alone.
            if name.ends_with("tests") || ["model", "placement"].contains(&&*name) {
                continue;
            } else if !["lib", "main"].contains(&&*name) {
                module.push(name);
            }
            if path.is_dir() {
                left.push((path, module));
            } else if path.extension().is_some_and(|it| it == "rs") {
                let paths = paths(&fs::read_to_string(&path).unwrap(), &module);
                modules.entry(module).or_default().extend(paths);
            }
        }
    }
    assert!(modules.len() > 20, "{folder} has few modules");
    modules
}

/// For each module that has children: which of them uses which.
fn uses(modules: &BTreeMap<Module, Vec<Module>>) -> BTreeMap<Module, BTreeSet<(&str, &str)>> {
    let mut uses = BTreeMap::<_, BTreeSet<_>>::new();
    for (module, paths) in modules {
        for path in paths {
            let common = module.iter().zip(path).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), path.get(common))
                // Others are items of a module above, or what it exports again.
                && modules.contains_key(&path[..=common])
            {
                let among = uses.entry(path[..common].to_vec()).or_default();
                among.insert((&**from, &**to));
            }
        }
    }
    uses
}

/// The uses that are in a circle, or between two.
fn circle<'a>(mut uses: BTreeSet<(&'a str, &'a str)>) -> BTreeSet<(&'a str, &'a str)> {
    let mut before = usize::MAX;
    while uses.len() < before {
        before = uses.len();
        // A module that uses nothing, or that nothing uses, is in no circle.
        let users: BTreeSet<_> = uses.iter().map(|(from, _)| *from).collect();
        let used: BTreeSet<_> = uses.iter().map(|(_, to)| *to).collect();
        uses.retain(|(from, to)| users.contains(to) && used.contains(from));
    }
    uses
}

/// Every path of the text that begins with `crate` or `super`, from the root.
fn paths(text: &str, module: &[String]) -> Vec<Module> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut text = code(text);
    // The last group has no other in it.
    while let Some(open) = text.rfind("::{") {
        let close = open + text[open..].find('}').unwrap();
        let begin = text[..open].trim_end_matches(is_path).len();
        let names = text[open + 3..close].split(',');
        let names = names.map(|name| format!("{}::{}", &text[begin..open], name.trim()));
        let names: Vec<_> = names.collect();
        text.replace_range(begin..=close, &names.join(","));
    }
    let words = text.split(|c| !is_path(c));
    let words = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    words
        .map(|word| {
            let mut path = module.to_vec();
            for name in word.split("::").map(|name| name.trim_matches(':')) {
                match name {
                    "" | "self" => {}
                    "crate" => path.clear(),
                    "super" => drop(path.pop()),
                    name => path.push(name.to_owned()),
                }
            }
            path
        })
        .collect()
}

/// The text without comments, and without what only tests have.
fn code(text: &str) -> String {
    let mut lines = (text.lines().map(str::trim_start)).filter(|line| !line.starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        if !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test") {
            code = code + line + "\n";
            continue;
        }
        let item = lines.find(|line| !line.starts_with('#'));
        // The tests of a file are its end.
        if item.is_some_and(|it| it.starts_with("mod ") && it.ends_with('{')) {
            break;
        }
    }
    code
}

#[test]
fn modules_beside_each_other_use_each_other_in_no_circle() {
    for folder in ["src", "cli/src", "server/src"] {
        for (above, uses) in uses(&read(folder)) {
            let circle = circle(uses);
            assert!(circle.is_empty(), "{folder}, {above:?}: {circle:?}");
        }
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let chain = [("a", "b"), ("b", "c")];
    assert_eq!(circle(chain.into()), [].into());
    let and_back = [("a", "b"), ("b", "c"), ("c", "b")];
    assert_eq!(circle(and_back.into()), [("b", "c"), ("c", "b")].into());
}

#[test]
fn a_module_of_the_library_uses_those_before_it_in_the_order_of_the_page() {
    let page = include_str!("../../ARCHITECTURE.md");
    let order = page.split("```order\n").nth(1).expect("there is no order");
    let order = order.split("```").next().unwrap().split_whitespace();
    let order: Vec<_> = order.collect();
    let place = |module: &str| {
        let place = order.iter().position(|it| *it == module);
        place.unwrap_or_else(|| panic!("ARCHITECTURE.md does not place the module `{module}`"))
    };
    let library = read("src");
    for (module, paths) in &library {
        let Some(first) = module.first() else {
            continue;
        };
        place(first);
        let is_of_root = |path: &&Module| path[0].starts_with(char::is_uppercase);
        let of_root = paths
            .iter()
            .filter(|path| !path.is_empty())
            .find(is_of_root);
        assert_eq!(of_root, None, "{module:?} imports from lib.rs");
    }
    for (from, to) in &uses(&library)[&[][..]] {
        let is_below = place(to) < place(from);
        assert!(is_below, "`{from}` uses `{to}`, which stands above it");
    }
}

#[test]
fn the_parts_that_proofs_rest_on_use_only_what_they_may() {
    let library = read("src");
    let uses_of_library = uses(&library);
    for (module, may) in ONLY {
        let module: Module = module.split("::").map(str::to_owned).collect();
        assert!(library.contains_key(&module), "there is no {module:?}");
        let (name, above) = module.split_last().unwrap();
        for (from, to) in &uses_of_library[above] {
            let is_allowed = from != name || may.contains(to);
            assert!(is_allowed, "{module:?} uses `{to}`; it may use {may:?}");
        }
    }
    let server = read("server/src");
    for apart in [("http", "resp"), ("resp", "http")] {
        assert!(!uses(&server)[&[][..]].contains(&apart), "{apart:?}");
    }
}

#[test]
fn a_path_is_found_wherever_it_stands() {
    let text = "use crate::{a::{self, B, c::{D}}, e as f};\nfn g() -> super::super::h::I {\n\
        // crate::j\n#[cfg(test)]\nuse crate::k;\nmod_crate::l\n#[cfg(test)]\nmod tests {\ncrate::m";
    let found = paths(text, &["lease", "store"].map(str::to_owned));
    let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a", "a::B", "a::c::D", "e", "h::I"]);
}
