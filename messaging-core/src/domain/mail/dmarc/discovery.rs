//! Discovery of the policy that applies to a domain: the DNS tree walk (RFC 9989 section 4.10).
//!
//! Nothing waits here: [`discover`] gets the answers so far, and returns the questions that are missing.

use super::record::{PolicyRecord, Psd, is_policy};
use crate::domain::mail::spf::{Answers, Question, QuestionKind};

/// Maximum number of names that are asked for a policy, the domain's own included.
pub const MAX_QUERIES: usize = 8;

/// Reason why receivers ignore the records at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The record is damaged.
    Damaged,
    /// There are several policy records.
    Several,
}

/// Result of the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The policy that applies; `None` without one.
    pub policy: Option<PolicyRecord>,
    /// The first domain whose record receivers ignore, with the reason.
    pub fault: Option<(String, Fault)>,
}

/// Returns the name at which a domain's DMARC policy is published.
pub fn dmarc_host(domain: &str) -> String {
    format!("_dmarc.{domain}")
}

/// Returns the domains whose policies are looked for, from the domain itself upwards: at most [`MAX_QUERIES`]. For long
/// names the walk continues with the last seven labels.
fn targets(domain: &str) -> Vec<&str> {
    let mut starts: Vec<_> = domain.match_indices('.').map(|(at, _)| at + 1).collect();
    starts.drain(..starts.len().saturating_sub(MAX_QUERIES - 1));
    std::iter::once(domain).chain(starts.into_iter().map(|at| &domain[at..])).collect()
}

/// Records of one name.
enum Found {
    Nothing,
    Policy(PolicyRecord),
    Ignored(Fault),
}

fn found(domain: &str, texts: &[String]) -> Found {
    let mut policies = texts.iter().filter(|text| is_policy(text));
    match (policies.next(), policies.next()) {
        (None, _) => Found::Nothing,
        (Some(only), None) => PolicyRecord::parse(domain, only).map_or(Found::Ignored(Fault::Damaged), Found::Policy),
        _ => Found::Ignored(Fault::Several),
    }
}

/// Returns the policy among the texts at a domain's own name.
pub fn published(domain: &str, texts: &[String]) -> Result<Option<PolicyRecord>, Fault> {
    match found(domain, texts) {
        Found::Nothing => Ok(None),
        Found::Policy(policy) => Ok(Some(policy)),
        Found::Ignored(fault) => Err(fault),
    }
}

/// Walks up from a domain (lower case A-labels) as far as the answers lead. The error has the questions to look up
/// first: the domain's own record, and if it has none, those of all names above it.
pub fn discover(domain: &str, answers: &Answers) -> Result<Discovery, Vec<Question>> {
    let question = |target: &str| Question { kind: QuestionKind::Texts, name: dmarc_host(target) };
    let targets = targets(domain);
    let Some(own) = answers.texts.get(&dmarc_host(domain)) else { return Err(vec![question(domain)]) };
    match found(domain, own) {
        Found::Policy(policy) => return Ok(Discovery { policy: Some(policy), fault: None }),
        // Receivers ignore it, but it is what the owner has to correct first, whatever is above.
        Found::Ignored(reason) => return Ok(Discovery { policy: None, fault: Some((domain.to_owned(), reason)) }),
        Found::Nothing => {}
    }
    let above = &targets[1..];
    let missing: Vec<_> = above
        .iter()
        .map(|target| question(target))
        .filter(|question| !answers.texts.contains_key(&question.name))
        .collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let (mut policies, mut fault) = (Vec::<PolicyRecord>::new(), None);
    for target in above {
        match found(target, &answers.texts[&dmarc_host(target)]) {
            Found::Policy(policy) => {
                let psd = policy.psd;
                policies.push(policy);
                if psd != Psd::Unknown {
                    break;
                }
            }
            Found::Ignored(reason) => drop(fault.get_or_insert(((*target).to_owned(), reason))),
            Found::Nothing => {}
        }
    }
    Ok(Discovery { policy: applicable(policies), fault })
}

/// Returns the policy of the organizational domain, or else that of the public suffix, among those found from below
/// upwards.
fn applicable(mut policies: Vec<PolicyRecord>) -> Option<PolicyRecord> {
    let last = policies.pop()?;
    if last.psd != Psd::Yes {
        return Some(last);
    }
    // The organizational domain is the name one label below the public suffix.
    let below = policies.pop().filter(|policy| {
        let rest = policy.domain.strip_suffix(last.domain.as_str()).and_then(|rest| rest.strip_suffix('.'));
        rest.is_some_and(|label| !label.contains('.'))
    });
    Some(below.unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks with a DNS of these records; returns the questions that were asked, and the result.
    fn walk(domain: &str, records: &[(&str, &[&str])]) -> (Vec<String>, Discovery) {
        let mut answers = Answers::default();
        let mut asked = Vec::new();
        loop {
            match discover(domain, &answers) {
                Ok(discovery) => return (asked, discovery),
                Err(questions) => {
                    assert!(!questions.is_empty());
                    for question in questions {
                        let texts = records.iter().find(|(name, _)| dmarc_host(name) == question.name);
                        let texts = texts.map_or(&[][..], |(_, texts)| texts);
                        asked.push(question.name.clone());
                        answers.texts.insert(question.name, texts.iter().map(|&text| text.to_owned()).collect());
                    }
                }
            }
        }
    }

    #[track_caller]
    fn check(domain: &str, records: &[(&str, &[&str])], expected: Option<&str>, fault: Option<(&str, Fault)>) {
        let (_, found) = walk(domain, records);
        assert_eq!(found.policy.map(|policy| policy.domain).as_deref(), expected, "{domain} {records:?}");
        assert_eq!(found.fault, fault.map(|(name, fault)| (name.to_owned(), fault)), "{domain} {records:?}");
    }

    const NONE: &[&str] = &["unrelated", "v=DMARC1; p=none"];

    #[test]
    fn at_most_eight_names_are_asked() {
        let (asked, found) = walk("a.b.c.d.e.f.g.h.i.j.mail.example.com", &[]);
        assert_eq!(asked.len(), MAX_QUERIES);
        assert_eq!(asked[1], "_dmarc.g.h.i.j.mail.example.com");
        assert_eq!(asked[7], "_dmarc.com");
        assert_eq!(found, Discovery::default());
        let (asked, _) = walk("example.com", &[("example.com", NONE)]);
        assert_eq!(asked, ["_dmarc.example.com"]);
    }

    #[test]
    fn the_record_with_the_fewest_labels_is_that_of_the_organization() {
        check("a.mail.example.com", &[("example.com", NONE), ("mail.example.com", NONE)], Some("example.com"), None);
        check(
            "a.mail.example.com",
            &[("a.mail.example.com", NONE), ("example.com", NONE)],
            Some("a.mail.example.com"),
            None,
        );
        check("example.com", &[], None, None);
    }

    #[test]
    fn psd_ends_the_walk() {
        let organization = &["v=DMARC1; p=reject; psd=n"][..];
        let suffix = &["v=DMARC1; p=reject; psd=y"][..];
        check(
            "a.mail.example.com",
            &[("mail.example.com", organization), ("example.com", NONE)],
            Some("mail.example.com"),
            None,
        );
        check("a.example.bank", &[("example.bank", NONE), ("bank", suffix)], Some("example.bank"), None);
        check("a.example.bank", &[("bank", suffix)], Some("bank"), None);
        check("example.bank", &[("bank", suffix)], Some("bank"), None);
        // Between the organizational domain and the sender nothing counts.
        check("a.b.example.bank", &[("b.example.bank", NONE), ("bank", suffix)], Some("bank"), None);
    }

    #[test]
    fn what_receivers_ignore_is_told() {
        let several = &["v=DMARC1; p=none", "v=DMARC1; p=reject"][..];
        check(
            "a.example.com",
            &[("a.example.com", several), ("example.com", NONE)],
            None,
            Some(("a.example.com", Fault::Several)),
        );
        check("a.example.com", &[("example.com", &["v=DMARC1"])], None, Some(("example.com", Fault::Damaged)));
    }
}
