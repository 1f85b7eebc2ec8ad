//! Networks that count as one caller in limits per caller.
//!
//! Contract section 22: an IPv4 address, or the /64 of an IPv6 address. A caller with one IPv6 address has 2^64 of
//! them, so limits per address would have no effect.

use std::net::{IpAddr, Ipv6Addr};

/// The addresses that count as one caller. IPv4-mapped IPv6 addresses count as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerNetwork(IpAddr);

impl CallerNetwork {
    /// Returns the network that an address belongs to.
    pub const fn of(address: IpAddr) -> Self {
        Self::leading(address, 64)
    }

    /// Returns the /48 of an IPv6 address, which one customer of a provider usually gets; an IPv4 address itself.
    pub const fn site_of(address: IpAddr) -> Self {
        Self::leading(address, 48)
    }

    const fn leading(address: IpAddr, bits: u32) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits)))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// Returns 16 bytes that no other network has; IPv4 addresses are mapped into IPv6.
    pub const fn to_bytes(self) -> [u8; 16] {
        match self.0 {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_address_or_a_64() {
        let network = |text: &str| CallerNetwork::of(text.parse().unwrap());
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("192.0.2.1").to_bytes()[12..], [192, 0, 2, 1]);
        assert_ne!(network("::1").to_bytes(), network("0.0.0.1").to_bytes());
    }
}
