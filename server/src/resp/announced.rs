//! The address that cluster and Sentinel clients are given.

use hmac_sha256::Hash;

/// The address that the settings announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) host: String,
    pub(super) port: u16,
    /// Of the node: 40 hexadecimal digits.
    pub(super) id: String,
}

impl Announced {
    /// Of `HOST:PORT`, which the configuration has checked.
    pub(super) fn new(address: &str) -> Option<Self> {
        let (host, port) = address.rsplit_once(':')?;
        let digest = Hash::hash(address.as_bytes());
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().ok()?,
            id: digest
                .iter()
                .take(20)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let node = Announced::new("[2001:db8::1]:6379").unwrap();
        assert_eq!((&*node.host, node.port), ("2001:db8::1", 6379));
        assert_eq!(node.id.len(), 40);
        assert_eq!(Announced::new("ids.example.com"), None);
        assert_eq!(Announced::new("ids.example.com:port"), None);
    }
}
