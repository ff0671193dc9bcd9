//! How the server stands at one moment, for people: the page in a browser, and the terminal.
//!
//! Figures for graphs and alarms are the metrics. This is one document with all of it: each
//! namespace's state and counters, its leases and their ends, and alerts in words. Readers
//! fetch it every second, and compute rates from two answers.

mod alerts;
mod leases;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringflake::Stats;
use serde::Serialize;

use self::alerts::Alert;
use self::leases::Hold;
use crate::counters::{Counters, open, total};
use crate::namespaces::Namespace;
use crate::readiness::Obstacle;
use crate::wording::Causes;

#[derive(Debug, Serialize)]
pub(crate) struct Status {
    version: &'static str,
    unix_ms: u64,
    uptime_ms: u64,
    draining: bool,
    /// Why clients can't begin namespaces though they may.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<String>,
    protocols: Vec<OfProtocol>,
    namespaces: Vec<OfNamespace>,
}

#[derive(Debug, Serialize)]
pub(crate) struct OfProtocol {
    name: &'static str,
    open: u64,
    accepted: u64,
    turned_away: u64,
    requests: u64,
    errors: u64,
    ids: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct OfNamespace {
    name: String,
    /// As text that a builder reads.
    layout: String,
    /// When the last tick of the layout is over, in Unix milliseconds.
    layout_end_unix_ms: u64,
    ready: bool,
    /// For how long, though no store answers, in milliseconds.
    can_go_on_ms: u64,
    /// The rate that its leases sustain, in IDs a second.
    ceiling: f64,
    stats: Stats,
    /// None where the lease was given, and not by a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
    holds: Vec<Hold>,
    alerts: Vec<Alert>,
}

/// How it goes with the store.
#[derive(Debug, Serialize)]
struct Health {
    /// Since when requests fail, in Unix milliseconds; none while they succeed.
    failing_since_unix_ms: Option<u64>,
    /// With its causes.
    last_error: Option<String>,
}

impl Status {
    /// As it is now. Reads counters, the clock, and leases under a lock that is held for
    /// microseconds.
    pub(crate) fn now(
        namespaces: &[Arc<Namespace>],
        protocols: Vec<OfProtocol>,
        uptime: Duration,
        draining: bool,
        data_dir: Option<Obstacle>,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = now.map_or(0, |now| now.as_millis() as u64);
        let of = |namespace: &Arc<Namespace>| OfNamespace::at(namespace, unix_ms);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            unix_ms,
            uptime_ms: uptime.as_millis() as u64,
            draining,
            data_dir: data_dir.map(|obstacle| obstacle.to_string()),
            protocols,
            namespaces: namespaces.iter().map(of).collect(),
        }
    }
}

impl OfNamespace {
    fn at(namespace: &Namespace, unix_ms: u64) -> Self {
        let generator = &namespace.generator;
        let layout = generator.layout();
        let leases = generator.lease_status();
        let holds = match &leases {
            Some(status) => Hold::of_grants(status, layout),
            None => Hold::of_leases(&generator.leases(), layout),
        };
        let stats = generator.stats();
        let readiness = namespace.readiness();
        let alerts = alerts::of(&alerts::Facts {
            unix_ms,
            readiness,
            stats: &stats,
            leases: leases.as_ref(),
            layout_end_unix_ms: layout.end_unix_ms(),
        });
        let nodes: f64 = generator.leases().iter().map(leases::nodes).sum();
        let of_a_node = 2_f64.powi(layout.sequence_bits() as i32);
        Self {
            name: namespace.name.clone(),
            layout: layout.to_string(),
            layout_end_unix_ms: layout.end_unix_ms(),
            ready: readiness.is_ok(),
            can_go_on_ms: readiness.map_or(0, |lasts| lasts.as_millis() as u64),
            ceiling: nodes * of_a_node * 1000.0 / layout.tick_ms() as f64,
            stats,
            health: leases.map(|status| Health {
                failing_since_unix_ms: status.health.failing_since_unix_ms,
                last_error: status.health.last_error.map(|it| Causes(&*it).to_string()),
            }),
            holds,
            alerts,
        }
    }
}

impl OfProtocol {
    pub(crate) fn of(name: &'static str, threads: &[Arc<Counters>]) -> Self {
        Self {
            name,
            open: open(threads),
            accepted: total(threads, |of| &of.accepted),
            turned_away: total(threads, |of| &of.turned_away),
            requests: total(threads, |of| &of.requests),
            errors: total(threads, |of| &of.errors),
            ids: total(threads, |of| &of.ids),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::counters::add;

    #[test]
    fn a_status_has_what_the_page_shows() {
        let directory = tempfile::tempdir().unwrap();
        let name = "orders".to_owned();
        let local = ringflake::Local::new(&name)
            .in_directory(directory.path())
            .accept_best_effort(true);
        let generator = ringflake::CachedGenerator::builder(ringflake::Layout::RANDFLAKE)
            .local(local)
            .build()
            .unwrap();
        let orders = Arc::new(Namespace { name, generator });
        orders.generator.take().unwrap();
        let counters = Arc::new(Counters::default());
        add(&counters.accepted, 3);
        add(&counters.closed, 1);
        let protocols = vec![OfProtocol::of("http", &[Arc::clone(&counters), counters])];
        let uptime = Duration::from_millis(1_500);
        let status = Status::now(&[orders], protocols, uptime, false, None);
        let status: Value = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();

        assert_eq!(status["uptime_ms"], 1_500);
        let protocol = &status["protocols"][0];
        assert_eq!(protocol["open"], 4);
        assert_eq!(protocol["accepted"], 6);
        let orders = &status["namespaces"][0];
        assert_eq!(orders["name"], "orders");
        assert_eq!(orders["ready"], true);
        assert_eq!(orders["stats"]["issued"], 1);
        assert_eq!(orders["alerts"], serde_json::json!([]));
        let hold = &orders["holds"][0];
        assert_eq!(hold["state"], "held");
        let now = status["unix_ms"].as_u64().unwrap();
        assert!(hold["from_unix_ms"].as_u64().unwrap() <= now, "{hold}");
        assert!(hold["until_unix_ms"].as_u64().unwrap() > now, "{hold}");
        // Blocks of 32 nodes, of 131,072 IDs a second each.
        let holds = orders["holds"].as_array().unwrap().len() as f64;
        assert_eq!(orders["ceiling"], holds * 32.0 * 131_072.0);
    }
}
