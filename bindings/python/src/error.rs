//! Failures, and the exceptions that Python sees.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use engine::lease::StoreError;
use engine::{BuildError, LayoutError, LocalError, ParseIdError, Refused, SecretError, TakeError};
use pyo3::prelude::*;

/// The exception class of a failure, in `ringflake._types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Config,
    Secret,
    Store,
    NoLease,
    BorrowLimit,
    Empty,
    WaitTimeout,
    Closed,
    Parse,
    ForeignId,
    Resource,
    Internal,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::Config => "ConfigError",
            Self::Secret => "SecretError",
            Self::Store => "StoreError",
            Self::NoLease => "NoLeaseError",
            Self::BorrowLimit => "BorrowLimitError",
            Self::Empty => "EmptyError",
            Self::WaitTimeout => "WaitTimeoutError",
            Self::Closed => "ClosedError",
            Self::Parse => "ParseError",
            Self::ForeignId => "ForeignIdError",
            Self::Resource => "ResourceError",
            Self::Internal => "Error",
        }
    }
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    retry_after: Option<Duration>,
}

pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

impl Failure {
    #[cold]
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            kind,
            message: message.into(),
            retry_after: None,
        })
    }

    #[cold]
    fn of(kind: Kind, error: &dyn Error) -> Box<Self> {
        Self::new(kind, with_causes(error))
    }

    #[cold]
    pub(crate) fn closed() -> Box<Self> {
        Self::new(
            Kind::Closed,
            "the generator was shut down: make another one",
        )
    }

    #[cold]
    pub(crate) fn no_thread(error: &std::io::Error) -> Box<Self> {
        Self::new(Kind::Resource, format!("no thread can be started: {error}"))
    }
}

impl From<Box<Failure>> for PyErr {
    #[cold]
    fn from(failure: Box<Failure>) -> Self {
        let seconds = failure.retry_after.map(|time| time.as_secs_f64());
        Python::attach(|py| {
            let class = py
                .import("ringflake._types")
                .and_then(|types| types.getattr(failure.kind.class()));
            match class.and_then(|class| class.call1((failure.message, seconds))) {
                Ok(exception) => Self::from_value(exception),
                Err(error) => error,
            }
        })
    }
}

/// The message of the error and of its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    message
}

fn with_help(message: String, help: Option<&str>) -> String {
    match help {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

/// What to do about it, in keyword arguments. The engine's advice on its own builders is left
/// out.
fn help_of_build(error: &BuildError) -> Option<&str> {
    Some(match error {
        BuildError::Store(error) => return help_of_store(error),
        BuildError::Local(LocalError::Store(StoreError::NotDurable { .. })) => {
            "set `data_dir` to a directory on a local disk, or accept the risk with \
             `best_effort=True`"
        }
        BuildError::Local(LocalError::NoHome) => "set `data_dir` to a directory",
        BuildError::Local(LocalError::Directory { source, .. })
            if source.kind() != ErrorKind::TimedOut =>
        {
            "run as the user that it belongs to, and check that its disk is writable and has free \
             space; only if it does not exist yet, set `data_dir` to another directory, whose IDs \
             can equal those of any other"
        }
        BuildError::Local(error) => return error.help(),
        _ => return None,
    })
}

/// The same of a store.
fn help_of_store(error: &StoreError) -> Option<&str> {
    Some(match error {
        StoreError::NotDurable { .. } => {
            "change that setting, or accept the risk with `best_effort=True`"
        }
        StoreError::NotInitialised { .. } | StoreError::HistoryUnknown { .. } => {
            "set `init_if_new` to \"new\" only if no ID with a present or future time was issued \
             with its layout and secret, else, once the clock is right, to \"unknown\"; if its \
             horizon or failover time was longer than the default, initialise it by hand with the \
             old ones"
        }
        StoreError::FingerprintMismatch { .. } => {
            "use the secret and the `width` that it was initialised with; or another namespace \
             with another secret, and keep its IDs apart from the old ones"
        }
        error => return error.help(),
    })
}

impl From<TakeError> for Box<Failure> {
    #[cold]
    fn from(error: TakeError) -> Self {
        let mut failure = match error {
            TakeError::Empty => Failure::new(
                Kind::Empty,
                "the rings are empty: try again, raise `capacity` or `threshold`, or leave out \
                 `on_empty`",
            ),
            TakeError::NoPage { .. } => Failure::of(Kind::Resource, &error),
            TakeError::Refused(Refused::BorrowLimit { retry_after, limit }) => Failure::new(
                Kind::BorrowLimit,
                format!(
                    "the next ID lies more than {limit:?} ahead of the clock: retry in \
                     {retry_after:?}, or raise `blocks` or `borrow_limit`"
                ),
            ),
            _ => Failure::of(Kind::NoLease, &error),
        };
        failure.retry_after = error.retry_after();
        failure
    }
}

impl From<BuildError> for Box<Failure> {
    fn from(error: BuildError) -> Self {
        let (waited, error) = match error {
            BuildError::NoLeaseYet { waited, error } => (waited, error),
            BuildError::Local(LocalError::OtherWidth {
                namespace,
                recorded,
                given,
            }) => {
                let [recorded, given] =
                    [recorded, given].map(|width| width.name().replace('-', "_"));
                return Failure::new(
                    Kind::Config,
                    format!(
                        "namespace {namespace:?} was made with `width=\"{recorded}\"`, and this is \
                         `width=\"{given}\"`: give the same width; or another name, and keep its \
                         IDs apart from the old ones"
                    ),
                );
            }
            error => {
                let message = with_help(with_causes(&error), help_of_build(&error));
                let mut failure = Failure::new(of_build(&error), message);
                if let BuildError::Store(error) | BuildError::Local(LocalError::Store(error)) =
                    &error
                {
                    failure.retry_after = retry_after(error);
                }
                return failure;
            }
        };
        let waited = waited.as_secs_f64();
        let message = format!(
            "no lease was granted within {waited:.1} s: {}; give a longer `wait`, or `wait=0` to \
             start without a lease",
            with_causes(&error)
        );
        let message = with_help(message, help_of_store(&error));
        let mut failure = Failure::new(Kind::NoLease, message);
        failure.retry_after = retry_after(&error).or(Some(Duration::from_secs(1)));
        failure
    }
}

fn retry_after(error: &StoreError) -> Option<Duration> {
    match error {
        StoreError::FloorAhead { retry_after, .. } | StoreError::Exhausted { retry_after, .. } => {
            Some(*retry_after)
        }
        _ => None,
    }
}

fn of_build(error: &BuildError) -> Kind {
    match error {
        BuildError::Store(error) => of_store(error),
        BuildError::System(_) | BuildError::Ring(engine::RingError::Memory(_)) => Kind::Resource,
        BuildError::Local(error) => match error {
            LocalError::Store(error) => of_store(error),
            LocalError::Name(_)
            | LocalError::NameLength { .. }
            | LocalError::ReservedName { .. }
            | LocalError::Place(_) => Kind::Config,
            LocalError::Secret(_)
            | LocalError::SecretFile { .. }
            | LocalError::NoSecret { .. }
            | LocalError::SecretLost { .. }
            | LocalError::OtherSecret { .. }
            | LocalError::SecretBrought { .. }
            | LocalError::SecretUsed { .. } => Kind::Secret,
            _ => Kind::Store,
        },
        _ => Kind::Config,
    }
}

fn of_store(error: &StoreError) -> Kind {
    match error {
        StoreError::FingerprintMismatch { .. } | StoreError::SecretInUse { .. } => Kind::Secret,
        StoreError::LayoutMismatch { .. } => Kind::Config,
        StoreError::Exhausted { .. } | StoreError::FloorAhead { .. } => Kind::NoLease,
        _ => Kind::Store,
    }
}

impl From<SecretError> for Box<Failure> {
    fn from(error: SecretError) -> Self {
        Failure::of(Kind::Secret, &error)
    }
}

impl From<ParseIdError> for Box<Failure> {
    fn from(error: ParseIdError) -> Self {
        Failure::of(Kind::Parse, &error)
    }
}

impl From<LayoutError> for Box<Failure> {
    fn from(error: LayoutError) -> Self {
        Failure::of(Kind::ForeignId, &error)
    }
}
