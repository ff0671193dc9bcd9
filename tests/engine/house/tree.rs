//! The modules of a crate and what each of them names, read from its sources.
//!
//! Test modules are left out, and so are the paths in attributes, comments and
//! strings. Features and platforms make no difference: every `cfg` but `test` counts
//! as set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Index of a module in its [`Crate`].
pub(crate) type ModuleId = usize;

/// Gives the text of a file, if there is one.
pub(crate) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// The root is the first.
    pub(crate) modules: Vec<Module>,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The names of the modules from the root's, if it has one, to this one.
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
    /// Reads the crate whose root is the file `root` and goes by this name.
    pub(crate) fn read(name: Option<&str>, root: &Path, read: Read<'_>) -> Self {
        let mut tree = Self::default();
        tree.modules.push(Module {
            path: name.map(str::to_owned).into_iter().collect(),
            file: root.to_owned(),
            ..Module::default()
        });
        tree.read_file(0, root.parent().unwrap(), read);
        tree
    }

    /// `folder` holds the files of the module's children.
    fn read_file(&mut self, module: ModuleId, folder: &Path, read: Read<'_>) {
        let file = self.modules[module].file.display();
        let text = read(&self.modules[module].file);
        let text = text.unwrap_or_else(|| panic!("{file} is not there"));
        let tokens = text.parse::<TokenStream>();
        let tokens = tokens.unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_tokens(module, tokens, Some((folder, read)));
    }

    /// `top` is there for what is not inside of an item.
    fn read_tokens(&mut self, module: ModuleId, all: TokenStream, top: Option<(&Path, Read<'_>)>) {
        let all: Vec<_> = all.into_iter().collect();
        let word = |at: usize| match all.get(at) {
            Some(TokenTree::Ident(ident)) => ident.to_string(),
            _ => String::new(),
        };
        let is = |at: usize, sign: &str| all.get(at).is_some_and(|it| it.to_string() == sign);
        let mut at = 0;
        while at < all.len() {
            match (&all[at], word(at).as_str()) {
                (TokenTree::Punct(sign), _) if sign.as_char() == '#' => {
                    at += 1 + usize::from(is(at + 1, "!"));
                    if all.get(at).is_some_and(is_for_tests) {
                        at = end_of_item(&all, at);
                    }
                }
                (_, "use") if !is(at + 1, "<") => {
                    let len = all[at..].iter().position(|it| it.to_string() == ";");
                    // Perhaps as in `pub(crate)`.
                    let is_shown = (1..=2).any(|back| at >= back && word(at - back) == "pub");
                    let by = if is_shown { By::Export } else { By::Import };
                    let end = at + len.expect("an import ends");
                    self.import(module, &all[at + 1..end], &[], by);
                    at = end;
                }
                (_, "mod") if top.is_some() => {
                    let (folder, read) = top.unwrap();
                    self.read_child(module, word(at + 1), all.get(at + 2), folder, read);
                    at += 2;
                }
                (TokenTree::Ident(_), kind) => {
                    let names_item = ITEMS.contains(&kind) && top.is_some();
                    let named = at + 1 + usize::from(is(at + 1, "mut") || is(at + 1, "!"));
                    if names_item && !word(named).is_empty() && word(named) != "fn" {
                        self.name(module, word(named), Named::Item);
                        at = named;
                    } else {
                        at = self.read_path(module, &all, at);
                    }
                }
                (TokenTree::Group(group), _) => self.read_tokens(module, group.stream(), None),
                _ => {}
            }
            at += 1;
        }
    }

    fn read_child(
        &mut self,
        parent: ModuleId,
        name: String,
        content: Option<&TokenTree>,
        folder: &Path,
        read: Read<'_>,
    ) {
        let below = folder.join(&name);
        let inline = match content {
            Some(TokenTree::Group(group)) => Some(group.stream()),
            _ => None,
        };
        let above = &self.modules[parent];
        self.modules.push(Module {
            path: [&above.path[..], std::slice::from_ref(&name)].concat(),
            file: match &inline {
                Some(_) => above.file.clone(),
                None => below.with_extension("rs"),
            },
            parent: Some(parent),
            ..Module::default()
        });
        let child = self.modules.len() - 1;
        self.name(parent, name, Named::Module(child));
        match inline {
            Some(tokens) => self.read_tokens(child, tokens, Some((&below, read))),
            None => self.read_file(child, &below, read),
        }
    }

    /// The path `a::b` that begins here, up to its last token. A field, a method and what
    /// follows `<T>::` are no paths.
    fn read_path(&mut self, module: ModuleId, all: &[TokenTree], start: usize) -> usize {
        let is = |at: usize, sign: char| match all.get(at) {
            Some(TokenTree::Punct(punct)) => punct.as_char() == sign,
            _ => false,
        };
        let before = |back: usize, sign| start >= back && is(start - back, sign);
        let mut end = start;
        while is(end + 1, ':')
            && is(end + 2, ':')
            && matches!(all.get(end + 3), Some(TokenTree::Ident(_)))
        {
            end += 3;
        }
        let is_member = before(1, '.') && !before(2, '.') || before(1, ':') && before(2, ':');
        if !is_member && !before(1, '\'') {
            self.modules[module].uses.push(Use {
                line: all[start].span().start().line,
                path: all[start..=end]
                    .iter()
                    .step_by(3)
                    .map(ToString::to_string)
                    .collect(),
                by: By::Path,
            });
        }
        end
    }

    /// What stands between `use` and `;`, or in its braces.
    fn import(&mut self, module: ModuleId, trees: &[TokenTree], prefix: &[String], by: By) {
        for tree in trees.split(|token| token.to_string() == ",") {
            let (mut path, mut name, mut line) = (prefix.to_vec(), None, 0);
            let mut is_group = tree.is_empty();
            let mut is_glob = false;
            let mut is_renamed = false;
            for token in tree {
                match token {
                    TokenTree::Group(group) => {
                        let inner: Vec<_> = group.stream().into_iter().collect();
                        self.import(module, &inner, &path, by);
                        is_group = true;
                    }
                    TokenTree::Ident(ident) if is_renamed => name = Some(ident.to_string()),
                    TokenTree::Ident(ident) if ident == "as" => is_renamed = true,
                    TokenTree::Ident(ident) => {
                        line = ident.span().start().line;
                        if ident != "self" || path.is_empty() {
                            path.push(ident.to_string());
                        }
                    }
                    token => is_glob |= token.to_string() == "*",
                }
            }
            if is_group {
                continue;
            }
            if is_glob {
                self.modules[module].globs.push(path.clone());
            } else if let Some(name) = name.or_else(|| path.last().cloned()) {
                self.name(module, name, Named::Alias(path.clone()));
            }
            self.modules[module].uses.push(Use { line, path, by });
        }
    }

    fn name(&mut self, module: ModuleId, name: String, named: Named) {
        let names = &mut self.modules[module].names;
        names.entry(name).or_default().push(named);
    }
}

/// The words that a name follows.
const ITEMS: [&str; 9] = [
    "const",
    "enum",
    "fn",
    "macro_rules",
    "static",
    "struct",
    "trait",
    "type",
    "union",
];

/// Whether an attribute's brackets say that something is there in tests or models alone:
/// `test`, `cfg(test)`, `cfg(doctest)`, `cfg(feature = "loom")`, or `all` of one of these
/// and others.
fn is_for_tests(attribute: &TokenTree) -> bool {
    fn needs_test(condition: &str) -> bool {
        let of_all = condition
            .strip_prefix("all(")
            .and_then(|it| it.strip_suffix(')'));
        match of_all {
            Some(all) => all.split(',').any(needs_test),
            None => ["test", "doctest", r#"feature="loom""#].contains(&condition),
        }
    }
    let text = attribute.to_string().replace([' ', '\n'], "");
    let text = text.trim_start_matches('[').trim_end_matches(']');
    let condition = text
        .strip_prefix("cfg(")
        .and_then(|it| it.strip_suffix(')'));
    text == "test" || condition.is_some_and(needs_test)
}

/// The last token of what the attribute at `at` stands before: braces, `;`, or the comma
/// after a field.
fn end_of_item(all: &[TokenTree], mut at: usize) -> usize {
    let mut angles = 0;
    while at + 1 < all.len() {
        at += 1;
        match &all[at] {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            TokenTree::Punct(sign) => match sign.as_char() {
                ';' => break,
                ',' if angles <= 0 => break,
                '<' => angles += 1,
                '>' => angles -= 1,
                _ => {}
            },
            _ => {}
        }
    }
    at
}
