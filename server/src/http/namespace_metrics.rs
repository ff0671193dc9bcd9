//! The metrics of all namespaces, in a recorder of the server's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use ringflake::metrics::Publisher;

use crate::lock::lock;
use crate::namespaces::Namespace;

/// Buckets of renewal durations in seconds: from a local file to a busy store far away.
const RENEW_SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// The metrics of all namespaces, in a recorder that nothing else writes to.
pub(super) struct NamespaceMetrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// By namespace. Locked while all are published, so that each renewal is recorded once.
    publishers: Mutex<HashMap<String, Publisher>>,
}

impl NamespaceMetrics {
    pub(super) fn new() -> Result<Self, BuildError> {
        let durations = Matcher::Suffix("_duration_seconds".to_owned());
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets_for_metric(durations, &RENEW_SECONDS)?;
        let recorder = builder.build_recorder();
        // Namespaces have theirs, but a server may have no namespace for days, and the alert
        // RingflakeAbsent fires while nobody exports this.
        metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("ringflake_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
        });
        Ok(Self {
            handle: recorder.handle(),
            recorder,
            publishers: Mutex::default(),
        })
    }

    /// The metrics of these namespaces in Prometheus' text format.
    pub(super) fn render(&self, namespaces: &[Arc<Namespace>]) -> String {
        let mut publishers = lock(&self.publishers);
        for namespace in namespaces {
            let name = namespace.name.as_str();
            if !publishers.contains_key(name) {
                let publisher = Publisher::new(&namespace.generator);
                let publisher = publisher.with_labels([("namespace", name)]);
                publishers.insert(name.to_owned(), publisher);
            }
        }
        metrics::with_local_recorder(&self.recorder, || {
            for publisher in publishers.values() {
                publisher.publish();
            }
        });
        self.handle.render()
    }
}
