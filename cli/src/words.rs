//! The library's errors, with options of the command line in place of its functions.

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ringflake::lease::{OpenError, StoreError};
use ringflake::{BuildError, IdWidth, LeaseError, LocalError, shell_quoted};

use crate::timestamp::in_words;
use crate::user;

/// The text of `error`, with options in place of the library's functions.
pub(crate) fn text(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref() {
        return build(error);
    }
    if let Some(error) = error.downcast_ref() {
        return lease(error);
    }
    if let Some(OpenError::FeatureOff { feature }) = error.downcast_ref() {
        return format!(
            "this ringflake was built without the {feature} store\n\
             help: to install it with all stores and the server, run 'cargo install --path cli --features serve,stores' in a checkout"
        );
    }
    if let Some(error) = error.downcast_ref::<LocalError>() {
        return local(error);
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return lines(error, error.note(), error.help());
    }
    #[cfg(all(unix, feature = "serve"))]
    if let Some(error) = error.downcast_ref::<ringflake_server::StartError>() {
        return lines(error, error.note(), error.help().as_deref());
    }
    #[cfg(all(unix, feature = "serve"))]
    if let Some(error) = error.downcast_ref::<ringflake_server::ConfigError>() {
        return lines(error, None, error.help().as_deref());
    }
    error.to_string()
}

/// An error's first line, and its note and its help below.
pub(crate) fn lines(error: &dyn Error, note: Option<&str>, help: Option<&str>) -> String {
    let mut text = error.to_string();
    for (label, line) in [("note", note), ("help", help)] {
        if let Some(line) = line {
            text += &format!("\n{label}: {line}");
        }
    }
    text
}

/// What to do about a directory of another user. Write permission for this one would let it
/// replace the secret, so its owner would refuse that.
fn foreign(directory: &Path) -> Option<String> {
    let owner = user::other_owner(&fs::metadata(directory).ok()?)?;
    Some(format!(
        "run the same command as its owner, with sudo -E -u '#{owner}' in front of it, and with \
         --data-dir {}",
        shell_quoted(directory.display())
    ))
}

fn local(error: &LocalError) -> String {
    let help = match error {
        LocalError::Directory { path, source } if source.kind() != ErrorKind::TimedOut => {
            let is_denied = source.kind() == ErrorKind::PermissionDenied;
            let owner = is_denied.then(|| foreign(path)).flatten();
            let help = owner.unwrap_or_else(|| {
                "check that it belongs to this user, and that its disk is writable and has free \
                 space; only if it does not exist yet, name another directory with --data-dir, \
                 whose IDs can equal those of any other"
                    .to_owned()
            });
            return lines(error, error.note(), Some(&help));
        }
        LocalError::NoHome => "name a directory with --data-dir",
        _ => return lines(error, error.note(), error.help()),
    };
    lines(error, error.note(), Some(help))
}

fn build(error: &BuildError) -> String {
    let help = match error {
        BuildError::EncryptionWidens { .. } => {
            "give --id-width js-safe or --plain; if 64 bits are fine, give a wider --layout"
        }
        BuildError::LayoutTooWide {
            width: IdWidth::JsSafe,
            ..
        } => "give --layout js-safe, or a wider --id-width",
        BuildError::LayoutTooWide { .. } => {
            "give a narrower --layout, such as positive or positive-ms, or a wider --id-width"
        }
        BuildError::Lease(error) => return lease(error),
        BuildError::Local(error) => return local(error),
        error => return lines(error, error.note(), error.help()),
    };
    lines(error, error.note(), Some(help))
}

fn lease(error: &LeaseError) -> String {
    match error {
        LeaseError::BeforeEpoch {
            unix_ms,
            epoch_unix_ms,
        } => format!(
            "the layout begins at {}, and the clock shows {}\n\
             help: set the clock if it is wrong, or give a --layout with an epoch that has passed",
            in_words(*epoch_unix_ms),
            in_words(*unix_ms)
        ),
        error => error.to_string(),
    }
}
