//! The modules of a crate and what each of them names, read from its sources.
//!
//! Test modules are left out, and so are the paths in attributes, comments and
//! strings. Features and platforms make no difference: every `cfg` but `test` counts
//! as set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

/// Index of a module in its [`Crate`].
pub(crate) type ModuleId = usize;

/// Gives the text of a file, if there is one.
pub(crate) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

#[derive(Debug)]
pub(crate) struct Crate {
    /// The root is the first.
    pub(crate) modules: Vec<Module>,
}

#[derive(Debug)]
pub(crate) struct Module {
    /// The names of the modules from the root to this one; none for the root.
    pub(crate) path: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<ModuleId>,
    /// What a name in this module stands for. Several, where `cfg` chooses.
    pub(crate) names: BTreeMap<String, Vec<Named>>,
    /// Paths in front of `::*`.
    pub(crate) globs: Vec<Vec<String>>,
    pub(crate) uses: Vec<Use>,
}

#[derive(Debug)]
pub(crate) enum Named {
    Item,
    Module(ModuleId),
    /// An import, or what it is exported again from.
    Alias(Vec<String>),
}

/// A path that a module names.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) line: usize,
    pub(crate) path: Vec<String>,
    pub(crate) by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A `use` item.
    Import,
    /// A `use` item that others see. Whoever wrote it need not use the thing itself.
    Export,
    /// A path in the code.
    Path,
}

impl Crate {
    /// Reads the crate whose root is the file `root`.
    pub(crate) fn read(root: &Path, read: Read<'_>) -> Self {
        let mut tree = Self {
            modules: Vec::new(),
        };
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let module = tree.add(Vec::new(), root.to_owned(), None);
        tree.read_file(module, &folder, read);
        tree
    }

    fn add(&mut self, path: Vec<String>, file: PathBuf, parent: Option<ModuleId>) -> ModuleId {
        self.modules.push(Module {
            path,
            file,
            parent,
            names: BTreeMap::new(),
            globs: Vec::new(),
            uses: Vec::new(),
        });
        self.modules.len() - 1
    }

    fn read_file(&mut self, module: ModuleId, folder: &Path, read: Read<'_>) {
        let file = &self.modules[module].file;
        let text = read(file).unwrap_or_else(|| panic!("{} is not there", file.display()));
        let parsed = syn::parse_file(&text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(module, &parsed.items, folder, read);
    }

    /// `folder` holds the files of the module's children.
    fn read_items(&mut self, module: ModuleId, items: &[Item], folder: &Path, read: Read<'_>) {
        for item in items {
            if let Item::Mod(child) = item {
                if is_for_tests(&child.attrs) {
                    continue;
                }
                let name = child.ident.to_string();
                let below = folder.join(&name);
                let file = match &child.content {
                    Some(_) => self.modules[module].file.clone(),
                    None => below.with_extension("rs"),
                };
                let mut path = self.modules[module].path.clone();
                path.push(name.clone());
                let id = self.add(path, file, Some(module));
                self.name(module, name, Named::Module(id));
                match &child.content {
                    Some((_, items)) => self.read_items(id, items, &below, read),
                    None => self.read_file(id, &below, read),
                }
            } else {
                if let Some(name) = name_of(item) {
                    self.name(module, name, Named::Item);
                }
                let mut finder = Finder::default();
                finder.visit_item(item);
                self.keep(module, finder);
            }
        }
    }

    fn keep(&mut self, module: ModuleId, found: Finder) {
        for (name, path) in found.aliases {
            self.name(module, name, Named::Alias(path));
        }
        let module = &mut self.modules[module];
        module.globs.extend(found.globs);
        module.uses.extend(found.uses);
    }

    fn name(&mut self, module: ModuleId, name: String, named: Named) {
        let names = &mut self.modules[module].names;
        names.entry(name).or_default().push(named);
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Whether an item is there in tests and documentation tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<Meta>()
                    .is_ok_and(|condition| needs_test(&condition))
    })
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(needs_test)),
        _ => false,
    }
}

/// Collects the paths of an item.
#[derive(Default)]
struct Finder {
    aliases: Vec<(String, Vec<String>)>,
    globs: Vec<Vec<String>>,
    uses: Vec<Use>,
}

impl Finder {
    fn import(&mut self, tree: &UseTree, prefix: &[String], by: By) {
        let joined = |ident: &syn::Ident| {
            let mut path = prefix.to_vec();
            if ident != "self" || path.is_empty() {
                path.push(ident.to_string());
            }
            path
        };
        let (path, name, line) = match tree {
            UseTree::Path(tree) => return self.import(&tree.tree, &joined(&tree.ident), by),
            UseTree::Group(group) => {
                let items = group.items.iter();
                return items.for_each(|tree| self.import(tree, prefix, by));
            }
            UseTree::Glob(glob) => {
                self.globs.push(prefix.to_vec());
                (prefix.to_vec(), None, glob.star_token.span())
            }
            UseTree::Name(tree) => {
                let path = joined(&tree.ident);
                (path.clone(), path.last().cloned(), tree.ident.span())
            }
            UseTree::Rename(tree) => {
                let name = Some(tree.rename.to_string());
                (joined(&tree.ident), name, tree.ident.span())
            }
        };
        if let Some(name) = name {
            self.aliases.push((name, path.clone()));
        }
        self.uses.push(Use {
            line: line.start().line,
            path,
            by,
        });
    }

    /// Paths in what a macro is given, which is not parsed: `a::b` wherever it stands.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        // Colons since the last name.
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.path(std::mem::take(&mut path), line);
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.path(std::mem::take(&mut path), line);
                    colons = 0;
                }
            }
        }
        self.path(path, line);
    }

    fn path(&mut self, path: Vec<String>, line: usize) {
        if !path.is_empty() {
            self.uses.push(Use {
                line,
                path,
                by: By::Path,
            });
        }
    }
}

impl<'a> Visit<'a> for Finder {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes: &[Attribute] = match item {
            Item::Const(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Macro(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let by = match item.vis {
            Visibility::Inherited => By::Import,
            _ => By::Export,
        };
        self.import(&item.tree, &[], by);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.path(names.collect(), path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_visibility(&mut self, _: &'a Visibility) {}
}
