//! The IP address of the caller of a request.
//!
//! Contract section 2.1: the TCP peer, or, if that is a trusted proxy, the right-most entry of `X-Forwarded-For` that
//! is not a trusted proxy itself. Entries further left may be forged.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the caller. IPv4-mapped IPv6 addresses become IPv4.
pub(crate) fn caller_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut caller = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|block| block.contains(&address));
    if !is_trusted(caller) {
        return caller;
    }
    for header in headers.get_all(X_FORWARDED_FOR).iter().rev() {
        let Ok(text) = header.to_str() else { return caller };
        for entry in text.rsplit(',') {
            // An entry that is no address was not written by a trusted proxy, and the entries left of it are not
            // trusted.
            let Some(address) = parse(entry.trim()) else { return caller };
            caller = address;
            if !is_trusted(caller) {
                return caller;
            }
        }
    }
    // All entries are trusted proxies: the one farthest away is the caller.
    caller
}

/// An address, with or without a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let address = entry
        .parse::<IpAddr>()
        .or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()))
        .or_else(|_| entry.trim_start_matches('[').trim_end_matches(']').parse());
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, headers: &[&str], expected: &str) {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let map: HeaderMap = headers.iter().map(|value| (X_FORWARDED_FOR, value.parse().unwrap())).collect();
        let caller = caller_address(peer.parse().unwrap(), &map, &trusted);
        assert_eq!(caller.to_string(), expected, "{peer} {headers:?}");
    }

    #[test]
    fn a_stranger_is_not_believed() {
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check("::ffff:192.0.2.1", &["198.51.100.7"], "192.0.2.1");
    }

    #[test]
    fn the_right_most_untrusted_entry_counts() {
        check("10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7");
        check("10.0.0.1", &["1.1.1.1", "198.51.100.7, 10.0.0.2", "10.0.0.3"], "198.51.100.7");
        check("::ffff:10.0.0.1", &["::ffff:198.51.100.7"], "198.51.100.7");
        check("fd00::1", &["2001:db8::1"], "2001:db8::1");
        check("10.0.0.1", &["198.51.100.7:1234"], "198.51.100.7");
        check("10.0.0.1", &["[2001:db8::1]:1234"], "2001:db8::1");
    }

    #[test]
    fn without_one_the_farthest_proxy_counts() {
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        check("10.0.0.1", &["198.51.100.7, unknown, 10.0.0.2"], "10.0.0.2");
    }
}
