//! Why a generator could not be built.

use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use crate::cipher::{IdWidth, IdWidthUnavailable};
use crate::fill::PolicyError;
use crate::layout::{Layout, LayoutError, Moment, Utc};
use crate::lease::protocol::PlanError;
use crate::lease::{LeaseError, NamespaceError, StoreError};
use crate::ring::RingError;

/// Why a generator could not be built. Nothing is left running or held.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither a secret was given nor plain IDs chosen.
    NoCipher,
    /// Both a secret was given and plain IDs chosen.
    PlainAndSecret,
    /// No lease was given, so the generator has no nodes.
    NoLease,
    /// A lease for a backfill generator reaches into the present or the future, whose IDs
    /// other generators make.
    LeaseNotPast {
        /// When the lease ends, in Unix milliseconds.
        end_unix_ms: u64,
        /// What the system's clock says, in Unix milliseconds.
        now_unix_ms: u64,
    },
    /// A store for a backfill generator, but no moments.
    NoMoments,
    /// The moments of a backfill generator are no range, or not all of the layout's time.
    Moments {
        /// The first.
        from: SystemTime,
        /// Their end, which is not among them.
        to: SystemTime,
        /// When the layout begins, in Unix milliseconds.
        epoch_unix_ms: u64,
        /// When it ends, in Unix milliseconds.
        end_unix_ms: u64,
    },
    /// IDs of a layout made to fit a double would not fit it any more once encrypted to
    /// this width.
    EncryptionWidens {
        /// The layout's width in bits.
        bits: u32,
        /// The width of the IDs.
        width: IdWidth,
    },
    /// The layout has more bits than IDs of the width that was chosen.
    LayoutTooWide {
        /// The layout's width in bits.
        bits: u32,
        /// The width of the IDs.
        width: IdWidth,
    },
    /// The width of the IDs needs a feature that is off.
    IdWidthUnavailable(IdWidthUnavailable),
    /// The layout can't be used: it has run out.
    Layout(LayoutError),
    /// The static lease can't be granted.
    Lease(LeaseError),
    /// Both a lease and a store were given.
    TwoLeases,
    /// Another generator of this process is using IDs that the lease holds too:
    /// it has the same lease, or one that meets it.
    LeaseTaken {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The other generator's nodes.
        other_nodes: std::ops::Range<u64>,
        /// The other generator's ticks.
        other_ticks: std::ops::Range<u64>,
    },
    /// A generator of this process that is gone may have issued IDs that the
    /// lease holds too.
    LeaseUsed {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The nodes of that generator.
        used_nodes: std::ops::Range<u64>,
        /// The ticks that it may have issued IDs of. Nothing stands against a
        /// start at their end.
        used_ticks: std::ops::Range<u64>,
    },
    /// The process that this one was forked from had a generator on some of the
    /// nodes, and may go on with them. What the child drops changes nothing.
    LeaseOfParent {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The parent's nodes.
        parents_nodes: std::ops::Range<u64>,
    },
    /// The lease was given up when the generator that had it was invalidated: a
    /// copy of this process may go on with it.
    LeaseGivenUp {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
    },
    /// An option about leases from a store, but no store.
    NoStore {
        /// The option.
        option: &'static str,
    },
    /// A store, but no namespace in it.
    NoNamespace,
    /// The namespace's name or block size is wrong.
    Namespace(NamespaceError),
    /// The number of blocks or the lease duration is out of its range.
    Plan(PlanError),
    /// The duration of the first lease is zero, or longer than that of the
    /// leases after it.
    FirstLeaseDuration {
        /// The duration that was asked for.
        value: Duration,
        /// The longest allowed, the lease duration.
        max: Duration,
    },
    /// The store gives no lease, and waiting does not help. Nothing is held in it, unless
    /// this is [`StoreError::Ambiguous`]; then a block may lie idle until its end.
    Store(StoreError),
    /// The store gave no lease, but may give one later: it could not be reached, all
    /// blocks are held, or it waits out grants that may have been lost. Nothing is held in
    /// it.
    NoLeaseYet {
        /// For how long it was tried.
        waited: Duration,
        /// The store's last error.
        error: StoreError,
    },
    /// The namespace on this machine can't be used.
    #[cfg(feature = "sqlite")]
    Local(crate::local::LocalError),
    /// The builder and its `local` name two widths of IDs.
    #[cfg(feature = "sqlite")]
    TwoWidths {
        /// The builder's.
        builder: IdWidth,
        /// That of the [`Local`](crate::Local).
        local: IdWidth,
    },
    /// An option beside `local` that `local` sets itself.
    #[cfg(feature = "sqlite")]
    LocalHas {
        /// The option.
        option: &'static str,
    },
    /// The lease is counted in another layout than the generator's.
    LeaseLayout {
        /// The lease's layout.
        lease: Layout,
        /// The generator's.
        generator: Layout,
    },
    /// A threshold or a period is out of its range.
    Policy(PolicyError),
    /// The ring could not be made.
    Ring(RingError),
    /// The number of producer threads is not between 1 and 64.
    Producers {
        /// The number that was given.
        count: usize,
    },
    /// The number of stripes is not a power of two between 1 and
    /// [`MAX_STRIPES`](crate::CachedGeneratorBuilder::MAX_STRIPES), or is larger than the number of
    /// slots.
    Stripes {
        /// The number that was given.
        count: usize,
        /// The most that are possible for the capacity.
        most: usize,
    },
    /// [`OnEmpty::Wait`](crate::OnEmpty::Wait) without a threshold fill: no producer would
    /// wake up.
    WaitWithoutThreshold,
    /// No policy ever fills the ring, and [`OnEmpty::Error`](crate::OnEmpty::Error) makes no
    /// IDs: every take would fail.
    NeverFilled,
    /// A hook on a full ring without the
    /// [`ScheduledFill`](crate::ScheduledFill) that alone calls it.
    FullHookWithoutSchedule,
    /// The borrow limit is longer than a day, or a tick where that is longer, with a
    /// [`StaticLease`](crate::StaticLease).
    BorrowLimit {
        /// The limit that was given.
        limit: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The leased nodes can't be divided by the rollback bits.
    RollbackBits {
        /// The bits that were asked for.
        bits: u8,
        /// The leased nodes.
        nodes: std::ops::Range<u64>,
    },
    /// The operating system refused memory or a thread.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCipher => f.write_str(
                "no cipher was chosen: give a secret with `secret`, or choose `plain` for \
                 IDs that are sorted by time and readable by anybody",
            ),
            Self::PlainAndSecret => f.write_str(
                "both `plain` and `secret` were called: IDs are either plain or encrypted; \
                 leave one of the calls out",
            ),
            Self::NoLease => f.write_str(
                "no lease was given: there is no default node, because two generators that \
                 share one make duplicates; give a lease with `lease`, or a store with `lease_store`",
            ),
            Self::TwoLeases => f.write_str(
                "both a lease and a store were given: choose `lease` for nodes that nobody else \
                 has, or `lease_store` to have them granted",
            ),
            Self::LeaseTaken {
                nodes,
                ticks,
                other_nodes,
                other_ticks,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, is taken: another generator of \
                 this process has nodes {other_nodes:?}, ticks {other_ticks:?}, and two would make \
                 duplicates; clone that generator, or drop it and build on the same lease again, \
                 or use other nodes"
            ),
            Self::LeaseUsed {
                nodes,
                ticks,
                used_nodes,
                used_ticks,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, was used in part: a generator of \
                 this process may have issued IDs of nodes {used_nodes:?}, ticks {used_ticks:?}, \
                 and they would be issued again; build on the lease that it had or a clone of it, \
                 which goes on after them, or start at tick {} or later, or use other nodes",
                used_ticks.end
            ),
            Self::LeaseOfParent {
                nodes,
                ticks,
                parents_nodes,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, meets what the parent of this \
                 forked process had: it has used nodes {parents_nodes:?} and may go on with them, \
                 whatever is dropped here; use nodes of the child's own, or build after the fork \
                 and not before"
            ),
            Self::LeaseGivenUp { nodes, ticks } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, was given up when its generator \
                 was invalidated, since a copy of this process may go on with it: use nodes that \
                 the copy does not have"
            ),
            Self::NoStore { option } => write!(
                f,
                "`{option}` is about leases from a store, and none was given: \
                 give one with `lease_store`, or leave `{option}` out"
            ),
            Self::NoNamespace => f.write_str(
                "a store was given, but no namespace: name the ID space with `namespace`",
            ),
            Self::Namespace(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::FirstLeaseDuration { value, max } => write!(
                f,
                "a first lease of {value:?} is not possible: choose more than nothing, and at most \
                 the lease duration, {max:?}"
            ),
            Self::Store(error) => error.fmt(f),
            Self::NoLeaseYet { waited, error } => write!(
                f,
                "no lease came within {:.1} s: {error}; let `first_lease_within` be longer, or \
                 begin without one with `build_detached`",
                waited.as_secs_f64()
            ),
            #[cfg(feature = "sqlite")]
            Self::Local(error) => error.fmt(f),
            #[cfg(feature = "sqlite")]
            Self::TwoWidths { builder, local } => write!(
                f,
                "the builder has `id_width(IdWidth::{builder:?})`, and its `local` \
                 `id_width(IdWidth::{local:?})`: give the width once, as the namespace was made"
            ),
            #[cfg(feature = "sqlite")]
            Self::LocalHas { option } => write!(
                f,
                "`local` sets what `{option}` would: leave `{option}` out, or use \
                 `lease_store` in place of `local`"
            ),
            Self::LeaseNotPast {
                end_unix_ms,
                now_unix_ms,
            } => write!(
                f,
                "the lease ends at Unix time {end_unix_ms} ms, and the clock says {now_unix_ms} ms: \
                 give a lease of past ticks alone, and take IDs of the present from a \
                 CachedGenerator or a DirectGenerator"
            ),
            Self::NoMoments => f.write_str(
                "a store was given, but no moments: say with `between` from when to when the rows \
                 are, or give a lease with `lease`",
            ),
            Self::Moments {
                from,
                to,
                epoch_unix_ms,
                end_unix_ms,
            } => write!(
                f,
                "there are no IDs from {} to {}: give a range that is not empty, from {} to {} at \
                 most",
                Moment(*from),
                Moment(*to),
                Utc(*epoch_unix_ms),
                Utc(*end_unix_ms)
            ),
            Self::EncryptionWidens { bits, width } => write!(
                f,
                "IDs of a layout of {bits} bits fit a double, but encrypted ones have {} bits: \
                 choose `id_width(IdWidth::JsSafe)`, `plain`, or a layout of more than {} bits",
                width.bits(),
                IdWidth::JsSafe.bits()
            ),
            Self::LayoutTooWide { bits, width } => write!(
                f,
                "a layout of {bits} bits does not fit IDs of {} bits, those of \
                 `IdWidth::{width:?}`: choose a layout of at most {0}, as {}, or wider IDs",
                width.bits(),
                match width {
                    IdWidth::JsSafe => "`Layout::JS_SAFE`",
                    _ => "`Layout::POSITIVE` and `Layout::POSITIVE_MS`",
                }
            ),
            Self::IdWidthUnavailable(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Lease(error) => error.fmt(f),
            Self::LeaseLayout { lease, generator } => write!(
                f,
                "the lease is for the layout {lease} and the generator for {generator}: \
                 build both with the same one"
            ),
            Self::Policy(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Producers { count } => {
                write!(f, "{count} producer threads are not possible: choose 1 to 64")
            }
            Self::Stripes { count, most } => write!(
                f,
                "{count} stripes are not possible: choose a power of two from 1 to {most}, or \
                 none for one for each core"
            ),
            Self::WaitWithoutThreshold => f.write_str(
                "OnEmpty::Wait needs a threshold fill, or nothing wakes a producer: \
                 give one, or choose OnEmpty::Generate",
            ),
            Self::NeverFilled => f.write_str(
                "nothing ever fills the ring, and with OnEmpty::Error every take would fail: \
                 give a `padding_fill`, a `threshold_fill` or a `scheduled_fill`, or choose \
                 OnEmpty::Generate",
            ),
            Self::FullHookWithoutSchedule => f.write_str(
                "`on_full_hook` is called by scheduled fills alone: give a `scheduled_fill`, or \
                 leave `on_full_hook` out",
            ),
            Self::BorrowLimit { limit, max } => write!(
                f,
                "a borrow limit of {limit:?} is too long for a static lease: a restart would have \
                 to wait for as long, or repeat IDs; choose at most {max:?}, or lease nodes from a \
                 store with `lease_store`"
            ),
            Self::RollbackBits { bits, nodes } => write!(
                f,
                "{bits} rollback bits can't be taken from the nodes {}..{}: choose 1 to 8 bits, \
                 and a number of nodes that is a multiple of 2^bits",
                nodes.start, nodes.end
            ),
            Self::System(_) => f.write_str(
                "the system refused memory or a thread: see the cause, and the limits that \
                 the process runs under",
            ),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // These print the error they hold, so the source is that error's source.
            // The other errors have none.
            Self::Store(error) | Self::NoLeaseYet { error, .. } => error.source(),
            #[cfg(feature = "sqlite")]
            Self::Local(error) => error.source(),
            Self::Ring(error) => error.source(),
            Self::System(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_was_behind_it_and_prints_it_once() {
        let behind = || std::io::Error::other("a disk that is full");
        let unavailable = StoreError::Unavailable {
            source: Box::new(behind()),
        };
        for error in [
            BuildError::Store(unavailable),
            BuildError::Ring(RingError::Memory(behind())),
            BuildError::System(behind()),
            #[cfg(feature = "sqlite")]
            BuildError::Local(crate::local::LocalError::Directory {
                path: "orders".into(),
                source: behind(),
            }),
        ] {
            let source = std::error::Error::source(&error).unwrap();
            assert_eq!(source.to_string(), "a disk that is full");
            assert!(!error.to_string().contains("a disk"), "{error}");
        }
        assert!(std::error::Error::source(&BuildError::NoCipher).is_none());
    }
}
