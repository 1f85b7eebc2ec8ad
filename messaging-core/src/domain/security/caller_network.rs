//! What counts as one caller where shares are counted.
//!
//! Contract section 22: an IPv4 address, or the /64 of an IPv6 address. Whoever has one address of IPv6 has
//! 2^64 of them, so counting them one by one would count nothing.

use std::net::{IpAddr, Ipv6Addr};

/// The addresses that count as one caller. IPv4-mapped IPv6 addresses count as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerNetwork(IpAddr);

impl CallerNetwork {
    /// The network that an address belongs to.
    pub const fn of(address: IpAddr) -> Self {
        Self::leading(address, 64)
    }

    /// The /48 of an IPv6 address, which is what one customer of a provider is usually given; an IPv4 address itself.
    pub const fn site_of(address: IpAddr) -> Self {
        Self::leading(address, 48)
    }

    const fn leading(address: IpAddr, bits: u32) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits)))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// 16 bytes that no other network has; IPv4 addresses are mapped into IPv6.
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
