//! Where addresses that users give may lead (contract section 15.4): URLs, hosts of relays, mail exchangers.
//!
//! The rules hold twice: for the text when it is given, and for every network address right before
//! a connection is made to it. Judging the text alone would be worth nothing, because any name can be made
//! to resolve to any address. A URL is read by the rules of browsers, which turn every spelling of an IPv4
//! address (decimal, octal, hexadecimal, short) into the same four octets before anything is judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use messaging_core::domain::security::web_url::is_absolute;
use messaging_core::ports::fetch::UrlFault;
use url::{Host, Position, Url};

use crate::dns::{Dns, LookupFailure, alternate};

/// The most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;

/// The rules of one installation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// Whether `http` and addresses that are not public may be called too.
    pub(crate) allow_private: bool,
}

/// What is said of a host that is not connected to because of its addresses.
pub(crate) fn private_address(host: &str) -> String {
    format!("the address of {host} is private; --allow-private-targets permits it")
}

/// Why a host is not connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// One of its addresses is not public.
    NotPublic,
    /// It does not resolve.
    Unknown,
}

impl Guard {
    /// Reads a URL and judges its text.
    pub(crate) fn check(self, text: &str) -> Result<Url, UrlFault> {
        // A URL is read leniently: blanks around it and line ends within it would be dropped.
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
        // Port 0 is none that anybody listens on (RFC 6335 section 6).
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

    /// The addresses of a URL's host in the order in which they are tried, at least one, each one permitted.
    ///
    /// A name with any address that is not permitted is refused as a whole: nobody who means a public host
    /// publishes such a record, and what is called would depend on which answer came first.
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

    /// Whether the text of a host may be given: not an address that is not permitted, in whatever
    /// spelling, nor a name of this machine. Says nothing about what a name resolves to, and a text that
    /// is no host is for others to refuse.
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

    /// Whether an address may be dialed.
    pub(crate) fn permits(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }
}

/// Whether there is an `@` before the path: empty user info (`https://@host`) leaves no trace in what was read.
fn has_user_info(text: &str) -> bool {
    let Some((_, rest)) = text.split_once(':') else { return false };
    let rest = rest.trim_start_matches(['/', '\\']);
    rest.split(['/', '\\', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Whether a name is one that DNS can hold: labels of 1 to 63 octets, 253 in all (RFC 1035 section 2.3.4).
fn has_labels(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn is_this_machine(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether an address belongs to somebody on the public internet, by the registries of special addresses
/// (RFC 6890 and what was entered since).
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
        // Shared by the customers of a provider.
        [100, second, ..] => second & 0xC0 == 64,
        [172, second, ..] => second & 0xF0 == 16,
        // Benchmarks.
        [198, second, ..] => second & 0xFE == 18,
        _ => false,
    };
    !special
}

/// Public is what lies in `2000::/3`, where everything is that was ever given out, but not what leads
/// somewhere else there. Outside of it are loopback, unspecified, unique-local, link-local, multicast, and
/// the forms that hold an IPv4 address (mapped, compatible, translated by `64:ff9b::/96` and `64:ff9b:1::/48`).
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
