//! Hetzner's Cloud API, version 1, by a token of a project with read and write access.
//!
//! `GET /zones?name=`, `GET|POST /zones/{id}/rrsets`, `POST /zones/{id}/rrsets/{name}/{type}/actions/set_records`,
//! `DELETE /zones/{id}/rrsets/{name}/{type}`. Records of a name and a type are one set. Texts are quoted strings of at
//! most 255 octets, targets have a final dot. The former API of the DNS console, dns.hetzner.com, is not supported: its
//! zones have moved to this one.

use async_trait::async_trait;
use http::Method;
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords, TTL};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone};
use serde_json::{Value, json};

use super::api::{Api, TokenApi, encoded, unreadable};
use super::presentation::{
    Difference, absolute, are_same, exchanger, plain_name, quoted, relative, unquoted, zone_names,
};

pub(super) const BASE: &str = "https://api.hetzner.cloud/v1";

#[derive(Debug)]
pub(super) struct Hetzner(pub(super) Api);

#[derive(Debug)]
struct Zone {
    api: TokenApi,
    id: u64,
    name: String,
}

#[async_trait]
impl DnsProvider for Hetzner {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let api = self.0.with_token(credentials.api_token.as_deref())?;
        for name in zone_names(domain) {
            let target = format!("/zones?name={}", encoded(name));
            let found = api.json(Method::GET, &target, None, words).await?;
            let zones = found["zones"].as_array().ok_or_else(unreadable)?;
            let Some(zone) = zones.iter().find(|zone| zone["name"] == name) else { continue };
            let id = zone["id"].as_u64().ok_or_else(unreadable)?;
            return Ok(Box::new(Zone { api, id, name: name.to_owned() }));
        }
        Err(DnsProviderError::NoZone)
    }
}

const fn type_name(kind: RecordType) -> &'static str {
    match kind {
        RecordType::Txt => "TXT",
        RecordType::Mx => "MX",
        RecordType::Cname => "CNAME",
    }
}

impl Zone {
    /// Returns the record sets of a name. There is one for each type, so one page of 50 holds them all.
    async fn sets(&self, host: &str) -> Result<Vec<Value>, DnsProviderError> {
        let label = relative(host, &self.name);
        let target = format!("/zones/{}/rrsets?name={}&per_page=50", self.id, encoded(label));
        let answer = self.api.json(Method::GET, &target, None, words).await?;
        let sets = answer["rrsets"].as_array().ok_or_else(unreadable)?;
        Ok(sets.iter().filter(|set| set["name"] == label).cloned().collect())
    }

    /// Returns the full host name of a target; one without a final dot is relative to the zone.
    fn target(&self, text: &str) -> String {
        match text.strip_suffix('.') {
            Some(absolute) => plain_name(absolute),
            None if text == "@" => self.name.clone(),
            None => format!("{}.{}", text.to_ascii_lowercase(), self.name),
        }
    }

    fn value(&self, kind: RecordType, text: &str) -> String {
        match kind {
            RecordType::Txt => unquoted(text),
            RecordType::Cname => self.target(text),
            RecordType::Mx => exchanger(text)
                .map_or_else(|| text.to_owned(), |(preference, host)| format!("{preference} {}", self.target(host))),
        }
    }

    fn values(&self, kind: RecordType, set: &Value) -> Vec<String> {
        let records = set["records"].as_array().into_iter().flatten();
        records.filter_map(|record| record["value"].as_str()).map(|text| self.value(kind, text)).collect()
    }

    fn record(&self, kind: RecordType, set: &Value, value: &str) -> Value {
        // A record that stays keeps its spelling and its comment.
        let records = set["records"].as_array().into_iter().flatten();
        let mut known =
            records.filter(|record| record["value"].as_str().is_some_and(|text| self.value(kind, text) == value));
        if let Some(known) = known.next() {
            return known.clone();
        }
        let text = match kind {
            RecordType::Txt => quoted(value),
            RecordType::Cname => absolute(value),
            RecordType::Mx => exchanger(value)
                .map_or_else(|| value.to_owned(), |(preference, host)| format!("{preference} {}", absolute(host))),
        };
        json!({"value": text})
    }
}

#[async_trait]
impl DnsZone for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let mut records = HostRecords::default();
        for set in self.sets(host).await? {
            let kind = match set["type"].as_str().unwrap_or_default() {
                "TXT" => RecordType::Txt,
                "MX" => RecordType::Mx,
                "CNAME" => RecordType::Cname,
                _ => {
                    records.has_others = true;
                    continue;
                }
            };
            *records.of_mut(kind) = self.values(kind, &set);
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
        let (label, name) = (relative(host, &self.name), type_name(kind));
        let found = self.sets(host).await?.into_iter().find(|set| set["type"] == name);
        let set = found.clone().unwrap_or_default();
        if !are_same(&self.values(kind, &set), before) {
            return Err(DnsProviderError::Changed);
        }
        if Difference::of(before, after) == Difference::default() {
            return Ok(());
        }
        let records: Vec<_> = after.iter().map(|value| self.record(kind, &set, value)).collect();
        let path = format!("/zones/{}/rrsets", self.id);
        // Labels have no character that needs encoding in a path.
        let of_set = format!("{path}/{label}/{name}");
        let answer = match (found.is_some(), after.is_empty()) {
            (true, true) => self.api.json(Method::DELETE, &of_set, None, words).await?,
            (true, false) => {
                let body = json!({"records": records});
                self.api.json(Method::POST, &format!("{of_set}/actions/set_records"), Some(&body), words).await?
            }
            (false, _) => {
                let body = json!({"name": label, "type": name, "ttl": TTL, "records": records});
                self.api.json(Method::POST, &path, Some(&body), words).await?
            }
        };
        match answer["action"]["error"]["message"].as_str() {
            Some(words) if answer["action"]["status"] == "error" => {
                Err(DnsProviderError::Refused(super::api::bounded(words)))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error text of the API: `message (code)`.
fn words(said: &Value) -> Option<String> {
    let error = &said["error"];
    Some(format!("{} ({})", error["message"].as_str()?, error["code"].as_str().unwrap_or_default()))
}
