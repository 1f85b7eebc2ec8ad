//! Counters of messages, and series over time.
//!
//! [`deltas`] says how they are written. A connection adds to rows of its own, so that commits do not wait for each other:
//! a counter is the sum over its shards.

mod columns;
mod deltas;

use std::sync::LazyLock;

use async_trait::async_trait;
use messaging_core::changes::{CountLink, Engagement};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::tally::Counts;
use messaging_core::domain::tally::buckets::Quarter;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::{Counters, LinkCounts, SeriesOf, StoreError};
use tokio_postgres::Row;

use self::columns::{SERIES, TOTALS, counts, sums};
use super::PostgresStore;
use super::fault::Fault;
use super::query::{Queries, many, params};
use super::row::{count, get, number, small, uuid};
use super::transaction::Transaction;

pub(super) use deltas::settle;

/// Counts a click on a link. Its URL is that of the first click.
pub(super) fn count_link(transaction: &mut Transaction, click: &CountLink) {
    const SQL: &str = "WITH campaign AS (
            SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
        ), named AS (
            INSERT INTO campaign_links (campaign, variant, link, url) SELECT n, $3, $4, $5 FROM campaign
            ON CONFLICT DO NOTHING
        )
        INSERT INTO campaign_link_counts AS t (campaign, variant, link, shard, clicks, unique_clicks)
        SELECT n, $3, $4, pg_backend_pid() & 15, 1, $6 FROM campaign
        ON CONFLICT (campaign, variant, link, shard)
            DO UPDATE SET clicks = t.clicks + 1, unique_clicks = t.unique_clicks + excluded.unique_clicks";
    transaction.run(
        SQL,
        params![
            uuid(click.workspace_id),
            uuid(click.campaign_id),
            i16::from(click.variant),
            i16::from(click.link),
            click.url.clone(),
            i64::from(click.is_first),
        ],
    );
}

pub(super) fn note_engagement(transaction: &mut Transaction, engagement: &Engagement) {
    const SQL: &str = "INSERT INTO campaign_engagements (campaign, seen, message)
        SELECT n, $3, $4 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
        ON CONFLICT DO NOTHING";
    let (workspace, campaign) = (uuid(engagement.workspace_id), uuid(engagement.campaign_id));
    let seen = i16::from(engagement.seen.bits());
    transaction.run(SQL, params![workspace, campaign, seen, uuid(engagement.message_id)]);
}

/// The totals of a campaign by variant, in order.
pub(super) async fn totals(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    campaign: CampaignId,
) -> Result<Vec<(u8, Counts)>, Fault> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let of = "FROM campaign_counts
            WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
            GROUP BY variant ORDER BY variant";
        sums("variant::bigint, ", &TOTALS, of)
    });
    many(on, &SQL, params![uuid(workspace), uuid(campaign)], |row| Ok((small(row, 0)?, counts(TOTALS, row, 1)?))).await
}

#[async_trait]
impl Counters for PostgresStore {
    async fn campaign_counts(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<Counts>, StoreError> {
        let mut variants = Vec::new();
        for (variant, counts) in totals(&mut self.reads.clone(), workspace, campaign).await? {
            variants.resize(usize::from(variant), Counts::default());
            variants.push(counts);
        }
        Ok(variants)
    }

    async fn series(
        &self,
        workspace: WorkspaceId,
        of: SeriesOf,
        from: Quarter,
        to: Quarter,
    ) -> Result<Vec<(Quarter, Counts)>, StoreError> {
        static ALL: LazyLock<String> =
            LazyLock::new(|| series("FROM activity WHERE workspace = $1 AND quarter >= $2 AND quarter < $3"));
        static CHANNEL: LazyLock<String> = LazyLock::new(|| {
            series("FROM activity WHERE workspace = $1 AND quarter >= $2 AND quarter < $3 AND channel = $4::bigint")
        });
        static CAMPAIGN: LazyLock<String> = LazyLock::new(|| {
            series(
                "FROM campaign_activity
                 WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $4 AND NOT removed)
                    AND quarter >= $2 AND quarter < $3",
            )
        });
        let mut bounds = params![uuid(workspace), from.0, to.0];
        let sql = match of {
            SeriesOf::Workspace(None) => &ALL,
            SeriesOf::Workspace(Some(channel)) => {
                bounds.push(number(&Channel::ALL, &channel).into());
                &CHANNEL
            }
            SeriesOf::Campaign(campaign) => {
                bounds.push(uuid(campaign).into());
                &CAMPAIGN
            }
        };
        self.reads.many(sql, bounds, bucket).await
    }

    async fn campaign_links(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<LinkCounts>, StoreError> {
        const SQL: &str = "SELECT variant::bigint, link::bigint, url, sum(clicks)::bigint, sum(unique_clicks)::bigint
            FROM campaign_links JOIN campaign_link_counts USING (campaign, variant, link)
            WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
            GROUP BY variant, link, url ORDER BY variant, link";
        let read = |row: &Row| {
            Ok(LinkCounts {
                variant: small(row, 0)?,
                link: small(row, 1)?,
                url: get(row, 2)?,
                clicks: count(row, 3)?,
                unique_clicks: count(row, 4)?,
            })
        };
        self.reads.many(SQL, params![uuid(workspace), uuid(campaign)], read).await
    }
}

/// A query for what was counted in each quarter of an hour, in order.
fn series(of: &str) -> String {
    sums("quarter, ", &SERIES, &format!("{of} GROUP BY quarter ORDER BY quarter"))
}

/// What was counted in a quarter of an hour.
fn bucket(row: &Row) -> Result<(Quarter, Counts), Fault> {
    Ok((Quarter(get(row, 0)?), counts(SERIES, row, 1)?))
}
