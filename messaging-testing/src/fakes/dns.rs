//! Fake DNS providers: one zone of one account, in the form of each API.

mod cloudflare;
mod digitalocean;
mod hetzner;
mod route53;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::FakeRequest;

pub use cloudflare::FakeCloudflare;
pub use digitalocean::FakeDigitalOcean;
pub use hetzner::FakeHetzner;
pub use route53::FakeRoute53;

/// Maximum octets of one string of a TXT record.
const MAX_STRING: usize = 255;

/// A zone at a provider. Clones share it, so that a test sees the records that were written.
#[derive(Debug, Clone)]
pub struct FakeDnsZone {
    name: Arc<str>,
    records: Arc<Mutex<Vec<FakeDnsRecord>>>,
}

/// A record as the provider stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeDnsRecord {
    /// The provider's id of it.
    pub id: u64,
    /// Full name without a final dot.
    pub host: String,
    /// Its type, such as `TXT`.
    pub kind: String,
    /// Its value as the API shows it; for an MX record with the preference in front.
    pub value: String,
}

impl FakeDnsZone {
    /// Creates a zone without records.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), records: Arc::default() }
    }

    /// Adds a record, with its value as the API shows it.
    pub fn add(&self, host: &str, kind: &str, value: &str) {
        let (host, kind, value) = (host.to_owned(), kind.to_owned(), value.to_owned());
        self.lock().push(FakeDnsRecord { id: super::fresh(), host, kind, value });
    }

    /// Returns the values of a type at a name, as the API shows them.
    pub fn values(&self, host: &str, kind: &str) -> Vec<String> {
        self.at(host).into_iter().filter(|record| record.kind == kind).map(|record| record.value).collect()
    }

    fn at(&self, host: &str) -> Vec<FakeDnsRecord> {
        self.lock().iter().filter(|record| record.host == host).cloned().collect()
    }

    fn remove(&self, host: &str, kind: &str) {
        self.lock().retain(|record| record.host != host || record.kind != kind);
    }

    fn holds(&self, host: &str) -> bool {
        host.strip_suffix(&*self.name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Returns a label below the zone as a full name.
    fn full(&self, label: &str) -> String {
        if label == "@" { self.name.to_string() } else { format!("{label}.{}", self.name) }
    }

    /// Returns a full name as a label below the zone.
    fn label(&self, host: &str) -> String {
        host.strip_suffix(&*self.name).and_then(|rest| rest.strip_suffix('.')).unwrap_or("@").to_owned()
    }

    /// Returns the reason why a record cannot be added to the existing ones.
    fn obstacle(&self, host: &str, kind: &str, value: &str) -> Option<Obstacle> {
        let there = self.at(host);
        if there.iter().any(|record| record.kind == kind && record.value == value) {
            return Some(Obstacle::Duplicate);
        }
        let is_alone = kind == "CNAME" && !there.is_empty();
        (is_alone || there.iter().any(|record| record.kind == "CNAME")).then_some(Obstacle::Alias)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FakeDnsRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason why a record is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// The same record exists.
    Duplicate,
    /// A name with an alias has no other records.
    Alias,
}

/// Returns true if a text is one or more strings in quotation marks, each within the maximum length.
fn is_quoted(text: &str) -> bool {
    let (mut rest, mut strings) = (text.trim(), 0);
    while let Some(body) = rest.strip_prefix('"') {
        let (mut end, mut length, mut escaped) = (None, 0, false);
        for (at, octet) in body.bytes().enumerate() {
            match octet {
                b'\\' if !escaped => escaped = true,
                b'"' if !escaped => {
                    end = Some(at);
                    break;
                }
                _ => (length, escaped) = (length + 1, false),
            }
        }
        let Some(end) = end.filter(|_| length <= MAX_STRING) else { return false };
        rest = body[end + 1..].trim_start();
        strings += 1;
    }
    strings > 0 && rest.is_empty()
}

/// Returns a parameter of the query; empty if it is absent.
fn parameter(request: &FakeRequest, name: &str) -> String {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes())
        .find_map(|(found, value)| (found == name).then(|| value.into_owned()))
        .unwrap_or_default()
}

/// Returns the parts of the path.
fn parts(request: &FakeRequest) -> Vec<&str> {
    request.path().split('/').filter(|part| !part.is_empty()).collect()
}

/// Returns the items of a page, by the parameters `page` and `per_page`.
fn page<T>(request: &FakeRequest, items: Vec<T>, usual: usize) -> Vec<T> {
    let number = |name: &str| parameter(request, name).parse::<usize>().ok().filter(|number| *number > 0);
    let (page, size) = (number("page").unwrap_or(1), number("per_page").unwrap_or(usual));
    items.into_iter().skip((page - 1) * size).take(size).collect()
}
