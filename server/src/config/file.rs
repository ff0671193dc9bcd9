//! Settings from a file.

use std::path::Path;

use super::error::ConfigError;
use super::settings::Settings;

impl Settings {
    /// The settings of the TOML file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], [`ConfigError::Syntax`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::from_toml(&text, path)
    }

    /// The settings of this text, which stands in the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut settings: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().iter().take(start);
            ConfigError::Syntax {
                path: path.to_owned(),
                line: 1 + before.filter(|&&byte| byte == b'\n').count(),
                reason: shown(error.message()),
            }
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        for path in settings.paths() {
            *path = directory.join(&path);
        }
        for url in settings.store_urls() {
            *url = url.in_directory(directory);
        }
        Ok(settings)
    }
}

/// The message, unless it repeats a URL, which may hold a password.
fn shown(message: &str) -> String {
    match message.contains("://") {
        true => "a URL stands where something else is expected".to_owned(),
        false => message.replace('\n', " "),
    }
}
