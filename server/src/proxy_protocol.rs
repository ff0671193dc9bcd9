//! The header by which a TCP proxy says whose connection it forwards: versions 1 and 2 of the
//! [PROXY protocol](https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).

use std::io;
use std::net::SocketAddr;

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) const V1: &[u8] = b"PROXY ";

pub(crate) const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// `PROXY UNKNOWN` and the end of its line; a header of version 2 is longer.
const SHORTEST: usize = 15;

/// The longest line of version 1.
const LONGEST_V1: usize = 107;

/// The fixed part of version 2, which ends with the length of the rest.
const FIXED_V2: usize = 16;

/// Addresses and extensions of version 2: what a TCP segment holds in any case.
const LONGEST_V2: usize = FIXED_V2 + 536;

/// Reads the header off the front of a connection, and nothing behind it. Returns the client's
/// address; `None` for a connection of the proxy itself, such as a health check.
///
/// # Errors
/// The stream's error, or [`io::ErrorKind::InvalidData`] if there is no header.
pub(crate) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let mut buffer = [0; LONGEST_V2];
    stream.read_exact(&mut buffer[..SHORTEST]).await?;
    let length = if buffer.starts_with(V2) {
        stream.read_exact(&mut buffer[SHORTEST..FIXED_V2]).await?;
        let rest = usize::from(u16::from_be_bytes([buffer[14], buffer[15]]));
        let length = FIXED_V2 + rest;
        let rest = buffer.get_mut(FIXED_V2..length).ok_or_else(invalid)?;
        stream.read_exact(rest).await?;
        length
    } else if buffer.starts_with(V1) {
        let mut length = SHORTEST;
        while !buffer[..length].ends_with(b"\r\n") {
            if length == LONGEST_V1 {
                return Err(invalid());
            }
            // What follows the line belongs to the client.
            stream.read_exact(&mut buffer[length..=length]).await?;
            length += 1;
        }
        length
    } else {
        return Err(invalid());
    };
    let header = ProxyHeader::parse(&buffer[..length], ParseConfig::default());
    let (header, _) = header.map_err(|_| invalid())?;
    Ok(header.proxied_address().map(|address| address.source))
}

fn invalid() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the connection does not begin with a header of the PROXY protocol",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proxy_header::ProxiedAddress;

    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<(Option<SocketAddr>, Vec<u8>)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let address = runtime.block_on(read_header(&mut bytes))?;
        Ok((address, bytes.to_vec()))
    }

    fn v2(header: &ProxyHeader<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.encode_v2(&mut bytes).unwrap();
        bytes.extend_from_slice(b"PING\r\n");
        bytes
    }

    #[test]
    fn the_header_is_read_and_nothing_behind_it() {
        let v4 = "PROXY TCP4 192.0.2.1 198.51.100.1 56324 6379\r\nPING\r\n";
        let v6 = "PROXY TCP6 2001:db8::1 2001:db8::2 56324 6379\r\nPING\r\n";
        for (text, address) in [
            (v4, Some("192.0.2.1:56324")),
            (v6, Some("[2001:db8::1]:56324")),
            ("PROXY UNKNOWN\r\nPING\r\n", None),
        ] {
            let address = address.map(|address| address.parse().unwrap());
            let read = read(text.as_bytes()).unwrap();
            assert_eq!(read, (address, b"PING\r\n".to_vec()), "{text}");
        }
        let source = "192.0.2.1:5".parse().unwrap();
        let target = "198.51.100.1:6379".parse().unwrap();
        let proxied = ProxyHeader::with_address(ProxiedAddress::stream(source, target));
        for (header, address) in [(proxied, Some(source)), (ProxyHeader::with_local(), None)] {
            let read = read(&v2(&header)).unwrap();
            assert_eq!(read, (address, b"PING\r\n".to_vec()));
        }
    }

    #[test]
    fn a_connection_without_a_header_is_an_error() {
        let endless = format!("PROXY TCP4 {}", "1".repeat(200));
        let mut too_long = V2.to_vec();
        too_long.extend_from_slice(&[0x21, 0x11, 0xff, 0xff]);
        for bytes in [
            &b"*1\r\n$4\r\nPING\r\n*1\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"PROXY TCP4 nonsense 1 2 3\r\n",
            endless.as_bytes(),
            &too_long,
        ] {
            let error = read(bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        let cut = read(b"PROXY TCP4 192.0.2.1 198.51").unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes: Vec<u8>, which in 0..3_usize) {
            let beginning = [&b""[..], V1, V2][which];
            bytes.splice(0..0, beginning.iter().copied());
            let _ = read(&bytes);
        }
    }
}
