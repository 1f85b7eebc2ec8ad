//! Counters of messages, and their series over time.
//!
//! [`deltas`] writes them. On PostgreSQL each counter has up to 64 rows (shards), and a connection adds to the row that its
//! process id selects, so that commits rarely wait for each other. The counter is the sum of its rows.

pub(crate) mod columns;
mod deltas;

use async_trait::async_trait;
use messaging_core::changes::{CountLink, Engagement};
use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::analytics::tally::Counts;
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::{Counters, LinkCounts, SeriesOf, StoreError};

use self::columns::{sums, with_series, with_sites, with_totals};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{number, sql_limit};
use crate::row::{count, get};
use crate::sql::{Sql, key, params, sql};

pub(crate) use self::deltas::settle;

/// Counts a click on a link of a campaign. The URL of a link is stored with its first click.
pub(crate) fn count_link(on: &mut dyn Statements, click: &CountLink) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO campaign_links (campaign, variant, link, url, clicks, unique_clicks)
            SELECT n, $3, $4, $5, 1, $6 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed
            ON CONFLICT DO UPDATE SET clicks = clicks + 1, unique_clicks = unique_clicks + excluded.unique_clicks",
        postgres: "WITH campaign AS (
                SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
            ), named AS (
                INSERT INTO campaign_links (campaign, variant, link, url) SELECT n, $3, $4, $5 FROM campaign
                ON CONFLICT DO NOTHING
            )
            INSERT INTO campaign_link_counts AS t (campaign, variant, link, shard, clicks, unique_clicks)
            SELECT n, $3, $4, pg_backend_pid() & 63, 1, $6 FROM campaign
            ON CONFLICT (campaign, variant, link, shard)
                DO UPDATE SET clicks = t.clicks + 1, unique_clicks = t.unique_clicks + excluded.unique_clicks",
    );
    on.run(
        SQL,
        params![
            key(click.workspace_id),
            key(click.campaign_id),
            click.variant,
            click.link,
            click.url.as_str(),
            i64::from(click.is_first),
        ],
    )
}

/// Records that people opened a message of a campaign or clicked in it; recorded once for each kind and message.
pub(crate) fn note_engagement(on: &mut dyn Statements, engagement: &Engagement) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO campaign_engagements (campaign, seen, message)
            SELECT n, $3, $4 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed ON CONFLICT DO NOTHING",
        postgres: "INSERT INTO campaign_engagements (campaign, seen, message)
            SELECT n, $3, $4 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
            ON CONFLICT DO NOTHING",
    );
    on.run(
        SQL,
        params![
            key(engagement.workspace_id),
            key(engagement.campaign_id),
            engagement.seen.bits(),
            key(engagement.message_id),
        ],
    )
}

#[async_trait]
impl<D: Database> Counters for SqlStore<D> {
    async fn campaign_counts(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<Counts>, StoreError> {
        const SQL: Sql = sql!(with_totals!(sums!(
            "variant",
            " FROM campaign_counts
             WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
             GROUP BY variant ORDER BY variant"
        )));
        let query = Query::new(SQL, params![key(workspace), key(campaign)], |row| {
            Ok((get::<u8>(row, 0)?, columns::totals(row, 1)?))
        });
        let mut variants = Vec::new();
        for (variant, counts) in self.many(query.point()).await? {
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
        const ALL: Sql = sql!(with_series!(sums!(
            "quarter",
            " FROM activity WHERE workspace = $1 AND quarter >= $2 AND quarter < $3 GROUP BY quarter ORDER BY quarter"
        )));
        const CHANNEL: Sql = sql!(with_series!(sums!(
            "quarter",
            " FROM activity WHERE workspace = $1 AND quarter >= $2 AND quarter < $3 AND channel = $4
             GROUP BY quarter ORDER BY quarter"
        )));
        const CAMPAIGN: Sql = sql!(with_series!(sums!(
            "quarter",
            " FROM campaign_activity
             WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $4 AND NOT removed)
                 AND quarter >= $2 AND quarter < $3 GROUP BY quarter ORDER BY quarter"
        )));
        let mut bounds = params![key(workspace), from.0, to.0];
        let sql = match of {
            SeriesOf::Workspace(None) => ALL,
            SeriesOf::Workspace(Some(channel)) => {
                bounds.push(number(&Channel::ALL, &channel).into());
                CHANNEL
            }
            SeriesOf::Campaign(campaign) => {
                bounds.push(key(campaign));
                CAMPAIGN
            }
        };
        self.many(Query::new(sql, bounds, |row| Ok((Quarter(get(row, 0)?), columns::series(row, 1)?)))).await
    }

    async fn site_activity(
        &self,
        workspace: WorkspaceId,
        from: Quarter,
        to: Quarter,
        limit: usize,
    ) -> Result<Vec<(String, SiteCounts)>, StoreError> {
        const SQL: Sql = sql!(with_sites!(sums!(
            "site",
            " FROM site_activity WHERE workspace = $1 AND quarter >= $2 AND quarter < $3
             GROUP BY site ORDER BY sum(accepted) DESC, site LIMIT $4"
        )));
        let bounds = params![key(workspace), from.0, to.0, sql_limit(limit)];
        self.many(Query::new(SQL, bounds, |row| Ok((get(row, 0)?, columns::sites(row, 1)?)))).await
    }

    async fn forget_site_activity(&self, before: Quarter, limit: usize) -> Result<u64, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM site_activity WHERE (workspace, quarter, site) IN
                (SELECT workspace, quarter, site FROM site_activity WHERE quarter < $1 ORDER BY quarter LIMIT $2)",
            postgres: "DELETE FROM site_activity WHERE ctid = ANY (ARRAY (SELECT ctid FROM site_activity
                WHERE quarter < $1 ORDER BY quarter LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        self.sweep(SQL, params![before.0, sql_limit(limit)]).await
    }

    async fn campaign_links(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<LinkCounts>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT variant, link, url, clicks, unique_clicks FROM campaign_links
                WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
                ORDER BY variant, link",
            postgres: "SELECT variant, link, url, sum(clicks)::bigint, sum(unique_clicks)::bigint
                FROM campaign_links JOIN campaign_link_counts USING (campaign, variant, link)
                WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
                GROUP BY variant, link, url ORDER BY variant, link",
        );
        let query = Query::new(SQL, params![key(workspace), key(campaign)], |row| {
            Ok(LinkCounts {
                variant: get(row, 0)?,
                link: get(row, 1)?,
                url: get(row, 2)?,
                clicks: count(row, 3)?,
                unique_clicks: count(row, 4)?,
            })
        });
        self.many(query.point()).await
    }
}
