use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(mask_text(text), expected, "{text}");
    // What is masked already stays as it is.
    assert_eq!(mask_text(expected), expected, "{text}, again");
}

#[test]
fn replies_and_dialogs() {
    check("> RCPT TO:<ann@example.com> NOTIFY=NEVER", "> RCPT TO:<a***@example.com> NOTIFY=NEVER");
    check("< 550 5.1.1 ann@example.com: no such user", "< 550 5.1.1 a***@example.com: no such user");
    check("< 250 2.1.5 \"b@c.de\"", "< 250 2.1.5 \"***@c.de\"");
    check("550 <Ann.Lee@Example.COM>... User unknown", "550 <A***@Example.COM>... User unknown");
    check("rfc822;ann@example.com", "rfc822;a***@example.com");
    check("(ann@example.com), [ann@example.com]", "(a***@example.com), [a***@example.com]");
    check("'ann@example.com' o'brien@example.com", "'a***@example.com' o***@example.com");
    check("üser@exämple.de “ann@example.com”", "ü***@exämple.de “a***@example.com”");
    check("\"ann lee\"@example.com", "\"a***\"@example.com");
    check("ann@[192.0.2.1]", "a***@[192.0.2.1]");
    check("cut off: ann@", "cut off: a***@");
    check("a/b@example.com", "a***@example.com");
    check("rcpt=ann@example.com", "rcpt=a***@example.com");
    check("ann%example.org@relay.example", "a***@relay.example");
}

#[test]
fn nothing_is_changed_where_there_is_no_address() {
    for text in [
        "",
        "@",
        "250 ok",
        "< 250 2.0.0 100% delivered",
        "https://shop.example/sale?a=b&c=%20d",
        "https://social.example/@someone/1?q=@someone",
        "Mozilla/5.0 (compatible; bot/2.1; +http://www.example.com/bot.html)",
        "2026-01-31T09:15:00+02:00",
        "1+1=2, size=40kb",
        "user\\u0040",
        "***@example.com",
        "+*******4567",
    ] {
        check(text, text);
    }
}

#[test]
fn link_targets() {
    check("https://a.example/?m=ann@example.com&x=1", "https://a.example/?m=a***@example.com&x=1");
    check("https://a.example/?m=ann%40example.com", "https://a.example/?m=a***%40example.com");
    check("https://a.example/?m=%61nn%2540example.com", "https://a.example/?m=%61***%2540example.com");
    check("https://a.example/?m=ann%252540example.com#x", "https://a.example/?m=a***%252540example.com#x");
    check("https://a.example/u/ann@example.com/x", "https://a.example/u/a***@example.com/x");
    check("https://a.example/u/ann%2Bx%40example.com", "https://a.example/u/a***%40example.com");
    check("https://ann@example.com/x", "https://a***@example.com/x");
    check("mailto:ann@example.com?subject=x", "mailto:a***@example.com?subject=x");
    check(
        "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Fm%3Dann%40example.com",
        "https://a.example/?n***=h***%40example.com",
    );
    check("https://a.example/?m=ann/x@example.com", "https://a.example/?m=a***@example.com");
    check("https://a.example/?ann.lee@example.com", "https://a.example/?a***@example.com");
    check("https://a.example/?m=ann.lee@example.com", "https://a.example/?***=a***@example.com");
    check("https://a.example/?t=%2B14155550123", "https://a.example/?t=%2B*******0123");
}

#[test]
fn return_addresses_that_hold_an_address() {
    check("bounce-ann=example.com@list.example", "b***=e***@list.example");
    check("<ann=example.com@list.example>", "<a***=e***@list.example>");
    check("SRS0=HH=TT=example.com=ann@fwd.example", "S***=H***@fwd.example");
    check("prvs=1234abcdef=ann@example.com", "prvs=1***@example.com");
    check("https://a.example/?ann=example.com@list.example", "https://a.example/?a***=e***@list.example");
    check("ann@example.com@list.example", "a***@e***@list.example");
}

#[test]
fn other_spellings_of_the_sign() {
    check("ann=40example.com", "a***=40example.com");
    check("ORCPT=rfc822;ann+40example.com", "ORCPT=rfc822;a***+40example.com");
    check("ann&#64;example.com ann&#x40;example.com", "a***&#64;example.com a***&#x40;example.com");
    check("ann\\u0040example.com", "a***\\u0040example.com");
    check("ann\u{FF20}example.com", "a***\u{FF20}example.com");
}

#[test]
fn phone_numbers() {
    check("no such number +14155550123.", "no such number +*******0123.");
    check("tel:+1 (415) 555-0123 is gone", "tel:+* (***) ***-0123 is gone");
    check("+123456", "+123456");
    check("+1234567", "+***4567");
    check("+0234567890", "+0234567890");
}

#[test]
fn a_hostile_text_takes_linear_time() {
    for piece in ["a@", "\"@", "=40", "%25", "+1 ", "://?", "+40a.aa"] {
        let text = piece.repeat(200_000);
        assert!(mask_text(&text).len() <= 4 * text.len());
    }
}

#[test]
fn the_meta_of_events() {
    let meta = |value: Value| value.as_object().cloned().unwrap();
    let shown = Redactor::new(false).meta(
        Channel::Sms,
        meta(json!({
            "recipient": "+14155550123", "response": "14155550123 is gone (+14155550123)", "attempt": 3,
            "more": {"list": ["ann@example.com"]},
        })),
    );
    assert_eq!(
        Value::Object(shown),
        json!({
            "recipient": "+*******0123", "response": "*******0123 is gone (+*******0123)", "attempt": 3,
            "more": {"list": ["a***@example.com"]},
        })
    );
    let clear = meta(json!({"recipient": "ann@example.com", "url": "https://a.example/?m=ann@example.com"}));
    assert_eq!(Redactor::new(true).meta(Channel::Email, clear.clone()), clear);
    // Chat ids and tokens are no addresses in the sense of section 2.4.
    let chat = meta(json!({"recipient": "@someone"}));
    assert_eq!(Redactor::new(false).meta(Channel::Telegram, chat.clone()), chat);
}
