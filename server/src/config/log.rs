//! What is logged, and how.

use std::fmt;

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object on each line.
    Json,
}

impl LogFormat {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// As it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// The events that are logged: those of a level, and the more important ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogLevel {
    /// None.
    Off,
    /// What needs somebody.
    Error,
    /// What may need somebody.
    Warn,
    /// What changes the server.
    #[default]
    Info,
    /// What clients do wrong.
    Debug,
    /// All there is.
    Trace,
}

impl LogLevel {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// As it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

macro_rules! by_name {
    ($type:ident, $what:literal) => {
        impl $type {
            /// The one with this name.
            ///
            /// # Errors
            /// The names that there are.
            pub fn from_name(name: &str) -> Result<Self, String> {
                let mut all = Self::ALL.into_iter();
                all.find(|one| one.name() == name).ok_or_else(|| {
                    let names = Self::ALL.map(Self::name).join(", ");
                    format!("{name:?} is no {}: give one of {names}", $what)
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

by_name!(LogFormat, "format of the log");
by_name!(LogLevel, "level of the log");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::from_name(level.name()), Ok(level));
        }
        for format in LogFormat::ALL {
            assert_eq!(LogFormat::from_name(format.name()), Ok(format));
        }
        let error = LogLevel::from_name("loud").unwrap_err();
        assert!(error.contains("warn, info, debug"), "{error}");
    }
}
