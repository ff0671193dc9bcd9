//! The format and the level of the log.

use std::fmt;

/// An enum whose variants are written by name in the configuration.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident, $what:literal {
        $($(#[$of:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$of])* $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// As it is written in the configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

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

named! {
    /// The form of a line of the log.
    LogFormat, "format of the log" {
        /// For people.
        #[default]
        Text = "text",
        /// An object on each line.
        Json = "json",
    }
}

named! {
    /// The events that are logged: those of a level, and the more important ones.
    LogLevel, "level of the log" {
        /// None.
        Off = "off",
        /// What needs somebody.
        Error = "error",
        /// What may need somebody.
        Warn = "warn",
        /// What changes the server.
        #[default]
        Info = "info",
        /// What clients do wrong.
        Debug = "debug",
        /// All there is.
        Trace = "trace",
    }
}
