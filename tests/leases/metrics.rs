//! What a publisher hands to a recorder: the figures of the generator, each under the name
//! that the guide gives it.

mod registry;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics::{Unit, with_local_recorder};
use ringflake::metrics::Publisher;
use ringflake::{CachedGenerator, Clock, OnEmpty};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::{Fault, Op};

use self::registry::Registry;
use crate::rig::{LEASE_DURATION, Rig, SECOND, START, is_without_lease};

const GUIDE: &str = include_str!("../../src/guide/monitoring.md");

struct Published {
    registry: Registry,
    publisher: Publisher,
}

impl Published {
    fn new(ids: &CachedGenerator) -> Self {
        Self {
            registry: Registry::default(),
            publisher: Publisher::new(ids),
        }
    }

    fn publish(&self) -> &Registry {
        assert!(with_local_recorder(&self.registry, || self
            .publisher
            .publish()));
        &self.registry
    }
}

/// A generator that has lost a lease, and issued IDs.
fn eventful(rig: &Rig) -> CachedGenerator {
    let ids = rig.cached().blocks(2).widen_to(2).build().unwrap();
    rig.store.fail_next(Op::Renew, Fault::Cut);
    rig.make_renewals_due(|| vec![ids.lease_status()]);
    eventually("the reply is lost", || rig.store.has_failed());
    ids.take_vec(100).unwrap();
    ids
}

/// The rows of the guide's table: by name the type, the unit, and the values of each label.
type Labels = BTreeMap<String, BTreeSet<String>>;
fn rows() -> BTreeMap<String, (String, String, Labels)> {
    let code = |cell: &str| -> Vec<String> {
        let parts = cell.split('`').skip(1).step_by(2);
        parts.map(str::to_owned).collect()
    };
    let mut rows: BTreeMap<String, (String, String, Labels)> = BTreeMap::new();
    let mut last: BTreeSet<String> = BTreeSet::new();
    let section = GUIDE
        .split("\n# ")
        .find(|section| section.starts_with("The metrics\n"));
    for row in section
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `"))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let mut labels = Labels::new();
        if let Some((label, values)) = cells[4].split_once(':') {
            let mut values_there: BTreeSet<String> = code(values).into_iter().collect();
            if values.trim_start().starts_with("these") {
                values_there.extend(last);
            }
            last = values_there.clone();
            labels.insert(code(label).remove(0), values_there);
        } else {
            let names = code(cells[4]).into_iter();
            labels.extend(names.map(|name| (name, BTreeSet::new())));
        }
        let name = code(cells[1]).remove(0);
        let row = (cells[2].to_owned(), cells[3].to_owned(), labels);
        assert!(rows.insert(name, row).is_none(), "twice");
    }
    rows
}

/// The same of what was exported, the values of a label only where there are several.
fn exported(registry: &Registry) -> BTreeMap<String, Labels> {
    let mut all: BTreeMap<String, Labels> = BTreeMap::new();
    for series in registry.series() {
        let (name, labels) = series.split_once('{').unwrap_or((&series, "}"));
        let entry = all.entry(name.to_owned()).or_default();
        for label in labels
            .trim_end_matches('}')
            .split(',')
            .filter(|l| !l.is_empty())
        {
            let (label, value) = label.split_once('=').unwrap();
            let value = value.trim_matches('"').to_owned();
            entry.entry(label.to_owned()).or_default().insert(value);
        }
    }
    all
}

#[test]
fn the_guide_names_exactly_the_metrics_that_are_exported() {
    let rig = Rig::new();
    let ids = eventful(&rig);
    let published = Published::new(&ids);
    published.publish();
    published.publish();
    let (rows, exported) = (rows(), exported(&published.registry));
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(rows.keys().collect()),
        names(exported.keys().collect())
    );
    let described = published.registry.described();
    assert_eq!(
        names(rows.keys().collect()),
        names(described.keys().collect())
    );
    for (name, (kind, unit, labels)) in rows {
        let is_time = described[&name][0].1 == Some(Unit::Seconds);
        assert_eq!(is_time, unit == "seconds", "{name}");
        assert_eq!(is_time, name.ends_with("_seconds"), "{name}");
        // Once, however often it is published.
        assert_eq!(described[&name].len(), 1, "{name}");
        assert_eq!(described[&name][0].0, kind, "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        let found = &exported[&name];
        assert!(labels.keys().eq(found.keys()), "{name}: {found:?}");
        for (label, values) in labels {
            if !values.is_empty() {
                assert_eq!(found[&label], values, "{name}");
            }
        }
    }
}

#[test]
fn each_metric_has_the_value_of_the_figures() {
    let rig = Rig::new();
    let ids = eventful(&rig);
    let mut issued = 100;
    // How far it has borrowed, and whether it ran dry, is up to when its producer came.
    loop {
        let stats = ids.stats();
        if stats.borrowed >= SECOND && stats.empties > 0 && stats.in_place > 0 {
            break;
        }
        ids.take_vec(100).unwrap();
        issued += 100;
    }
    eventually("it has leases of all kinds, and IDs", || {
        let status = ids.lease_status().unwrap();
        status.grants.len() == 3 && ids.stats().level > 0
    });
    let published = Published::new(&ids);
    let is =
        |series: &str, value: f64| assert_eq!(published.registry.value(series), value, "{series}");
    // Between two looks at the figures that are the same, as they are once nothing goes on.
    let (stats, status) = loop {
        let before = (ids.stats(), ids.lease_status().unwrap());
        published.publish();
        let after = (ids.stats(), ids.lease_status().unwrap());
        if before.0 == after.0 && format!("{before:?}") == format!("{after:?}") {
            break after;
        }
    };
    assert!(
        stats.issued == issued && stats.fills.padding == 1,
        "{stats:?}"
    );
    is("ringflake_ids_issued_total", issued as f64);
    for (cause, count) in [
        ("padding", stats.fills.padding),
        ("threshold", stats.fills.threshold),
        ("scheduled", stats.fills.scheduled),
        ("assist", stats.fills.assist),
    ] {
        is(
            &format!("ringflake_refills_total{{cause={cause:?}}}"),
            count as f64,
        );
    }
    is("ringflake_empties_total", stats.empties as f64);
    is("ringflake_in_place_total", stats.in_place as f64);
    is("ringflake_retired_total", stats.retired as f64);
    is("ringflake_producer_panics_total", 0.0);
    is("ringflake_level", stats.level as f64);
    is("ringflake_capacity", 64.0);
    is("ringflake_fill_ratio", stats.level as f64 / 64.0);
    is("ringflake_borrowed_seconds", stats.borrowed.as_secs_f64());
    is("ringflake_borrow_limit_seconds", 60.0);
    let left_ms = stats.lease_end_unix_ms - rig.clock.unix_ms();
    is("ringflake_lease_remaining_seconds", left_ms as f64 / 1e3);
    let layout_left = rig.layout.remaining_lifetime(rig.clock.unix_ms());
    is(
        "ringflake_layout_remaining_seconds",
        layout_left.as_secs_f64(),
    );
    let info = format!(
        "ringflake_build_info{{backend=\"{}\",layout=\"{}\",version=\"{}\"}}",
        ringflake::Cipher::sparx64(&ringflake_kit::small::secret()).backend(),
        rig.layout,
        env!("CARGO_PKG_VERSION"),
    );
    is(&info, 1.0);

    is("ringflake_lease_blocks{state=\"held\"}", 2.0);
    is("ringflake_lease_blocks{state=\"draining\"}", 1.0);
    is("ringflake_lease_blocks{state=\"lapsing\"}", 0.0);
    is("ringflake_lease_blocks_target", f64::from(status.target));
    is("ringflake_lease_duration_seconds", 600.0);
    is("ringflake_lease_store_failing_seconds", 0.0);
    let renewed = status.counts.renewals.renewed;
    is(
        "ringflake_lease_renewals_total{outcome=\"renewed\"}",
        renewed as f64,
    );
    is("ringflake_lease_renewals_total{outcome=\"ambiguous\"}", 1.0);
    is("ringflake_history_lost_total", 0.0);
}

#[test]
fn what_is_refused_is_exported_by_its_reason() {
    let rig = Rig::new();
    let ids = rig.in_place().build().unwrap();
    let published = Published::new(&ids);
    rig.store.fail(Fault::Down);
    ids.invalidate();
    assert!(is_without_lease(&ids.take()));
    assert!(is_without_lease(&ids.take()));
    let failed = |published: &Published, reason| {
        let series = format!("ringflake_failed_takes_total{{reason={reason:?}}}");
        published.publish().value(&series)
    };
    assert_eq!(failed(&published, "no_lease"), 2.0);
    assert_eq!(failed(&published, "borrow_limit"), 0.0);
    let remaining = "ringflake_lease_remaining_seconds";
    assert_eq!(published.registry.value(remaining), 0.0);
    rig.store.heal();
    assert!(ids.wait_ready(Duration::from_secs(60)));

    // Its minute of borrowing, and no more.
    while ids.take().is_ok() {}
    assert_eq!(failed(&published, "no_lease"), 2.0);
    assert_eq!(failed(&published, "borrow_limit"), 1.0);

    let empty = rig.cached().capacity(1).threshold_fill(None);
    let empty = empty.on_empty(OnEmpty::Error).build().unwrap();
    empty.take().unwrap();
    assert!(empty.take().is_err());
    assert_eq!(failed(&Published::new(&empty), "empty"), 1.0);

    let fills = rig.cached().capacity(1 << 12).build().unwrap();
    eventually("a fill is refused", || {
        fills.stats().refused.borrow_limit > 0
    });
    let published = Published::new(&fills);
    let registry = published.publish();
    let refused = registry.value("ringflake_refusals_total{reason=\"borrow_limit\"}");
    assert!(refused >= 1.0 && refused <= fills.stats().refusals as f64);
}

#[test]
fn counts_of_a_generator_that_is_built_anew_are_added() {
    let rig = Rig::new();
    let registry = Registry::default();
    let issued = || registry.values("ringflake_ids_issued_total");
    let failed = || registry.value("ringflake_failed_takes_total{reason=\"no_lease\"}");
    for (ids_taken, failures) in [(9, 3), (5, 2)] {
        let ids = rig.in_place().build().unwrap();
        let publisher = Publisher::new(&ids);
        let publish = || assert!(with_local_recorder(&registry, || publisher.publish()));
        ids.take_vec(ids_taken).unwrap();
        publish();
        rig.store.fail(Fault::Down);
        ids.invalidate();
        for _ in 0..failures {
            assert!(is_without_lease(&ids.take()));
        }
        publish();
        rig.store.heal();
    }
    assert_eq!(issued(), [9.0, 9.0, 14.0, 14.0]);
    assert_eq!(failed(), 5.0);
}

#[test]
fn a_store_that_fails_shows_for_how_long() {
    let rig = Rig::new();
    let ids = rig.cached().build().unwrap();
    let published = Published::new(&ids);
    rig.store.fail(Fault::Down);
    rig.set_tick(START + 300);
    let failing = || ids.lease_status().unwrap().health.failing_since_unix_ms;
    eventually("a renewal fails", || {
        failing() == Some(rig.unix_ms(START + 300))
    });
    rig.set_tick(START + 420);
    let registry = published.publish();
    assert_eq!(
        registry.value("ringflake_lease_store_failing_seconds"),
        120.0
    );
    let left = (LEASE_DURATION - 420) as f64;
    assert_eq!(registry.value("ringflake_lease_remaining_seconds"), left);
    rig.set_tick(START + LEASE_DURATION + 5);
    assert_eq!(
        published
            .publish()
            .value("ringflake_lease_remaining_seconds"),
        0.0
    );
}

#[test]
fn a_counter_never_goes_down() {
    let rig = Rig::new();
    let ids = rig.cached().build().unwrap();
    let published = Published::new(&ids);
    let mut handle = ids.handle().unwrap();
    handle.take().unwrap();
    published.publish();
    let issued = ids.stats().issued;
    assert_eq!(issued, 64);
    drop(handle);
    assert!(ids.stats().issued < issued);
    published.publish();
    ids.take_vec(100).unwrap();
    published.publish();
    let values = published.registry.values("ringflake_ids_issued_total");
    let expected = [64.0, 64.0, ids.stats().issued as f64];
    assert_eq!(values, expected);
    for series in published.registry.series() {
        if series.contains("_total") {
            let values = published.registry.values(&series);
            assert!(values.is_sorted(), "{series}: {values:?}");
        }
    }
}

#[test]
fn labels_go_with_every_metric() {
    let rig = Rig::new();
    let ids = rig.cached().build().unwrap();
    let publisher = Publisher::new(&ids)
        .with_labels([("namespace", "orders")])
        .with_labels(vec![("zone".to_owned(), String::from("b"))]);
    let registry = Registry::default();
    with_local_recorder(&registry, || publisher.publish());
    let series = registry.series();
    assert!(series.len() > 40);
    for series in series {
        assert!(series.contains("namespace=\"orders\""), "{series}");
        assert!(series.contains("zone=\"b\""), "{series}");
    }
}
