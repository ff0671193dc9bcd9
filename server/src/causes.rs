//! An error with all that has caused it, for one line of a log.

use std::error::Error;
use std::fmt;

/// The error and its sources, each behind a colon.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::namespaces::OpenError;

    #[test]
    fn each_cause_is_there_once() {
        let source = io::Error::other("no such thing").into();
        let path = "store.url".into();
        let error = OpenError::UrlFile { path, source };
        let text = Causes(&error).to_string();
        assert_eq!(text, "store.url can't be read: no such thing");
        let alone = OpenError::Stopping;
        assert_eq!(Causes(&alone).to_string(), alone.to_string());
    }
}
