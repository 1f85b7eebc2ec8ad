//! Routes of mail for a domain: its exchangers and their addresses (RFC 5321 section 5.1).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use messaging_core::domain::channel::address::ascii_domain;
use messaging_core::ports::clock::{Entropy, SystemEntropy};
use messaging_core::ports::transport::{Outcome, Response};
use tokio::time::timeout;

use crate::dane::TlsaSet;
use crate::dns::{Answered, Dns, LookupFailure, alternate};
use crate::guard::Guard;

/// Maximum number of exchangers of a domain that are tried.
const MAX_HOSTS: usize = 8;

/// Maximum number of addresses of an exchanger that are tried.
const MAX_ADDRESSES: usize = 4;

/// A host and port that takes the place of every recipient's mail exchangers: `host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MxOverride {
    host: String,
    port: u16,
}

/// Error for a text that is no `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a host and a port such as mail.example.org:25")]
pub struct MalformedMxOverride;

impl FromStr for MxOverride {
    type Err = MalformedMxOverride;

    fn from_str(text: &str) -> Result<Self, MalformedMxOverride> {
        let (host, port) = text.rsplit_once(':').ok_or(MalformedMxOverride)?;
        let port = port.parse().ok().filter(|&port| port > 0).ok_or(MalformedMxOverride)?;
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let host = match literal {
            Some(literal) => literal.parse::<std::net::Ipv6Addr>().ok().map(|address| address.to_string()),
            // Names of one label, such as `localhost`, are hosts of the local network.
            None if host.len() <= 253 && host.split('.').all(is_label) => Some(host.to_ascii_lowercase()),
            None => ascii_domain(host),
        };
        Ok(Self { host: host.ok_or(MalformedMxOverride)?, port })
    }
}

impl MxOverride {
    /// Returns the host: a name or an address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for MxOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Source of the mail exchangers of a domain.
pub(super) enum Routing {
    /// From DNS.
    Dns(Box<ByDns>),
    /// Always this host.
    Override(MxOverride),
}

/// The resolver and the rules for looking up the mail exchangers of a domain in the DNS.
pub(super) struct ByDns {
    pub(super) dns: Dns,
    /// The port of all exchangers.
    pub(super) port: u16,
    /// This machine's name, by which it recognizes itself among exchangers.
    pub(super) own_name: String,
    /// Judges the addresses of exchangers before they are dialed. An override is set by the operator and is not judged.
    pub(super) guard: Guard,
    /// Puts exchangers of equal preference in random order.
    pub(super) entropy: SystemEntropy,
}

/// The exchangers of a domain.
#[derive(Debug)]
pub(super) struct Exchangers {
    /// Their host names, in the order in which they are tried.
    pub(super) hosts: Vec<String>,
    /// True if DNSSEC signs the list of exchangers.
    pub(super) is_secure: bool,
}

/// Reason why an exchanger has no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAddress {
    /// The look-up found none.
    Lookup(LookupFailure),
    /// All of its addresses are private, and those are not dialed.
    Private,
}

impl From<LookupFailure> for NoAddress {
    fn from(failure: LookupFailure) -> Self {
        Self::Lookup(failure)
    }
}

impl Routing {
    /// Returns the exchangers of a domain in the order in which they are tried, or the outcome of its recipients if
    /// there are none.
    pub(super) async fn exchangers(&self, domain: &str) -> Result<Exchangers, Outcome> {
        match self {
            Self::Override(fixed) => Ok(Exchangers { hosts: vec![fixed.host.clone()], is_secure: false }),
            Self::Dns(by) => {
                let shuffle = |hosts: &mut [String]| shuffle(hosts, &by.entropy);
                let Answered { found, is_secure } = by.dns.exchangers(domain).await;
                Ok(Exchangers { hosts: order(found, domain, &by.own_name, shuffle)?, is_secure })
            }
        }
    }

    /// Returns the DNSSEC-signed TLSA records of an exchanger, possibly none; an override has none.
    pub(super) async fn tlsa(&self, host: &str) -> Result<TlsaSet, LookupFailure> {
        match self {
            Self::Override(_) => Ok(TlsaSet::none(host)),
            Self::Dns(by) => by.dns.tlsa(host, by.port).await,
        }
    }

    /// Returns the addresses of an exchanger in the order in which they are tried, at most `MAX_ADDRESSES`. Only
    /// permitted ones are returned, except for an override, which is not judged.
    pub(super) async fn addresses(&self, host: &str, limit: Duration) -> Result<Vec<SocketAddr>, NoAddress> {
        let (addresses, port): (Vec<IpAddr>, u16) = match self {
            Self::Override(fixed) => {
                // Resolved by the system: this host need not be in DNS.
                let found = match timeout(limit, tokio::net::lookup_host((host, fixed.port))).await {
                    Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
                    Ok(Err(error)) => return Err(LookupFailure::Temporary(error.to_string()).into()),
                    Err(_) => return Err(LookupFailure::Temporary(format!("no answer within {limit:?}")).into()),
                };
                (found, fixed.port)
            }
            Self::Dns(by) => match timeout(limit, by.dns.addresses(host)).await {
                Ok(found) => (permitted(found?, by.guard)?, by.port),
                Err(_) => return Err(LookupFailure::Temporary(format!("no answer within {limit:?}")).into()),
            },
        };
        Ok(alternate(addresses).map(|address| SocketAddr::new(address, port)).take(MAX_ADDRESSES).collect())
    }
}

/// Returns the addresses that may be dialed, at least one. Unlike the host of a URL, an exchanger with both public and
/// private addresses is not refused as a whole: many also have a private one inside of their network.
fn permitted(found: Vec<IpAddr>, guard: Guard) -> Result<Vec<IpAddr>, NoAddress> {
    let permitted: Vec<_> = found.into_iter().filter(|address| guard.permits(*address)).collect();
    if permitted.is_empty() { Err(NoAddress::Private) } else { Ok(permitted) }
}

/// Orders the exchangers by preference value, lower ones first and equal ones by chance, and returns at most
/// `MAX_HOSTS`; fails with the outcome for the recipients if none is left.
fn order(
    found: Result<Vec<(u16, String)>, LookupFailure>,
    domain: &str,
    own_name: &str,
    shuffle: impl Fn(&mut [String]),
) -> Result<Vec<String>, Outcome> {
    let mut exchangers = match found {
        Ok(exchangers) => exchangers,
        // Implicit MX: the domain itself.
        Err(LookupFailure::NoRecords) => vec![(0, domain.to_owned())],
        Err(LookupFailure::NoSuchDomain) => {
            return Err(Outcome::refused(response(None, "5.1.2", &format!("the domain {domain} does not exist"))));
        }
        Err(LookupFailure::Temporary(reason)) => {
            let text = format!("the mail exchangers of {domain} could not be looked up: {reason}");
            return Err(Outcome::deferred(response(None, "4.4.3", &text)));
        }
    };
    if exchangers.iter().all(|(_, host)| host.is_empty()) {
        // The codes come from RFC 7505 section 4.2.
        let text = format!("the domain {domain} does not accept mail (null MX)");
        return Err(Outcome::refused(response(Some(556), "5.1.10", &text)));
    }
    exchangers.retain(|(_, host)| !host.is_empty());
    exchangers.sort_by_key(|(preference, _)| *preference);
    // A host that is itself an exchanger passes mail only to those with a lower preference value.
    if let Some(own) = exchangers.iter().find(|(_, host)| host.eq_ignore_ascii_case(own_name)).map(|(own, _)| *own) {
        exchangers.retain(|(preference, _)| *preference < own);
    }
    if exchangers.is_empty() {
        let text = format!("mail for {domain} loops back to this host");
        return Err(Outcome::refused(response(None, "5.4.6", &text)));
    }
    let (preferences, mut hosts): (Vec<u16>, Vec<String>) = exchangers.into_iter().unzip();
    let mut start = 0;
    for equal in preferences.chunk_by(|one, other| one == other) {
        shuffle(&mut hosts[start..start + equal.len()]);
        start += equal.len();
    }
    hosts.truncate(MAX_HOSTS);
    Ok(hosts)
}

/// Shuffles by the algorithm of Fisher and Yates.
fn shuffle(hosts: &mut [String], entropy: &dyn Entropy) {
    for last in (1..hosts.len()).rev() {
        let mut bytes = [0; 8];
        entropy.fill(&mut bytes);
        let choices = u64::try_from(last + 1).unwrap_or(u64::MAX);
        let chosen = usize::try_from(u64::from_le_bytes(bytes) % choices).unwrap_or(last);
        hosts.swap(chosen, last);
    }
}

/// Returns a response for an outcome that was found locally, without a reply from a server.
pub(super) fn response(code: Option<u16>, enhanced: &str, text: &str) -> Response {
    let text: String = format!("{enhanced} {text}").chars().filter(|c| !c.is_control()).take(512).collect();
    Response { code, enhanced: Some(enhanced.to_owned()), text, host: None }
}

#[cfg(test)]
mod tests {
    use messaging_core::ports::clock::SeededEntropy;
    use messaging_core::ports::transport::Answer;

    use super::*;

    /// Orders exchangers with equal ones in reverse, which shows which are taken for equal.
    fn ordered(found: Result<Vec<(u16, &str)>, LookupFailure>) -> String {
        let found = found.map(|hosts| hosts.into_iter().map(|(value, host)| (value, host.to_owned())).collect());
        match order(found, "b.test", "us.test", <[String]>::reverse) {
            Ok(hosts) => hosts.join(" "),
            Err(Outcome::Answered(Answer { class, response: it, .. })) => {
                let word = if class.is_retried() { "deferred" } else { "refused" };
                format!("{word} {:?} {}", it.code, it.enhanced.unwrap())
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn exchangers_are_ordered() {
        assert_eq!(ordered(Ok(vec![(20, "c"), (10, "a"), (10, "b"), (30, "d")])), "b a c d");
        assert_eq!(ordered(Err(LookupFailure::NoRecords)), "b.test");
        assert_eq!(ordered(Err(LookupFailure::NoSuchDomain)), "refused None 5.1.2");
        assert_eq!(ordered(Err(LookupFailure::Temporary("x".into()))), "deferred None 4.4.3");
        assert_eq!(ordered(Ok(vec![(0, "")])), "refused Some(556) 5.1.10");
        assert_eq!(ordered(Ok(vec![(0, ""), (5, "a")])), "a");
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let values = many.iter().enumerate().map(|(at, host)| (u16::try_from(at).unwrap(), *host)).collect();
        assert_eq!(ordered(Ok(values)), "a b c d e f g h");
    }

    #[test]
    fn mail_does_not_loop() {
        assert_eq!(ordered(Ok(vec![(10, "a"), (20, "US.test"), (20, "c"), (30, "d")])), "a");
        assert_eq!(ordered(Ok(vec![(10, "us.test"), (20, "c")])), "refused None 5.4.6");
    }

    #[test]
    fn only_public_addresses_are_dialed_unless_private_ones_are_allowed() {
        let found = || ["10.0.0.1", "1.0.0.1", "fd00::1", "2606:4700::1"].map(|text| text.parse().unwrap()).to_vec();
        let dialed = |found, allow_private| {
            permitted(found, Guard { allow_private })
                .map(|dialed| dialed.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(dialed(found(), false).as_deref(), Ok("1.0.0.1 2606:4700::1"));
        assert_eq!(dialed(found(), true).as_deref(), Ok("10.0.0.1 1.0.0.1 fd00::1 2606:4700::1"));
        assert_eq!(dialed(vec!["127.0.0.1".parse().unwrap()], false), Err(NoAddress::Private));
    }

    #[test]
    fn equal_exchangers_take_turns() {
        let entropy = SeededEntropy::new(7);
        let mut firsts = std::collections::BTreeMap::new();
        for _ in 0..300 {
            let mut hosts = ["a", "b", "c"].map(str::to_owned);
            shuffle(&mut hosts, &entropy);
            *firsts.entry(hosts[0].clone()).or_insert(0) += 1;
        }
        assert!(firsts.len() == 3 && firsts.values().all(|&count| (60..=140).contains(&count)), "{firsts:?}");
    }

    #[test]
    fn overrides_are_a_host_and_a_port() {
        for (text, host, port) in [
            ("localhost:2525", "localhost", 2525),
            ("127.0.0.1:25", "127.0.0.1", 25),
            ("[::1]:26", "::1", 26),
            ("MX.b_c.test:1", "mx.b_c.test", 1),
        ] {
            let parsed: MxOverride = text.parse().unwrap();
            assert_eq!((parsed.host.as_str(), parsed.port), (host, port));
            assert_eq!(parsed.to_string(), text.to_ascii_lowercase());
        }
        for text in [
            "",
            "localhost",
            "localhost:0",
            "localhost:65536",
            ":25",
            "::1:25",
            "[::1",
            "a b:25",
            "a..b:25",
            "[a]:25",
            "http://a:25",
        ] {
            assert_eq!(text.parse::<MxOverride>(), Err(MalformedMxOverride), "{text}");
        }
    }
}
