//! Signatures, verified by a reading of RFC 6376 that has nothing in common with ours but the RFC.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::domain::mail::dkim::{Algorithm, Signer, generate};
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::transport::Email;
use messaging_transport::mime::build;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

use crate::support::{address, email};

struct Keys {
    signers: Vec<Arc<Signer>>,
    rsa: Vec<u8>,
    ed25519: Vec<u8>,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let entropy = SystemEntropy::default();
    let rsa = generate(Algorithm::RsaSha256, &entropy);
    let ed25519 = generate(Algorithm::Ed25519Sha256, &entropy);
    let signer = |selector, algorithm, private: &str| {
        Arc::new(Signer::new("mail.acme.com", selector, algorithm, private).unwrap())
    };
    Keys {
        signers: vec![
            signer("r", Algorithm::RsaSha256, &rsa.private),
            signer("e", Algorithm::Ed25519Sha256, &ed25519.private),
        ],
        // ring wants the bare key: what follows the 24 octets of the SubjectPublicKeyInfo's head.
        rsa: STANDARD.decode(rsa.public).unwrap().split_off(24),
        ed25519: STANDARD.decode(ed25519.public).unwrap(),
    }
});

/// Keys of both algorithms, the same in every test.
pub(crate) fn signers() -> Vec<Arc<Signer>> {
    KEYS.signers.clone()
}

/// Verifies every signature of the message; answers how many hold.
pub(crate) fn verified(message: &[u8]) -> usize {
    // Each octet as one character, so that text can be worked with.
    let text: String = message.iter().map(|&octet| char::from(octet)).collect();
    let (header, body) = text.split_once("\r\n\r\n").unwrap();
    let fields: Vec<String> =
        header.replace("\r\n ", "\0 ").replace("\r\n\t", "\0\t").split("\r\n").map(Into::into).collect();
    fields
        .iter()
        .filter(|field| field.starts_with("DKIM-Signature:"))
        .filter(|field| holds(field, &fields, body))
        .count()
}

fn holds(signature: &str, fields: &[String], body: &str) -> bool {
    let value = signature.split_once(':').unwrap().1.replace('\0', "");
    let tag = |name: &str| {
        let tags = value.split(';').map(|tag| tag.split_once('=').unwrap());
        tags.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.replace([' ', '\t'], "")).next().unwrap()
    };
    assert_eq!((tag("v"), tag("c"), tag("d")), ("1".into(), "relaxed/relaxed".into(), "mail.acme.com".into()));
    assert!(!value.split(';').any(|tag| ["l", "x"].contains(&tag.split('=').next().unwrap().trim())), "{value}");
    if tag("bh") != STANDARD.encode(digest(&SHA256, &octets(&relaxed_body(body)))) {
        return false;
    }
    let mut left: Vec<&String> = fields.iter().filter(|&field| field != signature).collect();
    let mut signed = String::new();
    for name in tag("h").split(':') {
        let is_named = |field: &&String| field.split(':').next().unwrap().trim().eq_ignore_ascii_case(name);
        if let Some(at) = left.iter().rposition(is_named) {
            signed += &(relaxed_field(left.remove(at)) + "\r\n");
        }
    }
    let unsigned = &signature[..signature.rfind(" b=").unwrap() + 3];
    signed += &relaxed_field(unsigned);
    let claimed = STANDARD.decode(tag("b")).unwrap();
    match tag("a").as_str() {
        "rsa-sha256" => {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &KEYS.rsa).verify(&octets(&signed), &claimed).is_ok()
        }
        "ed25519-sha256" => {
            let hash = digest(&SHA256, &octets(&signed));
            UnparsedPublicKey::new(&ED25519, &KEYS.ed25519).verify(hash.as_ref(), &claimed).is_ok()
        }
        other => panic!("{other}"),
    }
}

fn octets(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

fn single_spaced(text: &str) -> String {
    let mut out = text.replace('\t', " ");
    while out.contains("  ") {
        out = out.replace("  ", " ");
    }
    out
}

fn relaxed_field(field: &str) -> String {
    let (name, value) = field.split_once(':').unwrap();
    let value = single_spaced(&value.replace('\0', ""));
    format!("{}:{}", name.trim_end_matches([' ', '\t']).to_ascii_lowercase(), value.trim_matches(' '))
}

fn relaxed_body(body: &str) -> String {
    let lines: Vec<String> =
        body.split("\r\n").map(|line| single_spaced(line).trim_end_matches(' ').to_owned()).collect();
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines[..end].iter().map(|line| format!("{line}\r\n")).collect()
}

fn signed(change: impl FnOnce(&mut Email)) -> String {
    let mut email = email();
    email.signers = signers();
    change(&mut email);
    let message = build(&email).unwrap();
    assert_eq!(verified(&message), 2, "{}", String::from_utf8_lossy(&message));
    String::from_utf8(message).unwrap()
}

#[test]
fn every_key_signs() {
    let message = signed(|email| {
        email.cc = vec![address("b@example.com"), address("c@example.com")];
        email.reply_to = Some(address("help@acme.com"));
        email.headers = vec![
            ("List-Unsubscribe".into(), format!("<https://acme.com/u/{}>, <mailto:u@acme.com>", "t".repeat(100))),
            ("List-Unsubscribe-Post".into(), "List-Unsubscribe=One-Click".into()),
            ("X-Note".into(), "a word ".repeat(60)),
        ];
        email.subject = "Grüße ".repeat(30);
        email.html = Some("<p>hello</p>  \n\n \n".into());
    });
    assert!(message.starts_with("DKIM-Signature: v=1; a=rsa-sha256;"));
    assert_eq!(message.matches("DKIM-Signature:").count(), 2);
    let (header, _) = message.split_once("\r\nFrom:").unwrap();
    assert!(header.lines().all(|line| line.len() < 78), "{header}");
}

#[test]
fn texts_of_every_shape_are_signed() {
    for text in
        ["", "\n", "\n \n\t\n", ".", "..\n.\n", "a  b\t\tc \n", "  a", "From here\n", "ü\u{e000}\0", &"x".repeat(5000)]
    {
        signed(|email| email.text = Some(text.to_owned()));
        signed(|email| email.html = Some(text.to_owned()));
    }
    signed(|email| email.subject = String::new());
    signed(|email| email.to = address("jürgen@grüße.example"));
}

#[test]
fn what_relays_do_on_the_way_breaks_nothing() {
    let message = signed(|email| email.text = Some("one two\n\nthree".into()));
    for changed in [
        format!("Received: from a\r\n by b\r\n{message}"),
        message.replace("Subject: ", "SUBJECT :\t "),
        message.replace("one two", "one  \ttwo \t"),
        format!("{message}\r\n\r\n \r\n"),
        message.replace("MIME-Version", "X-Spam: no\r\nMIME-Version"),
    ] {
        assert_ne!(changed, message);
        assert_eq!(verified(changed.as_bytes()), 2, "{changed}");
    }
}

#[test]
fn a_change_that_a_reader_would_see_breaks_every_signature() {
    let message = signed(|email| email.text = Some("one two".into()));
    for name in [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "MIME-Version",
        "Content-Type",
        "List-Unsubscribe",
        "List-Unsubscribe-Post",
        "Cc",
        "Reply-To",
    ] {
        let changed = format!("{name}: x\r\n{message}");
        assert_eq!(verified(changed.as_bytes()), 0, "a second {name}");
        let changed = message.replacen("\r\n\r\n", &format!("\r\n{name}: x\r\n\r\n"), 1);
        assert_eq!(verified(changed.as_bytes()), 0, "a second {name} at the end");
    }
    for (old, new) in [
        ("one two", "onetwo"),
        ("one two", "One two"),
        ("one two", "one\r\ntwo"),
        ("one two\r\n", "one two\r\nthree\r\n"),
        ("\r\n\r\none", "\r\n\r\n\r\none"),
        ("Order 17", "Order 18"),
        ("7bit", "8bit"),
        ("t=1700000000", "t=1700000001"),
        ("s=", "s=x"),
    ] {
        let changed = message.replace(old, new);
        assert_ne!(changed, message);
        assert_eq!(verified(changed.as_bytes()), 0, "{old:?} to {new:?}");
    }
}
