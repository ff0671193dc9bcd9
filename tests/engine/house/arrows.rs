//! Who uses whom: between files, and between the modules of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::resolve::Target;
use super::tree::{By, Crate, ModuleId};

/// One module names something of another.
#[derive(Clone, Debug)]
struct Arrow {
    from: ModuleId,
    to: ModuleId,
    line: usize,
    /// As it is written.
    path: String,
    /// Whether something that is declared in the other is named, and not only the module.
    to_item: bool,
}

/// What the sources break, one line each, with the file and the line.
pub(crate) type Faults = Vec<String>;

/// For each module that has a row, those beside it that it may use.
pub(crate) type Table = BTreeMap<String, BTreeSet<String>>;

/// The rows of a table in Markdown: a module in the first column, and in the second those
/// that it may use, each in backquotes.
pub(crate) fn parse_table(page: &str, heading: &str) -> Table {
    let quoted = |cell: &str| {
        let pieces = cell.split('`').skip(1).step_by(2);
        pieces.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let mut table = Table::new();
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    for line in lines.take_while(|line| !line.starts_with("## ")) {
        let mut cells = line.split('|').map(quoted).skip(1);
        if let (Some(module), Some(uses)) = (cells.next(), cells.next())
            && let Some(module) = module.first()
        {
            let earlier = table.insert(module.clone(), uses);
            assert!(earlier.is_none(), "`{module}` has two rows");
        }
    }
    table
}

/// Files that use each other in a circle.
#[derive(Debug)]
pub(crate) struct Circle {
    pub(crate) files: BTreeSet<PathBuf>,
    /// From file to file, with the first line and path that makes it.
    pub(crate) arrows: Vec<String>,
}

impl Crate {
    fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (from, module) in self.modules.iter().enumerate() {
            for used in module.uses.iter().filter(|used| used.by != By::Export) {
                for target in self.resolve(from, &used.path) {
                    let (to, to_item) = match target {
                        Target::ItemOf(to) => (to, true),
                        // A path through a module is an arrow of its own.
                        Target::Module(to) if used.by == By::Import => (to, false),
                        Target::Module(_) | Target::Facade(_) => continue,
                    };
                    if to != from {
                        let (line, path) = (used.line, used.path.join("::"));
                        arrows.push(Arrow {
                            from,
                            to,
                            line,
                            path,
                            to_item,
                        });
                    }
                }
            }
        }
        arrows
    }

    /// Names that are taken from the root's exports instead of from their module.
    pub(crate) fn facade_imports(&self) -> Faults {
        let mut faults = Faults::new();
        for (from, module) in self.modules.iter().enumerate().skip(1) {
            for used in &module.uses {
                let (mut facade, mut item) = (None, None);
                for target in self.resolve(from, &used.path) {
                    match target {
                        Target::Facade(name) => facade = Some(name),
                        Target::ItemOf(id) => item = item.or(Some(&self.modules[id].path)),
                        Target::Module(_) => {}
                    }
                }
                if let (Some(name), Some(path)) = (facade, item) {
                    let path = path[self.modules[0].path.len()..].join("::");
                    faults.push(format!(
                        "{}: `{name}` is taken from what the root exports: \
                         name its module, crate::{path}",
                        self.place(from, used.line)
                    ));
                }
            }
        }
        faults
    }

    /// Uses that the table does not allow, and rows that fit no module.
    pub(crate) fn outside_of_table(&self, table: &Table) -> Faults {
        let name = |id: ModuleId| self.modules[id].path.join("::");
        let with_parent = |(id, _)| Some((name(id), self.modules[id].parent?));
        let modules = self.modules.iter().enumerate();
        let modules: BTreeMap<String, ModuleId> = modules.filter_map(with_parent).collect();
        // A module is divided in the table as soon as one of its own has a row.
        let divided: BTreeSet<ModuleId> = table
            .keys()
            .filter_map(|row| modules.get(row))
            .copied()
            .collect();
        let mut faults = BTreeSet::new();
        for (module, parent) in &modules {
            if divided.contains(parent) && !table.contains_key(module) {
                faults.insert(format!("`{module}` has no row in the table"));
            }
        }
        for (row, uses) in table {
            let Some(parent) = modules.get(row) else {
                faults.insert(format!("`{row}` has a row in the table, but is no module"));
                continue;
            };
            for used in uses {
                if !self.modules[*parent].names.contains_key(used) {
                    faults.insert(format!(
                        "`{row}` may use `{used}` by the table, but no such module is beside it"
                    ));
                }
            }
        }
        // One line for each module that uses another.
        let mut reported = BTreeSet::new();
        for arrow in self.arrows() {
            for &parent in &divided {
                let above = &self.modules[parent].path;
                let below = |id: ModuleId| self.modules[id].path.strip_prefix(above.as_slice());
                let (Some([from, ..]), Some(to)) = (below(arrow.from), below(arrow.to)) else {
                    continue;
                };
                let row = [above.as_slice(), std::slice::from_ref(from)]
                    .concat()
                    .join("::");
                let allowed = table.get(&row);
                let (fits, to) = match to.first() {
                    Some(to) => {
                        let allowed = allowed.is_none_or(|allowed| allowed.contains(to));
                        (to == from || allowed, to.as_str())
                    }
                    // The parent's own items.
                    None => (!arrow.to_item, "what stands above it"),
                };
                if !fits && reported.insert((arrow.from, parent, to.to_owned())) {
                    let allowed: Vec<_> = allowed.into_iter().flatten().cloned().collect();
                    faults.insert(format!(
                        "{}: `{row}` uses `{to}` ({}); it may use: {}",
                        self.place(arrow.from, arrow.line),
                        arrow.path,
                        allowed.join(", ")
                    ));
                }
            }
        }
        faults.into_iter().collect()
    }

    /// Sets of files each of which uses, at last, itself; with the arrows among them.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let file = |id: ModuleId| self.modules[id].file.as_path();
        let mut edges: BTreeMap<&Path, BTreeMap<&Path, (usize, String)>> = BTreeMap::new();
        for arrow in self.arrows().into_iter().filter(|arrow| arrow.to_item) {
            let (from, to) = (file(arrow.from), file(arrow.to));
            if from != to {
                let first = edges.entry(from).or_default().entry(to);
                let first = first.or_insert((usize::MAX, String::new()));
                *first = first.clone().min((arrow.line, arrow.path));
            }
        }
        let mut reached: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for from in edges.keys() {
            let (mut open, beyond) = (vec![*from], reached.entry(from).or_default());
            while let Some(next) = open.pop() {
                let next = edges.get(next).into_iter().flat_map(BTreeMap::keys);
                open.extend(next.filter(|to| beyond.insert(to)));
            }
        }
        let mut circles: Vec<Circle> = Vec::new();
        for (from, beyond) in &reached {
            let returns = |to: &&&Path| reached.get(**to).is_some_and(|it| it.contains(from));
            let files = beyond.iter().filter(returns).map(|it| it.to_path_buf());
            let files: BTreeSet<PathBuf> = files.collect();
            if files.is_empty() || circles.iter().any(|circle| circle.files == files) {
                continue;
            }
            let mut arrows = Vec::new();
            for from in &files {
                for (to, (line, path)) in &edges[from.as_path()] {
                    if files.contains(*to) {
                        let (from, to) = (from.display(), to.display());
                        arrows.push(format!("{from}:{line} -> {to} ({path})"));
                    }
                }
            }
            circles.push(Circle { files, arrows });
        }
        circles
    }

    fn place(&self, module: ModuleId, line: usize) -> String {
        format!("{}:{line}", self.modules[module].file.display())
    }
}
