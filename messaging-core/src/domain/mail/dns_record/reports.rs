//! Verdicts on the records that ask for reports: DMARC policies and TLS-RPT.

use crate::domain::mail::dmarc::record::uris;
use crate::domain::mail::dmarc::{Discovery, Fault, PolicyRecord};
use crate::domain::mail::sending_domain::Check;
use crate::domain::mail::tag_list;

/// Returns the verdict on the DMARC policy of a domain: any valid one will do, also one of a domain above, and it is
/// kept. The detail says what to add and to remove. `is_ours` tells which URIs receive reports here; `ours` is the one
/// to publish.
pub fn judge_dmarc(domain: &str, found: &Discovery, ours: &str, is_ours: impl Fn(&str) -> bool) -> Check {
    match (&found.policy, &found.fault) {
        (Some(policy), _) => judge_policy(domain, policy, ours, is_ours),
        (None, Some((_, fault))) => Check::failed(policy_fault(*fault)),
        (None, None) => Check::pending("There is no DMARC policy (v=DMARC1) here yet. Publish the record as shown."),
    }
}

/// Returns the sentence that says why receivers ignore a policy.
pub const fn policy_fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Damaged => "The DMARC policy is damaged: after v=DMARC1 it needs p=none, p=quarantine or p=reject.",
        Fault::Several => "There are several DMARC policies (v=DMARC1), so receivers ignore them all. Leave only one.",
    }
}

fn judge_policy(domain: &str, policy: &PolicyRecord, ours: &str, is_ours: impl Fn(&str) -> bool) -> Check {
    let mut notes = Vec::new();
    if policy.is_doubtful {
        notes.push(
            "Receivers take the policy for p=none, because p, sp or np has a word that they do not know.".to_owned(),
        );
    }
    if !policy.rua.iter().any(|uri| is_ours(uri)) {
        let of = if policy.domain == domain { String::new() } else { format!(" of {}", policy.domain) };
        notes.push(if policy.rua.is_empty() {
            format!("The policy{of} is kept. To see its reports here, add rua={ours} to it.")
        } else {
            format!("The policy{of} is kept. To see its reports here as well, add {ours} to its rua, after a comma.")
        });
    }
    if !policy.obsolete.is_empty() {
        let tags = policy.obsolete.join(", ");
        notes.push(format!("Receivers ignore {tags} since RFC 9989 and apply the policy to all mail; leave that out."));
    }
    if policy.is_testing {
        notes.push("With t=y receivers apply the next weaker policy.".to_owned());
    }
    if notes.is_empty() { Check::verified() } else { Check::verified_but(notes.join(" ")) }
}

/// Returns the verdict on the TXT records at `_smtp._tls.` below a domain (RFC 8460 section 3).
pub fn judge_tls_rpt(found: &[String], ours: &str, is_ours: impl Fn(&str) -> bool) -> Check {
    let records: Vec<_> = found.iter().filter(|text| text.starts_with("v=TLSRPTv1")).collect();
    let record = match records.as_slice() {
        [] => return Check::pending("There is no TLS-RPT record (v=TLSRPTv1) here yet. Publish the record as shown."),
        [only] => only,
        _ => {
            return Check::failed(
                "There are several TLS-RPT records (v=TLSRPTv1), so receivers ignore them all. Leave only one.",
            );
        }
    };
    let tags = tag_list::parse(record).filter(|tags| tags[0] == ("v", "TLSRPTv1")).unwrap_or_default();
    let receivers = tag_list::value(&tags, "rua").map(uris).unwrap_or_default();
    if receivers.is_empty() {
        return Check::failed(
            "The TLS-RPT record is damaged: after v=TLSRPTv1 it needs rua=mailto:… or rua=https://….",
        );
    }
    if receivers.iter().any(|uri| is_ours(uri)) {
        return Check::verified();
    }
    Check::verified_but(format!(
        "The record is kept. To see its reports here as well, add {ours} to its rua, after a comma."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::dmarc::{discover, discovery::dmarc_host};
    use crate::domain::mail::sending_domain::RecordStatus::{self, Failed, Pending, Verified};
    use crate::domain::mail::spf::Answers;

    const OURS: &str = "mailto:dmarc+t@bounce.mx.test";

    /// Looks at `shop.acme.test`, below whose name and that of `acme.test` these records are.
    fn look(own: &[&str], above: &[&str]) -> Check {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut answers = Answers::default();
        for (name, found) in [("shop.acme.test", texts(own)), ("acme.test", texts(above)), ("test", Vec::new())] {
            answers.texts.insert(dmarc_host(name), found);
        }
        let found = discover("shop.acme.test", &answers).unwrap();
        judge_dmarc("shop.acme.test", &found, OURS, |uri| uri == OURS)
    }

    #[track_caller]
    fn check(judged: &Check, expected: RecordStatus, words: &str) {
        assert_eq!(judged.status, expected, "{judged:?}");
        let detail = judged.detail.clone().unwrap_or_default();
        assert!(detail.contains(words) && detail.is_empty() == words.is_empty(), "{judged:?}");
        assert!(detail.is_empty() || detail.ends_with('.'), "{judged:?}");
    }

    #[test]
    fn dmarc_is_any_valid_policy_here_or_above() {
        let ours = format!("v=DMARC1; p=none; rua=mailto:a@b.test,{OURS}!10m");
        for (own, above, expected, words) in [
            (&[][..], &[][..], Pending, "no DMARC policy"),
            (&[ours.as_str()], &[], Verified, ""),
            (&["v=DMARC1; p=none"], &[], Verified, "add rua=mailto:dmarc+t@bounce.mx.test"),
            (&["v = DMARC1;p=Reject;pct=50;"], &[], Verified, "ignore pct"),
            (&["v=DMARC1; rua=mailto:a@b.test"], &[], Verified, "after a comma"),
            (&["unrelated", "v=DMARC1; p=quarantine; sp=none"], &[], Verified, "is kept"),
            (&["v=DMARC1; p=reject; t=y"], &[], Verified, "t=y"),
            (&["v=DMARC1; p=all; rua=mailto:a@b.test"], &[], Verified, "p=none"),
            (&["v=DMARC1"], &[], Failed, "damaged"),
            (&["v=DMARC1; p=monitor"], &[], Failed, "damaged"),
            (&["v=DMARC1; p"], &[], Failed, "damaged"),
            (&["v=DMARC12; p=none"], &[], Failed, "damaged"),
            (&["p=none; v=DMARC1"], &[], Pending, "no DMARC policy"),
            (&["v=DMARC1; p=none", "v=DMARC1; p=reject"], &[], Failed, "several"),
            (&["unrelated"], &["v=DMARC1; p=reject"], Verified, "The policy of acme.test is kept"),
            (&[], &["v=DMARC1"], Failed, "damaged"),
            (&[], &["v=DMARC1; p=none", "v=DMARC1; p=none"], Failed, "several"),
            (&["v=DMARC1"], &["v=DMARC1; p=reject"], Failed, "damaged"),
        ] {
            check(&look(own, above), expected, words);
        }
    }

    #[test]
    fn tls_rpt_is_one_record_that_names_a_receiver() {
        let ours = format!("v=TLSRPTv1; rua={OURS}");
        for (found, expected, words) in [
            (&[][..], Pending, "no TLS-RPT record"),
            (&["unrelated", ours.as_str()], Verified, ""),
            (&["v=TLSRPTv1;rua=https://b.test/tls"], Verified, "after a comma"),
            (&["v=TLSRPTv1"], Failed, "damaged"),
            (&["v=TLSRPTv1; rua="], Failed, "damaged"),
            (&["v=TLSRPTv1; rua=mailto:a@b.test", ours.as_str()], Failed, "several"),
        ] {
            let found: Vec<_> = found.iter().map(|&text| text.to_owned()).collect();
            check(&judge_tls_rpt(&found, OURS, |uri| uri == OURS), expected, words);
        }
    }
}
