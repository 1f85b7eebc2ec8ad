//! Fake of Cloudflare's API, version 4.

use serde_json::{Value, json};

use super::{FakeDnsRecord, FakeDnsZone, Obstacle, is_quoted, page, parameter, parts};
use crate::fakes::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, fresh};

/// The id of the zone.
const ZONE: &str = "023e105f4ecef8ad9ca31a8372d0c353";

/// An account with one zone.
#[derive(Debug, Clone)]
pub struct FakeCloudflare {
    token: String,
    zone: FakeDnsZone,
}

impl FakeCloudflare {
    /// Creates an account that the token opens.
    pub fn new(token: &str, zone: FakeDnsZone) -> Self {
        Self { token: token.to_owned(), zone }
    }

    fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        match request.header("authorization").strip_prefix("Bearer ") {
            None => return error(400, 6003, "Invalid request headers"),
            Some(token) if token != self.token => return error(403, 9109, "Invalid access token"),
            Some(_) => {}
        }
        match (request.method.as_str(), parts(request).as_slice()) {
            ("GET", ["zones"]) => {
                let is_it = parameter(request, "name") == *self.zone.name;
                done(&json!(
                    is_it.then(|| json!({"id": ZONE, "name": &*self.zone.name})).into_iter().collect::<Vec<_>>()
                ))
            }
            (_, ["zones", zone, ..]) if *zone != ZONE => error(404, 7003, "Could not route to the zone"),
            ("GET", [_, _, "dns_records"]) => {
                let found = page(request, self.zone.at(&parameter(request, "name")), 100);
                done(&found.iter().map(shown).collect())
            }
            ("POST", [_, _, "dns_records"]) => self.put(&request.json(), None),
            ("PATCH", [_, _, "dns_records", id]) => self.put(&request.json(), id.parse().ok()),
            ("DELETE", [_, _, "dns_records", id]) => {
                self.zone.lock().retain(|record| record.id.to_string() != *id);
                done(&json!({"id": id}))
            }
            _ => error(404, 7003, "Could not route"),
        }
    }

    /// Adds a record, or replaces the one with this id.
    fn put(&self, body: &Value, in_place_of: Option<u64>) -> FakeAnswer {
        let text = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
        let (host, kind, content) = (text("name"), text("type"), text("content"));
        let ttl = body["ttl"].as_u64().unwrap_or(1);
        if !self.zone.holds(&host) || !(ttl == 1 || (60..=86_400).contains(&ttl)) {
            return error(400, 9000, "DNS name or TTL is invalid.");
        }
        let value = match kind.as_str() {
            "TXT" if is_quoted(&content) => content,
            "MX" if body["priority"].is_u64() && !content.contains(' ') => format!("{} {content}", body["priority"]),
            "CNAME" if body["proxied"] == false => content,
            _ => return error(400, 1004, "DNS Validation Error"),
        };
        if let Some(id) = in_place_of {
            let mut records = self.zone.lock();
            let Some(record) = records.iter_mut().find(|record| record.id == id) else {
                return error(404, 81044, "Record does not exist.");
            };
            record.value = value;
            return done(&shown(record));
        }
        match self.zone.obstacle(&host, &kind, &value) {
            Some(Obstacle::Duplicate) => error(400, 81058, "An identical record already exists."),
            Some(Obstacle::Alias) => error(400, 81053, "An A, AAAA, or CNAME record with that host already exists."),
            None => {
                let record = FakeDnsRecord { id: fresh(), host, kind, value };
                self.zone.lock().push(record.clone());
                done(&shown(&record))
            }
        }
    }
}

fn shown(record: &FakeDnsRecord) -> Value {
    let (priority, content) = match record.value.split_once(' ') {
        Some((priority, host)) if record.kind == "MX" => (priority.parse::<u16>().ok(), host),
        _ => (None, record.value.as_str()),
    };
    json!({"id": record.id.to_string(), "name": record.host, "type": record.kind, "content": content, "ttl": 3600,
        "priority": priority})
}

fn done(result: &Value) -> FakeAnswer {
    FakeAnswer::json(200, &json!({"success": true, "errors": [], "messages": [], "result": result}))
}

fn error(status: u16, code: u32, message: &str) -> FakeAnswer {
    let errors = [json!({"code": code, "message": message})];
    FakeAnswer::json(status, &json!({"success": false, "errors": errors, "messages": [], "result": null}))
}

impl FakeApi for FakeCloudflare {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        Err(self.answer(request))
    }

    fn accepted(&self, _: &Submission) -> FakeAnswer {
        done(&Value::Null)
    }

    fn refused(&self, _: &Submission, _: Refusal) -> FakeAnswer {
        error(400, 1004, "DNS Validation Error")
    }
}
