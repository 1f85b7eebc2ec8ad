//! Names where the API takes ids, synonyms of words, and times as durations.

use serde_json::Value;

use crate::support::{Server, directory};

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_name_stands_where_an_id_goes() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let json = |line: &[&str]| server.command(&[line, &["--json"]].concat()).expect(0).json();
    let list = id(&json(&["list", "create", "--name", "News"]));
    let template = id(&json(&[
        "template",
        "create",
        "--name",
        "welcome",
        "--channel",
        "email",
        "--subject",
        "Hi {{ name }}",
        "--html",
        "<p>Hi</p>",
    ]));
    let filter = r#"{"type":"tag","op":"has_any","values":["vip"]}"#;
    let segment = id(&json(&["segment", "create", "--name", "Vip", "--filter", filter]));

    assert_eq!(id(&json(&["list", "get", "News"])), list);
    assert_eq!(id(&json(&["segment", "get", "Vip"])), segment);
    assert_eq!(id(&json(&["domain", "get", "sandbox.test"])).get(..4), Some("dom_"));
    for flag in ["--template", "--template-id"] {
        json(&["message", "send", "--to", "ann@example.com", flag, "welcome", "--vars", r#"{"name":"Ann"}"#]);
    }
    // The former spelling of the flag for values still works.
    json(&["message", "send", "--to", "ann@example.com", "--template", &template, "--variables", r#"{"name":"Ann"}"#]);
    let sent = json(&["message", "list", "--template", "welcome"]);
    assert_eq!(sent["data"].as_array().unwrap().len(), 3);

    json(&["contact", "upsert", "--email", "ann@example.com", "--list", "News"]);
    let listed = server.command(&["contact", "list", "--list", "News", "--format", "{{ email }}"]).expect(0);
    assert_eq!(listed.stdout, "ann@example.com\n");
    let line = ["campaign", "create", "--name", "Spring", "--channel", "email", "--template", "welcome"];
    let campaign = json(&[&line[..], &["--list", "News", "--segment", "Vip"]].concat());
    assert_eq!(campaign["template_id"], template.as_str());
    assert_eq!(campaign["audience"]["list_ids"], serde_json::json!([list]));
    assert_eq!(campaign["audience"]["segment_ids"], serde_json::json!([segment]));

    let unknown = server.command(&["list", "get", "news"]).expect(1);
    assert!(unknown.stderr.contains("no list is called \"news\"; there are News"), "{unknown:?}");
    let second = id(&json(&["list", "create", "--name", "News"]));
    let several = server.command(&["contact", "list", "--list", "News"]).expect(1);
    assert!(several.stderr.contains(&list) && several.stderr.contains(&second), "{several:?}");
}

#[test]
fn statuses_are_lists_and_have_one_word_each() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let send = |to: &str| {
        let line = ["message", "send", "--to", to, "--subject", "Hi", "--text", "Hi", "--json"];
        let sent = server.command(&line).expect(0).json();
        let id = sent["message_id"].as_str().unwrap().to_owned();
        server.command(&["message", "watch", "--until-final", &id]);
        id
    };
    let (delivered, bounced) = (send("delivered@simulator.invalid"), send("bounce@simulator.invalid"));
    let suppressed = send("bounce@simulator.invalid");
    let listed = |statuses: &str| {
        let ran = server.command(&["message", "list", "--status", statuses, "--quiet"]).expect(0);
        ran.stdout.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed("suppressed,bounced"), [suppressed.clone(), bounced.clone()]);
    assert_eq!(listed("bounce"), std::slice::from_ref(&bounced));
    assert_eq!(listed("delivered,bounced"), [bounced.clone(), delivered]);
    let ended = server.command(&["message", "watch", "--until-final", &bounced]).expect(1);
    assert!(ended.stdout.contains("  bounced  "), "{ended:?}");
    assert!(ended.stderr.contains("the message is bounced: "), "{ended:?}");

    // The API accepts the same list, and names the parameter if a word is unknown.
    let query = ["api", "GET", "/messages", "--query", "status=failed,nonsense"];
    let refused = server.command(&query).expect(1).json();
    let fault = &refused["error"]["details"]["errors"][0];
    assert_eq!((&fault["parameter"], &fault["code"]), (&Value::from("status"), &Value::from("unknown_value")));

    // In a pipe the reason and the sentence have a column each, in every listing.
    let table = server.command(&["message", "list", "--all", "--limit", "1"]).expect(0).stdout;
    let header = table.lines().next().unwrap();
    assert!(header.contains("  REASON") && header.contains("  EXPLANATION"), "{header}");
    assert_eq!(table.lines().filter(|line| line.starts_with("MESSAGE_ID")).count(), 1, "{table}");
    let pairs = server.command(&["message", "get", &bounced]).expect(0).stdout;
    assert!(pairs.lines().any(|line| line.starts_with("to ") && line.ends_with("bounce@simulator.invalid")), "{pairs}");
    assert!(pairs.lines().any(|line| line.starts_with("reason ")), "{pairs}");
}

#[test]
fn a_time_ahead_has_a_sign() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let line = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--send-at"];
    let refused = server.command(&[&line[..], &["2h"]].concat()).expect(2);
    assert!(refused.stderr.contains("+2h"), "{refused:?}");
    let sent = server.command(&[&line[..], &["+2h", "--json"]].concat()).expect(0).json();
    let shown = server.command(&["message", "get", sent["message_id"].as_str().unwrap(), "--json"]).expect(0).json();
    assert!(shown["scheduled_for"].is_string(), "{shown}");
    let line = ["event", "send", "--name", "bought", "--contact", r#"{"external_id":"u-1"}"#, "--occurred-at", "2h"];
    server.command(&["contact", "upsert", "--external-id", "u-1"]).expect(0);
    server.command(&line).expect(0);
}
