//! Verdict on the SPF record of the bounce domain.

use crate::domain::mail::sending_domain::Check;
use crate::domain::mail::spf::evaluation::{MAX_LOOKUPS, MAX_VOID_LOOKUPS};
use crate::domain::mail::spf::record::{self, Mechanism, Qualifier};
use crate::domain::mail::spf::{Answers, Evaluation, Problem, Question, QuestionKind, Step, evaluate};

/// Returns the verdict on the SPF record of `host`, or the questions to look up first. The record is right if there is
/// exactly one, it lets `include` send before its `all`, receivers can evaluate it, and the record of `include` itself
/// resolves and lets at least one address send.
///
/// RFC 7208 sections 3.1, 4.5, 4.6 and 5.
pub fn judge_spf(host: &str, include: &str, answers: &Answers) -> Result<Check, Vec<Question>> {
    let Some(found) = answers.texts.get(host) else {
        return Err(vec![Question { kind: QuestionKind::Texts, name: host.to_owned() }]);
    };
    let judged = judge_text(include, found);
    if judged.detail.is_some() {
        return Ok(judged);
    }
    let (whole, target) = match (evaluate(host, answers), evaluate(include, answers)) {
        (Step::Done(whole), Step::Done(target)) => (whole, target),
        (Step::Ask(mut missing), Step::Ask(more)) => {
            missing.extend(more);
            return Err(missing);
        }
        (Step::Ask(missing), _) | (_, Step::Ask(missing)) => return Err(missing),
    };
    Ok(judge_target(include, &target).or_else(|| judge_whole(host, &whole)).map_or_else(Check::verified, Check::failed))
}

/// Returns the verdict on the record's own text.
fn judge_text(include: &str, found: &[String]) -> Check {
    let records: Vec<_> = found.iter().filter_map(|text| record::strip_version(text)).collect();
    let terms = match records.as_slice() {
        [] => return Check::pending("There is no SPF record (v=spf1) here yet. Publish the record as shown."),
        [only] => only,
        _ => {
            return Check::failed(
                "There are several SPF records (v=spf1) here, which is an error to receivers. Leave only one.",
            );
        }
    };
    let parsed = match record::parse(terms) {
        Ok(parsed) => parsed,
        Err(term) => return Check::failed(format!("The SPF record here is damaged at {term}. Publish it as shown.")),
    };
    let ours = parsed
        .directives
        .iter()
        .find(|directive| matches!(&directive.mechanism, Mechanism::Include(name) if name == include));
    match ours {
        Some(directive) if directive.qualifier == Qualifier::Pass => Check::verified(),
        Some(directive) => Check::failed(format!(
            "The SPF record here has {}, which does not allow sending. Write include:{include}.",
            directive.text
        )),
        None => {
            Check::failed(format!("The SPF record here lacks include:{include} before its all. Add it to the record."))
        }
    }
}

/// Returns the fault of the included record, which the operator of this server has to fix.
fn judge_target(include: &str, target: &Evaluation) -> Option<String> {
    let whose = "whoever runs this server has to publish one that lets its addresses send, such as v=spf1 a -all";
    if let Some(problem) = &target.problem {
        return Some(match problem {
            Problem::NoRecord { host } if host == include => {
                format!("The record includes {include}, which has no SPF record itself: {whose}.")
            }
            other => format!("The record includes {include}, whose SPF record receivers refuse: {}.", sentence(other)),
        });
    }
    if let Some(void) = target.voids.first() {
        return Some(format!(
            "The record includes {include}, where {} of {} finds nothing: {whose}.",
            void.term, void.host
        ));
    }
    if !target.permits_somebody() {
        return Some(format!("The record includes {include}, whose SPF record lets nobody send: {whose}."));
    }
    None
}

/// Returns the fault of the record together with all records that it names.
fn judge_whole(host: &str, whole: &Evaluation) -> Option<String> {
    if let Some(problem) = &whole.problem {
        return Some(format!("Receivers refuse the SPF record here: {}.", sentence(problem)));
    }
    if whole.voids.len() > MAX_VOID_LOOKUPS {
        let terms: Vec<_> = whole
            .voids
            .iter()
            .map(|void| if void.host == host { void.term.clone() } else { format!("{} of {}", void.term, void.host) })
            .collect();
        return Some(format!(
            "Receivers refuse the SPF record here: {} look-ups find nothing ({}), and at most {MAX_VOID_LOOKUPS} may. Remove \
             those terms.",
            terms.len(),
            terms.join(", ")
        ));
    }
    None
}

/// Returns a problem as part of a sentence.
pub fn sentence(problem: &Problem) -> String {
    match problem {
        Problem::NoRecord { host } => format!("{host}, which it names, has no SPF record"),
        Problem::SeveralRecords { host } => format!("{host} has several SPF records"),
        Problem::Malformed { host, term } => format!("the record of {host} is damaged at {term}"),
        Problem::TooManyLookups { term, host } => {
            format!("it needs more than {MAX_LOOKUPS} look-ups, of which {term} of {host} is the one too many")
        }
        Problem::TooManyExchangers { host } => format!("{host} has more than 10 mail exchangers"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::domain::mail::sending_domain::RecordStatus::{self, Failed, Pending, Verified};
    use crate::domain::mail::spf::Permission;
    use crate::domain::mail::spf::evaluation::MAX_ROUNDS;

    /// A zone in lines: `name TYPE value`.
    struct Zone(&'static [&'static str]);

    impl Zone {
        fn values(&self, name: &str, kind: &str) -> Vec<String> {
            let value = |line: &&str| {
                let mut parts = line.splitn(3, ' ');
                (parts.next() == Some(name) && parts.next() == Some(kind)).then(|| parts.next().unwrap().to_owned())
            };
            self.0.iter().filter_map(value).collect()
        }

        fn answer(&self, answers: &mut Answers, question: Question) {
            let Question { kind, name } = question;
            match kind {
                QuestionKind::Texts => drop(answers.texts.insert(name.clone(), self.values(&name, "TXT"))),
                QuestionKind::Exchangers => drop(answers.exchangers.insert(name.clone(), self.values(&name, "MX"))),
                QuestionKind::Addresses => {
                    let found = self.values(&name, "A").iter().map(|text| text.parse().unwrap()).collect();
                    answers.addresses.insert(name, found);
                }
            }
        }
    }

    /// Answers every question from the zone, as a resolver would.
    fn ask<T>(zone: &Zone, mut step: impl FnMut(&Answers) -> Result<T, Vec<Question>>) -> T {
        let mut answers = Answers::default();
        for _ in 0..MAX_ROUNDS {
            match step(&answers) {
                Ok(done) => return done,
                Err(questions) => questions.into_iter().for_each(|question| zone.answer(&mut answers, question)),
            }
        }
        panic!("not done after {MAX_ROUNDS} rounds");
    }

    const HOST: &str = "bounce.acme.test";
    const OURS: &str = "mx.service.test";

    #[track_caller]
    fn check(zone: &'static [&'static str], expected: RecordStatus, words: &str) {
        let judged = ask(&Zone(zone), |answers| judge_spf(HOST, OURS, answers));
        assert_eq!(judged.status, expected, "{judged:?}");
        let detail = judged.detail.unwrap_or_default();
        assert!(detail.contains(words) && detail.is_empty() == (expected == Verified), "{detail}");
        assert!(detail.is_empty() || detail.ends_with('.'), "{detail}");
    }

    #[test]
    fn spf_is_one_record_with_our_include() {
        for (records, expected, words) in [
            (&[][..], Pending, "no SPF record"),
            (&["google-site-verification=1", "v=spf10 include:mx.service.test"], Pending, "no SPF record"),
            (&["v=spf1 include:mx.service.test ~all"], Verified, ""),
            (&["unrelated", "V=SPF1  ip4:192.0.2.1 +Include:MX.Service.test. -ALL"], Verified, ""),
            (&["v=spf1 include:mx.service.test"], Verified, ""),
            (&["v=spf1"], Failed, "lacks"),
            (&["v=spf1 -all"], Failed, "lacks"),
            (&["v=spf1 include:amx.service.test include:mx.service.testing ~all"], Failed, "lacks"),
            (&["v=spf1 exists:include:mx.service.test ~all"], Failed, "lacks"),
            (&["v=spf1 ?include:mx.service.test ~all"], Failed, "?include:mx.service.test"),
            (&["v=spf1 -include:mx.service.test ~all"], Failed, "does not allow"),
            (&["v=spf1 ~all include:mx.service.test"], Failed, "lacks"),
            (&["v=spf1 include:mx.service.test inclued:other.test ~all"], Failed, "inclued:other.test"),
            (&["v=spf1 include:mx.service.test ~all", "v=spf1 -all"], Failed, "several"),
            (&["v=spf1\u{e4}"], Pending, "no SPF record"),
        ] {
            let texts = records.iter().map(|&text| text.to_owned()).collect();
            let zone = Zone(&["mx.service.test TXT v=spf1 ip4:192.0.2.1 -all"]);
            let judged = ask(&zone, |answers| {
                let mut answers = answers.clone();
                answers.texts.insert(HOST.to_owned(), Vec::clone(&texts));
                judge_spf(HOST, OURS, &answers)
            });
            assert_eq!(judged.status, expected, "{records:?}: {judged:?}");
            assert!(judged.detail.unwrap_or_default().contains(words), "{records:?}");
        }
    }

    const INCLUDE: &str = "bounce.acme.test TXT v=spf1 include:mx.service.test ~all";

    #[test]
    fn what_is_included_must_let_us_send() {
        check(&[INCLUDE], Failed, "has no SPF record itself");
        check(&[INCLUDE, "mx.service.test TXT unrelated"], Failed, "has no SPF record itself");
        check(&[INCLUDE, "mx.service.test TXT v=spf1 -all"], Failed, "lets nobody send");
        check(&[INCLUDE, "mx.service.test TXT v=spf1 a -all"], Failed, "a of mx.service.test finds nothing");
        check(&[INCLUDE, "mx.service.test TXT v=spf1 ip4:192.0.2.1 mx -all"], Failed, "mx of mx.service.test");
        check(&[INCLUDE, "mx.service.test TXT v=spf1 a -all", "mx.service.test A 192.0.2.1"], Verified, "");
        check(
            &[INCLUDE, "mx.service.test TXT v=spf1 mx -all", "mx.service.test MX m.test", "m.test A 192.0.2.1"],
            Verified,
            "",
        );
        check(
            &[INCLUDE, "mx.service.test TXT v=spf1 mx -all", "mx.service.test MX m.test"],
            Failed,
            "mx of mx.service",
        );
        check(&[INCLUDE, "mx.service.test TXT v=spf1 ip5:x -all"], Failed, "damaged at ip5:x");
        check(
            &[INCLUDE, "mx.service.test TXT v=spf1 ip4:192.0.2.1", "mx.service.test TXT v=spf1 -all"],
            Failed,
            "several SPF records",
        );
        check(
            &[
                INCLUDE,
                "mx.service.test TXT v=spf1 redirect=spf.service.test",
                "spf.service.test TXT v=spf1 ip4:192.0.2.0/24 -all",
            ],
            Verified,
            "",
        );
        check(&[INCLUDE, "mx.service.test TXT v=spf1 redirect=spf.service.test"], Failed, "spf.service.test");
        check(&[INCLUDE, "mx.service.test TXT v=spf1 include:mx.service.test -all"], Failed, "more than 10 look-ups");
    }

    #[test]
    fn two_look_ups_may_find_nothing_and_three_may_not() {
        const TARGET: &str = "mx.service.test TXT v=spf1 ip4:192.0.2.1 -all";
        check(&["bounce.acme.test TXT v=spf1 a mx include:mx.service.test ~all", TARGET], Verified, "");
        check(
            &["bounce.acme.test TXT v=spf1 a mx exists:x.test include:mx.service.test ~all", TARGET],
            Failed,
            "3 look-ups find nothing (a, mx, exists:x.test)",
        );
    }

    #[test]
    fn ten_look_ups_are_allowed_and_the_eleventh_is_not() {
        const TARGET: &str = "mx.service.test TXT v=spf1 ip4:192.0.2.1 -all";
        check(
            &[
                "bounce.acme.test TXT v=spf1 include:mx.service.test a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test \
                 a:h.test a:h.test a:h.test ~all",
                TARGET,
                "h.test A 192.0.2.2",
            ],
            Verified,
            "",
        );
        check(
            &[
                "bounce.acme.test TXT v=spf1 include:mx.service.test a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test \
                 a:h.test a:h.test a:h.test a:last.test ~all",
                TARGET,
                "h.test A 192.0.2.2",
            ],
            Failed,
            "a:last.test of bounce.acme.test",
        );
        // Look-ups of the included records count as well.
        check(
            &[
                "bounce.acme.test TXT v=spf1 include:mx.service.test include:other.test ~all",
                TARGET,
                "other.test TXT v=spf1 a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test a:h.test ~all",
                "h.test A 192.0.2.2",
            ],
            Failed,
            "more than 10 look-ups",
        );
    }

    #[test]
    fn an_address_is_allowed_by_the_first_match() {
        let permits = |zone: &'static [&'static str], address: &str| {
            let evaluated = ask(&Zone(zone), |answers| match evaluate("a.test", answers) {
                Step::Done(done) => Ok(done),
                Step::Ask(missing) => Err(missing),
            });
            evaluated.permits(address.parse::<IpAddr>().unwrap())
        };
        let zone = &[
            "a.test TXT v=spf1 -ip4:192.0.2.9 ip4:192.0.2.0/28 ip6:2001:db8::/32 include:b.test mx/24 -all",
            "b.test TXT v=spf1 -ip4:198.51.100.1 a -all",
            "b.test A 198.51.100.2",
            "a.test MX m.test",
            "m.test A 203.0.113.7",
        ][..];
        for (address, expected) in [
            ("192.0.2.1", Permission::Allowed),
            ("192.0.2.9", Permission::Refused),
            ("192.0.2.16", Permission::Refused),
            ("2001:db8::1", Permission::Allowed),
            ("198.51.100.1", Permission::Refused),
            ("198.51.100.2", Permission::Allowed),
            ("203.0.113.200", Permission::Allowed),
        ] {
            assert_eq!(permits(zone, address), expected, "{address}");
        }
        assert_eq!(
            permits(&["a.test TXT v=spf1 redirect=b.test", "b.test TXT v=spf1 +all"], "::1"),
            Permission::Allowed
        );
        assert_eq!(permits(&["a.test TXT v=spf1 exists:%{i}.b.test -all"], "::1"), Permission::Unknown);
        assert_eq!(permits(&["a.test TXT v=spf1 ip6:::1 ptr -all"], "::1"), Permission::Allowed);
        assert_eq!(permits(&["a.test TXT v=spf1"], "::1"), Permission::Refused);
    }
}
