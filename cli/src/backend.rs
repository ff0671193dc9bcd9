//! The environment variable that forces a backend of the cipher.

use std::env;

use anyhow::{Result, bail};
use ringflake::Backend;

const VARIABLE: &str = "RINGFLAKE_BACKEND";

/// Refuses a value that the library would pass over with a `tracing` warning,
/// which nobody sees here. An empty one counts as none.
pub(crate) fn check_variable() -> Result<()> {
    let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(());
    };
    let available: Vec<_> = Backend::available().map(|it| it.to_string()).collect();
    if available.iter().any(|name| value == name.as_str()) {
        return Ok(());
    }
    bail!(
        "{VARIABLE} is {value:?}, which this processor can't run\n\
         help: unset it, or set it to one of {}",
        available.join(", ")
    );
}
