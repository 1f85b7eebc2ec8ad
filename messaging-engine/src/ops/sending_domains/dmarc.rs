//! DMARC reports of receivers on mail in the name of a sending domain, and advice on its policy.
//!
//! Contract section 14.3.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, StatusCode};
use messaging_core::domain::analytics::tally::buckets::DEFAULT_SPAN;
use messaging_core::domain::mail::dmarc::report::day_of;
use messaging_core::domain::mail::dmarc::verdict::{SourceFacts, Verdict, VerdictFacts, VerdictStatus, judge};
use messaging_core::domain::mail::dmarc::{Discovery, DmarcAction, PolicyRecord};
use messaging_core::domain::mail::dns_record::{Installation, UNNAMED, dmarc_host};
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::is_exempt;
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::{DmarcSource, DmarcTotals};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DomainPath, find};
use crate::app::App;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::domain_reports::allows;

/// Length of the longest period.
const MAX_PERIOD: Duration = Duration::from_hours(366 * 24);

/// Number of sources in an answer.
const MAX_SOURCES: usize = 200;

/// Number of sources that the verdict is based on. One that sends more than one message in a hundred is among the first
/// hundred, but may have several results.
const JUDGED_SOURCES: usize = 1000;

/// Number of sources whose names are looked up, those with most messages.
const NAMED_SOURCES: usize = 20;

/// Time limit for the names of sources, which are for display alone.
const NAMES_WITHIN: Duration = Duration::from_secs(2);

/// Number of reporters that are named for a source.
const MAX_REPORTERS: usize = 50;

/// Period of the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct DmarcQuery {
    /// Start of the period; 30 days before `until` unless given. Reports are about whole days, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// End of the period, exclusive; now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Input for DmarcQuery {}

/// Summary of the reports about mail in the name of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcReport")]
#[non_exhaustive]
pub struct DmarcView {
    /// The period of the reports.
    pub period: DmarcPeriod,
    /// The policy that applies to the domain now; null without one, and while it cannot be looked up.
    pub policy: Option<DmarcPolicyView>,
    /// Sums over all sources.
    pub totals: DmarcTotalsView,
    /// Senders in the name of the domain by address and result: those with most messages, at most 200.
    pub sources: Vec<DmarcSourceView>,
    /// Advice on the policy that follows from the reports.
    pub verdict: DmarcVerdict,
}

/// The period of the reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcPeriod")]
#[non_exhaustive]
pub struct DmarcPeriod {
    /// Time at which it begins.
    pub since: Timestamp,
    /// Time at which it ends, exclusive.
    pub until: Timestamp,
}

/// The policy that applies to a domain (RFC 9989).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcPolicy")]
#[non_exhaustive]
pub struct DmarcPolicyView {
    /// The record as published.
    pub record: String,
    /// Handling of mail that fails.
    pub p: DmarcAction,
    /// Handling of mail of names below the domain of the record; null if `p` applies to it.
    pub sp: Option<DmarcAction>,
    /// Handling of mail of names that do not exist; null if `sp` applies to it.
    pub np: Option<DmarcAction>,
    /// `y` while receivers apply the next weaker policy, for testing; null otherwise.
    pub t: Option<String>,
    /// Name at which the record was found: the domain itself, or one above.
    pub found_at: String,
}

/// Sums over the reports of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcTotals")]
#[non_exhaustive]
pub struct DmarcTotalsView {
    /// Number of messages.
    pub messages: u64,
    /// Number of messages that passed DMARC.
    pub passed: u64,
    /// Number of messages that failed DMARC.
    pub failed: u64,
    /// Number of reports that count.
    pub reports: u64,
    /// Number of reports that do not count, because their mail was not authenticated as the reporter's.
    pub unverified_reports: u64,
}

/// Result of SPF or DKIM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DmarcAuthResult")]
pub enum AuthResult {
    /// The check passed for some domain.
    Pass,
    /// The check passed for no domain.
    Fail,
}

impl AuthResult {
    const fn of(passed: bool) -> Self {
        if passed { Self::Pass } else { Self::Fail }
    }
}

/// Messages of one address with one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcSource")]
#[non_exhaustive]
pub struct DmarcSourceView {
    /// The address.
    pub ip: IpAddr,
    /// Host name of the address, for the sources with most messages; null if it has none that resolves to the address.
    pub name: Option<String>,
    /// True if this installation sends from the address.
    pub ours: bool,
    /// Number of messages.
    pub messages: u64,
    /// Result of SPF, for any domain.
    pub spf: AuthResult,
    /// Result of DKIM, for any domain.
    pub dkim: AuthResult,
    /// True if SPF or DKIM passed for the domain of the sender, so that the messages pass DMARC.
    pub aligned: bool,
    /// Handling that receivers applied.
    pub disposition: DmarcAction,
    /// Domains of the receivers that reported the messages, at most 50.
    pub reporters: Vec<String>,
    /// End of the latest report.
    pub last_seen: Timestamp,
}

/// Advice on the policy of a domain, from its reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DmarcVerdict")]
#[non_exhaustive]
pub struct DmarcVerdict {
    /// Kind of the advice: `ok`: a stricter policy is safe, or there is none; `attention`: check something first;
    /// `unsafe`: mail from an unexplained source, or your own, fails; `no_data`: nothing was reported.
    pub status: VerdictStatus,
    /// Sentences for the owner of the domain.
    pub text: String,
    /// Next record to publish at `_dmarc.` below the domain; null if nothing is to change.
    pub next_record: Option<String>,
}

/// `GET /workspaces/{workspace_id}/sending-domains/{id}/dmarc`
pub struct GetSendingDomainDmarc;

impl Operation for GetSendingDomainDmarc {
    const ID: &'static str = "getSendingDomainDmarc";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/dmarc";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain dmarc";
    const SUMMARY: &'static str =
        "See who sends in the name of a domain, as receivers report it, and the DMARC record to publish next";
    type Path = DomainPath;
    type Query = DmarcQuery;
    type Body = Empty;
    type Output = DmarcView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<DmarcView, Error> {
        let domain = find(cx, call.path).await?.record;
        let period = period(call.query.since, call.query.until, cx.now)?;
        let _turn = cx.app.turn_for_request()?;
        let Judged { policy, totals, sources, verdict } = judged(cx.app, &domain, period).await?;
        Ok(DmarcView {
            period,
            policy: policy.as_ref().map(DmarcPolicyView::of),
            totals: DmarcTotalsView::of(totals),
            sources: sources.into_iter().take(MAX_SOURCES).map(DmarcSourceView::of).collect(),
            verdict,
        })
    }
}

/// Reports of a domain, with the verdict on them.
struct Judged {
    policy: Option<PolicyRecord>,
    totals: DmarcTotals,
    sources: Vec<(DmarcSource, SourceFacts)>,
    verdict: DmarcVerdict,
}

/// Judges the reports of a domain. The caller holds a permit for DNS look-ups.
async fn judged(app: &App, domain: &SendingDomain, period: DmarcPeriod) -> Result<Judged, Error> {
    let (first, last) = (day_of(period.since), day_of(period.until - Duration::from_millis(1)));
    let (workspace, id) = (domain.workspace_id, domain.id);
    let totals = app.store().dmarc_totals(workspace, id, first, last).await?;
    let sources = app.store().dmarc_sources(workspace, id, first, last, JUDGED_SOURCES).await?;
    let (policy, facts) = tokio::join!(policy_of(app, domain), facts_of(app, &sources));
    let (sending, days) = (facts?, u64::try_from(last - first + 1).unwrap_or(1).max(1));
    let known = policy.as_ref().map(Option::as_ref).map_err(String::as_str);
    let verdict = verdict(app, domain, known, &sending, totals.messages, days).await?;
    Ok(Judged { policy: policy.ok().flatten(), totals, sources: sources.into_iter().zip(sending).collect(), verdict })
}

/// Returns the advice on the policy of a domain from the reports of a period.
pub(crate) async fn advice(app: &App, domain: &SendingDomain, period: DmarcPeriod) -> Result<DmarcVerdict, Error> {
    Ok(judged(app, domain, period).await?.verdict)
}

impl DmarcVerdict {
    /// Verdict if the policy was not looked up.
    pub(crate) fn unknown(reason: &str) -> Self {
        let text = format!("The DMARC policy was not looked up ({reason}): open the domain for its verdict.");
        Self { status: VerdictStatus::NoData, text, next_record: None }
    }
}

/// Returns the requested period: the last 30 days by default.
pub(crate) fn period(since: Option<Timestamp>, until: Option<Timestamp>, now: Timestamp) -> Result<DmarcPeriod, Error> {
    let until = until.unwrap_or(now);
    let since = since.unwrap_or(until - DEFAULT_SPAN);
    let mut violations = Violations::new();
    if since >= until || until.since(since) > MAX_PERIOD {
        violations.add_parameter("since", FieldCode::OutOfRange, "must be before until, by at most 366 days");
    }
    violations.into_result()?;
    Ok(DmarcPeriod { since, until })
}

/// Returns the policy that applies to a domain; an error says why it could not be looked up.
async fn policy_of(app: &App, domain: &SendingDomain) -> Result<Option<PolicyRecord>, String> {
    if is_exempt(domain) {
        return Err("the domain is for trying out and exists in no DNS".to_owned());
    }
    let Discovery { policy, fault } = app.discover_dmarc(&domain.domain).await?;
    match (policy, fault) {
        (None, Some((at, _))) => Err(format!("receivers ignore what stands at {}", dmarc_host(&at))),
        (policy, _) => Ok(policy),
    }
}

/// Returns facts about the sources of reports. The addresses of this installation are those that its own SPF record
/// allows to send; if there is none, those of its name.
async fn facts_of(app: &App, sources: &[DmarcSource]) -> Result<Vec<SourceFacts>, Error> {
    let here = app.installation().await?;
    let ours = async {
        if here.hostname == UNNAMED || sources.is_empty() {
            return (None, Vec::new());
        }
        let (spf, addresses) = tokio::join!(app.spf_of(&here.hostname), app.resolver().addresses(&here.hostname));
        (spf.ok(), addresses.unwrap_or_default())
    };
    // An address has as many sources as it has results.
    let mut asked: Vec<IpAddr> = Vec::new();
    for source in sources {
        if asked.len() < NAMED_SOURCES && !asked.contains(&source.ip) {
            asked.push(source.ip);
        }
    }
    let names = join_all(asked.iter().map(async |ip| {
        let name = tokio::time::timeout(NAMES_WITHIN, name_of(app, *ip)).await;
        (*ip, name.ok().flatten())
    }));
    let ((spf, addresses), names) = tokio::join!(ours, names);
    let fact = |source: &DmarcSource| SourceFacts {
        ip: source.ip,
        name: names.iter().find(|(ip, _)| *ip == source.ip).and_then(|(_, name)| name.clone()),
        is_ours: addresses.contains(&source.ip) || spf.as_ref().is_some_and(|spf| allows(spf, source.ip)),
        result: source.result,
        messages: source.messages,
    };
    Ok(sources.iter().map(fact).collect())
}

/// Returns the host name of an address, if it resolves to the address: the holder of an address may give it any name.
async fn name_of(app: &App, ip: IpAddr) -> Option<String> {
    let name = app.resolver().names(ip).await.ok()?.into_iter().next()?;
    let addresses = app.resolver().addresses(&name).await.ok()?;
    addresses.contains(&ip).then_some(name)
}

async fn verdict(
    app: &App,
    domain: &SendingDomain,
    policy: Result<Option<&PolicyRecord>, &str>,
    sources: &[SourceFacts],
    messages: u64,
    days: u64,
) -> Result<DmarcVerdict, Error> {
    let uri = app.installation().await?.report_uri(&app.link_key(), ReportPurpose::Dmarc, domain.id);
    let is_ours = |uri: &String| app.receives_reports(uri, ReportPurpose::Dmarc, domain.id);
    let has_ours = policy.is_ok_and(|policy| policy.is_some_and(|policy| policy.rua.iter().any(is_ours)));
    let offered = Installation::dmarc(domain, &uri).value;
    let Verdict { status, text, next_record } = judge(&VerdictFacts {
        domain: &domain.domain,
        policy: policy.map_err(ToOwned::to_owned),
        offered: &offered,
        missing_receiver: (!has_ours).then_some(uri.as_str()),
        sources,
        messages,
        days,
    });
    Ok(DmarcVerdict { status, text, next_record })
}

impl DmarcPolicyView {
    fn of(record: &PolicyRecord) -> Self {
        Self {
            record: record.text.clone(),
            p: record.action,
            sp: record.subdomains,
            np: record.nonexistent,
            t: record.is_testing.then(|| "y".to_owned()),
            found_at: dmarc_host(&record.domain),
        }
    }
}

impl DmarcTotalsView {
    const fn of(totals: DmarcTotals) -> Self {
        let DmarcTotals { messages, passed, reports, unverified_reports } = totals;
        Self { messages, passed, failed: messages.saturating_sub(passed), reports, unverified_reports }
    }
}

impl DmarcSourceView {
    fn of((source, facts): (DmarcSource, SourceFacts)) -> Self {
        let DmarcSource { ip, result, messages, mut reporters, last_seen } = source;
        reporters.truncate(MAX_REPORTERS);
        Self {
            ip,
            name: facts.name,
            ours: facts.is_ours,
            messages,
            spf: AuthResult::of(result.spf),
            dkim: AuthResult::of(result.dkim),
            aligned: result.is_aligned(),
            disposition: result.disposition,
            reporters,
            last_seen,
        }
    }
}
