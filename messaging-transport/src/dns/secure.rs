//! Answers that are known to be signed (DNSSEC), from a validating resolver on this machine.
//!
//! Such a resolver says by the AD bit that it has verified an answer, and by SERVFAIL that a signature is wrong (RFC
//! 4035 section 3.2.3, RFC 6840 section 5.8). Nobody is between it and this process, so its word is enough. The library
//! does not ask for the bit, so the queries are sent here.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::time::{Instant, timeout};

use super::answer::{ABSENCE_KEPT, Answered, LookupFailure, REPEATS, TIMEOUT, mail_exchangers, plain};
use super::exchange::{exchange, question};
use crate::dane::{Tlsa, TlsaSet};

/// Maximum number of cached answers.
const MAX_REMEMBERED: usize = 4096;

/// Maximum time for which answers are cached, whatever the zone says: a server's new certificate has new records.
const MAX_KEPT: Duration = Duration::from_hours(1);

/// A resolver whose AD bit is trusted. A handle; clones share the cache.
#[derive(Debug, Clone)]
pub(super) struct TrustedResolver {
    server: SocketAddr,
    remembered: Arc<Mutex<Remembered>>,
}

/// Answers by name and type, each with the time until which it may be used.
type Remembered = HashMap<(String, RecordType), (Answered<Records>, Instant)>;

/// Records of one type, at least one.
#[derive(Debug, Clone)]
struct Records {
    /// Owner of the records: the name that was asked for or the target of its alias, in lower case without a final dot.
    owner: String,
    data: Vec<RData>,
}

impl TrustedResolver {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self { server, remembered: Arc::default() }
    }

    /// Returns the mail exchangers of a domain by preference, lower first.
    pub(super) async fn mx(&self, domain: &str) -> Answered<Vec<(u16, String)>> {
        let Answered { found, is_secure } = self.look_up(domain, RecordType::MX).await;
        Answered { found: found.map(|records| mail_exchangers(records.data)), is_secure }
    }

    /// Returns the signed TLSA records of a port of a host, and the name that has them. For an alias they are those of
    /// its target, or else its own.
    pub(super) async fn tlsa(&self, host: &str, port: u16) -> Result<TlsaSet, LookupFailure> {
        for base in self.tlsa_bases(host).await? {
            match self.look_up(&format!("_{port}._tcp.{base}"), RecordType::TLSA).await {
                Answered { found: Err(failure @ LookupFailure::Temporary(_)), .. } => return Err(failure),
                Answered { found: Ok(records), is_secure: true } => {
                    return Ok(TlsaSet { base, records: records.data.iter().filter_map(tlsa).collect() });
                }
                Answered { .. } => {}
            }
        }
        Ok(TlsaSet::none(host))
    }

    /// Returns the names at which the TLSA records of a host are looked up, in this order (RFC 7672 section 2.2.2).
    /// There are none unless the host's addresses of every kind are signed: servers of an unsigned zone may fail at the
    /// query. If the host is an alias to such addresses, its own name may be signed all the same.
    async fn tlsa_bases(&self, host: &str) -> Result<Vec<String>, LookupFailure> {
        let (four, six) = tokio::join!(self.look_up(host, RecordType::A), self.look_up(host, RecordType::AAAA));
        let (mut owner, mut is_secure, mut failed) = (None, true, None);
        for Answered { found, is_secure: is_it_secure } in [four, six] {
            match found {
                Ok(records) => {
                    owner = Some(records.owner);
                    is_secure &= is_it_secure;
                }
                Err(failure @ LookupFailure::Temporary(_)) => failed = Some(failure),
                Err(_) => {}
            }
        }
        let own = host.to_ascii_lowercase();
        match (owner, failed) {
            // An attacker who can make a look-up fail must not thereby cause mail in clear.
            (None, Some(failure)) => Err(failure),
            // There is no address to connect to.
            (None, None) => Ok(Vec::new()),
            (Some(owner), _) if owner == own => Ok(if is_secure { vec![own] } else { Vec::new() }),
            (Some(owner), _) if is_secure => Ok(vec![owner, own]),
            (Some(_), _) => match self.look_up(host, RecordType::CNAME).await {
                Answered { found: Err(failure @ LookupFailure::Temporary(_)), .. } => Err(failure),
                Answered { found: Ok(_), is_secure: true } => Ok(vec![own]),
                Answered { .. } => Ok(Vec::new()),
            },
        }
    }

    /// Returns the records of one type, at least one.
    async fn look_up(&self, name: &str, kind: RecordType) -> Answered<Records> {
        let key = (name.to_ascii_lowercase(), kind);
        let now = Instant::now();
        if let Some((known, until)) = self.lock().get(&key)
            && now < *until
        {
            return known.clone();
        }
        // A text that is no valid name cannot exist.
        let Ok(mut full) = Name::from_ascii(name) else {
            return Answered { found: Err(LookupFailure::NoSuchDomain), is_secure: false };
        };
        full.set_fqdn(true);
        let (answered, kept) = match self.ask(&full, kind).await {
            Ok(message) => read(message, kind),
            Err(reason) => {
                (Answered { found: Err(LookupFailure::Temporary(reason)), is_secure: false }, Duration::ZERO)
            }
        };
        if !kept.is_zero() {
            let mut remembered = self.lock();
            if remembered.len() >= MAX_REMEMBERED {
                remembered.retain(|_, (_, until)| now < *until);
            }
            if remembered.len() < MAX_REMEMBERED {
                remembered.insert(key, (answered.clone(), now + kept));
            }
        }
        answered
    }

    /// Sends a query until there is an answer, at most as often as look-ups are repeated.
    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Message, String> {
        let mut failed = String::new();
        for _ in 0..=REPEATS {
            let mut question = question(name, kind);
            question.metadata.recursion_desired = true;
            // In a question the bit asks for the same bit in the answer (RFC 6840 section 5.7).
            question.metadata.authentic_data = true;
            match timeout(TIMEOUT, exchange(self.server, &question)).await {
                Ok(Ok(message)) => return Ok(message),
                Ok(Err(error)) => failed = error.to_string(),
                Err(_) => "no answer in time".clone_into(&mut failed),
            }
        }
        Err(failed)
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the records in an answer, and the time for which they may be cached.
fn read(message: Message, kind: RecordType) -> (Answered<Records>, Duration) {
    let is_secure = message.metadata.authentic_data;
    let found = match message.metadata.response_code {
        ResponseCode::NoError => Ok(()),
        ResponseCode::NXDomain => Err(LookupFailure::NoSuchDomain),
        code => Err(LookupFailure::Temporary(format!("the server answered {code}"))),
    };
    if let Err(failure @ LookupFailure::Temporary(_)) = found {
        return (Answered { found: Err(failure), is_secure: false }, Duration::ZERO);
    }
    let shortest = message.answers.iter().map(|record| record.ttl).min();
    let records: Vec<_> = message.answers.into_iter().filter(|record| record.record_type() == kind).collect();
    let kept = match shortest {
        Some(seconds) if !records.is_empty() => Duration::from_secs(seconds.into()).min(MAX_KEPT),
        // The SOA record says how long a negative answer may be cached.
        _ => {
            let soa = message.authorities.iter().find(|record| record.record_type() == RecordType::SOA);
            soa.map_or(Duration::ZERO, |soa| Duration::from_secs(soa.ttl.into())).min(ABSENCE_KEPT)
        }
    };
    let owner = records.first().map(|record| plain(&record.name));
    let found = found.and_then(|()| {
        let owner = owner.ok_or(LookupFailure::NoRecords)?;
        Ok(Records { owner, data: records.into_iter().map(|record| record.data).collect() })
    });
    (Answered { found, is_secure }, kept)
}

pub(super) fn tlsa(data: &RData) -> Option<Tlsa> {
    let RData::TLSA(tlsa) = data else { return None };
    Some(Tlsa {
        usage: tlsa.cert_usage.into(),
        selector: tlsa.selector.into(),
        matching: tlsa.matching.into(),
        data: tlsa.cert_data.clone(),
    })
}
