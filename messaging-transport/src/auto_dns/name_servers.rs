//! The name servers of a zone, asked themselves: what they publish now, and not what a resolver remembers.
//!
//! Questions go straight to the addresses of the servers that the zone is delegated to, over UDP, and over TCP where an
//! answer does not fit. An answer counts only with authority (AA, RFC 1035 section 4.1.1); a referral to a zone below
//! is none.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::Name;
use messaging_core::domain::mail::auto_dns::MAX_VALUES;
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::name_servers::{NameServers, RecordQuestion, ServerAnswers};
use messaging_core::ports::resolver::LookupError;
use tokio::time::{Instant, timeout, timeout_at};

use super::rfc2136::{value, wire_type};
use crate::Options;
use crate::dns::{Dns, alternate, exchange, question};
use crate::guard::{Guard, private_address};

/// Name servers of a zone that are asked.
const MAX_SERVERS: usize = 6;

/// Addresses of a name server that are tried, one after another until one answers.
const MAX_ADDRESSES: usize = 3;

/// Tries of a question at least, because datagrams get lost.
const MIN_TRIES: usize = 2;

/// Time for all questions to one name server, which are asked at once, and for finding its addresses.
const SERVER_WITHIN: Duration = Duration::from_secs(5);

/// Time for one try.
const TRY_WITHIN: Duration = Duration::from_millis(1600);

/// Port of name servers.
const PORT: u16 = 53;

/// Asks the name servers of zones.
#[derive(Debug, Clone)]
pub struct ZoneServers {
    dns: Dns,
    guard: Guard,
    stand_ins: Arc<HashMap<IpAddr, SocketAddr>>,
    try_within: Duration,
}

impl ZoneServers {
    /// Finds the servers by the resolver of the options. Those with an address that is not public are asked only where
    /// the options allow it.
    pub fn new(options: &Options) -> Self {
        Self {
            dns: options.dns.clone(),
            guard: Guard { allow_private: options.allow_private },
            stand_ins: Arc::default(),
            try_within: TRY_WITHIN,
        }
    }

    /// Calls other addresses in the place of these addresses of name servers: for tests.
    pub fn stand_ins(mut self, stand_ins: impl IntoIterator<Item = (IpAddr, SocketAddr)>) -> Self {
        self.stand_ins = Arc::new(stand_ins.into_iter().collect());
        self
    }

    async fn ask_server(&self, server: String, questions: &[RecordQuestion]) -> ServerAnswers {
        let end = Instant::now() + SERVER_WITHIN;
        let late = || "no answer in time".to_owned();
        let found = timeout_at(end, self.addresses(&server)).await.unwrap_or_else(|_| Err(late()));
        let answers = questions.iter().map(async |question| {
            let addresses = found.as_deref().map_err(Clone::clone)?;
            timeout_at(end, self.ask_any(addresses, question)).await.unwrap_or_else(|_| Err(late()))
        });
        let answers = join_all(answers).await.into_iter().map(|answer| answer.map_err(LookupError)).collect();
        ServerAnswers { server, answers }
    }

    /// Returns the addresses of a name server in the order in which they are tried. One that is not public forbids all.
    async fn addresses(&self, server: &str) -> Result<Vec<SocketAddr>, String> {
        let found = self.dns.addresses(server).await.map_err(|failure| failure.to_string())?;
        if !found.iter().all(|address| self.guard.permits(*address)) {
            return Err(private_address(server));
        }
        let at = |address| self.stand_ins.get(&address).copied().unwrap_or(SocketAddr::new(address, PORT));
        Ok(alternate(found).take(MAX_ADDRESSES).map(at).collect())
    }

    /// Returns the values that the first of these addresses answers with authority.
    async fn ask_any(&self, addresses: &[SocketAddr], asked: &RecordQuestion) -> Result<Vec<String>, String> {
        let mut name = Name::from_ascii(&asked.host).map_err(|_| "it is no name".to_owned())?;
        name.set_fqdn(true);
        let mut failed = "it has no address".to_owned();
        for address in addresses.iter().cycle().take(addresses.len().max(MIN_TRIES)) {
            let question = question(&name, wire_type(asked.kind));
            let answered = match timeout(self.try_within, exchange(*address, &question)).await {
                Ok(Ok(answer)) => values(&answer, &name, asked.kind),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no answer in time".to_owned()),
            };
            match answered {
                Ok(values) => return Ok(values),
                Err(why) => failed = why,
            }
        }
        Err(failed)
    }
}

/// Returns the values of an answer, at most one more than a name may have; fails if the answer has no authority.
fn values(answer: &Message, name: &Name, kind: RecordType) -> Result<Vec<String>, String> {
    match answer.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => {}
        code => return Err(format!("it answered {code}")),
    }
    if !answer.metadata.authoritative {
        return Err("its answer has no authority".to_owned());
    }
    let kind = wire_type(kind);
    let of_name = answer.answers.iter().filter(|record| record.name == *name && record.record_type() == kind);
    Ok(of_name.filter_map(|record| value(&record.data)).take(MAX_VALUES + 1).collect())
}

#[async_trait]
impl NameServers for ZoneServers {
    async fn ask(&self, zone: &str, questions: &[RecordQuestion]) -> Result<Vec<ServerAnswers>, LookupError> {
        let found = self.dns.name_servers(zone).await;
        let mut servers = found.map_err(|failure| LookupError(format!("those of {zone}: {failure}")))?;
        servers.truncate(MAX_SERVERS);
        Ok(join_all(servers.into_iter().map(|server| self.ask_server(server, questions))).await)
    }
}

#[cfg(test)]
mod tests {
    use messaging_testing::{DnsFailure, TestDns};

    use super::*;

    #[tokio::test]
    async fn a_silent_name_server_is_given_up_and_the_next_address_is_tried() {
        let (resolver, silent, server) = (TestDns::start().await, TestDns::start().await, TestDns::start().await);
        resolver.name_servers("acme.test", &["ns.acme.test"]);
        silent.fail("a.acme.test", DnsFailure::Silence);
        server.txt("a.acme.test", &["here"]);
        let addresses: [IpAddr; 2] = [[93, 184, 215, 1].into(), [93, 184, 215, 2].into()];
        let options = Options { dns: Dns::new(Some(resolver.addr())), ..Options::new("mx.service.test") };
        let mut servers =
            ZoneServers::new(&options).stand_ins([(addresses[0], silent.addr()), (addresses[1], server.addr())]);
        servers.try_within = Duration::from_millis(100);
        let questions = [RecordQuestion { host: "a.acme.test".to_owned(), kind: RecordType::Txt }];
        resolver.addresses("ns.acme.test", &addresses[..1]);
        let answered = servers.ask("acme.test", &questions).await.unwrap();
        assert!(matches!(&answered[0].answers[0], Err(LookupError(why)) if why == "no answer in time"), "{answered:?}");
        assert_eq!(silent.queries().len(), MIN_TRIES);
        silent.fail("a.acme.test", DnsFailure::Refused);
        resolver.addresses("ns.acme.test", &addresses);
        servers.dns = Dns::new(Some(resolver.addr()));
        servers.try_within = TRY_WITHIN;
        let answered = servers.ask("acme.test", &questions).await.unwrap();
        assert_eq!(answered[0].answers[0].as_deref().unwrap(), ["here"]);
    }
}
