//! A recorder that keeps what it gets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};

pub(crate) type Described = (&'static str, Option<Unit>);

/// Its name and labels, the latter in order: `name{a="b",c="d"}`.
pub(crate) type Series = String;

/// Clones share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    described: BTreeMap<String, Vec<Described>>,
    series: BTreeMap<Series, Arc<Values>>,
}

#[derive(Debug, Default)]
struct Values(Mutex<Vec<f64>>);

impl Values {
    fn push(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl CounterFn for Values {
    fn increment(&self, more: u64) {
        let mut values = self.0.lock().unwrap();
        let before = values.last().copied().unwrap_or(0.0);
        values.push(before + more as f64);
    }

    fn absolute(&self, _: u64) {
        panic!("a counter is added to");
    }
}

impl GaugeFn for Values {
    fn increment(&self, _: f64) {
        panic!("a gauge is set");
    }

    fn decrement(&self, _: f64) {
        panic!("a gauge is set");
    }

    fn set(&self, value: f64) {
        self.push(value);
    }
}

impl Registry {
    /// All values of a series, in the order in which they came.
    pub(crate) fn values(&self, series: &str) -> Vec<f64> {
        let kept = self.0.lock().unwrap();
        let values = kept.series.get(series);
        values.map_or_else(Vec::new, |values| values.0.lock().unwrap().clone())
    }

    #[track_caller]
    pub(crate) fn value(&self, series: &str) -> f64 {
        let values = self.values(series);
        *values.last().unwrap_or_else(|| panic!("no {series}"))
    }

    pub(crate) fn series(&self) -> Vec<Series> {
        self.0.lock().unwrap().series.keys().cloned().collect()
    }

    pub(crate) fn described(&self) -> BTreeMap<String, Vec<Described>> {
        self.0.lock().unwrap().described.clone()
    }

    fn describe(&self, name: &KeyName, described: Described, text: &SharedString) {
        assert!(text.ends_with('.'), "{text}");
        let mut kept = self.0.lock().unwrap();
        let name = name.as_str().to_owned();
        kept.described.entry(name).or_default().push(described);
    }

    fn register(&self, key: &Key, metadata: &Metadata<'_>) -> Arc<Values> {
        assert_eq!(metadata.target(), "ringflake");
        let mut labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={:?}", label.key(), label.value()))
            .collect();
        labels.sort();
        let mut series = key.name().to_owned();
        if !labels.is_empty() {
            series += &format!("{{{}}}", labels.join(","));
        }
        let mut kept = self.0.lock().unwrap();
        Arc::clone(kept.series.entry(series).or_default())
    }
}

impl Recorder for Registry {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, ("counter", unit), &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, ("gauge", unit), &text);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("there is none");
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.register(key, metadata))
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.register(key, metadata))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("there is none");
    }
}
