//! DNS provider for name servers that take updates by RFC 2136 signed with TSIG: BIND, Knot and others.
//!
//! Everything goes over TCP, and every message is signed, queries too: so wrong credentials are found before anything
//! is planned, and a server may answer only signed queries. An update states the records it expects to find (RFC 2136
//! section 2.4), so the server itself refuses it if somebody else was faster.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{CNAME, MX, TXT};
use hickory_resolver::proto::rr::{DNSClass, Name, RData, Record, RecordType as WireType};
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords, TTL};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone, is_in_zone};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::api::bounded;
use super::presentation::{MAX_STRING, are_same, exchanger, plain_name, zone_names};
use super::tsig::{Distrust, TsigKey};
use crate::dns::Dns;
use crate::guard::{Guard, Refusal, private_address};

/// Time limit for connecting, and for each message with its answer.
const EXCHANGE_WITHIN: Duration = Duration::from_secs(4);

/// Client of the name servers that callers name.
#[derive(Debug)]
pub struct NameServer {
    dns: Dns,
    guard: Guard,
    clock: Arc<dyn Clock>,
}

impl NameServer {
    /// Creates a client that looks servers up with `dns`; `allow_private` permits servers at addresses that are not
    /// public.
    pub fn new(dns: Dns, allow_private: bool, clock: Arc<dyn Clock>) -> Self {
        Self { dns, guard: Guard { allow_private }, clock }
    }

    async fn connect(&self, credentials: &DnsCredentials) -> Result<TcpStream, DnsProviderError> {
        let (host, port) = credentials.host_and_port().ok_or_else(malformed)?;
        let blocked = || DnsProviderError::Blocked(private_address(host));
        if !self.guard.permits_host(host) {
            return Err(blocked());
        }
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = Url::parse(&format!("https://{shown}:{port}")).map_err(|_| malformed())?;
        let found = timeout(EXCHANGE_WITHIN, self.guard.resolve(&url, &self.dns)).await;
        let addresses = match found.unwrap_or(Err(Refusal::Unknown)) {
            Ok(addresses) => addresses,
            Err(Refusal::NotPublic) => return Err(blocked()),
            Err(Refusal::Unknown) => return Err(away("its name could not be looked up")),
        };
        for address in addresses {
            if let Ok(Ok(stream)) = timeout(EXCHANGE_WITHIN, TcpStream::connect(address)).await {
                return Ok(stream);
            }
        }
        Err(away("no connection could be made"))
    }

    async fn converse(&self, credentials: &DnsCredentials) -> Result<Conversation, DnsProviderError> {
        let name = credentials.key_name.as_deref().ok_or_else(malformed)?;
        let (Some(algorithm), Some(secret)) = (credentials.algorithm, credentials.key()) else {
            return Err(malformed());
        };
        let key = TsigKey::new(name, algorithm, &secret);
        Ok(Conversation { stream: self.connect(credentials).await?, key, clock: Arc::clone(&self.clock) })
    }
}

fn malformed() -> DnsProviderError {
    DnsProviderError::Credentials("the credentials are incomplete".to_owned())
}

fn away(why: impl std::fmt::Display) -> DnsProviderError {
    DnsProviderError::Away(bounded(&format!("the name server could not be asked: {why}")))
}

fn wire(name: &str) -> Result<Name, DnsProviderError> {
    let refused = |_| DnsProviderError::Refused(bounded(&format!("{name} is no name")));
    let mut name = Name::from_ascii(name).map_err(refused)?;
    name.set_fqdn(true);
    Ok(name)
}

/// A connection to a server.
struct Conversation {
    stream: TcpStream,
    key: TsigKey,
    clock: Arc<dyn Clock>,
}

impl Conversation {
    /// Sends a message and reads its answer, whose signature is verified.
    async fn exchange(&mut self, message: &Message) -> Result<Message, DnsProviderError> {
        let mut octets = message.to_vec().map_err(away)?;
        let mac = self.key.sign(&mut octets, self.seconds());
        let length = u16::try_from(octets.len()).map_err(|_| away("the message is too long"))?;
        let framed = [&length.to_be_bytes()[..], &octets].concat();
        let exchange = async {
            self.stream.write_all(&framed).await?;
            let length = self.stream.read_u16().await?;
            let mut answer = vec![0; usize::from(length)];
            self.stream.read_exact(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = match timeout(EXCHANGE_WITHIN, exchange).await {
            Ok(answer) => answer.map_err(away)?,
            Err(_) => return Err(away("no answer in time")),
        };
        let read = |octets: &[u8]| Message::from_vec(octets).map_err(|_| away("the answer is damaged"));
        let bare = match self.key.verify(&answer, &mac, self.seconds()) {
            Ok(bare) => bare,
            Err(Distrust::Refused(error)) => {
                return Err(DnsProviderError::Credentials(format!("the name server answered {error}")));
            }
            Err(Distrust::Unsigned) => {
                let code = read(&answer).map(|answer| answer.metadata.response_code);
                return Err(match code {
                    Ok(code @ (ResponseCode::Refused | ResponseCode::NotAuth | ResponseCode::FormErr)) => {
                        DnsProviderError::Credentials(format!("the name server answered {code} without a signature"))
                    }
                    _ => away("the answer is not signed with the key"),
                });
            }
        };
        let answer = read(&bare)?;
        if answer.metadata.id != message.metadata.id {
            return Err(away("the answer is that to another question"));
        }
        Ok(answer)
    }

    fn seconds(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis() / 1000).unwrap_or_default()
    }

    async fn ask(&mut self, name: &str, kind: WireType) -> Result<Message, DnsProviderError> {
        let mut question = Message::query();
        question.metadata.recursion_desired = false;
        question.add_query(Query::query(wire(name)?, kind));
        self.exchange(&question).await
    }

    /// Returns true if the server has a zone of this name.
    async fn has_zone(&mut self, name: &str) -> Result<bool, DnsProviderError> {
        let answer = self.ask(name, WireType::SOA).await?;
        let wanted = wire(name)?;
        let is_it = |record: &Record| record.record_type() == WireType::SOA && record.name == wanted;
        Ok(answer.metadata.authoritative && answer.answers.iter().any(is_it))
    }

    /// Returns the records of one type at a name.
    async fn records(&mut self, host: &str, kind: WireType) -> Result<Vec<Record>, DnsProviderError> {
        let answer = self.ask(host, kind).await?;
        match answer.metadata.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => {}
            code => return Err(judged(code)),
        }
        let wanted = wire(host)?;
        Ok(answer.answers.into_iter().filter(|one| one.name == wanted && one.record_type() == kind).collect())
    }
}

/// Maps a response code other than success to an error.
fn judged(code: ResponseCode) -> DnsProviderError {
    match code {
        ResponseCode::Refused => {
            DnsProviderError::Credentials("the name server answered REFUSED: the key may not do this".to_owned())
        }
        ResponseCode::NotAuth => DnsProviderError::NoZone,
        ResponseCode::YXDomain | ResponseCode::YXRRSet | ResponseCode::NXRRSet | ResponseCode::NXDomain => {
            DnsProviderError::Changed
        }
        ResponseCode::ServFail => away("it answered SERVFAIL"),
        other => DnsProviderError::Refused(format!("the name server answered {other}")),
    }
}

#[async_trait]
impl DnsProvider for NameServer {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let mut talk = self.converse(credentials).await?;
        let given = credentials.zone.as_deref().map(plain_name);
        let names = match &given {
            Some(name) if is_in_zone(domain, name) => vec![name.as_str()],
            Some(_) => return Err(DnsProviderError::NoZone),
            None => zone_names(domain),
        };
        for name in names {
            if talk.has_zone(name).await? {
                let server = Self { dns: self.dns.clone(), guard: self.guard, clock: Arc::clone(&self.clock) };
                return Ok(Box::new(Zone { server, credentials: credentials.clone(), name: name.to_owned() }));
            }
        }
        Err(DnsProviderError::NoZone)
    }
}

#[derive(Debug)]
struct Zone {
    server: NameServer,
    credentials: DnsCredentials,
    name: String,
}

pub(super) const fn wire_type(kind: RecordType) -> WireType {
    match kind {
        RecordType::Txt => WireType::TXT,
        RecordType::Mx => WireType::MX,
        RecordType::Cname => WireType::CNAME,
    }
}

/// Returns the value of a record; `None` for other types.
pub(super) fn value(data: &RData) -> Option<String> {
    let name = |name: &Name| plain_name(&name.to_ascii());
    match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        RData::MX(mx) => Some(format!("{} {}", mx.preference, name(&mx.exchange))),
        RData::CNAME(alias) => Some(name(&alias.0)),
        _ => None,
    }
}

fn data(kind: RecordType, value: &str) -> Result<RData, DnsProviderError> {
    Ok(match kind {
        RecordType::Txt => RData::TXT(TXT::from_bytes(value.as_bytes().chunks(MAX_STRING).collect())),
        RecordType::Cname => RData::CNAME(CNAME(wire(value)?)),
        RecordType::Mx => {
            let (preference, exchange) =
                exchanger(value).ok_or_else(|| DnsProviderError::Refused("no mail exchanger".to_owned()))?;
            RData::MX(MX::new(preference, wire(exchange)?))
        }
    })
}

impl Zone {
    /// Returns true if a name has records of any type itself, not only through a wildcard (RFC 4592). It sends an
    /// update that changes nothing, on condition that there are none (RFC 2136 section 2.4.5). Any other answer, such
    /// as a refusal to tell, counts as true.
    async fn is_in_use(&self, talk: &mut Conversation, host: &str) -> Result<bool, DnsProviderError> {
        let mut question = update_of(&self.name)?;
        question.add_answer(absent(&wire(host)?, WireType::ANY));
        Ok(talk.exchange(&question).await?.metadata.response_code != ResponseCode::NoError)
    }
}

#[async_trait]
impl DnsZone for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let mut talk = self.server.converse(&self.credentials).await?;
        let mut records = HostRecords::default();
        for kind in [RecordType::Txt, RecordType::Mx, RecordType::Cname] {
            let found = talk.records(host, wire_type(kind)).await?;
            *records.of_mut(kind) = found.iter().filter_map(|record| value(&record.data)).collect();
        }
        for kind in [WireType::A, WireType::AAAA, WireType::NS] {
            records.has_others |= !talk.records(host, kind).await?.is_empty();
        }
        let is_there = records == HostRecords::default() || self.is_in_use(&mut talk, host).await?;
        Ok(if is_there { records } else { HostRecords::default() })
    }

    async fn replace(
        &self,
        host: &str,
        kind: RecordType,
        before: &[String],
        after: &[String],
    ) -> Result<(), DnsProviderError> {
        let mut talk = self.server.converse(&self.credentials).await?;
        let mut found = talk.records(host, wire_type(kind)).await?;
        if !found.is_empty() && !self.is_in_use(&mut talk, host).await? {
            found.clear();
        }
        let values: Vec<_> = found.iter().filter_map(|record| value(&record.data)).collect();
        if !are_same(&values, before) {
            return Err(DnsProviderError::Changed);
        }
        let update = update(&self.name, host, kind, &found, after)?;
        match talk.exchange(&update).await?.metadata.response_code {
            ResponseCode::NoError => Ok(()),
            code => Err(judged(code)),
        }
    }
}

/// Returns an update of a zone that changes nothing yet.
fn update_of(zone: &str) -> Result<Message, DnsProviderError> {
    let mut update = Message::query();
    update.metadata.op_code = OpCode::Update;
    update.metadata.recursion_desired = false;
    update.add_query(Query::query(wire(zone)?, WireType::SOA));
    Ok(update)
}

/// Returns the condition that a name has no records of a type.
fn absent(name: &Name, kind: WireType) -> Record {
    let mut absent = Record::update0(name.clone(), 0, kind).into_record_of_rdata();
    absent.dns_class = DNSClass::NONE;
    absent
}

/// Returns the update that replaces the records found by `after`, on condition that exactly those are still there.
fn update(
    zone: &str,
    host: &str,
    kind: RecordType,
    found: &[Record],
    after: &[String],
) -> Result<Message, DnsProviderError> {
    let (name, ttl) = (wire(host)?, found.first().map_or(TTL, |record| record.ttl));
    let mut update = update_of(zone)?;
    if found.is_empty() {
        // Section 2.4.3: there is no record of the type.
        update.add_answer(absent(&name, wire_type(kind)));
    }
    for record in found {
        // Section 2.4.2: there are exactly these records of the type, compared in the form in which they were read.
        update.add_answer(Record::from_rdata(name.clone(), 0, record.data.clone()));
        if value(&record.data).is_none_or(|value| !after.contains(&value)) {
            // Section 2.5.4: deletes this record.
            let mut gone = Record::from_rdata(name.clone(), 0, record.data.clone());
            gone.dns_class = DNSClass::NONE;
            update.add_authority(gone);
        }
    }
    let values: Vec<_> = found.iter().filter_map(|record| value(&record.data)).collect();
    for new in after.iter().filter(|value| !values.contains(value)) {
        update.add_authority(Record::from_rdata(name.clone(), ttl, data(kind, new)?));
    }
    Ok(update)
}
