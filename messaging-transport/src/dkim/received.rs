//! Signatures of a received mail: the signed octets of each, for a caller that looks up its key (RFC 6376 sections 3.7
//! and 6.1).
//!
//! A signature of only the beginning of the body (`l=`) is ignored: anything could have been appended.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::received_signature::ReceivedSignature;
use messaging_core::domain::mail::tag_list;
use messaging_core::time::Timestamp;
use ring::digest::{Context, SHA256};

use super::canonical::{self, CRLF, Field};

/// Maximum number of signatures that are examined.
const MAX_SIGNATURES: usize = 8;

/// Maximum length of a header that is examined, in octets.
const MAX_HEADER: usize = 256 << 10;

/// Maximum number of names in `h=`.
const MAX_NAMES: usize = 200;

/// Returns the signatures of a mail whose body hash is right.
pub(crate) fn signatures(mail: &[u8]) -> Vec<ReceivedSignature> {
    let (header, body) = canonical::split(mail);
    if header.len() > MAX_HEADER {
        return Vec::new();
    }
    let fields = canonical::fields(header);
    let of_signatures = fields.iter().filter(|field| field.is_named("DKIM-Signature"));
    of_signatures.take(MAX_SIGNATURES).filter_map(|field| read(*field, &fields, body)).collect()
}

/// The two ways in which octets are made canonical (section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Canonicalization {
    Simple,
    Relaxed,
}

impl Canonicalization {
    fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            word if word.eq_ignore_ascii_case("simple") => Some(Self::Simple),
            word if word.eq_ignore_ascii_case("relaxed") => Some(Self::Relaxed),
            _ => None,
        }
    }

    fn write_field(self, out: &mut Vec<u8>, field: &[u8]) {
        match self {
            Self::Simple => out.extend_from_slice(field),
            Self::Relaxed => canonical::write_field(out, field),
        }
    }

    fn body_hash(self, body: &[u8]) -> [u8; 32] {
        let hash = match self {
            Self::Relaxed => canonical::body_hash(body),
            Self::Simple => {
                // Section 3.4.3: one CRLF ends the body, also an empty one.
                let mut rest = body;
                while let Some(before) = rest.strip_suffix(CRLF) {
                    rest = before;
                }
                let mut context = Context::new(&SHA256);
                context.update(rest);
                context.update(CRLF);
                context.finish()
            }
        };
        hash.as_ref().try_into().unwrap_or_default()
    }
}

fn read(field: Field<'_>, fields: &[Field<'_>], body: &[u8]) -> Option<ReceivedSignature> {
    let octets = field.octets();
    let colon = octets.iter().position(|&octet| octet == b':')?;
    let tags = tag_list::parse(std::str::from_utf8(&octets[colon + 1..]).ok()?)?;
    let tag = |name| tag_list::value(&tags, name);
    if tag("v") != Some("1") || tag("l").is_some() {
        return None;
    }
    let algorithms = [Algorithm::RsaSha256, Algorithm::Ed25519Sha256];
    let algorithm = algorithms.into_iter().find(|one| tag("a").is_some_and(|a| a.eq_ignore_ascii_case(one.tag())))?;
    let (of_header, of_body) = tag("c").map_or(("simple", "simple"), |c| c.split_once('/').unwrap_or((c, "simple")));
    let (of_header, of_body) = (Canonicalization::parse(of_header)?, Canonicalization::parse(of_body)?);
    if decoded(tag("bh")?)? != of_body.body_hash(body) {
        return None;
    }
    let names: Vec<_> = tag("h")?.split(':').map(str::trim).take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES || !names.iter().any(|name| name.eq_ignore_ascii_case("from")) {
        return None;
    }
    let domain = tag("d")?.to_ascii_lowercase();
    let agent = tag("i").and_then(|agent| agent.rsplit_once('@')).map(|(_, host)| host.to_ascii_lowercase());
    let is_below =
        |host: &str| host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if agent.as_deref().is_some_and(|host| !is_below(host)) {
        return None;
    }
    let expires_at = match tag("x") {
        None => None,
        Some(text) => Some(Timestamp::from_millis(text.parse::<i64>().ok()?.checked_mul(1000)?)),
    };
    Some(ReceivedSignature {
        is_exact: agent.is_none_or(|host| host == domain),
        domain,
        selector: tag("s")?.to_owned(),
        algorithm,
        expires_at,
        signed: signed(&names, fields, octets, of_header),
        signature: decoded(tag("b")?)?,
    })
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

/// Returns the canonical fields of the list, of several with one name the lowest first, and the signature's own without
/// its value.
fn signed(names: &[&str], fields: &[Field<'_>], signature: &[u8], form: Canonicalization) -> Vec<u8> {
    let mut octets = Vec::with_capacity(2048);
    let mut is_used = vec![false; fields.len()];
    for name in names {
        let next = fields.iter().enumerate().rev().find(|(at, field)| !is_used[*at] && field.is_named(name));
        if let Some((at, field)) = next {
            is_used[at] = true;
            form.write_field(&mut octets, field.octets());
        }
    }
    form.write_field(&mut octets, &without_value(signature));
    if octets.ends_with(CRLF) {
        octets.truncate(octets.len() - CRLF.len());
    }
    octets
}

/// Returns the field of a signature with an empty `b=`.
fn without_value(field: &[u8]) -> Vec<u8> {
    let colon = field.iter().position(|&octet| octet == b':').map_or(0, |colon| colon + 1);
    let (name, value) = field.split_at(colon);
    let mut octets = name.to_vec();
    for (at, tag) in value.split(|&octet| octet == b';').enumerate() {
        if at > 0 {
            octets.push(b';');
        }
        match tag.iter().position(|&octet| octet == b'=') {
            Some(equals) if tag[..equals].trim_ascii() == b"b" => octets.extend_from_slice(&tag[..=equals]),
            _ => octets.extend_from_slice(tag),
        }
    }
    if !octets.ends_with(CRLF) {
        octets.extend_from_slice(CRLF);
    }
    octets
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use messaging_core::domain::mail::dkim::{Signer, generate};
    use messaging_core::entropy::SeededEntropy;
    use ring::digest::digest;

    use super::*;

    const MAIL: &str = "From: a@acme.test\r\nTo: b@c.test\r\nSubject:  s  x\r\n\r\nbody \t of\r\n two lines \r\n\r\n";

    /// A mail with a signature of each algorithm, and the key records.
    fn signed_mail() -> (Vec<u8>, Vec<String>) {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let (mut mail, mut signers, mut records) = (MAIL.as_bytes().to_vec(), Vec::new(), Vec::new());
        for algorithm in [Algorithm::RsaSha256, Algorithm::Ed25519Sha256] {
            let key = generate(algorithm, &SeededEntropy::new(7));
            signers.push(Arc::new(Signer::new("acme.test", "s", algorithm, &key.private).unwrap()));
            records.push(format!("v=DKIM1; k={}; p={}", algorithm.key_tag(), key.public));
        }
        super::super::sign(&mut mail, &signers, now);
        (mail, records)
    }

    fn verified(mail: &[u8], records: &[String]) -> usize {
        let now = Timestamp::from_millis(1_800_000_000_000);
        signatures(mail).iter().filter(|signature| signature.verifies(records, now)).count()
    }

    #[test]
    fn signatures_of_ours_verify() {
        let (mail, records) = signed_mail();
        assert_eq!(verified(&mail, &records), 2);
        assert_eq!(signatures(&mail)[0].key_host(), "s._domainkey.acme.test");
        assert_eq!(verified(MAIL.as_bytes(), &records), 0);
    }

    #[test]
    fn what_was_changed_does_not_verify() {
        let (mail, records) = signed_mail();
        let text = String::from_utf8(mail).unwrap();
        for (from, to, count) in [
            ("From: a@", "From: x@", 0),
            ("two lines", "two  lines", 2),
            ("two lines", "ten lines", 0),
            ("Subject:  s  x", "Subject: s x", 2),
            ("Subject:  s  x", "Subject: s y", 0),
            ("To: b@c.test\r\n", "To: b@c.test\r\nTo: d@e.test\r\n", 0),
            ("d=acme.test", "d=evil.test", 0),
            ("v=1;", "v=1; l=5;", 0),
        ] {
            assert!(text.contains(from), "{from}");
            assert_eq!(verified(text.replace(from, to).as_bytes(), &records), count, "{from} {to}");
        }
    }

    #[test]
    fn the_simple_form_is_that_of_the_octets() {
        let simple = Canonicalization::Simple;
        let hash = |octets: &[u8]| <[u8; 32]>::try_from(digest(&SHA256, octets).as_ref()).unwrap();
        assert_eq!(simple.body_hash(b"a  b \r\n\r\n\r\n"), hash(b"a  b \r\n"));
        assert_eq!(simple.body_hash(b""), hash(b"\r\n"));
        let field = b"DKIM-Signature: v=1; bh=ab=;\r\n\tb=cd\r\n\tef; s=x\r\n";
        assert_eq!(without_value(field), b"DKIM-Signature: v=1; bh=ab=;\r\n\tb=; s=x\r\n");
        let last = b"DKIM-Signature: v=1; b = cd\r\n";
        assert_eq!(without_value(last), b"DKIM-Signature: v=1; b =\r\n");
    }

    #[test]
    fn no_mail_is_too_strange() {
        for mail in
            ["", "DKIM-Signature", "DKIM-Signature:\r\n\r\n", "DKIM-Signature: v=1; a=rsa-sha256\r\n\r\n", "a:b\r\n"]
        {
            assert_eq!(signatures(mail.as_bytes()), []);
        }
    }
}
