//! The library's advice in the words of the command line.

use std::error::Error;

use ringflake::lease::OpenError;
use ringflake::{BuildError, IdWidth, LeaseError, LocalError};

use crate::timestamp::in_words;

/// The text of `error`, with options in place of the library's functions.
pub(crate) fn text(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref() {
        return build(error);
    }
    if let Some(error) = error.downcast_ref() {
        return lease(error);
    }
    if let Some(OpenError::FeatureOff { feature }) = error.downcast_ref() {
        let features = features_with(feature);
        return format!(
            "this ringflake was built without the {feature} store: 'cargo install ringflake-cli \
             --features {features}', or in a checkout 'cargo install --path cli --features \
             {features}', builds it with that, and --features stores with all of them"
        );
    }
    if let Some(LocalError::Directory { path, .. }) = error.downcast_ref() {
        return format!(
            "{} can't be used: see that this user may write there, or name another directory \
             with --data-dir",
            path.display()
        );
    }
    error.to_string()
}

/// The features of this build and one more, as `--features` takes them: an installation
/// replaces the one before.
pub(crate) fn features_with(added: &str) -> String {
    let mut features = Vec::new();
    for (name, is_on) in [
        ("serve", cfg!(feature = "serve")),
        ("etcd", cfg!(feature = "etcd")),
        ("mysql", cfg!(feature = "mysql")),
        ("postgres", cfg!(feature = "postgres")),
        ("redis", cfg!(feature = "redis")),
    ] {
        if is_on || name == added {
            features.push(name);
        }
    }
    features.join(",")
}

fn build(error: &BuildError) -> String {
    match error {
        BuildError::NoCipher => "there is no secret: give one with --secret-file, or choose \
             --plain for IDs that are sorted by time and readable by anybody"
            .to_owned(),
        BuildError::EncryptionWidens { bits, width } => format!(
            "IDs of a layout of {bits} bits fit a double, but encrypted ones have {} bits: \
             choose --id-width js-safe, --plain, or a wider --layout",
            width.bits()
        ),
        BuildError::LayoutTooWide { bits, width } => format!(
            "a --layout of {bits} bits does not fit IDs of {} bits: choose one of at most {0}, \
             such as {}, or a wider --id-width",
            width.bits(),
            match width {
                IdWidth::JsSafe => "js-safe",
                _ => "positive or positive-ms",
            }
        ),
        BuildError::Lease(error) => lease(error),
        error => error.to_string(),
    }
}

fn lease(error: &LeaseError) -> String {
    match error {
        LeaseError::BeforeEpoch {
            unix_ms,
            epoch_unix_ms,
        } => format!(
            "the layout begins at {}, and the clock says {}: correct the clock if it is wrong, \
             or choose a --layout with an epoch that has passed",
            in_words(*epoch_unix_ms),
            in_words(*unix_ms)
        ),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ringflake::{CachedGenerator, Layout};

    use super::*;

    #[test]
    fn a_store_that_is_missing_comes_with_the_command_that_adds_it() {
        let text = text(&OpenError::FeatureOff { feature: "etcd" });
        for package in ["ringflake-cli", "--path cli"] {
            let features = features_with("etcd");
            let command = format!("'cargo install {package} --features {features}'");
            assert!(text.contains(&command), "{text}");
        }
    }

    #[test]
    fn a_missing_cipher_is_told_by_options() {
        let error = CachedGenerator::builder(Layout::RANDFLAKE).build();
        let text = text(&error.unwrap_err());
        assert!(
            text.contains("--secret-file") && text.contains("--plain"),
            "{text}"
        );
        assert!(!text.contains('`'), "{text}");
    }
}
