//! Errors for operators: all their causes on one line of the log, and what to do about those of the
//! library, in the words of the server's settings.

use std::env;
use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringflake::lease::StoreError;
use ringflake::{BuildError, LocalError, shell_quoted as quoted};

use crate::config::{NamespaceSettings, StoreUrl};

/// The error and its sources, each behind a colon. A source that repeats the one before is left
/// out.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        f.write_str(&last)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if text != last {
                write!(f, ": {text}")?;
            }
            last = text;
            next = cause.source();
        }
        Ok(())
    }
}

/// In front of a command about the data directory: with the variable set, it would act on the
/// store that the variable names.
const NO_STORE: &str = "RINGFLAKE_STORE= ";

fn here() -> PathBuf {
    env::current_dir().unwrap_or_default()
}

/// The path as a shell in any directory takes it.
fn quoted_path(path: &Path) -> String {
    quoted(here().join(path).display())
}

/// When another history may be given to `init` than an unknown one.
const NEW: &str = "with '--history new' only if no ID with a present or future time was issued \
                   with this layout and secret";

/// A namespace as commands of `ringflake` name it.
#[derive(Debug)]
pub(crate) struct Target {
    /// What names the store: an assignment in front of the command, or options behind it.
    assignment: String,
    place: String,
    /// The other options.
    words: String,
    is_file: bool,
    is_local: bool,
    /// What to do before the command can run.
    before: String,
    /// The store behind a tier.
    upstream: Option<Box<Self>>,
}

impl Target {
    /// A namespace of the data directory, or of the store that `url` names.
    pub(crate) fn new(
        name: &str,
        settings: &NamespaceSettings,
        url: Option<&StoreUrl>,
        data_dir: Option<&Path>,
    ) -> Self {
        let mut target = Self {
            assignment: String::new(),
            place: String::new(),
            words: format!(" --namespace {name}"),
            is_file: true,
            is_local: url.is_none(),
            before: String::new(),
            upstream: None,
        };
        match (url, &settings.store_url_file) {
            (None, _) => {
                NO_STORE.clone_into(&mut target.assignment);
                if let Some(path) = data_dir {
                    target.place = format!(" --data-dir {}", quoted_path(path));
                }
            }
            // The URL in a file may be relative to that file.
            (Some(url), _) if url.scheme() == "sqlite" => {
                let url = url.in_directory(&here());
                target.place = format!(" --store {}", quoted(url.expose()));
            }
            (Some(_), file) => {
                target.is_file = false;
                // Other users can read command lines.
                match file {
                    Some(path) => {
                        let path = quoted_path(path);
                        target.assignment = format!("RINGFLAKE_STORE=\"$(cat {path})\" ");
                    }
                    None => "set RINGFLAKE_STORE to the URL of the namespace's store, and "
                        .clone_into(&mut target.before),
                }
            }
        }
        if let Some(upstream) = url.and_then(StoreUrl::upstream) {
            let settings = NamespaceSettings {
                store_url_file: None,
                ..settings.clone()
            };
            let mut upstream = Self::new(name, &settings, Some(&upstream), data_dir);
            if !upstream.is_file {
                "set RINGFLAKE_STORE to the URL of the tier's upstream store, and "
                    .clone_into(&mut upstream.before);
            }
            target.upstream = Some(Box::new(upstream));
        }
        let words = &mut target.words;
        if let Some(layout) = settings.layout {
            let layout = layout
                .name()
                .map_or_else(|| layout.to_string(), str::to_owned);
            *words += &format!(" --layout {layout}");
        }
        if let Some(bits) = settings.block_bits {
            *words += &format!(" --block-bits {bits}");
        }
        if settings.plain == Some(true) {
            *words += " --plain";
        } else if let Some(path) = &settings.secret_file {
            *words += &format!(" --secret-file {}", quoted_path(path));
        }
        if let Some(width) = settings.id_width {
            *words += &format!(" --id-width {width}");
        }
        target
    }

    /// The sentence that says to run this command about it.
    fn run(&self, command: &str, words: &str) -> String {
        let Self {
            assignment,
            place,
            before,
            ..
        } = self;
        format!("{before}run '{assignment}ringflake store {command}{place}{words}'")
    }

    fn init_again(&self) -> String {
        let run = self.run("init --history unknown", &self.words);
        format!("once the clock is right, {run} with the old --horizon and --failover, or longer")
    }

    fn init(&self) -> String {
        format!("{}; {NEW}", self.init_again())
    }

    /// How to adopt its store, which is a copy.
    fn adopt(&self) -> String {
        // A tier makes a copy of its own file a new one.
        if let Some(upstream) = &self.upstream {
            return upstream.adopt();
        }
        let words = match self.is_file {
            true => " --all",
            false => &self.words,
        };
        let run = self.run("raise-floor --over-lost-grants", words);
        format!(
            "go back to the original; if nobody can use it any more, and the clock is right, {run}"
        )
    }
}

/// What to do about a generator that could not be built.
pub(crate) fn help_of_build(error: &BuildError, target: &Target) -> Option<String> {
    Some(match error {
        BuildError::Local(error) => return help_of_local(error, Some(target)),
        BuildError::Store(error) | BuildError::NoLeaseYet { error, .. } => {
            return help_of_store(error, Some(target));
        }
        BuildError::LayoutTooWide { width, .. } => {
            format!("use another layout, or leave out id-width = \"{width}\"")
        }
        BuildError::EncryptionWidens { .. } => {
            "set id-width = \"js-safe\" or plain = true; if 64 bits are fine, use a wider layout"
                .to_owned()
        }
        error => return error.help().map(str::to_owned),
    })
}

/// What to do about a data directory that can't be used, or about a namespace of it.
pub(crate) fn help_of_local(error: &LocalError, target: Option<&Target>) -> Option<String> {
    Some(match (error, target) {
        (LocalError::NoHome, _) => "set data-dir to a directory".to_owned(),
        (LocalError::Directory { source, .. }, _) if source.kind() != ErrorKind::TimedOut => {
            "run the server as the user that it belongs to, and check that its disk is writable \
             and has free space; only if it does not exist yet, set data-dir to another \
             directory, whose IDs can equal those of any other"
                .to_owned()
        }
        (LocalError::Store(StoreError::NotDurable { .. }), _) => {
            "set data-dir to a directory on a local disk, or accept the risk with best-effort = \
             true"
                .to_owned()
        }
        (LocalError::Store(StoreError::Corrupt { .. }), None) => {
            "if leases.db in the data directory is damaged: stop all processes that use it, move \
             it and leases.db-journal aside, and keep leases.db.lock and the secrets; once the \
             clock is right, initialise each namespace that had a longer horizon or failover time \
             with them and its history unknown; the others begin above their earlier leases"
                .to_owned()
        }
        (LocalError::Store(error), _) => return help_of_store(error, target),
        (LocalError::Copied { directory }, _) => format!(
            "go back to the original; if nobody can use it any more, and the clock is right, run \
             '{NO_STORE}ringflake store raise-floor --over-lost-grants --all --data-dir {}'",
            quoted_path(directory)
        ),
        (LocalError::OtherWidth { recorded, .. }, _) => {
            format!(
                "set id-width = \"{recorded}\"; or use another name, which has its own secret, and \
                 keep its IDs apart from the old ones"
            )
        }
        (LocalError::SecretBrought { .. }, Some(target)) => format!(
            "if other programs use the secret with a store, set store to that store; if all of \
             them have stopped for good, and the clock is right, {}, or with the limits of that \
             store, if longer; {NEW}",
            target.run(
                "init --history unknown --horizon 11min --failover 1min",
                &target.words
            )
        ),
        (error, _) => return error.help().map(str::to_owned),
    })
}

/// What to do about a store that grants nothing.
pub(crate) fn help_of_store(error: &StoreError, target: Option<&Target>) -> Option<String> {
    Some(match (error, target) {
        (StoreError::NotDurable { .. }, _) => {
            "change that setting of the store, or accept the risk with best-effort = true"
                .to_owned()
        }
        (StoreError::NotInitialised { .. } | StoreError::HistoryUnknown { .. }, Some(target)) => {
            target.init()
        }
        (StoreError::Copied { .. }, Some(target)) => target.adopt(),
        (StoreError::FingerprintMismatch { .. }, _) => {
            "set secret-file and id-width as they were when it was initialised; or use another \
             namespace with another secret, and keep its IDs apart from the old ones"
                .to_owned()
        }
        (StoreError::Corrupt { .. }, Some(target)) if target.is_file => format!(
            "if the file is damaged: stop all processes that use it, move it and its -journal \
             aside, and keep its .lock and the secrets; then, for each of its namespaces, {}",
            target.init_again()
        ),
        // The server asks again by itself.
        (StoreError::Ambiguous { .. }, _) => return None,
        (StoreError::Unavailable { .. }, Some(target)) if target.is_local => {
            "check that no other program keeps leases.db in the data directory locked; if a \
             permission is missing, run the server as the user that leases.db belongs to"
                .to_owned()
        }
        (StoreError::Unavailable { .. }, Some(target)) if target.is_file => {
            "check that the file's directory is there, and that no other program keeps the file \
             locked; if a permission is missing, run the server as the user that the file belongs \
             to"
            .to_owned()
        }
        (StoreError::Unavailable { .. }, Some(_)) => {
            "check that the store runs, and that its URL is right".to_owned()
        }
        (error, _) => return error.help().map(str::to_owned),
    })
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
        assert_eq!(
            Causes(&Twice(alone)).to_string(),
            OpenError::Stopping.to_string()
        );
    }

    #[test]
    fn commands_work_in_any_directory() {
        let settings = NamespaceSettings {
            secret_file: Some("a.secret".into()),
            ..NamespaceSettings::default()
        };
        let url = StoreUrl::new("sqlite:leases.db");
        let text = Target::new("orders", &settings, Some(&url), None).init();
        for word in ["--store sqlite:/", "--secret-file /"] {
            assert!(text.contains(word), "{text}");
        }
        let local = Target::new("orders", &settings, None, Some(Path::new("data"))).init();
        assert!(local.contains("--data-dir /"), "{local}");
    }

    /// Prints its source.
    #[derive(Debug)]
    struct Twice(OpenError);

    impl fmt::Display for Twice {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl Error for Twice {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
}
