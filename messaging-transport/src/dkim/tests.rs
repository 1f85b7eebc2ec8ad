use messaging_core::domain::mail::dkim::Algorithm;
use ring::signature::{ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};

use super::*;

/// The message of RFC 8463 appendix A.3.
const MESSAGE: &str = "\
From: Joe SixPack <joe@football.example.com>\r
To: Suzie Q <suzie@shopping.example.net>\r
Subject: Is dinner ready?\r
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r
Message-ID: <20030712040037.46341.5F8J@football.example.com>\r
\r
Hi.\r
\r
We lost the game.  Are you hungry yet?\r
\r
Joe.\r
";

/// Its signature fields, up to `b=`.
const ED25519_FIELD: &str = "\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r
 d=football.example.com; i=@football.example.com;\r
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r
 subject : date : message-id : from : subject : date;\r
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r
 b=";
const RSA_FIELD: &str = "\
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r
 d=football.example.com; i=@football.example.com;\r
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r
 date : message-id : from : subject : date;\r
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r
 b=";

const ED25519_SIGNATURE: &str =
    "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==";
const RSA_SIGNATURE: &str = "\
F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz\
dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=";

/// Its keys (appendix A.2).
const ED25519_PRIVATE: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const ED25519_PUBLIC: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const RSA_PUBLIC: &str = "\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC\
DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB";

fn signer() -> Signer {
    let seed = STANDARD.decode(ED25519_PRIVATE).unwrap();
    // RFC 8410 section 7: the seed as a PKCS#8 document.
    let head = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    let private = STANDARD.encode([&head[..], &seed].concat());
    Signer::new("football.example.com", "brisbane", Algorithm::Ed25519Sha256, &private).unwrap()
}

/// Returns the octets that the signature of a field covers, with the names of the example.
fn signed_octets(field: &str) -> Vec<u8> {
    let (header, body) = canonical::split(MESSAGE.as_bytes());
    assert!(field.contains(&STANDARD.encode(canonical::body_hash(body))), "the body hash");
    let fields = canonical::fields(header);
    let mut octets = Vec::new();
    for name in ["from", "to", "subject", "date", "message-id"] {
        let field = fields.iter().find(|field| field.is_named(name)).unwrap();
        canonical::write_field(&mut octets, field.octets());
    }
    canonical::write_field(&mut octets, field.as_bytes());
    octets.truncate(octets.len() - 2);
    octets
}

#[test]
fn the_signatures_of_rfc_8463_are_those_of_our_octets() {
    let signature = signer().sign(&signed_octets(ED25519_FIELD));
    assert_eq!(STANDARD.encode(&signature), ED25519_SIGNATURE, "the signature is the one in the appendix");
    let digest = ring::digest::digest(&ring::digest::SHA256, &signed_octets(ED25519_FIELD));
    let public = STANDARD.decode(ED25519_PUBLIC).unwrap();
    UnparsedPublicKey::new(&ED25519, public).verify(digest.as_ref(), &signature).unwrap();

    // ring needs the bare key, which follows the 22 octets of the head.
    let public = STANDARD.decode(RSA_PUBLIC).unwrap().split_off(22);
    UnparsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, public)
        .verify(&signed_octets(RSA_FIELD), &STANDARD.decode(RSA_SIGNATURE).unwrap())
        .unwrap();
}

#[test]
fn a_signed_message_looks_like_this() {
    let mut message = MESSAGE.replace("To:", "Cc: a@b.co\r\nReply-To: c@b.co\r\nTo:").into_bytes();
    sign(&mut message, &[Arc::new(signer())], Timestamp::from_millis(1_528_637_909_999));
    let message = String::from_utf8(message).unwrap();
    let (field, rest) = message.split_once("\r\nFrom:").unwrap();
    insta::assert_snapshot!(field.replace("\r\n", "\n"), @r"
    DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
     d=football.example.com; s=brisbane; t=1528637909; h=from:from:to:to:
     subject:subject:date:date:message-id:message-id:mime-version:content-type:
     list-unsubscribe:list-unsubscribe-post:cc:cc:reply-to:reply-to;
     bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
     b=ZrWtlg1sYem6tAmVYqp1MoCczXx/FlHjL+XlY33v83AiEJCtvfhz9joKGpn9Fle9i781m4vh
     ZO9JmNk6x3MpCQ==
    ");
    assert_eq!(format!("From:{rest}").replace("Cc: a@b.co\r\nReply-To: c@b.co\r\n", ""), MESSAGE);
}

#[test]
fn without_keys_nothing_is_added() {
    let mut message = MESSAGE.as_bytes().to_vec();
    sign(&mut message, &[], Timestamp::from_millis(0));
    assert_eq!(message, MESSAGE.as_bytes());
}

#[test]
fn repeated_fields_are_signed_from_below() {
    let (header, _) = canonical::split(b"Subject: 1\r\nX: y\r\nSubject: 2\r\nContent-Transfer-Encoding: 7bit\r\n\r\n");
    let (names, octets) = select(&canonical::fields(header));
    assert_eq!(names.iter().filter(|&&name| name == "subject").count(), 3);
    assert_eq!(names.iter().filter(|&&name| name == "content-transfer-encoding").count(), 1);
    assert_eq!(octets, b"subject:2\r\nsubject:1\r\ncontent-transfer-encoding:7bit\r\n");
}

/// The estimate of [`ROOM`] saves a second allocation; this test has the longest signature there is.
#[test]
fn there_is_room_for_a_signature() {
    let entropy = messaging_core::ports::clock::SystemEntropy::default();
    let key = messaging_core::domain::mail::dkim::generate(Algorithm::RsaSha256, &entropy);
    let signer = Signer::new("mail.acme.example", "mk7f3a9c2d", Algorithm::RsaSha256, &key.private).unwrap();
    let mut message = MESSAGE.as_bytes().to_vec();
    sign(&mut message, &[Arc::new(signer)], Timestamp::from_millis(1_528_637_909_000));
    assert!(message.len() - MESSAGE.len() <= ROOM, "{}", message.len() - MESSAGE.len());
    for line in message.split(|&octet| octet == b'\n').take(20) {
        assert!(line.len() < 78, "{}", String::from_utf8_lossy(line));
    }
}
