//! Comparison of stored counters with the rows: each is one snapshot. The database counts the rows.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::analytics::tally::{self, Counts, of_event};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{EngagementFlags, Skip};
use messaging_core::domain::message::{EventKind, MessageContent, MessageStatus};
use messaging_core::ids::{CampaignId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
use messaging_core::ports::store::{StoreCursor, StoreError};
use tokio_postgres::Row;

use super::Postgres;
use super::fault::Fault;
use super::query::{Queries, many};
use crate::comparing::{CountedIn, Recount};
use crate::pages::sql_limit;
use crate::row::{get, id, maybe_id, numbered};
use crate::sql::{key, params};
use crate::tables::verification::{Verifier, message_jobs, workspace_of};

#[async_trait]
impl Verifier for Postgres {
    async fn verify_rows_of(&self, workspace: WorkspaceId) -> Result<Verified, StoreError> {
        let mut snapshot = self.reads.long_snapshot().await?;
        let verified = workspace_of(&mut snapshot, workspace).await?;
        snapshot.end().await?;
        Ok(verified)
    }

    async fn verify_rows_of_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError> {
        let mut snapshot = self.reads.long_snapshot().await?;
        let verified = message_jobs(&mut snapshot, kind, message_of).await?;
        snapshot.end().await?;
        Ok(verified)
    }

    /// Ids of messages begin with the time of their acceptance.
    async fn contents_behind(
        &self,
        after: Option<StoreCursor>,
        limit: usize,
    ) -> Result<Vec<PlacedContent>, StoreError> {
        const SQL: &str = "SELECT message, workspace, request FROM message_contents
            WHERE message > $1 ORDER BY message, workspace LIMIT $2";
        let after = after.map_or([0; 16], StoreCursor::to_bytes);
        self.reads
            .many(SQL, params![after, sql_limit(limit)], |row| {
                let message_id: MessageId = id(row, 0)?;
                Ok(PlacedContent {
                    place: StoreCursor::from_bytes(message_id.to_bytes()),
                    workspace_id: id(row, 1)?,
                    message_id,
                    content: MessageContent { request: Bytes::from(get::<Vec<u8>>(row, 2)?) },
                })
            })
            .await
    }
}

/// Counts the rows of a workspace's messages, of which the database groups equal ones. Memory holds one sum for each
/// variant, link and channel.
pub(super) async fn recount(on: &mut impl Queries, workspace: WorkspaceId) -> Result<Recount, Fault> {
    const MESSAGES: &str = "SELECT channel, campaign, coalesce(variant, 0), automation IS NOT NULL,
            count(*), status, seen, skip::bigint
        FROM messages WHERE workspace = $1 AND is_test IS NULL GROUP BY 1, 2, 3, 4, 6, 7, 8";
    // Without functions of JSON, which refuse U+0000.
    const VISITS: &str = "SELECT m.channel, m.campaign, coalesce(m.variant, 0)::bigint,
            m.automation IS NOT NULL, count(*), e.kind, coalesce(strpos(e.meta, '\"machine\":true') > 0, false)
        FROM messages m JOIN message_events e ON e.workspace = m.workspace AND e.message = m.id AND e.kind IN (6, 7)
        WHERE m.workspace = $1 AND m.is_test IS NULL AND m.seen & $2 <> 0 GROUP BY 1, 2, 3, 4, 6, 7";
    const CLICKED: &str = "SELECT campaign, coalesce(variant, 0), link, count(*)
        FROM messages CROSS JOIN generate_series(0, 63) AS link
        WHERE workspace = $1 AND campaign IS NOT NULL AND links <> 0 AND (links >> link) & 1 = 1 GROUP BY 1, 2, 3";
    let mut recount = Recount::default();
    let alike = many(on, MESSAGES, params![key(workspace)], |row| {
        let seen = EngagementFlags::from_bits(get(row, 6)?);
        let skip = get::<Option<i64>>(row, 7)?.map(|skip| numbered(&Skip::ALL, skip)).transpose()?;
        let status = numbered(&MessageStatus::ALL, get(row, 5)?)?;
        let one = tally::tally(&tally::Row { status, seen, skip, sent_at: None, delivered_at: None });
        Ok((counted_in(row)?, get(row, 4)?, seen, one))
    });
    for (counted_in, messages, seen, one) in alike.await? {
        recount.add(counted_in, times(one, messages));
        if let Some((campaign, _)) = counted_in.campaign {
            recount.add_seen(campaign, seen, messages);
        }
    }
    let visited = EngagementFlags::OPENED.union(EngagementFlags::CLICKED).union(EngagementFlags::MACHINE_OPENED);
    let visited = i64::from(visited.bits());
    let visits = many(on, VISITS, params![key(workspace), visited], |row| {
        let one = of_event(numbered(&EventKind::ALL, get(row, 5)?)?, get(row, 6)?);
        Ok((counted_in(row)?, times(one, get(row, 4)?)))
    });
    for (counted_in, counts) in visits.await? {
        recount.add(counted_in, counts);
    }
    let clicked =
        many(on, CLICKED, params![key(workspace)], |row| Ok((id(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?)));
    for (campaign, variant, link, messages) in clicked.await? {
        recount.add_clicked(campaign, variant, link, messages);
    }
    Ok(recount)
}

/// Reads channel, campaign, variant and the presence of an automation from the first columns.
fn counted_in(row: &Row) -> Result<CountedIn, Fault> {
    let variant = get(row, 2)?;
    Ok(CountedIn {
        channel: numbered(&Channel::ALL, get(row, 0)?)?,
        campaign: maybe_id::<CampaignId>(row, 1)?.map(|campaign| (campaign, variant)),
        is_automatic: get(row, 3)?,
    })
}

/// Multiplies the counts of a message by a number of equal messages.
fn times(one: Counts, messages: i64) -> Counts {
    one.iter().map(|(counter, number)| (counter, number * messages)).collect()
}
