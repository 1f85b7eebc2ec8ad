//! Every row of the table in contract section 4.1, at its exact limit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{MessageInput, members};
use crate::domain::channel::Channel;
use crate::domain::message::channel_content::ViberService;
use crate::error::DomainError;
use crate::input;
use crate::violation::{At, Violations};

/// The pointers and codes that are reported, or "ok".
fn verdict(body: &Value) -> String {
    match input::body::<MessageInput>(body.to_string().as_bytes()) {
        Ok(_) => "ok".to_owned(),
        Err(DomainError::Invalid(violations)) => listed(&violations),
        Err(other) => other.code().to_owned(),
    }
}

fn listed(violations: &Violations) -> String {
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

/// A valid email, with some members replaced; `null` removes a member.
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
    check(message("viber", "+1234567", json!({})), "ok");
    check(message("viber", "01234567890A=", json!({})), "ok");
    check(message("viber", "a b", json!({})), "/to invalid_format");
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
        check(message(channel, to, json!({"html": ""})), html);
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
    let empty = json!({"from_email": "", "reply_to": ""});
    check(email(empty), "/from_email invalid_format, /reply_to invalid_format");
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
        assert!(matches!(result, Err(DomainError::NotAnObject(_))), "{bad}");
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
    // A member that the channel does not have is refused all the same.
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
    let with_data = json!({"channel": "push", "to": "t", "text": "t".repeat(3490), "data": {"key": "1234567"}});
    check(with_data.clone(), "ok");
    let mut more = with_data;
    more["data"]["key"] = json!("12345678");
    check(more, "/text too_large");
    // A template does not bring the data.
    let large: serde_json::Map<_, _> = (0..32).map(|n| (format!("k{n:03}"), json!("v".repeat(106)))).collect();
    check(message("push", "t", json!({"text": null, "template_id": "tpl_x", "data": large})), "/data too_large");
}

const BUTTON: fn(&str, &str) -> Value = |text, url| json!([{"text": text, "url": url}]);

#[test]
fn buttons_lead_to_pages() {
    let telegram = |buttons: Value| message("telegram", "1", json!({"buttons": buttons}));
    let good = json!({"text": "Open", "url": "https://a.example/?x=1#y"});
    check(telegram(json!(vec![good.clone(); 10])), "ok");
    check(telegram(json!(vec![good.clone(); 11])), "/buttons too_many_items");
    check(telegram(json!([{}])), "/buttons/0/text required, /buttons/0/url required");
    check(telegram(BUTTON(&"b".repeat(30), "http://a.example")), "ok");
    check(telegram(BUTTON(&"b".repeat(31), "http://a.example")), "/buttons/0/text too_long");
    check(telegram(BUTTON("", "http://a.example")), "/buttons/0/text required");
    check(telegram(json!([{"text": "t", "url": "https://a.example", "kind": "x"}])), "/buttons/0/kind unknown_field");
    let long = format!("https://a.example/{}", "p".repeat(2030));
    check(telegram(BUTTON("t", &long)), "ok");
    check(telegram(BUTTON("t", &format!("{long}p"))), "/buttons/0/url too_long");
    for bad in
        ["a.example", "tg://resolve", "javascript:alert(1)", "https://", "https:///p", "https://a b", "http://@/"]
    {
        check(telegram(BUTTON("t", bad)), "/buttons/0/url invalid_format");
    }
    for (channel, to) in [("whatsapp", "+1234567"), ("viber", "+1234567")] {
        check(message(channel, to, json!({"buttons": [good]})), "ok");
        check(message(channel, to, json!({"buttons": [good, good]})), "/buttons too_many_items");
        check(message(channel, to, json!({"buttons": BUTTON("t", "x")})), "/buttons/0/url invalid_format");
    }
    check(
        message("whatsapp", "+1234567", json!({"buttons": BUTTON(&"b".repeat(21), "http://a.example")})),
        "/buttons/0/text too_long",
    );
    for (channel, to) in [("sms", "+1234567"), ("push", "t")] {
        check(message(channel, to, json!({"buttons": BUTTON("t", "x")})), "/buttons not_allowed");
        check(message(channel, to, json!({"buttons": []})), "ok");
    }
    check(email(json!({"buttons": [good]})), "/buttons not_allowed");
}

#[test]
fn media_are_fetched_over_https() {
    let media = |kind: &str, url: &str| json!({"media": {"url": url, "kind": kind}});
    let good = "https://a.example/b.png";
    for (channel, to) in [("telegram", "1"), ("whatsapp", "+1234567")] {
        for kind in ["image", "video", "document"] {
            check(message(channel, to, media(kind, good)), "ok");
        }
        check(message(channel, to, media("sound", good)), "/media/kind unknown_value");
        check(message(channel, to, media("image", "http://a.example/b.png")), "/media/url invalid_format");
        check(message(channel, to, media("image", "")), "/media/url required");
        check(message(channel, to, json!({"media": {"kind": "image"}})), "/media/url required");
        let long = json!({"text": "t".repeat(1025), "media": {"url": good, "kind": "image"}});
        check(message(channel, to, long), "/text too_long");
    }
    for (channel, to) in [("push", "t"), ("viber", "+1234567")] {
        check(message(channel, to, media("image", good)), "ok");
        check(message(channel, to, media("video", good)), "/media/kind not_allowed");
    }
    check(message("sms", "+1234567", media("image", good)), "/media not_allowed");
    check(email(media("image", good)), "/media not_allowed");
}

#[test]
fn data_is_for_the_app() {
    let push = |data: Value| message("push", "t", json!({"data": data}));
    let most: serde_json::Map<_, _> = (0..32).map(|n| (format!("key.{n}"), json!("v"))).collect();
    let mut more = most.clone();
    more.insert("one_more".to_owned(), json!("v"));
    check(push(json!(most)), "ok");
    check(push(json!(more)), "/data too_many_items");
    check(push(json!({"a": 1})), "/data/a invalid_type");
    check(push(json!({"a b": "v"})), "/data/a b invalid_format");
    check(push(json!({"": "v"})), "/data/ invalid_format");
    check(push(json!({"k".repeat(65): "v"})), &format!("/data/{} invalid_format", "k".repeat(65)));
    for kept in ["from", "google.x", "gcm_y", "google"] {
        check(push(json!({kept: "v"})), &format!("/data/{kept} not_allowed"));
    }
    check(push(json!({"From": "v", "from_us": "v", "sender": "v"})), "ok");
    check(message("sms", "+1234567", json!({"data": {"a": "b"}})), "/data not_allowed");
    check(message("sms", "+1234567", json!({"data": {}})), "ok");
}

#[test]
fn a_provider_template_replaces_the_text() {
    let template = json!({"name": "order", "language": "en_US", "body": ["17"], "header": "h", "buttons": ["x"]});
    let whatsapp = |template: Value| message("whatsapp", "+1234567", json!({"provider_template": template}));
    let alone = json!({"text": null, "provider_template": template});
    check(message("whatsapp", "+1234567", alone), "ok");
    check(whatsapp(json!({"name": "order"})), "/provider_template/language required");
    check(whatsapp(json!({"name": "", "language": "en"})), "/provider_template/name required");
    check(whatsapp(json!({"name": "n", "language": "en", "body": [1]})), "/provider_template/body/0 invalid_type");
    check(whatsapp(json!({"name": "n", "language": "en", "footer": 1})), "/provider_template/footer unknown_field");
    check(message("whatsapp", "+1234567", json!({"text": "t".repeat(5000), "provider_template": template})), "ok");
    check(message("viber", "+1234567", json!({"provider_template": template})), "/provider_template not_allowed");
}

#[test]
fn telegram_needs_html_or_text() {
    let telegram = |changes: Value| message("telegram", "1", changes);
    check(telegram(json!({"text": null, "html": "<b>t</b>"})), "ok");
    check(telegram(json!({"text": null, "html": ""})), "/text required");
    check(telegram(json!({"html": format!("<b>{}</b>", "&lt;".repeat(4096))})), "ok");
    check(telegram(json!({"html": format!("<b>{}</b>", "&lt;".repeat(4097))})), "/html too_long");
    check(telegram(json!({"html": "h", "text": "t".repeat(4097)})), "ok");
    // Any number of tags that never end may be opened.
    check(telegram(json!({"html": "<\"".repeat(1 << 20)})), "/html too_long");
}

#[test]
fn options_are_for_every_channel() {
    let options = json!({"ttl": 0, "collapse_key": "k".repeat(64), "silent": true, "preview": false,
        "category": "marketing", "track_opens": true, "track_clicks": false});
    for (channel, to) in
        [("sms", "+1234567"), ("push", "t"), ("telegram", "1"), ("whatsapp", "+1234567"), ("viber", "+1234567")]
    {
        check(message(channel, to, json!({"options": options, "send_at": "2026-01-31T09:15:00Z"})), "ok");
    }
    check(email(json!({"options": options, "send_at": "2026-01-31T09:15:00+01:00"})), "ok");
    check(email(json!({"options": {}})), "ok");
    check(email(json!({"options": null, "send_at": null, "fallback": null})), "ok");
    check(email(json!({"options": {"ttl": 2_419_200}})), "ok");
    check(email(json!({"options": {"ttl": 2_419_201}})), "/options/ttl out_of_range");
    check(email(json!({"options": {"ttl": -1}})), "/options/ttl out_of_range");
    check(email(json!({"options": {"ttl": 1.5}})), "/options/ttl invalid_type");
    check(email(json!({"options": {"collapse_key": "k".repeat(65)}})), "/options/collapse_key too_long");
    check(email(json!({"options": {"collapse_key": "a\r\nX: y"}})), "/options/collapse_key invalid_format");
    check(email(json!({"options": {"silent": "yes"}})), "/options/silent invalid_type");
    check(email(json!({"options": {"category": "bulk"}})), "/options/category unknown_value");
    check(email(json!({"options": {"track_open": true}})), "/options/track_open unknown_field");
    check(email(json!({"send_at": "tomorrow"})), "/send_at invalid_format");
    check(email(json!({"send_at": 1})), "/send_at invalid_type");
}

#[test]
fn fallbacks_are_messages_of_their_own() {
    let sms = |fallback: Value| message("sms", "+1234567", json!({"fallback": fallback}));
    let step = json!({"channel": "viber", "text": "t"});
    check(sms(json!(vec![step.clone(); 3])), "ok");
    check(sms(json!(vec![step; 4])), "/fallback too_many_items");
    let email_step = json!([{"channel": "email", "to": "a@b.co", "text": "t", "after_seconds": 30}]);
    check(sms(email_step.clone()), "/fallback/0/template_id required");
    check(message("push", "t", json!({"subject": "s", "fallback": email_step})), "ok");
    check(sms(json!([{"channel": "push", "template_id": "tpl_x", "after_seconds": 86_400}])), "ok");
    check(sms(json!([{}])), "/fallback/0/channel required");
    check(sms(json!([{"channel": "viber"}])), "/fallback/0/text required");
    check(sms(json!([{"channel": "viber", "text": ""}])), "/fallback/0/text required");
    check(sms(json!([{"channel": "viber", "text": "t", "template_id": "tpl_x"}])), "/fallback/0/text conflict");
    check(sms(json!([{"channel": "fax", "text": "t"}])), "/fallback/0/channel unknown_value");
    check(sms(json!([{"channel": "viber", "text": "t", "html": "h"}])), "/fallback/0/html unknown_field");
    for seconds in [29, 86_401] {
        let step = json!({"channel": "viber", "text": "t", "after_seconds": seconds});
        check(sms(json!([step])), "/fallback/0/after_seconds out_of_range");
    }
    let two = |second: Value| sms(json!([{"channel": "sms", "to": "+1234567", "text": "t"}, second]));
    check(two(json!({"channel": "email", "to": "nobody", "template_id": "tpl_x"})), "/fallback/1/to invalid_format");
    check(two(json!({"channel": "email", "to": "a***@b.co", "template_id": "tpl_x"})), "/fallback/1/to not_allowed");
    check(two(json!({"channel": "sms", "text": "t".repeat(1531)})), "/fallback/1/text too_long");
    check(two(json!({"channel": "telegram", "text": "t".repeat(4097)})), "/fallback/1/text too_long");
    check(two(json!({"channel": "push", "text": "t".repeat(3501)})), "/fallback/1/text too_large");
}

#[test]
fn viber_has_the_limits_of_the_service_that_sends() {
    let found = |body: &Value, service| {
        let input = input::body::<MessageInput>(body.to_string().as_bytes()).unwrap();
        let mut violations = Violations::new();
        input.check_viber(service, &mut violations);
        listed(&violations)
    };
    let (business, bot) = (ViberService::Business, ViberService::Bot);
    let viber = |to: &str, changes: Value| message("viber", to, changes);
    for (body, by_business, by_bot) in [
        (viber("+1234567", json!({"text": "t".repeat(1000)})), "", ""),
        (viber("+1234567", json!({"text": "t".repeat(1001)})), "/text too_long", ""),
        (viber("+1234567", json!({"text": "t".repeat(7001)})), "/text too_long", "/text too_long"),
        (viber("01234567890A=", json!({})), "/to invalid_format", ""),
        (
            viber("+1234567", json!({"text": "t".repeat(769), "media": {"url": "https://a.example", "kind": "image"}})),
            "",
            "/text too_long",
        ),
        (viber("+1234567", json!({"text": "t".repeat(9000), "template_id": "tpl_x"})), "", ""),
        (
            message(
                "sms",
                "+1234567",
                json!({"fallback": [{"channel": "viber", "to": "id", "text": "t".repeat(1001)}]}),
            ),
            "/fallback/0/text too_long, /fallback/0/to invalid_format",
            "",
        ),
        (message("sms", "+1234567", json!({})), "", ""),
    ] {
        assert_eq!(found(&body, business), by_business, "{}", body["to"]);
        assert_eq!(found(&body, bot), by_bot, "{}", body["to"]);
    }
}

/// The table and the documentation of the members say the same.
#[test]
fn the_documentation_of_a_member_names_its_channels() {
    let schema = serde_json::to_value(schemars::schema_for!(MessageInput)).unwrap();
    let name = |channel: &Channel| match channel {
        Channel::Email => "email",
        Channel::Sms => "sms",
        Channel::Push => "push",
        Channel::Telegram => "telegram",
        Channel::Whatsapp => "whatsapp",
        Channel::Viber => "viber",
    };
    for member in members::MEMBERS {
        let description = schema["properties"][member.name]["description"].as_str().unwrap();
        let (before, _) = description.split_once(':').unwrap_or_else(|| panic!("{} names no channels", member.name));
        let before = before.to_lowercase();
        let named = Channel::ALL.iter().filter(|channel| before.contains(name(channel)));
        assert_eq!(named.copied().collect::<Vec<_>>(), member.channels, "{}", member.name);
    }
}

#[test]
fn masked_addresses_of_the_sender_are_refused() {
    let masked = json!({"from_email": "s***@acme.com", "reply_to": "h***@acme.com"});
    check(email(masked), "/from_email not_allowed, /reply_to not_allowed");
}

#[test]
fn a_content_id_is_visible_and_stands_once() {
    let files = |ids: &[&str]| {
        let file = |id: &&str| json!({"filename": "a.png", "content_b64": "eA==", "content_id": id});
        email(json!({"attachments": ids.iter().map(file).collect::<Vec<_>>()}))
    };
    check(files(&["logo", "logo@acme.com", "ii_1.2"]), "ok");
    check(files(&["i".repeat(128).as_str()]), "ok");
    check(files(&["i".repeat(129).as_str()]), "/attachments/0/content_id too_long");
    check(files(&[""]), "/attachments/0/content_id too_short");
    check(files(&["a", "a", "a"]), "/attachments/1/content_id duplicate, /attachments/2/content_id duplicate");
    for bad in ["<logo>", "a b", "a\r\nX: y", "ä"] {
        check(files(&[bad]), "/attachments/0/content_id invalid_format");
    }
}
