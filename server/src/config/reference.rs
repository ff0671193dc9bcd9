//! The reference page of all keys, made from the documentation of [`Settings`].
//!
//! `RINGFLAKE_WRITE_REFERENCE=1 cargo test -p ringflake-server reference` writes it anew.

use std::path::Path;

use super::settings::{
    LimitSettings, LogSettings, NamespaceSettings, ProtocolSettings, Settings, TlsSettings,
    TokenSettings,
};

type Fields = &'static [(&'static str, &'static str, &'static str)];

const SECTIONS: [(&str, Fields); 7] = [
    ("", Settings::FIELDS),
    ("[resp]` and `[http]", ProtocolSettings::FIELDS),
    ("[tls]", TlsSettings::FIELDS),
    ("[tokens]", TokenSettings::FIELDS),
    ("[limits]", LimitSettings::FIELDS),
    ("[log]", LogSettings::FIELDS),
    ("[namespaces.NAME]", NamespaceSettings::FIELDS),
];

/// How a file writes a value of this type; `None` for a section.
fn value(field: &str, kind: &str) -> Option<&'static str> {
    let kind: String = kind.split_whitespace().collect();
    Some(match &*kind {
        "Option<bool>" => "`true` or `false`",
        "Option<PathBuf>" => "path",
        "Option<usize>" | "Option<u32>" if field != "unix_mode" => "number",
        "Option<u32>" => "octal, as `\"0660\"`",
        "Option<Duration>" => "time, as `\"90s\"`",
        "Option<Vec<SocketAddr>>" => "list of addresses, or `\"off\"`",
        "Option<String>" => "text",
        "Option<Vec<String>>" => "list of texts",
        "Option<LogFormat>" => "`\"text\"` or `\"json\"`",
        "Option<LogLevel>" => {
            "`\"off\"`, `\"error\"`, `\"warn\"`, `\"info\"`, `\"debug\"`, `\"trace\"`"
        }
        "Option<Layout>" => "name of a layout, or its numbers",
        "Option<IdWidth>" => "`\"full\"`, `\"positive\"` or `\"js-safe\"`",
        "Option<StoreUrl>" => "URL",
        "Option<History>" => "`\"new\"`, `\"unused\"` or `\"unknown\"`",
        section if section.ends_with("Settings") || section.starts_with("BTreeMap") => return None,
        other => panic!("no words for the type {other}"),
    })
}

fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nEvery key of the file that `ringflake serve --config FILE` reads. A key that \
         is left out has its\ndefault. `ringflake serve --check` prints what a file comes to, and \
         starts nothing.\n\n<!-- Made by `RINGFLAKE_WRITE_REFERENCE=1 cargo test -p \
         ringflake-server reference`. -->\n",
    );
    for (section, fields) in SECTIONS {
        if !section.is_empty() {
            page.push_str(&format!("\n# `{section}`\n"));
        }
        page.push_str("\n| key | value | |\n|---|---|---|\n");
        for (field, kind, docs) in fields {
            if let Some(value) = value(field, kind) {
                let key = field.replace('_', "-");
                // The guide belongs to another crate, which has no such links.
                let docs = docs
                    .trim()
                    .replace("[`", "`")
                    .replace("`]", "`")
                    .replace('|', "\\|");
                page.push_str(&format!("| `{key}` | {value} | {docs} |\n"));
            }
        }
    }
    page.push_str(
        "\n# Environment variables\n\nThey override the file; options of the command line override both. \
         Other keys have no\nvariable. `RINGFLAKE_SERVE_CONFIG` names the file.\n\n",
    );
    let table = ENVIRONMENT
        .lines()
        .filter_map(|line| line.trim().strip_prefix("/// |"));
    table.for_each(|row| page.push_str(&format!("|{row}\n")));
    page
}

/// The table of variables is in its documentation.
const ENVIRONMENT: &str = include_str!("environment.rs");

#[test]
fn every_variable_is_on_the_page() {
    let page = page();
    let mut names: Vec<_> = ENVIRONMENT
        .split('"')
        .filter(|it| it.starts_with("RINGFLAKE_"))
        .collect();
    names.dedup();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_reference_page_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/guide/serve/settings.md");
    let page = page();
    if std::env::var_os("RINGFLAKE_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{} differs: run RINGFLAKE_WRITE_REFERENCE=1 cargo test -p ringflake-server reference",
        path.display()
    );
}
