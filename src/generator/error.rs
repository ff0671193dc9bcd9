//! Why a generator could not be built.

use std::io;
use std::time::{Duration, SystemTime};

use crate::cipher::{IdWidth, IdWidthUnavailable};
use crate::describe::describe;
use crate::fill::PolicyError;
use crate::layout::{Layout, LayoutError, Moment, Utc, span};
use crate::lease::protocol::PlanError;
use crate::lease::{LeaseError, NamespaceError, StoreError};
use crate::ring::RingError;

/// Why a generator could not be built. Nothing is left running or held. `Display` says
/// what is wrong, in one line; [`note`](Self::note) says why it matters, and
/// [`help`](Self::help) what to do.
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
    /// The operating system refused memory or a thread.
    System(io::Error),
}

describe! {
    BuildError,
    /// Why it matters, in one sentence; none where the first line says all.
    ///
    /// Costs no allocation.
    note,
    /// What to do about it, in one sentence; none where the first line says it.
    ///
    /// Names methods of the builders where the program is wrong, and no item of this crate
    /// where its surroundings are: the store, the clock or the system. Costs no allocation.
    help;

    Self::NoCipher => "no secret was given, and plain IDs were not chosen",
        help: "give a secret with `secret`, or choose `plain` for IDs that sort by time and that \
               anybody can read";
    Self::PlainAndSecret => "a secret was given for plain IDs",
        help: "leave out `plain` or `secret`";
    Self::NoLease => "neither a lease nor a store was given",
        note: "there is no default node: two generators with the same node issue the same IDs",
        help: "give a lease with `lease`, or a store with `lease_store`";
    Self::TwoLeases => "both a lease and a store were given",
        help: "choose `lease` for nodes that nobody else has, or `lease_store` to request them";
    Self::LeaseTaken { nodes, ticks, other_nodes, other_ticks } =>
        "the lease on nodes {nodes:?}, ticks {ticks:?}, overlaps one in use: another generator of \
         this process has nodes {other_nodes:?}, ticks {other_ticks:?}",
        note: "IDs would be issued twice",
        help: "clone that generator; or drop it, and build on its lease again; or use other nodes";
    Self::LeaseUsed { nodes, ticks, used_nodes, used_ticks } =>
        "the lease on nodes {nodes:?}, ticks {ticks:?}, was used in part: a generator of this \
         process may have issued IDs of nodes {used_nodes:?}, ticks {used_ticks:?}",
        note: "IDs would be issued twice",
        help: "build on the earlier generator's lease or a clone of it, start after the used ticks, \
               or use other nodes";
    Self::LeaseOfParent { nodes, ticks, parents_nodes } =>
        "the lease on nodes {nodes:?}, ticks {ticks:?}, overlaps nodes {parents_nodes:?} of the \
         parent of this forked process",
        note: "IDs would be issued twice",
        help: "use other nodes in the child, or build only after the fork";
    Self::LeaseGivenUp { nodes, ticks } =>
        "the lease on nodes {nodes:?}, ticks {ticks:?}, was given up when its generator was \
         invalidated",
        note: "a copy of this process may still use it",
        help: "use nodes that the copy does not have";
    Self::NoStore { option } => "`{option}` needs a store, and none was given",
        help: "give a store with `lease_store`, or leave the option out";
    Self::NoNamespace => "a store was given without a namespace",
        help: "name the store's namespace with `namespace`";
    Self::Namespace(error) => "{error}";
    Self::Plan(error) => "{error}";
    Self::FirstLeaseDuration { value, max } => (
        "the first lease duration must be above 0 and at most the lease duration, {}, got \
         {value:?}", span(*max));
    Self::Store(error) => via error;
    Self::NoLeaseYet {
        waited,
        error: error @ (StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }),
    } => ("no lease was granted within {}: {error}", span(*waited)),
        note: via error,
        help: "wait longer with `first_lease_within`, or start without a lease with \
               `build_detached`";
    Self::NoLeaseYet { waited, error } => (
        "no lease was granted within {}: {error}", span(*waited)),
        note: via error,
        help: via error;
    #[cfg(feature = "sqlite")]
    Self::Local(error) => via error;
    #[cfg(feature = "sqlite")]
    Self::TwoWidths { builder, local } =>
        "two ID widths were given: {builder} for the generator and {local} for its namespace",
        help: "give only one width, the one that the namespace was created with";
    #[cfg(feature = "sqlite")]
    Self::LocalHas { option } =>
        "`{option}` can't be given for a local namespace, which sets it itself",
        help: "leave the option out, or use `lease_store` in place of `local`";
    Self::LeaseNotPast { end_unix_ms, now_unix_ms } => (
        "the lease ends at {}, which is not past: the clock shows {}",
        Utc(*end_unix_ms), Utc(*now_unix_ms)),
        help: "use a lease of past ticks; a `CachedGenerator` or `DirectGenerator` issues IDs of \
               the present";
    Self::NoMoments => "a store was given without a range of past times",
        help: "give the range with `between`, or a lease with `lease`";
    Self::Moments { from, to, epoch_unix_ms, end_unix_ms } => (
        "there are no IDs from {} to {}: the layout goes from {} to {}",
        Moment(*from), Moment(*to), Utc(*epoch_unix_ms), Utc(*end_unix_ms)),
        help: "give a range that is not empty and lies inside the layout";
    Self::EncryptionWidens { bits, width } => (
        "a layout of {bits} bits is meant for JavaScript numbers, but encrypted IDs have {} bits",
        width.bits()),
        help: "use the ID width js-safe or plain IDs; if 64 bits are fine, use a layout of more \
               than 53 bits";
    Self::LayoutTooWide { bits, width: width @ IdWidth::JsSafe } => (
        "a layout of {bits} bits does not fit IDs of {} bits ({width})", width.bits()),
        help: "use a layout of at most 53 bits, such as js-safe, or wider IDs";
    Self::LayoutTooWide { bits, width } => (
        "a layout of {bits} bits does not fit IDs of {} bits ({width})", width.bits()),
        help: "use a layout of at most 63 bits, such as positive or positive-ms, or wider IDs";
    Self::IdWidthUnavailable(error) => "{error}";
    Self::Layout(error) => "{error}";
    Self::Lease(error) => "{error}";
    Self::LeaseLayout { lease, generator } =>
        "the lease has the layout {lease}, and the generator {generator}",
        help: "build both with the same layout";
    Self::Policy(error) => "{error}";
    Self::Ring(error) => "{error}";
    Self::Producers { count } => "producers must be 1 to 64, got {count}";
    Self::Stripes { count, most } => "stripes must be a power of two from 1 to {most}, got {count}";
    Self::WaitWithoutThreshold => "takes wait for a fill, and no threshold starts one",
        help: "give a `threshold_fill`, or choose `OnEmpty::Generate`";
    Self::NeverFilled => "nothing fills the ring, so every take would fail",
        help: "give a `padding_fill`, a `threshold_fill` or a `scheduled_fill`, or choose \
               `OnEmpty::Generate`";
    Self::FullHookWithoutSchedule => "a hook for a full ring was given without scheduled fills",
        help: "give a `scheduled_fill`, or leave `on_full_hook` out";
    Self::BorrowLimit { limit, max } => (
        "the borrow limit must be at most {} for a static lease, got {}", span(*max), span(*limit)),
        note: "a restart on the same nodes has to wait for as long, or repeats IDs",
        help: "lower the limit, or lease nodes from a store with `lease_store`";
    Self::System(_) => "the system refused memory or a thread",
        help: "check the cause, and the resource limits of the process";
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
