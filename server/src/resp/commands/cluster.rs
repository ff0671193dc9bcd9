//! The discovery commands of cluster and Sentinel clients: one node has all slots and is the
//! only primary.
//!
//! Answered where the settings have an address to announce. Otherwise such a client gets the
//! error that a server without cluster support gives.

use super::call::{Call, Flow, Quoted};
use crate::resp::context::Announced;
use crate::resp::reply::Replies;

const SLOTS: u16 = 16_384;

/// The name of the primary that Sentinel clients find in a list. They may ask for any name.
const PRIMARY: &str = "mymaster";

pub(super) fn cluster(call: Call<'_, '_>) -> Flow {
    let Some(node) = call.context.shared.announced.clone() else {
        return call.refuse("This instance has cluster support disabled");
    };
    let (word, arguments) = (call.arguments[0], &call.arguments[1..]);
    let replies = call.replies;
    let port = i64::from(node.port);
    match (word.to_ascii_lowercase().as_slice(), arguments) {
        (b"slots", []) => {
            replies.array(1);
            replies.array(3);
            replies.integer(0);
            replies.integer(i64::from(SLOTS - 1));
            replies.array(3);
            replies.bulk(node.host.as_bytes());
            replies.integer(port);
            replies.bulk(node.id.as_bytes());
        }
        (b"shards", []) => {
            replies.array(1);
            replies.map(2);
            replies.bulk(b"slots");
            replies.array(2);
            replies.integer(0);
            replies.integer(i64::from(SLOTS - 1));
            replies.bulk(b"nodes");
            replies.array(1);
            replies.map(7);
            for (key, value) in [
                ("id", &*node.id),
                ("ip", &node.host),
                ("endpoint", &node.host),
                ("role", "master"),
                ("health", "online"),
            ] {
                replies.pair(key, value);
            }
            replies.figure("port", port);
            replies.figure("replication-offset", 0);
        }
        (b"nodes", []) => {
            let Announced { host, id, .. } = node;
            let most = SLOTS - 1;
            let line =
                format!("{id} {host}:{port}@{port} myself,master - 0 0 1 connected 0-{most}\n");
            replies.bulk(line.as_bytes());
        }
        (b"myid", []) => replies.bulk(node.id.as_bytes()),
        (b"info", []) => {
            let text = format!(
                "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\n\
                 cluster_slots_ok:{SLOTS}\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n"
            );
            replies.bulk(text.as_bytes());
        }
        (b"keyslot", [key]) => replies.integer(i64::from(slot(key))),
        (b"countkeysinslot", [_]) => replies.integer(0),
        _ => replies.error(
            "ERR",
            format_args!(
                "unknown subcommand or arguments of {}: CLUSTER has SLOTS, SHARDS, NODES, MYID, \
                 INFO, KEYSLOT and COUNTKEYSINSLOT here",
                Quoted(word)
            ),
        ),
    }
    Flow::Done
}

pub(super) fn sentinel(call: Call<'_, '_>) -> Flow {
    let Some(node) = call.context.shared.announced.clone() else {
        return call.refuse(
            "this server is no sentinel: connect to it directly, or give resp.announce in its \
             configuration",
        );
    };
    let (word, arguments) = (call.arguments[0], &call.arguments[1..]);
    let replies = call.replies;
    let port = node.port.to_string();
    let describe = |replies: &mut Replies<'_>, name: &[u8]| {
        let fields: [(&str, &[u8]); 7] = [
            ("name", name),
            ("ip", node.host.as_bytes()),
            ("port", port.as_bytes()),
            ("flags", b"master"),
            ("num-slaves", b"0"),
            ("num-other-sentinels", b"0"),
            ("quorum", b"1"),
        ];
        replies.map(fields.len());
        for (key, value) in fields {
            replies.pair(key, value);
        }
    };
    match (word.to_ascii_lowercase().as_slice(), arguments) {
        (b"master", [name]) => describe(replies, name),
        (b"masters", []) => {
            replies.array(1);
            describe(replies, PRIMARY.as_bytes());
        }
        (b"get-master-addr-by-name", [_]) => {
            replies.array(2);
            replies.bulk(node.host.as_bytes());
            replies.bulk(port.as_bytes());
        }
        (b"replicas" | b"slaves" | b"sentinels", [_]) => replies.array(0),
        _ => replies.error(
            "ERR",
            format_args!(
                "unknown subcommand or arguments of {}: SENTINEL has MASTER, MASTERS, \
                 GET-MASTER-ADDR-BY-NAME, REPLICAS and SENTINELS here",
                Quoted(word)
            ),
        ),
    }
    Flow::Done
}

/// `ROLE`: a primary without replicas.
pub(super) fn role(call: Call<'_, '_>) -> Flow {
    call.replies.array(3);
    call.replies.bulk(b"master");
    call.replies.integer(0);
    call.replies.array(0);
    Flow::Done
}

/// The slot of a key: CRC-16/XMODEM of the key, or of what stands between the first braces,
/// modulo the number of slots, as the specification of Redis Cluster defines it.
fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let length = rest.iter().position(|&byte| byte == b'}')?;
        (length > 0).then(|| &rest[..length])
    });
    let crc = tag.unwrap_or(key).iter().fold(0_u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // Its check value, and its example of a hash tag.
        assert_eq!(slot(b"123456789"), 0x31C3 % SLOTS);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{}{bar}"), slot(b"foo{}{bar}"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
        assert_eq!(slot(b"foo{bar"), slot(b"foo{bar"));
    }
}
