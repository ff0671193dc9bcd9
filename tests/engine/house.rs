//! Imports run one way. The sources are scanned for paths such as `crate::ring::RingBuffer`
//! and `super::lane`; tests, models, comments and attributes are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's names from the root to it.
type Module = Vec<String>;

/// The siblings that a module may use. Modules that are not listed may use any sibling that
/// does not lead in a circle.
const ONLY: [(&str, &[&str]); 6] = [
    ("cipher", &["events"]),
    ("ring", &["id", "sync", "fork"]),
    ("timeline", &["layout", "sync", "clock", "fork", "lease"]),
    ("lease::client::failure", &[]),
    ("lease::client::protocol", &[]),
    (
        "lease::store::table",
        &["connect", "key", "options", "record", "report"],
    ),
];

/// Parts of the server that know nothing of each other.
const APART: [(&str, &str); 1] = [("http", "resp")];

/// The modules of a crate, with the paths that each names.
struct Crate {
    modules: BTreeMap<Module, Vec<Module>>,
}

impl Crate {
    fn read(folder: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut modules = BTreeMap::new();
        read_folder(&root, &[], &mut modules);
        assert!(modules.len() > 20, "{folder} has few modules");
        Self { modules }
    }

    /// For each module that has children: which of them uses which.
    fn uses(&self) -> BTreeMap<Module, BTreeSet<(String, String)>> {
        let mut uses = BTreeMap::<Module, BTreeSet<_>>::new();
        for (module, paths) in &self.modules {
            for path in paths {
                let common = module.iter().zip(path).take_while(|(a, b)| a == b).count();
                let (Some(from), Some(to)) = (module.get(common), path.get(common)) else {
                    continue;
                };
                // An item of a module above, or what it exports again.
                if !self.modules.contains_key(&path[..=common]) {
                    continue;
                }
                let among = uses.entry(path[..common].to_vec()).or_default();
                among.insert((from.clone(), to.clone()));
            }
        }
        uses
    }
}

fn read_folder(folder: &Path, above: &[String], modules: &mut BTreeMap<Module, Vec<Module>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // Built for tests and models alone.
        if name.ends_with("tests") || ["model", "placement"].contains(&&*name) {
            continue;
        }
        let mut module = above.to_vec();
        if !["lib", "main"].contains(&&*name) {
            module.push(name);
        }
        if path.is_dir() {
            read_folder(&path, &module, modules);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let paths = paths(&fs::read_to_string(&path).unwrap(), &module);
            modules.entry(module).or_default().extend(paths);
        }
    }
}

/// Every path of the text that begins with `crate` or `super`, from the root.
fn paths(text: &str, module: &[String]) -> Vec<Module> {
    let text = code(text);
    let mut found = Vec::new();
    for (begin, prefix) in [("crate::", &[][..]), ("super::", module)] {
        for (at, _) in text.match_indices(begin) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let prefix = if begin == "super::" {
                prefix.split_last().map_or(&[][..], |(_, above)| above)
            } else {
                prefix
            };
            expand(&text[at + begin.len()..], prefix.to_vec(), &mut found);
        }
    }
    found
}

/// Adds `prefix::a::b`, or one path for each of `prefix::{a, b::c}`. Returns the rest.
fn expand<'a>(text: &'a str, mut path: Module, found: &mut Vec<Module>) -> &'a str {
    let mut rest = text;
    loop {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        match &rest[..end] {
            "" if rest.starts_with('{') => {
                rest = rest[1..].trim_start();
                while !rest.starts_with('}') && !rest.is_empty() {
                    rest = expand(rest, path.clone(), found).trim_start();
                    // Behind a renaming, and the comma.
                    let next = rest.find([',', '}']).unwrap_or(rest.len());
                    rest = rest[next..].trim_start_matches(',').trim_start();
                }
                return rest.get(1..).unwrap_or("");
            }
            "" | "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(more) => rest = more,
            None => break,
        }
    }
    found.push(path);
    rest
}

/// The text without comments, and without what only tests have.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut is_for_tests = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") {
            continue;
        }
        if trimmed.starts_with("#[cfg(test)]") || trimmed.starts_with("#[cfg(all(test") {
            is_for_tests = true;
            continue;
        }
        if is_for_tests {
            // The tests of a file are its end.
            if trimmed.starts_with("mod ") && trimmed.ends_with('{') {
                break;
            }
            is_for_tests = trimmed.starts_with('#');
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// A circle, as a list of names, if the uses have one.
fn circle(uses: &BTreeSet<(String, String)>) -> Vec<&str> {
    let mut left: BTreeSet<_> = uses.iter().collect();
    loop {
        let users: BTreeSet<_> = left.iter().map(|(from, _)| from).collect();
        let used: BTreeSet<_> = left.iter().map(|(_, to)| to).collect();
        let before = left.len();
        // A module that uses nothing, or that nothing uses, is in no circle.
        left.retain(|(from, to)| users.contains(to) && used.contains(from));
        if left.len() == before {
            return left.iter().map(|(from, _)| &**from).collect();
        }
    }
}

fn name(above: &[String], module: &str) -> String {
    let mut names = above.to_vec();
    names.push(module.to_owned());
    names.join("::")
}

#[test]
fn modules_beside_each_other_use_each_other_in_no_circle() {
    let mut circles = Vec::new();
    for folder in ["src", "cli/src", "server/src"] {
        for (above, uses) in Crate::read(folder).uses() {
            let circle = circle(&uses);
            if !circle.is_empty() {
                circles.push(format!("{folder}, {}: {circle:?}", above.join("::")));
            }
        }
    }
    assert!(circles.is_empty(), "\n{}\n", circles.join("\n"));
}

#[test]
fn a_module_of_the_library_uses_those_before_it_in_the_order_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let order = page.split("```order\n").nth(1).expect("there is no order");
    let order: Vec<_> = order
        .split("```")
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let place = |module: &str| {
        let place = order.iter().position(|it| *it == module);
        place.unwrap_or_else(|| panic!("ARCHITECTURE.md does not place the module `{module}`"))
    };
    let library = Crate::read("src");
    for module in library.modules.keys().filter_map(|module| module.first()) {
        place(module);
    }
    for (from, to) in &library.uses()[&[][..]] {
        assert!(
            place(to) < place(from),
            "`{from}` uses `{to}`, which stands above it"
        );
    }
}

#[test]
fn the_parts_that_proofs_rest_on_use_only_what_they_may() {
    let library = Crate::read("src");
    let known: BTreeSet<_> = library.modules.keys().map(|it| it.join("::")).collect();
    for (module, may) in ONLY {
        let above = module.rsplit_once("::").map_or("", |(above, _)| above);
        let beside = may.iter().map(|it| format!("{above}::{it}"));
        for name in beside.chain([module.to_owned()]) {
            let name = name.trim_start_matches("::");
            assert!(known.contains(name), "there is no module `{name}`");
        }
    }
    for (above, uses) in library.uses() {
        for (from, to) in uses {
            let user = name(&above, &from);
            let Some((_, may)) = ONLY.iter().find(|(module, _)| *module == user) else {
                continue;
            };
            assert!(
                may.contains(&&*to),
                "`{user}` uses `{to}`; it may use {may:?}"
            );
        }
    }
    let server = Crate::read("server/src").uses();
    for (one, other) in APART {
        let [one, other] = [one, other].map(str::to_owned);
        let both = [(one.clone(), other.clone()), (other, one)];
        assert!(
            both.iter().all(|it| !server[&[][..]].contains(it)),
            "{both:?}"
        );
    }
}

#[test]
fn the_library_takes_names_from_their_modules_and_not_from_its_root() {
    let library = Crate::read("src");
    for (module, paths) in &library.modules {
        for path in paths.iter().filter(|_| !module.is_empty()) {
            let is_of_root = path
                .first()
                .is_some_and(|it| it.starts_with(char::is_uppercase));
            assert!(
                !is_of_root,
                "{} uses crate::{}",
                module.join("::"),
                path.join("::")
            );
        }
    }
}

#[test]
fn a_path_is_found_wherever_it_stands() {
    let module = ["lease", "store"].map(str::to_owned);
    for (text, expected) in [
        ("use crate::id::Id;", &["id::Id"][..]),
        ("fn f() -> super::block::Block {", &["lease::block::Block"]),
        ("use super::super::id::{self, Id};", &["id", "id::Id"]),
        (
            "use crate::{id::{Id, Base32}, ring as r, fill};",
            &["id::Id", "id::Base32", "ring", "fill"],
        ),
        ("// crate::id\n#[cfg(test)]\nuse crate::ring;\n", &[]),
        (
            "let a = crate::id::f();\n#[cfg(test)]\nmod tests {\ncrate::ring::f()",
            &["id::f"],
        ),
        ("pub(crate) mod_crate::id", &[]),
    ] {
        let found: BTreeSet<_> = paths(text, &module)
            .iter()
            .map(|it| it.join("::"))
            .collect();
        let expected: BTreeSet<_> = expected.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let uses = |pairs: &[(&str, &str)]| -> BTreeSet<_> {
        let owned = pairs
            .iter()
            .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
        owned.collect()
    };
    assert!(circle(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(
        circle(&uses(&[("a", "b"), ("b", "c"), ("c", "b")])),
        ["b", "c"]
    );
}
