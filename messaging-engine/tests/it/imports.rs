//! Contract section 6.4: contacts from a file.

mod files;
mod rows;

use std::time::Duration;

use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use messaging_engine::ops::imports::ImportView;
use messaging_engine::{App, Error};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};

const HOUR: Duration = Duration::from_hours(1);

/// A workspace that files are imported into.
struct ImportFixture {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
}

impl ImportFixture {
    async fn new() -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        Self { bed, workspace, owner }
    }

    fn contacts(&self) -> String {
        format!("/workspaces/{}/contacts", self.workspace)
    }

    /// Announces a file; `more` are members of the request that replace the usual ones.
    async fn announce(&self, file: &[u8], more: Value) -> Reply {
        self.bed.post(&self.owner, &format!("{}/import", self.contacts()), announcement(file, more)).await
    }

    /// An import as the API shows it.
    async fn look(&self, import: &Value) -> Reply {
        let path = format!("{}/imports/{}", self.contacts(), import["import_id"].as_str().unwrap());
        self.bed.get(&self.owner, &path).await
    }

    /// The lines of the report, without the header.
    async fn errors(&self, import: &Value) -> Vec<String> {
        let path = format!("{}/imports/{}/errors", self.contacts(), import["import_id"].as_str().unwrap());
        let reply = self.bed.get(&self.owner, &path).await;
        let mut lines = reply.body.as_str().unwrap().split_terminator("\r\n");
        assert_eq!(lines.next(), Some("row,column,code,message"));
        lines.map(ToOwned::to_owned).collect()
    }

    /// Imports a file to its end, and returns the import.
    async fn import(&self, text: &[u8], more: Value) -> Value {
        let announced = self.announce(text, more).await;
        assert_eq!(announced.summary(), "200");
        let uploaded = upload(&self.bed.app, &announced.body, text).await.unwrap();
        assert_eq!(uploaded["status"], "processing");
        self.bed.app.run_until_idle().await.unwrap();
        self.look(&announced.body).await.body
    }

    /// The contacts, oldest first.
    async fn all(&self) -> Vec<Value> {
        let page = self.bed.get(&self.owner, &format!("{}?limit=200", self.contacts())).await;
        page["data"].as_array().unwrap().iter().rev().cloned().collect()
    }

    /// Names of the uploaded files that wait to be read.
    fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.bed.directory.path().join("uploads")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

pub(crate) fn announcement(file: &[u8], more: Value) -> Value {
    let mut body = json!({"filename": "contacts.csv", "size_bytes": file.len(), "sha256": sha256(file)});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The token of the upload link.
fn token(import: &Value) -> String {
    import["upload_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

/// Sends a file as a server would pass it on, in small pieces.
pub(crate) async fn upload(app: &App, import: &Value, file: &[u8]) -> Result<Value, Error> {
    send(app, &token(import), file).await
}

async fn send(app: &App, token: &str, file: &[u8]) -> Result<Value, Error> {
    let mut uploading = app.receive_upload(token, None).await?;
    for piece in file.chunks(100_000) {
        uploading.add(piece).await?;
    }
    Ok(serde_json::to_value(ImportView::of(uploading.finish().await?, app.now(), None)).unwrap())
}

#[tokio::test]
async fn a_file_becomes_contacts() {
    let fixture = ImportFixture::new().await;
    let text = "\u{feff}E-Mail;phone;Plan;tags;consent.marketing_email;Notes\r\n\
                Ann@Example.com;+14155550123;pro;vip|beta;yes;none\r\n\
                bob@example.com;;free;;;\r\n"
        .as_bytes();
    let announced =
        fixture.announce(text, json!({"mapping": {"E-Mail": "email", "Plan": "attributes.plan", "Notes": null}})).await;
    assert_eq!(announced.summary(), "200");
    let link = announced["upload_url"].as_str().unwrap().to_owned();
    assert!(link.starts_with("https://track.service.test/uploads/"), "{link}");
    let id = announced["import_id"].as_str().unwrap();
    assert_eq!(
        announced.body,
        json!({"import_id": id, "status": "awaiting_upload", "filename": "contacts.csv", "size_bytes": text.len(),
            "upload_url": link, "upload_method": "PUT", "upload_headers": {"Content-Type": "text/csv"},
            "expires_at": "2026-01-31T10:15:00.000Z", "total_rows": null, "created": 0, "updated": 0, "failed": 0,
            "failure_reason": null, "created_at": "2026-01-31T09:15:00.000Z", "finished_at": null})
    );
    assert_eq!(upload(&fixture.bed.app, &announced.body, text).await.unwrap()["status"], "processing");
    fixture.bed.clock.advance(Duration::from_secs(1));
    fixture.bed.app.run_until_idle().await.unwrap();

    let import = fixture.look(&announced.body).await.body;
    assert_eq!((&import["status"], &import["finished_at"]), (&json!("completed"), &json!("2026-01-31T09:15:01.000Z")));
    assert_eq!((&import["total_rows"], &import["created"], &import["failed"]), (&json!(2), &json!(2), &json!(0)));
    assert_eq!(import["upload_url"], Value::Null);
    let contacts = fixture.all().await;
    assert_eq!(contacts[0]["email"], "ann@example.com");
    assert_eq!(contacts[0]["phone"], "+14155550123");
    assert_eq!(contacts[0]["attributes"], json!({"plan": "pro"}));
    assert_eq!(contacts[0]["tags"], json!(["vip", "beta"]));
    assert_eq!(contacts[0]["consent"], json!({"marketing_email": true, "sms": null}));
    assert_eq!(contacts[1]["email"], "bob@example.com");
    assert_eq!(fixture.errors(&import).await, [""; 0]);
    assert_eq!(fixture.files(), [""; 0], "the file is gone once it is read");
}

#[tokio::test]
async fn what_is_announced_is_checked() {
    let fixture = ImportFixture::new().await;
    for (more, expected) in [
        (json!({"filename": ""}), "422 /filename required"),
        (json!({"filename": null}), "422 /filename required"),
        (json!({"filename": "x".repeat(256)}), "422 /filename too_long"),
        (json!({"size_bytes": 0}), "422 /size_bytes out_of_range"),
        (json!({"size_bytes": 104_857_601}), "422 /size_bytes out_of_range"),
        (json!({"size_bytes": "1"}), "422 /size_bytes invalid_type"),
        (json!({"sha256": "x".repeat(64)}), "422 /sha256 invalid_format"),
        (json!({"sha256": "ab"}), "422 /sha256 invalid_format"),
        (json!({"sha256": null}), "422 /sha256 required"),
        (
            json!({"mapping": {"a/b": "name", "B": "email", "C": "attributes.1"}}),
            "422 /mapping/C unknown_value /mapping/a~1b unknown_value",
        ),
        (json!({"mapping": {"A": 1}}), "422 /mapping/A invalid_type"),
        (json!({"mapping": []}), "422 /mapping invalid_type"),
        (json!({"dedup_keys": []}), "422 /dedup_keys too_short"),
        (json!({"dedup_keys": ["email", "email"]}), "422 /dedup_keys/1 duplicate"),
        (json!({"dedup_keys": ["email", "name"]}), "422 /dedup_keys/1 unknown_value"),
    ] {
        assert_eq!(fixture.announce(b"email\n", more.clone()).await.summary(), expected, "{more}");
    }
    let most: serde_json::Map<_, _> = (0..1001).map(|n| (n.to_string(), json!("tags"))).collect();
    assert_eq!(fixture.announce(b"email\n", json!({"mapping": most})).await.summary(), "422 /mapping too_many_items");
    let long = json!({"mapping": {"x".repeat(65 << 10): "tags"}});
    assert_eq!(fixture.announce(b"email\n", long).await.summary(), "422 /mapping too_large");
    for more in
        [json!({"sha256": "AB".repeat(32), "size_bytes": 104_857_600}), json!({"mapping": null, "dedup_keys": null})]
    {
        assert_eq!(fixture.announce(b"email\n", more).await.summary(), "200");
    }
}

#[tokio::test]
async fn imports_are_listed_and_shown_with_care() {
    let fixture = ImportFixture::new().await;
    let first = fixture.announce(b"email\na@example.com\n", json!({})).await.body;
    let second = fixture.announce(b"email\n", json!({})).await.body;
    let list = format!("{}/imports", fixture.contacts());
    let page = fixture.bed.get(&fixture.owner, &format!("{list}?limit=1")).await;
    assert_eq!(page["data"], json!([second]));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = fixture.bed.get(&fixture.owner, &format!("{list}?limit=1&cursor={cursor}")).await;
    assert_eq!((&rest["data"], &rest["next_cursor"]), (&json!([first]), &Value::Null));

    // The link gives the right to change contacts.
    let reader = fixture.bed.key(fixture.workspace, &["contacts:read"]).await;
    let path = format!("{list}/{}", first["import_id"].as_str().unwrap());
    assert_eq!(fixture.bed.get(&reader, &path).await["upload_url"], Value::Null);
    let writer = fixture.bed.key(fixture.workspace, &["contacts:write"]).await;
    assert_eq!(fixture.bed.get(&writer, &path).await["upload_url"], first["upload_url"]);
    assert_eq!(
        fixture.bed.post(&reader, &format!("{}/import", fixture.contacts()), json!({})).await.summary(),
        "403 scope required: contacts:write"
    );

    for unknown in ["imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "imp_1", "nobody"] {
        assert_eq!(fixture.bed.get(&fixture.owner, &format!("{list}/{unknown}")).await.summary(), "404 not_found");
        let errors = format!("{list}/{unknown}/errors");
        assert_eq!(fixture.bed.get(&fixture.owner, &errors).await.summary(), "404 not_found");
    }
}
