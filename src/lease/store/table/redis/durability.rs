//! Whether a Redis keeps what it has confirmed, by its settings.
//!
//! All of these must hold for a reply to mean that the write is on disk:
//! * `appendonly yes` and `appendfsync always`: Redis then writes and syncs the
//!   file before it replies, and ends when it can't;
//! * `no-appendfsync-on-rewrite no`, or else nothing is synced while the file is
//!   rewritten;
//! * nothing is evicted: `maxmemory 0` or `maxmemory-policy noeviction`;
//! * replicas, which may be promoted, have confirmed it: `wait` is not 0 while
//!   there are any.

/// The settings of a server, as far as it shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    /// Out of the reply to `INFO`.
    pub(super) fn from_info(info: &str) -> Self {
        let pairs = info.lines().filter_map(|line| line.trim().split_once(':'));
        Self(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    /// Adds what `CONFIG GET` answered, which a server that is managed by somebody else may
    /// refuse.
    pub(super) fn add_config(&mut self, values: Vec<(String, String)>) {
        self.0.extend(values);
    }

    pub(super) fn version(&self) -> &str {
        self.field("redis_version")
    }

    /// Whether the server is a node of a Redis Cluster.
    pub(super) fn is_cluster(&self) -> bool {
        self.field("cluster_enabled") == "1"
    }

    pub(super) fn replicas(&self) -> u64 {
        self.field("connected_slaves").parse().unwrap_or(0)
    }

    pub(super) fn is_replica(&self) -> bool {
        self.field("role") == "slave"
    }

    fn field(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Every setting by which the server can lose what it has confirmed, and what
    /// it should be. `wait` is how many replicas must confirm a write, or none for all.
    pub(super) fn weaknesses(&self, wait: Option<u64>) -> Vec<String> {
        let major = self.version().split('.').next().unwrap_or_default();
        let mut found = Vec::new();
        let mut expect = |good: bool, what: &str, value: &str, should: &str| {
            if !good {
                found.push(format!("{what} is {value} and should be {should}"));
            }
        };

        expect(
            major.parse().is_ok_and(|major: u32| major >= 7),
            "the version",
            self.version(),
            "7 or later",
        );
        expect(self.field("aof_enabled") == "1", "appendonly", "no", "yes");
        for (name, should) in [
            ("appendfsync", "always"),
            ("no-appendfsync-on-rewrite", "no"),
        ] {
            let value = match self.field(name) {
                "" => "hidden, since CONFIG GET is not permitted",
                value => value,
            };
            expect(value == should, name, value, should);
        }
        let status = self.field("aof_last_write_status");
        expect(status == "ok", "aof_last_write_status", status, "ok");
        let policy = self.field("maxmemory_policy");
        expect(
            policy == "noeviction" || self.field("maxmemory") == "0",
            "maxmemory-policy",
            policy,
            "noeviction",
        );
        let replicas = self.replicas();
        if wait == Some(0) && replicas > 0 {
            found.push(format!(
                "wait is 0 while {replicas} replicas are connected and should be \
                 the number of those that can be promoted"
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that keeps everything, but for one setting.
    fn with(name: &str, value: &str) -> Settings {
        let lines = [
            ("redis_version", "7.0.15"),
            ("aof_enabled", "1"),
            ("aof_last_write_status", "ok"),
            ("maxmemory", "0"),
            ("maxmemory_policy", "allkeys-lru"),
            ("connected_slaves", "0"),
            ("appendfsync", "always"),
            ("no-appendfsync-on-rewrite", "no"),
        ]
        .map(|(key, good)| format!("{key}:{}\r\n", if key == name { value } else { good }));
        Settings::from_info(&format!("# Server\r\n{}", lines.concat()))
    }

    /// Those that a real server has are in `tests/stores`.
    #[test]
    fn each_weakness_is_named_with_what_it_should_be() {
        for (name, value, wait, told) in [
            ("", "", Some(0), ""),
            ("redis_version", "8.2.0", None, ""),
            ("connected_slaves", "2", None, ""),
            ("connected_slaves", "2", Some(1), ""),
            (
                "connected_slaves",
                "1",
                Some(0),
                "wait is 0 while 1 replicas",
            ),
            (
                "redis_version",
                "6.2.14",
                None,
                "6.2.14 and should be 7 or later",
            ),
            ("redis_version", "", None, "7 or later"),
            ("aof_last_write_status", "err", None, "err and should be ok"),
            ("appendfsync", "", None, "appendfsync is hidden"),
        ] {
            let found = with(name, value).weaknesses(wait);
            match told {
                "" => assert_eq!(found, [""; 0], "{name} {value}"),
                told => assert!(found[0].contains(told) && found.len() == 1, "{found:?}"),
            }
        }
    }
}
