//! Source addresses of outgoing connections: the addresses that each can reach, and which are usable.

use std::fmt;
use std::net::IpAddr;

use super::ip_pool::source::{NamedSource, SourceAddress};

impl NamedSource {
    /// Returns the source with this host name whose address the system chooses for each connection.
    pub fn by_system(name: &str) -> Self {
        Self { ip: SourceAddress::Default, name: name.to_owned() }
    }

    /// Returns true if this source can connect to an address: both are IPv4 or both are IPv6, or the system chooses the
    /// source address.
    pub fn reaches(&self, other: IpAddr) -> bool {
        self.ip.ip().is_none_or(|own| own.is_ipv4() == other.is_ipv4())
    }
}

impl fmt::Display for NamedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.ip, self.name)
    }
}

/// Returns the reason why an address cannot be a source, as a fragment of a sentence; `None` if it can.
pub fn fault_of(address: IpAddr) -> Option<&'static str> {
    if address.is_unspecified() {
        Some("stands for no address in particular")
    } else if address.is_multicast() || address == IpAddr::from([255; 4]) {
        Some("is the address of a group")
    } else if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        Some("is an IPv4 address in the form of IPv6; write it as IPv4")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_reaches_addresses_of_its_own_kind() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let of = |text: &str| NamedSource { ip: address(text).into(), name: "m.test".to_owned() };
        let (four, six) = (address("192.0.2.1"), address("2001:db8::1"));
        assert!(of("192.0.2.7").reaches(four) && !of("192.0.2.7").reaches(six));
        assert!(of("2001:db8::7").reaches(six) && !of("2001:db8::7").reaches(four));
        let by_system = NamedSource::by_system("m.test");
        assert!(by_system.reaches(four) && by_system.reaches(six));
        assert_eq!(by_system.to_string(), "default (m.test)");
        assert_eq!(of("2001:DB8::7").to_string(), "2001:db8::7 (m.test)");
    }

    #[test]
    fn addresses_that_are_no_host_are_no_source() {
        for (text, is_usable) in [
            ("192.0.2.1", true),
            ("127.0.0.2", true),
            ("::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("ff02::1", false),
            ("::ffff:192.0.2.1", false),
        ] {
            assert_eq!(fault_of(text.parse().unwrap()).is_none(), is_usable, "{text}");
        }
    }
}
