//! Amazon Route 53, API version 2013-04-01, signed with Signature Version 4.
//!
//! `ListHostedZonesByName`, `ListResourceRecordSets`, `ChangeResourceRecordSets`. Records of a name and a type are one
//! set. A change of an existing set removes it exactly as it was read and adds the new one in one batch, which Route 53
//! carries out as a whole or refuses, so that no foreign changes are lost. Values that stay are written as they were
//! read, and the TTL stays. Octets of texts are escaped by three octal digits, unlike everywhere else.

use std::fmt::Write as _;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use messaging_core::domain::mail::auto_dns::{DnsCredentials, HostRecords, TTL};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone};
use messaging_core::time::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::api::{Api, MAX_PAGES, bounded, encoded, later, refusal, unreadable};
use super::presentation::{absolute, are_same, exchanger, plain_name, quoted, unquoted_by, zone_names};
use super::xml::{element, elements, escaped, text_of};

pub(super) const BASE: &str = "https://route53.amazonaws.com";

/// Region of the one endpoint, which serves all.
const REGION: &str = "us-east-1";

/// Namespace of requests.
const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// Error codes for which the credentials are to blame.
const CREDENTIAL_CODES: [&str; 8] = [
    "AccessDenied",
    "AccessDeniedException",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "MissingAuthenticationToken",
    "UnrecognizedClientException",
    "IncompleteSignature",
    "InvalidSignature",
];

#[derive(Debug)]
pub(super) struct Route53(pub(super) Api);

/// An API whose calls are signed.
#[derive(Debug)]
struct Signed {
    api: Api,
    credentials: DnsCredentials,
}

#[derive(Debug)]
struct Zone {
    calls: Signed,
    id: String,
    name: String,
}

/// Base of the digits by which an octet is written.
const OCTAL: u32 = 8;

/// A record set as it was read.
struct Found {
    kind: Option<RecordType>,
    /// Values, each with its spelling in the answer.
    values: Vec<(String, String)>,
    ttl: u32,
    /// The XML element, which removes the set.
    xml: String,
}

impl Found {
    fn values(&self) -> Vec<String> {
        self.values.iter().map(|(value, _)| value.clone()).collect()
    }
}

#[async_trait]
impl DnsProvider for Route53 {
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError> {
        let calls = Signed { api: self.0.clone(), credentials: credentials.clone() };
        for name in zone_names(domain) {
            let query = [("dnsname", name), ("maxitems", "20")];
            let found = calls.call(Method::GET, "/2013-04-01/hostedzonesbyname", &query, "").await?;
            let mut zones = elements(&found, "HostedZone").into_iter();
            let is_it = |zone: &&str| {
                text_of(zone, "Name").is_some_and(|found| plain_name(&found) == name)
                    && text_of(zone, "PrivateZone").as_deref() != Some("true")
            };
            let Some(zone) = zones.find(is_it) else { continue };
            let id = text_of(zone, "Id").ok_or_else(unreadable)?;
            let id = id.rsplit('/').next().unwrap_or_default().to_owned();
            return Ok(Box::new(Zone { calls, id, name: name.to_owned() }));
        }
        Err(DnsProviderError::NoZone)
    }
}

impl Zone {
    async fn sets(&self, host: &str) -> Result<Vec<Found>, DnsProviderError> {
        let path = format!("/2013-04-01/hostedzone/{}/rrset", encoded(&self.id));
        let start = absolute(host);
        let mut query = vec![("maxitems", "100".to_owned()), ("name", start)];
        let mut found = Vec::new();
        for _ in 0..MAX_PAGES {
            let pairs: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = self.calls.call(Method::GET, &path, &pairs, "").await?;
            let sets = elements(&answer, "ResourceRecordSet");
            let of_host = |set: &&&str| text_of(set, "Name").is_some_and(|name| plain_name(&name) == host);
            found.extend(sets.iter().filter(of_host).map(|set| read(set)));
            // Sets are sorted, so those of the host are adjacent.
            let next = text_of(&answer, "NextRecordName").filter(|name| plain_name(name) == host);
            let Some(next) = next else { return Ok(found) };
            query = vec![("maxitems", "100".to_owned()), ("name", next)];
            query.extend(text_of(&answer, "NextRecordType").map(|kind| ("type", kind)));
            query.extend(text_of(&answer, "NextRecordIdentifier").map(|id| ("identifier", id)));
            query.sort_unstable();
        }
        Err(DnsProviderError::Refused(format!("{host} has too many records")))
    }
}

fn read(set: &str) -> Found {
    let kind = match text_of(set, "Type").unwrap_or_default().as_str() {
        "TXT" => Some(RecordType::Txt),
        "MX" => Some(RecordType::Mx),
        "CNAME" => Some(RecordType::Cname),
        _ => None,
    };
    let value = |text: &str| match kind {
        Some(RecordType::Cname) => plain_name(text),
        Some(RecordType::Mx) => exchanger(text)
            .map_or_else(|| text.to_owned(), |(preference, host)| format!("{preference} {}", plain_name(host))),
        _ => unquoted_by(text, OCTAL),
    };
    // An alias to an AWS resource, and a set with weights or locations, are more than values.
    let is_plain = element(set, "AliasTarget").is_none() && element(set, "SetIdentifier").is_none();
    let written = elements(set, "ResourceRecord").into_iter().filter_map(|record| text_of(record, "Value"));
    let values = written.map(|text| (value(&text), text)).collect();
    let ttl = text_of(set, "TTL").and_then(|ttl| ttl.parse().ok()).unwrap_or(TTL);
    Found { kind: kind.filter(|_| is_plain), values, ttl, xml: set.to_owned() }
}

/// Returns a new set, in the place of the one that was found.
fn set(host: &str, kind: RecordType, values: &[String], found: Option<&Found>) -> String {
    let (name, present): (_, fn(&str) -> String) = match kind {
        RecordType::Txt => ("TXT", quoted),
        RecordType::Cname => ("CNAME", absolute),
        RecordType::Mx => ("MX", |value: &str| match exchanger(value) {
            Some((preference, host)) => format!("{preference} {}", absolute(host)),
            None => value.to_owned(),
        }),
    };
    let ttl = found.map_or(TTL, |found| found.ttl);
    let known =
        |value: &str| found?.values.iter().find(|(known, _)| known == value).map(|(_, written)| written.clone());
    let mut xml = format!("<Name>{}</Name><Type>{name}</Type><TTL>{ttl}</TTL><ResourceRecords>", absolute(host));
    for value in values {
        let written = known(value).unwrap_or_else(|| present(value));
        let _ = write!(xml, "<ResourceRecord><Value>{}</Value></ResourceRecord>", escaped(&written));
    }
    xml.push_str("</ResourceRecords>");
    xml
}

#[async_trait]
impl DnsZone for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError> {
        let mut records = HostRecords::default();
        for found in self.sets(host).await? {
            match found.kind {
                Some(kind) => *records.of_mut(kind) = found.values(),
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
        let found = self.sets(host).await?.into_iter().find(|found| found.kind == Some(kind));
        let values = found.as_ref().map(Found::values).unwrap_or_default();
        if !are_same(&values, before) {
            return Err(DnsProviderError::Changed);
        }
        let mut changes = String::new();
        let mut change = |action: &str, set: &str| {
            let _ = write!(
                changes,
                "<Change><Action>{action}</Action><ResourceRecordSet>{set}</ResourceRecordSet></Change>"
            );
        };
        if let Some(found) = &found {
            change("DELETE", &found.xml);
        }
        if !after.is_empty() {
            change("CREATE", &set(host, kind, after, found.as_ref()));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ChangeResourceRecordSetsRequest xmlns=\"{NAMESPACE}\"><ChangeBatch>\
             <Changes>{changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let path = format!("/2013-04-01/hostedzone/{}/rrset/", encoded(&self.id));
        self.calls.call(Method::POST, &path, &[], &body).await.map(|_| ())
    }
}

impl Signed {
    /// Sends one signed request; its query is sorted by name. Returns the body.
    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: &str,
    ) -> Result<String, DnsProviderError> {
        let pairs = query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        let date = basic_date(self.api.clock().now());
        let host = self.api.base().split_once("://").map_or("", |(_, host)| host);
        let authorization = self.authorization(&method, host, path, &query, &date, body);
        let mut headers = HeaderMap::new();
        let malformed = |_| DnsProviderError::Credentials("the access key is none".to_owned());
        headers.insert(AUTHORIZATION, HeaderValue::try_from(authorization).map_err(malformed)?);
        headers.insert("x-amz-date", HeaderValue::try_from(date).map_err(malformed)?);
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        }
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let answer = self.api.call(method, &target, headers, Bytes::from(body.to_owned())).await?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status.is_success() {
            Ok(text)
        } else {
            Err(later(failure(answer.status, &text), self.api.wait_asked_by(&answer)))
        }
    }

    /// Returns the header of Signature Version 4 over host, date and content.
    fn authorization(&self, method: &Method, host: &str, path: &str, query: &str, date: &str, body: &str) -> String {
        let [id, secret] = [&self.credentials.access_key_id, &self.credentials.secret_access_key]
            .map(|text| text.as_deref().unwrap_or_default());
        let content = hex(digest(&SHA256, body.as_bytes()).as_ref());
        let request =
            format!("{method}\n{path}\n{query}\nhost:{host}\nx-amz-date:{date}\n\nhost;x-amz-date\n{content}");
        let day = &date[..8];
        let scope = format!("{day}/{REGION}/route53/aws4_request");
        let signed =
            format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(digest(&SHA256, request.as_bytes()).as_ref()));
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [day, REGION, "route53", "aws4_request"] {
            key = mac(&key, part);
        }
        let signature = hex(&mac(&key, &signed));
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders=host;x-amz-date, Signature={signature}")
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// Returns a time in the form `20260131T091500Z`.
fn basic_date(now: Timestamp) -> String {
    let text = now.to_string();
    let seconds: String = text.chars().take(19).filter(|character| !matches!(character, '-' | ':')).collect();
    format!("{seconds}Z")
}

/// Maps an error to its cause: errors of credentials have status 400 or 403.
fn failure(status: StatusCode, text: &str) -> DnsProviderError {
    let code = text_of(text, "Code").unwrap_or_default();
    let message = text_of(text, "Message").unwrap_or_default();
    let words = bounded(&if code.is_empty() { message.clone() } else { format!("{message} ({code})") });
    if CREDENTIAL_CODES.contains(&code.as_str()) {
        return DnsProviderError::Credentials(words);
    }
    match code.as_str() {
        "Throttling" | "PriorRequestNotComplete" | "ServiceUnavailable" | "RequestExpired" => {
            DnsProviderError::Away(words)
        }
        // A set to be removed is gone, or one to be added exists already.
        _ if message.contains("but it already exists") || message.contains("but it was not found") => {
            DnsProviderError::Changed
        }
        _ => refusal(status, Some(words)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use messaging_core::ports::clock::SystemClock;
    use messaging_core::ports::fetch::NoFetch;

    use super::*;

    #[test]
    fn a_date_is_basic() {
        assert_eq!(basic_date(Timestamp::from_millis(1_769_850_900_000)), "20260131T091500Z");
    }

    /// Computed by a program of its own, which also computes the published example of Amazon's test suite
    /// (`get-vanilla`) with the same key and date.
    #[test]
    fn a_request_is_signed_as_amazon_does() {
        let credentials = serde_json::json!({"access_key_id": "AKIDEXAMPLE",
            "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"});
        let signed = Signed {
            api: Api::new(Arc::new(NoFetch), BASE.to_owned(), Arc::new(SystemClock)),
            credentials: serde_json::from_value(credentials).unwrap(),
        };
        let (path, query) = ("/2013-04-01/hostedzonesbyname", "dnsname=acme.test&maxitems=20");
        let header = signed.authorization(&Method::GET, "route53.amazonaws.com", path, query, "20150830T123600Z", "");
        assert_eq!(
            header,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/route53/aws4_request, SignedHeaders=host;x-amz-date, \
             Signature=e3dcc06efc8f8b963525526be60ccbae8d89fb63b7797c08c4ff62e98befe11c"
        );
    }

    #[test]
    fn what_stays_in_a_set_is_written_as_it_was_read() {
        let before = "<Name>bounce.acme.test.</Name><Type>TXT</Type><TTL>300</TTL><ResourceRecords><ResourceRecord><Value>\
                      &quot;a\\073b&quot; &quot;\\374&quot;</Value></ResourceRecord><ResourceRecord><Value>&quot;old&quot;</Value>\
                      </ResourceRecord></ResourceRecords>";
        let found = read(before);
        assert_eq!(found.values(), ["a;b\u{fffd}", "old"]);
        let after = [found.values()[0].clone(), "new".to_owned()];
        assert_eq!(
            set("bounce.acme.test", RecordType::Txt, &after, Some(&found)),
            before.replace("&quot;old&quot;", "&quot;new&quot;")
        );
    }

    #[test]
    fn errors_are_told_apart_by_their_code() {
        let error = |code: &str| {
            format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>No.</Message></Error></ErrorResponse>"
            )
        };
        let credentials = DnsProviderError::Credentials("No. (SignatureDoesNotMatch)".to_owned());
        assert_eq!(failure(StatusCode::FORBIDDEN, &error("SignatureDoesNotMatch")), credentials);
        assert_eq!(
            failure(StatusCode::BAD_REQUEST, &error("Throttling")),
            DnsProviderError::Away("No. (Throttling)".to_owned())
        );
        let batch = "<InvalidChangeBatch><Messages><Message>Tried to create resource record set [name='a.', type='TXT'] but \
                     it already exists</Message></Messages></InvalidChangeBatch>";
        assert_eq!(failure(StatusCode::BAD_REQUEST, batch), DnsProviderError::Changed);
    }
}
