//! Counters of messages, and series over time.
//!
//! [`deltas`] says how they are written.

mod columns;
mod deltas;

use async_trait::async_trait;
use messaging_core::changes::{CountLink, Engagement};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::tally::Counts;
use messaging_core::domain::tally::buckets::Quarter;
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::{Counters, LinkCounts, SeriesOf, StoreError};
use rusqlite::{Connection, Row, params};

use self::columns::{counts, select, with_series, with_totals};
use super::SqliteStore;
use super::fault::Fault;
use super::numbers::campaign_number;
use super::query::{many, one};
use super::row::{count, number, sql_limit};

use self::columns::{SERIES, TOTALS};
pub(super) use deltas::settle;

pub(super) use crate::counter_deltas::{AutomationCounter, CounterDeltas, SourceKind};

/// Counts a click on a link. Its URL is that of the first click.
pub(super) fn count_link(connection: &Connection, click: &CountLink) -> Result<(), Fault> {
    let Some(campaign) = campaign_number(connection, click.workspace_id, click.campaign_id)? else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO campaign_links (campaign, variant, link, url, clicks, unique_clicks)
             VALUES (?1, ?2, ?3, ?4, 1, ?5)
             ON CONFLICT DO UPDATE SET clicks = clicks + 1, unique_clicks = unique_clicks + excluded.unique_clicks",
        )?
        .execute(params![campaign, click.variant, click.link, click.url, click.is_first])?;
    Ok(())
}

pub(super) fn note_engagement(connection: &Connection, engagement: &Engagement) -> Result<(), Fault> {
    let campaign = campaign_number(connection, engagement.workspace_id, engagement.campaign_id)?;
    let Some(campaign) = campaign else { return Ok(()) };
    connection
        .prepare_cached("INSERT OR IGNORE INTO campaign_engagements (campaign, seen, message) VALUES (?1, ?2, ?3)")?
        .execute(params![campaign, engagement.seen.bits(), engagement.message_id.to_bytes()])?;
    Ok(())
}

/// The totals of a campaign by variant, in order.
pub(super) fn totals(connection: &Connection, campaign: i64) -> Result<Vec<(u8, Counts)>, Fault> {
    const SQL: &str =
        with_totals!(select!("variant, " each " FROM campaign_counts WHERE campaign = ?1 ORDER BY variant"));
    many(connection, SQL, [campaign], |row| Ok((row.get(0)?, counts(TOTALS, row, 1)?)))
}

/// The sum of the series of a campaign.
pub(super) fn sum_of_campaign(connection: &Connection, campaign: i64) -> Result<Counts, Fault> {
    const SQL: &str = with_series!(select!("" sums " FROM campaign_activity WHERE campaign = ?1"));
    Ok(one(connection, SQL, [campaign], |row| counts(SERIES, row, 0))?.unwrap_or_default())
}

/// The sum of a series of a workspace.
pub(super) fn sum_of_activity(
    connection: &Connection,
    workspace: WorkspaceId,
    channel: Channel,
    kind: SourceKind,
) -> Result<Counts, Fault> {
    const SQL: &str =
        with_series!(select!("" sums " FROM activity WHERE workspace = ?1 AND channel = ?2 AND source = ?3"));
    let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), number(&SourceKind::ALL, &kind)];
    Ok(one(connection, SQL, key, |row| counts(SERIES, row, 0))?.unwrap_or_default())
}

/// Lets go up to `limit` rows of a campaign that was removed; answers how many went.
pub(super) fn forget_campaign(connection: &Connection, campaign: i64, limit: usize) -> Result<usize, Fault> {
    let mut forgotten = 0;
    for sql in [
        "DELETE FROM campaign_counts WHERE (campaign, variant) IN
             (SELECT campaign, variant FROM campaign_counts WHERE campaign = ?1 LIMIT ?2)",
        "DELETE FROM campaign_links WHERE (campaign, variant, link) IN
             (SELECT campaign, variant, link FROM campaign_links WHERE campaign = ?1 LIMIT ?2)",
        "DELETE FROM campaign_activity WHERE (campaign, quarter) IN
             (SELECT campaign, quarter FROM campaign_activity WHERE campaign = ?1 LIMIT ?2)",
    ] {
        let room = sql_limit(limit.saturating_sub(forgotten));
        forgotten += connection.prepare_cached(sql)?.execute(params![campaign, room])?;
    }
    Ok(forgotten)
}

#[async_trait]
impl Counters for SqliteStore {
    async fn campaign_counts(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<Counts>, StoreError> {
        self.readers
            .point_read(move |connection| {
                let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(Vec::new()) };
                let mut variants = Vec::new();
                for (variant, counts) in totals(connection, campaign)? {
                    variants.resize(usize::from(variant), Counts::default());
                    variants.push(counts);
                }
                Ok(variants)
            })
            .await
    }

    async fn series(
        &self,
        workspace: WorkspaceId,
        of: SeriesOf,
        from: Quarter,
        to: Quarter,
    ) -> Result<Vec<(Quarter, Counts)>, StoreError> {
        const ALL: &str = with_series!(select!(
            "quarter, " sums " FROM activity WHERE workspace = ?1 AND quarter >= ?2 AND quarter < ?3
             GROUP BY quarter ORDER BY quarter"
        ));
        const CHANNEL: &str = with_series!(select!(
            "quarter, " sums " FROM activity WHERE workspace = ?1 AND quarter >= ?2 AND quarter < ?3 AND channel = ?4
             GROUP BY quarter ORDER BY quarter"
        ));
        const CAMPAIGN: &str = with_series!(select!(
            "quarter, " each " FROM campaign_activity
             WHERE campaign = ?1 AND quarter >= ?2 AND quarter < ?3 ORDER BY quarter"
        ));
        self.readers
            .read(move |connection| match of {
                SeriesOf::Workspace(None) => many(connection, ALL, params![workspace.to_bytes(), from.0, to.0], bucket),
                SeriesOf::Workspace(Some(channel)) => {
                    let channel = number(&Channel::ALL, &channel);
                    many(connection, CHANNEL, params![workspace.to_bytes(), from.0, to.0, channel], bucket)
                }
                SeriesOf::Campaign(campaign) => match campaign_number(connection, workspace, campaign)? {
                    Some(campaign) => many(connection, CAMPAIGN, params![campaign, from.0, to.0], bucket),
                    None => Ok(Vec::new()),
                },
            })
            .await
    }

    async fn campaign_links(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<LinkCounts>, StoreError> {
        const SQL: &str = "SELECT variant, link, url, clicks, unique_clicks FROM campaign_links
            WHERE campaign = ?1 ORDER BY variant, link";
        self.readers
            .point_read(move |connection| {
                let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(Vec::new()) };
                many(connection, SQL, [campaign], |row| {
                    Ok(LinkCounts {
                        variant: row.get(0)?,
                        link: row.get(1)?,
                        url: row.get(2)?,
                        clicks: count(row, 3)?,
                        unique_clicks: count(row, 4)?,
                    })
                })
            })
            .await
    }
}

/// What was counted in a quarter of an hour.
fn bucket(row: &Row<'_>) -> Result<(Quarter, Counts), Fault> {
    Ok((Quarter(row.get(0)?), counts(SERIES, row, 1)?))
}
