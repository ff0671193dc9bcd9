//! The format and the level of the log.

use crate::named::named;

named! {
    /// The form of a line of the log.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum LogFormat, "format of the log" {
        /// For people.
        #[default]
        Text = "text",
        /// An object on each line.
        Json = "json",
    }
}

named! {
    /// The events that are logged: those of a level, and the more important ones.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum LogLevel, "level of the log" {
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
