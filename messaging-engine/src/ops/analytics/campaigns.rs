//! Statistics of campaigns: in a list, of each, and over time.
//!
//! Contract sections 12.4 and 17.

use http::{Method, StatusCode};
use messaging_core::domain::analytics::tally::buckets::Interval;
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::campaign::stats::CampaignStats;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::{PageRequest, SeriesOf, Slice};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;
use super::{Activity, ActivityBucket, activity};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::page::Page;

/// Largest number of pages of campaigns that one request reads: campaigns that have not started are left out of the
/// answer.
const MAX_PAGES: usize = 20;

/// The path of an operation on a campaign's statistics.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct CampaignPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub id: CampaignId,
}

/// `GET /workspaces/{workspace_id}/campaigns/{id}/stats`
pub struct GetCampaignStats;

impl Operation for GetCampaignStats {
    const ID: &'static str = "getCampaignStats";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/stats";
    const ACCESS: Access = Access::Scope(Scope::CampaignsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign stats";
    const SUMMARY: &'static str = "Show what came of a campaign";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignStats;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignStats, Error> {
        let CampaignPath { workspace_id, id } = call.path;
        let campaign = cx.store().campaign(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        Ok(cx.app.campaign_stats(&campaign).await?)
    }
}

/// A campaign that has started, with its statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StartedCampaign {
    /// Name of the campaign.
    pub name: String,
    /// Current status of the campaign.
    pub status: CampaignStatus,
    /// Time when it first began to send.
    pub started_at: Timestamp,
    /// Statistics of the campaign so far.
    #[serde(flatten)]
    pub stats: CampaignStats,
}

/// `GET /workspaces/{workspace_id}/analytics/campaigns`
pub struct ListStartedCampaigns;

impl Operation for ListStartedCampaigns {
    const ID: &'static str = "listAnalyticsCampaigns";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/analytics/campaigns";
    const ACCESS: Access = Access::Scope(Scope::AnalyticsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "analytics campaigns";
    const SUMMARY: &'static str = "List the campaigns that have started with what came of each, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<StartedCampaign>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<StartedCampaign>, Error> {
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let PageRequest { mut after, limit } = cx.page(&call.query)?;
        let mut found = Vec::new();
        for _ in 0..MAX_PAGES {
            // Reads no more than there is room for, so that the next page begins where this one ended.
            let page = PageRequest { after, limit: limit - found.len() };
            let Slice { items, next } = cx.store().campaigns(workspace, None, page).await?;
            found.extend(items.into_iter().filter_map(|campaign| Some((campaign.started_at?, campaign))));
            after = next;
            if found.len() == limit || after.is_none() {
                break;
            }
        }
        let mut shown = Vec::with_capacity(found.len());
        for (started_at, campaign) in found {
            let stats = cx.app.campaign_stats(&campaign).await?;
            shown.push(StartedCampaign { name: campaign.plan.name, status: campaign.status, started_at, stats });
        }
        Ok(cx.answer_page(Slice { items: shown, next: after }, |one| one))
    }
}

/// Span and buckets of a campaign's activity.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct SpanQuery {
    /// Start of the span; 30 days before `to` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// End of the span, exclusive; now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Length of the buckets, in the workspace's time zone; days unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

impl Input for SpanQuery {}

/// Activity of a campaign over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CampaignActivity {
    /// The campaign.
    pub campaign_id: CampaignId,
    /// Time at which the span begins.
    pub from: Timestamp,
    /// Time at which the span ends, exclusive.
    pub to: Timestamp,
    /// Length of each bucket: an hour or a day.
    pub interval: Interval,
    /// Sums of its buckets.
    pub totals: Activity,
    /// Every bucket of the span, in order.
    pub series: Vec<ActivityBucket>,
    /// Links that people followed, at any time; the most followed first.
    pub links: Vec<LinkActivity>,
}

/// Clicks on one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LinkActivity {
    /// The URL as it stands in the template.
    pub url: String,
    /// Number of times that people followed the link.
    pub clicks: u64,
    /// Number of messages in which they did.
    pub unique_clicks: u64,
}

/// `GET /workspaces/{workspace_id}/analytics/campaigns/{id}`
pub struct GetCampaignActivity;

impl Operation for GetCampaignActivity {
    const ID: &'static str = "getAnalyticsCampaign";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/analytics/campaigns/{id}";
    const ACCESS: Access = Access::Scope(Scope::AnalyticsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "analytics campaign";
    const SUMMARY: &'static str = "Show what came of a campaign over time, and of its links";
    type Path = CampaignPath;
    type Query = SpanQuery;
    type Body = Empty;
    type Output = CampaignActivity;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignActivity, Error> {
        let CampaignPath { workspace_id, id } = call.path;
        cx.store().campaign(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let SpanQuery { from, to, interval } = call.query;
        let (Span { from, to, interval }, buckets) = Span::read(cx, from, to, interval).await?;
        let (totals, series) = activity(cx, SeriesOf::Campaign(id), &buckets).await?;
        let mut links: Vec<LinkActivity> = Vec::new();
        // Variants of a campaign may have links in common, and a template one URL at several places.
        for link in cx.store().campaign_links(workspace_id, id).await? {
            match links.iter_mut().find(|known| known.url == link.url) {
                Some(known) => {
                    known.clicks += link.clicks;
                    known.unique_clicks += link.unique_clicks;
                }
                None => {
                    links.push(LinkActivity { url: link.url, clicks: link.clicks, unique_clicks: link.unique_clicks });
                }
            }
        }
        let redactor = cx.redactor();
        for link in &mut links {
            link.url = redactor.text(std::mem::take(&mut link.url));
        }
        links.sort_by(|one, other| other.clicks.cmp(&one.clicks).then_with(|| one.url.cmp(&other.url)));
        Ok(CampaignActivity { campaign_id: id, from, to, interval, totals, series, links })
    }
}
