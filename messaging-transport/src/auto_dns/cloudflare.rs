//! Cloudflare's API, version 4, by an API token with the permission Zone / DNS / Edit.
//!
//! `GET /zones?name=`, `GET|POST /zones/{id}/dns_records`, `PATCH|DELETE /zones/{id}/dns_records/{id}`. A record is one
//! value. Texts are sent as quoted strings of at most 255 octets, which the API asks for.

use async_trait::async_trait;
use http::Method;
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords, TTL};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone};
use serde_json::{Value, json};

use super::api::{Api, MAX_PAGES, TokenApi, bounded, encoded, unreadable};
use super::presentation::{Difference, are_same, exchanger, plain_name, quoted, unquoted, zone_names};

pub(super) const BASE: &str = "https://api.cloudflare.com/client/v4";

/// Records of a page.
const PAGE: usize = 100;

/// Error code of a request with a malformed token, which is answered with status 400.
const INVALID_HEADERS: u64 = 6003;

#[derive(Debug)]
pub(super) struct Cloudflare(pub(super) Api);

#[derive(Debug)]
struct Zone {
    api: TokenApi,
    id: String,
    name: String,
}

/// A record, with the id by which it is changed.
struct Found {
    id: String,
    kind: Option<RecordType>,
    value: String,
    /// True if Cloudflare's proxy answers in place of the target.
    is_proxied: bool,
}

#[async_trait]
impl DnsProvider for Cloudflare {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let api = self.0.with_token(credentials.api_token.as_deref())?;
        for name in zone_names(domain) {
            let found = call(&api, Method::GET, &format!("/zones?name={}&per_page=5", encoded(name)), None).await?;
            let zones = found["result"].as_array().ok_or_else(unreadable)?;
            // The answer might list other zones, without a filter or with a token for one zone.
            let Some(zone) = zones.iter().find(|zone| zone["name"] == name) else { continue };
            let id = zone["id"].as_str().ok_or_else(unreadable)?.to_owned();
            return Ok(Box::new(Zone { api, id, name: name.to_owned() }));
        }
        Err(DnsProviderError::NoZone)
    }
}

impl Zone {
    fn path(&self, rest: &str) -> String {
        format!("/zones/{}/dns_records{rest}", encoded(&self.id))
    }

    async fn list(&self, host: &str) -> Result<Vec<Found>, DnsProviderError> {
        let mut found = Vec::new();
        for page in 1..=MAX_PAGES {
            let target = self.path(&format!("?name={}&per_page={PAGE}&page={page}", encoded(host)));
            let answer = call(&self.api, Method::GET, &target, None).await?;
            let records = answer["result"].as_array().ok_or_else(unreadable)?;
            let ours = records.iter().filter(|record| record["name"].as_str().map(plain_name).as_deref() == Some(host));
            found.extend(ours.map(read));
            if records.len() < PAGE {
                return Ok(found);
            }
        }
        Err(DnsProviderError::Refused(format!("{host} has too many records")))
    }
}

fn read(record: &Value) -> Found {
    let text = |member: &str| record[member].as_str().unwrap_or_default();
    let (kind, value) = match text("type") {
        "TXT" => (Some(RecordType::Txt), unquoted(text("content"))),
        "MX" => (
            Some(RecordType::Mx),
            format!("{} {}", record["priority"].as_u64().unwrap_or(0), plain_name(text("content"))),
        ),
        "CNAME" => (Some(RecordType::Cname), plain_name(text("content"))),
        _ => (None, String::new()),
    };
    Found { id: text("id").to_owned(), kind, value, is_proxied: record["proxied"] == true }
}

/// Returns the body of a new record.
fn body(host: &str, kind: RecordType, value: &str) -> Option<Value> {
    Some(match kind {
        RecordType::Txt => json!({"type": "TXT", "name": host, "content": quoted(value), "ttl": TTL}),
        RecordType::Mx => {
            let (priority, exchange) = exchanger(value)?;
            json!({"type": "MX", "name": host, "content": exchange, "priority": priority, "ttl": TTL})
        }
        // Cloudflare's own proxy would answer in place of this server.
        RecordType::Cname => json!({"type": "CNAME", "name": host, "content": value, "ttl": TTL, "proxied": false}),
    })
}

#[async_trait]
impl DnsZone for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let mut records = HostRecords::default();
        for Found { kind, value, is_proxied, .. } in self.list(host).await? {
            records.is_proxied |= is_proxied;
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
        let ids = found.iter().filter(|record| gone.contains(&record.value)).map(|record| record.id.as_str());
        let mut new = new.iter();
        // A record that is changed in place is never missing in between.
        for id in ids {
            let target = self.path(&format!("/{}", encoded(id)));
            match new.next() {
                Some(value) => {
                    let body = body(host, kind, value).ok_or_else(unreadable)?;
                    call(&self.api, Method::PATCH, &target, Some(&body)).await?;
                }
                None => {
                    call(&self.api, Method::DELETE, &target, None).await?;
                }
            }
        }
        for value in new {
            let body = body(host, kind, value).ok_or_else(unreadable)?;
            call(&self.api, Method::POST, &self.path(""), Some(&body)).await?;
        }
        Ok(())
    }
}

async fn call(api: &TokenApi, method: Method, target: &str, body: Option<&Value>) -> Result<Value, DnsProviderError> {
    match api.json(method, target, body, words).await {
        // Cloudflare may also refuse with a status of success.
        Ok(said) if said["success"] == false => {
            let words = words(&said).unwrap_or_else(|| "the provider says that it did not succeed".to_owned());
            Err(DnsProviderError::Refused(bounded(&words)))
        }
        Err(DnsProviderError::Refused(words)) if words.contains(&format!("({INVALID_HEADERS})")) => {
            Err(DnsProviderError::Credentials(words))
        }
        answered => answered,
    }
}

/// Returns the text of the first error: `message (code)`.
fn words(said: &Value) -> Option<String> {
    let error = said["errors"].get(0)?;
    Some(format!("{} ({})", error["message"].as_str()?, error["code"]))
}
