//! TLS reports: JSON (RFC 8460 section 4).

use std::collections::BTreeMap;
use std::fmt;

use messaging_core::domain::mail::dmarc::report::{DomainReport, ReportRows, TlsRow};
use messaging_core::time::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use super::contents::{Content, fault_of};
use super::shared::{MAX_ROWS, Unreadable, domain_of, is_within, text};

/// Result of sessions that succeeded.
const SUCCESSFUL: &str = "successful";

/// Result of sessions that failed for a reason that the report does not tell.
const UNSPECIFIED: &str = "unspecified";

/// Maximum number of sessions that a row may count.
const MAX_SESSIONS: u64 = 1_000_000_000_000;

/// Text of the error for a list that is too long.
const TOO_MANY: &str = "too many items";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    date_range: DateRange,
    #[serde(default)]
    contact_info: Option<String>,
    #[serde(rename = "report-id")]
    id: String,
    #[serde(deserialize_with = "policies")]
    policies: Vec<PolicyResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DateRange {
    start_datetime: Timestamp,
    end_datetime: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PolicyResult {
    policy: Policy,
    summary: Summary,
    #[serde(default, deserialize_with = "failures")]
    failure_details: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Policy {
    policy_domain: String,
    /// The first pattern of a member that is a text in the example of the RFC, and a list in other reports.
    #[serde(default, deserialize_with = "first_host")]
    mx_host: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Summary {
    #[serde(default)]
    total_successful_session_count: u64,
    #[serde(default)]
    total_failure_session_count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Failure {
    result_type: String,
    #[serde(default)]
    receiving_mx_hostname: Option<String>,
    #[serde(default)]
    failed_session_count: u64,
}

/// Reads the policies of a report, with at most [`MAX_ROWS`] failures and policies together.
fn policies<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PolicyResult>, D::Error> {
    deserializer.deserialize_seq(Items { weight: |result: &PolicyResult| 1 + result.failure_details.len() })
}

/// Reads at most [`MAX_ROWS`] failures.
fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Failure>, D::Error> {
    deserializer.deserialize_seq(Items { weight: |_: &Failure| 1 })
}

/// Reads a list whose items together weigh at most [`MAX_ROWS`].
struct Items<T> {
    weight: fn(&T) -> usize,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let (mut all, mut weight) = (Vec::new(), 0);
        while let Some(item) = items.next_element()? {
            weight += (self.weight)(&item);
            if weight > MAX_ROWS {
                return Err(A::Error::custom(TOO_MANY));
            }
            all.push(item);
        }
        Ok(all)
    }
}

fn first_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(FirstHost)
}

/// Reads a text, or the first item of a list.
struct FirstHost;

impl<'de> Visitor<'de> for FirstHost {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern or a list of patterns")
    }

    fn visit_unit<E>(self) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, host: &str) -> Result<Option<String>, E> {
        Ok(Some(text(host)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut hosts: A) -> Result<Option<String>, A::Error> {
        let first = hosts.next_element::<String>()?;
        while hosts.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }
}

/// Parses a report; policies of names outside of the domain are left out.
pub(super) fn read(content: Content<'_>, domain: &str, submitter: Option<String>) -> Result<DomainReport, Unreadable> {
    let report: Report = serde_json::from_reader(content).map_err(fault)?;
    if report.id.trim().is_empty() {
        return Err(Unreadable::Form);
    }
    let mut rows = BTreeMap::new();
    let mut is_about_domain = false;
    for result in report.policies.iter().filter(|result| is_within(&result.policy.policy_domain, domain)) {
        is_about_domain = true;
        add(&mut rows, result);
    }
    if !is_about_domain {
        return Err(Unreadable::OtherDomain);
    }
    let row = |((mx, result), (sessions, failures))| TlsRow { mx, result, sessions, failures };
    Ok(DomainReport {
        contact: report.contact_info.as_deref().and_then(domain_of).or(submitter),
        report_id: text(&report.id),
        begin: report.date_range.start_datetime,
        end: report.date_range.end_datetime,
        rows: ReportRows::Tls(rows.into_iter().map(row).collect()),
    })
}

/// Sessions by exchanger and result: all, and those that failed.
type Rows = BTreeMap<(String, String), (u64, u64)>;

fn add(rows: &mut Rows, result: &PolicyResult) {
    let mut add = |mx: &str, result: &str, sessions: u64, is_failure: bool| {
        if sessions == 0 {
            return;
        }
        let mx = text(mx).trim_end_matches('.').to_ascii_lowercase();
        let counts = rows.entry((mx, text(result).chars().take(64).collect())).or_default();
        counts.0 = counts.0.saturating_add(sessions).min(MAX_SESSIONS);
        counts.1 = if is_failure { counts.0 } else { 0 };
    };
    let pattern = result.policy.mx_host.as_deref().unwrap_or(&result.policy.policy_domain);
    let Summary { total_successful_session_count, total_failure_session_count } = result.summary;
    add(pattern, SUCCESSFUL, total_successful_session_count, false);
    let mut told = 0_u64;
    for failure in &result.failure_details {
        told = told.saturating_add(failure.failed_session_count);
        let mx = failure.receiving_mx_hostname.as_deref().filter(|mx| !mx.is_empty()).unwrap_or(pattern);
        let kind = if failure.result_type.is_empty() { UNSPECIFIED } else { &failure.result_type };
        add(mx, kind, failure.failed_session_count, true);
    }
    add(pattern, UNSPECIFIED, total_failure_session_count.saturating_sub(told), true);
}

fn fault(error: serde_json::Error) -> Unreadable {
    let is_too_many = error.to_string().starts_with(TOO_MANY);
    match error.classify() {
        serde_json::error::Category::Io => fault_of(&error.into()),
        serde_json::error::Category::Eof => Unreadable::Damaged,
        _ if is_too_many => Unreadable::TooManyRows,
        _ => Unreadable::Form,
    }
}
