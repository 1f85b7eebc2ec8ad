//! Fake of `DigitalOcean`'s API, version 2.

use serde_json::{Value, json};

use super::{FakeDnsRecord, FakeDnsZone, Obstacle, page, parameter, parts};
use crate::fakes::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, fresh};

/// An account with one domain.
#[derive(Debug, Clone)]
pub struct FakeDigitalOcean {
    token: String,
    zone: FakeDnsZone,
}

impl FakeDigitalOcean {
    /// Creates an account that the token opens.
    pub fn new(token: &str, zone: FakeDnsZone) -> Self {
        Self { token: token.to_owned(), zone }
    }

    fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        if request.header("authorization") != format!("Bearer {}", self.token) {
            return error(401, "unauthorized", "Unable to authenticate you");
        }
        match (request.method.as_str(), parts(request).as_slice()) {
            (_, ["domains", name, ..]) if **name != *self.zone.name => {
                error(404, "not_found", "The resource you requested could not be found.")
            }
            ("GET", ["domains", name]) => FakeAnswer::json(200, &json!({"domain": {"name": name, "ttl": 1800}})),
            ("GET", [_, _, "records"]) => {
                let found = page(request, self.zone.at(&parameter(request, "name")), 20);
                let shown: Vec<_> = found.iter().map(|record| self.shown(record)).collect();
                FakeAnswer::json(200, &json!({"domain_records": shown, "links": {}, "meta": {"total": shown.len()}}))
            }
            ("POST", [_, _, "records"]) => self.put(&request.json(), None),
            ("PATCH", [_, _, "records", id]) => self.put(&request.json(), id.parse().ok()),
            ("DELETE", [_, _, "records", id]) => {
                self.zone.lock().retain(|record| record.id.to_string() != *id);
                FakeAnswer::text(204, "application/json", "")
            }
            _ => error(404, "not_found", "The resource you requested could not be found."),
        }
    }

    fn put(&self, body: &Value, in_place_of: Option<u64>) -> FakeAnswer {
        let text = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
        let (label, kind, data) = (text("name"), text("type"), text("data"));
        // Names are below the domain, so that a full one would be doubled.
        let is_name = !label.is_empty() && !label.ends_with('.') && !label.ends_with(&*self.zone.name);
        let value = match kind.as_str() {
            "TXT" if !data.is_empty() && !data.starts_with('"') => data,
            "MX" if body["priority"].is_u64() && data.ends_with('.') => {
                format!("{} {}", body["priority"], data.trim_end_matches('.'))
            }
            "CNAME" if data.ends_with('.') => data.trim_end_matches('.').to_owned(),
            _ => return error(422, "unprocessable_entity", "Data needs to end with a dot (.)"),
        };
        if !is_name || body["ttl"].as_u64().is_some_and(|ttl| ttl < 30) {
            return error(422, "unprocessable_entity", "Name or TTL is invalid");
        }
        let host = self.zone.full(&label);
        if let Some(id) = in_place_of {
            let mut records = self.zone.lock();
            let Some(record) = records.iter_mut().find(|record| record.id == id) else {
                return error(404, "not_found", "The resource you requested could not be found.");
            };
            record.value = value;
            let record = record.clone();
            drop(records);
            return FakeAnswer::json(200, &json!({"domain_record": self.shown(&record)}));
        }
        match self.zone.obstacle(&host, &kind, &value) {
            Some(Obstacle::Duplicate) => error(422, "unprocessable_entity", "Record already exists"),
            Some(Obstacle::Alias) => {
                error(422, "unprocessable_entity", "CNAME records cannot share a name with other records")
            }
            None => {
                let record = FakeDnsRecord { id: fresh(), host, kind, value };
                self.zone.lock().push(record.clone());
                FakeAnswer::json(201, &json!({"domain_record": self.shown(&record)}))
            }
        }
    }

    fn shown(&self, record: &FakeDnsRecord) -> Value {
        let (priority, data) = match record.value.split_once(' ') {
            Some((priority, host)) if record.kind == "MX" => (priority.parse::<u16>().ok(), host),
            _ => (None, record.value.as_str()),
        };
        let data = if record.kind != "TXT" && *data == *self.zone.name { "@" } else { data };
        json!({"id": record.id, "type": record.kind, "name": self.zone.label(&record.host), "data": data,
            "priority": priority, "port": null, "ttl": 3600, "weight": null, "flags": null, "tag": null})
    }
}

fn error(status: u16, id: &str, message: &str) -> FakeAnswer {
    FakeAnswer::json(status, &json!({"id": id, "message": message}))
}

impl FakeApi for FakeDigitalOcean {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        Err(self.answer(request))
    }

    fn accepted(&self, _: &Submission) -> FakeAnswer {
        FakeAnswer::json(200, &json!({}))
    }

    fn refused(&self, _: &Submission, _: Refusal) -> FakeAnswer {
        error(422, "unprocessable_entity", "invalid")
    }
}
