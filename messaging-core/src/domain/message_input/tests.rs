//! Every row of the table in contract section 4.1, at its exact limit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::MessageInput;
use crate::error::DomainError;
use crate::input;
use crate::violation::At;

/// The pointers and codes that are reported, or "ok".
fn verdict(body: &Value) -> String {
    match input::body::<MessageInput>(body.to_string().as_bytes()) {
        Ok(_) => "ok".to_owned(),
        Err(DomainError::Invalid(violations)) => {
            let mut lines: Vec<_> = violations
                .as_slice()
                .iter()
                .map(|violation| {
                    let At::Pointer(pointer) = &violation.at else { panic!("a body has pointers") };
                    let code = serde_json::to_value(violation.code).unwrap();
                    format!("{pointer} {}", code.as_str().unwrap())
                })
                .collect();
            lines.sort();
            lines.join(", ")
        }
        Err(other) => other.code().to_owned(),
    }
}

/// An email that is good, with some members replaced; `null` takes a member away.
fn email(changes: Value) -> Value {
    let mut body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn message(channel: &str, to: &str, changes: Value) -> Value {
    let mut body = json!({"channel": channel, "to": to, "text": "t"});
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[track_caller]
fn check(body: Value, expected: &str) {
    assert_eq!(verdict(&body), expected);
}

#[test]
fn channel_and_recipient() {
    check(email(json!({})), "ok");
    check(email(json!({"channel": "fax"})), "/channel unknown_value");
    check(email(json!({"channel": null})), "/channel required");
    check(email(json!({"channel": 1})), "/channel invalid_type");
    check(email(json!({"to": null})), "/to required");
    check(email(json!({"to": ""})), "/to required");
    check(email(json!({"to": 5})), "/to invalid_type");
    check(email(json!({"to": null, "contact_id": "con_x"})), "ok");
    check(email(json!({"to": "Ann <ann@example.com>"})), "/to invalid_format");
    check(email(json!({"to": "ann@example.com\u{0}"})), "/to invalid_format");
    check(email(json!({"to": "a***@example.com"})), "/to not_allowed");
    check(message("sms", "+*******0123", json!({})), "/to not_allowed");
    check(message("sms", "+1234567", json!({})), "ok");
    check(message("sms", "1234567", json!({})), "/to invalid_format");
    check(message("telegram", "-100", json!({})), "ok");
    check(message("push", "token", json!({})), "ok");
}

#[test]
fn copies() {
    let fifty: Vec<_> = (0..50).map(|n| format!("u{n}@example.com")).collect();
    let mut more = fifty.clone();
    more.push("last@example.com".to_owned());
    for list in ["cc", "bcc"] {
        check(email(json!({list: fifty})), "ok");
        check(email(json!({list: more})), &format!("/{list} too_many_items"));
        check(email(json!({list: ["a@b.co", "nobody"]})), &format!("/{list}/1 invalid_format"));
        check(email(json!({list: ["a@b.co", "***@b.co"]})), &format!("/{list}/1 not_allowed"));
        check(email(json!({list: "a@b.co"})), &format!("/{list} invalid_type"));
        check(email(json!({list: [1]})), &format!("/{list}/0 invalid_type"));
        check(message("sms", "+1234567", json!({list: ["a@b.co"]})), &format!("/{list} not_allowed"));
    }
}

#[test]
fn subject_and_parts() {
    check(email(json!({"subject": "s".repeat(998)})), "ok");
    check(email(json!({"subject": "s".repeat(999)})), "/subject too_long");
    check(email(json!({"subject": ""})), "/subject required");
    check(email(json!({"subject": null})), "/subject required");
    check(email(json!({"subject": "a\r\nBcc: b@c.de"})), "/subject invalid_format");
    check(email(json!({"subject": null, "text": null, "template_id": "tpl_x"})), "ok");
    check(email(json!({"text": null})), "/html required");
    check(email(json!({"text": null, "html": ""})), "/html required");
    check(email(json!({"text": null, "html": "<p>"})), "ok");
    let part = "x".repeat(2 << 20);
    check(email(json!({"text": part, "html": part})), "ok");
    check(email(json!({"text": format!("{part}x")})), "/text too_long");
    check(email(json!({"html": format!("{part}x")})), "/html too_long");
}

#[test]
fn text_limits_by_channel() {
    for (channel, to, most, fault) in [
        // Ten segments, and 3500 bytes, are less than the characters that are allowed.
        ("sms", "+1234567", 1530, "/text too_long"),
        ("push", "t", 1750, "/text too_large"),
        ("telegram", "1", 4096, "/text too_long"),
        ("whatsapp", "+1234567", 4096, "/text too_long"),
        ("viber", "+1234567", 1000, "/text too_long"),
    ] {
        // Characters, not bytes.
        check(message(channel, to, json!({"text": "ü".repeat(most)})), "ok");
        check(message(channel, to, json!({"text": "ü".repeat(most + 1)})), fault);
        check(message(channel, to, json!({"text": null})), "/text required");
        check(message(channel, to, json!({"text": null, "template_id": "tpl_x"})), "ok");
    }
}

#[test]
fn fields_by_channel() {
    let email_only = json!({
        "cc": ["a@b.co"], "bcc": ["a@b.co"], "from_email": "a@b.co", "from_name": "A", "reply_to": "a@b.co",
        "headers": {"X-A": "b"}, "attachments": [{"filename": "a", "content_b64": "eA=="}], "sending_domain_id": "dom_x",
    });
    check(email(email_only.clone()), "ok");
    for (channel, to) in
        [("sms", "+1234567"), ("push", "t"), ("telegram", "1"), ("whatsapp", "+1234567"), ("viber", "+1234567")]
    {
        check(
            message(channel, to, email_only.clone()),
            "/attachments not_allowed, /bcc not_allowed, /cc not_allowed, /from_email not_allowed, /from_name not_allowed, \
             /headers not_allowed, /reply_to not_allowed, /sending_domain_id not_allowed",
        );
        let subject = if channel == "push" { "ok" } else { "/subject not_allowed" };
        check(message(channel, to, json!({"subject": "s"})), subject);
        let html = if channel == "telegram" { "ok" } else { "/html not_allowed" };
        check(message(channel, to, json!({"html": "h"})), html);
        check(
            message(channel, to, json!({"variables": {}, "metadata": {"a": 1}, "tags": ["t"], "contact_id": "con_x"})),
            "ok",
        );
        check(message(channel, to, json!({"cc": null, "attachments": [], "headers": {}})), "ok");
    }
}

#[test]
fn sender_fields() {
    check(email(json!({"from_email": "nobody"})), "/from_email invalid_format");
    check(email(json!({"reply_to": "nobody"})), "/reply_to invalid_format");
    check(email(json!({"from_name": "n".repeat(128)})), "ok");
    check(email(json!({"from_name": "n".repeat(129)})), "/from_name too_long");
    check(email(json!({"from_name": "a\nb"})), "/from_name invalid_format");
}

#[test]
fn header_fields() {
    let thirty: serde_json::Map<_, _> = (0..30).map(|n| (format!("X-{n}"), json!("v"))).collect();
    let mut more = thirty.clone();
    more.insert("X-Last".to_owned(), json!("v"));
    check(email(json!({"headers": thirty})), "ok");
    check(email(json!({"headers": more})), "/headers too_many_items");
    check(email(json!({"headers": {"From": "a"}})), "/headers/From not_allowed");
    check(email(json!({"headers": {"X A": "a"}})), "/headers/X A invalid_format");
    check(email(json!({"headers": {"a/b": "a"}})), "/headers/a~1b invalid_format");
    check(email(json!({"headers": {"X-A": "a\nb"}})), "/headers/X-A invalid_format");
    check(email(json!({"headers": {"X-A": "v".repeat(999)}})), "/headers/X-A too_long");
    check(email(json!({"headers": {"X-A": 1}})), "/headers/X-A invalid_type");
    check(email(json!({"headers": []})), "/headers invalid_type");
}

#[test]
fn attachment_fields() {
    let file = json!({"filename": "a.txt", "content_b64": "eA=="});
    check(email(json!({"attachments": vec![file.clone(); 10]})), "ok");
    check(email(json!({"attachments": vec![file; 11]})), "/attachments too_many_items");
    check(email(json!({"attachments": [{}]})), "/attachments/0/content_b64 required, /attachments/0/filename required");
    let with = |name: &str, value: Value| {
        let mut file = json!({"filename": "a.txt", "content_b64": "eA=="});
        file[name] = value;
        email(json!({"attachments": [file]}))
    };
    check(with("filename", json!("")), "/attachments/0/filename required");
    check(with("filename", json!("f".repeat(255))), "ok");
    check(with("filename", json!("f".repeat(256))), "/attachments/0/filename too_long");
    check(with("filename", json!("a\r\nb")), "/attachments/0/filename invalid_format");
    check(with("content_b64", json!("")), "/attachments/0/content_b64 required");
    check(with("content_type", json!("text/html")), "ok");
    check(with("content_type", json!("text")), "/attachments/0/content_type invalid_format");
    for bad in ["eA", "eA=", "e A==", "eA==\n", "e-_=", "!!!!"] {
        check(with("content_b64", json!(bad)), "/attachments/0/content_b64 invalid_format");
    }
    let most = STANDARD.encode(vec![7_u8; 15 << 20]);
    check(with("content_b64", json!(most)), "ok");
    let over = json!([{"filename": "a", "content_b64": most}, {"filename": "b", "content_b64": "eA=="}]);
    check(email(json!({"attachments": over})), "/attachments too_large");
}

#[test]
fn metadata_and_tags() {
    let of_size = |bytes: usize| json!({"k": "v".repeat(bytes - r#"{"k":""}"#.len())});
    check(email(json!({"metadata": of_size(8 << 10)})), "ok");
    check(email(json!({"metadata": of_size((8 << 10) + 1)})), "/metadata too_large");
    check(email(json!({"metadata": []})), "/metadata invalid_type");
    check(email(json!({"metadata": {"a": "\u{0}"}})), "/metadata/a invalid_format");
    check(email(json!({"tags": vec!["t"; 20]})), "ok");
    check(email(json!({"tags": vec!["t"; 21]})), "/tags too_many_items");
    check(email(json!({"tags": ["t".repeat(64)]})), "ok");
    check(email(json!({"tags": ["ok", "t".repeat(65)]})), "/tags/1 too_long");
    check(email(json!({"tags": [""]})), "/tags/0 too_short");
    check(email(json!({"tags": [null]})), "/tags/0 invalid_type");
}

#[test]
fn everything_wrong_is_reported_at_once() {
    check(
        json!({"channel": "email", "to": 5, "cc": ["a@b.co", "x"], "subject": "a\nb", "text": 1, "from_email": "x",
               "headers": {"Bcc": "x", "X-Ok": "y"}, "tags": ["", "t"], "attachments": [{"filename": "a"}]}),
        "/attachments/0/content_b64 required, /cc/1 invalid_format, /from_email invalid_format, /headers/Bcc not_allowed, \
         /html required, /subject invalid_format, /tags/0 too_short, /text invalid_type, /to invalid_type",
    );
    check(json!({}), "/channel required");
}

#[test]
fn unknown_members_are_refused_and_of_repeated_ones_the_last_counts() {
    check(email(json!({"surprise": {"a": [1]}})), "/surprise unknown_field");
    let twice = br#"{"channel":"email","to":"a@b.co","to":"c@d.co","subject":"s","text":"t"}"#;
    let input = input::body::<MessageInput>(twice).unwrap();
    assert_eq!(input.to.as_deref(), Some("c@d.co"));
}

#[test]
fn bodies_that_are_no_objects() {
    for bad in ["", "[]", "null", "\"a\"", "{", "{\"channel\":\"email\"", "{} x"] {
        let result = input::body::<MessageInput>(bad.as_bytes());
        assert!(matches!(result, Err(DomainError::NotAnObject)), "{bad}");
    }
}

#[test]
fn a_template_makes_the_parts_sent_along_void() {
    let template = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let long = "s".repeat(999);
    check(email(json!({"template_id": template, "subject": "a\nb", "html": "h".repeat((2 << 20) + 1)})), "ok");
    check(email(json!({"template_id": template, "subject": long})), "ok");
    let sms = json!({"channel": "sms", "to": "+14155550123", "template_id": template, "text": "t".repeat(1601)});
    check(sms, "ok");
    // What the channel has not is refused all the same.
    let sms = json!({"channel": "sms", "to": "+14155550123", "template_id": template, "html": "x"});
    check(sms, "/html not_allowed");
}

#[test]
fn texts_fit_into_their_channels() {
    let sms = |text: String| json!({"channel": "sms", "to": "+14155550123", "text": text});
    check(sms("t".repeat(1530)), "ok");
    check(sms("t".repeat(1531)), "/text too_long");
    check(sms("t".repeat(1601)), "/text too_long");
    check(sms("\u{436}".repeat(670)), "ok");
    check(sms("\u{436}".repeat(671)), "/text too_long");
    let push = |title: &str, text: String| json!({"channel": "push", "to": "t", "subject": title, "text": text});
    check(push("12345", "t".repeat(3495)), "ok");
    check(push("12345", "t".repeat(3496)), "/text too_large");
    check(push("", "t".repeat(4001)), "/text too_long");
}

#[test]
fn masked_addresses_of_the_sender_are_refused() {
    let masked = json!({"from_email": "s***@acme.com", "reply_to": "h***@acme.com"});
    check(email(masked), "/from_email not_allowed, /reply_to not_allowed");
}
