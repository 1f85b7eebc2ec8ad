use http::StatusCode;
use serde_json::json;

use super::*;

fn node(text: &str) -> Node {
    serde_json::from_str(text).unwrap()
}

fn page(text: &str, width: Option<usize>) -> String {
    let node = node(text);
    let Some(Node::List(items)) = node.member("data") else { panic!("no page") };
    let mut sheet = Sheet::new(width);
    let text = sheet.add(items);
    format!("{text}hidden: {}", sheet.hidden().join(" ")).trim_end().to_owned()
}

fn resource(text: &str) -> String {
    let Node::Object(members) = node(text) else { panic!("no resource") };
    table::resource(&members, None)
}

fn reply(status: u16, content_type: &str, body: &str) -> Reply {
    Reply {
        status: StatusCode::from_u16(status).unwrap(),
        content_type: Some(content_type.to_owned()),
        retry_after: None,
        replayed: false,
        body: body.to_owned().into(),
    }
}

const KEYS: &str = r#"{"data":[
    {"id":"key_1","name":"backend","scopes":["messages:send","pii:read"],"rate_limit":600,"note":null},
    {"id":"key_22","name":"Überschrift","scopes":[],"rate_limit":10,"note":null}],"next_cursor":null}"#;

#[test]
fn only_a_terminal_is_spared_columns_that_say_nothing() {
    insta::assert_snapshot!(page(KEYS, Some(80)), @r"
    ID      NAME         SCOPES                   RATE_LIMIT
    key_1   backend      messages:send, pii:read  600
    key_22  Überschrift  -                        10
    hidden:
    ");
    insta::assert_snapshot!(page(KEYS, None), @r"
    ID      NAME         SCOPES                   RATE_LIMIT  NOTE
    key_1   backend      messages:send, pii:read  600         -
    key_22  Überschrift  -                        10          -
    hidden:
    ");
}

#[test]
fn a_table_of_several_pages_has_one_header() {
    let rows = |text: &str| match node(text) {
        Node::List(rows) => rows,
        _ => panic!("no list"),
    };
    let first = rows(r#"[{"id":"lst_1","name":"News","note":null}]"#);
    let second = rows(r#"[{"id":"lst_2","name":"A longer name","note":"x"}]"#);
    let pages = |width| {
        let mut sheet = Sheet::new(width);
        let text = sheet.add(&first) + &sheet.add(&second);
        format!("{text}hidden: {}", sheet.hidden().join(" ")).trim_end().to_owned()
    };
    insta::assert_snapshot!(pages(Some(80)), @r"
    ID     NAME
    lst_1  News
    lst_2  A l…
    hidden: note
    ");
    insta::assert_snapshot!(pages(None), @r"
    ID     NAME  NOTE
    lst_1  News  -
    lst_2  A longer name  x
    hidden:
    ");
}

#[test]
fn columns_without_room_are_named() {
    insta::assert_snapshot!(page(KEYS, Some(40)), @r"
    ID      NAME
    key_1   backend
    key_22  Überschrift
    hidden: scopes rate_limit
    ");
}

#[test]
fn only_a_terminal_cuts_cells() {
    let text = format!(r#"{{"data":[{{"id":"{}"}}],"next_cursor":null}}"#, "x".repeat(60));
    assert!(page(&text, None).contains(&"x".repeat(60)));
    assert!(page(&text, Some(80)).contains(&format!("\n{}…\n", "x".repeat(39))));
}

#[test]
fn a_resource_is_pairs_and_its_lists_are_tables() {
    let text = r#"{"message_id":"msg_1","status":"delivered","tags":["a","b"],"metadata":{"order_id":17},"opened":true,
        "text":"line 1\nline 2","contact_id":null,
        "events":[{"kind":"queued","at":"T1","meta":{}},{"kind":"sent","at":"T2","meta":{"recipient":"ann@example.com"}}]}"#;
    insta::assert_snapshot!(resource(text), @r"
    message_id  msg_1
    status      delivered
    tags        a, b
    metadata    order_id=17
    opened      yes
    text        line 1
                line 2
    contact_id  -

    events
      KIND    AT  META
      queued  T1  -
      sent    T2  recipient=ann@example.com
    ");
}

#[test]
fn nothing_from_outside_steers_the_terminal() {
    assert_eq!(node(r#""a\u001b[31mb\rc""#).line(), "a\u{FFFD}[31mb\u{FFFD}c");
    let refused = reply(404, "application/json", r#"{"error":{"code":"x","message":"\u001b[2J","request_id":"r"}}"#);
    assert!(!refusal::text(&refused).contains("\u{1b}[2J"));
}

#[test]
fn a_refusal_lists_what_is_wrong() {
    let body = json!({"error": {"code": "validation_failed", "message": "2 fields are invalid", "request_id": "req_1", "details": {
        "errors": [{"pointer": "/to", "code": "required", "message": "to or contact_id is required"},
                   {"parameter": "limit", "code": "out_of_range", "message": "at most 200"}]}}});
    let text = refusal::text(&reply(422, "application/json", &body.to_string()));
    insta::assert_snapshot!(anstream::adapter::strip_str(&text), @r"
    error: 2 fields are invalid (validation_failed)
      /to    required      to or contact_id is required
      limit  out_of_range  at most 200
      request req_1
    ");
    let body = json!({"error": {"code": "invalid_state", "message": "not possible while sent", "request_id": "req_1",
        "details": {"status": "sent", "allowed": ["draft", "paused"]}}});
    let limited = Reply { retry_after: Some("3".to_owned()), ..reply(409, "application/json", &body.to_string()) };
    insta::assert_snapshot!(anstream::adapter::strip_str(&refusal::text(&limited)), @r"
    error: not possible while sent (invalid_state)
      allowed: draft, paused
      status: sent
      try again in 3 s
      request req_1
    ");
    let sender = json!({"error": {"code": "sender_domain_not_verified", "message": "the sending domain acme.com is not verified: \
        publish the records that GET /workspaces/wsp_1/sending-domains/dom_1/records shows, then POST \
        /workspaces/wsp_1/sending-domains/dom_1/verify", "details": {"domain": "acme.com", "operation": "verifySendingDomain",
        "path": "/workspaces/wsp_1/sending-domains/dom_1/verify"}}});
    let sender = refusal::text(&reply(422, "application/json", &sender.to_string()));
    insta::assert_snapshot!(anstream::adapter::strip_str(&sender), @r"
    error: the sending domain acme.com is not verified: publish the records that `messaging domain records dom_1` shows, then `messaging domain verify dom_1` (sender_domain_not_verified)
      domain: acme.com
      next: messaging domain verify dom_1
    ");
    let scope = refusal::text(&reply(403, "application/json", r#"{"error":"scope required: *"}"#));
    insta::assert_snapshot!(anstream::adapter::strip_str(&scope), @"error: scope required: *");
    let proxy = refusal::text(&reply(502, "text/html", "<html>"));
    insta::assert_snapshot!(anstream::adapter::strip_str(&proxy), @"error: status 502 Bad Gateway");
}

#[test]
fn every_answer_is_one_document() {
    let text = |reply: &Reply| String::from_utf8(one_document(reply)).unwrap();
    assert_eq!(text(&reply(204, "", "")), "{}\n");
    assert_eq!(text(&reply(200, "application/json; charset=utf-8", "{\"b\":1,\"a\":1}")), "{\"b\":1,\"a\":1}\n");
    let email = reply(200, "message/rfc822", "Subject: Hi\r\n\r\n");
    assert_eq!(text(&email), "{\"body\":\"Subject: Hi\\r\\n\\r\\n\",\"content_type\":\"message/rfc822\"}\n");
    let bytes = Reply { body: vec![0xFF].into(), ..email };
    assert_eq!(text(&bytes), "{\"body_b64\":\"/w==\",\"content_type\":\"message/rfc822\"}\n");
}

#[test]
fn dns_records_are_shown_in_full() {
    let long = "x".repeat(60);
    let records = format!(
        r#"[{{"purpose":"dkim","type":"TXT","host":"mk1._domainkey.acme.com","value":"v=DKIM1; p={long}","required":true,"status":"pending"}},
        {{"purpose":"return_path","type":"MX","host":"bounce.acme.com","value":"10 mx.example.org","required":false,"status":"verified"}}]"#
    );
    let Node::List(rows) = node(&records) else { panic!("no list") };
    insta::assert_snapshot!(record::page(&rows).unwrap(), @r"
    dkim
      TXT  mk1._domainkey.acme.com  pending  required
        v=DKIM1; p=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    return_path
      MX  bounce.acme.com  verified
        10 mx.example.org
    ");
    let Node::List(keys) = node(KEYS).member("data").unwrap().clone() else { panic!("no page") };
    assert_eq!(record::page(&keys), None);
}

#[test]
fn a_resource_shows_its_dns_records_below() {
    let text = r#"{"id":"dom_1","domain":"acme.com","status":"pending",
        "dkim":[{"selector":"mk1","record":"v=DKIM1; p=AA","status":"verified","type":"TXT","host":"mk1._domainkey.acme.com","detail":null},
                {"selector":"mk2","record":"v=DKIM1; p=BB","status":"pending","type":"TXT","host":"mk2._domainkey.acme.com","detail":"Publish it."}],
        "spf":{"record":"v=spf1 ~all","status":"failed","type":"TXT","host":"bounce.acme.com","detail":"Add the include."},
        "tracking":null,"created_at":"T1"}"#;
    insta::assert_snapshot!(resource(text), @r"
    id          dom_1
    domain      acme.com
    status      pending
    tracking    -
    created_at  T1

    dkim
      TXT  mk1._domainkey.acme.com  verified
        v=DKIM1; p=AA
      TXT  mk2._domainkey.acme.com  pending
        v=DKIM1; p=BB
        (Publish it.)

    spf
      TXT  bounce.acme.com  failed
        v=spf1 ~all
        (Add the include.)
    ");
}

const MESSAGES: &str = r#"{"data":[{"message_id":"msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH","channel":"email","status":"bounced",
    "to":"a***@example.com","subject":"Order 17","tags":["order"],"created_at":"2026-01-31T09:15:00.000Z",
    "explanation":{"code":"invalid_recipient","text":"The recipient's server says that the mailbox does not exist.",
        "since":"T","next_attempt_at":null,"cure":null}},
    {"message_id":"msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ","channel":"email","status":"delivered","to":"b***@example.com",
    "subject":"Order 18","tags":[],"created_at":"2026-01-31T09:15:01.000Z",
    "explanation":{"code":"delivered","text":"The message was delivered.","since":"T","next_attempt_at":null,"cure":null}}],
    "next_cursor":null}"#;

#[test]
fn why_a_message_was_not_sent_stands_below_it() {
    insta::assert_snapshot!(page(MESSAGES, Some(80)), @r"
    MESSAGE_ID                      CHANNEL  STATUS     TO                SUBJECT
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH  email    bounced    a***@example.com  Order 17
        The recipient's server says that the mailbox does not exist.
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ  email    delivered  b***@example.com  Order 18
    hidden: tags created_at
    ");
    insta::assert_snapshot!(page(MESSAGES, Some(50)), @r"
    MESSAGE_ID                      STATUS
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH  bounced
        The recipient's server says that the mailbox
        does not exist.
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ  delivered
    hidden: channel to subject tags created_at
    ");
    insta::assert_snapshot!(page(MESSAGES, Some(10)), @r"
    MESSAGE_ID
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH
        The recipient's
        server says that the
        mailbox does not
        exist.
    msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ
    hidden: channel status to subject tags created_at
    ");
}

#[test]
fn a_pipe_has_a_column_each_for_the_reason_and_its_sentence() {
    let text = page(MESSAGES, None);
    let header = text.lines().next().unwrap();
    assert!(header.ends_with("CREATED_AT                REASON             EXPLANATION"), "{header}");
    assert!(
        text.contains("invalid_recipient  The recipient's server says that the mailbox does not exist.\n"),
        "{text}"
    );
    assert!(text.contains("delivered          The message was delivered."), "{text}");
}

#[test]
fn a_message_says_what_can_be_done_in_commands() {
    let text = r#"{"message_id":"msg_1","status":"failed","to":"a@example.com","explanation":{"code":"sender_domain_not_verified",
        "text":"The domain of the sender is not verified.","since":"T","next_attempt_at":null,"cure":{"text":"Verify it.",
        "operation":"verifySendingDomain","path":"/workspaces/wsp_1/sending-domains/dom_1/verify","body":null}}}"#;
    let Node::Object(members) = node(text) else { panic!("no resource") };
    insta::assert_snapshot!(table::resource(&explanation::in_pairs(&members), None), @r"
    message_id   msg_1
    status       failed
    to           a@example.com
    reason       sender_domain_not_verified
    explanation  The domain of the sender is not verified.
    cure         Verify it.
                 messaging domain verify dom_1
    ");
}

#[test]
fn every_column_of_the_orders_is_a_member_of_the_api() {
    let document = include_str!("../../../docs/openapi.json");
    for (prefix, order) in importance::ORDERS {
        for column in *order {
            assert!(document.contains(&format!("\"{column}\": {{")), "{prefix}: {column}");
        }
    }
}

#[test]
fn masked_addresses_are_noticed() {
    let is_masked = |text: &str| masked::is_in(&node(&format!("[{{\"to\":\"{text}\"}}]")));
    for text in ["a***@example.com", "***@example.com", "+*******4567", "550 <a***@example.com> unknown"] {
        assert!(is_masked(text), "{text}");
    }
    for text in ["ann@example.com", "+491701234567", "***", "+*", "2 *** 3"] {
        assert!(!is_masked(text), "{text}");
    }
}

#[test]
fn a_dialog_is_lines() {
    let node = node(
        r#"[{"attempt":2,"at":"2026-01-31T09:15:02.000Z","mx":"mx.example.net","remote_addr":"192.0.2.1:25","tls":"TLSv1.3",
        "outcome":"bounced","transcript":["* connected to 192.0.2.1:25","< 220 mx.example.net","> EHLO mail.example.com",
        "< 250-mx.example.net","< 550 5.1.1 no \u001b[31mred user"]},
        {"attempt":1,"at":"2026-01-31T09:15:00.000Z","mx":null,"remote_addr":null,"tls":null,"outcome":"deferred","transcript":[]}]"#,
    );
    let Node::List(rows) = node else { panic!("no list") };
    insta::assert_snapshot!(dialog::page(&rows).unwrap(), @r"
    attempt 2  2026-01-31T09:15:02.000Z  mx.example.net (192.0.2.1:25)  TLSv1.3  bounced
      *: connected to 192.0.2.1:25
      S: 220 mx.example.net
      C: EHLO mail.example.com
      S: 250-mx.example.net
      S: 550 5.1.1 no �[31mred user

    attempt 1  2026-01-31T09:15:00.000Z  deferred
    ");
}

#[test]
fn what_is_exported_does_not_steer_a_terminal() {
    assert_eq!(shown(b"id,name\n1,\x1b]0;title\x07\x9b31m\n"), "id,name\n1,\u{FFFD}]0;title\u{FFFD}\u{FFFD}31m\n");
    assert_eq!(shown("1,\u{9b}31m, Ü\r\n".as_bytes()), "1,\u{FFFD}31m, Ü\n");
    assert_eq!(shown(b""), "");
}

#[test]
fn a_change_of_records_shows_what_goes_and_what_comes() {
    let node: Node = serde_json::from_str(
        r#"{"action":"update","type":"TXT","host":"bounce.acme.test","before":["note","v=spf1 -all"],
        "after":["note","v=spf1 include:mx.service.test -all"],"done":false,"detail":"It stays."}"#,
    )
    .unwrap();
    insta::assert_snapshot!(record::record(&node, "").unwrap(), @r"
    update  TXT  bounce.acme.test  not written
        note
      - v=spf1 -all
      + v=spf1 include:mx.service.test -all
        (It stays.)
    ");
}

#[test]
fn a_change_of_records_shows_what_was_read_back() {
    for (read_back, expected) in [
        ("null", "keep  MX  a.test\n    10 mx.test\n"),
        (
            r#"{"status":"verified","asked":"name_servers","differences":[],"detail":null}"#,
            "keep  MX  a.test  verified\n    10 mx.test\n",
        ),
        (
            r#"{"status":"differs","asked":"name_servers","differences":[{"server":"ns1.a.test","values":[]},
            {"server":"ns2.a.test","values":["5 b.test","6 c.test"]}],"detail":null}"#,
            "keep  MX  a.test\n    10 mx.test\n    (ns1.a.test shows nothing)\n    (ns2.a.test shows 5 b.test, 6 c.test)\n",
        ),
        (
            r#"{"status":"differs","asked":"resolver","differences":[{"server":null,"values":[]}],"detail":"Nobody."}"#,
            "keep  MX  a.test\n    10 mx.test\n    (the resolver shows nothing)\n    (Nobody.)\n",
        ),
    ] {
        let json = format!(
            r#"{{"action":"keep","type":"MX","host":"a.test","before":["10 mx.test"],"after":["10 mx.test"],"done":true,
            "detail":null,"read_back":{read_back}}}"#
        );
        let node: Node = serde_json::from_str(&json).unwrap();
        assert_eq!(record::record(&node, "").as_deref(), Some(expected), "{read_back}");
    }
}

#[test]
fn a_resource_within_another_is_its_name() {
    let text = r#"{"changes":[{"action":"create","type":"TXT","host":"acme.test","before":[],"after":["v=spf1 -all"],"done":true}],
        "domain":{"id":"dom_1","domain":"acme.test","status":"pending","dkim":[{"host":"k"}],"spf":{"status":"pending"}},
        "audience":{"list_ids":["lst_1"]}}"#;
    insta::assert_snapshot!(resource(text), @r"
    domain    acme.test
    audience  list_ids=lst_1

    changes
      create  TXT  acme.test  done
        + v=spf1 -all
    ");
}
