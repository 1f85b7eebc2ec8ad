use serde_json::{Value, json};

use super::*;

fn envelope(recipients: &[&str]) -> Envelope {
    Envelope { from: None, recipients: recipients.iter().map(|text| (*text).to_owned()).collect() }
}

/// Reads a mail with the lines of a text, for an envelope of `ann@x.io`.
fn try_read(lines: &str) -> Result<Read, Refusal> {
    read(lines.replace('\n', "\r\n").as_bytes(), &envelope(&["ann@x.io"]))
}

#[track_caller]
fn message(lines: &str) -> Value {
    serde_json::to_value(try_read(lines).expect("a mail that can be read").message).unwrap()
}

#[track_caller]
fn refused(lines: &str, words: &str) {
    let reply = format!("{:?}", try_read(lines).expect_err("a refusal").into_reply());
    assert!(reply.contains(words), "{reply}");
}

#[test]
fn a_plain_mail_becomes_a_message() {
    let read = message(
        "From: =?utf-8?q?J=C3=B6rg?= <shop@acme.io>\nTo: Ann <ANN@x.io>\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\n of\n two lines\n\
         Reply-To: Help <help@acme.io>\nDate: x\nMessage-ID: <1@acme.io>\nMIME-Version: 1.0\nX-Order: 17\nX-Note: =?utf-8?q?=C3=BC?=\n\
         Received: from x\nReturn-Path: <a@b.io>\nDKIM-Signature: v=1\nBcc: carl@x.io\nContent-Language: de\n\nHello,\nAnn.\n",
    );
    let expected = json!({
        "channel": "email", "to": "ann@x.io", "from_email": "shop@acme.io", "from_name": "Jörg", "reply_to": "help@acme.io",
        "subject": "Grüße of two lines", "text": "Hello,\r\nAnn.\r\n", "headers": {"X-Order": "17", "X-Note": "ü"},
    });
    assert_eq!(read, expected);
}

#[test]
fn alternatives_resources_and_files_find_their_places() {
    let read = message(
        "From: a@acme.io\nTo: ann@x.io\nSubject: s\nContent-Type: multipart/mixed; boundary=\"m\"\n\npreamble\n--m\n\
         Content-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain; charset=iso-8859-1\n\
         Content-Transfer-Encoding: quoted-printable\n\nf=FCr\n--a\nContent-Type: multipart/related; boundary=r\n\n--r\n\
         Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\nPGltZyBzcmM9ImNpZDpsb2dvQHgiPg==\n\
         --r\nContent-Type: image/png\nContent-ID: <logo@x>\nContent-Disposition: inline; filename=\"logo.png\"\n\
         Content-Transfer-Encoding: base64\n\niVBORw==\n--r--\n--a--\n--m\n\
         Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*=utf-8''Rechnung%20%C3%BC.pdf\n\n%PDF\n\
         --m\nContent-Type: text/csv; charset=windows-1252\nContent-Disposition: attachment; filename=a.csv\n\na;b\n\
         --m\nContent-Type: message/rfc822\n\nSubject: inner\n\ninner\n--m--\nepilogue\n",
    );
    assert_eq!((&read["text"], &read["html"]), (&json!("für"), &json!("<img src=\"cid:logo@x\">")));
    let files = read["attachments"].as_array().unwrap();
    let members = |name: &str| files.iter().map(|file| file[name].as_str().unwrap_or("-")).collect::<Vec<_>>();
    assert_eq!(members("filename"), ["logo.png", "Rechnung ü.pdf", "a.csv", "attachment-6.eml"]);
    let types = ["image/png", "application/pdf", "text/csv; charset=windows-1252", "message/rfc822"];
    assert_eq!(members("content_type"), types);
    assert_eq!(members("content_b64"), ["iVBORw==", "JVBERg==", "YTti", "U3ViamVjdDogaW5uZXINCg0KaW5uZXI="]);
}

#[test]
fn a_second_text_stands_below_the_first_and_a_named_one_is_a_file() {
    let read = message(
        "Subject: s\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\none\n--m\nContent-Type: text/plain\n\ntwo\n\
         --m\nContent-Type: text/plain; name=notes.txt\n\nthree\n--m--\n",
    );
    assert_eq!(read["text"], "one\r\ntwo");
    assert_eq!(read["attachments"][0]["filename"], "notes.txt");
    // A scanner writes no text.
    let read = message("Subject: s\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw==\n");
    assert_eq!((&read["text"], &read["attachments"][0]["filename"]), (&json!("\r\n"), &json!("attachment-1.png")));
}

#[test]
fn an_id_is_kept_only_for_what_the_html_shows() {
    let mail = |html: &str| {
        let mail = format!(
            "Subject: s\nContent-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: text/html\n\n{html}\n\
             --m\nContent-Type: image/png; name=a.png\nContent-Disposition: attachment\nContent-ID: <f_1>\n\npng\n--m--\n"
        );
        let mail = mail.replace('\n', "\r\n");
        let (header, body) = split(mail.as_bytes()).unwrap();
        structure::read(&header, body).unwrap().files.remove(0).content_id
    };
    assert_eq!(mail("<img src=cid:f_1>").as_deref(), Some("f_1"));
    assert_eq!(mail("<p>"), None);
    let read = message(
        "Subject: s\nContent-Type: multipart/related; boundary=m\n\n--m\nContent-Type: text/html\n\n<img src=cid:a>\n\
         --m\nContent-Type: image/png; name=a.png\nContent-ID: <a>\n\npng\n\
         --m\nContent-Type: image/png; name=b.png\nContent-ID: <a>\n\npng\n\
         --m\nContent-Type: image/png; name=c.png\nContent-ID: <\u{e4}>\n\npng\n--m--\n",
    );
    let ids: Vec<_> = read["attachments"].as_array().unwrap().iter().map(|file| &file["content_id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!(null), &json!(null)], "{read}");
}

#[test]
fn headers_that_cannot_be_sent_along_stay_to_be_refused() {
    let read =
        message("Subject: s\nSender: a@b.io\nResent-To: c@d.io\nList-Unsubscribe: <x:y>\nIn-Reply-To: <1@x>\n\nx\n");
    let expected = json!({"Sender": "", "Resent-To": "", "List-Unsubscribe": "<x:y>", "In-Reply-To": "<1@x>"});
    assert_eq!(read["headers"], expected);
    refused("Subject: s\nX-A: 1\nx-a: 2\n\nx\n", "x-a is there twice");
    refused("Subject: s\nReply-To: a@b.io, c@d.io\n\nx\n", "Reply-To may name one address");
}

#[test]
fn long_chains_of_references_are_cut() {
    let ids: Vec<String> = (0..100).map(|number| format!("<{number:030}@x>")).collect();
    let read = message(&format!("Subject: s\nReferences: {}\n\nx\n", ids.join("\n ")));
    let kept = read["headers"]["References"].as_str().unwrap();
    assert!(kept.len() <= 998 && kept.starts_with(&ids[0]) && kept.ends_with(&ids[99]), "{kept}");
}

#[test]
fn what_would_not_survive_is_refused() {
    refused("Content-Type: multipart/signed; boundary=m\n\n--m\n\nx\n--m--\n", "signed or encrypted");
    refused("Content-Type: application/pkcs7-mime\n\nx\n", "signed or encrypted");
    refused("Content-Type: multipart/mixed\n\nx\n", "no boundary");
    let nested = "--m\nContent-Type: multipart/mixed; boundary=m\n\n".repeat(100);
    refused(&format!("Content-Type: multipart/mixed; boundary=m\n\n{nested}"), "too many parts");
    let many = "--m\n\nx\n".repeat(100_000);
    refused(&format!("Content-Type: multipart/mixed; boundary=m\n\n{many}"), "too many parts");
    refused(&format!("X: {}\n\nx\n", "y".repeat(300_000)), "552 5.3.4");
}

#[test]
fn the_same_mail_to_the_same_recipients_has_the_same_key() {
    let key = |lines: &str, recipients: &[&str]| {
        read(lines.replace('\n', "\r\n").as_bytes(), &envelope(recipients)).unwrap().idempotency_key
    };
    let first = key("Message-ID: <1@x>\n\nx\n", &["ann@x.io", "bob@x.io"]);
    assert_eq!(first.as_ref().map(String::len), Some(64));
    assert_eq!(first, key("Message-Id: <1@x>\nX-A: b\n\nother\n", &["BOB@x.io", "ann@X.io"]));
    assert_ne!(first, key("Message-ID: <2@x>\n\nx\n", &["ann@x.io", "bob@x.io"]));
    assert_ne!(first, key("Message-ID: <1@x>\n\nx\n", &["carl@x.io"]));
    assert_eq!(key("Subject: s\n\nx\n", &["ann@x.io"]), None);
}

#[test]
fn who_sends_is_told_by_the_header_or_else_by_the_envelope() {
    let envelope = Envelope { from: Some("env@acme.io".to_owned()), ..envelope(&["ann@x.io"]) };
    let from = |mail: &[u8]| read(mail, &envelope).unwrap().message.from_email;
    assert_eq!(from(b"From: a@acme.io\r\n\r\nx").as_deref(), Some("a@acme.io"));
    assert_eq!(from(b"Subject: s\r\n\r\nx").as_deref(), Some("env@acme.io"));
    assert_eq!(from(b"\r\nx").as_deref(), Some("env@acme.io"));
}
