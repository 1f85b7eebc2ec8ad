//! Comparison of a published DKIM key record with our key.
//!
//! RFC 6376 section 3.6.1, RFC 8463 section 4. The keys are compared, not the texts: order, white space and tags that
//! change nothing may differ.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::domain::mail::dkim::Algorithm;
use crate::domain::mail::sending_domain::{Check, DkimKey};
use crate::domain::mail::tag_list;

/// Octets before the bare key in the form that we publish for RSA: the head of a `SubjectPublicKeyInfo`. Some owners
/// publish the bare key, as RFC 6376 section 3.6.1 says, and receivers take both.
const SPKI_HEAD: usize = 24;

/// Base64 whose padding may be missing, as panels of DNS providers drop it.
pub(crate) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the verdict on the TXT records at a key's selector.
pub fn judge_dkim(key: &DkimKey, found: &[String]) -> Check {
    // Receivers skip texts that are no key records at all.
    let keys: Vec<_> = found.iter().filter(|text| looks_like_key(text)).collect();
    match keys.as_slice() {
        [] if found.is_empty() => Check::pending("There is no TXT record here yet. Publish the record as shown."),
        [] => Check::failed(
            "The TXT record here is not a DKIM key record. Publish the record as shown, without quotation marks.",
        ),
        [only] => judge_one(key, only),
        _ => Check::failed(
            "There are several DKIM key records here, and receivers may take any of them. Leave only the one shown.",
        ),
    }
}

fn looks_like_key(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("v=DKIM1") || tag_list::parse(text).is_some_and(|tags| tag_list::value(&tags, "p").is_some())
}

fn judge_one(key: &DkimKey, text: &str) -> Check {
    let Some(tags) = tag_list::parse(text) else {
        return Check::failed("The DKIM key record here is damaged. Publish the record exactly as shown.");
    };
    let tag = |name| tag_list::value(&tags, name);
    // The version may be left out; if it is given, it comes first.
    if tag("v").is_some_and(|version| version != "DKIM1" || tags[0].0 != "v") {
        return Check::failed("The DKIM key record here is of an unknown version. Publish the record as shown.");
    }
    let Some(public) = tag("p").map(tag_list::without_white) else {
        return Check::failed("The DKIM key record here has no key (p=). Publish the record as shown.");
    };
    if public.is_empty() {
        return Check::failed("The DKIM key record here revokes the key (p= is empty). Publish the record as shown.");
    }
    if tag("k").unwrap_or("rsa") != key.algorithm.key_tag() {
        return Check::failed("The DKIM key record here is for another kind of key (k=). Publish the record as shown.");
    }
    let lists = |value: Option<&str>, wanted: &[&str]| {
        value.is_none_or(|list| list.split(':').any(|item| wanted.contains(&tag_list::without_white(item).as_str())))
    };
    if !lists(tag("h"), &["sha256"]) {
        return Check::failed("The DKIM key record here does not allow SHA-256 (h=). Publish the record as shown.");
    }
    if !lists(tag("s"), &["*", "email"]) {
        return Check::failed("The DKIM key record here is not for email (s=). Publish the record as shown.");
    }
    if !is_same_key(key, &public) {
        return Check::failed(
            "The DKIM key record here has another key than this one, or part of it was lost. Publish the record exactly as shown.",
        );
    }
    let is_test = tag("t").is_some_and(|flags| flags.split(':').any(|flag| tag_list::without_white(flag) == "y"));
    if is_test {
        return Check::verified_but(
            "The record says that the domain only tests DKIM (t=y), so receivers may ignore signatures. Remove that flag.",
        );
    }
    Check::verified()
}

fn is_same_key(key: &DkimKey, public: &str) -> bool {
    let (Ok(ours), Ok(theirs)) = (LENIENT.decode(&key.public), LENIENT.decode(public)) else { return false };
    ours == theirs || (key.algorithm == Algorithm::RsaSha256 && ours.get(SPKI_HEAD..) == Some(theirs.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::dkim::generate;
    use crate::domain::mail::sending_domain::RecordStatus::{self, Failed, Pending, Verified};
    use crate::entropy::SeededEntropy;
    use crate::time::Timestamp;

    fn key(algorithm: Algorithm) -> DkimKey {
        DkimKey {
            selector: "mk01234567".to_owned(),
            algorithm,
            public: generate(algorithm, &SeededEntropy::new(1)).public,
            sealed: String::new(),
            check: Check::default(),
            created_at: Timestamp::from_millis(0),
            verified_at: None,
        }
    }

    #[track_caller]
    fn check(key: &DkimKey, records: &[&str], expected: RecordStatus, word: &str) {
        let records: Vec<_> = records.iter().map(|record| record.replace('@', &key.public)).collect();
        let judged = judge_dkim(key, &records);
        assert_eq!(judged.status, expected, "{records:?}: {judged:?}");
        assert!(judged.detail.as_deref().unwrap_or_default().contains(word), "{records:?}: {judged:?}");
        assert_eq!(judged.detail.is_some(), !word.is_empty(), "{judged:?}");
    }

    #[test]
    fn a_record_with_the_key_is_verified_however_it_is_written() {
        let key = key(Algorithm::Ed25519Sha256);
        let spread = key.public.chars().map(|c| format!("{c} ")).collect::<String>();
        check(&key, &["v=DKIM1; k=ed25519; p=@"], Verified, "");
        check(&key, &["p=@;k=ed25519"], Verified, "");
        check(&key, &[&format!("v=DKIM1;t=s;n=a note;k=ed25519;\n p={spread};")], Verified, "");
        check(&key, &["v=DKIM1; k=ed25519; h=sha1 : sha256; s=email; p=@"], Verified, "");
        check(&key, &["v=DKIM1; k=ed25519; s=*; p=@", "site-verification=17"], Verified, "");
        check(&key, &["v=DKIM1; k=ed25519; t=y:s; p=@"], Verified, "t=y");
        let unpadded = key.public.trim_end_matches('=').to_owned();
        check(&key, &[&format!("k=ed25519; p={unpadded}")], Verified, "");
    }

    #[test]
    fn what_receivers_would_not_take_is_failed() {
        let key = key(Algorithm::Ed25519Sha256);
        check(&key, &[], Pending, "no TXT record");
        check(&key, &["v=spf1 -all"], Failed, "not a DKIM key record");
        check(&key, &["\"v=DKIM1; k=ed25519; p=@\""], Failed, "quotation marks");
        check(&key, &["v=DKIM1; k=ed25519; p=@", "v=DKIM1; k=ed25519; p=AAAA"], Failed, "several");
        check(&key, &["v=DKIM1; k=ed25519; p=@; p=@"], Failed, "damaged");
        check(&key, &["v=DKIM2; k=ed25519; p=@"], Failed, "version");
        check(&key, &["k=ed25519; v=DKIM1; p=@"], Failed, "version");
        check(&key, &["v=DKIM1; k=ed25519"], Failed, "no key");
        check(&key, &["v=DKIM1; k=ed25519; p="], Failed, "revokes");
        check(&key, &["v=DKIM1; p=@"], Failed, "kind of key");
        check(&key, &["v=DKIM1; k=ed25519; h=sha1; p=@"], Failed, "SHA-256");
        check(&key, &["v=DKIM1; k=ed25519; s=tlsrpt; p=@"], Failed, "not for email");
        check(&key, &["v=DKIM1; k=ed25519; p=AAAA"], Failed, "another key");
        check(&key, &["v=DKIM1; k=ed25519; p=!!!!"], Failed, "another key");
    }

    #[test]
    fn an_rsa_key_may_be_published_bare() {
        let key = key(Algorithm::RsaSha256);
        check(&key, &["v=DKIM1; k=rsa; p=@"], Verified, "");
        check(&key, &["v=DKIM1; p=@"], Verified, "");
        let bare = &LENIENT.decode(&key.public).unwrap()[SPKI_HEAD..];
        check(&key, &[&format!("v=DKIM1; p={}", LENIENT.encode(bare))], Verified, "");
        check(&key, &[&format!("v=DKIM1; p={}", &key.public[..key.public.len() - 8])], Failed, "part of it was lost");
    }
}
