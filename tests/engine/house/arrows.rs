//! Who uses whom: between files, and between the modules of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::resolve::Target;
use super::tree::{By, Crate, Module, ModuleId};

/// One module names something of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: ModuleId,
    pub(crate) to: ModuleId,
    pub(crate) line: usize,
    /// As it is written.
    pub(crate) path: String,
    /// Whether something that is declared in the other is named, and not only the module.
    pub(crate) to_item: bool,
}

/// What the sources break, one line each, with the file and the line.
pub(crate) type Faults = Vec<String>;

/// For each module that has a row, those beside it that it may use.
pub(crate) type Table = BTreeMap<String, BTreeSet<String>>;

/// The rows of a table in Markdown: a module in the first column, and in the second those
/// that it may use, each in backquotes.
pub(crate) fn parse_table(page: &str, heading: &str) -> Table {
    let mut table = Table::new();
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    for line in lines.take_while(|line| !line.starts_with("## ")) {
        let mut cells = line.split('|').map(quoted).skip(1);
        if let (Some(module), Some(uses)) = (cells.next(), cells.next())
            && let Some(module) = module.first()
        {
            let earlier = table.insert(module.clone(), uses.into_iter().collect());
            assert!(earlier.is_none(), "`{module}` has two rows");
        }
    }
    table
}

fn quoted(cell: &str) -> Vec<String> {
    let pieces = cell.split('`').skip(1).step_by(2);
    pieces.map(str::to_owned).collect()
}

/// A crate, under the name that its rows in the table begin with, if any.
pub(crate) struct House<'a> {
    pub(crate) tree: &'a Crate,
    pub(crate) prefix: &'a str,
}

impl House<'_> {
    pub(crate) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (from, module) in self.tree.modules.iter().enumerate() {
            for used in &module.uses {
                if used.by == By::Export {
                    continue;
                }
                for target in self.tree.resolve(from, &used.path) {
                    let (to, to_item) = match target {
                        Target::ItemOf(to) => (to, true),
                        // A path through a module is an arrow of its own.
                        Target::Module(to) if used.by == By::Import => (to, false),
                        Target::Module(_) | Target::Facade(_) => continue,
                    };
                    if to != from {
                        arrows.push(Arrow {
                            from,
                            to,
                            line: used.line,
                            path: used.path.join("::"),
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
        for (from, module) in self.tree.modules.iter().enumerate().skip(1) {
            for used in &module.uses {
                let targets = self.tree.resolve(from, &used.path);
                let facade = targets.iter().find_map(|target| match target {
                    Target::Facade(name) => Some(name),
                    _ => None,
                });
                let item = targets.iter().find_map(|target| match target {
                    Target::ItemOf(id) => Some(&self.tree.modules[*id]),
                    _ => None,
                });
                if let (Some(name), Some(item)) = (facade, item) {
                    faults.push(format!(
                        "{}: `{name}` is taken from what the root exports: name its module, {}",
                        place(module, used.line),
                        joined("crate", item),
                    ));
                }
            }
        }
        faults
    }

    /// Uses that the table does not allow, and rows that fit no module.
    pub(crate) fn outside_of_table(&self, table: &Table) -> Faults {
        let mut faults = Faults::new();
        let rooms: BTreeMap<String, ModuleId> = (0..self.tree.modules.len())
            .filter_map(|id| Some((self.room(self.tree.modules[id].parent?, id)?, id)))
            .collect();
        let has_row = |room: &String| table.contains_key(room);
        // A module is divided in the table as soon as one of its own has a row.
        let divided: BTreeSet<ModuleId> = rooms
            .iter()
            .filter(|(room, _)| has_row(room))
            .filter_map(|(_, id)| self.tree.modules[*id].parent)
            .collect();
        for (room, id) in &rooms {
            let parent = self.tree.modules[*id].parent;
            if parent.is_some_and(|parent| divided.contains(&parent)) && !has_row(room) {
                faults.push(format!("`{room}` has no row in the table"));
            }
        }
        for (room, uses) in table {
            let is_ours = match self.prefix {
                "" => !room.starts_with("cli::"),
                prefix => room.starts_with(&format!("{prefix}::")),
            };
            let Some(id) = rooms.get(room).filter(|_| is_ours) else {
                if is_ours {
                    faults.push(format!("`{room}` has a row in the table, but is no module"));
                }
                continue;
            };
            for used in uses {
                let beside = self.tree.modules[*id].parent;
                let beside = beside.map(|parent| &self.tree.modules[parent].names);
                if beside.is_none_or(|names| !names.contains_key(used)) {
                    faults.push(format!(
                        "`{room}` may use `{used}` by the table, but no such module is beside it"
                    ));
                }
            }
        }
        // One line for each module that uses another.
        let mut reported = BTreeSet::new();
        for arrow in self.arrows() {
            for parent in &divided {
                let Some(from) = self.room(*parent, arrow.from) else {
                    continue;
                };
                if !self.tree.modules[arrow.to]
                    .path
                    .starts_with(&self.tree.modules[*parent].path)
                {
                    continue;
                }
                let to = self.child(*parent, arrow.to);
                let allowed = table.get(&from);
                let fits = match &to {
                    Some(to) => {
                        self.child(*parent, arrow.from).as_ref() == Some(to)
                            || allowed.is_none_or(|allowed| allowed.contains(to))
                    }
                    // The parent's own items, which stand above.
                    None => !arrow.to_item,
                };
                if !fits && reported.insert((arrow.from, *parent, to.clone())) {
                    let to = to.unwrap_or_else(|| "what stands above it".to_owned());
                    let allowed: Vec<_> = allowed.into_iter().flatten().cloned().collect();
                    faults.push(format!(
                        "{}: `{from}` uses `{to}` ({}); it may use: {}",
                        place(&self.tree.modules[arrow.from], arrow.line),
                        arrow.path,
                        allowed.join(", ")
                    ));
                }
            }
        }
        faults.sort();
        faults.dedup();
        faults
    }

    /// The child of `parent` that `module` is or lies in, as the table calls it.
    fn room(&self, parent: ModuleId, module: ModuleId) -> Option<String> {
        let child = self.child(parent, module)?;
        let mut path = self.tree.modules[parent].path.clone();
        path.push(child);
        if !self.prefix.is_empty() {
            path.insert(0, self.prefix.to_owned());
        }
        Some(path.join("::"))
    }

    fn child(&self, parent: ModuleId, module: ModuleId) -> Option<String> {
        let above = &self.tree.modules[parent].path;
        let path = &self.tree.modules[module].path;
        path.strip_prefix(above.as_slice())?.first().cloned()
    }

    /// Sets of files each of which uses, at last, itself; with the arrows among them.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let mut edges: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        let arrows: Vec<_> = self.arrows().into_iter().filter(|it| it.to_item).collect();
        let file = |id: ModuleId| self.tree.modules[id].file.as_path();
        for arrow in &arrows {
            let (from, to) = (file(arrow.from), file(arrow.to));
            if from != to {
                edges.entry(from).or_default().insert(to);
            }
        }
        let reached: BTreeMap<_, _> = edges
            .keys()
            .map(|from| (*from, reach(&edges, from)))
            .collect();
        let mut circles: Vec<Circle> = Vec::new();
        for (from, beyond) in &reached {
            let returns = |to: &&&Path| reached.get(**to).is_some_and(|it| it.contains(from));
            let files: BTreeSet<PathBuf> = beyond
                .iter()
                .filter(returns)
                .map(|it| it.to_path_buf())
                .collect();
            if files.is_empty() || circles.iter().any(|circle| circle.files == files) {
                continue;
            }
            let inside = |id: ModuleId| files.contains(file(id));
            let mut first: BTreeMap<(&Path, &Path), (usize, &str)> = BTreeMap::new();
            for arrow in &arrows {
                let (from, to) = (file(arrow.from), file(arrow.to));
                if from != to && inside(arrow.from) && inside(arrow.to) {
                    let found = first.entry((from, to)).or_insert((usize::MAX, ""));
                    *found = (*found).min((arrow.line, &arrow.path));
                }
            }
            let arrow = |((from, to), (line, path)): (&(&Path, &Path), &(usize, &str))| {
                format!("{}:{line} -> {} ({path})", from.display(), to.display())
            };
            let arrows = first.iter().map(arrow).collect();
            circles.push(Circle { files, arrows });
        }
        circles
    }
}

/// Files that use each other in a circle.
#[derive(Debug)]
pub(crate) struct Circle {
    pub(crate) files: BTreeSet<PathBuf>,
    /// From file to file, with the first line and path that makes it.
    pub(crate) arrows: Vec<String>,
}

fn reach<'a>(edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, from: &'a Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in edges.get(next).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

fn place(module: &Module, line: usize) -> String {
    format!("{}:{line}", module.file.display())
}

fn joined(root: &str, module: &Module) -> String {
    let mut path = vec![root.to_owned()];
    path.extend(module.path.iter().cloned());
    path.join("::")
}
