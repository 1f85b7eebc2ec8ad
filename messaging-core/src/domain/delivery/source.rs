//! Sources: the addresses of a node that mail leaves from, each with the name that it greets with.

use std::fmt;
use std::net::IpAddr;

/// Most sources of a node.
pub const MAX_SOURCES: usize = 256;

/// An address that connections to mail exchangers are bound to, and the name that is said in EHLO over them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// The address; `None` for the one that the system chooses for each connection.
    pub address: Option<IpAddr>,
    /// The name in EHLO, which the address should resolve to and back.
    pub name: String,
}

impl Source {
    /// Name of the source whose address the system chooses.
    pub const DEFAULT: &str = "default";

    /// The source whose address the system chooses.
    pub fn by_system(name: &str) -> Self {
        Self { address: None, name: name.to_owned() }
    }

    /// The source by which paths, pools and listings know it: its address, or `default`.
    pub fn id(&self) -> String {
        self.address.map_or_else(|| Self::DEFAULT.to_owned(), |address| address.to_string())
    }

    /// True where a connection from here to the other address is possible: both are IPv4 or both are IPv6.
    pub fn reaches(&self, other: IpAddr) -> bool {
        self.address.is_none_or(|own| own.is_ipv4() == other.is_ipv4())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id(), self.name)
    }
}

/// Why an address cannot be a source, as a fragment; `None` where it can.
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
        let of = |text: &str| Source { address: Some(text.parse().unwrap()), name: "m.test".to_owned() };
        let (four, six) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        assert!(of("192.0.2.7").reaches(four) && !of("192.0.2.7").reaches(six));
        assert!(of("2001:db8::7").reaches(six) && !of("2001:db8::7").reaches(four));
        let by_system = Source::by_system("m.test");
        assert!(by_system.reaches(four) && by_system.reaches(six));
        assert_eq!((by_system.id(), of("2001:DB8::7").id()), ("default".to_owned(), "2001:db8::7".to_owned()));
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
