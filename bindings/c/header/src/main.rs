//! Prints `ringflake.h`, made from the source of the C library by cbindgen.
//!
//! ```sh
//! cargo run > ../include/ringflake.h
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = here.join("../src");
    let mut config = cbindgen::Config::from_file(here.join("cbindgen.toml"))?;
    config.header = Some(head(&fs::read_to_string(sources.join("lib.rs"))?));
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(sources.join("status.rs"))
        .with_src(sources.join("lib.rs"))
        .generate()?
        .write(&mut header);
    print!("{}", as_in_c(&String::from_utf8(header)?));
    Ok(())
}

/// The first comment of the header: the documentation of the crate.
fn head(source: &str) -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0\n *\n \
         * Generated from the source of the library: do not edit.\n *\n",
    );
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    // The first paragraph is about the Rust source.
    for line in lines.skip_while(|line| !line.starts_with(" #")) {
        text += format!(" *{}", line.replacen(" # ", " ", 1).replace("**", "")).trim_end();
        text.push('\n');
    }
    text + " */"
}

/// The header with comments as they are written in C: no marks of rustdoc, and those of one line
/// on one line.
fn as_in_c(header: &str) -> String {
    let mut lines = header.lines().map(|line| line.trim_end());
    let mut text = String::new();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.trim_start() != "/*" || text.is_empty() {
            // `//` is no comment in older C.
            let line = line.replace(" // __cplusplus", "");
            text += &format!("{}\n", line.replace('`', ""));
            continue;
        }
        let comment: Vec<String> = lines
            .by_ref()
            .take_while(|line| line.trim_start() != "*/")
            .map(|line| {
                line.get(indent.len()..)
                    .unwrap_or_default()
                    .replace('`', "")
            })
            .collect();
        match &comment[..] {
            [line] => text += &format!("{indent}/*{line} */\n"),
            [first, rest @ ..] => {
                text += &format!("{indent}/*{first}\n");
                for line in rest {
                    text += format!("{indent} *{line}").trim_end();
                    text.push('\n');
                }
                text += &format!("{indent} */\n");
            }
            [] => {}
        }
    }
    text
}
