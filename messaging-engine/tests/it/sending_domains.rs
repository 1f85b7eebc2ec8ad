//! Sending domains, from the first record to the last.

mod auto_dns;
mod checks;
mod keys;
mod names;
mod reports;
mod verification;

use std::collections::HashMap;
use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::mail::dkim::{Algorithm, generate};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::domain::mail::sending_domain::{Check, DkimKey, SendingDomain};
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::resolver::{LookupError, Resolver};
use messaging_core::ports::store::Priority;
use messaging_engine::caller::Caller;
use messaging_testing::MemoryDnsProvider;
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};

/// A DNS in memory: records by type and name. A value of `!` fails, one of `…` never comes.
#[derive(Debug, Default)]
struct FakeDns {
    records: Mutex<HashMap<(&'static str, String), Vec<String>>>,
    questions: Mutex<usize>,
    /// A zone that is asked for names that have no record here.
    zone: Mutex<Option<MemoryDnsProvider>>,
}

impl FakeDns {
    fn set(&self, kind: &'static str, name: &str, values: &[&str]) {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        self.lock().insert((kind, name.to_owned()), values);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(&'static str, String), Vec<String>>> {
        self.records.lock().unwrap()
    }

    fn questions(&self) -> usize {
        *self.questions.lock().unwrap()
    }

    fn published(&self, kind: &str, name: &str) -> Vec<String> {
        let kind = match kind {
            "TXT" => RecordType::Txt,
            "MX" => RecordType::Mx,
            "CNAME" => RecordType::Cname,
            _ => return Vec::new(),
        };
        self.zone.lock().unwrap().as_ref().map(|zone| zone.values(name, kind)).unwrap_or_default()
    }

    async fn ask(&self, kind: &'static str, name: &str) -> Result<Vec<String>, LookupError> {
        *self.questions.lock().unwrap() += 1;
        let known = self.lock().get(&(kind, name.to_owned())).cloned();
        let values = known.unwrap_or_else(|| self.published(kind, name));
        match values.first().map(String::as_str) {
            Some("!") => Err(LookupError("the server answered SERVFAIL".to_owned())),
            Some("…") => pending().await,
            _ => Ok(values),
        }
    }

    /// Publishes every record that the report of a domain requires.
    fn publish(&self, domain: &Value) {
        for key in domain["dkim"].as_array().unwrap() {
            self.set("TXT", key["host"].as_str().unwrap(), &[key["record"].as_str().unwrap()]);
        }
        // Records that the operator of the server has published for it.
        self.set("TXT", "mx.service.test", &["v=spf1 a -all"]);
        self.set("A", "mx.service.test", &["192.0.2.1"]);
        for member in ["spf", "dmarc", "return_path", "tracking"] {
            let Some(host) = domain[member]["host"].as_str() else { continue };
            let kind = if member == "return_path" { "MX" } else { "TXT" };
            let kind = if member == "tracking" { "CNAME" } else { kind };
            self.set(kind, host, &[domain[member]["record"].as_str().unwrap()]);
        }
    }
}

#[async_trait]
impl Resolver for FakeDns {
    async fn txt(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.ask("TXT", name).await
    }

    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, LookupError> {
        let pair = |value: &String| {
            let (preference, host) = value.split_once(' ').unwrap();
            (preference.parse().unwrap(), host.to_owned())
        };
        Ok(self.ask("MX", name).await?.iter().map(pair).collect())
    }

    async fn cname(&self, name: &str) -> Result<Option<String>, LookupError> {
        Ok(self.ask("CNAME", name).await?.into_iter().next())
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        Ok(self.ask("A", name).await?.iter().map(|value| value.parse().unwrap()).collect())
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, LookupError> {
        self.ask("PTR", &address.to_string()).await
    }
}

/// A workspace, the operator as a caller, and a DNS.
struct Domains {
    bed: Bed,
    dns: Arc<FakeDns>,
    workspace: WorkspaceId,
    caller: Caller,
}

impl Domains {
    async fn start() -> Self {
        let dns = Arc::new(FakeDns::default());
        let bed = Bed::asking(Arc::clone(&dns) as _);
        messaging_engine::admin::create_user(&bed.app, "owner@acme.com", None, None).await.unwrap();
        let workspace = messaging_engine::admin::create_workspace(&bed.app, "Acme", "owner@acme.com").await.unwrap().id;
        Self { bed, dns, workspace, caller: Caller::Operator(Some(workspace)) }
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}/sending-domains{rest}", self.workspace)
    }

    async fn create(&self, body: Value) -> Reply {
        self.bed.post(&self.caller, &self.path(""), body).await
    }

    /// Stores a domain with an Ed25519 key, as if it had been added: creating RSA keys takes long.
    async fn add(&self, name: &str) -> String {
        let now = self.bed.app.now();
        let mut domain = SendingDomain::new(self.bed.app.new_id(now), self.workspace, name, now);
        domain.tracking_subdomain = Some(format!("links.{name}"));
        let key = generate(Algorithm::Ed25519Sha256, self.bed.app.entropy());
        let selector = "mk01234567".to_owned();
        let place = DkimKey::place(domain.id, &selector);
        domain.dkim.push(DkimKey {
            sealed: self.bed.app.vault().seal(&place, &key.private, self.bed.app.entropy()),
            selector,
            algorithm: Algorithm::Ed25519Sha256,
            public: key.public,
            check: Check::default(),
            created_at: now,
            verified_at: None,
        });
        self.put(domain).await
    }

    async fn put(&self, domain: SendingDomain) -> String {
        let id = domain.id.to_string();
        let job = messaging_engine::jobs::verify_domain::VerifyDomain::of(&domain);
        let now = self.bed.app.now();
        let job = job.first(self.bed.app.new_id(now), &domain, now);
        let writes = [Write::put(domain, Expect::Absent), Write::Job(JobWrite::Enqueue(job))];
        self.bed.store.commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();
        id
    }

    async fn get(&self, id: &str) -> Value {
        let reply = self.bed.get(&self.caller, &self.path(&format!("/{id}"))).await;
        assert_eq!(reply.summary(), "200");
        reply.body
    }

    async fn act(&self, id: &str, action: &str) -> Reply {
        self.bed.post(&self.caller, &self.path(&format!("/{id}/{action}")), json!({})).await
    }

    async fn verify(&self, id: &str) -> Value {
        let reply = self.act(id, "verify").await;
        assert_eq!(reply.summary(), "200");
        reply.body
    }

    /// The record as it is stored.
    async fn stored(&self, id: &str) -> SendingDomain {
        self.bed.store.domain(self.workspace, id.parse().unwrap()).await.unwrap().unwrap().record
    }
}

#[tokio::test]
async fn a_new_domain_tells_what_to_publish() {
    let domains = Domains::start().await;
    let body = json!({"domain": " Acme.TEST. ", "tracking_subdomain": "Links"});
    let created = domains.create(body.clone()).await;
    assert_eq!(created.summary(), "201");
    let shown = created.body.clone();
    assert_eq!(domains.get(shown["id"].as_str().unwrap()).await, shown);
    let listed = domains.bed.get(&domains.caller, &domains.path("")).await;
    assert_eq!(listed["data"], json!([shown]));
    insta::assert_json_snapshot!(shown, {
        ".id" => "dom_…",
        ".dkim[].selector" => insta::dynamic_redaction(|value, _| selector(value.as_str().unwrap())),
        ".dkim[].host" => insta::dynamic_redaction(|value, _| {
            let (label, rest) = value.as_str().unwrap().split_once('.').unwrap();
            format!("{}.{rest}", selector(label))
        }),
        ".dmarc.record" => insta::dynamic_redaction(|value, _| without_key(value.as_str().unwrap())),
        ".dkim[].record" => insta::dynamic_redaction(|value, _| without_key(value.as_str().unwrap())),
    }, @r#"
    {
      "click_tracking": true,
      "created_at": "2026-01-31T09:15:00.000Z",
      "dkim": [
        {
          "detail": null,
          "host": "mk########._domainkey.acme.test",
          "record": "v=DKIM1; k=rsa; p=(392)",
          "selector": "mk########",
          "status": "pending",
          "type": "TXT"
        },
        {
          "detail": null,
          "host": "mk########._domainkey.acme.test",
          "record": "v=DKIM1; k=ed25519; p=(44)",
          "selector": "mk########",
          "status": "pending",
          "type": "TXT"
        }
      ],
      "dmarc": {
        "detail": null,
        "host": "_dmarc.acme.test",
        "record": "v=DMARC1; p=none; rua=mailto:dmarc+(42)@bounce.mx.service.test",
        "status": "pending",
        "type": "TXT"
      },
      "domain": "acme.test",
      "id": "dom_…",
      "ip_pool_id": null,
      "last_checked_at": null,
      "marketing_ip_pool_id": null,
      "open_tracking": true,
      "require_tls": false,
      "return_path": {
        "detail": null,
        "host": "bounce.acme.test",
        "record": "10 mx.service.test",
        "status": "pending",
        "type": "MX"
      },
      "spf": {
        "detail": null,
        "host": "bounce.acme.test",
        "record": "v=spf1 include:mx.service.test ~all",
        "status": "pending",
        "type": "TXT"
      },
      "status": "pending",
      "tracking": {
        "detail": null,
        "host": "links.acme.test",
        "record": "track.service.test",
        "status": "pending",
        "type": "CNAME"
      },
      "tracking_subdomain": "links.acme.test",
      "verified_at": null
    }
    "#);
    let path = domains.path(&format!("/{}/records", shown["id"].as_str().unwrap()));
    let records = domains.bed.get(&domains.caller, &path).await;
    assert_eq!(records["next_cursor"], Value::Null);
    let lines: Vec<_> = records["data"].as_array().unwrap().iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    dkim TXT mk########._domainkey.acme.test v=DKIM1; k=rsa; p=(392) required pending
    dkim TXT mk########._domainkey.acme.test v=DKIM1; k=ed25519; p=(44) required pending
    spf TXT bounce.acme.test v=spf1 include:mx.service.test ~all required pending
    dmarc TXT _dmarc.acme.test v=DMARC1; p=none; rua=mailto:dmarc+(42)@bounce.mx.service.test optional pending
    return_path MX bounce.acme.test 10 mx.service.test optional pending
    tracking CNAME links.acme.test track.service.test optional pending
    tls_rpt TXT _smtp._tls.acme.test v=TLSRPTv1; rua=mailto:tlsrpt+(42)@bounce.mx.service.test optional pending
    ");
    for (record, in_report) in records["data"].as_array().unwrap().iter().zip(shown["dkim"].as_array().unwrap()) {
        assert_eq!((&record["host"], &record["value"]), (&in_report["host"], &in_report["record"]));
    }
    // The same name once more, and in another workspace.
    assert_eq!(domains.create(body).await.summary(), "409 already_exists");
    let other =
        messaging_engine::admin::create_workspace(&domains.bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let caller = Caller::Operator(Some(other));
    let path = format!("/workspaces/{other}/sending-domains");
    let theirs = domains.bed.post(&caller, &path, json!({"domain": "acme.test"})).await;
    assert_eq!(theirs.summary(), "201");
    assert_ne!(theirs["dkim"][0]["selector"], shown["dkim"][0]["selector"]);
    assert_eq!((&theirs["tracking_subdomain"], &theirs["tracking"]), (&Value::Null, &Value::Null));
}

/// Replaces the digits of a well-formed selector (`mk` and eight hexadecimal digits) by `#`; returns any other text
/// unchanged.
fn selector(text: &str) -> String {
    let digits = text.strip_prefix("mk").unwrap_or_default();
    let is_right = digits.len() == 8 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_right { "mk########".to_owned() } else { text.to_owned() }
}

/// The length of a key, or of the token of an address, in its place.
fn without_key(record: &str) -> String {
    if let Some((head, (token, host))) =
        record.split_once('+').and_then(|(head, rest)| Some((head, rest.split_once('@')?)))
    {
        return format!("{head}+({})@{host}", token.len());
    }
    match record.split_once("p=") {
        Some((head, key)) if head.contains("k=") => format!("{head}p=({})", key.len()),
        _ => record.to_owned(),
    }
}

fn line(record: &Value) -> String {
    let host = record["host"].as_str().unwrap();
    let host = host.split_once('.').map_or_else(String::new, |(label, rest)| format!("{}.{rest}", selector(label)));
    let value = without_key(record["value"].as_str().unwrap());
    let text = |member: &str| record[member].as_str().unwrap().to_owned();
    let need = if record["required"] == json!(true) { "required" } else { "optional" };
    [text("purpose"), text("type"), host, value, need.to_owned(), text("status")].join(" ")
}

#[tokio::test]
async fn each_rule_of_a_new_domain() {
    let domains = Domains::start().await;
    domains.add("acme.test").await;
    let long = format!("{0}.{0}.{0}.com", "a".repeat(60));
    for (body, expected) in [
        (json!({}), "422 /domain required"),
        (json!({"domain": ""}), "422 /domain required"),
        (json!({"domain": null}), "422 /domain required"),
        (json!({"domain": 5}), "422 /domain invalid_type"),
        (json!({"domain": "acme"}), "422 /domain invalid_format"),
        (json!({"domain": "a b.com"}), "422 /domain invalid_format"),
        (json!({"domain": "http://acme.com"}), "422 /domain invalid_format"),
        (json!({"domain": long}), "422 /domain too_long"),
        (json!({"domain": "com"}), "422 /domain not_allowed"),
        (json!({"domain": "co.uk"}), "422 /domain not_allowed"),
        (json!({"domain": "github.io"}), "422 /domain not_allowed"),
        (json!({"domain": "GMail.com"}), "422 /domain not_allowed"),
        (json!({"domain": "mail.yahoo.fr"}), "422 /domain not_allowed"),
        (json!({"domain": "sandbox.test"}), "422 /domain not_allowed"),
        (
            json!({"domain": "b.test", "tracking_subdomain": "links.acme.test"}),
            "422 /tracking_subdomain invalid_format",
        ),
        (json!({"domain": "b.test", "tracking_subdomain": "_x"}), "422 /tracking_subdomain invalid_format"),
        (json!({"domain": "b.test", "tracking_subdomain": "bounce"}), "422 /tracking_subdomain not_allowed"),
        (json!({"domain": "com", "tracking_subdomain": 7}), "422 /domain not_allowed /tracking_subdomain invalid_type"),
        (json!({"domain": "ACME.test"}), "409 already_exists"),
    ] {
        let reply = domains.create(body.clone()).await;
        assert_eq!(reply.summary(), expected, "{body}");
    }
    let nowhere = WorkspaceId::from_bytes([9; 16]);
    let path = format!("/workspaces/{nowhere}/sending-domains");
    let reply = domains.bed.post(&Caller::Operator(Some(nowhere)), &path, json!({"domain": "b.test"})).await;
    assert_eq!(reply.summary(), "404 not_found");
}

#[tokio::test]
async fn tracking_is_changed_and_its_host_looked_at_anew() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    assert_eq!(domains.verify(&id).await["tracking"]["status"], "verified");
    let patch =
        async |id: &str, body: Value| domains.bed.patch(&domains.caller, &domains.path(&format!("/{id}")), body).await;
    let kept = patch(&id, json!({"open_tracking": false, "tracking_subdomain": "links"})).await;
    assert_eq!(kept["tracking"]["status"], "verified");
    assert_eq!((&kept["open_tracking"], &kept["click_tracking"]), (&json!(false), &json!(true)));
    let moved = patch(&id, json!({"click_tracking": false, "tracking_subdomain": "t.acme.test"})).await;
    assert_eq!(
        moved["tracking"],
        json!({"record": "track.service.test", "status": "pending", "type": "CNAME",
        "host": "t.acme.test", "detail": null})
    );
    assert_eq!(domains.get(&id).await, moved.body);
    let strict = patch(&id, json!({"require_tls": true})).await;
    assert_eq!((&strict["require_tls"], &strict["click_tracking"]), (&json!(true), &json!(false)));
    let cleared = patch(&id, json!({"tracking_subdomain": null})).await;
    assert_eq!((&cleared["tracking_subdomain"], &cleared["tracking"]), (&Value::Null, &Value::Null));
    for (id, body, expected) in [
        (id.as_str(), json!({"tracking_subdomain": "links.other.test"}), "422 /tracking_subdomain invalid_format"),
        (&id, json!({"open_tracking": null}), "422 /open_tracking required"),
        (&id, json!({"require_tls": "yes"}), "422 /require_tls invalid_type"),
        (
            &id,
            json!({"open_tracking": 1, "tracking_subdomain": ""}),
            "422 /open_tracking invalid_type /tracking_subdomain invalid_format",
        ),
        ("dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", json!({"open_tracking": 1}), "404 not_found"),
        ("nobody", json!({}), "404 not_found"),
    ] {
        assert_eq!(patch(id, body.clone()).await.summary(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_deleted_domain_is_gone_for_everybody() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    domains.verify(&id).await;
    let path = domains.path(&format!("/{id}"));
    let stranger = WorkspaceId::from_bytes([9; 16]);
    let foreign = format!("/workspaces/{stranger}/sending-domains/{id}");
    let reply = domains.bed.delete(&Caller::Operator(Some(stranger)), &foreign).await;
    assert_eq!(reply.summary(), "404 not_found");
    assert_eq!(domains.bed.delete(&domains.caller, &path).await.summary(), "204");
    assert_eq!(domains.bed.delete(&domains.caller, &path).await.summary(), "404 not_found");
    for action in ["verify", "rotate-dkim"] {
        assert_eq!(domains.act(&id, action).await.summary(), "404 not_found");
    }
    assert!(domains.bed.app.sending_domains(domains.workspace).await.unwrap().is_empty());
    // The daily checks end with the domain.
    domains.bed.clock.advance(std::time::Duration::from_hours(48));
    let asked = domains.dns.questions();
    domains.bed.app.run_until_idle().await.unwrap();
    assert_eq!(domains.dns.questions(), asked);
    assert_eq!(domains.bed.store.next_due(domains.bed.app.now(), domains.bed.app.monotonic()).await.unwrap(), None);
}

#[tokio::test]
async fn a_workspace_has_no_more_domains_than_are_looked_at() {
    let domains = Domains::start().await;
    let now = domains.bed.app.now();
    let put = |number: usize| {
        let name = format!("d{number}.test");
        Write::put(SendingDomain::new(domains.bed.app.new_id(now), domains.workspace, &name, now), Expect::Absent)
    };
    let many: Changes = (0..999).map(put).collect();
    domains.bed.store.commit(many, Priority::Foreground).await.unwrap();
    let (one, other) =
        tokio::join!(domains.create(json!({"domain": "one.test"})), domains.create(json!({"domain": "other.test"})),);
    let mut summaries = [one.summary(), other.summary()];
    summaries.sort();
    assert_eq!(summaries, ["201", "422 /domain not_allowed"], "of two at the same moment one is too many");
    assert_eq!(domains.create(json!({"domain": "one-more.test"})).await.summary(), "422 /domain not_allowed");
    assert_eq!(domains.bed.app.sending_domains(domains.workspace).await.unwrap().len(), 1000);
}
