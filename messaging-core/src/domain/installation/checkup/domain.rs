//! The five checks of a sending domain: its DNS records, and whether its mail passes DMARC where it arrives.
//!
//! Contract section 22. Each check is a pure function from [`DomainFacts`] to a [`CheckReport`].

use super::dmarc::{DmarcAction, DmarcPolicy};
use super::{CheckId, CheckReport, LookUp, Looked, listed};
use crate::domain::mail::dns_record::dmarc_host;
use crate::domain::mail::sending_domain::RecordStatus;
use crate::domain::mail::verification::{Finding, Findings};

/// Facts that were looked up about a sending domain, from which its checks are judged.
#[derive(Debug, Clone)]
pub struct DomainFacts {
    /// Text that names the domain in reports: its name, and its workspace if several workspaces have the domain.
    pub subject: String,
    /// Name of the domain.
    pub domain: String,
    /// Findings about its DKIM, SPF, DMARC and MX records.
    pub findings: Findings,
    /// Its DMARC policy; `None` if it has no valid one.
    pub policy: LookUp<Option<DmarcPolicy>>,
    /// Base URL of the links in its mail, from `--public-url`.
    pub public_url: String,
}

/// The reports of the five checks of a domain, in the order of [`CheckId::OF_DOMAIN`].
pub fn judge_domain(facts: &DomainFacts) -> [CheckReport; 5] {
    [dkim(facts), return_path(facts), dmarc(facts), alignment(facts), one_click(facts)]
}

/// The reports of a domain for trying out, which exists in no DNS: every check is skipped.
pub fn exempt_domain(subject: &str) -> [CheckReport; 5] {
    CheckId::OF_DOMAIN.map(|id| {
        Looked::at(id, subject, "")
            .skipped("The domain is for trying out and exists in no DNS.", "add a domain of yours")
    })
}

/// True if the record was found and is right.
fn is_verified(finding: &Finding) -> bool {
    finding.as_ref().is_ok_and(|check| check.status == RecordStatus::Verified)
}

/// A sentence that says what is wrong with a record; `None` if it is verified.
fn problem_of(finding: &Finding) -> Option<String> {
    match finding {
        Ok(check) if check.status == RecordStatus::Verified => None,
        Ok(check) => Some(check.detail.clone().unwrap_or_else(|| "It is not published.".to_owned())),
        Err(reason) => Some(format!("It could not be looked up: {reason}.")),
    }
}

/// Cure that reports give for records that are absent or wrong.
const PUBLISH_CURE: &str =
    "publish the records as `messaging domain records` shows them, then `messaging domain verify --wait`";

/// True if the key of at least one selector is published, so that signed mail of the domain verifies.
fn has_dkim(facts: &DomainFacts) -> bool {
    facts.findings.dkim.iter().any(|(_, finding)| is_verified(finding))
}

/// Checks the DKIM keys: a fault if none is published, a warning if one of several is not.
fn dkim(facts: &DomainFacts) -> CheckReport {
    let looked = Looked::at(CheckId::Dkim, &facts.subject, "the key of every selector published");
    let broken: Vec<_> =
        facts.findings.dkim.iter().filter_map(|(selector, finding)| Some((selector, problem_of(finding)?))).collect();
    let published = facts.findings.dkim.len() - broken.len();
    let looked = looked.found(format!("{published} of {} keys published", facts.findings.dkim.len()));
    let Some((selector, what)) = broken.first() else {
        return looked.ok("The keys are published.");
    };
    let text = format!("The key of the selector {selector} is not published. {what}");
    if published == 0 {
        return looked
            .fault(format!("No key is published, so mail of the domain cannot be verified. {what}"), PUBLISH_CURE);
    }
    looked.warning(text, PUBLISH_CURE)
}

/// Checks the SPF and MX records of the bounce domain: a fault if one of them is not verified, a warning if the MX
/// record is verified with a remark.
fn return_path(facts: &DomainFacts) -> CheckReport {
    let looked = Looked::at(CheckId::ReturnPath, &facts.subject, "SPF and MX records of the bounce domain");
    let status = |finding: &Finding| match finding {
        Ok(check) => match check.status {
            RecordStatus::Verified => "verified",
            RecordStatus::Pending => "absent",
            RecordStatus::Failed => "wrong",
        },
        Err(_) => "no answer",
    };
    let Findings { spf, return_path, .. } = &facts.findings;
    let looked = looked.found(format!("SPF {}, MX {}", status(spf), status(return_path)));
    if let Some(what) = problem_of(spf) {
        return looked
            .fault(format!("The SPF record of the bounce domain does not let this server send. {what}"), PUBLISH_CURE);
    }
    if let Some(what) = problem_of(return_path) {
        return looked.fault(
            format!("Bounces do not come back, and receivers that look for the MX record refuse the mail. {what}"),
            PUBLISH_CURE,
        );
    }
    match return_path.as_ref().ok().and_then(|check| check.detail.clone()) {
        Some(detail) => looked.warning(detail, PUBLISH_CURE),
        None => looked.ok("Bounces come back, and the envelope passes SPF."),
    }
}

/// True if mail of the domain passes DMARC today: by an aligned signature, or by an aligned envelope that passes SPF.
/// The envelope has the bounce domain, so a policy with `aspf=s` rules it out.
fn passes_dmarc(facts: &DomainFacts, policy: Option<&DmarcPolicy>) -> bool {
    has_dkim(facts) || (is_verified(&facts.findings.spf) && !policy.is_some_and(|policy| policy.strict_spf))
}

/// Checks that the domain has one valid DMARC policy and that its mail passes it. Mail that fails is a fault, except
/// under `p=none`, where nothing follows from it yet.
fn dmarc(facts: &DomainFacts) -> CheckReport {
    let looked = Looked::at(CheckId::Dmarc, &facts.subject, "one valid DMARC policy that mail of the domain passes");
    let policy = match (&facts.findings.dmarc, &facts.policy) {
        (Err(reason), _) | (_, Err(reason)) => return looked.unanswered("the DMARC policy", reason),
        (Ok(check), Ok(policy)) => {
            if check.status == RecordStatus::Failed {
                let what = check.detail.clone().unwrap_or_default();
                return looked.found("damaged").fault(what, PUBLISH_CURE);
            }
            *policy
        }
    };
    let Some(policy) = policy else {
        return looked.found("none").warning(
            "There is no DMARC policy; the large mailbox providers want one of whoever sends much.",
            format!(
                "publish the policy that `messaging domain records` shows at {}: it only asks receivers for reports",
                dmarc_host(&facts.domain)
            ),
        );
    };
    let action = policy.action;
    let looked = looked.found(format!("p={}", action.as_str()));
    if !passes_dmarc(facts, Some(&policy)) {
        let text = "Mail of the domain fails DMARC";
        return match action {
            DmarcAction::None => {
                looked.warning(format!("{text}; with p=none nothing follows from that yet."), PUBLISH_CURE)
            }
            _ => looked.fault(format!("{text}, and receivers {}.", what_receivers_do(action)), PUBLISH_CURE),
        };
    }
    match action {
        DmarcAction::None if policy.has_reports => looked.end(
            super::CheckStatus::Ok,
            "Mail of this server passes DMARC; p=none only watches.",
            "next step: when the reports show for some weeks that all mail in the domain's name passes, publish p=quarantine",
        ),
        DmarcAction::None => looked.end(
            super::CheckStatus::Ok,
            "Mail of this server passes DMARC; p=none only watches, and nobody receives reports.",
            "next step: add rua=mailto:… with a mailbox of yours; publish p=quarantine only when the reports show for some \
             weeks that all mail in the domain's name passes",
        ),
        DmarcAction::Quarantine => looked.end(
            super::CheckStatus::Ok,
            "Mail of this server passes DMARC.",
            "next step: publish p=reject when reports show nothing of yours that fails",
        ),
        DmarcAction::Reject => looked.ok("Mail of this server passes DMARC, and what pretends to be yours is refused."),
    }
}

/// Words for what receivers do with mail that fails DMARC, which follow "receivers" in a sentence.
const fn what_receivers_do(action: DmarcAction) -> &'static str {
    match action {
        DmarcAction::Reject => "refuse it",
        DmarcAction::Quarantine => "put it aside",
        DmarcAction::None => "take it",
    }
}

/// Checks that DKIM and SPF pass in the name of the sender's domain, as the policy demands (`adkim`, `aspf`): a fault
/// if neither does, a warning if only one does, which is enough for mail to pass.
fn alignment(facts: &DomainFacts) -> CheckReport {
    let looked = Looked::at(CheckId::Alignment, &facts.subject, "DKIM and SPF in the name of the sender's domain");
    let policy = match &facts.policy {
        Ok(policy) => *policy,
        Err(reason) => return looked.unanswered("the DMARC policy", reason),
    };
    let strict_spf = policy.is_some_and(|policy| policy.strict_spf);
    let strict_dkim = policy.is_some_and(|policy| policy.strict_dkim);
    let (dkim, spf) = (has_dkim(facts), is_verified(&facts.findings.spf) && !strict_spf);
    let aligned: Vec<_> = [("DKIM", dkim), ("SPF", spf)].iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    let looked = looked.found(if aligned.is_empty() { "nothing aligned".to_owned() } else { listed(&aligned) });
    if !dkim && !spf {
        return looked.fault("Neither DKIM nor SPF passes in the name of the domain.", PUBLISH_CURE);
    }
    if strict_dkim {
        return looked.warning(
            "The policy wants DKIM in exactly the sender's domain (adkim=s): senders below the domain do not pass by DKIM.",
            "send from addresses at the domain itself, or publish adkim=r",
        );
    }
    if !dkim {
        return looked.warning("Only SPF passes, which is lost when mail is forwarded.", PUBLISH_CURE);
    }
    if strict_spf {
        return looked.warning(
            "The policy wants the envelope in exactly the sender's domain (aspf=s), and it is the bounce domain: only DKIM passes.",
            "publish aspf=r",
        );
    }
    if !spf {
        return looked.warning("Only DKIM passes.", PUBLISH_CURE);
    }
    looked.ok("Mail passes by DKIM and by SPF.")
}

/// Checks that recipients can unsubscribe with one click (RFC 8058): the link must be https, and the mail signed.
fn one_click(facts: &DomainFacts) -> CheckReport {
    let looked =
        Looked::at(CheckId::OneClick, &facts.subject, "an https link to unsubscribe in signed mail (RFC 8058)");
    let scheme = facts.public_url.split("://").next().unwrap_or_default();
    let looked = looked.found(format!("{scheme}, {}", if has_dkim(facts) { "signed" } else { "no key published" }));
    if !scheme.eq_ignore_ascii_case("https") {
        return looked.warning(
            "Mailbox providers offer unsubscribing with one click only for https links; without that they refuse much mail to lists.",
            "start the server with --public-url https://…",
        );
    }
    if !has_dkim(facts) {
        return looked.fault("The link to unsubscribe counts only in mail whose signature verifies.", PUBLISH_CURE);
    }
    looked.ok("Recipients can unsubscribe with one click.")
}
