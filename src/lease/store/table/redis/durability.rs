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

    const GOOD: [(&str, &str); 8] = [
        ("redis_version", "7.0.15"),
        ("aof_enabled", "1"),
        ("aof_last_write_status", "ok"),
        ("maxmemory", "0"),
        ("maxmemory_policy", "allkeys-lru"),
        ("connected_slaves", "0"),
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
    ];

    /// A good server, but for one setting.
    fn with(name: &str, value: &str) -> Settings {
        let lines = GOOD.map(|(key, good)| {
            let value = if key == name { value } else { good };
            format!("{key}:{value}\r\n")
        });
        Settings::from_info(&format!("# Server\r\n{}", lines.concat()))
    }

    fn told_of(settings: &Settings) -> String {
        settings.weaknesses(None).join("; ")
    }

    #[test]
    fn a_server_that_keeps_everything_has_no_weakness() {
        for (name, value) in [
            ("", ""),
            ("maxmemory_policy", "noeviction"),
            ("redis_version", "8.2.0"),
            ("connected_slaves", "2"),
        ] {
            assert_eq!(
                with(name, value).weaknesses(None),
                [""; 0],
                "{name} {value}"
            );
        }
        let settings = with("connected_slaves", "2");
        assert_eq!(settings.replicas(), 2);
        assert_eq!(settings.weaknesses(Some(1)), [""; 0]);
        assert_eq!(with("", "").weaknesses(Some(0)), [""; 0]);
    }

    #[test]
    fn each_setting_is_named_with_what_it_should_be() {
        for (name, value, told) in [
            ("redis_version", "6.2.14", "6.2.14 and should be 7 or later"),
            ("redis_version", "", "7 or later"),
            ("aof_enabled", "0", "appendonly is no and should be yes"),
            ("aof_last_write_status", "err", "err and should be ok"),
            ("maxmemory", "1000", "allkeys-lru"),
            (
                "appendfsync",
                "everysec",
                "appendfsync is everysec and should be always",
            ),
            (
                "no-appendfsync-on-rewrite",
                "yes",
                "no-appendfsync-on-rewrite is yes and should be no",
            ),
            ("appendfsync", "", "appendfsync is hidden"),
        ] {
            let reason = told_of(&with(name, value));
            assert!(reason.contains(told), "{reason}");
        }
        let [reason] = &with("connected_slaves", "1").weaknesses(Some(0))[..] else {
            panic!("one setting is wrong");
        };
        assert!(reason.contains("wait is 0"), "{reason}");
    }

    #[test]
    fn what_the_server_hides_is_not_assumed() {
        let reason = told_of(&Settings::from_info(""));
        assert!(reason.contains("appendonly"), "{reason}");
        assert!(reason.contains("appendfsync is hidden"), "{reason}");
    }
}
