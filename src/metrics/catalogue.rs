//! Every metric, with its unit and what it means. `src/guide/monitoring.md` has the same for
//! people, and a test that both name the same ones.

use ::metrics::{KeyName, Recorder, SharedString, Unit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    kind: Kind,
    unit: Unit,
    text: &'static str,
}

macro_rules! metrics {
    ($($item:ident $kind:ident $unit:ident $name:literal $text:literal,)*) => {
        $(
            pub(super) const $item: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                unit: Unit::$unit,
                text: $text,
            };
        )*

        const ALL: &[Metric] = &[$($item,)*];
    };
}

metrics! {
    IDS_ISSUED Counter Count "ringflake_ids_issued_total"
        "IDs handed out, those in handles included.",
    REFILLS Counter Count "ringflake_refills_total"
        "Finished fills of the stripes, by cause, and runs that takes made for those after them.",
    EMPTIES Counter Count "ringflake_empties_total"
        "Takes and batches that found too few IDs in all stripes.",
    IN_PLACE Counter Count "ringflake_in_place_total"
        "IDs that takes made themselves because all stripes were empty.",
    REFUSALS Counter Count "ringflake_refusals_total"
        "Fills that stopped early because no ID could be made, by reason.",
    FAILED_TAKES Counter Count "ringflake_failed_takes_total"
        "Takes and batches that gave no ID, by reason.",
    RETIRED Counter Count "ringflake_retired_total"
        "IDs that were dropped unissued: too old, given up, or left over.",
    PRODUCER_PANICS Counter Count "ringflake_producer_panics_total"
        "Fills that ended in a panic of a clock or a hook.",
    LEVEL Gauge Count "ringflake_level"
        "IDs in all stripes.",
    CAPACITY Gauge Count "ringflake_capacity"
        "Slots in all stripes.",
    FILL_RATIO Gauge Count "ringflake_fill_ratio"
        "The level as a part of the capacity, 0 to 1.",
    BORROWED Gauge Seconds "ringflake_borrowed_seconds"
        "How far the last ID that was made lies ahead of the clock.",
    BORROW_LIMIT Gauge Seconds "ringflake_borrow_limit_seconds"
        "How far it may.",
    LEASE_REMAINING Gauge Seconds "ringflake_lease_remaining_seconds"
        "The time until the last lease ends; 0 if none is in force.",
    LAYOUT_REMAINING Gauge Seconds "ringflake_layout_remaining_seconds"
        "The time until the layout has no more ticks.",
    BUILD_INFO Gauge Count "ringflake_build_info"
        "1, with the version, the backend of the cipher and the layout as labels.",
    LEASE_BLOCKS Gauge Count "ringflake_lease_blocks"
        "Blocks of nodes that are leased from the store, by state.",
    LEASE_BLOCKS_TARGET Gauge Count "ringflake_lease_blocks_target"
        "Blocks that are wanted.",
    LEASE_DURATION Gauge Seconds "ringflake_lease_duration_seconds"
        "How far ahead of the clock renewals ask for.",
    LEASE_STORE_FAILING Gauge Seconds "ringflake_lease_store_failing_seconds"
        "For how long requests to the store have failed; 0 while they succeed.",
    LEASE_RENEWALS Counter Count "ringflake_lease_renewals_total"
        "Renewals of leases, by outcome.",
    FENCED Counter Count "ringflake_fenced_total"
        "Grants that the store refused to renew for good, by the comparison that failed.",
    HISTORY_LOST Counter Count "ringflake_history_lost_total"
        "Answers that the store has forgotten what it had confirmed.",
}

pub(super) fn describe(recorder: &dyn Recorder) {
    for metric in ALL {
        let key = KeyName::from_const_str(metric.name);
        let (unit, text) = (Some(metric.unit), SharedString::const_str(metric.text));
        match metric.kind {
            Kind::Counter => recorder.describe_counter(key, unit, text),
            Kind::Gauge => recorder.describe_gauge(key, unit, text),
        }
    }
}
