//! Texts that are kept in files, so that every change of one is read.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// One message: a name, its first line, and the lines below it.
pub fn entry(name: &str, first: impl ToString, rest: &[(&str, Option<&str>)]) -> String {
    let mut text = format!("{name}\n{}\n", first.to_string());
    for (label, line) in rest {
        if let Some(line) = line {
            writeln!(text, "  {label}: {line}").unwrap();
        }
    }
    text + "\n"
}

/// Compares the text with the file, or writes it there with `RINGFLAKE_MESSAGES=overwrite`.
#[track_caller]
pub fn assert_snapshot(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    if env::var_os("RINGFLAKE_MESSAGES").is_some_and(|value| value == "overwrite") {
        fs::write(path, text).unwrap();
        return;
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let (mut kept, mut lines) = (kept.lines(), text.lines());
    for number in 1.. {
        match (kept.next(), lines.next()) {
            (None, None) => return,
            (old, new) => assert_eq!(
                old,
                new,
                "line {number} of {}: run the test with RINGFLAKE_MESSAGES=overwrite, and read the \
                 difference",
                path.display()
            ),
        }
    }
}

/// The texts of these values, each under the name of its variant. Does not compile where a
/// variant is missing.
///
/// The enum has to be of the calling crate, or not be `#[non_exhaustive]`.
#[macro_export]
macro_rules! messages {
    ($show:expr, $type:ident {
        $($variant:ident $({$($fields:tt)*})? $(($($values:tt)*))?,)*
    }) => {{
        #[allow(unreachable_patterns, reason = "a variant can have several samples")]
        let _ = |value: &$type| match value { $($type::$variant { .. } => {})* };
        let mut text = String::new();
        $(
            let name = concat!(stringify!($type), "::", stringify!($variant));
            let value = $type::$variant $({$($fields)*})? $(($($values)*))?;
            text += &$show(name, &value);
        )*
        text
    }};
}
