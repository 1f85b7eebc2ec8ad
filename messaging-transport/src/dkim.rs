//! DKIM signatures (RFC 6376, RFC 8463) over the octets of a message.
//!
//! [`sign`] takes a message that [`crate::mime`] wrote and puts one `DKIM-Signature` field for each key before it. The
//! body is hashed once for all keys, and the fields of the header are canonicalized once.
//!
//! Fields that a reader sees or that a mail program acts upon are listed in `h=` once more than they
//! occur: the signature breaks when somebody adds another (RFC 6376 section 8.15). There is no `l=`,
//! under which text could be appended, and no `x=`, as mail that waits in a queue stays genuine. `t=` is
//! the `Date` of the message, not the time of the attempt: the octets of a message are the same in every
//! attempt, and nothing here needs a clock.
//!
//! `mail-auth` was considered as a library, but it lists only fields that a message has, so that fields that are
//! present cannot be over-signed. The rest is writing a field and feeding two hashes; the cryptography is that of
//! `ring`.

mod canonical;
mod field;
mod received;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::domain::mail::dkim::Signer;
use messaging_core::time::Timestamp;

use self::canonical::Field;
use self::field::TagList;

pub(crate) use self::received::signatures;

/// Fields that are signed once more than they occur. The first nine are those of contract section 10 and of RFC 6376
/// section 5.4.1; a further `Cc` or `Reply-To` would make a copy look as if it were for somebody else, or lead answers
/// astray.
const OVERSIGNED: [&str; 11] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "content-type",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "cc",
    "reply-to",
];

/// Fields that are signed as often as they occur. A multipart message has no transfer encoding of its own, and a relay
/// may rightly state one.
const SIGNED: [&str; 1] = ["content-transfer-encoding"];

/// Octets reserved for the signature in a message.
pub(crate) const ROOM: usize = 1024;

/// Puts the signature of each signer before the message, in their order.
///
/// The message is one of [`crate::mime`]: its lines end in CRLF, and a header is there.
pub(crate) fn sign(message: &mut Vec<u8>, signers: &[Arc<Signer>], date: Timestamp) {
    if signers.is_empty() {
        return;
    }
    let (header, body) = canonical::split(message);
    let body_hash = STANDARD.encode(canonical::body_hash(body));
    let (names, canonical_header) = select(&canonical::fields(header));

    let mut signatures = Vec::with_capacity(signers.len() * ROOM);
    for signer in signers {
        let unsigned = unsigned(signer, &names, &body_hash, date);
        // RFC 6376 section 3.7: the field itself comes last, with an empty `b=` and without its CRLF.
        let mut octets = Vec::with_capacity(canonical_header.len() + unsigned.len());
        octets.extend_from_slice(&canonical_header);
        canonical::write_field(&mut octets, unsigned.as_bytes());
        octets.truncate(octets.len() - canonical::CRLF.len());
        signatures.extend_from_slice(unsigned.as_bytes());
        field::write_folded(&mut signatures, &STANDARD.encode(signer.sign(&octets)));
        signatures.extend_from_slice(canonical::CRLF);
    }
    message.splice(0..0, signatures);
}

/// Returns the names for `h=`, and the canonical form of the fields they select.
fn select(fields: &[Field<'_>]) -> (Vec<&'static str>, Vec<u8>) {
    let mut names = Vec::with_capacity(2 * OVERSIGNED.len());
    let mut octets = Vec::with_capacity(2048);
    let once_more = OVERSIGNED.iter().map(|name| (name, 1)).chain(SIGNED.iter().map(|name| (name, 0)));
    for (name, more) in once_more {
        let mut count = 0;
        // RFC 6376 section 5.4.2: of several fields with one name, the lowest is signed first.
        for field in fields.iter().rev().filter(|field| field.is_named(name)) {
            canonical::write_field(&mut octets, field.octets());
            count += 1;
        }
        names.extend(std::iter::repeat_n(*name, count + more));
    }
    (names, octets)
}

/// Returns the field up to and including `b=`.
fn unsigned(signer: &Signer, names: &[&str], body_hash: &str, date: Timestamp) -> String {
    let mut tags = TagList::new("DKIM-Signature");
    tags.tag("v", "1");
    tags.tag("a", signer.algorithm.tag());
    tags.tag("c", "relaxed/relaxed");
    tags.tag("d", &signer.domain);
    tags.tag("s", &signer.selector);
    tags.tag("t", &date.as_seconds().max(0).to_string());
    tags.list("h", names);
    tags.tag("bh", body_hash);
    tags.open("b")
}

#[cfg(test)]
mod tests;
