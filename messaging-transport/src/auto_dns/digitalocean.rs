//! The API of `DigitalOcean`, version 2, by a token with the scopes `domain:read`, `domain:create`, `domain:update` and
//! `domain:delete`.
//!
//! `GET /domains/{name}`, `GET|POST /domains/{name}/records`, `PATCH|DELETE /domains/{name}/records/{id}`. A record is
//! one value; its name is a label below the zone, but the filter of a listing takes a full name. Texts are sent as they
//! are, and targets with a final dot.

use async_trait::async_trait;
use http::Method;
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords, TTL};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone};
use serde_json::{Value, json};

use super::api::{Api, MAX_PAGES, TokenApi, encoded, unreadable};
use super::presentation::{Difference, absolute, are_same, exchanger, plain_name, relative, unquoted, zone_names};

pub(super) const BASE: &str = "https://api.digitalocean.com/v2";

/// Records of a page; the API's maximum.
const PAGE: usize = 200;

#[derive(Debug)]
pub(super) struct DigitalOcean(pub(super) Api);

#[derive(Debug)]
struct Zone {
    api: TokenApi,
    name: String,
}

/// A record, with the id by which it is changed.
struct Found {
    id: u64,
    kind: Option<RecordType>,
    value: String,
}

#[async_trait]
impl DnsProvider for DigitalOcean {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let api = self.0.with_token(credentials.api_token.as_deref())?;
        for name in zone_names(domain) {
            match api.json(Method::GET, &format!("/domains/{}", encoded(name)), None, words).await {
                Ok(found) if found["domain"]["name"] == name => {
                    return Ok(Box::new(Zone { api, name: name.to_owned() }));
                }
                Ok(_) => return Err(unreadable()),
                Err(DnsProviderError::Refused(words)) if words.ends_with(NOT_FOUND) => {}
                Err(error) => return Err(error),
            }
        }
        Err(DnsProviderError::NoZone)
    }
}

impl Zone {
    fn path(&self, rest: &str) -> String {
        format!("/domains/{}/records{rest}", encoded(&self.name))
    }

    async fn list(&self, host: &str) -> Result<Vec<Found>, DnsProviderError> {
        let mut found = Vec::new();
        for page in 1..=MAX_PAGES {
            let target = self.path(&format!("?name={}&per_page={PAGE}&page={page}", encoded(host)));
            let answer = self.api.json(Method::GET, &target, None, words).await?;
            let records = answer["domain_records"].as_array().ok_or_else(unreadable)?;
            let label = relative(host, &self.name);
            found.extend(records.iter().filter(|record| record["name"] == label).map(|record| self.read(record)));
            if records.len() < PAGE {
                return Ok(found);
            }
        }
        Err(DnsProviderError::Refused(format!("{host} has too many records")))
    }

    fn read(&self, record: &Value) -> Found {
        let data = record["data"].as_str().unwrap_or_default();
        // The zone itself is shown as `@`.
        let target = || if data == "@" { self.name.clone() } else { plain_name(data) };
        let (kind, value) = match record["type"].as_str().unwrap_or_default() {
            "TXT" => (Some(RecordType::Txt), unquoted(data)),
            "MX" => (Some(RecordType::Mx), format!("{} {}", record["priority"].as_u64().unwrap_or(0), target())),
            "CNAME" => (Some(RecordType::Cname), target()),
            _ => (None, String::new()),
        };
        Found { id: record["id"].as_u64().unwrap_or(0), kind, value }
    }

    fn body(&self, host: &str, kind: RecordType, value: &str) -> Option<Value> {
        let name = relative(host, &self.name);
        Some(match kind {
            RecordType::Txt => json!({"type": "TXT", "name": name, "data": value, "ttl": TTL}),
            RecordType::Mx => {
                let (priority, exchange) = exchanger(value)?;
                json!({"type": "MX", "name": name, "data": absolute(exchange), "priority": priority, "ttl": TTL})
            }
            RecordType::Cname => json!({"type": "CNAME", "name": name, "data": absolute(value), "ttl": TTL}),
        })
    }
}

#[async_trait]
impl DnsZone for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let mut records = HostRecords::default();
        for Found { kind, value, .. } in self.list(host).await? {
            match kind {
                Some(kind) => records.of_mut(kind).push(value),
                None => records.has_others = true,
            }
        }
        Ok(records)
    }

    async fn replace(
        &self,
        host: &str,
        kind: RecordType,
        before: &[String],
        after: &[String],
    ) -> Result<(), DnsProviderError> {
        let mut found = self.list(host).await?;
        found.retain(|record| record.kind == Some(kind));
        let values: Vec<_> = found.iter().map(|record| record.value.clone()).collect();
        if !are_same(&values, before) {
            return Err(DnsProviderError::Changed);
        }
        let Difference { gone, new } = Difference::of(before, after);
        let mut new = new.iter();
        for record in found.iter().filter(|record| gone.contains(&record.value)) {
            let target = self.path(&format!("/{}", record.id));
            match new.next() {
                Some(value) => {
                    let body = self.body(host, kind, value).ok_or_else(unreadable)?;
                    self.api.json(Method::PATCH, &target, Some(&body), words).await?;
                }
                None => {
                    self.api.json(Method::DELETE, &target, None, words).await?;
                }
            }
        }
        for value in new {
            let body = self.body(host, kind, value).ok_or_else(unreadable)?;
            self.api.json(Method::POST, &self.path(""), Some(&body), words).await?;
        }
        Ok(())
    }
}

/// End of the error text for a resource that does not exist.
const NOT_FOUND: &str = "(not_found)";

/// Returns the error text of the API: `message (id)`.
fn words(said: &Value) -> Option<String> {
    Some(format!("{} ({})", said["message"].as_str()?, said["id"].as_str().unwrap_or_default()))
}
