//! Sockets that a service manager has bound.

use anyhow::{Context, Result};
use listenfd::ListenFd;
use ringflake_server::{Inherited, Protocol};

use crate::usage::Misuse;

/// The sockets that were handed over, each by its name: `FileDescriptorName=resp` or `http`.
pub(super) fn inherited() -> Result<Vec<Inherited>> {
    let mut sockets = ListenFd::from_env();
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut inherited = Vec::new();
    for index in 0..sockets.len() {
        let name = names.next().unwrap_or_default();
        let protocol = protocol(name)?;
        let unusable = || format!("socket {name}, which was handed over, can't be used");
        // One that is no TCP socket is left in its place.
        match sockets.take_tcp_listener(index) {
            Ok(Some(listener)) => inherited.push(Inherited::tcp(protocol, listener)),
            _ => {
                let listener = sockets.take_unix_listener(index).with_context(unusable)?;
                inherited.extend(listener.map(|listener| Inherited::unix(protocol, listener)));
            }
        }
    }
    Ok(inherited)
}

fn protocol(name: &str) -> Result<Protocol> {
    let mut all = Protocol::ALL.into_iter();
    let found = all.find(|protocol| protocol.name() == name);
    found.ok_or_else(|| {
        let text = format!(
            "unknown name {name:?} of a socket from the service manager\n\
             help: set FileDescriptorName=resp or FileDescriptorName=http in its unit"
        );
        Misuse(text).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_known_by_its_name() {
        assert_eq!(protocol("resp").unwrap(), Protocol::Resp);
        assert_eq!(protocol("http").unwrap(), Protocol::Http);
        for wrong in ["", "ringflake.socket", "HTTP"] {
            let error = protocol(wrong).unwrap_err().to_string();
            assert!(error.contains("FileDescriptorName=http"), "{error}");
        }
    }
}
