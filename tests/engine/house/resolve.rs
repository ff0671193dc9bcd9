//! What a path stands for: the module that declares it, past all that export it again.

use std::collections::BTreeSet;

use super::tree::{Crate, ModuleId, Named};

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

type Targets = BTreeSet<Target>;

impl Crate {
    /// What `path` stands for in `module`: nothing, if it leads to another crate.
    pub(crate) fn resolve(&self, module: ModuleId, path: &[String]) -> Targets {
        self.follow(module, path, DEPTH)
    }

    fn follow(&self, module: ModuleId, path: &[String], depth: usize) -> Targets {
        let Some((first, rest)) = path.split_first() else {
            return Targets::new();
        };
        match (first.as_str(), self.modules[module].parent) {
            ("crate", _) => self.descend(0, rest, depth),
            ("self", _) => self.descend(module, rest, depth),
            ("super", Some(parent)) => match rest.first() {
                Some(next) if next == "super" => self.follow(parent, rest, depth),
                _ => self.descend(parent, rest, depth),
            },
            _ if self.modules[module].names.contains_key(first) => {
                self.descend_by_name(module, first, rest, depth)
            }
            _ => self.look_behind_globs(module, path, depth),
        }
    }

    /// `path` as seen from outside of `module`.
    fn descend(&self, module: ModuleId, path: &[String], depth: usize) -> Targets {
        let Some((name, rest)) = path.split_first() else {
            return [Target::Module(module)].into();
        };
        let Some(named) = self.modules[module].names.get(name) else {
            let mut found = self.look_behind_globs(module, path, depth);
            if found.is_empty() {
                // Made by a macro, or from another crate.
                found.insert(Target::ItemOf(module));
            }
            return found;
        };
        let mut found = self.descend_by_name(module, name, rest, depth);
        // A name of a module besides, such as `local`, is that module's.
        if module == 0 && named.iter().all(|it| matches!(it, Named::Alias(_))) {
            found.insert(Target::Facade(name.clone()));
        }
        found
    }

    fn descend_by_name(
        &self,
        module: ModuleId,
        name: &str,
        rest: &[String],
        depth: usize,
    ) -> Targets {
        let all = &self.modules[module].names[name];
        // With more to come it is the module, where a function has the same name.
        let is_module = |named: &Named| matches!(named, Named::Module(_));
        let modules_alone = !rest.is_empty() && all.iter().any(is_module);
        let mut found = Targets::new();
        for named in all.iter().filter(|it| !modules_alone || is_module(it)) {
            match named {
                Named::Item => found.extend([Target::ItemOf(module)]),
                Named::Module(child) => found.extend(self.descend(*child, rest, depth)),
                Named::Alias(path) if depth > 0 => {
                    let mut beyond = self.follow(module, &[path, rest].concat(), depth - 1);
                    // Whoever wrote the import is asked whether it passed the facade.
                    beyond.retain(|target| !matches!(target, Target::Facade(_)));
                    found.extend(beyond);
                }
                Named::Alias(_) => {}
            }
        }
        found
    }

    /// `path` by the imports of everything in a module.
    fn look_behind_globs(&self, module: ModuleId, path: &[String], depth: usize) -> Targets {
        let mut found = Targets::new();
        let globs = self.modules[module].globs.iter().filter(|_| depth > 0);
        for target in globs.flat_map(|glob| self.follow(module, glob, depth - 1)) {
            if let Target::Module(other) = target
                && other != module
                && self.modules[other].names.contains_key(&path[0])
            {
                found.extend(self.descend(other, path, depth - 1));
            }
        }
        found
    }
}
