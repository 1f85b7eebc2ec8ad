//! Rules for addresses that users give (contract section 15.4): URLs, hosts of relays, mail exchangers.
//!
//! The rules are applied twice: to the text when it is given, and to every network address right before a connection is
//! made to it. Judging the text alone would be worth nothing, because any name can be made to resolve to any address. A
//! URL is parsed by the rules of browsers, which turn every spelling of an IPv4 address (decimal, octal, hexadecimal,
//! short) into the same four octets before anything is judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use messaging_core::domain::security::web_url::is_absolute;
use messaging_core::ports::fetch::UrlFault;
use url::{Host, Position, Url};

use crate::dns::{Dns, LookupFailure, alternate};

/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;

/// The rules of one installation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// True if `http` and addresses that are not public are allowed too.
    pub(crate) allow_private: bool,
}

/// Returns the error text for a host that is refused because of its addresses.
pub(crate) fn private_address(host: &str) -> String {
    format!("the address of {host} is private; --allow-private-targets permits it")
}

/// Reason why no connection is made to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// One of its addresses is not public.
    NotPublic,
    /// It does not resolve to an address.
    Unknown,
}

impl Guard {
    /// Parses a URL and judges its text.
    pub(crate) fn check(self, text: &str) -> Result<Url, UrlFault> {
        // The parser is lenient: it would drop blanks around the URL and line ends within it.
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err(UrlFault::Malformed);
        }
        let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
        if matches!(url.scheme(), "http" | "https") && !is_absolute(text, &["http", "https"]) {
            return Err(UrlFault::Malformed);
        }
        let is_scheme_allowed = match url.scheme() {
            "https" => true,
            "http" => self.allow_private,
            _ => false,
        };
        // Nothing listens on port 0 (RFC 6335 section 6).
        let is_port_allowed = url.port() != Some(0);
        if !is_scheme_allowed
            || !is_port_allowed
            || !url.username().is_empty()
            || url.password().is_some()
            || has_user_info(text)
        {
            return Err(UrlFault::NotAllowed);
        }
        let is_allowed = match url.host().ok_or(UrlFault::Malformed)? {
            Host::Ipv4(address) => self.permits(address.into()),
            Host::Ipv6(address) => self.permits(address.into()),
            Host::Domain(name) => has_labels(name) && (self.allow_private || !is_this_machine(name)),
        };
        if !is_allowed {
            return Err(UrlFault::NotAllowed);
        }
        if url[Position::BeforePath..Position::AfterQuery].parse::<http::Uri>().is_err() {
            return Err(UrlFault::Malformed);
        }
        Ok(url)
    }

    /// Returns the addresses of a URL's host in the order in which they are tried: at least one, and all permitted.
    ///
    /// A name with any address that is not permitted is refused as a whole: nobody who means a public host publishes
    /// such a record, and the address called would depend on the order of the answers.
    pub(crate) async fn resolve(self, url: &Url, dns: &Dns) -> Result<Vec<SocketAddr>, Refusal> {
        let port = url.port_or_known_default().ok_or(Refusal::Unknown)?;
        let found = match url.host().ok_or(Refusal::Unknown)? {
            Host::Ipv4(address) => vec![address.into()],
            Host::Ipv6(address) => vec![address.into()],
            // This name never leaves the machine (RFC 6761 section 6.3).
            Host::Domain(name) if is_this_machine(name) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            Host::Domain(name) => dns.addresses(name).await.map_err(|failure| match failure {
                LookupFailure::NoSuchDomain | LookupFailure::NoRecords | LookupFailure::Temporary(_) => {
                    Refusal::Unknown
                }
            })?,
        };
        if !found.iter().all(|address| self.permits(*address)) {
            return Err(Refusal::NotPublic);
        }
        let addresses: Vec<_> =
            alternate(found).map(|address| SocketAddr::new(address, port)).take(MAX_ADDRESSES).collect();
        if addresses.is_empty() { Err(Refusal::Unknown) } else { Ok(addresses) }
    }

    /// Returns true if a host's text is acceptable: no address that is not permitted, in any spelling, and no name of
    /// this machine. It does not resolve names, and returns true for a text that is no host, which is refused
    /// elsewhere.
    pub(crate) fn permits_host(self, host: &str) -> bool {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return self.permits(address);
        }
        match Host::parse(host) {
            Ok(Host::Ipv4(address)) => self.permits(address.into()),
            Ok(Host::Ipv6(address)) => self.permits(address.into()),
            Ok(Host::Domain(name)) => self.allow_private || !is_this_machine(&name),
            Err(_) => true,
        }
    }

    /// Returns true if connections to the address are permitted.
    pub(crate) fn permits(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }
}

/// Returns true if there is an `@` before the path: empty user info (`https://@host`) leaves no trace in a parsed URL.
fn has_user_info(text: &str) -> bool {
    let Some((_, rest)) = text.split_once(':') else { return false };
    let rest = rest.trim_start_matches(['/', '\\']);
    rest.split(['/', '\\', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Returns true if DNS can hold the name: labels of 1 to 63 octets, 253 in all (RFC 1035 section 2.3.4).
fn has_labels(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn is_this_machine(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns true if an address is public by the registries of special-purpose addresses (RFC 6890 and later entries).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // "This network", loopback, private, multicast, reserved and broadcast.
        [0 | 10 | 127 | 224.., ..]
        // Link-local (the metadata services of clouds), private.
        | [169, 254, ..] | [192, 168, ..]
        // Protocol assignments, documentation, the former relays of 6to4.
        | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => true,
        // Shared address space of carriers (RFC 6598).
        [100, second, ..] => second & 0xC0 == 64,
        [172, second, ..] => second & 0xF0 == 16,
        // Benchmarks.
        [198, second, ..] => second & 0xFE == 18,
        _ => false,
    };
    !special
}

/// Returns true for an address in `2000::/3`, which holds everything that was ever assigned, unless its range is for
/// special purposes. Outside of it are loopback, unspecified, unique-local, link-local, multicast, and the forms that
/// hold an IPv4 address (mapped, compatible, translated by `64:ff9b::/96` and `64:ff9b:1::/48`).
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let special = match segments {
        // Protocol assignments, Teredo among them, whose addresses hold an IPv4 address.
        [0x2001, second, ..] if second < 0x0200 => true,
        // Documentation, 6to4.
        [0x2001, 0x0db8, ..] | [0x2002, ..] => true,
        [0x3fff, second, ..] => second < 0x1000,
        _ => false,
    };
    segments[0] & 0xE000 == 0x2000 && !special
}

#[cfg(test)]
mod tests;
