//! Campaigns with the command line.

use serde_json::{Value, json};

use crate::support::{Server, directory, run_page};

#[test]
fn the_example_of_the_page_works_word_for_word() {
    let (data, work) = (directory(), directory());
    let server = Server::dev(data.path());
    let (told, said) = run_page(&server, work.path(), "campaigns.md");
    for expected in [
        "3 created, 0 updated, 0 refused",
        "sent: 2 recipients, 2 sent, 2 delivered, 0 bounced, 0 failed, 0 cancelled, 1 skipped",
        "cid@example.com",
        "no_consent",
        "Season",
        "Price",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}\n{said}");
    }
}

/// A server with a contact on a list and a template, and the flags of a campaign to it.
fn prepared(server: &Server) -> (String, String) {
    let made = |line: &[&str]| {
        let made = server.command(&[line, &["--json"]].concat()).expect(0).json();
        made["id"].as_str().unwrap().to_owned()
    };
    let list = made(&["list", "create", "--name", "News"]);
    let consent = r#"{"marketing_email":true}"#;
    let contact = made(&["contact", "upsert", "--email", "ann@example.com", "--consent", consent]);
    server.command(&["list", "add", &list, "--contact-ids", &contact]).expect(0);
    let html = "<p>Hi <a href=\"{{ unsubscribe_url }}\">stop</a></p>";
    let template =
        made(&["template", "create", "--name", "N", "--channel", "email", "--subject", "Hi", "--html", html]);
    (template, json!({"list_ids": [list]}).to_string())
}

fn created(server: &Server, template: &str, audience: &str) -> String {
    let line = ["campaign", "create", "--name", "Spring", "--channel", "email", "--template-id", template];
    let made = server.command(&[&line[..], &["--audience", audience, "--json"]].concat()).expect(0).json();
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn watch_ends_with_the_campaign_and_says_how() {
    let data = directory();
    let server = Server::dev(data.path());
    let (template, audience) = prepared(&server);
    let id = created(&server, &template, &audience);
    let draft = server.command(&["campaign", "watch", &id]).expect(1);
    assert!(draft.stderr.contains("is a draft"), "{draft:?}");
    let unknown = "cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let refused = server.command(&["campaign", "watch", unknown, "--json"]).expect(1);
    assert_eq!(refused.json()["error"]["code"], "not_found");
    server.command(&["campaign", "watch"]).expect(2);

    let scheduled = server.command(&["campaign", "schedule", &id, "--send-now", "--json"]).expect(0).json();
    assert_eq!((&scheduled["result"], &scheduled["status"]), (&json!("scheduled"), &json!("scheduled")));
    let watched = server.command(&["campaign", "watch", &id, "--json"]).expect(0);
    let lines: Vec<Value> = watched.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["status"], &last["recipients"], &last["waiting"]), (&json!("sent"), &json!(1), &json!(0)));
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "only changes are told: {lines:?}");
    let again = server.command(&["campaign", "watch", &id]).expect(0);
    assert!(again.stdout.starts_with("sent: 1 recipients"), "{again:?}");

    // Refusals name the states in which it is possible.
    let refused = server.command(&["campaign", "pause", &id, "--json"]).expect(1).json();
    assert_eq!(refused["error"]["details"], json!({"status": "sent", "allowed": ["scheduled", "sending"]}));
    server.command(&["template", "delete", &template]).expect(0);
}

#[test]
fn a_cancelled_campaign_ends_the_watch_with_a_refusal() {
    let data = directory();
    let server = Server::dev(data.path());
    let (template, audience) = prepared(&server);
    let body = json!({"name": "Later", "channel": "email", "template_id": template,
        "audience": serde_json::from_str::<Value>(&audience).unwrap()});
    let file = data.path().join("campaign.json");
    std::fs::write(&file, body.to_string()).unwrap();
    let line = ["campaign", "create", "--json-body", file.to_str().unwrap(), "--json"];
    let made = server.command(&line).expect(0).json();
    let id = made["id"].as_str().unwrap();
    // A day ahead, by the clock of this machine.
    let at = tomorrow();
    server.command(&["campaign", "schedule", id, "--at", &at]).expect(0);
    let in_use = server.command(&["template", "delete", &template, "--json"]).expect(1).json();
    assert_eq!((&in_use["error"]["code"], &in_use["error"]["details"]["by"]), (&json!("in_use"), &json!([id])));
    server.command(&["campaign", "pause", id]).expect(0);
    server.command(&["campaign", "schedule", id, "--at", &at]).expect(0);
    server.command(&["campaign", "cancel", id]).expect(0);
    let ran = server.command(&["campaign", "watch", id]).expect(1);
    assert!(ran.stdout.starts_with("cancelled: ") && ran.stderr.contains("was cancelled"), "{ran:?}");
    server.command(&["campaign", "delete", id]).expect(0);
    server.command(&["campaign", "get", id]).expect(1);
}

/// The same time tomorrow.
fn tomorrow() -> String {
    use messaging_core::ports::clock::{Clock as _, SystemClock};
    (SystemClock.now() + std::time::Duration::from_hours(24)).to_string()
}
