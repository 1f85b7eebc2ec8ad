//! Deliverability report of a workspace: by site, by sending domain, by IP pool, and as a summary.
//!
//! Contract section 14.6. All but the DMARC policies is read from counters and rows that exist anyway; the summary is
//! made in core ([`summary`]).

mod pools;

use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, StatusCode};
use messaging_core::domain::analytics::deliverability::{BrokenDomain, SummaryFacts, summary};
use messaging_core::domain::analytics::site_tally::{SiteCounter, SiteCounts};
use messaging_core::domain::analytics::tally::buckets::{DEFAULT_SPAN, Quarter};
use messaging_core::domain::mail::sending_domain::{DomainStatus, RecordStatus, SendingDomain};
use messaging_core::domain::mail::verification::is_exempt;
use messaging_core::ids::DomainId;
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::PageRequest;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::pools::{PoolDeliverability, PoolSourceFigures};
use crate::app::App;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::sending_domains::dmarc::{DmarcPeriod, DmarcVerdict, advice, period};

/// Number of sites in an answer, those with most messages.
const MAX_SITES: usize = 200;

/// Number of sending domains in an answer, the newest.
const MAX_DOMAINS: usize = 100;

/// Number of domains whose DMARC policy is looked up for an answer.
const LOOKED_UP: usize = 20;

/// Time limit for these look-ups together.
const LOOKED_UP_WITHIN: Duration = Duration::from_secs(8);

/// Period of the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct DeliverabilityQuery {
    /// Begin of the period, to the quarter of an hour; 30 days before `until` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// End of the period, exclusive; now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Input for DeliverabilityQuery {}

/// Deliverability of a workspace's mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Deliverability {
    /// One or two sentences: the worst problem in numbers, and what to do about it.
    pub summary: String,
    /// Counts by site, those with most messages first; at most 200.
    pub sites: Vec<SiteDeliverability>,
    /// The sending domains, newest first; at most 100.
    pub domains: Vec<DomainDeliverability>,
    /// IP pools of the workspace and shared ones, newest first.
    pub pools: Vec<PoolDeliverability>,
}

/// Counts of a site over the period. Each recipient of a message counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SiteDeliverability {
    /// Operator of the recipients' exchangers, such as `gmail`, or the organizational domain of the exchangers; `other`
    /// for all beyond the first hundred of a day that no rule names.
    pub site: String,
    /// Recipients for whom the site was tried for the first time.
    pub accepted: u64,
    /// Recipients that were delivered and did not bounce afterwards.
    pub delivered: u64,
    /// Attempts that the site deferred.
    pub deferred: u64,
    /// Hard bounces: recipients that do not exist, later bounces included.
    pub bounced_hard: u64,
    /// Soft bounces: recipients that were refused for another reason.
    pub bounced_soft: u64,
    /// Complaints of readers.
    pub complaints: u64,
    /// Messages that people opened.
    pub opened_human: u64,
    /// Median of the time from acceptance, or from the time to send at, to delivery; null where nothing was delivered.
    pub median_seconds: Option<u64>,
    /// Share of the delivered mail that went over TLS, from 0 to 1; null where nothing was delivered.
    pub tls_share: Option<f64>,
}

impl SiteDeliverability {
    fn of((site, counts): &(String, SiteCounts)) -> Self {
        let total = |counter| counts.total(counter);
        Self {
            site: site.clone(),
            accepted: total(SiteCounter::Accepted),
            delivered: total(SiteCounter::Delivered),
            deferred: total(SiteCounter::Deferred),
            bounced_hard: total(SiteCounter::BouncedHard),
            bounced_soft: total(SiteCounter::BouncedSoft),
            complaints: total(SiteCounter::Complaints),
            opened_human: total(SiteCounter::OpenedHuman),
            median_seconds: counts.median_seconds(),
            tls_share: counts.tls_share(),
        }
    }
}

/// Authentication of a sending domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct DomainDeliverability {
    /// Id of the domain.
    pub id: DomainId,
    /// The domain.
    pub domain: String,
    /// SPF record, as it was found last.
    pub spf: RecordStatus,
    /// Signing keys: verified if mail is signed with a key whose record was found.
    pub dkim: RecordStatus,
    /// DMARC policy, as it was found last.
    pub dmarc: RecordStatus,
    /// True if recipients can unsubscribe from marketing with one click (RFC 8058): by an https link in signed mail.
    pub one_click: bool,
    /// Advice on the DMARC policy, from the reports of 30 days.
    pub verdict: DmarcVerdict,
}

/// `GET /workspaces/{workspace_id}/deliverability`
pub struct GetDeliverability;

impl Operation for GetDeliverability {
    const ID: &'static str = "getDeliverability";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/deliverability";
    const ACCESS: Access = Access::Scope(Scope::AnalyticsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "deliverability";
    const SUMMARY: &'static str =
        "Show how mail arrives: a summary, and numbers by mailbox provider, sending domain and IP pool";
    type Path = InWorkspace;
    type Query = DeliverabilityQuery;
    type Body = Empty;
    type Output = Deliverability;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Deliverability, Error> {
        let asked = period(call.query.since, call.query.until, cx.now)?;
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.store().workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.record.id;
        let last = Quarter::of(asked.until - Duration::from_millis(1));
        let end = Quarter(last.0.saturating_add(1));
        let sites = cx.store().site_activity(workspace, Quarter::of(asked.since), end, MAX_SITES).await?;
        let page = PageRequest { after: None, limit: MAX_DOMAINS };
        let domains = cx.store().domains(workspace, page).await?.items;
        let found = pools::look_at(cx, workspace, &sites).await?;
        let summary = summary(&SummaryFacts {
            sites: &sites,
            broken: &domains.iter().filter_map(broken).collect::<Vec<_>>(),
            brakes: &found.brakes,
            warming: &found.warming,
        });
        // The advice covers reports of 30 days, as on the pages of the domains.
        let reports = DmarcPeriod { since: asked.until - DEFAULT_SPAN, until: asked.until };
        Ok(Deliverability {
            summary,
            sites: sites.iter().map(SiteDeliverability::of).collect(),
            domains: domain_views(cx.app, domains, reports).await?,
            pools: found.pools,
        })
    }
}

/// Returns the domains with advice from their reports. If there are many, or the DNS is slow, some have no advice here.
async fn domain_views(
    app: &App,
    domains: Vec<SendingDomain>,
    reports: DmarcPeriod,
) -> Result<Vec<DomainDeliverability>, Error> {
    let one = async |(at, domain): (usize, SendingDomain)| {
        let verdict = match app.turn_for_request() {
            _ if at >= LOOKED_UP => DmarcVerdict::unknown("there are many domains"),
            Err(_) => DmarcVerdict::unknown("too much is being looked up"),
            Ok(_turn) => match tokio::time::timeout(LOOKED_UP_WITHIN, advice(app, &domain, reports)).await {
                Ok(verdict) => verdict?,
                Err(_) => DmarcVerdict::unknown("the DNS does not answer in time"),
            },
        };
        let dkim = dkim(&domain);
        let is_https = app.settings().public_url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
        Ok::<_, Error>(DomainDeliverability {
            id: domain.id,
            spf: domain.spf.status,
            dkim,
            dmarc: domain.dmarc.status,
            one_click: is_https && dkim == RecordStatus::Verified,
            verdict,
            domain: domain.domain,
        })
    };
    join_all(domains.into_iter().enumerate().map(one)).await.into_iter().collect()
}

/// Status of the keys of a domain: verified as soon as the record of one that signs was found.
fn dkim(domain: &SendingDomain) -> RecordStatus {
    let has = |status| domain.dkim.iter().any(|key| key.check.status == status);
    match (has(RecordStatus::Verified), has(RecordStatus::Failed)) {
        (true, _) => RecordStatus::Verified,
        (false, true) => RecordStatus::Failed,
        (false, false) => RecordStatus::Pending,
    }
}

/// Returns the missing authentication of a domain that sends; `None` if nothing is missing, or the domain does not send
/// yet or is exempt from the checks.
fn broken(domain: &SendingDomain) -> Option<BrokenDomain> {
    if domain.status != DomainStatus::Verified || is_exempt(domain) {
        return None;
    }
    let records = [("SPF", domain.spf.status), ("DKIM", dkim(domain)), ("DMARC", domain.dmarc.status)];
    let missing = records.into_iter().filter(|(_, status)| *status != RecordStatus::Verified);
    let missing: Vec<_> = missing.map(|(name, _)| name).collect();
    (!missing.is_empty()).then(|| BrokenDomain { domain: domain.domain.clone(), missing })
}
