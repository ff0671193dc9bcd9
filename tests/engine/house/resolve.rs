//! What a path stands for: the module that declares it, past all that export it again.

use std::collections::BTreeSet;

use super::tree::{Crate, Module, ModuleId, Named};

/// Imports that lead to each other in a circle are followed no further.
const DEPTH: usize = 24;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Something that is declared in this module.
    ItemOf(ModuleId),
    Module(ModuleId),
    /// A name that the root exports again, which is for users of the crate.
    Facade(String),
}

impl Crate {
    /// What `path` stands for in `module`: nothing, if it leads to another crate.
    pub(crate) fn resolve(&self, module: ModuleId, path: &[String]) -> BTreeSet<Target> {
        let mut targets = BTreeSet::new();
        self.follow(module, path, DEPTH, &mut targets);
        targets
    }

    fn follow(
        &self,
        module: ModuleId,
        path: &[String],
        depth: usize,
        targets: &mut BTreeSet<Target>,
    ) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        match first.as_str() {
            "crate" => self.descend(0, rest, depth, targets),
            "self" => self.descend(module, rest, depth, targets),
            "super" => {
                let Some(mut parent) = self.modules[module].parent else {
                    return;
                };
                let mut rest = rest;
                while let Some(("super", after)) = split(rest)
                    && let Some(above) = self.modules[parent].parent
                {
                    (parent, rest) = (above, after);
                }
                self.descend(parent, rest, depth, targets);
            }
            name if self.modules[module].names.contains_key(name) => {
                self.descend_by_name(module, name, rest, depth, targets);
            }
            _ => {
                for glob in &self.modules[module].globs {
                    self.look_behind(glob, module, path, depth, targets);
                }
            }
        }
    }

    /// `path` as seen from outside of `module`.
    fn descend(
        &self,
        module: ModuleId,
        path: &[String],
        depth: usize,
        targets: &mut BTreeSet<Target>,
    ) {
        let Some((name, rest)) = path.split_first() else {
            targets.insert(Target::Module(module));
            return;
        };
        let here: &Module = &self.modules[module];
        if let Some(named) = here.names.get(name) {
            // A name of a module besides, such as `local`, is that module's.
            if module == 0 && named.iter().all(|it| matches!(it, Named::Alias(_))) {
                targets.insert(Target::Facade(name.clone()));
            }
            return self.descend_by_name(module, name, rest, depth, targets);
        }
        let before = targets.len();
        for glob in &here.globs {
            self.look_behind(glob, module, path, depth, targets);
        }
        if targets.len() == before {
            // Made by a macro, or from another crate.
            targets.insert(Target::ItemOf(module));
        }
    }

    fn descend_by_name(
        &self,
        module: ModuleId,
        name: &str,
        rest: &[String],
        depth: usize,
        targets: &mut BTreeSet<Target>,
    ) {
        let all = &self.modules[module].names[name];
        // With more to come it is the module, where a function has the same name.
        let is_module = |named: &Named| matches!(named, Named::Module(_));
        let modules_alone = !rest.is_empty() && all.iter().any(is_module);
        for named in all.iter().filter(|it| !modules_alone || is_module(it)) {
            match named {
                Named::Item => {
                    targets.insert(Target::ItemOf(module));
                }
                Named::Module(child) => self.descend(*child, rest, depth, targets),
                Named::Alias(path) if depth > 0 => {
                    let path = [path, rest].concat();
                    // Whoever wrote the import is asked whether it passed the facade.
                    let mut found = BTreeSet::new();
                    self.follow(module, &path, depth - 1, &mut found);
                    found.retain(|target| !matches!(target, Target::Facade(_)));
                    targets.extend(found);
                }
                Named::Alias(_) => {}
            }
        }
    }

    /// `path` by an import of everything in `glob`.
    fn look_behind(
        &self,
        glob: &[String],
        module: ModuleId,
        path: &[String],
        depth: usize,
        targets: &mut BTreeSet<Target>,
    ) {
        if depth == 0 {
            return;
        }
        let mut found = BTreeSet::new();
        self.follow(module, glob, depth - 1, &mut found);
        for target in found {
            if let Target::Module(other) = target
                && other != module
                && self.modules[other].names.contains_key(&path[0])
            {
                self.descend(other, path, depth - 1, targets);
            }
        }
    }
}

fn split(path: &[String]) -> Option<(&str, &[String])> {
    let (first, rest) = path.split_first()?;
    Some((first, rest))
}
