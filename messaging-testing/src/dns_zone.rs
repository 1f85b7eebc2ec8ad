//! DNS provider in memory: one zone behind one token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone, is_in_zone};
use messaging_core::ports::name_servers::{NameServers, RecordQuestion, ServerAnswers};
use messaging_core::ports::resolver::LookupError;

/// Hosts one zone for callers with the token, and has two name servers for it, `ns1` and `ns2`. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryDnsProvider(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    name: String,
    token: String,
    records: HashMap<String, HostRecords>,
    failure: Option<DnsProviderError>,
    writes: usize,
    /// Name servers with what they still have at names; `None` for one that does not answer.
    lagging: HashMap<(String, String), Option<HostRecords>>,
}

impl MemoryDnsProvider {
    /// Creates a zone of this name without records.
    pub fn new(name: &str, token: &str) -> Self {
        let (name, token) = (name.to_owned(), token.to_owned());
        Self(Arc::new(Mutex::new(State {
            name,
            token,
            records: HashMap::new(),
            failure: None,
            writes: 0,
            lagging: HashMap::new(),
        })))
    }

    /// Gives a name these values of a type in place of those it had.
    pub fn set(&self, host: &str, kind: RecordType, values: &[&str]) {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        *self.lock().records.entry(host.to_owned()).or_default().of_mut(kind) = values;
    }

    /// Returns the values of a type at a name.
    pub fn values(&self, host: &str, kind: RecordType) -> Vec<String> {
        self.lock().records.get(host).map(|records| records.of(kind).to_vec()).unwrap_or_default()
    }

    /// Makes every call fail like this from now on, until it is `None`.
    pub fn fail(&self, failure: Option<DnsProviderError>) {
        self.lock().failure = failure;
    }

    /// Makes a name server, `ns1` or `ns2`, keep these records at a name whatever is written. Without records it does
    /// not answer.
    pub fn lag(&self, server: &str, host: &str, records: Option<HostRecords>) {
        self.lock().lagging.insert((server.to_owned(), host.to_owned()), records);
    }

    /// Gives all name servers the records that were written.
    pub fn catch_up(&self) {
        self.lock().lagging.clear();
    }

    /// Returns the number of writes so far.
    pub fn writes(&self) -> usize {
        self.lock().writes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DnsProvider for MemoryDnsProvider {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if credentials.api_token.as_deref() != Some(state.token.as_str()) {
            return Err(DnsProviderError::Credentials("Invalid API token".to_owned()));
        }
        if !is_in_zone(domain, &state.name) {
            return Err(DnsProviderError::NoZone);
        }
        let name = state.name.clone();
        drop(state);
        Ok(Box::new(MemoryZone { provider: self.clone(), name }))
    }
}

#[async_trait]
impl NameServers for MemoryDnsProvider {
    async fn ask(&self, zone: &str, questions: &[RecordQuestion]) -> Result<Vec<ServerAnswers>, LookupError> {
        let state = self.lock();
        if zone != state.name {
            return Err(LookupError(format!("{zone} has none")));
        }
        let servers = ["ns1", "ns2"].map(|server| {
            let answer = |question: &RecordQuestion| {
                let lagging = state.lagging.get(&(server.to_owned(), question.host.clone()));
                let records = match lagging {
                    Some(None) => return Err(LookupError("no answer in time".to_owned())),
                    Some(records) => records.as_ref(),
                    None => state.records.get(&question.host),
                };
                Ok(records.map(|records| records.of(question.kind).to_vec()).unwrap_or_default())
            };
            ServerAnswers { server: format!("{server}.{zone}"), answers: questions.iter().map(answer).collect() }
        });
        Ok(servers.into())
    }
}

#[derive(Debug)]
struct MemoryZone {
    provider: MemoryDnsProvider,
    name: String,
}

#[async_trait]
impl DnsZone for MemoryZone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let state = self.provider.lock();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(state.records.get(host).cloned().unwrap_or_default()),
        }
    }

    async fn replace(
        &self,
        host: &str,
        kind: RecordType,
        before: &[String],
        after: &[String],
    ) -> Result<(), DnsProviderError> {
        let mut state = self.provider.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if !is_in_zone(host, &self.name) {
            return Err(DnsProviderError::Refused(format!("{host} is not in the zone")));
        }
        state.writes += 1;
        let values = state.records.entry(host.to_owned()).or_default().of_mut(kind);
        if values.as_slice() != before {
            return Err(DnsProviderError::Changed);
        }
        *values = after.to_vec();
        Ok(())
    }
}
