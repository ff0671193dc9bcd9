//! Every error of the library, as it is displayed, beside `tests/messages/library.txt`.

use std::fmt::Display;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use ringflake_kit::messages;
use ringflake_kit::snapshot::{assert_snapshot, entry};

use crate::cipher::SecretError;
use crate::cipher::{Backend, BackendUnavailable, IdWidth, IdWidthUnavailable, Secret};
use crate::facade::FacadeError;
use crate::fill::PolicyError;
use crate::generator::{AlreadyInitialised, BackfillError, BuildError, TakeError};
use crate::id::{Id, ParseIdError};
use crate::layout::ParseLayoutError;
use crate::layout::{Layout, LayoutError, LayoutField};
use crate::lease::protocol::PlanError;
use crate::lease::{
    Block, Confirmed, Epoch, Fence, Fingerprint, LeaseError, Namespace, NamespaceError, Obstacle,
    OpenError, StoreError, StoreFailure, StoreFailureKind, StoreLimits, fault,
};
use crate::local::LocalError;
use crate::plan::{Burst, Load, Rate, SizingError};
use crate::ring::{PushError, RingError};
use crate::timeline::Refused;
use crate::typed_id::ParseTypedIdError;

/// 2025-10-09T08:53:20Z.
const NOW: u64 = 1_760_000_000_000;
const MINUTE: Duration = Duration::from_secs(60);

fn plain(name: &str, error: &impl Display) -> String {
    entry(name, error, &[])
}

fn broken() -> Box<dyn std::error::Error + Send + Sync> {
    "connection reset".into()
}

fn full_disk() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn print(byte: u8) -> Fingerprint {
    Fingerprint::of(&Secret::from_bytes([byte; 16]))
}

fn orders(block_bits: u32) -> Namespace {
    let plain = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    plain.with_block_bits(block_bits).unwrap()
}

/// Why a block with this epoch and mark is quarantined.
fn quarantine_reason(epoch: u64, mark: u64) -> String {
    fault(&orders(5), 7, epoch, mark).unwrap()
}

fn store_errors() -> String {
    let show = |name: &str, error: &StoreError| {
        entry(
            name,
            error,
            &[("note", error.note()), ("help", error.help())],
        )
    };
    messages!(show, StoreError {
        NotInitialised { namespace: "orders".into() },
        AlreadyInitialised { namespace: "orders".into() },
        HistoryUnknown {
            namespace: "orders".into(),
            reason: "sqlite:leases.db: there was such a file, and it was removed".into(),
        },
        FingerprintMismatch {
            namespace: "orders".into(),
            recorded: print(1),
            offered: print(2),
        },
        SecretInUse { namespace: "orders".into(), other: "invoices".into() },
        SecretInUse { namespace: "orders".into(), other: "orders".into() },
        Format { namespace: "orders".into(), recorded: 4, known: 3 },
        LayoutMismatch {
            namespace: "orders".into(),
            recorded: orders(5).shape(),
            offered: orders(6).shape(),
        },
        Fenced { block: Block::new(7), fence: Fence::End { known: 100, recorded: 160 } },
        Fenced {
            block: Block::new(7),
            fence: Fence::Quarantined { reason: quarantine_reason(9, 3) },
        },
        Exhausted { wanted: 3, blocks: 4096, retry_after: Duration::from_millis(90_500) },
        BeforeFloor {
            start: 17,
            start_unix_ms: NOW,
            floor: 4711,
            floor_unix_ms: NOW + 1_000,
        },
        NotPast { end: 17, end_unix_ms: NOW + 1_000, latest: 16, latest_unix_ms: NOW },
        PastExhausted {
            wanted: 3,
            blocks: 4096,
            start: 17,
            start_unix_ms: NOW,
            lowest_mark_unix_ms: Some(NOW + 1_000),
        },
        PastExhausted {
            wanted: 3,
            blocks: 4096,
            start: 17,
            start_unix_ms: NOW,
            lowest_mark_unix_ms: None,
        },
        PresentOnly { store: "tier:/var/lib/ringflake/leases".into() },
        FloorAhead {
            floor: 4711,
            floor_unix_ms: NOW + 721_000,
            now_unix_ms: NOW,
            retry_after: Duration::from_secs(62),
        },
        FloorAhead {
            floor: 40_000,
            floor_unix_ms: NOW + 36_659_000,
            now_unix_ms: NOW,
            retry_after: Duration::from_secs(36_000),
        },
        FloorTooFar {
            tick: 4711,
            tick_unix_ms: NOW + 86_400_000,
            latest: 815,
            latest_unix_ms: NOW,
            idle: Duration::from_secs(86_400),
        },
        NotQuarantined { block: Block::new(7) },
        HistoryLost {
            confirmed: Confirmed::new(Block::new(7), Epoch::new(3), 100),
            recorded: Some((Epoch::new(2), 60)),
        },
        HistoryLost {
            confirmed: Confirmed::new(Block::new(7), Epoch::new(3), 100),
            recorded: None,
        },
        LayoutEnded { start: 1 << 30, layout_ticks: 1 << 30 },
        ClockSkew {
            store_unix_ms: NOW + 7_000,
            client_unix_ms: NOW,
            limit: Duration::from_secs(5),
        },
        BeforeEpoch { unix_ms: NOW, epoch_unix_ms: NOW + 86_400_000 },
        NotDurable { store: "redis at db:6379".into(), reason: "appendonly is no".into() },
        Copied {
            store: "sqlite:/var/lib/ringflake/leases.db".into(),
            recorded: "inode 1".into(),
            found: "inode 2".into(),
        },
        Unavailable { source: broken() },
        Denied { source: broken() },
        Ambiguous { operation: "acquire", source: broken() },
        Ambiguous { operation: "raise_floor", source: broken() },
        Ambiguous { operation: "init", source: broken() },
        Invalid {
            what: "the failover time in milliseconds",
            value: 5_000,
            min: 10_000,
            max: 31_622_400_000,
        },
        TableMissing { source: broken() },
        Corrupt {
            detail: "no integer horizon_ms in the record of namespace \"orders\"".into(),
            source: None,
        },
    })
}

fn lease_errors() -> String {
    let failing = StoreFailure::new(StoreFailureKind::Unavailable, NOW);
    let mut text = messages!(plain, Fence {
        NeverGranted,
        Epoch { held: Epoch::new(3), recorded: Epoch::new(4) },
        End { known: 100, recorded: 160 },
        Floor { known: 100, floor: 160 },
        Incarnation,
        Upstream,
        Quarantined { reason: quarantine_reason(9, 3) },
    });
    text += &messages!(plain, Obstacle {
        Copied,
        HistoryLost { failover: MINUTE },
        Skew { skew_ms: 7_000, limit_ms: 5_000 },
        LayoutEnded,
        FloorAhead {
            floor_unix_ms: NOW + 749_500,
            now_unix_ms: NOW,
            retry_after: Duration::from_millis(90_500),
        },
        FloorAhead {
            floor_unix_ms: NOW + 36_659_000,
            now_unix_ms: NOW,
            retry_after: Duration::from_secs(36_000),
        },
        Exhausted { quarantined: 0 },
        Exhausted { quarantined: 3 },
    });
    let failure = |name: &str, kind: &StoreFailureKind| plain(name, &StoreFailure::new(*kind, NOW));
    text += &messages!(
        failure,
        StoreFailureKind {
            NotInitialised,
            Mismatch,
            Format,
            Fenced,
            Exhausted,
            FloorAhead,
            HistoryLost,
            LayoutEnded,
            Copied,
            Clock,
            NotDurable,
            Unavailable,
            Denied,
            Ambiguous,
            Other,
        }
    );
    text += &messages!(plain, Refused {
        BorrowLimit { retry_after: Duration::from_micros(19_400), limit: Duration::from_secs(10) },
        LeaseEnded { end_unix_ms: NOW, now_unix_ms: NOW + 1 },
        LeaseEnded { end_unix_ms: NOW, now_unix_ms: NOW - 1 },
        NoLease { end_unix_ms: 0, now_unix_ms: NOW, failure: None },
        NoLease { end_unix_ms: NOW, now_unix_ms: NOW + 1, failure: Some(failing) },
        Invalidated,
        Forked,
    });
    text += &messages!(plain, LeaseError {
        Nodes { start: 5, end: 5, layout_nodes: 131_072 },
        Nodes { start: 5, end: 131_073, layout_nodes: 131_072 },
        Ticks { start: 5, end: 5, layout_ticks: 1 << 30 },
        Ticks { start: 5, end: 1 << 31, layout_ticks: 1 << 30 },
        BeforeEpoch { unix_ms: NOW, epoch_unix_ms: NOW + 86_400_000 },
        LayoutEnded { start: 1 << 30, layout_ticks: 1 << 30 },
    });
    text += &messages!(plain, NamespaceError {
        NameLength { bytes: 0 },
        NameCharacter { at: 2, found: 'N' },
        BlockBits { block_bits: 18, max: 17 },
    });
    text += &messages!(plain, PlanError {
        Blocks { value: 300, max: 256 },
        WidenTo { value: 1, min: 2, max: 256 },
        LeaseDuration {
            value: Duration::from_secs(9),
            min: Duration::from_secs(10),
            max: StoreLimits::MAX,
        },
    });
    text += &messages!(plain, OpenError {
        NoScheme,
        Scheme { scheme: "foo".into() },
        FeatureOff { feature: "etcd" },
        Invalid { scheme: "redis", reason: "the database is a number".into() },
    });
    text
}

fn local_errors() -> String {
    let show = |name: &str, error: &LocalError| {
        entry(
            name,
            error,
            &[("note", error.note()), ("help", error.help())],
        )
    };
    messages!(show, LocalError {
        Name(NamespaceError::NameLength { bytes: 0 }),
        NameLength { bytes: 64 },
        ReservedName { name: "orders-plain".into() },
        NoHome,
        Directory { path: "/var/lib/ringflake".into(), source: full_disk() },
        Directory { path: "/var/lib/ringflake".into(), source: io::ErrorKind::TimedOut.into() },
        Place(OpenError::NoScheme),
        Secret(SecretError::HexLength { found: 31 }),
        SecretFile { path: "/var/lib/ringflake/orders.key".into(), source: full_disk() },
        NoSecret { namespace: "orders".into(), path: "/var/lib/ringflake/orders.key".into() },
        SecretLost { namespace: "orders".into(), path: "/var/lib/ringflake/orders.key".into() },
        OtherSecret { namespace: "orders".into(), path: "/var/lib/ringflake/orders.key".into() },
        OtherWidth {
            namespace: "orders".into(),
            recorded: IdWidth::Positive,
            given: IdWidth::Full,
        },
        SecretBrought { path: Some("orders.key".into()), directory: "/var/lib/ringflake".into() },
        SecretBrought { path: None, directory: "/var/lib/ringflake".into() },
        SecretUsed { namespace: "orders".into(), directory: "/var/lib/ringflake".into() },
        SecretGiven,
        Copied { directory: "/var/lib/ringflake".into() },
        Store(StoreError::NotDurable { store: "a".into(), reason: "it is in memory".into() }),
        Store(StoreError::Denied { source: broken() }),
    })
}

fn generator_errors() -> String {
    let show = |name: &str, error: &BuildError| {
        entry(
            name,
            error,
            &[("note", error.note()), ("help", error.help())],
        )
    };
    let mut text = messages!(show, BuildError {
        NoCipher,
        PlainAndSecret,
        NoLease,
        LeaseNotPast { end_unix_ms: NOW + 1, now_unix_ms: NOW },
        NoMoments,
        Moments {
            from: UNIX_EPOCH,
            to: UNIX_EPOCH + MINUTE,
            epoch_unix_ms: NOW,
            end_unix_ms: NOW + 86_400_000,
        },
        EncryptionWidens { bits: 53, width: IdWidth::Full },
        LayoutTooWide { bits: 64, width: IdWidth::Positive },
        LayoutTooWide { bits: 64, width: IdWidth::JsSafe },
        IdWidthUnavailable(IdWidthUnavailable { width: IdWidth::JsSafe }),
        Layout(LayoutError::ZeroWidth { field: LayoutField::Node }),
        Lease(LeaseError::Nodes { start: 5, end: 5, layout_nodes: 32 }),
        TwoLeases,
        LeaseTaken {
            nodes: 0..32,
            ticks: 5..9,
            other_nodes: 16..48,
            other_ticks: 0..100,
        },
        LeaseUsed { nodes: 0..32, ticks: 5..9, used_nodes: 16..48, used_ticks: 0..7 },
        LeaseOfParent { nodes: 0..32, ticks: 5..9, parents_nodes: 16..48 },
        LeaseGivenUp { nodes: 0..32, ticks: 5..9 },
        NoStore { option: "blocks" },
        NoNamespace,
        Namespace(NamespaceError::NameLength { bytes: 0 }),
        Plan(PlanError::Blocks { value: 300, max: 256 }),
        FirstLeaseDuration { value: Duration::ZERO, max: MINUTE },
        Store(StoreError::Unavailable { source: broken() }),
        NoLeaseYet {
            waited: Duration::from_millis(5_000),
            error: StoreError::Unavailable { source: broken() },
        },
        Local(LocalError::NoHome),
        TwoWidths { builder: IdWidth::Full, local: IdWidth::Positive },
        LocalHas { option: "namespace" },
        LeaseLayout { lease: Layout::RANDFLAKE, generator: Layout::BAIDU },
        Policy(PolicyError::Percent { percent: 101 }),
        Ring(RingError::Capacity { capacity: 1000 }),
        Producers { count: 0 },
        Stripes { count: 3, most: 64 },
        WaitWithoutThreshold,
        NeverFilled,
        FullHookWithoutSchedule,
        BorrowLimit { limit: 2 * 24 * 60 * MINUTE, max: 24 * 60 * MINUTE },
        System(full_disk()),
    });
    text += &messages!(plain, BackfillError {
        OutsideLease { moment: UNIX_EPOCH, start_unix_ms: NOW, end_unix_ms: NOW + 60_000 },
        UsedUp { tick_unix_ms: NOW, tick_ms: 1_000, ids: 4096, nodes: 0..32 },
        Forked,
    });
    text += &messages!(plain, TakeError {
        Empty,
        TimedOut { waited: Duration::from_millis(30) },
        Refused(Refused::Forked),
        NoPage { kind: io::ErrorKind::OutOfMemory },
        NotInitialised,
    });
    let already = AlreadyInitialised { source: () };
    text + &plain("AlreadyInitialised", &already)
}

fn engine_errors() -> String {
    let mut text = messages!(plain, PolicyError {
        Percent { percent: 101 },
        Assist { percent: 101 },
        Slots { slots: 2000, capacity: 1024 },
        MaxAge { max_age: Duration::from_millis(10), tick: Duration::from_secs(1) },
        Period { period: Duration::from_nanos(1) },
    });
    text += &messages!(plain, RingError {
        Capacity { capacity: 1000 },
        Memory(full_disk()),
    });
    text += &plain("PushError", &PushError(Id::from_u64(5)));
    text += &messages!(plain, SizingError {
        Takes { wanted: 5e9, taken: 1e9 },
        TooSlow { wanted: 5e9, made: 1e9 },
        TooLarge,
    });
    text += &plain("LoadError", &"fast".parse::<Rate>().unwrap_err());
    text += &plain("LoadError", &"20M".parse::<Burst>().unwrap_err());
    text + &plain("LoadError", &Load::trace("0,100\nx\n").unwrap_err())
}

fn value_errors() -> String {
    let mut text = messages!(plain, LayoutError {
        ZeroWidth { field: LayoutField::Node },
        TooManyBits { time: 60, node: 60, sequence: 60 },
        NoTick { time: 30, node: 17, sequence: 17 },
        Tick { tick: Duration::from_micros(1_500) },
        EpochTooLate { epoch_unix_ms: u64::MAX },
        EndTooLate { time_bits: 62, tick_ms: 1_000, epoch_unix_ms: NOW },
        OutOfRange { field: LayoutField::Node, value: 131_072, max: 131_071 },
        ExtraBits { raw: 1 << 63, total_bits: 53 },
        NotOfCipher { id: 1 << 63, id_bits: 53 },
        Expired { end_unix_ms: NOW, now_unix_ms: NOW + 1 },
    });
    text += &messages!(plain, ParseLayoutError {
        Unrecognized { text: "mine".into() },
        Incomplete {
            text: "41/10/12".into(),
            missing: "no epoch and no tick",
            widths: [41, 10, 12],
        },
        Incomplete { text: "40/12/12".into(), missing: "no tick", widths: [40, 12, 12] },
        Width { text: "x".into() },
        Epoch { text: "1969-01-01T00:00:00Z".into(), reason: "it lies before 1970".into() },
        Tick { text: "1h".into() },
        Invalid(LayoutError::ZeroWidth { field: LayoutField::Node }),
    });
    text += &messages!(plain, ParseIdError {
        Empty,
        InvalidCharacter { position: 8, character: 'B' },
        InvalidCharacter { position: 8, character: 'z' },
        LeadingZero,
        TooLong { bytes: 14 },
        TooShort { bytes: 12 },
        Overflow,
    });
    text += &messages!(plain, ParseTypedIdError {
        NoPrefix { expected: "user" },
        OtherPrefix { found: "order".into(), expected: "user" },
        Id { prefix: "user", error: ParseIdError::Empty },
    });
    text += &messages!(plain, SecretError {
        HexLength { found: 31 },
        HexDigit { position: 4 },
        FileUnreadable { path: "orders.key".into(), source: full_disk() },
        FileNotTrusted {
            path: "orders.key".into(),
            reason: "it can be written by everybody (mode 0666): run 'chmod o-w orders.key'".into(),
        },
        FileLength { path: "orders.key".into(), found: 31 },
        FileLength { path: "orders.key".into(), found: 65 },
        FileDigit { path: "orders.key".into(), position: 4 },
        Random { source: full_disk() },
    });
    text += &messages!(plain, FacadeError {
        EmptyLabel,
        LabelTooLong { bytes: 65 },
    });
    let (backend, width) = (Backend::Portable, IdWidth::JsSafe);
    let unavailable = BackendUnavailable { backend }.to_string();
    let (unavailable, _) = unavailable.split_once(" one of ").unwrap();
    text += &plain("BackendUnavailable", &unavailable);
    text + &plain("IdWidthUnavailable", &IdWidthUnavailable { width })
}

#[test]
fn every_error_reads_as_in_its_snapshot() {
    let text = store_errors()
        + &local_errors()
        + &generator_errors()
        + &lease_errors()
        + &engine_errors()
        + &value_errors();
    // Each program adds its own commands and options.
    let is_command = |line: &&str| line.contains("'ringflake ") || line.contains("--");
    assert_eq!(text.lines().find(is_command), None);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/library.txt");
    assert_snapshot(path, &text);
}
