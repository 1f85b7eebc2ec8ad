//! Fake of Hetzner's Cloud API, version 1.

use serde_json::{Value, json};

use super::{FakeDnsRecord, FakeDnsZone, Obstacle, is_quoted, parameter, parts};
use crate::fakes::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, fresh};

/// The id of the zone.
const ZONE: u64 = 42;

/// A project with one zone.
#[derive(Debug, Clone)]
pub struct FakeHetzner {
    token: String,
    zone: FakeDnsZone,
}

impl FakeHetzner {
    /// Creates a project that the token opens.
    pub fn new(token: &str, zone: FakeDnsZone) -> Self {
        Self { token: token.to_owned(), zone }
    }

    fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        if request.header("authorization") != format!("Bearer {}", self.token) {
            return error(401, "unauthorized", "unable to authenticate");
        }
        let id = ZONE.to_string();
        match (request.method.as_str(), parts(request).as_slice()) {
            ("GET", ["zones"]) => {
                let is_it = parameter(request, "name") == *self.zone.name;
                let zone = is_it.then(|| json!({"id": ZONE, "name": &*self.zone.name, "mode": "primary"}));
                FakeAnswer::json(200, &json!({"zones": zone.into_iter().collect::<Vec<_>>()}))
            }
            (_, ["zones", zone, ..]) if **zone != *id => error(404, "not_found", "zone not found"),
            ("GET", [_, _, "rrsets"]) => {
                FakeAnswer::json(200, &json!({"rrsets": self.sets(&parameter(request, "name"))}))
            }
            ("POST", [_, _, "rrsets"]) => {
                let body = request.json();
                let text = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
                let (label, kind) = (text("name"), text("type"));
                if body["ttl"].as_u64().is_some_and(|ttl| ttl < 60) || label.ends_with(&*self.zone.name) {
                    return error(422, "invalid_input", "invalid input in field 'name'");
                }
                if !self.zone.values(&self.zone.full(&label), &kind).is_empty() {
                    return error(409, "uniqueness_error", "RRSet already exists");
                }
                self.put(&label, &kind, &body["records"], 201)
            }
            ("POST", [_, _, "rrsets", label, kind, "actions", "set_records"]) => {
                if self.zone.values(&self.zone.full(label), kind).is_empty() {
                    return error(404, "not_found", "rrset not found");
                }
                self.put(label, kind, &request.json()["records"], 201)
            }
            ("DELETE", [_, _, "rrsets", label, kind]) => {
                self.zone.remove(&self.zone.full(label), kind);
                FakeAnswer::json(201, &action())
            }
            _ => error(404, "not_found", "not found"),
        }
    }

    fn put(&self, label: &str, kind: &str, records: &Value, status: u16) -> FakeAnswer {
        let values = records.as_array().into_iter().flatten().filter_map(|record| record["value"].as_str());
        let values: Vec<_> = values.map(ToOwned::to_owned).collect();
        let is_right = |value: &String| match kind {
            "TXT" => is_quoted(value),
            "MX" => value
                .split_once(' ')
                .is_some_and(|(preference, host)| preference.parse::<u16>().is_ok() && host.ends_with('.')),
            "CNAME" => value.ends_with('.'),
            _ => false,
        };
        let host = self.zone.full(label);
        if values.is_empty() || !values.iter().all(is_right) {
            return error(422, "invalid_input", "invalid input in field 'records'");
        }
        self.zone.remove(&host, kind);
        if self.zone.obstacle(&host, kind, "") == Some(Obstacle::Alias) {
            return error(409, "conflict", "CNAME RRSets cannot exist beside others");
        }
        for value in values {
            let record = FakeDnsRecord { id: fresh(), host: host.clone(), kind: kind.to_owned(), value };
            self.zone.lock().push(record);
        }
        FakeAnswer::json(status, &action())
    }

    fn sets(&self, label: &str) -> Vec<Value> {
        let records = self.zone.at(&self.zone.full(label));
        let mut kinds: Vec<_> = records.iter().map(|record| record.kind.clone()).collect();
        kinds.sort();
        kinds.dedup();
        let set = |kind: String| {
            let values = records.iter().filter(|record| record.kind == kind);
            let values: Vec<_> = values.map(|record| json!({"value": record.value, "comment": ""})).collect();
            json!({"id": format!("{label}/{kind}"), "name": label, "type": kind, "ttl": null, "records": values})
        };
        kinds.into_iter().map(set).collect()
    }
}

fn action() -> Value {
    json!({"action": {"id": 1, "command": "set_rrset_records", "status": "success", "progress": 100, "error": null}})
}

fn error(status: u16, code: &str, message: &str) -> FakeAnswer {
    FakeAnswer::json(status, &json!({"error": {"code": code, "message": message, "details": null}}))
}

impl FakeApi for FakeHetzner {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        Err(self.answer(request))
    }

    fn accepted(&self, _: &Submission) -> FakeAnswer {
        FakeAnswer::json(200, &json!({}))
    }

    fn refused(&self, _: &Submission, _: Refusal) -> FakeAnswer {
        error(422, "invalid_input", "invalid")
    }
}
