//! Merging of our include into an SPF record of others.
//!
//! RFC 7208. The include is put right before `all`; every other term stays at its place and as it is written.

use crate::domain::mail::spf::evaluation::MAX_LOOKUPS;
use crate::domain::mail::spf::record::{self, Mechanism, Qualifier};

/// Result of a merge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// There is no SPF record.
    Absent,
    /// The present record lets us send.
    Present,
    /// The present record, and the same with our include.
    Merged { before: String, merged: String },
    /// A person has to decide, for the reason in the text.
    Impossible(String),
}

/// Merges `include:<name>` into the SPF record among these texts.
pub(super) fn merge(name: &str, texts: &[String]) -> Merge {
    let records: Vec<_> = texts.iter().filter_map(|text| Some((text, record::strip_version(text)?))).collect();
    let (text, terms) = match records.as_slice() {
        [] => return Merge::Absent,
        [only] => *only,
        _ => {
            return Merge::Impossible(
                "There are several SPF records (v=spf1) here, which is an error to receivers. Leave only one and try again."
                    .to_owned(),
            );
        }
    };
    let parsed = match record::parse(terms) {
        Ok(parsed) => parsed,
        Err(term) => {
            return Merge::Impossible(format!("The SPF record here is damaged at {term}. Put it right and try again."));
        }
    };
    let ours = parsed.directives.iter().find(|one| matches!(&one.mechanism, Mechanism::Include(host) if host == name));
    match ours {
        Some(one) if one.qualifier == Qualifier::Pass => return Merge::Present,
        Some(one) => {
            return Merge::Impossible(format!(
                "The SPF record here says {}, which keeps this server from sending. Remove that term and try again.",
                one.text
            ));
        }
        None => {}
    }
    let asks = |mechanism: &Mechanism| !matches!(mechanism, Mechanism::All | Mechanism::Net(_));
    let asking = parsed.directives.iter().filter(|one| asks(&one.mechanism)).count();
    if asking + usize::from(parsed.redirect.is_some()) >= MAX_LOOKUPS {
        return Merge::Impossible(format!(
            "The SPF record here needs {MAX_LOOKUPS} look-ups already, and receivers make no more. Remove a term that is \
             not needed and try again."
        ));
    }
    Merge::Merged { before: text.clone(), merged: with_include(text, name) }
}

/// Returns the record with the include before its `all`, else before its `redirect`, else at its end.
fn with_include(text: &str, name: &str) -> String {
    let include = format!("include:{name}");
    let mut terms: Vec<_> = text.split(' ').filter(|term| !term.is_empty()).collect();
    let bare = |term: &str| term.trim_start_matches(['+', '-', '~', '?']).to_ascii_lowercase();
    let all = terms.iter().position(|term| bare(term) == "all");
    let redirect = || terms.iter().position(|term| bare(term).starts_with("redirect="));
    let place = all.or_else(redirect).unwrap_or(terms.len());
    terms.insert(place, &include);
    terms.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: &str) {
        let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
        let said = match merge("mx.service.test", &texts) {
            Merge::Absent => "absent".to_owned(),
            Merge::Present => "present".to_owned(),
            Merge::Merged { merged, .. } => merged,
            Merge::Impossible(why) => format!("impossible: {why}"),
        };
        assert!(said.starts_with(expected), "{texts:?}: {said}");
    }

    #[test]
    fn the_include_goes_before_all() {
        check(&[], "absent");
        check(&["site-verification=1"], "absent");
        check(&["v=spf1 include:mx.service.test ~all"], "present");
        check(&["V=SPF1 ip4:192.0.2.1 +INCLUDE:MX.Service.test -all"], "present");
        check(&["v=spf1 -all"], "v=spf1 include:mx.service.test -all");
        check(&["v=spf1"], "v=spf1 include:mx.service.test");
        check(&["v=spf1 mx  a:b.test ?ALL exp=x.test"], "v=spf1 mx a:b.test include:mx.service.test ?ALL exp=x.test");
        check(&["v=spf1 mx redirect=b.test"], "v=spf1 mx include:mx.service.test redirect=b.test");
        check(&["x", "v=spf1 mx ~all"], "v=spf1 mx include:mx.service.test ~all");
    }

    #[test]
    fn a_person_decides_where_the_record_cannot_be_merged() {
        check(&["v=spf1 -all", "v=spf1 mx -all"], "impossible: There are several");
        check(&["v=spf1 ip4:nonsense -all"], "impossible: The SPF record here is damaged at ip4:nonsense");
        check(&["v=spf1 -include:mx.service.test -all"], "impossible: The SPF record here says -include");
        let many = (0..10).map(|n| format!("include:s{n}.test ")).collect::<String>();
        check(&[&format!("v=spf1 {many}-all")], "impossible: The SPF record here needs 10");
    }
}
