use bytes::Bytes;
use mail_parser::{HeaderValue, Message, MessageParser, MimeHeaders};
use messaging_core::ports::transport::{AttachedFile, Email, Mailbox};
use messaging_transport::mime::{MAX_LINE, MimeError, build, needs_utf8};
use proptest::prelude::*;

use crate::dkim;
use crate::support::{address, email};

/// Builds, and checks what holds for every message.
#[track_caller]
fn built(email: &Email) -> Vec<u8> {
    let source = build(email).unwrap();
    assert!(source.ends_with(b"\r\n"));
    let mut after_header = source.as_slice();
    for (at, &byte) in source.iter().enumerate() {
        match byte {
            b'\r' => assert_eq!(source.get(at + 1), Some(&b'\n'), "bare CR at {at}"),
            b'\n' => assert_eq!(at.checked_sub(1).map(|at| source[at]), Some(b'\r'), "bare LF at {at}"),
            b'\t' | b' '..=b'~' => {}
            128.. if needs_utf8(email) => {}
            _ => panic!("octet {byte} at {at}"),
        }
        if source[at..].starts_with(b"\r\n\r\n") && after_header.len() == source.len() {
            after_header = &source[at + 2..];
        }
    }
    let header = &source[..source.len() - after_header.len()];
    for line in source.split(|&byte| byte == b'\n') {
        assert!(line.len() <= MAX_LINE + 1, "a line of {} octets", line.len());
    }
    for line in header.split(|&byte| byte == b'\n') {
        assert!(line != b"\r" && line != b" \r", "an empty line in the header");
    }
    assert_eq!(build(email).unwrap(), source, "the same email, the same message");
    source
}

#[track_caller]
fn parsed(source: &[u8]) -> Message<'_> {
    MessageParser::new()
        .with_mime_headers()
        .with_date_headers()
        .with_address_headers()
        .with_message_ids()
        .default_header_text()
        .parse(source)
        .unwrap()
}

fn file(filename: &str, content_type: &str, content: impl Into<Bytes>) -> AttachedFile {
    AttachedFile {
        filename: filename.into(),
        content_type: content_type.into(),
        content: content.into(),
        content_id: None,
    }
}

fn inline(filename: &str, content_id: &str) -> AttachedFile {
    AttachedFile { content_id: Some(content_id.into()), ..file(filename, "image/png", &b"png"[..]) }
}

fn header_text(message: &Message<'_>, name: &str) -> String {
    match message.header(name.to_owned()) {
        Some(HeaderValue::Text(text)) => text.to_string(),
        Some(HeaderValue::Empty) => String::new(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_message_looks_like_this() {
    let mut email = email();
    email.cc = vec![address("boss@example.com")];
    email.reply_to = Some(address("help@exämple.de"));
    email.headers.push(("X-Order".into(), "17".into()));
    email.html = Some("<p>Thänks</p>".into());
    email.attachments.push(file("a.pdf", "application/pdf", &b"%PDF-"[..]));
    let source = String::from_utf8(built(&email)).unwrap();
    insta::assert_snapshot!(source.replace("\r\n", "\n"), @r#"
    From: Acme <shop@mail.acme.com>
    To: ann@example.com
    Cc: boss@example.com
    Reply-To: help@xn--exmple-cua.de
    Subject: Order 17
    Date: Tue, 14 Nov 2023 22:13:20 +0000
    Message-ID: <01JB3Q8Z5N6W7X8Y9ZABCDEFGH@mail.acme.com>
    X-Order: 17
    MIME-Version: 1.0
    Content-Type: multipart/mixed;
     boundary="=_mixed_c567791b82b9c481"

    --=_mixed_c567791b82b9c481
    Content-Type: multipart/alternative;
     boundary="=_alternative_c567791b82b9c481"

    --=_alternative_c567791b82b9c481
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Thanks
    --=_alternative_c567791b82b9c481
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: quoted-printable

    <p>Th=C3=A4nks</p>
    --=_alternative_c567791b82b9c481--
    --=_mixed_c567791b82b9c481
    Content-Type: application/pdf
    Content-Disposition: attachment;
     filename="a.pdf"
    Content-Transfer-Encoding: base64

    JVBERi0=

    --=_mixed_c567791b82b9c481--
    "#);
}

#[test]
fn a_plain_text_needs_no_parts() {
    let source = String::from_utf8(built(&email())).unwrap();
    let (_, rest) = source.split_once("MIME-Version: 1.0\r\n").unwrap();
    assert_eq!(rest, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\nThanks\r\n");
}

#[test]
fn text_outside_ascii_comes_back() {
    let mut email = email();
    email.subject = "Заказ №17 — «готово» 🎉 ".repeat(12).trim().into();
    email.from.name = Some("Дом, \"книги\" и ещё кое-что".into());
    email.headers.push(("X-Note".into(), "Größe: 5 µm".into()));
    email.text = Some("Привет\nмир".into());
    email.html = Some(format!("<p>{}</p>", "ü ".repeat(2000)));
    email.attachments.push(file("счёт за ноябрь.pdf", "application/pdf", vec![0, 13, 10, 255]));
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.subject().unwrap(), email.subject);
    let from = message.from().unwrap().first().unwrap();
    assert_eq!(from.name(), email.from.name.as_deref());
    assert_eq!(from.address(), Some("shop@mail.acme.com"));
    assert_eq!(header_text(&message, "X-Note"), "Größe: 5 µm");
    assert_eq!(message.body_text(0).unwrap(), "Привет\r\nмир");
    assert_eq!(message.body_html(0).unwrap(), email.html.unwrap());
    let attachment = message.attachment(0).unwrap();
    assert_eq!(attachment.attachment_name(), Some("счёт за ноябрь.pdf"));
    assert_eq!(attachment.contents(), [0, 13, 10, 255]);
}

#[test]
fn dates_and_ids_are_ours() {
    let source = built(&email());
    let message = parsed(&source);
    assert_eq!(message.message_id(), Some("01JB3Q8Z5N6W7X8Y9ZABCDEFGH@mail.acme.com"));
    assert_eq!(message.date().unwrap().to_timestamp(), 1_700_000_000);
    assert!(String::from_utf8(source).unwrap().contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"));
}

#[test]
fn domains_are_a_labels_and_local_parts_stay() {
    let mut email = email();
    email.to = address("ann@exämple.de");
    email.from.address = address("A.b@MAIL.acme.com");
    assert!(!needs_utf8(&email));
    let source = String::from_utf8(built(&email)).unwrap();
    assert!(source.contains("To: ann@xn--exmple-cua.de\r\n"));
    assert!(source.contains("From: Acme <A.b@mail.acme.com>\r\n"));
    email.cc = vec![address("üser@exämple.de")];
    assert!(needs_utf8(&email));
    assert!(String::from_utf8(built(&email)).unwrap().contains("Cc: üser@xn--exmple-cua.de\r\n"));
}

#[test]
fn fifty_copies_fit() {
    let mut email = email();
    email.cc = (0..50).map(|n| address(&format!("{n}{}@{}.example.com", "l".repeat(60), "d".repeat(60)))).collect();
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.cc().unwrap().iter().count(), 50);
}

#[track_caller]
fn check_subject(subject: &str, expected: &str) {
    let mut email = email();
    email.subject = subject.into();
    email.headers.push(("X-Same".into(), subject.into()));
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.subject().unwrap_or_default(), expected);
    assert_eq!(header_text(&message, "X-Same"), expected);
}

#[test]
fn header_texts_come_back() {
    let many_words = "word ".repeat(199) + "end";
    let one_word = "x".repeat(998);
    let wide = "𝒳".repeat(249);
    for same in ["", "plain", "=?utf-8?Q?not_encoded?=", "a=?b", "double  space", "\"quotes\" \\ <angle>", "é"] {
        check_subject(same, same);
    }
    check_subject(&many_words, &many_words);
    check_subject(&one_word, &one_word);
    check_subject(&wide, &wide);
    check_subject("a\r\nBcc: x@y.co", "a  Bcc: x@y.co");
    check_subject("nul\0 and bell\x07", "nul  and bell");
    check_subject(" around ", "around");
}

#[track_caller]
fn check_filename(filename: &str, expected: &str) {
    let mut email = email();
    email.attachments.push(file(filename, "application/pdf", &b"x"[..]));
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.attachment(0).unwrap().attachment_name(), Some(expected));
}

#[test]
fn file_names_come_back() {
    let (ascii, wide, mixed) = ("a".repeat(255), "я".repeat(255), "a я".repeat(85));
    for same in ["a.pdf", "a b;c.pdf", "a\"b\\c.pdf", "100%.pdf", "smile 😀.png", &ascii, &wide, &mixed] {
        check_filename(same, same);
    }
    check_filename("a\r\nX: y.pdf", "a__X: y.pdf");
    check_filename("я\0", "я_");
}

#[test]
fn files_are_byte_identical() {
    let content: Vec<u8> = (0..=255_u8).cycle().take(100_000).collect();
    let mut email = email();
    for content in [&content[..], b"x", b"\r\n", b".\r\n.\r\n", b"--=_mixed_\r\n"] {
        email.attachments.push(file("a.bin", "application/octet-stream", content.to_vec()));
    }
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.attachment_count(), email.attachments.len());
    for (read, sent) in message.attachments().zip(&email.attachments) {
        assert_eq!(read.contents(), sent.content);
    }
}

#[track_caller]
fn check_type(given: &str, expected: &str) {
    let mut email = email();
    email.attachments.push(file("a", given, &b"x"[..]));
    let source = String::from_utf8(built(&email)).unwrap();
    assert_eq!(source.matches(&format!("\r\nContent-Type: {expected}\r\n")).count(), 1, "{source}");
}

#[test]
fn media_types_cannot_break_out() {
    check_type("application/pdf", "application/pdf");
    check_type("text/csv; charset=utf-8", "text/csv; charset=utf-8");
    for bad in ["", "pdf", "a/b\r\nX: y", "multipart/mixed; boundary=x", "message/rfc822", "a/ü", "a/b c"] {
        check_type(bad, "application/octet-stream");
    }
    check_type(&format!("a/b; x={}", "y".repeat(1000)), "application/octet-stream");
}

#[test]
fn a_part_cannot_pretend_to_be_the_boundary() {
    let mut email = email();
    email.html = Some("<p>x</p>".into());
    email.attachments.push(file("a", "text/plain", &b"x"[..]));
    let source = String::from_utf8(built(&email)).unwrap();
    let boundaries: Vec<_> = source.lines().filter(|line| line.starts_with("--=_")).collect();
    email.text = Some(boundaries.join("\n"));
    email.html = Some(boundaries.join("\r"));
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!((message.text_body_count(), message.html_body_count(), message.attachment_count()), (1, 1, 1));
    assert_eq!(message.body_text(0).unwrap(), boundaries.join("\r\n"));
}

#[test]
fn names_that_break_the_header_are_refused() {
    let check = |name: &str, expected: MimeError| {
        let mut email = email();
        email.headers = vec![("X-Fine".into(), String::new()), (name.into(), "v".into())];
        assert_eq!(build(&email), Err(expected), "{name:?}");
    };
    for name in ["", "X Y", "X:", "X\r\nBcc", "Ü", "X\0", &"x".repeat(77)] {
        check(name, MimeError::HeaderName { index: 1 });
    }
    for name in ["Bcc", "bcc", "FROM", "Content-Type", "content-x", "MIME-Version", "Message-ID", "Date"] {
        check(name, MimeError::ReservedHeader { index: 1 });
    }
    for id in ["", "a b@c", "<a@b>", "a\r\n@b", "ü@b", &"x".repeat(901)] {
        let mut email = email();
        email.message_id = id.into();
        assert_eq!(build(&email), Err(MimeError::MessageId), "{id:?}");
    }
}

#[test]
fn a_large_file_is_written_into_one_allocation() {
    let mut email = email();
    email.text = Some("ü".repeat(10_000));
    email.attachments.push(file("a.bin", "application/octet-stream", vec![7; 3 << 20]));
    let source = build(&email).unwrap();
    assert!(source.capacity() - source.len() < 64 << 10, "{} for {}", source.capacity(), source.len());
}

fn any_text(max: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,40}",
        2 => "[а-яё 🎉ß]{0,20}",
        1 => prop::collection::vec(any::<char>(), 0..20).prop_map(|chars| chars.into_iter().collect::<String>()),
        1 => prop::sample::select(vec!["\r\n", "\n", "\r", ".", "\r\n.\r\n", "\0", "\t", "=?utf-8?B?", "--=_", "  "])
            .prop_map(str::to_owned),
        1 => "[a-z=]{900,1100}",
    ];
    prop::collection::vec(piece, 0..max).prop_map(|pieces| pieces.concat())
}

fn unfolded(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim_matches(' ').to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_in_it_the_message_is_well_formed(
        subject in any_text(6),
        name in any_text(3),
        value in any_text(6),
        text in proptest::option::of(any_text(12)),
        html in proptest::option::of(any_text(12)),
        filename in any_text(4),
        content in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut email = email();
        email.subject.clone_from(&subject);
        email.from = Mailbox { name: Some(name), address: address("a@b.co") };
        email.headers = vec![("X-Any".into(), value)];
        email.text.clone_from(&text);
        email.html = html;
        email.attachments.push(file(&filename, "application/octet-stream", content.clone()));
        email.signers = dkim::signers();
        let source = built(&email);
        prop_assert_eq!(dkim::verified(&source), 2);
        let message = parsed(&source);
        prop_assert_eq!(message.attachment_count(), 1);
        prop_assert_eq!(message.attachment(0).unwrap().contents(), content);
        prop_assert_eq!(message.from().unwrap().first().unwrap().address(), Some("a@b.co"));
        prop_assert!(message.bcc().is_none());
        prop_assert_eq!(message.headers().iter().filter(|header| header.name() == "X-Any").count(), 1);
        if !subject.contains('\0') {
            prop_assert_eq!(message.subject().unwrap_or_default(), unfolded(&subject));
        }
    }
}

#[test]
fn what_the_html_shows_is_related_to_it() {
    let mut email = email();
    email.html = Some("<img src=\"cid:logo@acme\">".into());
    email.attachments =
        vec![file("a.pdf", "application/pdf", &b"pdf"[..]), inline("logo.png", "logo@acme"), inline("b.png", "b")];
    let source = built(&email);
    let message = parsed(&source);
    let shape = |at: usize| {
        let part = &message.parts[at];
        let name =
            |kind: &mail_parser::ContentType<'_>| format!("{}/{}", kind.c_type, kind.subtype().unwrap_or_default());
        let disposition = part.content_disposition().map(|found| found.c_type.to_string()).unwrap_or_default();
        let id = part.content_id().unwrap_or_default();
        [part.content_type().map(name).unwrap_or_default(), disposition, id.to_owned()].join(" ").trim().to_owned()
    };
    let shapes: Vec<_> = (0..message.parts.len()).map(shape).collect();
    let expected = [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png inline logo@acme",
        "image/png inline b",
        "application/pdf attachment",
    ];
    assert_eq!(shapes, expected);
    assert!(String::from_utf8(source).unwrap().contains("multipart/related; type=\"text/html\""));

    // Without HTML nothing shows a file, so it is attached like the others.
    email.html = None;
    let source = built(&email);
    let message = parsed(&source);
    assert_eq!(message.attachment_count(), 3);
    assert!(!String::from_utf8(source.clone()).unwrap().contains("related"));
}

#[test]
fn a_content_id_cannot_end_its_header() {
    let mut email = email();
    email.html = Some("<p>".into());
    email.attachments = vec![inline("a.png", "a>\r\nX-Evil: 1")];
    assert!(!String::from_utf8(built(&email)).unwrap().contains("X-Evil"));
}
