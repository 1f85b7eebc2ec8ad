//! MTA-STS (RFC 8461): a domain publishes its mail exchangers, and that mail reaches them over verified TLS.
//!
//! A TXT record at `_mta-sts.<domain>` holds the id of the policy, and a web server at `mta-sts.<domain>` the policy.
//! This module parses both; the transport fetches them and acts on them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Longest time that a policy is kept for, whatever it says: a year (RFC 8461 section 3.2).
pub const MAX_AGE: Duration = Duration::from_hours(8766);

/// Maximum size of a policy, in bytes (RFC 8461 section 3.3).
pub const MAX_POLICY_BYTES: usize = 64 * 1024;

/// Maximum number of patterns of exchangers in a policy. RFC 8461 has no bound; published policies have a dozen.
pub const MAX_PATTERNS: usize = 256;

/// Maximum length of the id of a policy, in characters (RFC 8461 section 3.1).
const MAX_ID: usize = 32;

/// Maximum length of a host name, in characters (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 253;

/// Mode of a policy: the handling of mail to exchangers that do not satisfy it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StsMode {
    /// Mail goes to verified exchangers only.
    Enforce,
    /// Mail goes out nevertheless; failures are counted.
    Testing,
    /// The domain has no policy any more.
    None,
}

/// Content of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StsText {
    /// Mode of the policy.
    pub mode: StsMode,
    /// Names of exchangers in lower case, some with `*.` for the first label; empty with [`StsMode::None`] alone.
    pub mx: Vec<String>,
    /// Time for which the policy is kept, at most [`MAX_AGE`].
    pub max_age: Duration,
}

impl StsText {
    /// Returns true if mail for the domain may go to this exchanger.
    pub fn lists(&self, exchanger: &str) -> bool {
        self.mx.iter().any(|pattern| matches(pattern, exchanger))
    }
}

/// A policy as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StsPolicy {
    /// Recipient domain of the policy, lower case, A-labels.
    pub domain: String,
    /// Id in the TXT record when the policy was fetched: another id means another policy.
    pub id: String,
    /// Mode of the policy.
    pub mode: StsMode,
    /// Names of exchangers in lower case, some with `*.` for the first label.
    pub mx: Vec<String>,
    /// Time at which the policy was fetched.
    pub fetched_at: Timestamp,
    /// Time from which on the policy does not hold any more.
    pub expires_at: Timestamp,
}

impl StsPolicy {
    /// Returns the policy of a domain that was fetched now.
    pub fn fetched(domain: &str, id: &str, text: StsText, now: Timestamp) -> Self {
        let StsText { mode, mx, max_age } = text;
        let (domain, id) = (domain.to_owned(), id.to_owned());
        Self { domain, id, mode, mx, fetched_at: now, expires_at: now + max_age }
    }

    /// Returns true while the policy holds.
    pub fn holds(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Returns true once more than half of the policy's time has passed: it is fetched again then, so that it does not
    /// end unnoticed.
    pub fn is_aging(&self, now: Timestamp) -> bool {
        now.since(self.fetched_at) > self.expires_at.since(self.fetched_at) / 2
    }

    /// Returns true if mail for the domain may go to this exchanger.
    pub fn lists(&self, exchanger: &str) -> bool {
        self.mx.iter().any(|pattern| matches(pattern, exchanger))
    }
}

/// Reason why a text is no valid policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StsFault {
    /// The version is not `STSv1`.
    #[error("the policy is not of version STSv1")]
    Version,
    /// The mode is missing or unknown.
    #[error("the policy has no mode that is known")]
    Mode,
    /// `max_age` is missing or no number.
    #[error("the policy has no max_age that is a number of seconds")]
    MaxAge,
    /// A pattern is no valid host name, or there are too many.
    #[error("the policy names exchangers in a way that is not understood")]
    Pattern,
    /// The policy names no exchanger, although it asks for verified ones.
    #[error("the policy names no exchanger")]
    NoExchanger,
}

/// Returns the id of the policy, from all TXT records at `_mta-sts.<domain>`; `None` unless exactly one is such a
/// record (RFC 8461 section 3.1).
pub fn policy_id(records: &[String]) -> Option<String> {
    let mut found = records.iter().filter(|text| is_record(text));
    let (record, None) = (found.next()?, found.next()) else { return None };
    let mut fields = record.split(';').skip(1).filter_map(|field| field.split_once('='));
    let id = fields.find(|(name, _)| name.trim() == "id")?.1.trim();
    let is_id = (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| id.to_owned())
}

fn is_record(text: &str) -> bool {
    text.split(';').next().is_some_and(|version| version.trim_end() == "v=STSv1")
}

/// Parses the text of a policy (RFC 8461 section 3.2). If a key occurs twice that may occur once the first counts;
/// unknown keys are skipped.
pub fn parse(text: &str) -> Result<StsText, StsFault> {
    let (mut version, mut mode, mut max_age, mut mx) = (None, None, None, Vec::new());
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match key.trim() {
            "version" => version = version.or(Some(value)),
            "mode" => mode = mode.or(Some(value)),
            "max_age" => max_age = max_age.or(Some(value)),
            "mx" => mx.push(pattern(value).filter(|_| mx.len() < MAX_PATTERNS).ok_or(StsFault::Pattern)?),
            _ => {}
        }
    }
    if version != Some("STSv1") {
        return Err(StsFault::Version);
    }
    let mode = match mode {
        Some("enforce") => StsMode::Enforce,
        Some("testing") => StsMode::Testing,
        Some("none") => StsMode::None,
        _ => return Err(StsFault::Mode),
    };
    let is_number = |text: &&str| (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = max_age.filter(is_number).and_then(|text| text.parse().ok()).ok_or(StsFault::MaxAge)?;
    if mx.is_empty() && mode != StsMode::None {
        return Err(StsFault::NoExchanger);
    }
    Ok(StsText { mode, mx, max_age: Duration::from_secs(seconds).min(MAX_AGE) })
}

/// Parses a host name, the first label of which may be `*`; returns it in lower case and without a final dot.
fn pattern(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    (name.len() <= MAX_NAME && rest.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}

/// Returns true if a pattern matches an exchanger: `*` stands for exactly one label (RFC 8461 section 4.1).
fn matches(pattern: &str, exchanger: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(rest) => exchanger
            .split_once('.')
            .is_some_and(|(label, below)| !label.is_empty() && below.eq_ignore_ascii_case(rest)),
        None => exchanger.eq_ignore_ascii_case(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(records: &[&str], expected: Option<&str>) {
        let records: Vec<_> = records.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(policy_id(&records).as_deref(), expected, "{records:?}");
    }

    #[test]
    fn the_id_of_the_one_record_is_read() {
        check_id(&["v=STSv1; id=20160831085700Z;"], Some("20160831085700Z"));
        check_id(&["v=STSv1;id=a"], Some("a"));
        check_id(&["v=spf1 -all", "v=STSv1 ; ext=x; id = 7 "], Some("7"));
        check_id(&[], None);
        check_id(&["v=STSv1; id=a", "v=STSv1; id=b"], None);
        check_id(&["v=STSv1"], None);
        check_id(&["v=STSv1; id="], None);
        check_id(&["v=STSv1; id=a-b"], None);
        check_id(&["v=STSv12; id=a"], None);
        check_id(&[&format!("v=STSv1; id={}", "1".repeat(32))], Some(&"1".repeat(32)));
        check_id(&[&format!("v=STSv1; id={}", "1".repeat(33))], None);
    }

    #[track_caller]
    fn check(text: &str, expected: Result<(StsMode, &[&str], u64), StsFault>) {
        let expected = expected.map(|(mode, mx, seconds)| StsText {
            mode,
            mx: mx.iter().map(|&name| name.to_owned()).collect(),
            max_age: Duration::from_secs(seconds),
        });
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn policies_are_read() {
        use StsMode::{Enforce, None, Testing};
        let whole =
            "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.Example.net\r\nmax_age: 604800\r\n";
        check(whole, Ok((Enforce, &["mail.example.com", "*.example.net"], 604_800)));
        check("version:STSv1\nmode:testing\nmx:a.b.\nmax_age:0", Ok((Testing, &["a.b"], 0)));
        check("version: STSv1\nmode: none\nmax_age: 1", Ok((None, &[], 1)));
        check("mode: enforce\nmx: a.b\nmax_age: 1\nversion: STSv1", Ok((Enforce, &["a.b"], 1)));
        let twice = "version: STSv1\nmode: testing\nmode: enforce\nmx: a.b\nmax_age: 1\nmax_age: 2\nother: x\njunk";
        check(twice, Ok((Testing, &["a.b"], 1)));
        let long = "version: STSv1\nmode: none\nmax_age: 9999999999";
        check(long, Ok((None, &[], MAX_AGE.as_secs())));
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        check("", Err(StsFault::Version));
        check("<html>", Err(StsFault::Version));
        check("version: STSv2\nmode: none\nmax_age: 1", Err(StsFault::Version));
        check("version: STSv1\nmax_age: 1", Err(StsFault::Mode));
        check("version: STSv1\nmode: Enforce\nmx: a.b\nmax_age: 1", Err(StsFault::Mode));
        for age in ["", "-1", "+1", "1d", "99999999999"] {
            check(&format!("version: STSv1\nmode: none\nmax_age: {age}"), Err(StsFault::MaxAge));
        }
        check("version: STSv1\nmode: none", Err(StsFault::MaxAge));
        check("version: STSv1\nmode: enforce\nmax_age: 1", Err(StsFault::NoExchanger));
        for pattern in ["", "*", "*.", "a..b", "a.*.b", "*a.b", "a b", &"a.".repeat(127).repeat(2)] {
            let text = format!("version: STSv1\nmode: enforce\nmx: {pattern}\nmax_age: 1");
            check(&text, Err(StsFault::Pattern));
        }
        let many = "mx: a.b\n".repeat(MAX_PATTERNS + 1);
        check(&format!("version: STSv1\nmode: enforce\n{many}max_age: 1"), Err(StsFault::Pattern));
    }

    #[test]
    fn patterns_stand_for_one_label() {
        for (pattern, exchanger, expected) in [
            ("mx.example.com", "mx.example.com", true),
            ("mx.example.com", "MX.Example.com", true),
            ("mx.example.com", "mx2.example.com", false),
            ("*.example.com", "mx.example.com", true),
            ("*.example.com", "a.mx.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("example.com", "mx.example.com", false),
        ] {
            assert_eq!(matches(pattern, exchanger), expected, "{pattern} {exchanger}");
        }
    }

    #[test]
    fn a_policy_ages_and_ends() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let text = StsText { mode: StsMode::Enforce, mx: vec!["a.b".to_owned()], max_age: Duration::from_secs(100) };
        let policy = StsPolicy::fetched("b.test", "1", text, at(1000));
        for (now, holds, is_aging) in
            [(1000, true, false), (1050, true, false), (1051, true, true), (1100, false, true)]
        {
            assert_eq!((policy.holds(at(now)), policy.is_aging(at(now))), (holds, is_aging), "{now}");
        }
    }
}
