//! DNS client: mail routing, and the published records of sending domains.
//!
//! Mail routing uses a cache that lives as long as the answers allow. A user who verifies a sending domain has just
//! changed a record, so the [`Resolver`] that core uses asks afresh.
//!
//! If the resolver runs on this machine and validates signatures, its AD bit tells which answers are signed
//! ([`Dns::trusting_ad`]).
//!
//! Every look-up ends: a server that does not answer is asked twice, four seconds each.

mod answer;
mod exchange;
mod secure;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use messaging_core::domain::mail::domain_name::reversed;
use messaging_core::ports::resolver::{LookupError, Resolver};

use self::answer::{ABSENCE_KEPT, REPEATS, TIMEOUT, mail_exchangers, plain};
use self::secure::TrustedResolver;
use crate::dane::{Tlsa, TlsaSet};

pub(crate) use self::answer::Answered;
pub use self::answer::LookupFailure;
pub(crate) use self::exchange::{exchange, question};

/// Maximum number of cached answers for mail routing; each has a few hundred octets.
const CACHED_ANSWERS: u64 = 8_192;

/// DNS client. A handle; clones share the cache.
#[derive(Debug, Clone)]
pub struct Dns {
    cached: TokioResolver,
    fresh: TokioResolver,
    /// The name server given by the operator, which answers all queries.
    server: Option<SocketAddr>,
    /// The resolver whose AD bit is trusted.
    trusted: Option<TrustedResolver>,
}

impl Dns {
    /// Creates a client of `server`, or else of the servers that the system is configured with.
    ///
    /// A system without a configuration is assumed to run its own resolver, as the C library does.
    pub fn new(server: Option<SocketAddr>) -> Self {
        let (config, hosts) = match server {
            Some(server) => (single(server), ResolveHosts::Never),
            None => (system(), ResolveHosts::Auto),
        };
        Self { server, ..Self::asking(config, hosts, TIMEOUT) }
    }

    /// Creates the same client, but trusts the resolver's AD bit, which marks answers with verified signatures. The bit
    /// is not trusted unless [`Self::is_on_this_machine`].
    pub fn trusting_ad(server: Option<SocketAddr>) -> Self {
        let asked = Some(asked_first(server)).filter(|asked| asked.ip().to_canonical().is_loopback());
        Self { trusted: asked.map(TrustedResolver::new), ..Self::new(server) }
    }

    /// Returns true if the resolver is at a loopback address: the named one, or else the system's first.
    pub fn is_on_this_machine(server: Option<SocketAddr>) -> bool {
        asked_first(server).ip().to_canonical().is_loopback()
    }

    fn asking(config: ResolverConfig, hosts: ResolveHosts, timeout: Duration) -> Self {
        let mut options = ResolverOpts::default();
        options.timeout = timeout;
        options.attempts = REPEATS;
        options.use_hosts_file = hosts;
        options.cache_size = CACHED_ANSWERS;
        options.negative_max_ttl = Some(ABSENCE_KEPT);
        let cached = build(config.clone(), options.clone());
        options.cache_size = 0;
        options.positive_max_ttl = Some(Duration::ZERO);
        options.negative_max_ttl = Some(Duration::ZERO);
        Self { cached, fresh: build(config, options), server: None, trusted: None }
    }

    /// Returns the mail exchangers of a domain by preference, lower first, without a final dot and in lower case; from
    /// the cache if possible. A null MX (RFC 7505) is an exchanger without a name.
    pub async fn mx(&self, domain: &str) -> Result<Vec<(u16, String)>, LookupFailure> {
        look_up(&self.cached, domain, RecordType::MX).await.map(mail_exchangers)
    }

    /// Does the same, and tells if the answer is known to be signed.
    pub(crate) async fn exchangers(&self, domain: &str) -> Answered<Vec<(u16, String)>> {
        match &self.trusted {
            Some(trusted) => trusted.mx(domain).await,
            None => Answered { found: self.mx(domain).await, is_secure: false },
        }
    }

    /// Returns the signed TLSA records of a port of a host, possibly none. A failure means that there may be some,
    /// which somebody may be hiding.
    pub(crate) async fn tlsa(&self, host: &str, port: u16) -> Result<TlsaSet, LookupFailure> {
        match &self.trusted {
            Some(trusted) => trusted.tlsa(host, port).await,
            None => Ok(TlsaSet::none(host)),
        }
    }

    /// Returns the current TLSA records of a port of a host, signed or not.
    pub(crate) async fn published_tlsa(&self, host: &str, port: u16) -> Result<Vec<Tlsa>, LookupFailure> {
        let found = look_up(&self.fresh, &format!("_{port}._tcp.{host}"), RecordType::TLSA).await?;
        Ok(found.iter().filter_map(secure::tlsa).collect())
    }

    /// Returns the TXT records of a name; from the cache if possible.
    pub(crate) async fn texts(&self, name: &str) -> Result<Vec<String>, LookupFailure> {
        look_up(&self.cached, name, RecordType::TXT).await.map(texts)
    }

    /// Returns the names of the servers that a zone is delegated to, sorted, in lower case without a final dot; not
    /// from the cache. An alias has none: the servers of its target are not responsible for the names below it.
    pub(crate) async fn name_servers(&self, zone: &str) -> Result<Vec<String>, LookupFailure> {
        let name = full(zone)?;
        let found = self.fresh.lookup(name.clone(), RecordType::NS).await.map_err(|error| failure(&error))?;
        let server = |record: &Record| match &record.data {
            RData::NS(server) if record.name == name => Some(plain(&server.0)),
            _ => None,
        };
        let mut servers: Vec<_> = found.answers().iter().filter_map(server).collect();
        servers.sort();
        servers.dedup();
        if servers.is_empty() { Err(LookupFailure::NoRecords) } else { Ok(servers) }
    }

    /// Returns the addresses of a host, IPv6 before IPv4; from the cache if possible. One kind is enough: a failed
    /// look-up of the other is then no error.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupFailure> {
        addresses(&self.cached, host).await
    }
}

#[async_trait]
impl Resolver for Dns {
    async fn txt(&self, name: &str) -> Result<Vec<String>, LookupError> {
        none_is_empty(look_up(&self.fresh, name, RecordType::TXT).await.map(texts))
    }

    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, LookupError> {
        none_is_empty(look_up(&self.fresh, name, RecordType::MX).await.map(mail_exchangers))
    }

    async fn cname(&self, name: &str) -> Result<Option<String>, LookupError> {
        let target = |data: RData| match data {
            RData::CNAME(alias) => Some(plain(&alias.0)),
            _ => None,
        };
        let found = look_up(&self.fresh, name, RecordType::CNAME).await;
        let targets: Vec<_> = none_is_empty(found.map(|records| records.into_iter().filter_map(target).collect()))?;
        Ok(targets.into_iter().next())
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        none_is_empty(addresses(&self.fresh, name).await)
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, LookupError> {
        let zone = if address.is_ipv4() { "in-addr.arpa" } else { "ip6.arpa" };
        let name = |data: RData| match data {
            RData::PTR(name) => Some(plain(&name.0)),
            _ => None,
        };
        let asked = format!("{}.{zone}", reversed(address));
        let found = match self.server {
            Some(server) if address.is_loopback() => ask_once(server, &asked, RecordType::PTR).await,
            _ => look_up(&self.fresh, &asked, RecordType::PTR).await,
        };
        none_is_empty(found.map(|records| records.into_iter().filter_map(name).collect()))
    }
}

/// Returns the servers of the system, without its search list: every name here is complete.
fn system() -> ResolverConfig {
    match read_system_conf() {
        Ok((config, _)) if !config.name_servers().is_empty() => {
            ResolverConfig::from_name_servers(config.name_servers().to_vec())
        }
        read => {
            let error = read.err().map(tracing::field::display);
            tracing::warn!(error, "the system names no resolver; 127.0.0.1 is asked");
            single(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)))
        }
    }
}

/// Returns the address of the named server, or else of the first one of the system.
fn asked_first(server: Option<SocketAddr>) -> SocketAddr {
    server.unwrap_or_else(|| {
        let config = system();
        let first = config.name_servers().first();
        let port = first.and_then(|server| server.connections.first()).map_or(53, |connection| connection.port);
        SocketAddr::new(first.map_or(Ipv4Addr::LOCALHOST.into(), |server| server.ip), port)
    })
}

fn single(server: SocketAddr) -> ResolverConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    ResolverConfig::from_name_servers(vec![NameServerConfig::new(server.ip(), true, connections.into())])
}

fn build(config: ResolverConfig, options: ResolverOpts) -> TokioResolver {
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .expect("only TLS could be misconfigured, and it is not used")
}

/// Returns the records of one type by a single query. The library answers for the names of loopback addresses by itself
/// (RFC 6761 section 6.3); a server that was named for all queries gets these as well.
async fn ask_once(server: SocketAddr, name: &str, kind: RecordType) -> Result<Vec<RData>, LookupFailure> {
    let mut question = question(&full(name)?, kind);
    question.metadata.recursion_desired = true;
    let failed = |error: &dyn std::fmt::Display| LookupFailure::Temporary(error.to_string());
    let answer = match tokio::time::timeout(TIMEOUT, exchange(server, &question)).await {
        Ok(answer) => answer.map_err(|error| failed(&error))?,
        Err(_) => return Err(failed(&"no answer in time")),
    };
    match answer.metadata.response_code {
        ResponseCode::NoError => {}
        ResponseCode::NXDomain => return Err(LookupFailure::NoSuchDomain),
        code => return Err(failed(&format_args!("the server answered {code}"))),
    }
    let records: Vec<_> =
        answer.answers.into_iter().filter(|record| record.record_type() == kind).map(|record| record.data).collect();
    if records.is_empty() { Err(LookupFailure::NoRecords) } else { Ok(records) }
}

/// Returns a complete name. A text that is no valid name cannot exist.
fn full(name: &str) -> Result<Name, LookupFailure> {
    let mut name = Name::from_ascii(name).map_err(|_| LookupFailure::NoSuchDomain)?;
    name.set_fqdn(true);
    Ok(name)
}

/// Returns the records of one type, at least one.
async fn look_up(resolver: &TokioResolver, name: &str, kind: RecordType) -> Result<Vec<RData>, LookupFailure> {
    let found = resolver.lookup(full(name)?, kind).await.map_err(|error| failure(&error))?;
    let records: Vec<_> = found
        .answers()
        .iter()
        .filter(|record| record.record_type() == kind)
        .map(|record| record.data.clone())
        .collect();
    if records.is_empty() { Err(LookupFailure::NoRecords) } else { Ok(records) }
}

fn failure(error: &NetError) -> LookupFailure {
    if error.is_nx_domain() {
        return LookupFailure::NoSuchDomain;
    }
    if error.is_no_records_found() {
        return LookupFailure::NoRecords;
    }
    LookupFailure::Temporary(match error {
        NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail)) => "the server answered SERVFAIL".to_owned(),
        NetError::Dns(DnsError::ResponseCode(ResponseCode::Refused)) => "the server answered REFUSED".to_owned(),
        NetError::Dns(DnsError::ResponseCode(code)) => format!("the server answered {code}"),
        NetError::Timeout => "no answer in time".to_owned(),
        other => other.to_string(),
    })
}

/// Returns the texts of TXT records. The strings of a record are joined without anything between (RFC 7208 section 3.3,
/// RFC 6376 section 3.6.2.2, RFC 8461 section 3.1).
fn texts(records: Vec<RData>) -> Vec<String> {
    let text = |data: RData| match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        _ => None,
    };
    records.into_iter().filter_map(text).collect()
}

async fn addresses(resolver: &TokioResolver, host: &str) -> Result<Vec<IpAddr>, LookupFailure> {
    let (six, four) = tokio::join!(look_up(resolver, host, RecordType::AAAA), look_up(resolver, host, RecordType::A));
    let found: Vec<_> = [&six, &four].into_iter().flatten().flatten().filter_map(RData::ip_addr).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // The worst failure counts: a look-up that failed may have had an answer.
    let failures = || [&six, &four].into_iter().filter_map(|result| result.as_ref().err());
    let temporary = failures().find(|failure| matches!(failure, LookupFailure::Temporary(_)));
    Err(temporary.or_else(|| failures().next()).cloned().unwrap_or(LookupFailure::NoRecords))
}

/// Alternates IPv6 and IPv4, so that one kind that does not work does not use up all the time.
pub(crate) fn alternate(addresses: Vec<IpAddr>) -> impl Iterator<Item = IpAddr> {
    let (six, four): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    let pairs = std::iter::from_fn(move || {
        let pair = [six.next(), four.next()];
        pair.iter().any(Option::is_some).then_some(pair)
    });
    pairs.flatten().flatten()
}

/// Turns a missing name or record into an empty list, which is no error.
fn none_is_empty<T>(found: Result<Vec<T>, LookupFailure>) -> Result<Vec<T>, LookupError> {
    match found {
        Ok(records) => Ok(records),
        Err(LookupFailure::NoSuchDomain | LookupFailure::NoRecords) => Ok(Vec::new()),
        Err(LookupFailure::Temporary(reason)) => Err(LookupError(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_testing::{DnsFailure, TestDns};

    #[tokio::test]
    async fn a_silent_server_is_given_up() {
        let server = TestDns::start().await;
        server.fail("acme.test", DnsFailure::Silence);
        let dns = Dns::asking(single(server.addr()), ResolveHosts::Never, Duration::from_millis(20));
        assert_eq!(dns.mx("acme.test").await, Err(LookupFailure::Temporary("no answer in time".to_owned())));
        assert!(server.queries().len() > REPEATS);
        server.recover("acme.test");
        assert_eq!(dns.mx("acme.test").await, Err(LookupFailure::NoSuchDomain));
    }

    #[test]
    fn addresses_alternate() {
        let addresses = ["::1", "::2", "::3", "1.0.0.1", "1.0.0.2"].map(|text| text.parse().unwrap()).to_vec();
        let order: Vec<_> = alternate(addresses).map(|address: IpAddr| address.to_string()).collect();
        assert_eq!(order, ["::1", "1.0.0.1", "::2", "1.0.0.2", "::3"]);
    }
}
